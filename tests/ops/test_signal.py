"""NumPy's functions of signals, polynomials and order on tensors."""

import numpy as np
import pytest

import graphgrad as gg

from ..each import every
from .numpys import agrees, backends_agree, gradient_holds

pytestmark = pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # since NumPy 2.5

RNG = np.random.default_rng(1)
A, V = RNG.normal(size=6), RNG.normal(size=3)
X = RNG.normal(size=(3, 5))
PLACES = np.array([0.0, 0.5, 2.0, 2.5, 4.0])
INTS = np.array([3, 1, 2, 2])
PHASES = np.array([[0.0, 1.0, 4.5, 7.9, 1.0], [3.0, -3.2, 3.1, 0.0, 9.0]])

CONVOLUTIONS = {
    **{
        f"{name} {mode} {order}": (
            lambda a, v, name=name, mode=mode: getattr(np, name)(a, v, mode),
            *((A, V) if order == "ab" else (V, A)),
        )
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
        for order in ("ab", "ba")
    },
    "convolve even": (lambda a, v: np.convolve(a, v, mode="same"), A, A[:4]),
    "correlate even": (lambda a, v: np.correlate(a, v, mode="same"), A[:4], A),
    "convolve ints": (lambda a: np.convolve(a, [1, 2]), INTS),
    "convolve 0-d": (lambda a: np.convolve(a, 2.0), A),
    "correlate complex": (lambda a: np.correlate(a, [1 + 2j, 3j], "full"), A + 1j),
}
DIFFERENCES = {
    "diff ends": (lambda x: np.diff(x, 2, axis=1, prepend=0, append=X[:, :1]), X),
    "ediff1d": (lambda x: np.ediff1d(x), X),
    "ediff1d ends": (lambda x: np.ediff1d(x, to_end=[1.0, 2.0], to_begin=-1.0), X),
    "gradient": (lambda x: np.gradient(x), A),
    "gradient axes": (lambda x: np.gradient(x, edge_order=2), X),
    "gradient spacing": (lambda x: np.gradient(x, 2.0, 0.5, edge_order=1), X),
    "gradient axis": (lambda x: np.gradient(x, 0.5, axis=1), X),
    "gradient order": (lambda x: np.gradient(x, axis=(1, 0)), X),
    "gradient ints": (lambda x: np.gradient(x), INTS),
    "gradient places": (lambda x, t: np.gradient(x, t, axis=1), X, PLACES),
    "gradient places 2": (lambda x, t: np.gradient(x, t, axis=-1, edge_order=2), X, PLACES),
    "trapezoid": (lambda y: np.trapezoid(y, dx=0.5), X),
    "trapezoid axis": (lambda y: np.trapezoid(y, axis=0), X),
    "trapezoid places": (lambda y, x: np.trapezoid(y, x), X, PLACES),
    "trapezoid all places": (lambda y, x: np.trapezoid(y, x, axis=0), X, X**2),
    "unwrap": (lambda p: np.unwrap(p), PHASES),
    "unwrap axis": (lambda p: np.unwrap(p, axis=0, period=3.0), PHASES),
    "unwrap discont": (lambda p: np.unwrap(p, 5.0, period=4.0), PHASES),
    "unwrap ints": (lambda p: np.unwrap(p, period=4), np.array([0, 1, 2, -1, 0, 5, -2])),
    "unwrap odd ints": (lambda p: np.unwrap(p, period=5), np.array([0, 1, 2, -1, 0, 3, -2, 9])),
    "sinc": (lambda x: np.sinc(x), np.array([0.0, 1e-3, 0.3, -1.0, 2.5])),
}
POLYNOMIALS = {
    "polyval": (lambda p, x: np.polyval(p, x), V, X),
    "polyval ints": (lambda p: np.polyval(p, 5), INTS),
    "polyadd": (lambda a, b: np.polyadd(a, b), A, V),
    "polysub": (lambda a, b: np.polysub(a, b), V, A),
    "polymul": (lambda a, b: np.polymul(a, b), A, V),
    "polyder": (lambda p: np.polyder(p), A),
    "polyder twice": (lambda p: np.polyder(p, 2), INTS),
    "polyint": (lambda p: np.polyint(p), V),
    "polyint constants": (lambda p: np.polyint(p, 2, [1.0, 2.0]), V),
    "poly": (lambda z: np.poly(z), V),
    "poly of a matrix": (lambda a: np.poly(a), X[:, :3]),
    "poly of complex": (lambda a: np.poly(a), (X[:, :3] + 1j * X[:, 1:4]).astype("complex64")),
    "polydiv": (lambda u, v: np.polydiv(u, v), A, V),
    "polydiv ints": (lambda u: np.polydiv(u, [2, 1]), INTS),
    "polydiv longer": (lambda u, v: np.polydiv(v, u), A, V),
    "polydiv number": (lambda u: np.polydiv(u, 2.0), A),
    "polyfit": (lambda x, y: np.polyfit(x, y, 2), A, A**3),
    "polyfit c with the rest": (lambda x, y: np.polyfit(x, y, 2, full=True)[:4], A, A**4),
    "poly float16": (lambda z: np.poly(z), V.astype("float16")),
    "vander float32": (lambda x: np.vander(x, 3), V.astype("float32")),
    "polyfit c of two equal points": (lambda x, y: np.polyfit(x, y, 1), np.ones(2), A[:2]),
    "polyfit c of few digits": (lambda x, y: np.polyfit(x, y, 2, rcond=0.3), A, A**3),
    "polyfit c of bytes": (
        lambda x, y: np.polyfit(x, y, 1),
        INTS.astype("int8"),
        A[:4] * 1j,
    ),
    "polyfit columns": (lambda x, y: np.polyfit(x, y, 1, w=PLACES + 1), PLACES, X.T),
}
RESULTS = {
    "polyfit cov": (lambda x, y: np.polyfit(x, y, 1, cov=True), PLACES, X[0]),
    "polyfit unscaled": (lambda x, y: np.polyfit(x, y, 1, cov="unscaled"), PLACES, X.T),
}
ORDER = {
    "sort kind": (lambda x: np.sort(x, 0, "mergesort"), X),
    "sort stable": (lambda x: np.sort(x, axis=None, stable=True), X),
    "argsort": (lambda x: np.argsort(x, kind="stable"), INTS),
    "sort_complex": (lambda x: np.sort_complex(x), INTS),
    "sort_complex float32": (lambda x: np.sort_complex(x), X.astype("float32")),
    "maximum.accumulate": (lambda x: np.maximum.accumulate(x, axis=1), X),
    "minimum.accumulate": (lambda x: np.minimum.accumulate(x), X),
    "multiply.accumulate": (lambda x: np.multiply.accumulate(x, 1), X),
    "add.accumulate": (lambda x: np.add.accumulate(x, dtype="float32"), X),
    "subtract.reduce": (lambda x: np.subtract.reduce(x, axis=1, keepdims=True), X),
    "hypot.reduce": (lambda x: np.hypot.reduce(x), X),
    "subtract.accumulate": (lambda x: np.subtract.accumulate(x, axis=1), X),
    "add.reduceat": (lambda x: np.add.reduceat(x, [0, 3, 1, 4], axis=1), X),
    "maximum.reduceat": (lambda x: np.maximum.reduceat(x, [0, 2]), A),
    "gcd.reduce": (lambda x: np.gcd.reduce(x), np.array([12, 18, 9])),
    "power.outer": (lambda x: np.power.outer(x, [1.0, 2.0]), A**2),
}
NUMBERS = {
    "modf": (lambda x: np.modf(x), np.array([2.5, -1.25, -0.0, np.inf, -np.inf, -3.0])),
    "modf dtype": (lambda x: np.modf(x, dtype="float32"), X),
    "modf float32": (lambda x: np.modf(x), X.astype("float32")),
    "frexp": (lambda x: np.frexp(x), np.array([6.0, -0.3, 0.0, 1.7e308, np.inf])),
    "ldexp": (lambda x: np.ldexp(x, [1, -2, 3, 4, -9]), X),
    "spacing": (lambda x: np.spacing(x), X),
    "gcd": (lambda x: np.gcd(x, 12), np.array([8, -9, 0])),
    "lcm": (lambda x: np.lcm(x, np.array([[4], [5]])), INTS),
    "bitwise_count": (lambda x: np.bitwise_count(x), np.array([0, 7, -8, 2**40])),
    "fix": (lambda x: np.fix(x), X * 3),
    "allclose": (lambda x: np.allclose(x, X + 1e-9), X),
    "not allclose": (lambda x: np.allclose(x, X + 1e-3), X),
    "allclose nan": (lambda x: np.allclose(x, x, equal_nan=True), np.array([1.0, np.nan])),
    "array_equal": (lambda x: np.array_equal(x, X), X),
    "array_equal nan": (lambda x: np.array_equal(x, x, equal_nan=True), np.array([np.nan])),
    "array_equal lengths": (lambda x: np.array_equal(x, X[:1]), X),
    "array_equiv": (lambda x: np.array_equiv(x, [1, 1]), np.array([[1, 1], [1, 1]])),
    "not array_equiv": (lambda x: np.array_equiv(x, [1, 2, 3]), INTS),
}
TABLE = {**CONVOLUTIONS, **DIFFERENCES, **POLYNOMIALS, **RESULTS, **ORDER, **NUMBERS}
LENGTHS_NEEDED = (
    "poly",
    "correlate same",
    "correlate even",
    "subtract.",
    "hypot.",
    "gcd.",
    "not array_equiv",
)
SMOOTH = [
    name
    for name, (_, *arrays) in TABLE.items()
    if arrays[0].dtype == "float64"
    and name not in ("modf", "frexp", "fix", "power.outer", "spacing")
    and not any(word in name for word in ("all", "array", "unwrap", "polyfit c", "polyfit u"))
]


