"""Formulas as they are written in programs, value and gradient beside many digits."""

import math

import numpy as np
import pytest

import graphgrad as gg

from ..each import every

mpmath = pytest.importorskip("mpmath")
DIGITS = 1400
LINE = [-800.0, -40.0, -20.0, -1.0, -1e-3, -1e-8, -1e-160, 1e-160, 1e-8, 0.3, 5.0, 40.0, 800.0]
RIGHT = [x for x in LINE if x > 0]
FEW = [x for x in LINE if abs(x) < 30]
UNIT = [1e-300, 1e-20, 0.01, 0.3, 0.5000001, 0.9, 1 - 1e-9]
NEAR = [1e-160, 1e-9, 0.3, 0.999999, 1.0000001, 3.0, 1e100]


class Mp:
    """The functions, of numbers of many digits."""

    def __getattr__(self, name):
        return getattr(mpmath, {"arctan": "atan", "abs": "fabs"}.get(name, name))

    @staticmethod
    def sigmoid(x):
        return 1 / (1 + mpmath.exp(-x))


class Gg:
    """The functions, of tensors."""

    sigmoid = staticmethod(gg.nn.sigmoid)

    def __getattr__(self, name):
        return getattr(gg, name, None) or getattr(gg.special, name)


ONE = {
    "bose alone": (lambda m, x: 1 / (m.exp(x) - 1), LINE),
    "its slope": (lambda m, x: m.exp(x) / (m.exp(x) - 1) ** 2, [x for x in LINE if abs(x) > 1e-9]),
    "planck": (lambda m, x: x**3 / (m.exp(x) - 1), RIGHT),
    "einstein": (lambda m, x: x**2 * m.exp(x) / (m.exp(x) - 1) ** 2, LINE),
    "planck by exp(-x)": (lambda m, x: x**3 * m.exp(-x) / (1 - m.exp(-x)), RIGHT),
    "x log(1 + 1 / x)": (lambda m, x: x * m.log(1 + 1 / x), [*RIGHT, 1e-300, 1e20]),
    "exp(x) (1 - tanh)": (lambda m, x: m.exp(x) * (1 - m.tanh(x)), [*FEW, 700.0]),
    "log erfc": (lambda m, x: m.log(m.erfc(x)), FEW),
    "log(exp(x) - exp(-x))": (lambda m, x: m.log(m.exp(x) - m.exp(-x)), RIGHT),
    "log(exp(x) + exp(-x))": (lambda m, x: m.log(m.exp(x) + m.exp(-x)), LINE),
    "log(2 sinh)": (lambda m, x: m.log(2 * m.sinh(x)), RIGHT),
    "log(sinh / x)": (lambda m, x: m.log(m.sinh(x) / x), LINE),
    "log tanh": (lambda m, x: m.log(m.tanh(x)), RIGHT),
    "x**2 log(x**2)": (lambda m, x: x**2 * m.log(x**2), [*FEW, 1e-200]),
    "1 / x - 1 / sin": (lambda m, x: 1 / x - 1 / m.sin(x), FEW),
    "1 / x - 1 / tan": (lambda m, x: 1 / x - 1 / m.tan(x), FEW),
    "1 / sinh - 1 / x": (lambda m, x: 1 / m.sinh(x) - 1 / x, LINE),
    "1 / log1p - 1 / x": (lambda m, x: 1 / m.log(1 + x) - 1 / x, [1e-160, 1e-8, 0.3, 5.0]),
    "1 / arctan - 1 / x": (lambda m, x: 1 / m.arctan(x) - 1 / x, LINE),
    "brillouin": (lambda m, x: 1.5 / m.tanh(1.5 * x) - 0.5 / m.tanh(0.5 * x), LINE),
    "jacobian of rotations": (
        lambda m, x: 1 / x**2 - (1 + m.cos(x)) / (2 * x * m.sin(x)),
        [1e-100, 1e-8, 0.3, 1.0, 3.0],
    ),
    "(tan - sin) / x**3": (lambda m, x: (m.tan(x) - m.sin(x)) / x**3, FEW),
    "(sin - x) / x / x / x": (lambda m, x: (m.sin(x) - x) / x / x / x, FEW),
    "logit by ratio": (lambda m, x: m.log(x / (1 - x)), UNIT),
    "logit by difference": (lambda m, x: m.log(x) - m.log(1 - x), UNIT),
    "logit by inverse": (lambda m, x: -m.log(1 / x - 1), UNIT),
    "logit of sigmoid": (lambda m, x: m.log(m.sigmoid(x) / (1 - m.sigmoid(x))), LINE),
    "log2(1 + exp)": (lambda m, x: m.log(1 + m.exp(x)) / math.log(2.0), LINE),
    "log softplus": (lambda m, x: m.log(m.log(1 + m.exp(x))), LINE),
    "inverse softplus": (lambda m, x: m.log(m.exp(m.log(1 + m.exp(x))) - 1), LINE),
    "survival": (lambda m, x: -m.log(1 - (1 - m.exp(-x))), RIGHT),
    "partition": (lambda m, x: -m.log(1 / (1 - m.exp(-x))), RIGHT),
    "log of bose": (lambda m, x: m.log(1 + 1 / (m.exp(x) - 1)), RIGHT),
    "log of both": (lambda m, x: m.log((m.exp(x) - 1) / m.exp(x)), RIGHT),
    "log of a bin": (
        lambda m, x: m.log(m.sigmoid(x + 0.5) - m.sigmoid(x)),
        [x for x in LINE if abs(x) > 1e-3],
    ),
    "mixture": (lambda m, x: m.log(0.5 * m.sigmoid(x) + 0.25 * m.sigmoid(2 * x)), LINE),
    "arcsinh": (lambda m, x: -m.log(m.sqrt(x * x + 1) - x), LINE),
    "tanh": (lambda m, x: (1 - m.exp(-2 * x)) * (1 / (1 + m.exp(-2 * x))), LINE),
    "softsign": (lambda m, x: x / (1 + m.abs(x)), [*LINE, 1e20]),
    "lorentz": (lambda m, x: 1 / m.sqrt(1 - x**2) - 1, [1e-100, 1e-8, 0.3, 0.9]),
    "1 / (1 - x**2)": (lambda m, x: 1 / (1 - x**2), [1e-100, 0.3, 1 - 1e-9]),
    "KL of sigma": (lambda m, x: 0.5 * (x**2 - 1) - m.log(x), NEAR),
    "KL of sigma**2": (lambda m, x: 0.5 * (x**2 - 1 - m.log(x**2)), NEAR),
    "Itakura": (lambda m, x: x - m.log(x) - 1, NEAR),
}
TWO = {
    "compound": (lambda m, x, y: (1 + x) ** y - 1, [1e-20, 0.01, 0.75, 5.0], [1e-9, 2.5, 577.2]),
    "KL of Gaussians": (
        lambda m, x, y: -0.5 * (1 + x - y**2 - m.exp(x)),
        [-100.0, -1e-9, 1e-160, 2.0],
        [0.5, 1e-200],
    ),
    "KL of Poissons": (lambda m, x, y: x * m.log(x / y) - x + y, NEAR, [1e-9, 0.3, 1.0]),
    "KL of coins": (
        lambda m, x, y: x * m.log(x / y) + (1 - x) * m.log((1 - x) / (1 - y)),
        [1e-9, 0.300000001, 0.9],
        [1e-9, 0.3, 1 - 1e-9],
    ),
    "KL of rates": (lambda m, x, y: m.log(x / y) + y / x - 1, [1e-9, 0.5], [0.5000001, 2.0]),
    "KL of rates by logs": (
        lambda m, x, y: m.log(x) - m.log(y) + y / x - 1,
        [1e-9, 0.5],
        [0.5000001, 2.0],
    ),
    "negative binomial": (lambda m, x, y: m.log(y / (y + m.exp(x))), LINE, [0.5, 1e5]),
    "its complement": (lambda m, x, y: m.log(m.exp(x) / (y + m.exp(x))), LINE, [0.5, 1e5]),
    "log r - log(r + x)": (lambda m, x, y: m.log(x) - m.log(x + y), NEAR[:4], [1e-9, 0.3, 1e5]),
    "x log(y / x)": (lambda m, x, y: x * m.log(y / x), [1e-300, 0.3, 5.0], [0.3000001, 1e5]),
    "(x - y)**2": (lambda m, x, y: x * x - 2 * x * y + y * y, [1.0], [1.0000001, 3.0]),
    "x**2 - y**2": (lambda m, x, y: x * x - y * y, [1.0], [1.00000001, 3.0]),
}


