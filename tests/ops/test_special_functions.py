"""Functions of SciPy: its values everywhere, and gradients against mpmath's derivatives."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import graphgrad as gg
from graphgrad import special

WIDE = np.array([-3.5, -2.0, -1.0, -0.5, -0.0, 0.0, 1e-5, 0.3, 1.0, 2.5, 9.0, 30.0, 800.0])
WIDE = np.concatenate([WIDE, [np.inf, -np.inf, np.nan]])
ONE = [
    "erfinv erfcinv erfcx dawsn ndtri log_ndtr exp1 expi spence entr gamma gammasgn factorial",
    "logit j0 j1 y0 y1 i0 i1 k0 k1 i0e i1e k0e k1e",
]
TWO = [
    "xlog1py",
    "kl_div",
    "rel_entr",
    "beta",
    "betaln",
    "poch",
    "binom",
    "gammainc",
    "gammaincc",
    "gammaincinv",
    "owens_t",
    "boxcox",
    "boxcox1p",
    "comb",
]
NUMBERS = [("jv", 1.5), ("yv", 2), ("iv", 0.5), ("kv", 3), ("ive", 1), ("kve", 0.5), ("expn", 3)]
NUMBERS += [("expn", 0), ("expn", -2), ("zeta", 2.5)]


def run(fn, *arrays, backend="numpy"):
    """The values of fn of placeholders."""
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        f = gg.compile(xs, fn(*xs), backend=backend)
    with np.errstate(all="ignore"):
        return f(*arrays)


def same(fn, theirs, *arrays, dtype="float64", backend="numpy"):
    """Whether the values are SciPy's, of the same dtype."""
    arrays = [a.astype(dtype) for a in arrays]
    with np.errstate(all="ignore"):
        want = np.asarray(theirs(*arrays))
    got = run(fn, *arrays, backend=backend)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=1e-11 if dtype == "float64" else 3e-5)


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", " ".join(ONE).split())
def test_values_of_one_operand_are_scipys_everywhere(name, dtype, backend):
    if backend == "jax":
        pytest.importorskip("jax")
    theirs = getattr(scipy.special, name)
    same(getattr(special, name), theirs, WIDE, dtype=dtype, backend=backend)


@pytest.mark.parametrize("name", TWO)
def test_values_of_two_operands_are_scipys_everywhere(name):
    grid = [a.ravel() for a in np.meshgrid([-1.5, -1.0, 0.0, 0.5, 2.0, 30.0], WIDE)]
    same(getattr(special, name), getattr(scipy.special, name), *grid)


@pytest.mark.parametrize(("name", "number"), NUMBERS)
def test_values_with_a_number_are_scipys(name, number):
    theirs = getattr(scipy.special, name)
    x = np.array([0.2, 1.0, 3.7, 20.0])
    if name == "expn" and number < 0:
        theirs = np.vectorize(lambda n, x: float(mp.expint(n, x)))
    same(lambda t: getattr(special, name)(number, t), lambda a: theirs(number, a), x)


def test_arguments_without_a_gradient_are_numbers():
    x = np.array([0.5])
    for call, named in [
        (lambda t: special.jv(t, x), "jv has no gradient with respect to v"),
        (lambda t: special.zeta(t, x), "zeta has no gradient with respect to x"),
        (lambda t: special.hyp1f1(1.0, t, x), "hyp1f1 has no gradient with respect to b"),
        (lambda t: special.hyp2f1(1.0, 2.0, t, x), "hyp2f1 has no gradient with respect to c"),
    ]:
        with gg.Graph(), pytest.raises(gg.DTypeError, match=named):
            call(gg.placeholder((1,)))
    with gg.Graph(), pytest.raises(TypeError, match="order of expn"):
        special.expn(1.5, x)


