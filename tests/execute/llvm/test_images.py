"""Images on LLVM: channels last across a program, loops behind convolutions, sweeps of windows."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("llvmlite")

from graphgrad.execute.llvm.kernels import convolved, convolving, library, swept
from graphgrad.lower.blocks import ConvolvedLoop
from graphgrad.lower.channels_last import channels_last


@pytest.fixture(autouse=True)
def _fast():
    if not library.fast():
        pytest.skip("this machine's vectors are too short")


def _ops(f):
    return [step.node.op for plan in f.plans for step in plan.steps]


def _network(rng, n=2, dtype="float32"):
    """Blocks of a residual network of (N, C, H, W) whose filters are constants, and x."""

    def conv(x, out, k=3, stride=1, groups=1):
        w = rng.normal(size=(k, k, x.shape[1] // groups, out)).astype(dtype) / k
        return gg.nn.conv(x, gg.constant(w), stride, k // 2, "NCHW", groups=groups)

    def bias(c):
        return gg.constant(rng.normal(size=(c, 1, 1)).astype(dtype))

    x = gg.placeholder((n, 3, 17, 13), dtype)
    h = gg.nn.relu(conv(x, 24, 7, 2) + bias(24))
    h = gg.nn.max_pool(h, 3, 2, 1, "NCHW")
    h = gg.nn.relu(conv(h, 24) + bias(24) + h)
    h = gg.concat([gg.tanh(conv(h, 8, 1)), conv(h, 40) * bias(40)], 1)
    h = gg.nn.sigmoid(gg.mean(h, (2, 3), keepdims=True)) * h
    h = gg.nn.relu(conv(h, 48, groups=48) + bias(48))
    return x, gg.mean(gg.pad(conv(h, 10, 1), ((0, 0), (0, 0), (1, 0), (0, 2))), (2, 3))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [1, 5])
def test_a_network_of_channels_first(n, threads, monkeypatch):
    for module in (convolved, swept):
        monkeypatch.setattr(module, "SHARED", 0)
    rng = np.random.default_rng(n)
    with gg.Graph():
        x, y = _network(rng, n, "float64")
        (dx,) = gg.gradients(gg.sum(y * y), [x])
        plain = gg.compile(x, [y, dx], backend="numpy", optimize=False)
        fast = gg.compile(x, [y, dx], backend="llvm", num_threads=threads)
        only = gg.compile(x, y, backend="llvm", num_threads=threads)
    image = rng.normal(size=x.shape)
    right = plain(image)
    for found, wanted in zip(fast(image), right, strict=True):
        np.testing.assert_allclose(found, wanted, 1e-9, 1e-11)
    np.testing.assert_allclose(only(image), right[0], 1e-9, 1e-11)


def test_what_turns_images_meets_and_goes():
    with gg.Graph():
        x, y = _network(np.random.default_rng(0))
        turned = channels_last(gg.Program([x], [y]))
    moved = [n for n in turned.nodes if n.type == "Transpose" and n.inputs[0].node.inputs]
    assert moved == []
    with gg.Graph():
        x = gg.placeholder((2, 3, 4, 5))
        program = gg.Program([x], [gg.permute_dims(gg.exp(x), (0, 2, 3, 1))])
        assert channels_last(program) is program


def test_loops_run_behind_convolutions_that_nothing_else_reads():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(3, 3, 4, 8)).astype("float32")
    with gg.Graph():
        x = gg.placeholder((1, 9, 9, 4), "float32")
        z = gg.nn.conv(x, gg.constant(w), 1, 1, "NHWC")
        y = gg.nn.relu(z + gg.arange(8, dtype="float32"))
        behind = gg.compile(x, y, backend="llvm")
        apart = gg.compile(x, [y, z], backend="llvm")
    image = rng.normal(size=x.shape).astype("float32")
    np.testing.assert_array_equal(behind(image), apart(image)[0])
    assert [type(op) is ConvolvedLoop for op in _ops(behind)].count(True) == 1
    assert not any(type(op) is ConvolvedLoop for op in _ops(apart))


READERS = {
    "other dtype": lambda z, c: gg.cast(gg.tanh(z) * c, "float32"),
    "predicate": lambda z, c: gg.tanh(z) > c,
    "turned": lambda z, c: gg.permute_dims(gg.tanh(z) * c, (0, 2, 1, 3)),
    "turned and added": lambda z, c: gg.permute_dims(gg.tanh(z) * c, (0, 2, 1, 3)) * 2 + c,
    "beside turned": lambda z, c: gg.tanh(z) + gg.permute_dims(gg.exp(c), (0, 2, 1, 3)) * 2,
    "summed": lambda z, c: gg.sum(gg.tanh(z) * c, 3),
    "normed": lambda z, c: gg.nn.softmax(z * c, 3),
    "by column": lambda z, c: gg.tanh(z) + c[:, :1, :, :1],
    "flat": lambda z, c: gg.tanh(gg.reshape(z, (-1,))) + c[0, 0, 0, 0],
    "longer": lambda z, c: gg.reshape(z, (1, *z.shape)) * gg.stack([c, c + 1]),
    "padded": lambda z, c: gg.pad(gg.tanh(z), ((0, 0), (1, 0), (0, 1), (0, 0))),
    "joined": lambda z, c: gg.concat([gg.tanh(z), c], 3),
    "two": lambda z, c: (gg.tanh(z) * c, gg.exp(z) + 1),
    "a total": lambda z, c: (gg.tanh(z) * c, gg.sum(gg.tanh(z))),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", READERS)
def test_whatever_reads_a_convolution(name, threads, monkeypatch):
    monkeypatch.setattr(convolved, "SHARED", 0)
    rng = np.random.default_rng(0)
    for shape in [(2, 6, 6, 7), (1, 13, 13, 1), (3, 5, 5, 64), (4, 1, 1, 6)]:
        with gg.Graph():
            x = gg.placeholder(shape)
            w = gg.constant(rng.normal(size=(3, 3, shape[3], shape[3])) / shape[3])
            made = READERS[name](gg.nn.conv(x, w, 1, 1, "NHWC"), x)
            plain = gg.compile(x, made, backend="numpy", optimize=False)
            fast = gg.compile(x, made, backend="llvm", num_threads=threads)
        image = rng.normal(size=shape)
        right, found = plain(image), fast(image)
        pairs = zip(right, found, strict=True) if isinstance(made, tuple) else [(right, found)]
        for a, b in pairs:
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(b, a, 1e-6, 1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_sweeps(seed, monkeypatch):
    monkeypatch.setattr(swept, "SHARED", 0)
    rng = np.random.default_rng(seed)
    n, h, w, c = (int(d) for d in rng.integers(1, [3, 14, 14, 40]))
    size, strides, dilation = (tuple(int(d) for d in rng.integers(1, 4, 2)) for _ in range(3))
    padding = tuple((int(a), int(b) + 3) for a, b in rng.integers(0, 4, (2, 2)))
    with gg.Graph():
        x = gg.placeholder((n, h, w, c))
        f = gg.placeholder((*size, 1, c))
        conv = gg.nn.conv(x, f, strides, padding, "NHWC", dilation, c)
        pads = tuple((min(a, k - 1), min(b, k)) for (a, b), k in zip(padding, size, strict=True))
        pool = gg.nn.max_pool(x, size, strides, pads, "NHWC")
        if not conv.size or not pool.size:
            return
        plain = gg.compile([x, f], [conv, pool], backend="numpy", optimize=False)
        fast = gg.compile([x, f], [conv, pool], backend="llvm", num_threads=2)
    given = rng.normal(size=x.shape), rng.normal(size=f.shape)
    given[0].flat[:: int(rng.integers(3, 90))] = np.nan if seed % 3 == 0 else -np.inf
    for found, right in zip(fast(*given), plain(*given), strict=True):
        np.testing.assert_allclose(found, right, 1e-12, 1e-12)


def test_borders_times_infinite_filters_are_nan():
    """As the sum over the window has it, for filters that are constants and others."""
    f = np.ones((3, 3, 2, 2))
    f[0, 0, 0, 0] = np.inf
    with gg.Graph():
        x, w = gg.placeholder((1, 1, 1, 2)), gg.placeholder(f.shape)
        z = [gg.nn.conv(x, t, 1, 1, "NHWC") for t in (w, gg.constant(f))]
        z.append(gg.nn.conv(x, w[:, :, :1], 1, 1, "NHWC", groups=2))
        given = np.ones(x.shape), f
        right = gg.compile([x, w], z, backend="numpy", optimize=False)(*given)
        found = gg.compile([x, w], z, backend="llvm")(*given)
    for a, b in zip(found, right, strict=True):
        assert np.isnan(b).any()
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("strides", [1, (2, 1)])
def test_infinite_filters_reach_no_further_back_than_finite_ones(backend, strides):
    f = np.ones((3, 2, 12, 3))
    f[0, 0, 0, 0] = np.inf
    with gg.Graph():
        x = gg.placeholder((1, 3, 4, 3))
        z = gg.nn.conv_transpose(x, gg.constant(f), strides, "VALID", "NHWC")
        found = np.asarray(gg.compile(x, z, backend=backend)(np.ones(x.shape)))
    assert not np.isnan(found).any()
    assert np.isinf(found).sum() == np.prod(x.shape[1:3])


@pytest.mark.parametrize("rows", [1, 2, 7, 40])
def test_products_with_constants(rows):
    rng = np.random.default_rng(rows)
    b = rng.normal(size=(50, 300))
    with gg.Graph():
        x = gg.placeholder((rows, 300))
        right = gg.compile(x, x @ gg.transpose(gg.constant(b)), backend="numpy")
        found = gg.compile(x, x @ gg.transpose(gg.constant(b)), backend="llvm")
        turned = gg.compile(x, gg.constant(b.T.copy())[:, :20].T @ x.T, backend="llvm")
    a = rng.normal(size=x.shape)
    np.testing.assert_allclose(found(a), right(a), 1e-12, 1e-12)
    np.testing.assert_allclose(found(a), right(a), 1e-12, 1e-12)
    np.testing.assert_allclose(turned(a).T, right(a)[:, :20], 1e-12, 1e-12)


def test_constant_filters_are_packed_once_and_let_go():
    value = np.ones((1, 1, 8, 8), "float32")
    with gg.Graph():
        x = gg.placeholder((1, "H", 4, 8), "float32")
        f = gg.compile(x, gg.nn.conv(x, gg.constant(value), 1, 0, "NHWC"), backend="llvm")
    before = set(convolving._kept)
    for high in (3, 5, 7):
        np.testing.assert_array_equal(f(np.ones((1, high, 4, 8), "float32")), 8.0)
    assert len(set(convolving._kept) - before) == 1
    del f


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (2, 9), (1, 1)])
def test_rows_or_columns_of_a_constant_filter_that_see_no_pixel(shape):
    rng = np.random.default_rng(0)
    with gg.Graph():
        x = gg.placeholder((2, *shape, 8))
        z = gg.nn.conv(x, gg.constant(rng.normal(size=(7, 7, 8, 8))))
        found, right = [gg.compile(x, z, backend=b) for b in ("llvm", "numpy")]
    a = rng.normal(size=x.shape)
    np.testing.assert_allclose(found(a), right(a), 1e-12, 1e-12)


def test_filters_are_packed_in_whole_cache_lines():
    rng = np.random.default_rng(0)
    with gg.Graph():
        x = gg.placeholder((1, 6, 6, 5))
        z = gg.nn.conv(x, gg.constant(rng.normal(size=(3, 3, 5, 7))))
    how = convolving._of(z.node, exact=True)
    made = how.packed(z.node.inputs[1].node.op.value)
    assert made.nbytes >= how.depth * how.outputs * 8
    assert made.ctypes.data % convolved.LINE == 0
    assert made.base.nbytes == made.nbytes + convolved.LINE


def test_a_constant_filter_for_images_that_are_read_in_other_ways():
    rng = np.random.default_rng(0)
    with gg.Graph():
        w = gg.constant(rng.normal(size=(3, 3, 60, 72)))
        images = [gg.placeholder((1, n, n, 60)) for n in (16, 3)]
        made = [gg.nn.conv(x, w) for x in images]
        found, right = [gg.compile(images, made, backend=b) for b in ("llvm", "numpy")]
    arrays = [rng.normal(size=x.shape) for x in images]
    for a, b in zip(found(*arrays), right(*arrays), strict=True):
        np.testing.assert_allclose(a, b, 1e-12, 1e-11)


@pytest.mark.parametrize(
    ("k", "c", "out", "stride", "dilation", "groups"),
    [(3, 24, 40, 1, 1, 1), (3, 130, 70, 2, 1, 1), (1, 33, 65, 1, 1, 1), (3, 8, 36, 1, 2, 4)],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_filters_in_any_order_of_axes(k, c, out, stride, dilation, groups, dtype):
    """Packed from (out, in, height, width) they are what they are from their own order."""
    rng = np.random.default_rng(0)
    with gg.Graph():
        x = gg.placeholder((2, 9, 7, c), dtype)
        w = gg.placeholder((out, c // groups, k, k), dtype)

        def compiled(w, given):
            z = gg.nn.conv(x, w, stride, dilation=dilation, groups=groups)
            return gg.compile([x, given], [z, *gg.gradients(gg.sum(z * z), [x, w])], backend="llvm")

        turned = gg.transpose(w, (2, 3, 1, 0))
        plain = gg.placeholder(turned.shape, dtype)
        runs = compiled(turned, w), compiled(plain, plain)
    filters = rng.normal(size=w.shape).astype(dtype)
    image = rng.normal(size=x.shape).astype(dtype)
    found = runs[0](image, filters)
    wanted = runs[1](image, np.ascontiguousarray(filters.transpose(2, 3, 1, 0)))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("channels", [320, 384, 448])
@pytest.mark.parametrize("groups", [1, None])
def test_a_mean_of_an_image_that_has_as_many_places_as_vectors(channels, groups):
    rng = np.random.default_rng(channels)
    groups = groups or channels
    shape = (1, 1, channels // groups, channels)
    w, b = rng.normal(size=shape).astype("float32"), rng.normal(size=channels).astype("float32")
    for height, width in product(range(1, 4), range(1, 8)):
        image = rng.normal(size=(2, height, width, channels)).astype("float32")
        with gg.Graph():
            x = gg.placeholder(image.shape, "float32")
            y = gg.nn.conv(x, gg.constant(w), groups=groups) + gg.constant(b)
            outputs = [y, gg.mean(y, (1, 2), keepdims=True)]
            fast, plain = (gg.compile(x, outputs, backend=name) for name in ("llvm", "numpy"))
        for a, c in zip(fast(image), plain(image), strict=True):
            np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-4)


def test_a_loop_over_one_place_that_is_cut_into_parts():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(1, 1, 1, 300_000)).astype("float32")
    with gg.Graph():
        x = gg.placeholder((1, 1, 1, 1), "float32")
        y = gg.nn.relu(gg.nn.conv(x, gg.constant(w)) + gg.constant(w[0, 0, 0]))
        call = gg.compile(x, y, backend="llvm")
    np.testing.assert_allclose(call(np.ones(x.shape, "float32")), np.maximum(2 * w, 0), rtol=1e-6)
