"""Logarithms to all digits: near 1, of what over- or underflows, and times their argument."""

from __future__ import annotations

import math
from functools import reduce

from ...ir.node import Tensor
from ...ops.base import like
from ...ops.create.creation import zeros_like
from ...ops.elementwise.bounds import maximum
from ...ops.elementwise.exponential import exp, expm1, log, log1p
from ...ops.elementwise.logic import isfinite, logical_and, logical_or, where
from ...ops.elementwise.magnitudes import abs as absolute
from ...ops.elementwise.magnitudes import sign
from ...ops.elementwise.trigonometry import arctanh, cos, sin, sinh, tanh
from ...ops.linalg.determinants import slogdet
from ...ops.nn.activations import log1mexp, sigmoid, softplus
from ...ops.reduce.reductions import mean as mean_of
from ...ops.reduce.reductions import sum as total_of
from ...ops.shape.reshaping import squeeze
from ...ops.sources import stop_gradient
from ...ops.special.error import erf, erfc, erfcx
from .quotients import expm1c, log1p_deficit, log1pc, sinc, sinh_excess, sinhc
from .stable import LOG2, chosen, finite_or_zero, gap, greatest, near_zero, sloped


def log_ratio(d: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """log(a / b) by the difference d = a - b where the ratio is near 1, else as it is."""
    part = d / b
    near = absolute(part) < 0.5
    by_gap = log1p(where(near, part, zeros_like(part)))
    return where(near, by_gap, log(where(near, like(1.0, part), a / b)))


@sloped(lambda dy, x: -dy / x / (1.0 + x))
def log1p_inverse(x: Tensor) -> Tensor:
    """log(1 + 1 / x)."""
    return log1p(1.0 / x)


def _x_log1p_inverse_slope(dy: Tensor, x: Tensor) -> Tensor:
    def far(u: Tensor) -> Tensor:
        return u * (1.0 / (1.0 + u) - log1p_deficit(u)) * u

    large = absolute(x) > 1.0
    size, small = where(large, x, 1.0), where(large, 1.0, x)
    return dy * where(large, far(1.0 / size), log1p_inverse(small) - 1.0 / (1.0 + small))


@sloped(_x_log1p_inverse_slope)
def x_log1p_inverse(x: Tensor) -> Tensor:
    """x log(1 + 1 / x)."""
    return x * log1p_inverse(x)


def log1p_square(x: Tensor) -> Tensor:
    """log(1 + x**2) without an overflow."""

    def far(x: Tensor) -> Tensor:
        inverse = 1.0 / absolute(x)
        return 2.0 * log(absolute(x)) + log1p(inverse * inverse)

    return near_zero(x, 1.0, lambda x: log1p(x * x), far)


def log1mexp_exp(x: Tensor) -> Tensor:
    """log(1 - exp(-exp(x))), which is x - exp(x) / 2 + ... where exp(x) underflows."""
    left = x < 0.0
    near, far = where(left, x, 0.0), where(left, 0.0, where(x > 8.0, 8.0, x))  # from 8 on it is 0
    return where(left, near + log(expm1c(-exp(near))), log1mexp(exp(far)))


def log_cosh(x: Tensor) -> Tensor:
    """log(cosh(x)) to all digits."""

    def near(x: Tensor) -> Tensor:
        s = sinh(x)
        return 0.5 * log1p(s * s)

    return near_zero(x, 1.0, near, lambda x: absolute(x) + softplus(-2.0 * absolute(x)) - LOG2)


def log_cos(x: Tensor) -> Tensor:
    """log(cos(x)) to all digits near 0."""

    def near(x: Tensor) -> Tensor:
        s = sin(x)
        return 0.5 * log1p(-s * s)

    return near_zero(x, 0.5, near, lambda x: log(cos(x)))


def log_tanh(x: Tensor) -> Tensor:
    """log(tanh(x)) to all digits where tanh rounds to 1, too; NaN for x < 0."""
    return chosen(x > 1.0, lambda x: log1p(-2.0 * sigmoid(-2.0 * x)), lambda x: log(tanh(x)), x)


def log_erf(x: Tensor) -> Tensor:
    """log(erf(x)) to all digits where erf rounds to 1, too; NaN for x < 0."""
    large = x > 1.0
    far = log1p(-erfc(where(large, x, 1.0)))
    return where(large, far, log(erf(where(large, 1.0, x))))


def log_tanh_slope(x: Tensor) -> Tensor:
    """log(1 / cosh(x)**2)."""
    return -2.0 * log_cosh(x)


@sloped(lambda dy, x: -dy * tanh(0.5 * x))
def log_sigmoid_slope(x: Tensor) -> Tensor:
    """log(sigmoid(x) sigmoid(-x))."""
    return -softplus(x) - softplus(-x)


def log_sigmoid_difference(x: Tensor, y: Tensor) -> Tensor:
    """log(sigmoid(x) - sigmoid(y)); NaN for x < y."""
    return log1mexp(gap(x, y)) - softplus(-x) - softplus(y)


def log_softplus(x: Tensor) -> Tensor:
    """log(log(1 + exp(x))), which is x where exp(x) underflows."""
    left = x < 0.0
    low = where(left, x, 0.0)
    return where(left, low + log(log1pc(exp(low))), log(softplus(where(left, 0.0, x))))


def log1m_square(x: Tensor) -> Tensor:
    """log(1 - x**2) by its factors."""
    small = absolute(x) < 0.5
    near, far = where(small, x, 0.0), where(small, 0.0, x)
    return where(small, log1p(-near * near), log1p(far) + log1p(-far))


def log_square_less_one(x: Tensor) -> Tensor:
    """log(x**2 - 1) by its factors."""
    size = absolute(x)
    return log(size - 1.0) + log1p(size)


def log_sinh(x: Tensor) -> Tensor:
    """log(sinh(x)) without an overflow; NaN for x < 0."""
    large = x >= 1.0
    far, low = where(large, x, 1.0), where(large, 1.0, x)
    return where(large, far + log1mexp(2.0 * far) - LOG2, log(sinh(low)))


def log_sinhc(x: Tensor) -> Tensor:
    """log(sinh(x) / x) to all digits; 0 at 0."""

    def far(x: Tensor) -> Tensor:
        size = absolute(x)
        return log_sinh(size) - log(size)

    return near_zero(x, 1.0, lambda x: log1p(x * sinh_excess(x) * x), far)


def log_expm1(x: Tensor) -> Tensor:
    """log(exp(x) - 1) without an overflow; NaN for x < 0."""
    large = x >= 1.0
    far, low = where(large, x, 1.0), where(large, 1.0, x)
    return where(large, far + log1mexp(far), log(expm1(low)))


def log_half_erfc(x: Tensor) -> Tensor:
    """log(erfc(x) / 2) where that underflows or rounds to 0, too."""
    left, right = x < 0.0, x > 1.0
    low, high = where(left, -x, 1.0), where(right, x, 1.0)
    mid = where(logical_or(left, right), 0.5, x)
    tails = where(left, log1p(-0.5 * erfc(low)), log(erfcx(high)) - high * high - LOG2)
    return where(logical_or(left, right), tails, log(0.5 * erfc(mid)))


def log_erfc(x: Tensor) -> Tensor:
    """log(erfc(x)) where erfc underflows, or rounds to 1, too."""
    right = x > 1.0
    high = where(right, x, 1.0)
    tail = log(erfcx(high)) - high * high
    return where(right, tail, log1p(-erf(where(right, 0.0, x))))


@sloped(lambda dy, x: dy / x / (1.0 - x))
def logit(x: Tensor) -> Tensor:
    """log(x / (1 - x)) to all digits near 1 / 2, too."""
    near = absolute(x - 0.5) < 0.25
    mid, far = where(near, x, 0.5), where(near, 0.25, x)
    return where(near, 2.0 * arctanh(2.0 * mid - 1.0), log(far) - log1p(-far))


def _exp_share(x: Tensor, y: Tensor) -> Tensor:
    return 1.0 / (1.0 + y * exp(-x))


@sloped(lambda dy, x, y: (-dy * _exp_share(x, y), dy * _exp_share(x, y) / y))
def log_share_of_exp(x: Tensor, y: Tensor) -> Tensor:
    """log(y / (y + exp(x)))."""
    ratio = exp(x) / y
    return where(ratio < 1.0, -log1p(ratio), -softplus(x - log(y)))


@sloped(lambda dy, x, y: (dy / (1.0 + exp(x) / y), -dy / (y + exp(x))))
def log_exp_share(x: Tensor, y: Tensor) -> Tensor:
    """log(exp(x) / (y + exp(x)))."""
    ratio = y * exp(-x)
    return where(ratio < 1.0, -log1p(ratio), -softplus(log(y) - x))


def log_exp_difference(x: Tensor, y: Tensor) -> Tensor:
    """log(exp(x) - exp(y)); NaN for x < y."""
    return x + log1mexp(gap(x, y))


def log_det(a: Tensor) -> Tensor:
    """log(det(a)); NaN where the determinant is negative."""
    sign_of, size = slogdet(a)
    return where(stop_gradient(sign_of) < 0, math.nan, size)


# --- of sums of exponentials --------------------------------------------------------------------


def shifted_log(*pairs: Tensor) -> Tensor:
    """log(w1 exp(x1) + w2 exp(x2) + ...) of (x1, w1, x2, w2, ...)."""
    xs, ws = pairs[::2], pairs[1::2]
    top = finite_or_zero(stop_gradient(reduce(maximum, xs)))
    total = reduce(lambda a, b: a + b, [w * exp(x - top) for x, w in zip(xs, ws, strict=True)])
    return top + log(total)


def weighted_log(axes: tuple[int, ...], keep: bool, x: Tensor, w: Tensor) -> Tensor:
    """log(sum(w exp(x)))."""
    top = finite_or_zero(stop_gradient(greatest(x, axes)))
    rest = log(total_of(w * exp(x - top), axes, keepdims=keep))
    return rest + (top if keep else squeeze(top, axes))


def log_mean(axes: tuple[int, ...], keep: bool, x: Tensor) -> Tensor:
    """log(mean(exp(x))), to all digits where that is near 0, too."""
    small = stop_gradient(greatest(absolute(x), axes, nothing=0.0)) < 0.5
    near, far = where(small, x, 0.0), where(small, 0.0, x)
    top = finite_or_zero(stop_gradient(greatest(far, axes)))
    large = top + log(mean_of(exp(far - top), axes, keepdims=True))
    y = where(small, log1p(mean_of(expm1(near), axes, keepdims=True)), large)
    return y if keep else squeeze(y, axes)


# --- over a power, and times their argument -----------------------------------------------------


def log_one_less_square_over(x: Tensor) -> Tensor:
    """log(1 - x**2) / x**2; -1 at 0."""
    return near_zero(x, 0.5, lambda x: -log1pc(-x * x), lambda x: log1m_square(x) / x / x)


def log_one_and_square_over(x: Tensor) -> Tensor:
    """log(1 + x**2) / x**2; 1 at 0."""
    return near_zero(x, 0.5, lambda x: log1pc(x * x), lambda x: log1p_square(x) / x / x)


def log_cosh_over(x: Tensor) -> Tensor:
    """log(cosh(x)) / x**2; 1/2 at 0."""

    def near(x: Tensor) -> Tensor:
        return 0.5 * sinhc(x) ** 2 * log1pc(sinh(x) ** 2)

    return near_zero(x, 0.5, near, lambda x: log_cosh(x) / x / x)


def log_cos_over(x: Tensor) -> Tensor:
    """log(cos(x)) / x**2; -1/2 at 0."""

    def near(x: Tensor) -> Tensor:
        return -0.5 * sinc(x) ** 2 * log1pc(-(sin(x) ** 2))

    return near_zero(x, 0.5, near, lambda x: log_cos(x) / x / x)


def _x_log_x_slope(dy: Tensor, x: Tensor) -> Tensor:
    there = x != 0
    return dy * where(there, log(where(there, x, 1.0)) + 1.0, 0.0)


@sloped(_x_log_x_slope)
def x_log_x(x: Tensor) -> Tensor:
    """x log(x); 0 at 0, where the slope is infinite and none flows."""
    return x * log(where(x != 0, x, 1.0))


def x_log_y(x: Tensor, y: Tensor) -> Tensor:
    """x log(y); 0 where x is 0 and y is not negative."""
    there = logical_or(x != 0, y < 0)
    return x * log(where(logical_or(there, y > 0), y, 1.0))


def x_log_ratio(x: Tensor, y: Tensor) -> Tensor:
    """x log(x / y); 0 for x = 0, where the slope is infinite and none flows."""
    nought = logical_and(x == 0, y != 0)
    apart = sign(x) * sign(y) < 0
    near = logical_and(absolute(x - y) <= 0.5 * absolute(y), isfinite(y))
    a, b = where(near, x, 1.0), where(near, y, 1.0)
    far = logical_or(logical_or(near, nought), apart)
    c, d = where(far, 1.0, absolute(x)), where(far, 1.0, absolute(y))
    value = where(near, log1p((a - b) / b), log(c) - log(d))
    return x * where(apart, math.nan, value)


def log1p_times(x: Tensor) -> Tensor:
    """(1 + x) log(1 + x); 0 at x = -1."""
    there = x != -1
    return (1.0 + x) * log1p(where(there, x, 0.0))


# --- less their tangents ------------------------------------------------------------------------


def _divergence_slopes(dy: Tensor, d: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    there = x != 0
    by = log_ratio(where(there, d, 0.0), where(there, x, y), y)
    return zeros_like(d), dy * where(there, by, 0.0), -dy * (d / y)


@sloped(_divergence_slopes)
def _divergence(d: Tensor, x: Tensor, y: Tensor) -> Tensor:
    near = absolute(d) <= 0.5 * absolute(y)
    b = where(near, y, 1.0)
    q = where(near, d, 0.0) / b
    by_gap = b * (q * (log1pc(q) - log1p_deficit(q)) * q)
    return where(near, by_gap, x_log_ratio(where(near, 1.0, x), where(near, 1.0, y)) - d)


def divergence(x: Tensor, y: Tensor) -> Tensor:
    """x log(x / y) - x + y."""
    return _divergence(x - y, x, y)


@sloped(lambda dy, x, y: (dy * ((x - y) / x) / x, dy * ((y - x) / x) / y))
def log_ratio_less_tangent(x: Tensor, y: Tensor) -> Tensor:
    """y / x + log(x / y) - 1."""
    return _divergence(x - y, x, y) / x


def divergence_of_two(x: Tensor, y: Tensor) -> Tensor:
    """x log(x / y) + (1 - x) log((1 - x) / (1 - y))."""
    return _divergence(x - y, x, y) + _divergence(y - x, 1.0 - x, 1.0 - y)


def _less_tangent(u: Tensor, far: Tensor) -> Tensor:
    """u - log(1 + u) where u is small, else what is far."""
    near = absolute(u) < 0.5
    small = where(near, u, 0.0)
    return where(near, small * log1p_deficit(small) * small, far)


@sloped(lambda dy, x: dy * ((x - 1.0) / x))
def log_less_tangent(x: Tensor) -> Tensor:
    """x - log(x) - 1."""
    return _less_tangent(x - 1.0, x - log(x) - 1.0)


@sloped(lambda dy, x: 2.0 * dy * ((x - 1.0) * ((x + 1.0) / x)))
def log_square_less_tangent(x: Tensor) -> Tensor:
    """x**2 - 2 log(x) - 1."""
    return _less_tangent((x - 1.0) * (x + 1.0), x * x - 2.0 * log(x) - 1.0)
