"""Neutral elements, and what absorbs every value: x * 1, x + (-0.0), x & False."""

from __future__ import annotations

import math

from ...base.kinds import kind_of
from ...ir.node import Node, Tensor
from ...ops.elementwise.arithmetic import Add, Divide, Multiply, Subtract
from ...ops.elementwise.bounds import MAXIMUM, MINIMUM, Clip, Maximum, Minimum
from ...ops.elementwise.logic import (
    LOGICAL_AND,
    LOGICAL_NOT,
    LOGICAL_XOR,
    BitwiseAnd,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
)
from ...ops.elementwise.powers import Power
from ..build import filled, instead
from ..facts import (
    KNOWN,
    REAL,
    WHOLE,
    adds_no_length,
    is_number,
    second_number,
    uniform_value,
    with_number,
    without,
)
from ..rule import RewriteRule, rule


@rule(Multiply, over=KNOWN)
def times_one(node: Node) -> Tensor | None:
    """x * 1 -> x"""
    return without(node, 1)


@rule(Divide, over=KNOWN)
def over_one(node: Node) -> Tensor | None:
    """x / 1 -> x"""
    x, _ = node.inputs
    return x if kind_of(x.dtype) in REAL and is_number(second_number(node), 1) else None


@rule(Add, over=KNOWN)
def plus_zero(node: Node) -> Tensor | None:
    """x + (-0.0) -> x, and x + 0 -> x for integers"""
    return without(node, -0.0)


@rule(Subtract, over=KNOWN)
def minus_zero(node: Node) -> Tensor | None:
    """x - 0.0 -> x"""
    x, _ = node.inputs
    return x if kind_of(x.dtype) in REAL and is_number(second_number(node), 0.0) else None


@rule(Power, over=KNOWN)
def power_one(node: Node) -> Tensor | None:
    """x ** 1 -> x"""
    x, _ = node.inputs
    return x if kind_of(x.dtype) in REAL and is_number(second_number(node), 1) else None


@rule(Maximum, Minimum, over=KNOWN)
def beyond_infinity(node: Node) -> Tensor | None:
    """max(x, -inf) -> x; min(x, inf) -> x"""
    return without(node, -math.inf if node.op is MAXIMUM else math.inf)


@rule(Clip, over=KNOWN)
def clip_with_one_bound(node: Node) -> Tensor | None:
    """clip(x, -inf, b) -> min(x, b); clip(x, a, inf) -> max(x, a)"""
    x, low, high = node.inputs
    if not all(adds_no_length(t.shape, x.shape) for t in (low, high)):
        return None
    if is_number(uniform_value(low), -math.inf):
        return instead(node, MINIMUM, x, high)
    return instead(node, MAXIMUM, x, low) if is_number(uniform_value(high), math.inf) else None


@rule(LogicalAnd, LogicalOr, LogicalXor, over=KNOWN)
def with_true_or_false(node: Node) -> Tensor | None:
    """x & True, x | False, x ^ False -> x; x & False, x | True -> constant; x ^ True -> not x"""
    for x, value in with_number(node):
        if node.op is LOGICAL_XOR:
            return instead(node, LOGICAL_NOT, x) if value else x
        return x if bool(value) == (node.op is LOGICAL_AND) else filled(node, value, x)
    return None


@rule(Multiply, LogicalAnd, BitwiseAnd, over=KNOWN)
def integer_times_zero(node: Node) -> Tensor | None:
    """x * 0 -> 0 and x & 0 -> 0, for integers and bools"""
    for x, value in with_number(node):
        if kind_of(value.dtype) in WHOLE and value == 0:
            return filled(node, 0, x)
    return None


NEUTRAL: tuple[RewriteRule, ...] = (
    times_one,
    over_one,
    plus_zero,
    minus_zero,
    power_one,
    beyond_infinity,
    clip_with_one_bound,
    with_true_or_false,
    integer_times_zero,
)