def truth(f, args):
    """The value, and the derivatives by central differences."""
    with mpmath.workdps(DIGITS):
        q = [mpmath.mpf(a) for a in args]
        found = [f(Mp(), *q)]
        for i in range(len(q)):
            h = abs(q[i]) * mpmath.mpf(10) ** -400
            up, down = ([t + s * h * (j == i) for j, t in enumerate(q)] for s in (1, -1))
            found.append((f(Mp(), *up) - f(Mp(), *down)) / (2 * h))
        return [_as_float(v) for v in found]


def _as_float(v):
    try:
        return float(v)
    except OverflowError:
        return math.copysign(math.inf, v)


def healed(f, count, dtype="float64"):
    """What f becomes, and its gradients, compiled."""
    with gg.Graph():
        xs = [gg.placeholder((), dtype=dtype) for _ in range(count)]
        made = gg.heal(f(Gg(), *xs))
        run = gg.compile(xs, [made.ys, *gg.gradients(made.ys, xs, unconnected="zero")])
    assert made.sites
    return lambda args: [float(y) for y in run(*[np.asarray(a, dtype) for a in args])]


CASES = {name: (f, [(x,) for x in xs]) for name, (f, xs) in ONE.items()}
CASES.update({name: (f, [(x, y) for x in xs for y in ys]) for name, (f, xs, ys) in TWO.items()})


