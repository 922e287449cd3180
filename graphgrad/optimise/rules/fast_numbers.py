"""Zeros, numbers put together, and powers.

Algebra of real numbers, for fast_math=True: NaN, infinities, signs of zero and last bits may
change, and what overflowed may become a number.
"""

from __future__ import annotations

import numpy as np

from ...base.kinds import is_floating, kind_of, limits_of
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
from ...ops.elementwise.exponential import SQRT
from ...ops.elementwise.powers import RECIPROCAL, SQUARE, Power
from ..build import beside, filled, instead, number_of
from ..facts import KNOWN, REAL, first_number, second_number, with_number
from ..rule import FAST, RewriteRule, rule


@rule(Multiply, over=KNOWN, level=FAST)
def times_zero(node: Node) -> Tensor | None:
    """x * 0 -> 0"""
    zeros = (x for x, value in with_number(node) if value == 0)
    return next((filled(node, 0, x) for x in zeros), None)


@rule(Add, Subtract, over=KNOWN, level=FAST)
def plus_any_zero(node: Node) -> Tensor | None:
    """x + 0.0 -> x; x - (-0.0) -> x; 0.0 - x -> -x"""
    if node.op is ADD:
        return next((x for x, value in with_number(node) if value == 0), None)
    x, y = node.inputs
    if (value := second_number(node)) is not None and value == 0:
        return x
    value = first_number(node)
    return instead(node, NEGATIVE, y) if value is not None and value == 0 else None


@rule(Subtract, Divide, level=FAST)
def with_its_like(node: Node) -> Tensor | None:
    """x - x -> 0; x / x -> 1"""
    x, y = node.inputs
    return filled(node, 0 if node.op is SUBTRACT else 1, x) if x is y else None


@rule(Divide, over=KNOWN, level=FAST)
def over_number(node: Node) -> Tensor | None:
    """x / c -> x * (1 / c)"""
    x, _ = node.inputs
    value = second_number(node)
    if value is None or value == 0 or not np.isfinite(value):
        return None
    with np.errstate(all="ignore"):
        factor = np.asarray(1 / value, dtype=x.dtype)
    usable = np.isfinite(factor) and abs(factor) >= limits_of(x.dtype).tiny
    return instead(node, MULTIPLY, x, number_of(node, factor, x.dtype)) if usable else None


@rule(Multiply, over=Multiply, level=FAST)
def factors_together(node: Node) -> Tensor | None:
    """(x * c) * d -> x * (c * d)"""
    for t, outer in with_number(node):
        for x, value in with_number(t.node) if t.node.op is MULTIPLY else ():
            return instead(node, MULTIPLY, x, _constant(node, value * outer))
    return None


@rule(Add, Subtract, over=(Add, Subtract), level=FAST)
def numbers_together(node: Node) -> Tensor | None:
    """(x + c) + d -> x + (c + d); (c - x) + d -> (c + d) - x; with minus likewise"""
    if node.op is SUBTRACT:
        value = second_number(node)
        pairs = [] if value is None else [(node.inputs[0], -value)]
    else:
        pairs = list(with_number(node))
    for t, outer in pairs:
        inner = t.node
        if inner.op is ADD:
            for x, value in with_number(inner):
                return instead(node, ADD, x, _constant(node, value + outer))
        if inner.op is SUBTRACT and (value := second_number(inner)) is not None:
            return instead(node, ADD, inner.inputs[0], _constant(node, outer - value))
        if inner.op is SUBTRACT and (value := first_number(inner)) is not None:
            return instead(node, SUBTRACT, _constant(node, value + outer), inner.inputs[1])
    return None


def _constant(node: Node, value: object) -> Tensor:
    return number_of(node, value, node.outputs[0].dtype)


@rule(Add, Subtract, over=Multiply, level=FAST)
def common_number(node: Node) -> Tensor | None:
    """x * c + y * c -> (x + y) * c; with minus likewise"""
    x, y = node.inputs
    if x.node.op is not MULTIPLY or y.node.op is not MULTIPLY or x.shape != y.shape:
        return None
    for a, c in with_number(x.node):
        for b, d in with_number(y.node):
            if c == d and a.shape == b.shape:
                number = number_of(node, c, a.dtype)
                return instead(node, MULTIPLY, beside(node, node.op, a, b), number)
    return None


@rule(Negative, of=Subtract, level=FAST)
def negative_of_difference(node: Node, inner: Node) -> Tensor | None:
    """-(x - y) -> y - x"""
    x, y = inner.inputs
    return instead(node, SUBTRACT, y, x)


@rule(Power, over=KNOWN, level=FAST)
def power_as_products(node: Node) -> Tensor | None:
    """x ** 0.5 -> sqrt(x); x ** -0.5 -> 1 / sqrt(x); x ** 3 -> x^2 * x; x ** 4 -> (x^2)^2"""
    x, _ = node.inputs
    value = second_number(node)
    if value is None or kind_of(x.dtype) not in REAL:
        return None
    if value == 3:
        return instead(node, MULTIPLY, beside(node, SQUARE, x), x)
    if value == 4:
        return instead(node, SQUARE, beside(node, SQUARE, x))
    if not is_floating(x.dtype):
        return None
    if value == 0.5:
        return instead(node, SQRT, x)
    if value == -0.5:
        return instead(node, RECIPROCAL, beside(node, SQRT, x))
    return instead(node, RECIPROCAL, beside(node, SQUARE, x)) if value == -2 else None


FAST_NUMBERS: tuple[RewriteRule, ...] = (
    times_zero,
    plus_any_zero,
    with_its_like,
    over_number,
    factors_together,
    numbers_together,
    common_number,
    negative_of_difference,
    power_as_products,
)
