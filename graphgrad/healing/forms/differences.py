"""Differences of what is nearly equal, and what they are over the difference of arguments."""

from __future__ import annotations

import math

from ...ir.node import Tensor
from ...ops.base import like
from ...ops.create.creation import ones_like
from ...ops.elementwise.bounds import maximum, minimum
from ...ops.elementwise.exponential import exp, expm1, log, log1p, sqrt
from ...ops.elementwise.logic import isfinite, logical_and, logical_not, logical_or, where
from ...ops.elementwise.magnitudes import abs as absolute
from ...ops.elementwise.trigonometry import arctan, cos, sin, sinh, tanh
from ...ops.nn.activations import sigmoid
from ...ops.special.error import erf, erfc
from .exponentials import sigmoid_slope
from .norms import lengths
from .quotients import expm1c, expm1c_slope, sinc
from .stable import Function, gap, near_zero, series, signed_gap, sloped

_ARCTANH = [1 / (2 * k + 1) for k in range(15)]


def _inverse_of_one_and_square(x: Tensor) -> Tensor:
    by = 1.0 / lengths(x, ones_like(x))
    return by * by


@sloped(lambda dy, x, y: (dy * exp(x), -dy * exp(y)))
def exp_difference(x: Tensor, y: Tensor) -> Tensor:
    """exp(x) - exp(y), with the larger one as a factor."""
    return signed_gap(x, y, lambda top, low: exp(top) * expm1(gap(low, top)))


@sloped(lambda dy, x, y: (dy * sigmoid_slope(x), -dy * sigmoid_slope(y)))
def sigmoid_difference(x: Tensor, y: Tensor) -> Tensor:
    """sigmoid(x) - sigmoid(y), of which neither rounds to 1."""
    return signed_gap(x, y, lambda top, low: sigmoid(top) * sigmoid(-low) * expm1(gap(low, top)))


def tanh_difference(x: Tensor, y: Tensor) -> Tensor:
    """tanh(x) - tanh(y), of which neither rounds to 1."""
    return 2.0 * sigmoid_difference(2.0 * x, 2.0 * y)


def _near(x: Tensor, y: Tensor) -> Tensor:
    """Where sines and cosines of x and y are so near to each other that they cancel."""
    return absolute(x - y) * (1.0 + absolute(x)) < 1.0


@sloped(lambda dy, x, y: (-dy * sin(x), dy * sin(y)))
def cos_difference(x: Tensor, y: Tensor) -> Tensor:
    """cos(x) - cos(y) by the sines of half their sum and difference."""
    both = -2.0 * sin(0.5 * x + 0.5 * y) * sin(0.5 * x - 0.5 * y)
    return where(_near(x, y), both, cos(x) - cos(y))


@sloped(lambda dy, x, y: (dy * cos(x), -dy * cos(y)))
def sin_difference(x: Tensor, y: Tensor) -> Tensor:
    """sin(x) - sin(y) by the cosine of half their sum and the sine of half their difference."""
    both = 2.0 * cos(0.5 * x + 0.5 * y) * sin(0.5 * x - 0.5 * y)
    return where(_near(x, y), both, sin(x) - sin(y))


@sloped(lambda dy, x, y: (dy * _inverse_of_one_and_square(x), -dy * _inverse_of_one_and_square(y)))
def arctan_difference(x: Tensor, y: Tensor) -> Tensor:
    """arctan(x) - arctan(y) by one angle, where that is small."""
    large = minimum(absolute(x), absolute(y)) > 1.0
    below = where(large, y, 1.0)
    part = (x - y) / below
    whole = where(large, x + 1.0 / below, 1.0 + where(large, 0.0, x) * where(large, 0.0, y))
    near = logical_and(absolute(part) < 0.5 * absolute(whole), isfinite(x + y))
    near = logical_and(near, whole * below > 0)
    angle_of = arctan(where(near, part, 0.0) / where(near, whole, 1.0))
    return where(near, angle_of, arctan(x) - arctan(y))


