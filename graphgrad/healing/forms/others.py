"""Moments, products, powers, gamma functions, tails of the error function."""

from __future__ import annotations

import math
from functools import reduce

from ...differentiate.site import Site
from ...ir.node import Tensor
from ...ops.elementwise.exponential import exp, log
from ...ops.elementwise.logic import isfinite, logical_and, where
from ...ops.elementwise.magnitudes import abs as absolute
from ...ops.elementwise.number_parts import frexp, ldexp
from ...ops.elementwise.rounding import floor
from ...ops.reduce.reductions import mean as mean_of
from ...ops.reduce.reductions import prod as product_of
from ...ops.reduce.reductions import sum as total_of
from ...ops.shape.reshaping import squeeze
from ...ops.sources import stop_gradient
from ...ops.special.error import erfc, erfcx
from ...regions.rules import own_rule
from ...regions.scopes import override_gradient
from .norms import scaled_root
from .stable import chosen, series, sloped


def tail_ratio(x: Tensor) -> Tensor:
    """exp(-x**2) / erfc(x) where both underflow, too."""
    return chosen(x < 0.0, lambda x: exp(-x * x) / erfc(x), lambda x: 1.0 / erfcx(x), x)


@sloped(lambda dy, x: dy / (1.0 + absolute(x)) / (1.0 + absolute(x)))
def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return x / (1.0 + absolute(x))


def _centred(axes: tuple[int, ...], x: Tensor) -> Tensor:
    """x without its mean, and without what that was rounded by."""
    c = x - mean_of(x, axes, keepdims=True)
    return c - mean_of(c, axes, keepdims=True)


def variance(axes: tuple[int, ...], keep: bool, x: Tensor) -> Tensor:
    """mean(x * x) - mean(x)**2 of what is left of x without its mean."""
    c = _centred(axes, x)
    return mean_of(c * c, axes, keepdims=keep)


def covariance(axes: tuple[int, ...], keep: bool, x: Tensor, y: Tensor) -> Tensor:
    """mean(x * y) - mean(x) mean(y) of what is left of both without their means."""
    return mean_of(_centred(axes, x) * _centred(axes, y), axes, keepdims=keep)


def product_of_logs(axes: tuple[int, ...], keep: bool, x: Tensor) -> Tensor:
    """exp(sum(log(x))): the product, whatever order overflows on the way; NaN for x < 0."""
    ordinary = logical_and(isfinite(x), x > 0)
    _, e = frexp(stop_gradient(where(ordinary, x, 1.0)))
    power = total_of(e, axes, keepdims=True)
    half = power // 2
    y = product_of(ldexp(where(x < 0, math.nan, x), -e), axes, keepdims=True)
    y = ldexp(ldexp(y, half), power - half)
    return y if keep else squeeze(y, axes)


def geometric(n: int, x: Tensor) -> Tensor:
    """(1 - x**n) / (1 - x): 1 + x + ... + x**(n-1)."""
    return series(x, [1.0] * n)


def gammaln_step(n: int, x: Tensor) -> Tensor:
    """gammaln(x + n) - gammaln(x): log|x| + ... + log|x + n - 1|; NaN where both are poles."""
    return _unless_poles(n, x, reduce(lambda a, b: a + b, [log(absolute(x + k)) for k in range(n)]))


def digamma_step(n: int, x: Tensor) -> Tensor:
    """digamma(x + n) - digamma(x): 1 / x + ... + 1 / (x + n - 1); NaN where both are poles."""
    return _unless_poles(n, x, reduce(lambda a, b: a + b, [1.0 / (x + k) for k in range(n)]))


def _unless_poles(n: int, x: Tensor, y: Tensor) -> Tensor:
    return where(logical_and(x == floor(x), x <= -n), math.nan, y)


def _power_less_one_slope(site: Site, dy: Tensor) -> Tensor:
    (x,) = site.inputs
    n: int = site.attrs["n"]
    return dy * (n * (1.0 + x) ** (n - 1))


POWER_LESS_ONE = own_rule("gg.healing.power_less_one", _power_less_one_slope, contract="exact")


def power_less_one(n: int, x: Tensor) -> Tensor:
    """(1 + x)**n - 1."""
    with override_gradient(POWER_LESS_ONE, inputs=[x], n=n):
        return x * geometric(n, 1.0 + x)


def larger_root(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """(-b + sqrt(b**2 - 4 a c)) / (2 a) without cancelling."""
    root = scaled_root((1.0, -4.0), b, b, a, c)
    away = b > 0
    far = where(away, root + where(away, b, 0.0), 1.0)
    return where(away, -2.0 * c / far, 0.5 * (root - where(away, 0.0, b)) / a)