GRADIENTS = {
    "erfinv": (mp.erfinv, [(0.3,), (-0.99,)]),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [(-2.0,), (0.5,), (3.0,), (40.0,), (1e4,)]),
    "dawsn": (
        lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x),
        [(0.5,), (-3.0,), (40.0,), (-30.0,)],
    ),
    "log_ndtr": (lambda x: mp.log(mp.ncdf(x)), [(-30.0,), (-1.0,), (3.0,)]),
    "exp1": (mp.e1, [(0.3,), (5.0,)]),
    "expi": (mp.ei, [(0.3,), (-5.0,)]),
    "spence": (lambda x: mp.polylog(2, 1 - x), [(0.3,), (1.0,), (1.000003,), (5.0,)]),
    "sici": (mp.si, [(1e-3,), (0.5,), (7.0,)]),
    "fresnel": (mp.fresnels, [(0.5,), (2.7,)]),
    "gamma": (mp.gamma, [(0.3,), (5.0,), (-1.5,)]),
    "i1": (lambda x: mp.besseli(1, x), [(0.0,), (-2.0,), (5.0,)]),
    "i0e": (lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), [(-2.0,), (50.0,)]),
    "k1": (lambda x: mp.besselk(1, x), [(0.3,), (5.0,)]),
    "k0e": (lambda x: mp.exp(x) * mp.besselk(0, x), [(0.3,), (50.0,)]),
    "j1": (lambda x: mp.besselj(1, x), [(0.0,), (-2.0,), (15.0,)]),
    "y0": (lambda x: mp.bessely(0, x), [(0.3,), (15.0,)]),
    "multigammaln": (lambda x: sum(mp.loggamma(x - j / 2) for j in range(3)), [(2.3,), (9.0,)]),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), [(0.5, 2.0), (30.0, 0.1)]),
    "beta": (mp.beta, [(0.5, 2.0), (3.0, 0.1)]),
    "poch": (mp.rf, [(0.5, 2.0), (3.0, 0.1)]),
    "binom": (mp.binomial, [(5.5, 2.0), (3.0, 0.1)]),
    "owens_t": (
        lambda h, a: (
            mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)
        ),
        [(0.5, 2.0), (1.0, -0.5)],
    ),
    "boxcox": (
        lambda x, p: mp.expm1(p * mp.log(x)) / p if p else mp.log(x),
        [(0.3, -1.5), (5.0, 1e-9), (1.001, 2.0)],
    ),
    "boxcox1p": (lambda x, p: mp.expm1(p * mp.log1p(x)) / p, [(1e-9, -1.5), (5.0, 1e-9)]),
    "gammainc": (
        lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        [(0.05, 0.3), (0.5, 2.0), (3.0, 0.1), (7.0, 30.0), (90.0, 85.0)],
    ),
    "gammaincc": (lambda a, x: mp.gammainc(a, x, regularized=True), [(0.5, 2.0), (7.0, 30.0)]),
    "betainc": (
        lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True),
        [(0.5, 2.0, 0.3), (0.05, 0.2, 0.9), (7.0, 30.0, 0.1), (40.0, 3.0, 0.7)],
    ),
}
CALLS = {
    "sici": lambda x: special.sici(x)[0],
    "fresnel": lambda x: special.fresnel(x)[0],
    "multigammaln": lambda x: special.multigammaln(x, 3) - 1.5 * np.log(np.pi),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_the_derivatives_to_second_order(name):
    fn, points = GRADIENTS[name]
    count = len(points[0])
    with gg.Graph():
        xs = [gg.placeholder(()) for _ in range(count)]
        y = CALLS.get(name, getattr(special, name))(*xs)
        first = gg.gradients(y, xs)
        second = [d for dx in first for d in gg.gradients(dx, xs)]
        f = gg.compile(xs, [*first, *second])
    units = np.eye(count, dtype=int)
    orders = [*units, *(i + j for i in units for j in units)]
    for point in points:
        found = f(*map(np.float64, point))
        with mp.workdps(20):
            want = [float(mp.diff(fn, tuple(map(mp.mpf, point)), tuple(n))) for n in orders]
        np.testing.assert_allclose(found, want, rtol=2e-9, atol=1e-300, err_msg=str(point))


def test_the_faddeeva_function_keeps_its_digits_to_second_order():
    z = np.array([0.3 + 0.2j, -3 + 1j, 20 + 3j, 1e8, 1 - 2j, 15 - 0.1j, 0j])
    np.testing.assert_allclose(run(special.wofz, z), scipy.special.wofz(z), rtol=1e-14)
    np.testing.assert_allclose(run(special.wofz, z.real), scipy.special.wofz(z.real), rtol=1e-14)
    ones = np.ones_like(z)
    with gg.Graph():
        t = gg.placeholder(z.shape, z.dtype)
        (dz,) = gg.gradients([special.wofz(t)], [t], [ones])
        found = gg.evaluate([dz, gg.gradients([dz], [t], [ones])[0]], {t: z})
    with mp.workdps(80):
        for place, point in enumerate(map(mp.mpc, z)):
            w = mp.exp(-point * point) * mp.erfc(-1j * point)
            first = 2j / mp.sqrt(mp.pi) - 2 * point * w
            want = [complex(first), complex(-2 * w - 2 * point * first)]
            np.testing.assert_allclose([d[place] for d in found], want, rtol=1e-11)


def test_spherical_harmonics_are_scipys_of_every_order():
    theta, phi = np.linspace(0, np.pi, 5)[:, None], np.linspace(-1, 5, 4)
    for n, m in [(0, 0), (1, -1), (2, 1), (3, -2), (9, 4), (9, 9), (2, 3), (40, 7)]:
        got = run(lambda t, p, n=n, m=m: special.sph_harm_y(n, m, t, p), theta, phi)
        np.testing.assert_allclose(got, scipy.special.sph_harm_y(n, m, theta, phi), atol=1e-13)
    with gg.Graph():
        t, p = gg.placeholder(()), gg.placeholder(())
        y = gg.real(special.sph_harm_y(3, 2, t, p))
        found = gg.evaluate(gg.gradients(y, [t, p]), {t: 0.7, p: 0.3})
    _, slopes = scipy.special.sph_harm_y(3, 2, 0.7, 0.3, diff_n=1)
    np.testing.assert_allclose(found, slopes.real, rtol=1e-12)


def test_choices_with_repetition_series_of_orders_and_bernoulli_numbers_are_scipys():
    n, k = (a.ravel() for a in np.meshgrid([-1.0, 0.0, 0.5, 1.0, 4.0], [-1.0, 0.0, 1.0, 3.0]))
    np.testing.assert_allclose(
        run(lambda a, b: special.comb(a, b, repetition=True), n, k),
        scipy.special.comb(n, k, repetition=True),
    )
    np.testing.assert_allclose(
        run(special.loggamma, WIDE), scipy.special.loggamma(WIDE), rtol=1e-14
    )
    x = np.array([0.5, 7.0])
    want = [scipy.special.jv(v, x) for v in range(4)]
    np.testing.assert_allclose(run(lambda t: special.bessel_jn(t, v=3), x), want, rtol=1e-13)
    for count in (0, 1, 6):
        want = scipy.special.bernoulli(max(count, 2))[: count + 1]
        np.testing.assert_array_equal(gg.evaluate(special.bernoulli(count)), want)
    for call in (
        lambda: special.comb(5, 2, exact=True),
        lambda: special.bernoulli(-1),
        lambda: special.bessel_jn(1.0, v=-1),
        lambda: special.sph_harm_y(-1, 0, 1.0, 1.0),
    ):
        with gg.Graph(), pytest.raises(ValueError):
            call()


def test_the_inverses_undo_what_they_are_inverses_of():
    a, b, x = np.array([0.7, 3.0]), np.array([2.0, 0.4]), np.array([0.2, 0.6])
    with gg.Graph():
        p, q, t = (gg.placeholder((2,)) for _ in range(3))
        whole = [
            special.gammainc(p, special.gammaincinv(p, t)),
            special.gammaincc(p, special.gammainccinv(p, t)),
            special.betainc(p, q, special.betaincinv(p, q, t)),
        ]
        slopes = [gg.gradients(y, [t, p, q], unconnected="zero") for y in whole]
        values = gg.compile([p, q, t], [*whole, *(d for s in slopes for d in s)])(a, b, x)
    for got, want in zip(values, [x, x, x, *[1, 0, 0] * 3], strict=True):
        np.testing.assert_allclose(got, np.broadcast_to(want, (2,)), atol=1e-9)


A = np.array([[1.0, 800.0, -3.0], [np.inf, 1.0, 0.0], [-np.inf] * 3])


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1)])
@pytest.mark.parametrize("b", [None, np.array([1.0, -2.0, 0.0]), 2])
@pytest.mark.parametrize("keepdims", [True, False])
def test_logsumexp_takes_factors_and_gives_signs_as_scipys(axis, b, keepdims):
    given = {"axis": axis, "b": b, "keepdims": keepdims, "return_sign": True}
    for a in (A[:1], A[1:], A):
        with np.errstate(all="ignore"):
            got = gg.evaluate(special.logsumexp(a, **given))
            want = scipy.special.logsumexp(a, **given)
        np.testing.assert_allclose(got[0], want[0])


