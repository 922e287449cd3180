"""Convolutions by minimal filtering beside their definition in float64."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.llvm.backend import LlvmBackend
from graphgrad.execute.llvm.kernels import by_winograd, convolved, convolving, library
from graphgrad.execute.llvm.kernels.by_winograd import ByWinograd
from graphgrad.execute.llvm.kernels.convolved import Convolved
from graphgrad.ir.types import DType
from graphgrad.lower.blocks import ConvolvedLoop
from graphgrad.ops.nn.moving_windows import ONE, Extent, Window

FLOAT32 = DType("float32")


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    if not library.fast():
        pytest.skip("this machine's vectors are too short")
    monkeypatch.setattr(convolved, "SHARED", 0)


@pytest.fixture
def always(monkeypatch):
    """Minimal filtering also where it does not pay."""
    monkeypatch.setattr(by_winograd, "CHANNELS", (1, 1))
    monkeypatch.setattr(by_winograd, "CONSTANT", 1)
    monkeypatch.setattr(by_winograd, "GIVEN", 1)


def _case(rng, many=False):
    """An image, filters, a window and the image with its borders, of random lengths."""
    n, height, width, channels, outputs = (int(i) for i in rng.integers(1, (4, 14, 14, 40, 70)))
    if many:
        channels, outputs = int(rng.integers(250, 600)), int(rng.integers(1, 40))
    pads = [tuple(int(p) for p in rng.integers(0, 4, 2)) for _ in range(2)]
    height, width = (
        max(length, 3 - sum(pad)) for length, pad in zip((height, width), pads, strict=True)
    )
    lengths = zip((height, width), pads, strict=True)
    axes = [Extent(length, length + sum(pad) - 2, *pad) for length, pad in lengths]
    x = rng.normal(size=(n, height, width, channels)).astype("float32")
    w = rng.normal(size=(3, 3, channels, outputs)).astype("float32")
    padded = np.pad(x.astype("float64"), [(0, 0), *pads, (0, 0)])
    return x, w, Window((3, 3), ONE, ONE, tuple(axes)), padded


def _seen(padded, window):
    """The pixels of each place in the window."""
    high, wide = (e.out for e in window.axes)
    return {(i, j): padded[:, i : i + high, j : j + wide] for i in range(3) for j in range(3)}


def _forward(how, x, w, threads):
    z = np.full((*x.shape[:1], *[e.out for e in how.window.axes], w.shape[3]), np.nan, "float32")
    how.runner(threads)(how.image(x), how.packed(w), z)
    return z


@pytest.mark.parametrize("seed", range(60))
def test_outputs_of_any_shape_and_number_of_threads(seed):
    x, w, window, padded = _case(np.random.default_rng(seed), many=seed % 6 == 0)
    how = ByWinograd(FLOAT32, x.shape, window, w.shape[3], 1)
    z = _forward(how, x, w, 1)
    seen = _seen(padded, window)
    right = sum(seen[at] @ w[at].astype("float64") for at in seen)
    size = sum(abs(seen[at]) @ abs(w[at]) for at in seen)
    assert np.max(np.abs(z - right)) < 1e-6 * size.max()
    for threads in (2, 5):
        np.testing.assert_array_equal(_forward(how, x, w, threads), z)


@pytest.mark.parametrize("seed", range(60))
def test_gradients_of_filters_of_any_shape_and_number_of_threads(seed, monkeypatch):
    monkeypatch.setattr(by_winograd, "SUMMED", 1 + seed)
    monkeypatch.setattr(by_winograd, "TILES", 4)
    rng = np.random.default_rng(seed)
    x, w, window, padded = _case(rng)
    how = ByWinograd(FLOAT32, x.shape, window, w.shape[3], 1)
    dz = rng.normal(size=(len(x), *[e.out for e in window.axes], w.shape[3])).astype("float32")
    results = []
    for threads in (1, 2, 5):
        dw = np.full(w.shape, np.nan, "float32")
        how.filter_gradient(threads)(x, dz, dw)
        results.append(dw)
    seen = _seen(padded, window)
    right = np.stack([np.tensordot(seen[at], dz, ([0, 1, 2], [0, 1, 2])) for at in seen])
    size = max(np.tensordot(abs(seen[at]), abs(dz), ([0, 1, 2], [0, 1, 2])).max() for at in seen)
    assert np.max(np.abs(results[0].reshape(right.shape) - right)) < 1e-6 * size
    for dw in results[1:]:
        np.testing.assert_array_equal(dw, results[0])


@pytest.mark.parametrize("seed", range(20))
def test_an_output_whose_window_is_zero_is_zero(seed):
    rng = np.random.default_rng(seed)
    x, w, window, _ = _case(rng)
    x[rng.random(x.shape[:3]) < 0.9] = 0
    how = ByWinograd(FLOAT32, x.shape, window, w.shape[3], 1)
    z, right = (_forward(h, x, w, 1) for h in (how, Convolved(*_of(x, w, window))))
    np.testing.assert_array_equal(z[right == 0], 0)


@pytest.mark.parametrize("row", [0, -1])
def test_the_gradient_of_filters_errs_by_the_norms_of_channels(row):
    """Also where a tap does not meet the only row that is large, or that is not 0."""
    rng = np.random.default_rng(0)
    axis = Extent(16, 16, 1, 1)
    how = ByWinograd(FLOAT32, (2, 16, 16, 32), Window((3, 3), ONE, ONE, (axis, axis)), 32, 1)
    dz = rng.normal(size=(2, 16, 16, 32)).astype("float32")
    for others in (0, 1e-10):
        x = rng.normal(size=dz.shape).astype("float32")
        x[:, 1:-1] *= others
        x[:, -1 - row] *= others
        dw = np.empty((3, 3, 32, 32), "float32")
        how.filter_gradient(1)(x, dz, dw)
        padded = np.pad(x.astype("float64"), [(0, 0), (1, 1), (1, 1), (0, 0)])
        seen = _seen(padded, how.window)
        right = [np.tensordot(seen[at], dz, ([0, 1, 2], [0, 1, 2])) for at in seen]
        of_x, of_dz = (np.linalg.norm(a.reshape(-1, 32), axis=0) for a in (x, dz))
        errors = np.abs(dw.reshape(9, 32, 32) - np.stack(right))
        assert np.max(errors / np.outer(of_x, of_dz)) < 1e-6


def _of(x, w, window):
    return FLOAT32, x.shape, window, w.shape[3], 1


@pytest.mark.parametrize("seed", range(30))
def test_infinities_are_as_by_the_definition(seed):
    rng = np.random.default_rng(seed)
    x, w, window, _ = _case(rng)
    some = rng.random(x.shape) < rng.choice([0.002, 0.05])
    x[some] = rng.choice([np.inf, -np.inf, np.nan], some.sum())
    if seed % 3 == 0:
        w[rng.random(w.shape) < 0.01] = rng.choice([np.inf, 0])
    how, exact = ByWinograd(*_of(x, w, window)), Convolved(*_of(x, w, window))
    right = _forward(exact, x, w, 1)
    for threads in (1, 3):
        np.testing.assert_allclose(_forward(how, x, w, threads), right, rtol=1e-3, atol=1e-3)
    dz = rng.normal(size=right.shape).astype("float32")
    results = [np.empty_like(w), np.empty_like(w)]
    for h, dw in zip((how, exact), results, strict=True):
        h.filter_gradient(2)(x, dz, dw)
    np.testing.assert_allclose(*results, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("edge", [6, 40])
def test_outputs_far_from_an_infinity_keep_their_bits(edge, threads):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, edge, edge, 8)).astype("float32")
    w = rng.normal(size=(3, 3, 8, 70)).astype("float32")
    axis = Extent(edge, edge, 1, 1)
    how = ByWinograd(*_of(x, w, Window((3, 3), ONE, ONE, (axis, axis))))
    right = _forward(how, x, w, 1)
    x[0, 0, 0] = np.inf
    once, z = _forward(how, x, w, 1), _forward(how, x, w, threads)
    np.testing.assert_array_equal(z, once)
    if edge == 40:
        np.testing.assert_array_equal(z[1:], right[1:])
    w[..., :32] = 0  # infinities times zeros: the panels that have none keep their bits
    x[0, 0, 0] = 3e38
    np.testing.assert_array_equal(_forward(how, x, w, threads)[..., :32], 0)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("edge", [20, 13])
def test_a_loop_behind_sees_what_was_computed_again(edge, threads):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, edge, edge, 32)).astype("float32")
    x[1, 5, 5, 3], x[2, edge - 1, edge - 1, 0] = np.inf, np.nan
    with gg.Graph():
        given = gg.placeholder(x.shape, "float32")
        w = gg.constant(rng.normal(size=(3, 3, 32, 32)).astype("float32"))
        bias = gg.constant(rng.normal(size=32).astype("float32"))
        y = gg.nn.relu(gg.nn.conv(given, w) + bias + given)
        calls = [
            gg.compile(given, y, backend="llvm", num_threads=threads, exact=exact)
            for exact in (False, True)
        ]
    steps = [step.node.op for plan in calls[0].plans for step in plan.steps]
    assert any(isinstance(op, ConvolvedLoop) for op in steps)
    z, right = (call(x) for call in calls)
    np.testing.assert_allclose(z, right, rtol=1e-4, atol=1e-4)
    assert (z != right).any()


@pytest.mark.parametrize("seed", range(10))
def test_sums_of_pixels_that_overflow_are_computed_by_the_definition(seed):
    rng = np.random.default_rng(seed)
    x, w, window, padded = _case(rng)
    x, padded = np.sign(x) * np.float32(3e38), np.sign(padded) * 3e38
    w *= np.float32(1e-4)
    z = _forward(ByWinograd(*_of(x, w, window)), x, w, 1)
    seen = _seen(padded, window)
    right = sum(seen[at] @ w[at].astype("float64") for at in seen)
    size = sum(abs(seen[at]) @ abs(w[at].astype("float64")) for at in seen)
    assert np.max(np.abs(z - right) / np.max(size)) < 1e-6


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("constant", [False, True])
def test_a_layer_and_its_gradients(threads, constant, always):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(2, 11, 9, 20)), rng.normal(size=(3, 3, 20, 35)), rng.normal(size=35)
    results = {}
    for dtype, options in (
        ("float64", {}),
        ("float32", {"exact": False}),
        ("float32", {"exact": True}),
    ):
        with gg.Graph():
            x, w, b = given = [gg.placeholder(v.shape, dtype) for v in values]
            weights = gg.constant(values[1].astype(dtype)) if constant else w
            y = gg.nn.relu(gg.nn.conv(x, weights) + b) * gg.sum(x, axis=-1, keepdims=True)
            wrt = [x, b] if constant else given
            outputs = [y, *gg.gradients(gg.sum(y * y), wrt)]
            call = gg.compile(given, outputs, backend="llvm", num_threads=threads, **options)
        results[dtype, options.get("exact")] = call(*[v.astype(dtype) for v in values])
    right = results["float64", None]
    for exact in (False, True):
        for a, b in zip(results["float32", exact], right, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * abs(b).max())
    fast, exact = (results["float32", exact] for exact in (False, True))
    assert all((a != b).any() for a, b in zip(fast[:2], exact[:2], strict=True))
    assert constant or (fast[2] != exact[2]).any()


def test_exact_has_the_bits_of_the_definition(always):
    rng = np.random.default_rng(1)
    x, w, window, _ = _case(rng)
    with gg.Graph():
        given = [gg.placeholder(v.shape, "float32") for v in (x, w)]
        pads = tuple((e.low, e.high) for e in window.axes)
        z = gg.nn.conv(*given, padding=pads)
        call = gg.compile(given, z, backend="llvm", exact=True)
    np.testing.assert_array_equal(call(x, w), _forward(Convolved(*_of(x, w, window)), x, w, 1))


def test_exact_is_an_option_of_numpy_too(always):
    with gg.Graph():
        x = gg.placeholder((2,))
        assert gg.compile(x, x, backend="numpy", exact=True)([1, 2])[1] == 2


def test_exact_is_true_or_false():
    with pytest.raises(TypeError, match="exact is True or False, got 1"):
        LlvmBackend(exact=1)


@pytest.mark.parametrize(
    ("changed", "suits"),
    [
        ({}, True),
        ({"strides": 2}, False),
        ({"dilation": 2}, False),
        ({"dtype": "float64"}, False),
        ({"channels": 15}, False),
        ({"outputs": 15}, False),
        ({"groups": 2}, False),
        ({"size": 5}, False),
        ({"edge": 8}, False),
    ],
)
def test_which_convolutions(changed, suits):
    case = {
        "strides": 1,
        "dilation": 1,
        "dtype": "float32",
        "channels": 32,
        "outputs": 32,
        "groups": 1,
        "size": 3,
        "edge": 16,
    } | changed
    with gg.Graph():
        edge, channels, groups = case["edge"], case["channels"], case["groups"]
        x = gg.placeholder((1, edge, edge, channels), case["dtype"])
        w = gg.placeholder(
            (case["size"], case["size"], channels // groups, case["outputs"]), case["dtype"]
        )
        z = gg.nn.conv(x, w, case["strides"], dilation=case["dilation"], groups=groups)
    assert isinstance(convolving._of(z.node, exact=False), ByWinograd) == suits
    assert not isinstance(convolving._of(z.node, exact=True), ByWinograd)
