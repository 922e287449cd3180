"""What is picked by values: masks, nonzero, unique, repeats; lengths that only a run knows."""

import importlib.util
import warnings

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.differentiate.forward.jvp import jvp

from ..each import crossed

HAS_JAX = importlib.util.find_spec("jax") is not None
BACKENDS = ["numpy", *(["llvm"] if importlib.util.find_spec("llvmlite") else [])]
ALL = [*BACKENDS, *(["jax"] if HAS_JAX else [])]

X = np.array([[3.0, -1.0, 0.0, 2.0], [0.0, 2.0, 3.0, -1.0], [1.0, 0.0, 0.0, 2.0]])
NAN = np.array([np.nan, 1.0, -0.0, np.nan, 0.0, 1.0])
Z = np.array([1 + 2j, 1 - 1j, 0j, 1 + 2j, complex(0, np.nan), complex(np.nan, 0), 0j])
EMPTY = np.zeros((0,))
SHAPES = [lambda a: a.shape, lambda a: (None,) * a.ndim]


def run(fn, *arrays, backend="numpy", shape=SHAPES[0]):
    """fn of placeholders of these arrays."""
    with gg.Graph():
        xs = [gg.placeholder(shape(a), a.dtype) for a in arrays]
        return gg.compile(xs, fn(*xs), backend=backend)(*arrays)


def same(found, wanted):
    """The same values, shapes and dtypes."""
    if isinstance(wanted, np.ndarray):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_array_equal(found, wanted)
        return
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        same(a, b)


# --- masks ---------------------------------------------------------------------------------------

KEYS = {
    "whole": lambda xp, x: x[x > 0],
    "rows": lambda xp, x: x[x[:, 0] > 0],
    "columns": lambda xp, x: x[:, x[0] > 0],
    "beside an index": lambda xp, x: x[1, x[0] > 0],
    "beside a new axis": lambda xp, x: x[None, x[:, 0] > 0, 1:],
    "beside an ellipsis": lambda xp, x: x[..., x[0] > 0],
    "two that pick as many": lambda xp, x: x[x[:, 0] > 0, x[0] > 1],
    "nothing": lambda xp, x: x[x > 9],
    "integers by a mask": lambda xp, x: xp.astype(x, "int32")[x > 0],
}


