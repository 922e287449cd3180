"""NumPy's histograms, bins and interpolation on tensors."""

import numpy as np
import pytest

import graphgrad as gg

from .numpys import agrees, backends_agree, gradient_holds

RNG = np.random.default_rng(2)
X = np.round(RNG.normal(size=(4, 5)), 1)
W = RNG.uniform(0.5, 2.0, size=(4, 5))
EDGES = np.array([-1.0, -0.5, 0.0, 0.5, 2.0])
HEIGHTS = np.array([1.0, 3.0, 2.0, -1.0, 4.0])
AT = np.array([[-2.0, -1.0, -0.7], [0.0, 1.9, 2.0], [5.0, 0.3, -0.5]])

TABLE = {
    "searchsorted": (lambda a, v: np.searchsorted(a, v), EDGES, X),
    "searchsorted right": (lambda a: np.searchsorted(a, 0.5, side="right"), EDGES),
    "searchsorted nan": (lambda v: np.searchsorted(EDGES, v), np.array([np.nan, np.inf])),
    "digitize": (lambda x: np.digitize(x, EDGES), X),
    "digitize right": (lambda x, b: np.digitize(x, b, right=True), X, EDGES),
    "digitize descending": (lambda x, b: np.digitize(x, b), X, EDGES[::-1]),
    "digitize descending known": (lambda x: np.digitize(x, EDGES[::-1]), X),
    "interp": (lambda x, xp, fp: np.interp(x, xp, fp), AT, EDGES, HEIGHTS),
    "interp ends": (lambda x: np.interp(x, EDGES, HEIGHTS, left=-9.0, right=9.0), AT),
    "interp period": (lambda x, xp: np.interp(x, xp, HEIGHTS, period=3.5), AT, EDGES[::-1]),
    "interp one point": (lambda x: np.interp(x, [0.0], [3.0], left=1.0), AT),
    "interp complex": (lambda x: np.interp(x, EDGES, HEIGHTS * 1j + 1), AT),
    "interp float32": (lambda x: np.interp(x, EDGES, HEIGHTS), AT.astype("float32")),
    "histogram": (lambda x: np.histogram(x), X),
    "histogram bins": (lambda x: np.histogram(x, 4), X),
    "histogram range": (lambda x: np.histogram(x, 7, (-1.0, 1.0)), X),
    "histogram edges": (lambda x: np.histogram(x, bins=EDGES), X),
    "histogram density": (lambda x: np.histogram(x, EDGES, density=True), X),
    "histogram weights": (lambda x, w: np.histogram(x, EDGES, weights=w), X, W),
    "histogram ints": (lambda x: np.histogram(x, bins=3), np.array([1, 5, 5, 2, 9])),
    "histogram alike": (lambda x: np.histogram(x, bins=3), np.array([2.0, 2.0])),
    "histogram nan": (lambda x: np.histogram(x, EDGES), np.array([np.nan, 0.0, 2.0])),
    "histogram_bin_edges": (lambda x: np.histogram_bin_edges(x, 6), X),
    "histogram2d": (lambda x, y: np.histogram2d(x, y, 3), X[:, 0], X[:, 1]),
    "histogram2d each": (
        lambda x, y: np.histogram2d(x, y, [2, EDGES], range=[(-1, 1), None], density=True),
        X[0],
        X[1],
    ),
    "histogram2d edges": (lambda x, y: np.histogram2d(x, y, EDGES), X[0], X[1]),
    "bincount": (lambda w: np.bincount(np.array([0, 3, 1, 3, 0]), w, minlength=6), W[0]),
}


@pytest.mark.parametrize("name", TABLE)
def test_values_are_numpys(name):
    agrees(*TABLE[name])


def test_points_in_a_space_are_counted():
    with gg.Graph():
        t = gg.placeholder((None, 3))
        counts, edges = np.histogramdd(t, bins=(2, 3, 2))
        found = gg.evaluate([counts, *edges], {t: X[:, :3]})
    want, edges = np.histogramdd(X[:, :3], bins=(2, 3, 2))
    for a, b in zip(found, [want, *edges], strict=True):
        np.testing.assert_allclose(a, b)


@pytest.mark.parametrize("name", ["histogram weights", "bincount", "interp smooth", "interp ends"])
def test_gradients_are_those_of_differences(name):
    fn, *arrays = {
        **TABLE,
        "interp smooth": (np.interp, AT + 0.01, EDGES, HEIGHTS),
        "interp ends": (TABLE["interp ends"][0], AT + 0.01),
        "histogram weights": (lambda w: np.histogram(X, EDGES, weights=w)[0], W),
    }[name]
    gradient_holds(fn, *arrays)


@pytest.mark.parametrize("backend", ["llvm", "jax"])
def test_every_backend_agrees(backend):
    backends_agree(TABLE.values(), backend)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_counts_are_as_many_as_a_run_needs_or_as_is_said(backend):
    x, weights = np.array([0, 5, 1, 1], "uint8"), np.array([1.0, 2.0, 3.0, 4.0])
    with gg.Graph():
        t, w = gg.placeholder((None,), "uint8"), gg.placeholder((None,))
        counts, sums = np.bincount(t, minlength=2), np.bincount(t, w)
        short = gg.bincount(t, w, length=3)
        (dw,), (cut,) = gg.gradients([sums**2], [w]), gg.gradients([short**2], [w])
        f = gg.compile([t, w], [counts, sums, short, dw, cut], backend=backend)
    found = f(x, weights)
    wanted = np.bincount(x), np.bincount(x, weights), [1, 7, 0], [2, 4, 14, 14], [2, 0, 14, 14]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    assert [a.size for a in f(x[:0], weights[:0])] == [2, 0, 3, 0, 0]