@pytest.mark.parametrize("name", TABLE)
def test_values_are_numpys(name):
    fn, *arrays = TABLE[name]
    agrees(
        fn, *arrays, static=name.startswith(LENGTHS_NEEDED), rtol=1e-9 if "fit" in name else 1e-12
    )


@pytest.mark.parametrize("name", every(3, SMOOTH))
def test_gradients_are_those_of_differences(name):
    gradient_holds(*TABLE[name])


@pytest.mark.parametrize("backend", ["llvm", "jax"])
@pytest.mark.parametrize("group", [CONVOLUTIONS, DIFFERENCES, POLYNOMIALS, ORDER, NUMBERS])
def test_every_backend_agrees(group, backend):
    backends_agree(group.values(), backend)


def test_what_counts_as_zero_has_the_dtype_of_the_points():
    points = np.arange(5, dtype="float32")
    rcond = gg.polyfit(points, points, 1, full=True)[-1]
    wanted = np.polyfit(points, points, 1, full=True)[-1]
    assert (rcond, rcond.dtype) == (wanted, wanted.dtype)


def test_powers_of_two_are_exact_where_they_alone_overflow():
    x = np.array([5e-324, 1e-300])
    with gg.Graph():
        t = gg.placeholder((2,))
        m, n = np.frexp(t)
        found = gg.evaluate([m, n, np.ldexp(t, 1030)], {t: x})
    for got, want in zip(found, [*np.frexp(x), np.ldexp(x, 1030)], strict=True):
        np.testing.assert_array_equal(got, want)