@pytest.mark.parametrize("name", every(4, CASES))
def test_value_and_gradient_are_those_of_many_digits(name):
    pytest.importorskip("scipy")
    f, points = CASES[name]
    run = healed(f, len(points[0]))
    with np.errstate(all="ignore"):
        for args in points:
            np.testing.assert_allclose(run(args), truth(f, args), 1e-10, 1e-307, err_msg=str(args))


@pytest.mark.parametrize("name", every(3, CASES))
def test_so_they_are_in_float32(name):
    pytest.importorskip("scipy")
    f, points = CASES[name]
    run, most = healed(f, len(points[0]), "float32"), float(gg.finfo("float32").max)
    with np.errstate(all="ignore"):
        rounded = [tuple(float(np.float32(a)) for a in args) for args in points]
        for args in rounded:
            if not all(1e-18 < abs(a) < 1e18 for a in args) or 1.0 in args:
                continue
            want = [math.copysign(math.inf, v) if abs(v) > most else v for v in truth(f, args)]
            np.testing.assert_allclose(run(args), want, 1e-4, 1e-36, err_msg=str(args))


@pytest.mark.parametrize(
    ("f", "at", "want"),
    [
        (lambda x: gg.sqrt(1 + x) - 1, math.inf, math.inf),
        (lambda x: gg.sqrt(x * x + 1) - 1, -math.inf, math.inf),
        (lambda x: gg.sqrt(x * x + 1) - 1, 1e200, 1e200),
        (lambda x: 1 / (1 - x) - 1 / (1 + x), math.inf, 0.0),
        (lambda x: 1 / (1 - x) - 1 / (1 + x), -math.inf, 0.0),
        (lambda x: 1 / (1 + x) - 1, math.inf, -1.0),
        (lambda x: x * x - 1, -math.inf, math.inf),
        (lambda x: (1 + x) ** 2.5 - 1, math.inf, math.inf),
    ],
)
def test_infinite_arguments_give_what_they_gave(f, at, want):
    x = gg.placeholder(())
    made = gg.heal(f(x))
    assert made.sites
    with np.errstate(all="ignore"):
        assert gg.compile(x, made.ys)(at) == want


def test_einsum_is_a_sum_of_products():
    x, y = gg.placeholder((2, 3)), gg.placeholder((2, 3))
    made = gg.heal([gg.sqrt(gg.einsum("bi,bi->b", x, x)), gg.einsum("ij,jk->ik", x, x.T)])
    assert [site.name for site in made.sites] == ["norm"]
    u, v = x[0], y[0]
    cosine = gg.einsum("i,i->", u, v) / (gg.sqrt(u @ u) * gg.sqrt(v @ v))
    run = gg.compile([x, y], gg.heal(cosine).ys)
    assert run(np.full((2, 3), 1e200), np.full((2, 3), 1e-200)) == pytest.approx(1.0, rel=1e-14)


def test_a_power_below_a_product_of_lengths_is_a_root():
    x = gg.placeholder((3,))
    made = gg.heal(gg.sum(x * gg.sum(x**2) ** -0.5)).ys
    assert gg.compile(x, made)(np.full(3, 1e200)) == pytest.approx(3**0.5, rel=1e-14)


@pytest.mark.parametrize("f", [lambda x, n: gg.tanh(n) / n * x, lambda x, n: gg.tanh(n) * x / n])
def test_a_function_of_a_length_over_it_has_its_limit(f):
    x = gg.placeholder((3,))
    made = gg.heal(gg.sum(f(x, gg.sqrt(gg.sum(x * x))))).ys
    assert gg.compile(x, gg.gradients(made, x))(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_the_logarithm_of_a_mean_keeps_its_digits_near_0():
    x = gg.placeholder((2, "N"))
    made = gg.heal(gg.log(gg.mean(gg.exp(x), axis=1)))
    assert [site.name for site in made.sites] == ["log_of_mean"]
    at = np.array([[1e-20, 3e-20], [1000.0, 1000.0]])
    np.testing.assert_allclose(gg.compile(x, made.ys)(at), [2e-20, 1000.0], rtol=1e-15)


def test_squared_distances_by_their_parts():
    x, y = gg.placeholder((3,)), gg.placeholder((3,))
    made = gg.heal(gg.sum(x * x) - 2 * gg.sum(x * y) + gg.sum(y * y)).ys
    assert gg.compile([x, y], made)([1e8, 0.0, 1.0], [1e8 + 1, 0.0, 1.0]) == 1.0


def test_what_comes_last_is_read_as_it_was_written():
    """1 / (exp(x) - 1) alone has a form of its own, beside other factors it is part of theirs."""
    x = gg.placeholder(())
    alone = 1 / (gg.exp(x) - 1)
    names = [site.name for site in gg.heal([alone, alone * x]).sites]
    assert names == ["expm1", "inverse_expm1", "expm1c"]