def test_counts_refuse_what_is_negative():
    with gg.Graph():
        t = gg.placeholder((None,), "int64")
        for y in (gg.bincount(t), gg.bincount(t, length=3)):
            with pytest.raises((gg.ExecutionError, IndexError), match=">= 0, got -5"):
                gg.evaluate(y, {t: np.array([0, -5])})
        with pytest.raises(gg.SymbolicError, match="vmap"):
            gg.vmap(gg.bincount)(gg.placeholder((2, 3), "int64"))
        rows = gg.vmap(lambda r: gg.bincount(r, length=2))(gg.constant([[0, 5, 1], [1, 1, 0]]))
        np.testing.assert_array_equal(gg.evaluate(rows), [[1, 1], [1, 2]])


def test_interpolation_between_equal_points_has_a_finite_gradient():
    with gg.Graph():
        x, points, values = gg.constant([1.0]), gg.constant([0.0, 1.0, 1.0]), gg.placeholder((3,))
        dxs = gg.gradients(gg.interp(x, points, values), [x, points, values], unconnected="zero")
        *others, dvalues = gg.evaluate(dxs, {values: [0.0, 2.0, 5.0]})
    assert all(np.isfinite(d).all() for d in others)
    np.testing.assert_array_equal(dvalues, [0, 0, 1])


def test_what_jax_does_not_count_has_no_gradient_where_nothing_is_checked():
    pytest.importorskip("jax")
    with gg.Graph():
        t, w = gg.placeholder((4,), "int64"), gg.placeholder((4,))
        y = gg.bincount(t, w, length=3)
        dw = gg.gradients(y * [1.0, 2.0, 3.0], w)
        run = gg.compile([t, w], [y, dw], backend="jax", bounds="jax")
        found = run(np.array([-1, 0, 7, 2]), np.ones(4))
    np.testing.assert_array_equal(found[0], [1, 0, 1])
    np.testing.assert_array_equal(found[1], [0, 1, 0, 3])


def test_counts_of_a_length_that_jax_cannot_know():
    pytest.importorskip("jax")
    with gg.Graph():
        t = gg.placeholder((None,), "int64")
        with pytest.raises(gg.ExecutionError, match="length"):
            gg.compile([t], gg.bincount(t), backend="jax")(np.array([1]))


def test_examples_of_a_batch_are_searched_each_in_its_own_order():
    rows = np.sort(X, axis=1)
    with gg.Graph():
        a, v = gg.placeholder(rows.shape), gg.placeholder((4, 2))
        y = gg.vmap(gg.searchsorted)(a, v)
        found = gg.evaluate(y, {a: rows, v: X[:, :2]})
    want = [np.searchsorted(r, k) for r, k in zip(rows, X[:, :2], strict=True)]
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x: gg.histogram(x, "auto"), "depends on values"),
        (lambda x: gg.histogram(x, [1, 0]), "ascend"),
        (lambda x: gg.histogram(x, 0), "at least one bin"),
        (lambda x: gg.histogram(x, 3, (1, 0)), "least, largest"),
        (lambda x: gg.digitize(x, [0, 2, 1]), "ascend or descend"),
        (lambda x: gg.interp(x, [1.0], [2.0], period=0), "period"),
        (lambda x: gg.searchsorted([1.0], x, side="middle"), "side"),
    ],
)
def test_what_has_no_meaning_is_an_error(wrong, words):
    with gg.Graph(), pytest.raises((ValueError, gg.ShapeError), match=words):
        wrong(gg.placeholder((3,)))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
def test_even_bins_hold_what_their_edges_say(dtype):
    """Elements on the edges of bins and next to them, where arithmetic alone is off by one."""
    rng = np.random.default_rng(0)
    for count in (1, 3, 7, 50):
        low, high = int(rng.integers(-9, 0)), int(rng.integers(1, 30))
        edges = np.linspace(low, high, count + 1)
        x = np.concatenate([edges, np.nextafter(edges, 99), np.nextafter(edges, -99), [-99, 99]])
        x = x.astype(dtype)
        found, ends = gg.evaluate(gg.histogram(x, count, (low, high)))
        both = np.result_type(x, ends)
        wanted = np.histogram(x.astype(both), ends.astype(both))[0]
        np.testing.assert_array_equal(found, wanted)
    with np.errstate(all="ignore"):  # as many bins as numbers in between
        counts, _ = gg.evaluate(gg.histogram([0.0, 5e-324, np.nan], 4, (0.0, 1e-323)))
    assert counts.sum() == 2


@pytest.mark.parametrize("ends", [None, [(0, 1), None]])
@pytest.mark.parametrize("dtypes", [("float32", "int8"), ("float16", "float16")])
def test_the_edges_of_a_space_are_of_the_dtype_of_all_points_or_float64_between_ends(ends, dtypes):
    x, y = (np.arange(3).astype(d) for d in dtypes)
    with gg.Graph():
        ours = gg.histogramdd([gg.placeholder((3,), d) for d in dtypes], 3, ends)[1]
    assert [e.dtype for e in ours] == [e.dtype for e in np.histogramdd([x, y], 3, ends)[1]]