def test_complex_numbers_are_put_in_order_by_their_parts():
    x = np.array([2 + 1j, 1j, 2 - 1j, 2 - 3j])
    with gg.Graph():
        t = gg.placeholder(x.shape, x.dtype)
        y = np.sort_complex(t)
        np.testing.assert_array_equal(gg.evaluate(y, {t: x}), np.sort(x))


@pytest.mark.parametrize("kth", [0, 2, -1, (1, 3)])
def test_a_partition_has_its_kth_elements_in_place(kth):
    x = np.array([[5, 1, 4, 2, 3], [1, 1, 9, 0, 3]])
    with gg.Graph():
        t = gg.placeholder(x.shape, x.dtype)
        parts, places = gg.evaluate([np.partition(t, kth), np.argpartition(t, kth)], {t: x})
    np.testing.assert_array_equal(parts, np.take_along_axis(x, places, axis=-1))
    for k in np.atleast_1d(kth):
        np.testing.assert_array_equal(parts[:, k], np.partition(x, kth)[:, k])
    for beyond in (5, -6):
        with gg.Graph(), pytest.raises(gg.ShapeError, match="partition at"):
            gg.partition(x, beyond)


def test_a_running_maximum_gives_its_gradient_to_the_first_of_ties():
    with gg.Graph():
        x = gg.constant([1.0, 3.0, 3.0, 2.0])
        np.testing.assert_array_equal(gg.evaluate(gg.gradients(gg.cummax(x), x)), [1, 3, 0, 0])


