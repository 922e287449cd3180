"""Signs: moved into numbers, cancelled, lost."""

from __future__ import annotations

from ...base.kinds import kind_of
from ...ir.node import Node, Tensor
from ...ops.elementwise.arithmetic import (
    ADD,
    MULTIPLY,
    NEGATIVE,
    SUBTRACT,
    Add,
    Divide,
    Multiply,
    Negative,
    Subtract,
)
from ...ops.elementwise.magnitudes import ABS, Abs
from ...ops.elementwise.powers import Square
from ..build import beside, instead
from ..facts import KNOWN, REAL, first_number, is_number, second_number, uniform_value, without
from ..rule import RewriteRule, rule


@rule(Multiply, Divide, over=KNOWN)
def times_minus_one(node: Node) -> Tensor | None:
    """x * -1 -> -x; x / -1 -> -x"""
    if node.op is MULTIPLY:
        x = without(node, -1)
    else:
        x = node.inputs[0] if is_number(second_number(node), -1) else None
    return None if x is None or kind_of(x.dtype) not in REAL else instead(node, NEGATIVE, x)


@rule(Subtract, over=KNOWN)
def from_zero(node: Node) -> Tensor | None:
    """-0.0 - x -> -x, and 0 - x -> -x for integers"""
    x = node.inputs[1]
    right = kind_of(x.dtype) in REAL and is_number(first_number(node), -0.0)
    return instead(node, NEGATIVE, x) if right else None


@rule(Add, over=Negative)
def plus_negative(node: Node) -> Tensor | None:
    """x + (-y) -> x - y; (-x) + y -> y - x"""
    x, y = node.inputs
    if y.node.op is NEGATIVE:
        return instead(node, SUBTRACT, x, y.node.inputs[0])
    return instead(node, SUBTRACT, y, x.node.inputs[0])


@rule(Subtract, over=Negative)
def minus_negative(node: Node) -> Tensor | None:
    """x - (-y) -> x + y"""
    x, y = node.inputs
    return instead(node, ADD, x, y.node.inputs[0]) if y.node.op is NEGATIVE else None


@rule(Multiply, Divide, over=Negative)
def two_negatives(node: Node) -> Tensor | None:
    """(-x) * (-y) -> x * y; (-x) / (-y) -> x / y"""
    x, y = node.inputs
    if kind_of(x.dtype) not in REAL or x.node.op is not NEGATIVE or y.node.op is not NEGATIVE:
        return None
    return instead(node, node.op, x.node.inputs[0], y.node.inputs[0])


@rule(Multiply, Divide, over=Negative)
def negative_times_number(node: Node) -> Tensor | None:
    """(-x) * c -> x * (-c); (-x) / c -> x / (-c); c / (-x) -> (-c) / x"""
    x, y = node.inputs
    if kind_of(x.dtype) not in REAL:
        return None
    if x.node.op is NEGATIVE and uniform_value(y) is not None:
        return instead(node, node.op, x.node.inputs[0], beside(node, NEGATIVE, y))
    if y.node.op is NEGATIVE and uniform_value(x) is not None:
        return instead(node, node.op, beside(node, NEGATIVE, x), y.node.inputs[0])
    return None


@rule(Negative, of=(Multiply, Divide))
def negative_of_multiple(node: Node, inner: Node) -> Tensor | None:
    """-(x * c) -> x * (-c); -(x / c) -> x / (-c); -(c / x) -> (-c) / x"""
    x, y = inner.inputs
    if kind_of(x.dtype) not in REAL:
        return None
    if uniform_value(y) is not None:
        return instead(node, inner.op, x, beside(node, NEGATIVE, y))
    if uniform_value(x) is not None:
        return instead(node, inner.op, beside(node, NEGATIVE, x), y)
    return None


@rule(Abs, Square, of=(Negative, Abs))
def sign_that_is_lost(node: Node, inner: Node) -> Tensor | None:
    """|-x| -> |x|; (-x)^2 and |x|^2 -> x^2"""
    if inner.op is node.op:
        return None
    (start,) = inner.inputs
    right = kind_of(start.dtype) in ("if" if node.op is ABS else REAL)  # -x of unsigned x is large
    return instead(node, node.op, start) if right else None


@rule(Negative, of=Negative)
def double_negative(node: Node, inner: Node) -> Tensor | None:
    """-(-x) -> x"""
    return inner.inputs[0]


SIGNS: tuple[RewriteRule, ...] = (
    times_minus_one,
    from_zero,
    plus_negative,
    minus_negative,
    two_negatives,
    negative_times_number,
    negative_of_multiple,
    sign_that_is_lost,
    double_negative,
)
