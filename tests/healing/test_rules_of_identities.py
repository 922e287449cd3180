"""What rules of several shapes rewrite, and what only looks like it."""

import math

import numpy as np
import pytest

import graphgrad as gg


def healed(f, *at):
    """Names of what fired, the value and the slopes."""
    with gg.Graph():
        xs = [gg.placeholder(()) for _ in at]
        made = gg.heal(f(*xs))
        run = gg.compile(xs, [made.ys, *gg.gradients(made.ys, xs)], optimize=False)
    with np.errstate(all="ignore"):
        return [site.name for site in made.sites], [float(v) for v in run(*at)]


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: x * x - 3.0 + 0 * y,
        lambda x, y: 2 * x * x - y * y,
        lambda x, y: -x * x - 1 - y * y,
        lambda x, y: 1 / gg.sin(x) - 2 / x + y,
        lambda x, y: 1 / gg.sin(x) - 1 / gg.sin(y),
        lambda x, y: gg.log(x + y),
        lambda x, y: gg.log(x * x - 2 * y),
        lambda x, y: x * x - x * y + y * y,
        lambda x, y: x - gg.log(x) - 2 + y,
    ],
)
def test_what_only_looks_like_an_instance_is_left_as_it_is(f):
    names, (value, *_) = healed(f, 0.7, 0.4)
    assert names == []
    with gg.Graph():
        want = gg.evaluate(f(gg.constant(0.7), gg.constant(0.4)))
    assert value == pytest.approx(float(want), rel=1e-15, nan_ok=True)


@pytest.mark.parametrize(
    ("f", "x", "want", "slope"),
    [
        (lambda x: gg.sin(x) / x**3, 0.5, math.sin(0.5) * 8, None),
        (lambda x: gg.sin(x) ** 2 / x**3, 0.5, math.sin(0.5) ** 2 * 8, None),
        (lambda x: x**3 / gg.tan(x), 1e-200, 0.0, 2e-200),
        (lambda x: x**3 * gg.log(gg.abs(x)), -2.0, -8 * math.log(2), None),
        (lambda x: x**2 * gg.log(gg.abs(x)), -2.0, 4 * math.log(2), -4 * math.log(2) - 2),
        (
            lambda x: x**3 * gg.log(x**2),
            -1e-100,
            2e-298 * math.log(10),
            3e-200 * math.log(1e-200) + 2e-200,
        ),
        (lambda x: gg.log(x / (2 - x)), 0.5, math.log(1 / 3), None),
        (lambda x: gg.log((1 - x) / x), 1e-20, -math.log(1e-20), -1e20),
        (lambda x: gg.log(-1 / x**3), -2.0, -math.log(8), None),
        (lambda x: gg.log(-2 / x), -1e-3, math.log(2000), None),
        (lambda x: gg.log(-gg.sinh(x)), -1.0, math.log(math.sinh(1)), None),
        (lambda x: gg.log(1 + gg.nn.sigmoid(x)), -40.0, math.exp(-40), math.exp(-40)),
        (lambda x: x - gg.log(x) + 2 * gg.sin(x) - 1, 1.0, 2 * math.sin(1), 2 * math.cos(1)),
        (lambda x: (gg.sin(x) - x) / x / x / x, 1e-20, -1 / 6, 1e-20 / 60),
        (lambda x: x / (gg.abs(x) + 1), 1e20, 1.0, 1e-40),
        (lambda x: 4 * x * x - 1, 0.5 + 1e-10, 4.0000003309615e-10, None),
        (lambda x: 1 - 2.25 * x * x, 1.0, -1.25, -4.5),
        (lambda x: (gg.exp(-x) + 3 * x) ** -0.5, 1.0, (math.exp(-1) + 3) ** -0.5, None),
        (lambda x: 2 / gg.expm1(x) ** 2, 720.0, 0.0, 0.0),
        (lambda x: gg.log10(gg.exp(x) ** 3), 1000.0, 3000 / math.log(10), 3 / math.log(10)),
    ],
)
def test_values_and_slopes_of_instances(f, x, want, slope):
    names, (value, dx) = healed(f, x)
    np.testing.assert_allclose(value, want, rtol=2e-7 if "squares" in str(names) else 1e-13)
    assert slope is None or dx == pytest.approx(slope, rel=1e-13, abs=1e-310)


def test_a_constant_beside_what_does_not_underflow_stays():
    assert healed(lambda x: gg.log(1 + gg.nn.sigmoid(x)), 0.5)[0] == ["log1p"]


def test_einsums_that_are_no_sums_of_equal_places():
    x = gg.placeholder((3,))
    a = gg.placeholder((2, 3, 2))
    ys = [
        gg.sqrt(gg.einsum("i,j->", x, x)),
        gg.sqrt(gg.einsum("abc,abc->ca", a, a)),
        gg.sqrt(gg.einsum("abc,abc->ac", a, a)),
    ]
    made = gg.heal(ys)
    assert [site.name for site in made.sites] == ["norm"]
    at = [np.arange(1.0, 4.0), np.arange(12.0).reshape(2, 3, 2)]
    for got, want in zip(*gg.compile([x, a], [made.ys, ys])(*at), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
