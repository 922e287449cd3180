"""Second derivatives of healed scalar formulas, beside Taylor arithmetic in many digits."""

import numpy as np
import pytest

import graphgrad as gg

mpmath = pytest.importorskip("mpmath")
AT = (-3.0, -0.7, 1e-5, 1e-3, 0.4, 1.3, 6.0, 25.0)


class Mp:
    """The functions, of numbers of many digits."""

    def __getattr__(self, name):
        return getattr(mpmath, {"arctan": "atan", "arcsin": "asin", "abs": "fabs"}.get(name, name))

    @staticmethod
    def sigmoid(x):
        return 1 / (1 + mpmath.exp(-x))


class Gg:
    """The functions, of tensors."""

    def __getattr__(self, name):
        return (
            gg.nn.sigmoid
            if name == "sigmoid"
            else getattr(gg, name, None) or getattr(gg.special, name)
        )


FORMS = {
    "log1pexp": lambda m, x: m.log(1 + m.exp(x)),
    "log1pexp of 2 x": lambda m, x: m.log(3 + m.exp(2 * x)),
    "log sigmoid": lambda m, x: m.log(m.sigmoid(x)),
    "1 - sigmoid": lambda m, x: 1 - m.sigmoid(x),
    "sigmoid": lambda m, x: 1 / (1 + m.exp(-x)),
    "slope of sigmoid": lambda m, x: m.exp(x) / (1 + m.exp(x)) ** 2,
    "swish": lambda m, x: x / (1 + m.exp(-x)),
    "tanh": lambda m, x: (m.exp(x) - m.exp(-x)) / (m.exp(x) + m.exp(-x)),
    "1 - tanh**2": lambda m, x: 1 - m.tanh(x) ** 2,
    "1 - tanh": lambda m, x: 1 - m.tanh(x),
    "expm1": lambda m, x: m.exp(x) - 1,
    "expm1 / x": lambda m, x: (m.exp(x) - 1) / x,
    "x / expm1": lambda m, x: x / (m.exp(x) - 1),
    "phi2": lambda m, x: (m.exp(x) - 1 - x) / x**2,
    "sin / x": lambda m, x: m.sin(x) / x,
    "sinh / x": lambda m, x: m.sinh(x) / x,
    "tanh / x": lambda m, x: m.tanh(x) / x,
    "x / tanh": lambda m, x: x / m.tanh(x),
    "x / sinh": lambda m, x: x / m.sinh(x),
    "arctan / x": lambda m, x: m.arctan(x) / x,
    "(1 - cos) / x**2": lambda m, x: (1 - m.cos(x)) / x**2,
    "1 - cos": lambda m, x: 1 - m.cos(x),
    "cosh - 1": lambda m, x: m.cosh(x) - 1,
    "x - sin": lambda m, x: x - m.sin(x),
    "(x - sin) / x**3": lambda m, x: (x - m.sin(x)) / x**3,
    "x - tanh": lambda m, x: x - m.tanh(x),
    "x - arctan": lambda m, x: x - m.arctan(x),
    "langevin": lambda m, x: m.cosh(x) / m.sinh(x) - 1 / x,
    "bose": lambda m, x: 1 / (m.exp(x) - 1) - 1 / x,
    "log cosh": lambda m, x: m.log(m.cosh(x)),
    "log(1 + x**2)": lambda m, x: m.log(1 + x * x),
    "hypot": lambda m, x: m.sqrt(x * x + 1),
    "softsign": lambda m, x: x / m.sqrt(1 + x * x),
    "lorentz": lambda m, x: x / (1 + x * x),
    "arcsinh": lambda m, x: m.log(x + m.sqrt(x * x + 1)),
    "gumbel": lambda m, x: m.exp(x - m.exp(x)),
    "sech": lambda m, x: 1 / m.cosh(x),
    "csch": lambda m, x: 1 / m.sinh(x),
    "erfc": lambda m, x: 1 - m.erf(x),
    "scaled tail": lambda m, x: m.exp(x * x) * m.erfc(x),
    "arctan step": lambda m, x: m.arctan(x + 1) - m.arctan(x),
    "sigmoid difference": lambda m, x: m.sigmoid(x) - m.sigmoid(2 * x),
    "exp difference": lambda m, x: m.exp(x) - m.exp(2 * x),
    "reciprocals": lambda m, x: 1 / (x + 9) - 1 / (x + 10),
    "x**2 log x": lambda m, x: x**2 * m.log(x),
    "log(x) step": lambda m, x: m.log(x + 1) - m.log(x),
    "root step": lambda m, x: m.sqrt(x + 1) - m.sqrt(x),
}
POSITIVE = ("x**2 log x", "log(x) step", "root step")


def second_derivative(f, x):
    with mpmath.workdps(120):
        return float(mpmath.diff(lambda t: f(Mp(), t), mpmath.mpf(x), 2, h=mpmath.mpf(10) ** -40))


@pytest.mark.parametrize("name", FORMS)
def test_the_second_derivative_is_that_of_many_digits(name):
    f = FORMS[name]
    points = [p for p in AT if p > 0 or name not in POSITIVE]
    with gg.Graph():
        x = gg.placeholder(())
        made = gg.heal(f(Gg(), x))
        first = gg.gradients(made.ys, x)
        run = gg.compile(x, gg.gradients(first, x))
    assert made.sites
    want = [second_derivative(f, p) for p in points]
    np.testing.assert_allclose([run(p) for p in points], want, rtol=1e-6, atol=1e-290)
