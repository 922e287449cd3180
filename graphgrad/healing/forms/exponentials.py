"""Quotients by exponentials, and shares of a sum of them, that do not overflow."""

from __future__ import annotations

import math

from ...ir.node import Tensor
from ...ops.base import apply
from ...ops.elementwise.exponential import SigmoidSlope, TanhSlope, exp, expm1
from ...ops.elementwise.logic import logical_and, where
from ...ops.elementwise.magnitudes import abs as absolute
from ...ops.elementwise.magnitudes import sign
from ...ops.elementwise.trigonometry import sinh, tanh
from ...ops.nn.softmaxes import softmax
from ...ops.reduce.reductions import sum as total_of
from ...ops.sources import stop_gradient
from .stable import finite_or_zero, greatest, sloped


def sigmoid_slope(x: Tensor) -> Tensor:
    """sigmoid(x) sigmoid(-x)."""
    return apply(SigmoidSlope(), x)


def tanh_slope(x: Tensor) -> Tensor:
    """1 / cosh(x)**2."""
    return apply(TanhSlope(), x)


@sloped(lambda dy, x: -dy * (sech(x) * tanh(x)))
def sech(x: Tensor) -> Tensor:
    """1 / cosh(x) without an overflow; its slope is -sech(x) tanh(x)."""
    size = absolute(x)
    return 2.0 * exp(-size) / (1.0 + exp(-2.0 * size))


@sloped(lambda dy, x: -dy * (csch(x) / tanh(x)))
def csch(x: Tensor) -> Tensor:
    """1 / sinh(x) without an overflow; its slope is -csch(x) coth(x)."""
    large = absolute(x) > 40.0
    far = where(large, x, 40.0)
    return where(large, sign(far) * 2.0 * exp(-absolute(far)), 1.0 / sinh(where(large, 1.0, x)))


def _squared_csch(x: Tensor) -> Tensor:
    half = 0.5 * csch(0.5 * x)
    return half * half


@sloped(lambda dy, x: -dy * _squared_csch(x))
def inverse_expm1(x: Tensor) -> Tensor:
    """1 / (exp(x) - 1) without an overflow; its slope is -csch(x / 2)**2 / 4."""
    left = x < 0.0
    high = where(left, 1.0, x)
    return where(left, 1.0 / expm1(where(left, x, -1.0)), -exp(-high) / expm1(-high))


@sloped(
    lambda dy, x, u: (
        -dy
        * where(x > 5.0, exp_less_exp(x, u + x), exp(where(x > 5.0, 0.0, x)) * exp_less_exp(x, u)),
        dy * exp_less_exp(x, u),
    )
)
def exp_less_exp(x: Tensor, u: Tensor) -> Tensor:
    """exp(u - exp(x)), of which the slope is 0 where exp(x) overflows."""
    return exp(u - exp(x))


def share(axis: int, x: Tensor) -> Tensor:
    """softmax(x); where another entry is infinity, what is finite has the share 0."""
    lost = logical_and(x < math.inf, greatest(x, (axis,)) == math.inf)
    return where(lost, 0.0, softmax(x, axis))


def weighted_share(axes: tuple[int, ...], x: Tensor, w: Tensor) -> Tensor:
    """exp(x) / sum(w exp(x))."""
    e = exp(x - finite_or_zero(stop_gradient(greatest(x, axes))))
    return e / total_of(w * e, axes, keepdims=True)


def weighted_mean(
    axes: tuple[int, ...], keep: bool, x: Tensor, above: Tensor, below: Tensor
) -> Tensor:
    """sum(above exp(x)) / sum(below exp(x))."""
    e = exp(x - finite_or_zero(stop_gradient(greatest(x, axes))))
    return total_of(above * e, axes, keepdims=keep) / total_of(below * e, axes, keepdims=keep)
