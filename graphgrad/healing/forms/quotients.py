"""What is left of a function over the power of x with which it vanishes at 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

from ...ir.node import Tensor
from ...ops.base import apply
from ...ops.elementwise.exponential import exp, expm1, log1p
from ...ops.elementwise.logic import logical_or, where
from ...ops.elementwise.magnitudes import abs as absolute
from ...ops.elementwise.sinc import SphericalBessel
from ...ops.elementwise.trigonometry import arcsin, arctan, cos, sinh, tan, tanh
from .exponentials import csch, inverse_expm1
from .stable import Function, StableForm, near_zero, series, sloped


def _factorials(first: int, step: int, signs: int, terms: int = 14) -> list[float]:
    return [signs**k / math.factorial(first + step * k) for k in range(terms)]


def _even(coefficients: Sequence[float]) -> Function:
    return lambda x: series(x * x, coefficients)


def _bernoulli(n: int) -> list[float]:
    """B_0, B_2, ..., B_{2n-2} by zeta(2k), of which the sum is known to all digits."""
    out = [1.0, 1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]
    for k in range(len(out), n):
        zeta = sum(m ** (-2.0 * k) for m in range(1, 40))
        out.append((-1) ** (k + 1) * 2 * math.factorial(2 * k) / (2 * math.pi) ** (2 * k) * zeta)
    return out[:n]


_B = _bernoulli(20)
_TANH = [_B[k] * 4**k * (4**k - 1) / math.factorial(2 * k) for k in range(1, 20)]
_COTH = [_B[k] * 4**k / math.factorial(2 * k) for k in range(1, 20)]
_ARCTAN = [(-1) ** k / (2 * k + 1) for k in range(20)]
_ARCSIN = [math.comb(2 * k, k) / 4**k / (2 * k + 1) for k in range(20)]
_LOG1P = [(-1) ** k / (k + 1) for k in range(22)]


def sinc(x: Tensor) -> Tensor:
    """sin(x) / x; 1 at 0."""
    return apply(SphericalBessel(0), x)


@sloped(lambda dy, x: dy * (growth(x) * (1.0 - 1.0 / x)))
def growth(x: Tensor) -> Tensor:
    """exp(x) / x for x > 1. Its slope growth(x) (1 - 1 / x) is one product where it overflows."""
    half = exp(0.5 * x)
    return half / x * half


def sinhc(x: Tensor) -> Tensor:
    """sinh(x) / x; 1 at 0."""

    def far(x: Tensor) -> Tensor:
        large = absolute(x) > 40.0
        mid, size = where(large, 1.0, x), where(large, absolute(x), 40.0)
        return where(large, 0.5 * growth(size), sinh(mid) / mid)

    return near_zero(x, 1.0, _even(_factorials(1, 2, 1)), far)


def tanc(x: Tensor) -> Tensor:
    """tan(x) / x; 1 at 0."""
    return sinc(x) / cos(x)


def tanhc(x: Tensor) -> Tensor:
    """tanh(x) / x; 1 at 0."""
    return near_zero(x, 0.5, _even(_TANH), lambda x: tanh(x) / x)


def arctanc(x: Tensor) -> Tensor:
    """arctan(x) / x; 1 at 0."""
    return near_zero(x, 0.3, _even(_ARCTAN), lambda x: arctan(x) / x)


def arcsinc(x: Tensor) -> Tensor:
    """arcsin(x) / x; 1 at 0."""
    return near_zero(x, 0.3, _even(_ARCSIN), lambda x: arcsin(x) / x)


def expm1c(x: Tensor) -> Tensor:
    """(exp(x) - 1) / x; 1 at 0."""
    small, large = absolute(x) < 1.0, x > 40.0
    near = series(where(small, x, 0.0), _factorials(1, 1, 1, 21))
    other = where(logical_or(small, large), 1.0, x)
    far = where(large, growth(where(large, x, 40.0)), expm1(other) / other)
    return where(small, near, far)


def expm1c_slope(x: Tensor) -> Tensor:
    """The slope of (exp(x) - 1) / x; 1/2 at 0."""
    coefficients = [(k + 1) / math.factorial(k + 2) for k in range(22)]
    return near_zero(x, 2.0, lambda x: series(x, coefficients), lambda x: (exp(x) - expm1c(x)) / x)


def log1pc(x: Tensor) -> Tensor:
    """log(1 + x) / x; 1 at 0."""
    return near_zero(x, 0.1, lambda x: series(x, _LOG1P), lambda x: log1p(x) / x)


# --- what is left of a difference ---------------------------------------------------------------


def sin_deficit(x: Tensor) -> Tensor:
    """(x - sin(x)) / x**3; 1/6 at 0."""
    return near_zero(x, 2.0, _even(_factorials(3, 2, -1)), lambda x: (1.0 - sinc(x)) / x / x)


def sinh_excess(x: Tensor) -> Tensor:
    """(sinh(x) - x) / x**3; 1/6 at 0."""
    return near_zero(x, 2.0, _even(_factorials(3, 2, 1)), lambda x: (sinhc(x) - 1.0) / x / x)


def tan_excess(x: Tensor) -> Tensor:
    """(tan(x) - x) / x**3; 1/3 at 0."""
    signs = [(-1) ** (k + 1) * c for k, c in enumerate(_TANH[1:])]
    return near_zero(x, 0.5, _even(signs), lambda x: (tan(x) - x) / x / x / x)


def arctan_deficit(x: Tensor) -> Tensor:
    """(x - arctan(x)) / x**3; 1/3 at 0."""
    signs = [-c for c in _ARCTAN[1:]]
    return near_zero(x, 0.3, _even(signs), lambda x: (x - arctan(x)) / x / x / x)


def tanh_deficit(x: Tensor) -> Tensor:
    """(x - tanh(x)) / x**3; 1/3 at 0."""
    signs = [-c for c in _TANH[1:]]
    return near_zero(x, 0.5, _even(signs), lambda x: (x - tanh(x)) / x / x / x)


def spherical_excess(x: Tensor) -> Tensor:
    """(sin(x) - x cos(x)) / x**3; 1/3 at 0."""
    near = [2 * (j + 1) * c for j, c in enumerate(_factorials(3, 2, -1))]
    return near_zero(x, 2.0, _even(near), lambda x: (sinc(x) - cos(x)) / x / x)


def expm1_excess(x: Tensor) -> Tensor:
    """(exp(x) - 1 - x) / x**2; 1/2 at 0."""
    coefficients = _factorials(2, 1, 1, 22)
    return near_zero(x, 2.0, lambda x: series(x, coefficients), lambda x: (expm1c(x) - 1.0) / x)


def log1p_deficit(x: Tensor) -> Tensor:
    """(x - log(1 + x)) / x**2; 1/2 at 0."""
    signs = [-c for c in _LOG1P[1:]]
    return near_zero(x, 0.1, lambda x: series(x, signs), lambda x: (1.0 - log1pc(x)) / x)


def vanishing(form: StableForm, order: int, radius: float, naive: Function, x: Tensor) -> Tensor:
    """x**order times a form for |x| below a radius, else what is written."""

    def near(x: Tensor) -> Tensor:
        return reduce(lambda y, _: y * x, range(order), form(x))

    return near_zero(x, radius, near, naive)


def vanishing_ratio(
    order: int, f: StableForm, g: StableForm, above: Any, below: Any, x: Tensor
) -> Tensor:
    """x**order f(x) / g(x) for |x| < 1, else what is written: a call of above over one of below."""

    def near(x: Tensor) -> Tensor:
        left = x ** abs(order)
        return f(x) / g(x) * left if order > 0 else f(x) / g(x) if not order else f(x) / g(x) / left

    return near_zero(x, 1.0, near, lambda x: called(above, x) / called(below, x))


def called(key: Any, x: Tensor) -> Tensor:
    """What a term calls, an op or a form, of a tensor."""
    made: Tensor = key(x) if isinstance(key, StableForm) else apply(key, x)
    return made


# --- what 1 / f is ------------------------------------------------------------------------------


def over(form: StableForm, key: Any, x: Tensor) -> Tensor:
    """x / f(x) of f(x) = x form(x), which a term calls; 1 at 0."""
    return near_zero(x, 0.5, lambda x: 1.0 / form(x), lambda x: x / called(key, x))


def bernoulli(x: Tensor) -> Tensor:
    """x / (exp(x) - 1); 1 at 0."""
    large = x > 1.0
    far = where(large, x, 1.0)
    low = near_zero(where(large, 0.0, x), 1.0, lambda x: 1.0 / expm1c(x), lambda x: x / expm1(x))
    return where(large, far * exp(-far) / -expm1(-far), low)


def x_over_sinh(x: Tensor) -> Tensor:
    """x / sinh(x); 1 at 0."""
    return near_zero(x, 1.0, lambda x: 1.0 / sinhc(x), lambda x: x * csch(x))


# --- what is left of 1 / f without 1 / x --------------------------------------------------------


def langevin(x: Tensor) -> Tensor:
    """1 / tanh(x) - 1 / x; 0 at 0."""
    return near_zero(x, 1.0, lambda x: x * series(x * x, _COTH), lambda x: 1.0 / tanh(x) - 1.0 / x)


def bose(x: Tensor) -> Tensor:
    """1 / (exp(x) - 1) - 1 / x; -1/2 at 0."""
    return near_zero(
        x,
        2.0,
        lambda x: 0.5 * (langevin(0.5 * x) - 1.0),
        lambda x: inverse_expm1(x) - 1.0 / x,
    )


def without_pole(
    sign: float,
    power: int,
    left: StableForm,
    slope: StableForm,
    inverse: StableForm,
    rest: int,
    x: Tensor,
) -> Tensor:
    """(1 / f(x) - 1 / x) / x**rest of f(x) = x slope(x) = x + sign x**(2 + power) left(x)."""

    def near(x: Tensor) -> Tensor:
        made = -sign * left(x) / slope(x)
        return made * x if power > rest else made

    def far(x: Tensor) -> Tensor:
        made = inverse(x) - 1.0 / x
        return made / x if rest else made

    return near_zero(x, 1.0, near, far)


def reciprocal_of(key: Any, x: Tensor) -> Tensor:
    """1 over what a term calls."""
    return 1.0 / called(key, x)


def cancelled_poles(poles: tuple[tuple[Any, Any, float, float], ...], x: Tensor) -> Tensor:
    """The sum of c / f(a x) of (what is left of 1 / f without its pole, 1 / f, a, c).

    Their poles at 0 cancel. As far as the slowest of them is near, they are left out.
    """
    radius = 1 / min(abs(a) for _, _, a, _ in poles)

    def near(x: Tensor) -> Tensor:
        return _total([c * left(a * x) for left, _, a, c in poles if left is not None])

    def far(x: Tensor) -> Tensor:
        return _total([c / (a * x) if f is None else c * f(a * x) for _, f, a, c in poles])

    return near_zero(x, radius, near, far)


def _total(parts: list[Tensor]) -> Tensor:
    return reduce(lambda a, b: a + b, parts)
