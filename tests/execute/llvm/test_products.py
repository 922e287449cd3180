"""Matrix products and convolutions in LLVM code: every shape, stride and stack, on any threads."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.build import build
from graphgrad.ops.contract.products import MatMul
from graphgrad.ops.nn.conv2d import Conv2D, Conv2DBackpropFilter, Conv2DBackpropInput

pytest.importorskip("llvmlite")

from graphgrad.execute.llvm.kernels import convolved, library, products
from graphgrad.execute.llvm.kernels.convolving import convolution_writer
from graphgrad.execute.llvm.kernels.products import product_writer

from ...each import every

DTYPES = (np.dtype("float32"), np.dtype("float64"))
ROUNDING = {"f": 1e-5, "d": 1e-13}


@pytest.fixture(autouse=True)
def _fast():
    if not library.fast():
        pytest.skip("this machine's vectors are too short")


def _operand(rng, rows, cols, stack, dtype):
    """A matrix or stack of one of several layouts."""
    layout = rng.integers(5)
    if layout == 0:
        return rng.normal(size=(*stack, rows, cols)).astype(dtype)
    if layout == 1:
        return rng.normal(size=(*stack, cols, rows)).astype(dtype).mT
    if layout == 2:
        return rng.normal(size=(*stack, 2 * rows, 3 * cols)).astype(dtype)[..., ::2, ::3]
    if layout == 3:
        return rng.normal(size=(*stack, rows, cols)).astype(dtype)[..., ::-1, ::-1]
    return rng.normal(size=(*stack, rows, cols + 5)).astype(dtype)[..., 2 : cols + 2]


def _off(found, x, y):
    """The worst error of a product in units of what sums of this length round to."""
    right = np.matmul(x.astype("float64"), y.astype("float64"))
    size = np.matmul(np.abs(x).astype("float64"), np.abs(y).astype("float64"))
    return np.max(np.abs(found - right) / (size + 1e-300))


@pytest.mark.parametrize("seed", range(40))
def test_matmul_of_any_layout(seed):
    rng = np.random.default_rng(seed)
    for dtype in DTYPES:
        m, k, n = rng.integers(1, 70, 3)
        if seed % 8 == 0:
            m, k, n = rng.integers(1, 300), rng.integers(500, 1200), rng.integers(1, 100)
        stack = [(), (3,), (2, 3), (1, 4)][rng.integers(4)]
        x = _operand(rng, m, k, stack, dtype)
        y = _operand(rng, k, n, [stack, (), (1,) * len(stack)][rng.integers(3)], dtype)
        a, b = rng.integers(2, size=2)
        run = library.matmul(dtype, bool(a), bool(b))
        given = (x.mT if a else x), (y.mT if b else y)
        out = np.full((*stack, m, n), np.nan, dtype)
        run(*given, out)
        assert _off(out, x, y) < ROUNDING[dtype.char]
        parts = np.full_like(out, np.nan)
        for part in range(5):
            run(*given, parts, part, 5)
        np.testing.assert_array_equal(parts, out)


def test_nothing_outside_the_result_is_written():
    rng = np.random.default_rng(0)
    for dtype in DTYPES:
        for m, k, n in [(1, 1, 1), (13, 5, 17), (29, 40, 33), (12, 600, 64), (3, 2, 31)]:
            x, y = (rng.normal(size=s).astype(dtype) for s in [(m, k), (n, k)])
            memory = np.full(m * n + 64, 7.0, dtype)
            out = memory[32:-32].reshape(m, n)
            library.matmul(dtype, False, True)(x, y, out)
            assert _off(out, x, y.T) < ROUNDING[dtype.char]
            assert (memory[:32] == 7).all()
            assert (memory[-32:] == 7).all()


def test_nan_and_infinity_stay_where_they_are():
    x, y = np.ones((20, 9), "float32"), np.ones((9, 40), "float32")
    x[3, 4], y[5, 6] = np.nan, np.inf
    out = np.empty((20, 40), "float32")
    library.matmul(x.dtype, False, False)(x, y, out)
    np.testing.assert_array_equal(out, x @ y)


def _rounding(found, right):
    """Root mean square of the relative errors, in units of the last place."""
    relative = (found - right) / right / np.finfo(found.dtype).eps
    return np.sqrt(np.mean(relative**2))


@pytest.mark.parametrize("depth", [200, 1024, 5000, 65536])
@pytest.mark.parametrize("transposed", [False, True])
def test_deep_products_are_about_as_exact_as_blas(depth, transposed):
    """Of positive numbers, whose rounding errors no cancelling excuses."""
    rng = np.random.default_rng(0)
    x, y = (rng.random(size=s).astype("float32") for s in ((24, depth), (depth, 40)))
    out = np.empty((24, 40), "float32")
    library.matmul(x.dtype, transposed, False)(x.T.copy() if transposed else x, y, out)
    assert _rounding(out, x.astype("float64") @ y) < 3


@pytest.mark.parametrize("shape", [(300, 7), (40, 28), (3, 200)])
def test_gradients_of_filters_are_exact_sums(shape):
    """Of many examples, or of large ones."""
    rng = np.random.default_rng(0)
    n, h = shape
    x, dz = (rng.random(size=(n, h, h, c)).astype("float32") for c in (3, 5))
    with gg.Graph():
        tx, tf = gg.placeholder(x.shape, "float32"), gg.placeholder((3, 3, 3, 5), "float32")
        (dw,) = gg.gradients(gg.nn.conv(tx, tf), [tf], grad_ys=dz)
    out = np.full(dw.shape, np.nan, "float32")
    given = {tx: x}
    convolution_writer(dw.node, 1)(*[given.get(t, dz) for t in dw.node.inputs], out)
    right = dw.node.op.kernel(np, *[given.get(t, dz).astype("float64") for t in dw.node.inputs])
    assert _rounding(out, right) < 1.5


@pytest.mark.parametrize("image", [(32, 28, 28, 3), (9, 20, 20, 13), (11, 20, 20, 1), (2, 9, 8, 1)])
def test_a_filters_gradient_that_threads_share_has_the_bits_of_one_thread(image, monkeypatch):
    """Also where its rows are cut into fewer pieces than there are threads."""
    monkeypatch.setattr(convolved, "SHARED", 0)
    rng = np.random.default_rng(0)
    x, dz = (rng.normal(size=(*image[:3], c)).astype("float32") for c in (image[3], 24))
    with gg.Graph():
        tx, tf = (gg.placeholder(s, "float32") for s in (image, (5, 5, image[3], 24)))
        (dw,) = gg.gradients(gg.nn.conv(tx, tf), [tf], grad_ys=dz)
    given = {tx: x}
    results = []
    for threads in (1, 2, 3, 5, 40):
        out = np.full(dw.shape, np.nan, "float32")
        convolution_writer(dw.node, threads)(*[given.get(t, dz) for t in dw.node.inputs], out)
        results.append(out)
    for out in results[1:]:
        np.testing.assert_array_equal(out, results[0])
    arrays = [given.get(t, dz).astype("float64") for t in dw.node.inputs]
    right = dw.node.op.kernel(np, *arrays)
    np.testing.assert_allclose(results[0], right, atol=1e-5 * abs(right).max())


def test_a_filters_gradient_that_is_infinite_is_not_nan():
    x, dz = np.ones((200, 4, 4, 2), "float32"), np.ones((200, 4, 4, 2), "float32")
    x[3, 1, 1, 1] = np.inf
    with gg.Graph():
        tx, tf = gg.placeholder(x.shape, "float32"), gg.placeholder((1, 1, 2, 2), "float32")
        (dw,) = gg.gradients(gg.nn.conv(tx, tf), [tf], grad_ys=dz)
    out = np.empty(dw.shape, "float32")
    given = {tx: x}
    convolution_writer(dw.node, 1)(*[given.get(t, dz) for t in dw.node.inputs], out)
    np.testing.assert_array_equal(out[0, 0], [[3200, 3200], [np.inf, np.inf]])


@pytest.mark.parametrize("seed", range(30))
def test_a_product_that_threads_share_has_the_bits_of_one_thread(seed, monkeypatch):
    monkeypatch.setattr(products, "SHARED", 0)
    monkeypatch.setattr(products, "PART", 1)
    rng = np.random.default_rng(seed)
    m, k, n = (
        int(i) for i in rng.integers(1, [(300, 80, 300), (80, 300, 900), (900, 80, 80)][seed % 3])
    )
    flags = [bool(i) for i in rng.integers(0, 2, 2)]
    stacks = [
        ((), ()),
        ((3,), (3,)),
        ((4, 2), (4, 2)),
        ((1, 3), (5, 3)),
        ((4, 1), (2,)),
        ((), (6,)),
    ]
    of_a, of_b = stacks[rng.integers(len(stacks))]
    a = rng.normal(size=(*of_a, *((k, m) if flags[0] else (m, k)))).astype("float32")
    b = rng.normal(size=(*of_b, *((n, k) if flags[1] else (k, n)))).astype("float32")
    with gg.Graph():
        given = tuple([gg.placeholder(x.shape, "float32") for x in (a, b)])
        node = build(MatMul(transpose_a=flags[0], transpose_b=flags[1]), given)
    results = []
    for threads in (1, 2, 5):
        write = product_writer(node, threads)
        if write is None:
            return
        out = np.full(node.outputs[0].shape, np.nan, "float32")
        write(a, b, out)
        results.append(out)
    right = np.matmul(a.mT if flags[0] else a, b.mT if flags[1] else b)
    np.testing.assert_allclose(results[0], right, rtol=1e-4, atol=1e-3)
    for out in results[1:]:
        np.testing.assert_array_equal(out, results[0])


@pytest.mark.parametrize("op_type", [MatMul, Conv2D, Conv2DBackpropInput, Conv2DBackpropFilter])
@pytest.mark.parametrize("threads", [1, 3])
def test_writers_of_the_samples(op_type, threads, monkeypatch):
    for module in (products, convolved):
        monkeypatch.setattr(module, "SHARED", 0)
    rng = np.random.default_rng(0)
    written = 0
    for op, arrays in op_type.samples(rng):
        for dtype in DTYPES:
            given = [a.astype(dtype) for a in arrays]
            with gg.Graph():
                node = build(op, tuple([gg.placeholder(a.shape, dtype) for a in given]))
            write = (product_writer if op_type is MatMul else convolution_writer)(node, threads)
            if write is None:
                continue
            written += 1
            out = np.full(node.outputs[0].shape, np.nan, dtype)
            strided = [a[::-1].copy()[::-1] for a in given]
            write(*strided, out)
            np.testing.assert_allclose(out, op.kernel(np, *given), 1e-4, 1e-5)
    assert written >= 4


@pytest.mark.parametrize("seed", every(2, range(120)))
def test_convolutions_and_their_adjoints(seed):
    """With dilations and groups from seed 60 on; some with more than a vector or panel in each."""
    rng = np.random.default_rng(seed)
    n, h, w, c, o = rng.integers(1, [4, 20, 20, 40, 70])
    groups, dilation = 1, (1, 1)
    if seed >= 60:
        groups = int(rng.integers(1, 5))
        c, o = -(-c // groups) * groups, -(-o // groups) * groups
        dilation = tuple(int(d) for d in rng.integers(1, 5, 2))
    window = tuple(int(k) for k in rng.integers(1, 5, 2))
    strides = (1, 1) if seed < 20 else tuple(int(s) for s in rng.integers(1, 4, 2))
    reach = [(k - 1) * d for k, d in zip(window, dilation, strict=True)]
    own = ((0, reach[0]), (reach[1], 0))
    padding = [own, "SAME", tuple((int(a), int(b) + 4) for a, b in rng.integers(0, 7, (2, 2)))]
    padding = padding[seed % (2 if seed < 20 else 3)]
    x, f = rng.normal(size=(n, h, w, c)), rng.normal(size=(*window, c // groups, o))
    with gg.Graph():
        tx, tf = gg.placeholder(x.shape), gg.placeholder(f.shape)
        z = gg.nn.conv(tx, tf, strides, padding, dilation=dilation, groups=groups)
        if not z.size:
            return
        dz = rng.normal(size=z.shape)
        grads = gg.gradients(z, [tx, tf], grad_ys=dz)
        plain = gg.compile([tx, tf], [z, *grads], optimize=False, backend="numpy")
        nodes = [t.node for t in (z, *grads)]
    for node, right in zip(nodes, plain(x, f), strict=True):
        write = convolution_writer(node, 2)
        assert write is not None
        out = np.full(right.shape, np.nan)
        values = {tx: x, tf: f, z: right}
        write(*[values.get(t, dz) for t in node.inputs], out)
        np.testing.assert_allclose(out, right, 1e-10, 1e-10)


def test_what_numpy_does_better_is_left_to_it():
    def writer(*shapes, dtype="float32"):
        with gg.Graph():
            return product_writer(
                build(MatMul(), tuple([gg.placeholder(s, dtype) for s in shapes])), 1
            )

    assert writer((8, 8), (8, 8)) is not None
    assert writer((2, 2, 8, 8), (8, 8)) is not None
    assert writer((2, 2, 2, 8, 8), (8, 8)) is None
    assert writer((1, 500), (500, 500)) is None
    assert writer((0, 8), (8, 8)) is None
    assert writer((8, 8), (8, 8), dtype="int64") is None
    assert writer((8, 8), (8, 8), dtype="complex128") is None
