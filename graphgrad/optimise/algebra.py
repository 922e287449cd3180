"""Algebra that keeps every value: NaN, infinities and the sign of zero included.

What is missing here is missing on purpose: 0 * x is NaN for x = inf, x + 0.0 turns -0.0 into 0.0,
x - x is NaN for x = inf, max(x, y) and max(y, x) may differ in the sign of a zero, and complex
products mix their parts.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ir.types import DType
from ..ops.arithmetic import ADD, MAXIMUM, MINIMUM, MULTIPLY, NEGATIVE, SQUARE, SUBTRACT
from ..ops.base import Cast
from ..ops.logic import (
    EQUAL,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    LOGICAL_NOT,
    NOT_EQUAL,
    WHERE,
)
from .facts import (
    KNOWN,
    REAL,
    WHOLE,
    adds_no_length,
    filled,
    first_number,
    is_number,
    number_of,
    second_number,
    uniform_value,
    with_number,
)
from .rewrite import Rule, beside, instead, rewrite, rule

# --- neutral elements --------------------------------------------------------------------------


@rule("Multiply", over=KNOWN)
def times_one(node: Node) -> Tensor | None:
    """x * 1 -> x"""
    return _without(node, 1)


@rule("Divide", over=KNOWN)
def over_one(node: Node) -> Tensor | None:
    """x / 1 -> x"""
    x, _ = node.inputs
    return x if x.dtype.kind in REAL and is_number(second_number(node), 1) else None


@rule("Add", over=KNOWN)
def plus_zero(node: Node) -> Tensor | None:
    """x + (-0.0) -> x, and x + 0 -> x for integers"""
    return _without(node, -0.0)


@rule("Subtract", over=KNOWN)
def minus_zero(node: Node) -> Tensor | None:
    """x - 0.0 -> x"""
    x, _ = node.inputs
    return x if x.dtype.kind in REAL and is_number(second_number(node), 0.0) else None


@rule("Power", over=KNOWN)
def power_one(node: Node) -> Tensor | None:
    """x ** 1 -> x"""
    x, _ = node.inputs
    return x if x.dtype.kind in REAL and is_number(second_number(node), 1) else None


@rule("Maximum", "Minimum", over=KNOWN)
def beyond_infinity(node: Node) -> Tensor | None:
    """max(x, -inf) -> x; min(x, inf) -> x"""
    return _without(node, -math.inf if node.type == "Maximum" else math.inf)


@rule("Clip", over=KNOWN)
def clip_with_one_bound(node: Node) -> Tensor | None:
    """clip(x, -inf, b) -> min(x, b); clip(x, a, inf) -> max(x, a)"""
    x, low, high = node.inputs
    if not all(adds_no_length(t.shape, x.shape) for t in (low, high)):
        return None
    if is_number(uniform_value(low), -math.inf):
        return instead(node, MINIMUM, x, high)
    return instead(node, MAXIMUM, x, low) if is_number(uniform_value(high), math.inf) else None


@rule("LogicalAnd", "LogicalOr", "LogicalXor", over=KNOWN)
def with_true_or_false(node: Node) -> Tensor | None:
    """x & True, x | False, x ^ False -> x; x & False, x | True -> that; x ^ True -> not x"""
    for x, value in with_number(node):
        if node.type == "LogicalXor":
            return instead(node, LOGICAL_NOT, x) if value else x
        return x if bool(value) == (node.type == "LogicalAnd") else filled(node, value, x)
    return None


@rule("Multiply", "LogicalAnd", "BitwiseAnd", over=KNOWN)
def integer_times_zero(node: Node) -> Tensor | None:
    """x * 0 -> 0 and x & 0 -> 0, for integers and bools"""
    for x, value in with_number(node):
        if value.dtype.kind in WHOLE and value == 0:
            return filled(node, 0, x)
    return None


# --- signs -------------------------------------------------------------------------------------


@rule("Multiply", "Divide", over=KNOWN)
def times_minus_one(node: Node) -> Tensor | None:
    """x * -1 -> -x; x / -1 -> -x"""
    if node.type == "Multiply":
        x = _without(node, -1)
    else:
        x = node.inputs[0] if is_number(second_number(node), -1) else None
    return None if x is None or x.dtype.kind not in REAL else instead(node, NEGATIVE, x)


@rule("Subtract", over=KNOWN)
def from_zero(node: Node) -> Tensor | None:
    """-0.0 - x -> -x, and 0 - x -> -x for integers"""
    x = node.inputs[1]
    right = x.dtype.kind in REAL and is_number(first_number(node), -0.0)
    return instead(node, NEGATIVE, x) if right else None


@rule("Add", over="Negative")
def plus_negative(node: Node) -> Tensor | None:
    """x + (-y) -> x - y; (-x) + y -> y - x"""
    x, y = node.inputs
    if y.node.type == "Negative":
        return instead(node, SUBTRACT, x, y.node.inputs[0])
    return instead(node, SUBTRACT, y, x.node.inputs[0])


@rule("Subtract", over="Negative")
def minus_negative(node: Node) -> Tensor | None:
    """x - (-y) -> x + y"""
    x, y = node.inputs
    return instead(node, ADD, x, y.node.inputs[0]) if y.node.type == "Negative" else None


@rule("Multiply", "Divide", over="Negative")
def two_negatives(node: Node) -> Tensor | None:
    """(-x) * (-y) -> x * y; (-x) / (-y) -> x / y"""
    x, y = node.inputs
    if x.dtype.kind not in REAL or x.node.type != "Negative" or y.node.type != "Negative":
        return None
    return instead(node, node.op, x.node.inputs[0], y.node.inputs[0])


@rule("Multiply", "Divide", over="Negative")
def negative_times_number(node: Node) -> Tensor | None:
    """(-x) * c -> x * (-c); (-x) / c -> x / (-c); c / (-x) -> (-c) / x"""
    x, y = node.inputs
    if x.dtype.kind not in REAL:
        return None
    if x.node.type == "Negative" and uniform_value(y) is not None:
        return instead(node, node.op, x.node.inputs[0], beside(node, NEGATIVE, y))
    if y.node.type == "Negative" and uniform_value(x) is not None:
        return instead(node, node.op, beside(node, NEGATIVE, x), y.node.inputs[0])
    return None


@rule("Negative", over=("Multiply", "Divide"))
def negative_of_multiple(node: Node) -> Tensor | None:
    """-(x * c) -> x * (-c); -(x / c) -> x / (-c); -(c / x) -> (-c) / x"""
    inner = node.inputs[0].node
    x, y = inner.inputs
    if x.dtype.kind not in REAL:
        return None
    if uniform_value(y) is not None:
        return instead(node, inner.op, x, beside(node, NEGATIVE, y))
    if uniform_value(x) is not None:
        return instead(node, inner.op, beside(node, NEGATIVE, x), y)
    return None


@rule("Abs", "Square", over=("Negative", "Abs"))
def sign_that_is_lost(node: Node) -> Tensor | None:
    """|-x| -> |x|; (-x)^2 and |x|^2 -> x^2"""
    (x,) = node.inputs
    if x.node.op is node.op:
        return None
    (start,) = x.node.inputs
    right = start.dtype.kind in ("if" if node.type == "Abs" else REAL)  # -x of unsigned x is large
    return instead(node, node.op, start) if right else None


# --- the same twice ----------------------------------------------------------------------------


@rule("Negative", over="Negative")
def double_negative(node: Node) -> Tensor | None:
    """-(-x) -> x"""
    return node.inputs[0].node.inputs[0]


@rule("LogicalNot", "BitwiseNot", "Flip", "Conj", over=("LogicalNot", "BitwiseNot", "Flip", "Conj"))
def there_and_back(node: Node) -> Tensor | None:
    """not not x -> x; ~~x -> x; x flipped twice -> x; x conjugated twice -> x"""
    inner = node.inputs[0].node
    return inner.inputs[0] if inner.op is node.op else None


_ONCE = ("Abs", "Sign", "Relu")
_TO_WHOLE = ("Floor", "Ceil", "Trunc", "Round")


@rule(*_ONCE, *_TO_WHOLE, over=(*_ONCE, *_TO_WHOLE))
def once_is_enough(node: Node) -> Tensor | None:
    """||x|| -> |x|; sign, relu likewise; floor, ceil, trunc, round of one of these -> that one"""
    (x,) = node.inputs
    whole = node.type in _TO_WHOLE and x.node.type in _TO_WHOLE
    return x if whole or (x.node.op is node.op and x.dtype.kind in REAL) else None


@rule("Maximum", "Minimum", "LogicalAnd", "LogicalOr", "BitwiseAnd", "BitwiseOr")
def with_itself(node: Node) -> Tensor | None:
    """max(x, x), min(x, x), x & x, x | x -> x"""
    x, y = node.inputs
    return x if x is y else None


@rule("Multiply")
def times_itself(node: Node) -> Tensor | None:
    """x * x -> x^2"""
    x, y = node.inputs
    return instead(node, SQUARE, x) if x is y and x.dtype.kind in REAL else None


@rule("Subtract", "BitwiseXor", "LogicalXor")
def integer_minus_itself(node: Node) -> Tensor | None:
    """x - x -> 0 and x ^ x -> 0, for integers and bools"""
    x, y = node.inputs
    return filled(node, 0, x) if x is y and x.dtype.kind in WHOLE else None


# --- comparisons and choices -------------------------------------------------------------------

_TURNED = {
    "Equal": NOT_EQUAL,
    "NotEqual": EQUAL,
    "Less": GREATER_EQUAL,
    "LessEqual": GREATER,
    "Greater": LESS_EQUAL,
    "GreaterEqual": LESS,
}


@rule("LogicalNot", over=tuple(_TURNED))
def not_of_comparison(node: Node) -> Tensor | None:
    """not (x == y) -> x != y; not (x < y) -> x >= y for integers; and so on"""
    inner = node.inputs[0].node
    if inner.inputs[0].dtype.kind not in WHOLE and inner.type not in ("Equal", "NotEqual"):
        return None  # a NaN is neither less nor greater
    return instead(node, _TURNED[inner.type], *inner.inputs)


@rule(*_TURNED)
def compared_with_itself(node: Node) -> Tensor | None:
    """x < x, x > x -> False; x == x, x <= x -> True and x != x -> False, for integers"""
    x, y = node.inputs
    if x is not y:
        return None
    if node.type in ("Less", "Greater"):
        return filled(node, False, x)
    holds = node.type in ("Equal", "LessEqual", "GreaterEqual")
    return filled(node, holds, x) if x.dtype.kind in WHOLE else None


@rule("Where")
def where_of_the_same(node: Node) -> Tensor | None:
    """where(c, x, x) -> x"""
    c, x, y = node.inputs
    return x if x is y and adds_no_length(c.shape, x.shape) else None


@rule("Where", over=KNOWN)
def where_of_constant(node: Node) -> Tensor | None:
    """where(True, x, y) -> x; where(False, x, y) -> y"""
    c, x, y = node.inputs
    value = uniform_value(c)
    if value is None:
        return None
    taken, other = (x, y) if value else (y, x)
    fits = adds_no_length(c.shape, taken.shape) and adds_no_length(other.shape, taken.shape)
    return taken if fits else None


@rule("Where", over="LogicalNot")
def where_of_not(node: Node) -> Tensor | None:
    """where(not c, x, y) -> where(c, y, x)"""
    c, x, y = node.inputs
    if c.node.type != "LogicalNot":
        return None
    return instead(node, WHERE, c.node.inputs[0], y, x)


# --- powers and quotients ----------------------------------------------------------------------


@rule("Power", over=KNOWN)
def power_zero(node: Node) -> Tensor | None:
    """x ** 0 -> 1, of NaN too"""
    x, _ = node.inputs
    value = second_number(node)
    right = x.dtype.kind in REAL and value is not None and value == 0
    return filled(node, 1, x) if right else None


@rule("Divide", over=KNOWN)
def over_power_of_two(node: Node) -> Tensor | None:
    """x / 2^k -> x * 2^-k, which is the same number rounded once"""
    x, _ = node.inputs
    value = second_number(node)
    if value is None or x.dtype.kind != "f" or abs(np.frexp(value)[0]) != 0.5:
        return None
    with np.errstate(all="ignore"):
        factor = (1 / value).astype(x.dtype)
    if not np.isfinite(factor) or abs(np.frexp(factor)[0]) != 0.5:
        return None  # out of range, or not a power of two any more
    return instead(node, MULTIPLY, x, number_of(node, factor, x.dtype))


# --- casts -------------------------------------------------------------------------------------


@rule("Cast")
def cast_to_own_dtype(node: Node) -> Tensor | None:
    """x as its own dtype -> x"""
    return node.inputs[0]


@rule("Cast", over="Cast")
def cast_of_cast(node: Node) -> Tensor | None:
    """x as a dtype that holds all its values and then as another -> as the other at once"""
    (start,) = node.inputs[0].node.inputs
    middle, last = node.inputs[0].dtype, node.outputs[0].dtype
    if not _holds(start.dtype, middle):
        return None
    if start.dtype is last:
        return start
    if middle.kind in "fc" and last.kind in "iu" and not _holds(start.dtype, last):
        return None  # what no integer holds becomes this or that, by the dtype it comes from
    return instead(node, Cast(last), start)


def _holds(small: DType, big: DType) -> bool:
    """Whether big has every value of small."""
    if small.kind in "iu" and big.kind in "fc":
        return 8 * small.itemsize - (small.kind == "i") <= np.finfo(big).nmant + 1
    return bool(np.can_cast(small, big, "safe"))


# --- what rules ask ----------------------------------------------------------------------------


def _without(node: Node, number: float) -> Tensor | None:
    """The other operand, where one is this number everywhere."""
    for x, value in with_number(node):
        if x.dtype.kind in REAL and is_number(value, number):
            return x
    return None


ALGEBRA: tuple[Rule, ...] = (
    times_one,
    over_one,
    plus_zero,
    minus_zero,
    power_one,
    beyond_infinity,
    clip_with_one_bound,
    with_true_or_false,
    integer_times_zero,
    times_minus_one,
    from_zero,
    plus_negative,
    minus_negative,
    two_negatives,
    negative_times_number,
    negative_of_multiple,
    sign_that_is_lost,
    double_negative,
    there_and_back,
    once_is_enough,
    with_itself,
    times_itself,
    integer_minus_itself,
    not_of_comparison,
    compared_with_itself,
    where_of_the_same,
    where_of_constant,
    where_of_not,
    power_zero,
    over_power_of_two,
    cast_to_own_dtype,
    cast_of_cast,
)


def simplify(program: Program, fired: Counter[str] | None = None) -> Program:
    """ALGEBRA applied to every node. fired: counts how often each rule did."""
    return rewrite(*ALGEBRA, fired=fired)(program)