def test_softmax_over_all_axes_is_scipys():
    for name in ("softmax", "log_softmax"):
        for axis in (None, 0, (0, 1)):
            want = getattr(scipy.special, name)(A[:1], axis)
            np.testing.assert_allclose(gg.evaluate(getattr(special, name)(A[:1], axis)), want)


def test_softmax_over_several_axes_is_scipys():
    special = pytest.importorskip("scipy.special")
    x = 300 * np.random.default_rng(0).normal(size=(2, 3, 4))
    for axis in ((0, 2), None, (1,)):
        for name in ("softmax", "log_softmax"):
            wanted = getattr(special, name)(x, axis)
            for module in (gg.nn, gg.special):
                found = gg.evaluate(getattr(module, name)(x, axis))
                np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-300)
    np.testing.assert_array_equal(gg.evaluate(gg.nn.softmax(x, ())), np.ones(x.shape))
    np.testing.assert_array_equal(gg.evaluate(gg.nn.log_softmax(x[:, :0], (1, 2))), x[:, :0])
    with pytest.raises(gg.DTypeError, match="floating"):
        gg.nn.softmax(x + 1j, (0, 1))


@pytest.mark.parametrize("axis", [1, (0, 2), None])
def test_sums_of_exponentials_of_complex_numbers_are_scipys(axis):
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(0)
    z = 300 * rng.normal(size=(2, 3, 4)) + 2j * rng.normal(size=(2, 3, 4))
    for name in ("logsumexp", "softmax", "log_softmax"):
        found = gg.evaluate(getattr(gg.special, name)(z, axis))
        wanted = getattr(special, name)(z, axis)
        turns = np.round((found - wanted).imag / (2 * np.pi)) if name == "log_softmax" else 0
        np.testing.assert_allclose(found - 2j * np.pi * turns, wanted, rtol=1e-11, atol=1e-14)
    found = gg.evaluate(list(gg.special.logsumexp(z, axis, z, return_sign=True)))
    for got, want in zip(found, special.logsumexp(z, axis, z, return_sign=True), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11)
    with gg.Graph():
        t = gg.constant(z)
        (dz,) = gg.gradients([gg.sum(gg.real(gg.logsumexp(t, axis)))], [t])
        np.testing.assert_allclose(gg.evaluate(dz), special.softmax(z, axis), atol=1e-14)
