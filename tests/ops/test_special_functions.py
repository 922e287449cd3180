"""Functions of SciPy: its values everywhere, and gradients against mpmath's derivatives."""

import functools

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


ORDERED = {
    "jv": ([0.0, 1.5], [1.0, 2.0]),
    "yv": ([[0.0], [1.0], [2.5]], [1.0, 2.0]),
    "iv": ([0.5, -1.5], [1.0, 2.0]),
    "kv": ([0.5, 1.5], [1.0, 2.0]),
    "ive": ([0.0, 1.0], [3.0, 1e5]),
    "kve": ([0.0, 2.5], [3.0, 1e5]),
    "zeta": ([2.0, 3.0], [1.0, 2.0]),
    "polygamma": ([0, 1, 2], [1.0, 2.0, 0.3]),
    "expn": ([0, 1, 2], [1.0, 2.0, 0.5]),
    "hyp1f1": ([0.5, 1.0], [1.5, 2.0], [0.1, 0.2]),
    "hyp2f1": ([0.5, 1.0], [1.5, 2.0], [2.5, 3.0], [0.1, 0.2]),
}


def by_number(name, arrays):
    """Values, slopes and second slopes by x, of one number of each order after the other."""
    *orders, x = np.broadcast_arrays(*arrays)
    made = np.empty((3, *x.shape))
    for i in np.ndindex(x.shape):
        with gg.Graph():
            t = gg.placeholder(())
            y = getattr(special, name)(*[o[i].item() for o in orders], t)
            dy = gg.gradients(y, t)
            made[(slice(None), *i)] = gg.compile(t, [y, dy, gg.gradients(dy, t)])(x[i])
    return made


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
@pytest.mark.parametrize("name", ORDERED)
def test_orders_are_tensors(name, backend):
    """Values of SciPy, and derivatives as of numbers."""
    if backend != "numpy":
        pytest.importorskip({"jax": "jax", "llvm": "llvmlite"}[backend])
    arrays = [np.array(a) for a in ORDERED[name]]
    with gg.Graph():
        *orders, x = (gg.placeholder(a.shape, a.dtype) for a in arrays)
        wide = gg.broadcast_to(x, np.broadcast_shapes(*[a.shape for a in arrays]))
        y = getattr(special, name)(*orders, wide)
        dy = gg.gradients(y, wide)
        outputs = [y, dy, gg.gradients(dy, wide)]
        found = gg.compile([*orders, x], outputs, backend=backend)(*arrays)
    np.testing.assert_allclose(found[0], getattr(scipy.special, name)(*arrays), rtol=1e-12)
    np.testing.assert_allclose(found, by_number(name, arrays), rtol=1e-11)


@pytest.mark.parametrize("name", ORDERED)
@pytest.mark.parametrize("kind", ["float32", "int64"])
def test_the_dtype_is_that_of_x_beside_orders_that_are_integers_or_alike(name, kind):
    if kind == "float32" and name in ("polygamma", "expn"):
        kind = "uint8"
    *orders, x = (np.ceil(np.array(a)) for a in ORDERED[name])
    x = np.full(x.shape, 0.5, "float32")
    with gg.Graph():
        orders = [gg.constant(np.abs(o).astype(kind) + np.array(2, kind)) for o in orders]
        t = gg.placeholder(x.shape, "float32")
        y = getattr(special, name)(*orders, t)
        dx = gg.gradients(y, t)
        assert (y.dtype, dx.dtype) == ("float32", "float32")
        assert np.isfinite(gg.evaluate(dx, {t: x})).all()


def test_a_gradient_by_an_order_is_an_error_that_names_it():
    """Also forward, and where the order is made of what the gradient is wanted for."""
    calls = {
        "jv": (lambda t, x: special.jv(t, x), "v"),
        "kve": (lambda t, x: special.kve(2 * t, x), "v"),
        "zeta": (lambda t, x: special.zeta(t, x), "x"),
        "hyp1f1": (lambda t, x: special.hyp1f1(1.0, t, x), "b"),
        "hyp2f1": (lambda t, x: special.hyp2f1(1.0, 2.0, t, x), "c"),
    }
    for name, (call, order) in calls.items():
        says = f"{name} has no gradient with respect to {order}, .*test_special_functions.py"
        with gg.Graph():
            t, x = gg.placeholder((1,)), gg.placeholder((1,))
            y = call(t, x)
            dx = gg.gradients(y, x)
            assert np.isfinite(gg.evaluate(dx, {t: [1.5], x: [0.5]})).all()
            for ask, of, by in [
                (gg.gradients, y, [t]),
                (gg.gradients, y, [[x, t]]),
                (gg.gradients, dx, [t]),
                (gg.jvp, y, [t, gg.ones(1)]),
            ]:
                with pytest.raises(gg.GradientError, match=f"(?s){says}"):
                    ask(of, *by)
            assert gg.gradients(call(gg.stop_gradient(t), x), t, unconnected="none") is None


