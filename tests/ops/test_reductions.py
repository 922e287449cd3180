import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import ShapeError
from graphgrad.extend import apply
from graphgrad.ops.reduce import cumulative as C
from graphgrad.ops.reduce import reductions as R
from graphgrad.ops.sources import placeholder

from ..each import crossed
from .against_numpy import difference, gradient, run, same

X = np.random.default_rng(0).normal(size=(2, 3, 4))
AXES = [None, 0, -1, (0, 2), (-1, 0), (1,), (0, 1, 2), ()]


@crossed(["sum", "mean", "max", "min", "prod", "any", "all"], AXES, [False, True])
def test_reductions_are_numpys(name, axis, keepdims):
    same(
        lambda x: getattr(R, name)(x, axis=axis, keepdims=keepdims),
        lambda x: getattr(np, name)(x, axis=axis, keepdims=keepdims),
        X,
    )


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod", "any", "all", "var", "std"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_reductions_keep_the_dtype_and_take_0d(name, dtype):
    fn, expected = getattr(R, name), getattr(np, name)
    same(fn, expected, np.asarray(2.5, dtype))
    same(fn, expected, X.astype(dtype))


@crossed(
    ["sum", "mean", "max", "min", "prod", "any", "all"],
    ["bool", "int8", "uint8", "int32", "uint32", "int64"],
)
def test_reductions_of_integers(name, dtype):
    same(getattr(R, name), getattr(np, name), np.array([[1, 0], [1, 3]]).astype(dtype))


@pytest.mark.parametrize("name", ["sum", "prod", "any", "all"])
def test_reductions_of_nothing(name):
    fn, expected = getattr(R, name), getattr(np, name)
    same(fn, expected, np.zeros((0,)))
    same(lambda x: fn(x, axis=1), lambda x: expected(x, axis=1), np.zeros((2, 0)))
    same(lambda x: fn(x, axis=0), lambda x: expected(x, axis=0), np.zeros((2, 0)))


def test_the_mean_of_nothing_is_nan():
    same(R.mean, lambda x: np.float64(np.nan), np.zeros((0,)))


def test_the_largest_of_nothing_is_an_error():
    with gg.Graph():
        x = placeholder((2, 0))
        for fn in (R.max, R.min, R.argmax, R.argmin):
            with pytest.raises(ShapeError):
                fn(x, axis=1)
        assert R.max(x, axis=0).shape == (0,)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("correction", [0, 1, 0.5])
def test_var_and_std(axis, correction):
    for mine, numpys in ((R.var, np.var), (R.std, np.std)):
        same(
            lambda x, f=mine: f(x, axis, correction=correction),
            lambda x, f=numpys: f(x, axis, correction=correction),
            X,
        )
        same(
            lambda x, f=mine: f(x, axis, ddof=correction, keepdims=True),
            lambda x, f=numpys: f(x, axis, ddof=correction, keepdims=True),
            X,
        )


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_place_of_the_first_extremum(name, axis, keepdims):
    ties = np.array([[1.0, 3.0, 3.0, 1.0], [0.0, np.nan, 0.0, np.nan]])
    same(
        lambda x: getattr(R, name)(x, axis, keepdims),
        lambda x: getattr(np, name)(x, axis, keepdims=keepdims),
        ties,
    )


def test_the_place_of_an_extremum_in_0d():
    same(R.argmax, np.argmax, np.array(3.0))


def _logsumexp(x, axis=None, keepdims=False):
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_logsumexp(axis, keepdims):
    same(lambda x: R.logsumexp(x, axis, keepdims), lambda x: _logsumexp(x, axis, keepdims), X)


def test_logsumexp_is_stable():
    inf = np.inf
    for x, y in [
        ([1000.0, 1000.0], 1000 + np.log(2)),
        ([-1000.0, -1000.0], -1000 + np.log(2)),
        ([-inf, -inf], -inf),
        ([-inf, 1.0], 1.0),
        ([inf, 1.0], inf),
        ([], -inf),
    ]:
        same(R.logsumexp, lambda x, y=y: np.float64(y), np.array(x))


def test_the_gradient_of_logsumexp_is_softmax_and_0_where_all_is_minus_inf():
    inf = np.inf
    np.testing.assert_allclose(gradient(R.logsumexp, [0.0, np.log(3.0)]), [0.25, 0.75])
    np.testing.assert_array_equal(gradient(R.logsumexp, [-inf, -inf]), [0, 0])
    np.testing.assert_array_equal(gradient(R.logsumexp, [-inf, 5.0]), [0, 1])
    np.testing.assert_allclose(gradient(R.logsumexp, [1000.0, 1000.0]), [0.5, 0.5])


@pytest.mark.parametrize("fn", [R.max, R.min])
def test_ties_have_equal_shares(fn):
    sign = 1.0 if fn is R.max else -1.0
    x = sign * np.array([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 5.0, 5.0]])
    np.testing.assert_array_equal(
        gradient(lambda t: fn(t, axis=1), x), [[0, 0.5, 0.5, 0], [0.25] * 4]
    )
    np.testing.assert_array_equal(gradient(fn, x), [[0] * 4, [0.25] * 4])
    np.testing.assert_array_equal(gradient(fn, x, order=2), np.zeros((2, 4)))


