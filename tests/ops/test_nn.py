"""Neural network ops against naive loops and closed forms; gradients against differences."""

import itertools
import math

import numpy as np
import pytest
import scipy.special

from graphgrad.base.errors import DTypeError, ShapeError
from graphgrad.compiled import compile, evaluate
from graphgrad.differentiate.gradients import gradients
from graphgrad.ir.graph import Graph
from graphgrad.ops import nn, special
from graphgrad.ops.reduce.reductions import sum as total
from graphgrad.ops.sources import placeholder

from ..each import every

RNG = np.random.default_rng(0)


def run(fn, *arrays, unknown=False):
    with Graph():
        shapes = [(None,) * a.ndim if unknown else a.shape for a in arrays]
        xs = [placeholder(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
        y = fn(*xs)
        value = evaluate(y, dict(zip(xs, arrays, strict=True)))
    if not unknown:
        assert (value.shape, value.dtype) == (y.shape, y.dtype)
    return value


def gradient(fn, *arrays):
    """The gradient of the sum of fn with respect to its first argument."""
    with Graph():
        xs = [placeholder(a.shape, a.dtype) for a in arrays]
        (dx,) = gradients([fn(*xs)], xs[:1])
        return evaluate(dx, dict(zip(xs, arrays, strict=True)))


def check_gradient(fn, *arrays, unknown=False):
    """First and second order, along random directions."""
    with Graph():
        shapes = [(None,) * a.ndim if unknown else a.shape for a in arrays]
        xs = [placeholder(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
        y = fn(*xs)
        rng = np.random.default_rng(1)
        for _ in range(2):
            value = evaluate(y, dict(zip(xs, arrays, strict=True)))
            weights, vs = rng.normal(size=value.shape), [rng.normal(size=a.shape) for a in arrays]
            dxs = gradients([total(y * weights)], xs, unconnected="zero")
            found = evaluate(dxs, dict(zip(xs, arrays, strict=True)))
            assert [g.shape for g in found] == [a.shape for a in arrays]
            ends = [
                evaluate(y, {x: a + s * v for x, a, v in zip(xs, arrays, vs, strict=True)})
                for s in (1e-6, -1e-6)
            ]
            slope = np.vdot(weights, (ends[0] - ends[1]) / 2e-6)
            by_rule = math.fsum(np.vdot(g, v) for g, v in zip(found, vs, strict=True))
            assert by_rule == pytest.approx(slope, rel=1e-5, abs=1e-6)
            y = gradients([total(y * y)], xs)[0]


# --- activations -------------------------------------------------------------------------------

ACTIVATIONS = [
    (nn.relu, lambda x: np.maximum(x, 0)),
    (nn.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
    (nn.elu, lambda x: np.where(x > 0, x, np.expm1(x))),
    (nn.sigmoid, scipy.special.expit),
    (nn.log_sigmoid, scipy.special.log_expit),
    (nn.softplus, lambda x: np.logaddexp(x, 0)),
    (nn.silu, lambda x: x * scipy.special.expit(x)),
    (nn.gelu, lambda x: x * scipy.special.ndtr(x)),
    (special.erf, scipy.special.erf),
    (special.erfc, scipy.special.erfc),
    (special.ndtr, scipy.special.ndtr),
    (special.gammaln, scipy.special.gammaln),
    (special.digamma, scipy.special.digamma),
]


@pytest.mark.parametrize(("fn", "reference"), ACTIVATIONS)
def test_activations(fn, reference):
    x = RNG.normal(size=(3, 4))
    x = np.abs(x) + 0.5 if fn in (special.gammaln, special.digamma) else x
    np.testing.assert_allclose(run(fn, x), reference(x), rtol=1e-12)
    np.testing.assert_allclose(run(fn, x.astype("float32")), reference(x), rtol=1e-4, atol=1e-6)
    check_gradient(fn, x)
    assert run(fn, np.array([1, 2])).dtype == (np.int64 if fn is nn.relu else np.float64)


@pytest.mark.parametrize("fn", [nn.sigmoid, nn.softplus, nn.silu, nn.gelu, nn.log_sigmoid, nn.elu])
def test_activations_far_out(fn):
    x = np.array([-1e4, -800.0, 0.0, 800.0, 1e4])
    assert np.isfinite(run(fn, x)).all()
    assert np.isfinite(gradient(fn, x)).all()


def test_gelu_keeps_its_digits_on_the_left():
    x = np.array([-10.0, -5.0])
    np.testing.assert_allclose(run(nn.gelu, x), x * scipy.special.ndtr(x), rtol=1e-12)
    near = run(lambda t: nn.gelu(t, approximate=True), np.linspace(-3, 3, 7))
    np.testing.assert_allclose(near, run(nn.gelu, np.linspace(-3, 3, 7)), atol=1e-3)


def test_the_derivative_of_relu_at_zero_is_zero():
    x = np.array([-1.0, 0.0, -0.0, 2.0])
    assert gradient(nn.relu, x).tolist() == [0, 0, 0, 1]
    with Graph():
        t = placeholder((2,))
        (dx,) = gradients([nn.relu(t)], [t], [np.array([np.inf, np.nan])])
        assert evaluate(dx, {t: np.array([-1.0, 0.0])}).tolist() == [0, 0]


def test_logit_is_the_inverse_of_expit():
    p = RNG.uniform(0.01, 0.99, size=5)
    np.testing.assert_allclose(run(special.logit, p), scipy.special.logit(p))
    check_gradient(special.logit, p)


def test_xlogy_and_its_gradient_where_x_is_zero():
    x, y = np.array([0.0, 0.0, 2.0]), np.array([0.0, 3.0, 3.0])
    np.testing.assert_allclose(run(special.xlogy, x, y), scipy.special.xlogy(x, y))
    found = gradient(lambda b, a: special.xlogy(a, b), y, x)
    np.testing.assert_allclose(found, [0, 0, 2 / 3])
    check_gradient(special.xlogy, *RNG.uniform(0.5, 2, size=(2, 3)))
    check_gradient(special.xdivy, *RNG.uniform(0.5, 2, size=(2, 3)))


# --- softmax and losses ------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(axis):
    x = RNG.normal(size=(3, 4)) * 300
    np.testing.assert_allclose(
        run(lambda t: nn.softmax(t, axis), x), scipy.special.softmax(x, axis)
    )
    found = run(lambda t: nn.log_softmax(t, axis), x)
    np.testing.assert_allclose(found, scipy.special.log_softmax(x, axis))
    check_gradient(lambda t: nn.softmax(t, axis), x / 300)
    check_gradient(lambda t: nn.log_softmax(t, axis), x / 300, unknown=True)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_cross_entropy_of_class_numbers_and_of_one_hot_agree(axis):
    x = RNG.normal(size=(3, 4, 2))
    labels = RNG.integers(0, x.shape[axis], size=np.delete(x.shape, axis))
    hot = np.moveaxis(np.eye(x.shape[axis])[labels], -1, axis)
    want = -(scipy.special.log_softmax(x, axis) * hot).sum(axis)
    by_number = run(lambda t, n: nn.cross_entropy(t, n, axis), x, labels)
    np.testing.assert_allclose(by_number, want)
    np.testing.assert_allclose(run(lambda t: nn.cross_entropy(t, hot, axis), x), want)
    found = run(lambda t: nn.one_hot(t, x.shape[axis], axis=axis), labels)
    np.testing.assert_array_equal(found, hot)
    check_gradient(lambda t: nn.cross_entropy(t, labels, axis), x, unknown=True)
    check_gradient(lambda t, p: nn.cross_entropy(t, p, axis), x, np.abs(x) + 0.1)


def test_cross_entropy_reduces():
    x, labels = RNG.normal(size=(3, 4)), np.array([0, 3, 1])
    each = run(lambda t: nn.cross_entropy(t, labels), x)
    for how, want in [("mean", each.mean()), ("sum", each.sum())]:
        found = run(lambda t, how=how: nn.cross_entropy(t, labels, reduction=how), x)
        np.testing.assert_allclose(found, want)
    with Graph(), pytest.raises(ValueError, match="'most'"):
        nn.cross_entropy(placeholder((3, 4)), labels, reduction="most")


def test_cross_entropy_of_impossible_classes():
    x = np.array([[0.0, -np.inf, 1.0]])
    want = math.log(1 + math.e)
    hot = np.array([[1.0, 0, 0]])
    assert run(lambda t: nn.cross_entropy(t, np.array([0])), x)[0] == pytest.approx(want)
    assert run(lambda t: nn.cross_entropy(t, hot), x)[0] == pytest.approx(want)
    assert np.isfinite(gradient(lambda t: nn.cross_entropy(t, hot), x)).all()
    assert np.isnan(run(lambda t: nn.cross_entropy(t, np.array([3])), x)).all()
    assert np.isnan(run(lambda t: nn.cross_entropy(t, np.array([-1])), x)).all()


def test_cross_entropy_checks_labels():
    with Graph():
        with pytest.raises(DTypeError, match="integers"):
            nn.cross_entropy(placeholder((3, 4)), np.zeros(3))
        with pytest.raises(ShapeError, match="do not fit"):
            nn.cross_entropy(placeholder((3, 4)), np.zeros(2, int))


# --- convolution -------------------------------------------------------------------------------


def naive_pads(length, window, stride, dilation, padding):
    reach = (window - 1) * dilation + 1
    if padding == "VALID":
        return 0, 0
    if padding != "SAME":
        return padding
    want = max((math.ceil(length / stride) - 1) * stride + reach - length, 0)
    return want // 2, want - want // 2


def naive_windows(x, size, strides, padding, dilation, value=0.0):
    """Every window of an image (N, H, W, C) by its place in the output."""
    each = (padding,) * 2 if isinstance(padding, str) else padding
    pads = [naive_pads(x.shape[i + 1], size[i], strides[i], dilation[i], each[i]) for i in (0, 1)]
    x = np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=value)
    starts = [range(0, x.shape[i + 1] - (size[i] - 1) * dilation[i], strides[i]) for i in (0, 1)]
    shape = tuple(map(len, starts))
    cut = [
        x[:, r : r + (size[0] - 1) * dilation[0] + 1 : dilation[0]][
            :, :, c : c + (size[1] - 1) * dilation[1] + 1 : dilation[1]
        ]
        for r, c in itertools.product(*starts)
    ]
    return shape, cut


def naive_conv(x, w, strides, padding, dilation, groups=1):
    shape, windows = naive_windows(x, w.shape[:2], strides, padding, dilation)
    z = np.zeros((x.shape[0], *shape, w.shape[3]))
    per, made = w.shape[2], w.shape[3] // groups
    for place, window in zip(np.ndindex(shape), windows, strict=True):
        for o in range(w.shape[3]):
            g = o // made
            for n in range(x.shape[0]):
                part = window[n, :, :, g * per : (g + 1) * per]
                z[(n, *place, o)] = (part * w[..., o]).sum()
    return z


CONVS = [
    (size, strides, padding, dilation)
    for size in [(1, 1), (3, 2), (2, 3)]
    for strides in [(1, 1), (2, 1), (3, 2)]
    for padding in ["SAME", "VALID", ((1, 0), (2, 1))]
    for dilation in [(1, 1), (2, 1)]
]


@pytest.mark.parametrize(
    "case",
    every(2, [*[(*c, "NHWC") for c in CONVS], *[(*c, "NCHW") for c in CONVS if c[0] == (3, 2)]]),
)
def test_conv_is_the_naive_loop(case):
    size, strides, padding, dilation, layout = case
    x, w = RNG.normal(size=(2, 5, 6, 3)), RNG.normal(size=(*size, 3, 2))
    want = naive_conv(x, w, strides, padding, dilation)
    if layout == "NCHW":
        x, want = x.transpose(0, 3, 1, 2), want.transpose(0, 3, 1, 2)

    def fn(t, f):
        return nn.conv(t, f, strides, padding, layout, dilation)

    for unknown in (False, True) if size == (3, 2) else (False,):
        np.testing.assert_allclose(run(fn, x, w, unknown=unknown), want, atol=1e-12)
        check_gradient(fn, x, w, unknown=unknown)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_conv_in_groups(layout):
    x, w = RNG.normal(size=(2, 4, 5, 4)), RNG.normal(size=(2, 3, 2, 6))
    want = naive_conv(x, w, (1, 1), "SAME", (1, 1), 2)
    if layout == "NCHW":
        x, want = x.transpose(0, 3, 1, 2), want.transpose(0, 3, 1, 2)

    def fn(t, f):
        return nn.conv(t, f, data_format=layout, groups=2)

    np.testing.assert_allclose(run(fn, x, w), want, atol=1e-12)
    check_gradient(fn, x, w)


def test_conv_over_one_axis():
    x, w = RNG.normal(size=(2, 6, 3)), RNG.normal(size=(3, 3, 2))
    want = naive_conv(x[:, None], w[None], (1, 2), ((0, 0), (2, 1)), (1, 2))[:, 0]

    def fn(t, f):
        return nn.conv(t, f, 2, [(2, 1)], dilation=2)

    np.testing.assert_allclose(run(fn, x, w), want, atol=1e-12)
    flipped = run(lambda t, f: nn.conv(t, f, 2, [(2, 1)], "NCW", 2), x.swapaxes(1, 2), w)
    np.testing.assert_allclose(flipped, want.swapaxes(1, 2), atol=1e-12)
    check_gradient(fn, x, w)


@pytest.mark.parametrize("padding", ["SAME", "VALID", ((1, 0), (1, 1))])
@pytest.mark.parametrize("strides", [1, 2, (3, 1)])
def test_conv_transpose_is_the_adjoint_of_conv(padding, strides):
    z, w = RNG.normal(size=(2, 3, 4, 2)), RNG.normal(size=(3, 3, 5, 2))
    large = run(lambda t, f: nn.conv_transpose(t, f, strides, padding), z, w)
    x = RNG.normal(size=large.shape)
    small = run(lambda t, f: nn.conv(t, f, strides, padding), x, w)
    assert np.vdot(small, z) == pytest.approx(np.vdot(x, large))
    check_gradient(lambda t, f: nn.conv_transpose(t, f, strides, padding), z, w)


def test_conv_with_lengths_named_or_unknown():
    with Graph():
        x = placeholder(("N", "H", 6, 3))
        assert nn.conv(x, np.zeros((3, 3, 3, 2))).shape == ("N", "H", 6, 2)
        assert nn.conv(x, np.zeros((3, 3, 3, 2)), 2).shape == ("N", "(H + 1)//2", 3, 2)
        assert nn.conv(x, np.zeros((3, 3, 3, 2)), padding="VALID").shape == (
            "N",
            "max(H - 2, 0)",
            4,
            2,
        )
        assert nn.max_pool(x, 2).shape == ("N", "H//2", 3, 3)


def test_conv_refuses_what_does_not_fit():
    with Graph():
        x = placeholder((2, 5, 5, 3))
        with pytest.raises(ShapeError, match="conv of 3 channels in 1 groups"):
            nn.conv(x, np.zeros((2, 2, 4, 1)))
        with pytest.raises(ShapeError, match="padding"):
            nn.conv(x, np.zeros((2, 2, 3, 1)), padding="FULL")
        with pytest.raises(ShapeError, match="strides"):
            nn.conv(x, np.zeros((2, 2, 3, 1)), strides=0)
        with pytest.raises(ShapeError, match="data_format"):
            nn.conv(x, np.zeros((2, 2, 3, 1)), data_format="CHWN")
        with pytest.raises(ShapeError, match="filters of 4 axes"):
            nn.conv(x, np.zeros((2, 3, 1)))


# --- pooling -----------------------------------------------------------------------------------

POOLS = [
    (size, strides, padding)
    for size in [(2, 2), (3, 2)]
    for strides in [None, (1, 1), (2, 3)]
    for padding in ["SAME", "VALID", ((1, 0), (1, 1))]
]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("pool", every(2, POOLS))
def test_pooling_is_the_naive_loop(pool, layout):
    size, strides, padding = pool
    x = RNG.normal(size=(2, 5, 6, 3))
    shape, windows = naive_windows(x, size, strides or size, padding, (1, 1), np.nan)
    largest = np.stack([np.nanmax(w, axis=(1, 2)) for w in windows], 1).reshape(2, *shape, 3)
    average = np.stack([np.nanmean(w, axis=(1, 2)) for w in windows], 1).reshape(2, *shape, 3)
    if layout == "NCHW":
        x, largest, average = (a.transpose(0, 3, 1, 2) for a in (x, largest, average))
    for fn, want in [(nn.max_pool, largest), (nn.avg_pool, average)]:
        for unknown in (False, True):

            def pool(t, fn=fn):
                return fn(t, size, strides, padding, layout)

            np.testing.assert_allclose(run(pool, x, unknown=unknown), want)
            check_gradient(pool, x, unknown=unknown)


def test_S36_the_first_of_a_tie_in_a_window_has_the_gradient_or_all_share_it():
    x = np.array([1.0, 2.0, 2.0, 2.0]).reshape(1, 2, 2, 1)
    found = gradient(lambda t: nn.max_pool(t, 2), x)
    np.testing.assert_array_equal(found.ravel(), [0, 1, 0, 0])
    found = gradient(lambda t: nn.max_pool(t, 2, ties="share"), x)
    np.testing.assert_allclose(found.ravel(), [0, 1 / 3, 1 / 3, 1 / 3])
    with Graph(), pytest.raises(ValueError, match="ties"):
        nn.max_pool(placeholder((1, 2, 2, 1)), 2, ties="last")


FORMS = [
    ((2, 2), None, "VALID"),
    ((2, 2), (1, 1), "SAME"),
    ((3, 2), (2, 1), "SAME"),
    ((3, 3), (2, 2), ((1, 1), (1, 1))),
    ((2, 2), (3, 3), "VALID"),
    ((5, 4), None, "VALID"),
]


def naive_ties(x, dy, size, strides, padding, ties):
    """The gradient of max pooling of (N, H, W, C), element by element."""
    dx = np.zeros_like(x)
    ids = np.arange(x.size, dtype=float).reshape(x.shape)
    _, values = naive_windows(x, size, strides or size, padding, (1, 1), -np.inf)
    _, places = naive_windows(ids, size, strides or size, padding, (1, 1), -1.0)
    rows = dy.reshape(len(x), -1, x.shape[-1])
    for at, (window, place) in enumerate(zip(values, places, strict=True)):
        for n, c in np.ndindex(len(x), x.shape[-1]):
            v, p = window[n, ..., c].ravel(), place[n, ..., c].ravel()
            v, p = v[p >= 0], p[p >= 0].astype(int)
            hits = p[np.isnan(v) if np.isnan(v).any() else v == v.max()]
            hits = hits[:1] if ties == "first" else hits
            dx.reshape(-1)[hits] += rows[n, at, c] / len(hits)
    return dx


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
@pytest.mark.parametrize("ties", ["first", "share"])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("size", "strides", "padding"), FORMS)
def test_S36_ties_nan_and_borders_of_pooling(size, strides, padding, layout, ties, backend):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, (3, 10, 8, 2)).astype("float64")
    x[1] = rng.choice([0.0, -0.0, np.nan, -np.inf, np.inf], x[1].shape)
    x[2] = -np.inf
    turned = layout == "NCHW"
    with Graph():
        shape = x.transpose(0, 3, 1, 2).shape if turned else x.shape
        t = placeholder(shape)
        y = nn.max_pool(t, size, strides, padding, layout, ties=ties)
        u = placeholder(y.shape)
        dx = gradients(y, t, u)
        v = placeholder(shape)
        again = gradients(dx, u, v)
        dy, direction = rng.normal(size=y.shape), rng.normal(size=shape)
        fed = np.ascontiguousarray(x.transpose(0, 3, 1, 2)) if turned else x
        run = compile([t, u, v], [dx, again], backend=backend)
        first, second = run(fed, dy, direction)
    rows = dy.transpose(0, 2, 3, 1) if turned else dy
    want = naive_ties(x, rows, size, strides, padding, ties)
    np.testing.assert_allclose(first.transpose(0, 2, 3, 1) if turned else first, want, rtol=1e-12)
    np.testing.assert_allclose((second * dy).sum(), (direction * first).sum(), rtol=1e-9)


def test_an_image_of_unknown_size_gives_ties_to_the_first():
    x = np.full((1, 4, 4, 1), 2.0)
    with Graph():
        t = placeholder((None, None, None, 1))
        dx = gradients(nn.max_pool(t, 2), t)
        for backend in ("numpy", "llvm"):
            found = compile([t], dx, backend=backend)(x)
            assert found[0, :, :, 0].tolist() == [[1, 0, 1, 0], [0] * 4] * 2


def test_pooling_over_one_axis_and_of_ints():
    x = RNG.integers(-9, 9, size=(2, 6, 3))
    want = x.reshape(2, 3, 2, 3).max(2)
    np.testing.assert_array_equal(run(lambda t: nn.max_pool(t, 2), x), want)
    np.testing.assert_allclose(run(lambda t: nn.avg_pool(t, 2), x), x.reshape(2, 3, 2, 3).mean(2))
    padded = run(lambda t: nn.max_pool(t, 2, 1, "SAME"), np.full((1, 2, 1), -5))
    assert padded.ravel().tolist() == [-5, -5]


# --- dropout and normalisation -----------------------------------------------------------------


def test_dropout_shows_one_mask_to_value_and_gradient():
    x = np.ones((100, 10))
    with Graph():
        t, seed = placeholder(x.shape), placeholder((), "int64")
        y = nn.dropout(t, 0.25, seed=seed)
        (dt,) = gradients([y], [t])
        first = evaluate([y, dt], {t: x, seed: 1})
        second = evaluate([y, dt], {t: x, seed: 2})
    for value, slope in (first, second):
        np.testing.assert_array_equal(value, slope)
        assert set(np.unique(value)) == {0, 1 / 0.75}
        assert 0.7 < (value > 0).mean() < 0.8
    assert (first[0] != second[0]).any()


def test_dropout_of_unknown_lengths_and_at_its_ends():
    with Graph():
        t = placeholder((None, 3))
        assert nn.dropout(t, 0.5, seed=1, training=False) is t
        assert nn.dropout(t, 0.0, seed=1) is t
        assert evaluate(nn.dropout(t, 0.5, seed=1), {t: np.ones((4, 3))}).shape == (4, 3)
        with pytest.raises(ValueError, match="rate"):
            nn.dropout(t, 1.0, seed=1)
        with pytest.raises(DTypeError, match="seed"):
            nn.dropout(t, 0.5, seed=1.5)


def test_layer_norm():
    x, scale, offset = RNG.normal(size=(4, 3)), RNG.normal(size=3), RNG.normal(size=3)
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(run(nn.layer_norm, x), want)
    np.testing.assert_allclose(run(nn.layer_norm, x, scale, offset), want * scale + offset)
    check_gradient(nn.layer_norm, x, scale, offset)


@pytest.mark.parametrize("axis", [1, 3, -1])
def test_batch_norm(axis):
    x = RNG.normal(size=(4, 3, 2, 3))
    rest = tuple(a for a in range(4) if a != axis % 4)
    scale, offset = RNG.normal(size=(2, 3))
    mean, var = x.mean(rest), x.var(rest)
    shape = [3 if a == axis % 4 else 1 for a in range(4)]
    want = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + 1e-5)
    want = want * scale.reshape(shape) + offset.reshape(shape)
    for i, part in enumerate((want, mean, var)):
        found = run(lambda *t, i=i: nn.batch_norm(*t, axis=axis)[i], x, scale, offset)
        np.testing.assert_allclose(found, part, atol=1e-12)
    check_gradient(lambda *t: nn.batch_norm(*t, axis=axis)[0], x, scale, offset)
