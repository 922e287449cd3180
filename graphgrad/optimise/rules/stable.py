"""Forms that lose fewer digits, and have the same NaN, infinities and signs of zero.

log(1 + exp(x)) stays infinite where exp(x) is: what turns an infinity into a number is a change of
meaning, and is in `fast`.
"""

from __future__ import annotations

from ...base.kinds import is_floating, kind_of
from ...ir.node import Node, Tensor
from ...ops.elementwise.arithmetic import ADD, NEGATIVE, SUBTRACT, Add, Subtract
from ...ops.elementwise.exponential import EXP, EXPM1, LOG1P, SQRT, Exp, Log
from ...ops.elementwise.powers import RECIPROCAL, SQUARE, Power
from ..build import beside, instead, number_of
from ..facts import KNOWN, at_least_zero, first_number, is_number, second_number, with_number
from ..rule import ROUNDING, RewriteRule, rule


@rule(Log, of=Add, level=ROUNDING)
def log_of_one_plus(node: Node, inner: Node) -> Tensor | None:
    """log(1 + x) -> log1p(x) + 0.0; without + 0.0 where x cannot be -0.0"""
    for x, value in with_number(inner):
        if is_floating(x.dtype) and is_number(value, 1):
            if at_least_zero(x):
                return instead(node, LOG1P, x)
            return _plus_zero(node, beside(node, LOG1P, x))
    return None


@rule(Log, of=Subtract, level=ROUNDING)
def log_of_one_minus(node: Node, inner: Node) -> Tensor | None:
    """log(1 - x) -> log1p(-x) + 0.0"""
    x = inner.inputs[1]
    if not is_floating(x.dtype) or not is_number(first_number(inner), 1):
        return None
    return _plus_zero(node, beside(node, LOG1P, beside(node, NEGATIVE, x)))


@rule(Subtract, Add, over=Exp, level=ROUNDING)
def exp_minus_one(node: Node) -> Tensor | None:
    """exp(x) - 1 -> expm1(x) + 0.0; 1 - exp(x) -> 0.0 - expm1(x)"""
    x, y = node.inputs
    if not is_floating(x.dtype):
        return None
    if node.op is ADD:
        for t, value in with_number(node):
            if t.node.op is EXP and is_number(value, -1):
                return _plus_zero(node, beside(node, EXPM1, *t.node.inputs))
        return None
    if x.node.op is EXP and is_number(second_number(node), 1):
        return _plus_zero(node, beside(node, EXPM1, *x.node.inputs))
    if y.node.op is EXP and is_number(first_number(node), 1):
        zero = number_of(node, 0, x.dtype)
        return instead(node, SUBTRACT, zero, beside(node, EXPM1, *y.node.inputs))
    return None


@rule(Power, over=KNOWN, level=ROUNDING)
def power_as_square(node: Node) -> Tensor | None:
    """x ** 2 -> x^2; x ** -1 -> 1 / x; x ** 0.5 -> sqrt(x) where x cannot be negative or -0.0"""
    x, _ = node.inputs
    value = second_number(node)
    if kind_of(x.dtype) in "iu" and is_number(value, 2):
        return instead(node, SQUARE, x)
    if not is_floating(x.dtype) or value is None:
        return None
    if value == 2:
        return instead(node, SQUARE, x)
    if value == -1:
        return instead(node, RECIPROCAL, x)
    return instead(node, SQRT, x) if value == 0.5 and at_least_zero(x) else None


def _plus_zero(node: Node, t: Tensor) -> Tensor:
    """T, with 0.0 for -0.0."""
    return instead(node, ADD, t, number_of(node, 0, t.dtype))


STABLE: tuple[RewriteRule, ...] = (
    log_of_one_plus,
    log_of_one_minus,
    exp_minus_one,
    power_as_square,
)
