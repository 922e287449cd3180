"""NumPy's functions of statistics on tensors: what they give, and their gradients."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.arrays.statistics import METHODS

from ..each import every
from .numpys import agrees, backends_agree, gradient_holds

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 3, 4))
M = RNG.normal(size=(3, 5))
HOLES = np.array([[1.0, np.nan, 2.0, -3.0], [np.nan, 4.0, 0.5, np.nan], [2.5, 1.0, -1.0, 0.0]])
MASK = X > -0.5
INTS = np.array([[3, 1, 2], [7, 5, 5]])
BOOLS = np.array([[True, False], [True, True]])


def wide(x):
    """An array in double precision, as np.quantile of an array of q is but in NumPy 2.4.0."""
    return x if isinstance(x, gg.Tensor) else x.astype("float64")


Q = np.array([0.0, 0.1, 0.25, 0.5, 0.7, 1.0])

REDUCTIONS = {
    "sum dtype": (lambda x: np.sum(x, 1, np.float32), X),
    "sum ints as": (lambda x: np.sum(x, dtype="int8"), INTS),
    "sum where": (lambda x: np.sum(x, axis=(0, 2), where=MASK), X),
    "sum where initial": (lambda x: np.sum(x, initial=2.5, where=MASK[0]), X),
    "add.reduce where": (lambda x: np.add.reduce(x, 1, where=MASK, initial=1), X),
    "prod dtype": (lambda x: np.prod(x, dtype="float64"), INTS),
    "prod where": (lambda x: np.prod(x, axis=-1, where=MASK, initial=2, keepdims=True), X),
    "mean dtype": (lambda x: np.mean(x, dtype=np.float32), INTS),
    "mean where": (lambda x: np.mean(x, axis=2, where=MASK), X),
    "max initial": (lambda x: np.max(x, axis=0, initial=0.5), X),
    "var around another mean": (lambda x: np.var(x, mean=np.ones((1,) * x.ndim)), X),
    "max initial float32": (lambda x: np.max(x, axis=0, initial=0.5), X.astype("float32")),
    "integers to the power 0": (lambda x: np.power(x, 0), INTS),
    "max where": (lambda x: np.max(x, axis=1, initial=-1.0, where=MASK), X),
    "min where": (lambda x: np.min(x, initial=9, where=INTS > 2), INTS),
    "any where": (lambda x: np.any(x > 1, axis=0, where=MASK), X),
    "all where": (lambda x: np.all(x > -0.5, axis=2, where=MASK), X),
    "var mean": (lambda x: np.var(x, axis=1, mean=np.mean(x, axis=1, keepdims=True)), X),
    "var where": (lambda x: np.var(x, axis=0, ddof=1, where=X > -5), X),
    "var dtype": (lambda x: np.var(x, dtype="float64"), X.astype("float32")),
    "std correction": (lambda x: np.std(x, 1, correction=1, keepdims=True), X),
    "std where": (lambda x: np.std(x, where=MASK), X),
    "cumsum dtype": (lambda x: np.cumsum(x, 1, "float32"), X),
    "cumulative_sum": (lambda x: np.cumulative_sum(x, axis=1, include_initial=True), X),
    "cumprod": (lambda x: np.cumprod(x, dtype="float64"), INTS),
    "ptp": (lambda x: np.ptp(x, axis=1), X),
    "ptp all": (lambda x: np.ptp(x, keepdims=True), INTS),
}
NAN = {
    "nansum": (lambda x: np.nansum(x, axis=0), HOLES),
    "nansum ints": (lambda x: np.nansum(x, axis=1, keepdims=True), INTS),
    "nanprod": (lambda x: np.nanprod(x, axis=1, keepdims=True), HOLES),
    "nanmean": (lambda x: np.nanmean(x, 1), HOLES),
    "nanmean where": (lambda x: np.nanmean(x, where=HOLES != 1), HOLES),
    "nanmax": (lambda x: np.nanmax(x, axis=1), HOLES),
    "nanmax initial": (lambda x: np.nanmax(x, axis=0, initial=0.75), HOLES),
    "nanmin": (lambda x: np.nanmin(x), HOLES),
    "nanmin ints": (lambda x: np.nanmin(x, axis=0), INTS),
    "nanvar": (lambda x: np.nanvar(x, axis=1), HOLES),
    "nanvar ddof": (lambda x: np.nanvar(x, 0, ddof=1, keepdims=True), HOLES),
    "nanstd": (lambda x: np.nanstd(x), HOLES),
    "nanargmax": (lambda x: np.nanargmax(x, axis=1), HOLES),
    "nanargmin": (lambda x: np.nanargmin(x), HOLES),
    "nancumsum": (lambda x: np.nancumsum(x, axis=0), HOLES),
    "nancumprod": (lambda x: np.nancumprod(x), HOLES),
    "nanmedian": (lambda x: np.nanmedian(x, axis=1), HOLES),
    "nanmedian all": (lambda x: np.nanmedian(x, keepdims=True), HOLES),
    "nanmedian ints": (lambda x: np.nanmedian(x, axis=0), INTS),
    "nanquantile": (lambda x: np.nanquantile(x, 0.3, axis=0), HOLES),
    "nanquantile many": (lambda x: np.nanquantile(x, Q, axis=1, keepdims=True), HOLES),
    "nanpercentile": (lambda x: np.nanpercentile(x, [20, 80]), HOLES),
    "nanquantile weights": (
        lambda x: np.nanquantile(
            x, Q, axis=1, weights=np.arange(1.0, 13.0).reshape(3, 4), method="inverted_cdf"
        ),
        HOLES,
    ),
}
QUANTILES = {
    **{f"quantile {m}": (lambda x, m=m: np.quantile(x, Q, axis=1, method=m), M) for m in METHODS},
    **{f"percentile {m}": (lambda x, m=m: np.percentile(x, 35, method=m), X) for m in METHODS},
    "quantile ints": (lambda x: np.quantile(x, 0.4, axis=1), INTS),
    "quantile ints lower": (lambda x: np.quantile(x, 0.4, axis=1, method="lower"), INTS),
    "quantile float32": (lambda x: np.quantile(x, 0.3), X.astype("float32")),
    "quantile float16": (lambda x: np.quantile(x, 0.5), np.arange(4, dtype="float16")),
    "quantile float32 many": (lambda x: np.quantile(wide(x), [0.3], axis=0), X.astype("float32")),
    "quantile axes": (lambda x: np.quantile(x, Q, axis=(0, 2), keepdims=True), X),
    "quantile infinite": (lambda x: np.quantile(x, [0.1, 0.9]), np.array([-np.inf, 1.0, 2.0, 3.0])),
    "quantile weights": (
        lambda x: np.quantile(x, Q, axis=1, weights=M**2, method="inverted_cdf"),
        M,
    ),
    "percentile with NaN": (lambda x: np.percentile(x, [10, 50], axis=1), HOLES),
    "median": (lambda x: np.median(x), X),
    "median axis": (lambda x: np.median(x, axis=1), X),
    "median axes": (lambda x: np.median(x, axis=(0, 1), keepdims=True), X),
    "median odd": (lambda x: np.median(x, -1), M),
    "median with NaN": (lambda x: np.median(x, axis=1), HOLES),
    "median ints": (lambda x: np.median(x, axis=0), INTS),
    "median bools": (lambda x: np.median(x), BOOLS),
    "median float32": (lambda x: np.median(x, 0), X.astype("float32")),
    "median 0-d": (lambda x: np.median(x), np.array(2.5)),
}
MOMENTS = {
    "average": (lambda x: np.average(x, axis=1), X),
    "average ints": (lambda x: np.average(x), INTS),
    "average weights": (
        lambda x, w: np.average(x, axis=1, weights=w),
        X,
        np.array([1.0, 2.0, 4.0]),
    ),
    "average all weights": (lambda x, w: np.average(x, weights=w, keepdims=True), M, M**2),
    "average axes": (lambda x, w: np.average(x, (0, 2), w), X, X[:, 0] ** 2),
    "cov": (lambda x: np.cov(x), M),
    "cov vector": (lambda x: np.cov(x), M[0]),
    "cov with": (lambda x, y: np.cov(x, y), M[:2], M[2]),
    "cov columns": (lambda x: np.cov(x, rowvar=False, bias=True), M),
    "cov ddof": (lambda x: np.cov(x, ddof=2), M.astype("float32")),
    "cov dtype": (lambda x: np.cov(x, dtype="float32"), M.astype("float32")),
    "cov weights": (
        lambda x, a: np.cov(x, fweights=np.array([1, 2, 0, 1, 3]), aweights=a),
        M,
        np.array([1.0, 0.5, 2.0, 1.0, 3.0]),
    ),
    "corrcoef": (lambda x: np.corrcoef(x), M),
    "corrcoef with": (lambda x, y: np.corrcoef(x, y), M[0], M[1]),
}
TABLE = {**REDUCTIONS, **NAN, **QUANTILES, **MOMENTS}
DIFFERENTIABLE = [
    name
    for name, (_, *arrays) in TABLE.items()
    if arrays[0].dtype == "float64"
    and not any(word in name for word in ("arg", "any", "all where", "infinite", "with NaN"))
    and not name.startswith("percentile ")  # a quantile
]


@pytest.mark.parametrize("name", TABLE)
def test_values_are_numpys(name):
    agrees(*TABLE[name])


@pytest.mark.parametrize("name", every(3, DIFFERENTIABLE))
def test_gradients_are_those_of_differences(name):
    fn, *arrays = TABLE[name]
    arrays = [np.where(np.isnan(a), 0.123, a) for a in arrays]
    gradient_holds(fn, *arrays)


@pytest.mark.parametrize("backend", ["llvm", "jax"])
@pytest.mark.parametrize("group", [REDUCTIONS, NAN, QUANTILES, MOMENTS])
def test_every_backend_agrees(group, backend):
    backends_agree(group.values(), backend)


VMAPPED = {
    "median": lambda x: gg.median(x, axis=1),
    "quantile": lambda x: gg.quantile(x, [0.2, 0.7], axis=0),
    "nanquantile": lambda x: gg.nanquantile(x, 0.3, axis=1),
    "nanvar": gg.nanvar,
    "max where": lambda x: gg.max(x, initial=0.0, where=x > 0),
    "corrcoef": gg.corrcoef,
    "average": lambda x: gg.average(x, axis=1, weights=x[0] ** 2),
    "cummax": gg.cummax,
    "unwrap": gg.unwrap,
    "convolve": lambda x: gg.convolve(x[0], x[1]),
    "interp": lambda x: gg.interp(x, [-1.0, 0.0, 1.0], [2.0, 3.0, 5.0]),
    "histogram": lambda x: gg.histogram(x, 4)[0],
    "polyfit": lambda x: gg.polyfit(np.arange(4.0), x[0], 1),
}


@pytest.mark.filterwarnings("error::graphgrad.PerformanceWarning")
@pytest.mark.parametrize("name", VMAPPED)
def test_a_batch_is_its_examples_one_by_one(name):
    fn = VMAPPED[name]
    with gg.Graph():
        batch, one = gg.placeholder(X.shape), gg.placeholder(X.shape[1:])
        found = gg.evaluate(gg.vmap(fn)(batch), {batch: X})
        y = fn(one)
        want = [gg.evaluate(y, {one: x}) for x in X]
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_infinities_that_do_not_count_make_no_nan():
    with gg.Graph():
        x = gg.constant([1.0, np.inf, np.inf, -np.inf])
        found = gg.evaluate(gg.quantile(x, [0.0, 1 / 3, 2 / 3, 1.0]))
    np.testing.assert_array_equal(found, [-np.inf, 1.0, np.inf, np.inf])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x: gg.quantile(x, 1.5), "from 0 to 1"),
        (lambda x: gg.percentile(x, 101), "to 100"),
        (lambda x: gg.quantile(x, 0.5, method="best"), "method='best'"),
        (lambda x: gg.quantile(x, 0.5, weights=np.ones(3)), "inverted_cdf"),
        (lambda x: gg.quantile(x[:0], 0.5), "no elements"),
        (lambda x: gg.max(x, where=x > 0), "give initial="),
        (lambda x: gg.sum(x, where=[1, 0, 1]), "takes bools"),
        (lambda x: gg.sum(x, where=np.ones((2, 3), bool)), "does not broadcast"),
        (lambda x: gg.sum(gg.cast(x, "int64"), initial=0.5), "does not hold"),
        (lambda x: gg.mean(x, dtype="int64"), "cut off"),
        (lambda x: gg.average(x, weights=np.ones((3, 3))), "give the axis"),
    ],
)
def test_what_has_no_meaning_is_an_error(wrong, words):
    with gg.Graph(), pytest.raises((ValueError, gg.ShapeError, gg.DTypeError), match=words):
        wrong(gg.placeholder((3,)))


def test_a_quantile_at_what_is_no_part_of_one_is_nan_when_that_is_computed():
    with gg.Graph():
        q = gg.placeholder((3,))
        y = gg.quantile([1.0, 2.0, 3.0], q)
        found = gg.evaluate(y, {q: np.array([-0.1, 0.5, 1.1])})
    np.testing.assert_array_equal(found, [np.nan, 2.0, np.nan])