def test_the_gradient_of_a_maximum_goes_to_nan():
    np.testing.assert_array_equal(gradient(R.max, [1.0, np.nan, 2.0]), [0, 1, 0])


@pytest.mark.parametrize(
    "x",
    [
        [2.0, 3.0, 4.0],
        [2.0, 0.0, 4.0],
        [0.0, 3.0, 0.0],
        [0.0, 0.0, 0.0],
        [5.0],
        [[1.0, 0.0, 2.0], [3.0, 4.0, 0.0]],
    ],
)
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_the_gradient_of_a_product_with_zeros(x, axis):
    def fn(t):
        return R.prod(t, axis=axis)

    w = np.random.default_rng(1).normal(size=np.prod(x, axis=axis).shape)
    for order in (1, 2, 3):
        got = gradient(fn, x, order, w)
        np.testing.assert_allclose(got, difference(fn, x, w, order), atol=1e-6)


def test_the_gradient_of_a_product_over_unknown_lengths():
    with gg.Graph():
        x = placeholder((None, "n", None))
        (dx,) = gg.gradients([R.prod(x, axis=(0, 2))], [x])
        value = np.array([[[1.0, 2.0]], [[0.0, 3.0]]])
        np.testing.assert_array_equal(run(dx, {x: value})[0], [[[0, 0]], [[6, 0]]])


@pytest.mark.parametrize("fn", [C.cumulative_sum, C.cumulative_prod])
@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cumulative(fn, initial, axis):
    numpys = {C.cumulative_sum: np.cumulative_sum, C.cumulative_prod: np.cumulative_prod}[fn]
    eight = np.arange(8).reshape(2, 2, 2)
    whole = [eight.astype(dtype) for dtype in ("int64", "int8", "uint64", "uint16")]
    for x in (X, np.zeros((2, 0, 3)), X.astype("float32"), eight > 3, *whole):
        same(
            lambda x: fn(x, axis=axis, include_initial=initial),
            lambda x: numpys(x, axis=axis, include_initial=initial),
            x,
        )


def test_cumsum_and_cumprod_have_numpys_older_names():
    same(C.cumsum, np.cumsum, X)
    same(C.cumprod, np.cumprod, X)
    same(
        lambda x: C.cumsum(x, 1, dtype="int64"), lambda x: np.cumsum(x, 1, dtype="int64"), [[1, 2]]
    )
    with gg.Graph(), pytest.raises(ShapeError, match="axis"):
        C.cumulative_sum(placeholder((2, 3)))
    for op in (C.CumSum, C.CumProd, C.CumLogSumExp):
        with gg.Graph(), pytest.raises(ShapeError, match=f"{op.type} along axis 2 of"):
            apply(op(2), placeholder((2, 3)))


@pytest.mark.parametrize("x", [[2.0, 3.0, 4.0], [2.0, 0.0, 4.0, 5.0], [0.0, 3.0, 0.0, 2.0, 1.0]])
def test_the_gradient_of_a_running_product_with_zeros(x):
    w = np.random.default_rng(1).normal(size=len(x))
    for order in (1, 2, 3):
        got = gradient(C.cumprod, x, order, w)
        np.testing.assert_allclose(got, difference(C.cumprod, x, w, order), atol=1e-6)


def test_a_running_product_that_overflows_still_has_a_gradient_before():
    got = gradient(lambda t: C.cumprod(t)[:1], [2.0, 1e200, 1e200, 1.0])
    assert got[0] == 1


def test_nan_is_left_out():
    x = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, 2.0]])
    for axis in (None, 0, 1):
        same(lambda t, a=axis: gg.nansum(t, a), lambda t, a=axis: np.nansum(t, a), x)
    same(lambda t: gg.nanmean(t, 1), lambda t: np.nanmean(t, 1), x)
    np.testing.assert_array_equal(gradient(gg.nansum, x), [[1, 0, 1], [0, 0, 1]])
    np.testing.assert_array_equal(
        gradient(lambda t: gg.nanmean(t, 1), x), [[0.5, 0, 0.5], [0, 0, 1]]
    )


def test_count_nonzero():
    for x in (np.array([[0.0, 2.0], [3.0, np.nan]]), np.array([0, 1, 2]), np.array([True, False])):
        same(R.count_nonzero, lambda x: np.int64(np.count_nonzero(x)), x)
        same(lambda x: R.count_nonzero(x, 0), lambda x: np.count_nonzero(x, 0), x)


def test_axes_that_do_not_fit():
    with gg.Graph():
        x = placeholder((2, 3))
        for axis in (2, -3, (0, 0), (0, -2)):
            with pytest.raises(ShapeError, match="axis"):
                R.sum(x, axis=axis)


def test_complex_numbers_have_the_order_of_numpy():
    z = np.array([1 + 2j, 1 + 3j, 0.5 + 9j])
    with gg.Graph():
        assert gg.evaluate(R.max(z)) == z.max() == 1 + 3j
        assert gg.evaluate(R.min(z)) == z.min()


def test_the_mean_of_float16_is_added_up_in_float32():
    same(R.mean, lambda x: np.float16(1000), np.full((5000,), 1000, "float16"))