def _log_ratio_slopes(dy: Tensor, d: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    near, by = _by_ratio(d, b), dy / a
    return where(near, by, 0.0), where(near, 0.0, by), where(near, -by * (d / b), -dy / b)


def _by_ratio(d: Tensor, b: Tensor) -> Tensor:
    return logical_and(d / absolute(b) > -0.5, absolute(d / b) < math.inf)


@sloped(_log_ratio_slopes)
def log_ratio_difference(d: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """log(a) - log(b) of d = a - b; NaN where either is."""
    near = logical_and(b > 0, _by_ratio(d, b))
    return where(near, log1p(where(near, d / absolute(b), 0.0)), log(a) - log(b))


def erf_difference(x: Tensor, y: Tensor) -> Tensor:
    """erf(x) - erf(y), by the tail in which both are."""
    right, left = minimum(x, y) > 0.5, maximum(x, y) < -0.5
    flip = where(left, like(-1.0, x), 1.0)
    tail = logical_or(right, left)
    a, b = where(tail, flip * x, 1.0), where(tail, flip * y, 1.0)
    c, d = where(tail, 0.0, x), where(tail, 0.0, y)
    return where(tail, flip * (erfc(b) - erfc(a)), erf(c) - erf(d))


def _gap_by_roots(dy: Tensor, d: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    finite, by = isfinite(d), dy / (a + b)
    along = -by * (d / (a + b))
    return where(finite, by, 0.0), where(finite, along, dy), where(finite, along, -dy)


@sloped(_gap_by_roots)
def gap_by_roots(d: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """d / (a + b) of d = a**2 - b**2, which is a - b; that itself where d is infinite."""
    finite = isfinite(d)
    return where(finite, where(finite, d, 0.0) / (a + b), a - b)


def gap_by_reciprocals(d: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """d / a / b of d = b - a, which is 1 / a - 1 / b; that itself where d is infinite."""
    finite = isfinite(d)
    return where(
        finite,
        where(finite, d, 0.0) / where(finite, a, 1.0) / where(finite, b, 1.0),
        1.0 / where(finite, 1.0, a) - 1.0 / where(finite, 1.0, b),
    )


# --- differences over what they vanish with -----------------------------------------------------


def _divided_exp_slopes(dy: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    top, away = maximum(x, y), -absolute(x - y)
    less = expm1c_slope(away)
    more = expm1c(away) - less
    return tuple([dy * (exp(top) * where(first, more, less)) for first in (x >= y, x < y)])


@sloped(_divided_exp_slopes)
def divided_exp(x: Tensor, y: Tensor) -> Tensor:
    """(exp(x) - exp(y)) / (x - y), with the larger one as a factor."""
    return exp(maximum(x, y)) * expm1c(-absolute(x - y))


def _divided(x: Tensor, y: Tensor, near: Function, far: Function) -> Tensor:
    """near(middle, difference) where the difference is small, else far(x, y) over it."""
    d, small = x - y, _near(x, y)
    by = where(small, 1.0, d)
    return where(small, near(0.5 * x + 0.5 * y, where(small, d, 0.0)), far(x, y) / by)


def divided_sin(x: Tensor, y: Tensor) -> Tensor:
    """(sin(x) - sin(y)) / (x - y)."""
    return _divided(x, y, lambda m, d: cos(m) * sinc(0.5 * d), sin_difference)


def divided_cos(x: Tensor, y: Tensor) -> Tensor:
    """(cos(x) - cos(y)) / (x - y)."""
    return _divided(x, y, lambda m, d: -sin(m) * sinc(0.5 * d), cos_difference)


def divided_log(x: Tensor, y: Tensor) -> Tensor:
    """(log(x) - log(y)) / (x - y), by arctanh of the difference over the sum."""
    near = logical_and(absolute(x - y) < 0.25 * absolute(x + y), x > 0)
    a, b = where(near, x, 1.0), where(near, y, 1.0)
    by, d = 1.0 / (a + b), where(near, 1.0, x - y)
    q = (a - b) * by
    return where(near, 2.0 * by * series(q * q, _ARCTANH), (log(x) - log(y)) / d)


def divided_root(x: Tensor, y: Tensor) -> Tensor:
    """(sqrt(x) - sqrt(y)) / (x - y)."""
    return 1.0 / (sqrt(x) + sqrt(y))


def _compound_slopes(dy: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return dy * (y * compound(x, y - 1.0)), dy * (compound(x, y) * log1p(x))


@sloped(_compound_slopes)
def compound(x: Tensor, y: Tensor) -> Tensor:
    """(1 + x)**y; what the sum is rounded by is made up for."""
    one = 1.0 + x
    inside = absolute(x) < 1.0
    rest = where(inside, where(inside, x, 0.0) - (where(inside, one, 1.0) - 1.0), 0.0)
    power = one**y
    exact = logical_or(rest == 0, logical_or(power == 0, logical_not(isfinite(power))))
    return power * exp(where(exact, 0.0, y) * (where(exact, 0.0, rest) / where(exact, 1.0, one)))


@sloped(_compound_slopes)
def compound_less_one(x: Tensor, y: Tensor) -> Tensor:
    """(1 + x)**y - 1."""
    power = y * log1p(x)
    return where(absolute(power) < 0.5, expm1(power), compound(x, y) - 1.0)


def sinh_less_tanh(x: Tensor) -> Tensor:
    """sinh(x) - tanh(x) to all digits."""

    def near(x: Tensor) -> Tensor:
        s = sinh(0.5 * x)
        return 2.0 * tanh(x) * (s * s)

    return near_zero(x, 1.0, near, lambda x: sinh(x) - tanh(x))


@sloped(lambda dy, x, y: (2.0 * dy * x, -2.0 * dy * y))
def difference_of_squares(x: Tensor, y: Tensor) -> Tensor:
    """x**2 - y**2 by its factors."""
    return (x - y) * (x + y)