def test_what_has_no_node_says_why():
    with gg.Graph():
        x = gg.placeholder((1000,))
        refused = {
            "from 1 to 256": lambda: np.subtract.reduce(x),
            "does not take where=": lambda: np.hypot.reduce(x[:3], where=np.ones(3, bool)),
            "indices that are known": lambda: np.add.reduceat(x, x),
            "dtype depends on values": lambda: np.real_if_close(x + 1j),
            "depends on its value": lambda: np.min_scalar_type(x[0]),
        }
        assert np.real_if_close(x) is x
        assert np.min_scalar_type(x) == x.dtype
        path = np.einsum_path("i,j,j->i", x, x, np.ones(1000), optimize="greedy")[0]
        assert path == np.einsum_path("i,j,j->i", *[np.ones(1000)] * 3, optimize="greedy")[0]
        for words, expression in refused.items():
            with pytest.raises(gg.SymbolicError, match=words):
                expression()


@pytest.mark.parametrize("p", [A, V.astype("float32"), INTS, [2.0], [1.0, 2.0, 0.0], [1, 0, 1j]])
def test_roots_are_numpys_and_always_complex(p):
    p = np.asarray(p)
    found, wanted = gg.evaluate(gg.roots(p)), np.roots(p)
    assert found.dtype == np.result_type(wanted, "complex64")
    order = 1e-5 if p.dtype == "float32" else 1e-12
    np.testing.assert_allclose(np.sort(found), np.sort(wanted), rtol=order, atol=order)


def test_the_slope_of_a_root_is_that_of_the_implicit_function():
    with gg.Graph():
        p = gg.constant(A)
        zeros = gg.roots(p)
        (dp,) = gg.gradients([gg.real(gg.sum(zeros**2))], [p])
        z, dp = gg.evaluate([zeros, dp])
    slopes = -(z[:, None] ** np.arange(5, -1, -1)) / np.polyval(np.polyder(A), z)[:, None]
    np.testing.assert_allclose(dp, (2 * z[:, None] * slopes).sum(0).real, atol=1e-9)
    with gg.Graph(), pytest.raises((gg.ExecutionError, np.linalg.LinAlgError)):
        gg.evaluate(gg.roots(gg.constant([0.0, 1.0, 2.0])))
    for fn in (gg.roots, gg.poly, lambda p: gg.polydiv(p, p)):
        with gg.Graph(), pytest.raises(gg.ShapeError, match=r"known length|coefficient"):
            fn(gg.placeholder((None,)))