@pytest.mark.parametrize("shape", SHAPES, ids=["known", "unknown"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("key", KEYS)
def test_a_computed_mask_picks_what_numpy_picks(key, backend, shape):
    same(run(lambda x: KEYS[key](gg, x), X, backend=backend, shape=shape), KEYS[key](np, X))


@pytest.mark.parametrize("value", [3.0, -3.0])
def test_a_mask_without_axes_picks_all_or_nothing(value):
    for x in (np.array(value), np.full((2, 3), value)):
        same(run(lambda x: x[gg.sum(x) > 0], x), x[np.sum(x) > 0])
    same(gg.evaluate(gg.constant([1.0])[True]), np.array([1.0])[True])
    with gg.Graph():
        x, mask = gg.placeholder((3, 4)), gg.placeholder((), "bool")
        f = gg.compile([x, mask], [x[mask, 1], x[:, mask, [2]], x[..., mask]])
        assert gg.evaluate(x[[9], mask], {x: X, mask: False}).shape == (0, 4)
        for keep in (True, False):
            wanted = X[keep, 1], X[:, keep, [2]], X[..., keep]
            for got, want in zip(f(X, keep), wanted, strict=True):
                same(got, want)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SHAPES, ids=["known", "unknown"])
def test_gradients_of_both_orders_go_back_to_where_elements_were_picked(backend, shape):
    def both(x):
        y = gg.sum(x[x > 0] ** 3) + gg.sum(x[:, x[0] > 0] ** 2)
        (dx,) = gg.gradients([y], [x])
        return dx, *gg.gradients([gg.sum(dx * dx)], [x])

    columns = 2.0 * (X[0] > 0)
    dx = np.where(X > 0, 3 * X**2, 0) + columns * X
    ddx = 2 * dx * (np.where(X > 0, 6 * X, 0) + columns)
    for found, wanted in zip(run(both, X, backend=backend, shape=shape), (dx, ddx), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)


def test_forward_mode_goes_through_a_mask():
    with gg.Graph():
        x = gg.placeholder((3, 4))
        y = x[x > 0] ** 2
        found = gg.evaluate(jvp([y], [x], [gg.ones((3, 4))])[0], {x: X})
    np.testing.assert_allclose(found, 2 * X[X > 0])


def test_a_rule_of_a_region_gets_what_a_mask_picked():
    with gg.Graph():
        x = gg.placeholder((3, 4))
        with gg.override_gradient(lambda site, dy: [10.0 * d for d in site.default(dy)]):
            y = gg.sum(gg.exp(x[x > 0]))
        (dx,) = gg.gradients([y], [x])
        np.testing.assert_allclose(gg.evaluate(dx, {x: X}), np.where(X > 0, 10 * np.exp(X), 0))


def test_a_mask_that_does_not_fit_is_an_error_when_built_or_when_run():
    with gg.Graph():
        x, m = gg.placeholder((3, 4)), gg.placeholder((4,), "bool")
        with pytest.raises(gg.ShapeError, match="does not fit axis 0"):
            x[m]
        x, m = gg.placeholder((None, 4)), gg.placeholder((None,), "bool")
        f = gg.compile([x, m], x[m])
        same(f(X, [True, False, True]), X[[0, 2]])
        with pytest.raises((gg.ShapeError, IndexError), match="does not fit"):
            f(X, [True, False])


@pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed")
def test_where_lengths_have_to_be_known_the_error_names_size():
    for fn in (
        lambda x: x[x > 0],
        gg.nonzero,
        gg.unique,
        lambda x: gg.repeat(x, gg.cast(x, "int64")),
    ):
        with pytest.raises(gg.ExecutionError, match="size="):
            run(fn, np.ones(3), backend="jax")
        with pytest.raises(gg.SymbolicError, match="size="):
            run(gg.vmap(fn), np.ones((2, 3)))


def test_a_mask_that_all_examples_share_is_no_matter_of_theirs():
    with gg.Graph():
        x, m = gg.placeholder((3, 4)), gg.placeholder((4,), "bool")
        y = gg.vmap(lambda row: row[m])(x)
        same(gg.compile([x, m], y)(X, X[0] > 0), X[:, X[0] > 0])


# --- places --------------------------------------------------------------------------------------

ARRAYS = [X, X > 0, np.int8([0, 2, 0]), NAN, Z, EMPTY, np.zeros((2, 0, 3)), np.ones((1, 1))]


@crossed(["nonzero", "argwhere", "flatnonzero", "count_nonzero"], ARRAYS, SHAPES, BACKENDS)
def test_places_are_those_of_numpy(name, x, shape, backend):
    wanted = getattr(np, name)(x)
    wanted = np.asarray(wanted) if name == "count_nonzero" else wanted
    same(run(getattr(gg, name), x, backend=backend, shape=shape), wanted)


def test_0d_places():
    for value in (0.0, 2.0):
        same(run(gg.argwhere, np.array(value)), np.argwhere(np.array(value)))
        same(run(gg.flatnonzero, np.array(value)), np.flatnonzero(np.array(value)))
    with pytest.raises(gg.ShapeError, match="at least one axis"):
        gg.nonzero(1.0)


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("size", [0, 2, 20])
@pytest.mark.parametrize("x", [X, NAN, np.zeros((2, 0))], ids=lambda x: f"{x.dtype}{x.shape}")
def test_places_of_a_given_size_are_cut_or_filled(x, size, backend):
    found = run(lambda x: gg.nonzero(x, size=size, fill_value=-7), x, backend=backend)
    for got, want in zip(found, np.nonzero(x), strict=True):
        same(got, np.r_[want[:size], np.full(max(0, size - len(want)), -7)])


@pytest.mark.parametrize("shape", SHAPES, ids=["known", "unknown"])
def test_compress_and_extract_are_numpys(shape):
    c = np.array([True, False, True])
    same(run(lambda c, x: gg.compress(c, x, 0), c, X, shape=shape), np.compress(c, X, 0))
    same(run(gg.compress, c, X, shape=shape), np.compress(c, X))
    same(run(gg.extract, X > 0, X, shape=shape), np.extract(X > 0, X))
    sized = run(lambda c, x: gg.compress(c, x, 0, size=3, fill_value=5), c, X, shape=shape)
    same(sized, np.r_[X[c], np.full((1, 4), 5.0)])


def test_sizes_are_whole_and_not_negative():
    for size, error in ((-1, gg.ShapeError), (1.5, TypeError), (True, TypeError)):
        for fn in (gg.nonzero, gg.unique):
            with pytest.raises(error, match="size"):
                fn([1.0], size=size)


# --- repeats -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=["known", "unknown"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_computed_repeats_are_numpys(backend, shape):
    n = np.array([2, 0, 1], "uint8")
    same(run(lambda x, n: gg.repeat(x, n, 0), X, n, shape=shape, backend=backend), X.repeat(n, 0))
    one = np.array(2)
    same(run(lambda x, n: gg.repeat(x, n), X, one, shape=shape, backend=backend), X.repeat(2))
    with pytest.raises(ValueError, match="negative"):
        run(lambda x, n: gg.repeat(x, n, 0), X, np.array([1, -1, 0]), shape=shape)


@pytest.mark.parametrize("backend", ALL)
@pytest.mark.parametrize("total", [0, 2, 3, 6])
def test_repeats_of_a_total_length_are_cut_or_the_last_is_repeated(total, backend):
    n = np.array([2, 0, 1])
    places = np.r_[X[:, 0].repeat(n), [X[2, 0]] * 3][:total]
    f = lambda x, n: gg.repeat(x, n, total_repeat_length=total)  # noqa: E731
    same(run(f, X[:, 0], n, backend=backend), places)


# --- sets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SHAPES, ids=["known", "unknown"])
@pytest.mark.parametrize("x", ARRAYS, ids=lambda x: f"{x.dtype}{x.shape}")
def test_the_distinct_elements_are_those_of_numpy(x, shape, backend):
    same(tuple(run(gg.unique_all, x, backend=backend, shape=shape)), tuple(np.unique_all(x)))
    asked = {"return_index": True, "return_inverse": True, "return_counts": True}
    same(
        run(lambda x: gg.unique(x, **asked), x, backend=backend, shape=shape), np.unique(x, **asked)
    )


@pytest.mark.parametrize("shape", SHAPES, ids=["known", "unknown"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["float64", "int8", "bool", "complex128"])
def test_distinct_slices_are_those_of_numpy(axis, dtype, shape):
    x = np.array([[[1, 0], [0, 1], [1, 0]], [[0, 1], [0, 1], [0, 1]]]).astype(dtype)
    asked = {"return_index": True, "return_inverse": True, "return_counts": True, "axis": axis}
    found = run(lambda x: gg.unique(x, **asked), x, shape=shape)
    values, places, inverse, counts = np.unique(x, **asked)
    same(found, (values, places, inverse.reshape(-1), counts))


@pytest.mark.skipif(not HAS_JAX, reason="JAX is not installed")
@pytest.mark.parametrize("size", [1, 3, 7])
@pytest.mark.parametrize("fill_value", [None, 9.0])
def test_distinct_elements_of_a_given_size_are_those_of_jax_and_may_be_batched(size, fill_value):
    import jax

    asked = {"return_counts": True, "size": size, "fill_value": fill_value}
    with jax.enable_x64(True):
        rows = [jax.numpy.unique(row, **asked) for row in X]
    wanted = tuple([np.stack([np.asarray(r[i]) for r in rows]) for i in range(2)])
    for backend in ALL:
        with warnings.catch_warnings():
            warnings.simplefilter("error", gg.PerformanceWarning)
            found = run(gg.vmap(lambda row: gg.unique(row, **asked)), X, backend=backend)
        same(found, wanted)


def test_the_gradient_of_a_distinct_element_is_that_of_its_first_place():
    with gg.Graph():
        x = gg.placeholder((4,))
        (dx,) = gg.gradients([gg.sum(gg.unique(x) ** 2)], [x])
        np.testing.assert_array_equal(gg.evaluate(dx, {x: [2.0, 1.0, 2.0, 1.0]}), [4, 2, 0, 0])


PAIRS = [
    (np.array([3, 1, 1, 7]), np.array([1, 9, 3])),
    (np.array([[2.0, 1.0], [1.0, 5.0]]), np.array([1, 5])),
    (EMPTY, np.array([1.0])),
    (np.array([1.0]), EMPTY),
]


@pytest.mark.parametrize("shape", SHAPES, ids=["known", "unknown"])
@pytest.mark.parametrize(("x", "y"), PAIRS, ids=range(4))
def test_sets_are_those_of_numpy(x, y, shape):
    for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d", "isin"):
        same(run(getattr(gg, name), x, y, shape=shape), getattr(np, name)(x, y))
    asked = {"return_indices": True}
    found = run(lambda x, y: gg.intersect1d(x, y, **asked), x, y, shape=shape)
    same(found, np.intersect1d(x, y, **asked))
    same(
        run(lambda x, y: gg.isin(x, y, invert=True), x, y, shape=shape), np.isin(x, y, invert=True)
    )


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_is_numpys_and_batched_over_both(side):
    x, v = np.array([0.0, 1.0, 1.0, np.nan]), np.array([[1.0, -1.0], [np.nan, 9.0]])
    same(run(lambda x, v: gg.searchsorted(x, v, side=side), x, v), np.searchsorted(x, v, side=side))
    order = np.array([1, 2, 3, 0])
    found = run(lambda x, v: gg.searchsorted(x, v, side=side, sorter=order), np.roll(x, 1), v)
    same(found, np.searchsorted(x, v, side=side))
    xs = np.stack([x, x + 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error", gg.PerformanceWarning)
        found = run(gg.vmap(lambda x, v: gg.searchsorted(x, v, side=side)), xs, v)
    same(found, np.stack([np.searchsorted(a, b, side=side) for a, b in zip(xs, v, strict=True)]))


def test_lexsort_is_numpys():
    keys = np.random.default_rng(0).integers(0, 3, size=(3, 4, 5))
    same(run(lambda k: gg.lexsort(k, 0), keys), np.lexsort(keys, 0))
    same(run(lambda k: gg.lexsort((k[0], k[1])), keys), np.lexsort((keys[0], keys[1])))
    with pytest.raises(gg.ShapeError, match="keys"):
        gg.lexsort([1, 2])


@pytest.mark.parametrize("trim", ["f", "b", "fb"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("shape", [(6, 7), (None, None)])
def test_trim_zeros_as_numpy_does_and_its_gradient_goes_back_to_where_it_was(trim, axis, shape):
    a = np.pad(np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]]), ((2, 2), (1, 3)))
    with gg.Graph():
        x = gg.placeholder(shape)
        y = gg.trim_zeros(x, trim, axis)
        run = gg.compile(x, [y, gg.gradients(y * y, x)], backend="numpy")
    for given in (a, 0 * a):
        found, dx = run(given)
        np.testing.assert_array_equal(found, np.trim_zeros(given, trim, axis))
        np.testing.assert_array_equal(dx, 2 * given)