def test_orders_that_cannot_be():
    x = np.array([0.5])
    with gg.Graph():
        for call in (
            lambda: special.jv(gg.constant([1j]), x),
            lambda: special.jv(True, x),
            lambda: special.expn(gg.constant([1.0]), x),
            lambda: special.polygamma(gg.constant([1.0]), x),
        ):
            with pytest.raises(gg.DTypeError):
                call()
        with pytest.raises(TypeError, match="order of expn"):
            special.expn(1.5, x)
        with pytest.raises(gg.ShapeError):
            special.jv(np.ones(3), np.ones(2))


COMPLEX = np.array(
    [1 + 1j, 2 - 1j, -3.3 + 0.2j, 0.5 + 30j, -20.5 - 3j, 0.01j, -2 + 1e-8j, -3 - 1e-5j, -1.3]
)
HOLOMORPHIC = {
    "gamma": (mp.gamma, lambda z: mp.gamma(z) * mp.psi(0, z)),
    "loggamma": (mp.loggamma, lambda z: mp.psi(0, z)),
    "digamma": (lambda z: mp.psi(0, z), lambda z: mp.psi(1, z)),
    "erf": (mp.erf, lambda z: 2 / mp.sqrt(mp.pi) * mp.exp(-z * z)),
    "erfc": (mp.erfc, lambda z: -2 / mp.sqrt(mp.pi) * mp.exp(-z * z)),
}
SECOND = {
    "gamma": lambda z: mp.gamma(z) * (mp.psi(0, z) ** 2 + mp.psi(1, z)),
    "loggamma": lambda z: mp.psi(1, z),
    "digamma": lambda z: mp.psi(2, z),
    "erf": lambda z: -4 * z / mp.sqrt(mp.pi) * mp.exp(-z * z),
    "erfc": lambda z: 4 * z / mp.sqrt(mp.pi) * mp.exp(-z * z),
}


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_functions_of_complex_numbers_are_holomorphic(name, backend):
    if backend == "jax":
        pytest.importorskip("jax")
    z = COMPLEX[:3] if name.startswith("erf") else COMPLEX
    with gg.Graph():
        t = gg.placeholder(z.shape, z.dtype)
        y = getattr(special, name)(t)
        (dy,) = gg.gradients([y], [t], [gg.ones_like(y)])
        (ddy,) = gg.gradients([dy], [t], [gg.ones_like(y)])
        found = gg.compile(t, [y, dy, ddy], backend=backend)(z)
        small = special.loggamma(gg.cast(t, "complex64"))
    assert small.dtype == np.complex64
    functions = (*HOLOMORPHIC[name], SECOND[name])
    want = [[complex(f(mp.mpc(number))) for number in z] for f in functions]
    np.testing.assert_allclose(found, want, rtol=2e-12)


SCALED = {"i": ("i0e", "i1e", "ive"), "k": ("k0e", "k1e", "kve")}


@pytest.mark.ci
@pytest.mark.parametrize("kind", SCALED)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_slopes_of_scaled_bessel_functions_lose_no_digits_anywhere(kind, dtype):
    """Up to order 2, from 1e-18 to 1e200, of numbers and tensors of orders."""
    x = np.array([2.0**-60, 0.125, 24.0, 26.0, 1e5, 1e8, 1e10, 1e30], dtype)
    x = np.append(x, 1e200) if dtype == "float64" else x
    tolerance = 1e-11 if dtype == "float64" else 1e-6
    zero, one, other = (getattr(special, name) for name in SCALED[kind])
    with gg.Graph():
        t = gg.placeholder(x.shape, dtype)
        for v, y in [
            (0, zero(t)),
            (1, one(t)),
            (2.5, other(2.5, t)),
            (3, other(np.full(x.shape, 3), t)),
        ]:
            dy = gg.gradients(y, t)
            with np.errstate(all="ignore"):
                found = gg.compile(t, [dy, gg.gradients(dy, t)])(x)
                want = [[scaled_slope(kind, v, n, number) for number in x] for n in (1, 2)]
                want = np.array(want).astype(dtype)
            np.testing.assert_allclose(found, want, rtol=tolerance, atol=1e-300, err_msg=str(v))


@pytest.mark.ci
@pytest.mark.parametrize("kind", SCALED)
def test_slopes_of_scaled_bessel_functions_of_large_orders_do_not_cancel(kind):
    """Around v**2 / (2 x) = 1, 10 and 25, where the neighbours of a function are nearly equal."""
    points = [(v, v * v / (2 * t)) for v in (30.0, 94.25, 360.0) for t in (1.0, 9.9, 24.0)]
    points.append((17.0, 30.0))  # less than twice the order
    v, x = (np.array(column) for column in zip(*points, strict=True))
    with gg.Graph():
        t = gg.placeholder(x.shape)
        dy = gg.gradients(getattr(special, SCALED[kind][2])(v, t), t)
        found = gg.compile(t, [dy, gg.gradients(dy, t)])(x)
    want = [[scaled_slope(kind, v, n, number) for v, number in points] for n in (1, 2)]
    np.testing.assert_allclose(found, want, rtol=4e-12)


def test_modified_bessel_functions_at_the_ends_are_their_limits():
    with gg.Graph():
        for name, v, x, want in [
            ("kv", 2.5, np.inf, (0.0, 0.0)),
            ("ive", 2.5, np.inf, (0.0, 0.0)),
            ("kve", 2.5, np.inf, (0.0, 0.0)),
            ("ive", 2.5, 1e200, (3.989422804014327e-101, -1.9947114020071635e-301)),
            ("iv", 0.5, 1e-300, (7.978845608028654e-151, 3.989422804014327e149)),
            ("iv", 1.5, 1e-130, (2.659615202676218e-196, 3.989422804014327e-66)),
            ("iv", 2.5, np.nan, (np.nan, np.nan)),
            ("iv", 20.5, 1e-300, (0.0, 0.0)),
        ]:
            t = gg.constant(np.full(2, x))
            y = getattr(special, name)(v, t)
            with np.errstate(all="ignore"):
                found = gg.compile([], [y, gg.gradients(y, t)], backend="numpy")()
            np.testing.assert_allclose(found, np.transpose([want, want]), 1e-13, err_msg=name)


@functools.cache
def scaled_slope(kind, v, n, x):
    """By the formula with neighbours in many digits, or the series in 1 / x."""
    x, v = mp.mpf(float(x)), mp.mpf(v)
    with mp.workdps(40):
        if x > max(1e4, v * v):
            total, term = mp.mpf(0), mp.sqrt(mp.pi / 2) if kind == "k" else 1 / mp.sqrt(2 * mp.pi)
            for k in range(12):
                power = mp.rf(k + mp.mpf("0.5"), n) * (-1) ** n * x ** (-k - n - mp.mpf("0.5"))
                total += term * power
                term *= (4 * v * v - (2 * k + 1) ** 2) / (8 * (k + 1))
                term *= 1 if kind == "k" else -1
            return float(total)
        plain = mp.besseli if kind == "i" else mp.besselk
        sign = 1 if kind == "i" else -1
        row = [plain(abs(v + k) if v == int(v) else v + k, x) for k in range(-n, n + 1)]
        while len(row) > 1:
            row = [sign * ((a + b) / 2 - y) for a, y, b in zip(row, row[1:], row[2:])]
        return float(row[0] * mp.exp(-sign * x))


def test_slopes_at_tiny_and_huge_parameters_lose_no_digits():
    points = [(1.0, 1e-10), (1e-10, 1e-10), (1e10, 1.0), (3.0, 1e8), (1e-100, 0.5), (1e20, 1e-20)]
    a, b = (np.array(column) for column in zip(*points, strict=True))
    with gg.Graph():
        s, t = gg.placeholder(a.shape), gg.placeholder(b.shape)
        da, db = gg.gradients(special.betaln(s, t), [s, t])
        value, beta = special.beta(s, t), gg.gradients(special.beta(s, t), s)
        outputs = [da, db, beta / value, gg.gradients(da, s), gg.gradients(db, s)]
        with np.errstate(all="ignore"):
            found = gg.compile([s, t], outputs)(a, b)
    with mp.workdps(400):
        rows = []
        for point in points:
            x, y = map(mp.mpf, point)
            of_x, of_y, both = mp.psi(0, x), mp.psi(0, y), mp.psi(0, x + y)
            slope = mp.psi(1, x + y)
            row = of_x - both, of_y - both, of_x - both, mp.psi(1, x) - slope, -slope
            rows.append([float(number) for number in row])
    np.testing.assert_allclose(found, np.transpose(rows), rtol=1e-13)


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


@pytest.mark.ci
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
