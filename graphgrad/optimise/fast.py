"""Algebra of real numbers, for fast_math=True: NaN, infinities, signs of zero and last bits may
change, and what overflowed may become a number.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.node import Node, Tensor
from ..ops.arithmetic import ABS, ADD, MULTIPLY, NEGATIVE, RECIPROCAL, SQUARE, SUBTRACT
from ..ops.exponential import SQRT, Sigmoid
from ..ops.nn import LogSoftmax, Softmax, Softplus
from ..ops.reductions import ReduceLogSumExp, ReduceMean
from ..ops.shaping import BroadcastTo, ExpandDims, Reshape
from .facts import (
    KNOWN,
    REAL,
    filled,
    first_number,
    ints,
    is_number,
    number_of,
    second_number,
    with_number,
)
from .rewrite import FAST, Rule, beside, instead, rule
from .sums import at_once

# --- numbers -----------------------------------------------------------------------------------


@rule("Multiply", over=KNOWN, level=FAST)
def times_zero(node: Node) -> Tensor | None:
    """x * 0 -> 0"""
    zeros = (x for x, value in with_number(node) if value == 0)
    return next((filled(node, 0, x) for x in zeros), None)


@rule("Add", "Subtract", over=KNOWN, level=FAST)
def plus_any_zero(node: Node) -> Tensor | None:
    """x + 0.0 -> x; x - (-0.0) -> x; 0.0 - x -> -x"""
    if node.type == "Add":
        return next((x for x, value in with_number(node) if value == 0), None)
    x, y = node.inputs
    if (value := second_number(node)) is not None and value == 0:
        return x
    value = first_number(node)
    return instead(node, NEGATIVE, y) if value is not None and value == 0 else None


@rule("Subtract", "Divide", level=FAST)
def with_its_like(node: Node) -> Tensor | None:
    """x - x -> 0; x / x -> 1"""
    x, y = node.inputs
    return filled(node, 0 if node.type == "Subtract" else 1, x) if x is y else None


@rule("Divide", over=KNOWN, level=FAST)
def over_number(node: Node) -> Tensor | None:
    """x / c -> x * (1 / c)"""
    x, _ = node.inputs
    value = second_number(node)
    if value is None or value == 0 or not np.isfinite(value):
        return None
    with np.errstate(all="ignore"):
        factor = np.asarray(1 / value, dtype=x.dtype)
    usable = np.isfinite(factor) and abs(factor) >= np.finfo(x.dtype).tiny
    return instead(node, MULTIPLY, x, number_of(node, factor, x.dtype)) if usable else None


@rule("Multiply", over="Multiply", level=FAST)
def factors_together(node: Node) -> Tensor | None:
    """(x * c) * d -> x * (c * d)"""
    for t, outer in with_number(node):
        for x, value in with_number(t.node) if t.node.type == "Multiply" else ():
            return instead(node, MULTIPLY, x, _constant(node, value * outer))
    return None


@rule("Add", "Subtract", over=("Add", "Subtract"), level=FAST)
def numbers_together(node: Node) -> Tensor | None:
    """(x + c) + d -> x + (c + d); (c - x) + d -> (c + d) - x; with minus likewise"""
    if node.type == "Subtract":
        value = second_number(node)
        pairs = [] if value is None else [(node.inputs[0], -value)]
    else:
        pairs = list(with_number(node))
    for t, outer in pairs:
        inner = t.node
        if inner.type == "Add":
            for x, value in with_number(inner):
                return instead(node, ADD, x, _constant(node, value + outer))
        if inner.type == "Subtract" and (value := second_number(inner)) is not None:
            return instead(node, ADD, inner.inputs[0], _constant(node, outer - value))
        if inner.type == "Subtract" and (value := first_number(inner)) is not None:
            return instead(node, SUBTRACT, _constant(node, value + outer), inner.inputs[1])
    return None


def _constant(node: Node, value: Any) -> Tensor:
    return number_of(node, value, node.outputs[0].dtype)


@rule("Add", "Subtract", over="Multiply", level=FAST)
def common_number(node: Node) -> Tensor | None:
    """x * c + y * c -> (x + y) * c; with minus likewise"""
    x, y = node.inputs
    if x.node.type != "Multiply" or y.node.type != "Multiply" or x.shape != y.shape:
        return None
    for a, c in with_number(x.node):
        for b, d in with_number(y.node):
            if c == d and a.shape == b.shape:
                number = number_of(node, c, a.dtype)
                return instead(node, MULTIPLY, beside(node, node.op, a, b), number)
    return None


@rule("Negative", over="Subtract", level=FAST)
def negative_of_difference(node: Node) -> Tensor | None:
    """-(x - y) -> y - x"""
    x, y = node.inputs[0].node.inputs
    return instead(node, SUBTRACT, y, x)


# --- powers, roots, logarithms -------------------------------------------------------------------


@rule("Power", over=KNOWN, level=FAST)
def power_as_products(node: Node) -> Tensor | None:
    """x ** 0.5 -> sqrt(x); x ** -0.5 -> 1 / sqrt(x); x ** 3 -> x^2 * x; x ** 4 -> (x^2)^2"""
    x, _ = node.inputs
    value = second_number(node)
    if value is None or x.dtype.kind not in REAL:
        return None
    if value == 3:
        return instead(node, MULTIPLY, beside(node, SQUARE, x), x)
    if value == 4:
        return instead(node, SQUARE, beside(node, SQUARE, x))
    if x.dtype.kind != "f":
        return None
    if value == 0.5:
        return instead(node, SQRT, x)
    if value == -0.5:
        return instead(node, RECIPROCAL, beside(node, SQRT, x))
    return instead(node, RECIPROCAL, beside(node, SQUARE, x)) if value == -2 else None


@rule("Sqrt", over="Square", level=FAST)
def root_of_square(node: Node) -> Tensor | None:
    """sqrt(x^2) -> |x|"""
    return instead(node, ABS, *node.inputs[0].node.inputs)


@rule("Log", "Exp", over=("Log", "Exp"), level=FAST)
def log_of_exp(node: Node) -> Tensor | None:
    """log(exp(x)) -> x; exp(log(x)) -> x"""
    (t,) = node.inputs
    return t.node.inputs[0] if t.node.type != node.type and t.dtype.kind == "f" else None


@rule("Log1p", over="Exp", level=FAST)
def log_of_one_plus_exp(node: Node) -> Tensor | None:
    """log(1 + exp(x)) -> softplus(x), which does not overflow"""
    (x,) = node.inputs[0].node.inputs
    return instead(node, Softplus(), x) if x.dtype.kind == "f" else None


@rule("Log", over="ReduceSum", level=FAST)
def log_of_sum_of_exp(node: Node) -> Tensor | None:
    """log(sum(exp(x))) -> logsumexp(x), which does not overflow"""
    total = node.inputs[0].node
    (e,) = total.inputs
    if e.node.type != "Exp" or e.dtype.kind != "f":
        return None
    axes, keepdims = total.op.attrs["axes"], total.op.attrs["keepdims"]
    return instead(node, ReduceLogSumExp(axes, keepdims), *e.node.inputs)


@rule("Log", over="Softmax", level=FAST)
def log_of_softmax(node: Node) -> Tensor | None:
    """log(softmax(x)) -> log_softmax(x), which does not underflow"""
    inner = node.inputs[0].node
    return instead(node, LogSoftmax(inner.op.attrs["axis"]), *inner.inputs)


@rule("Divide", over="ReduceSum", level=FAST)
def exp_over_sum(node: Node) -> Tensor | None:
    """exp(x) / sum(exp(x)) -> softmax(x), which does not overflow"""
    e, total = node.inputs
    if e.node.type != "Exp" or total.node.type != "ReduceSum" or total.node.inputs[0] is not e:
        return None
    axes, keepdims = total.node.op.attrs["axes"], total.node.op.attrs["keepdims"]
    if len(axes) != 1 or not keepdims or e.dtype.kind != "f":
        return None
    return instead(node, Softmax(axes[0]), *e.node.inputs)


@rule("Divide", "Reciprocal", over="Add", level=FAST)
def one_over_one_plus_exp(node: Node) -> Tensor | None:
    """1 / (1 + exp(-x)) -> sigmoid(x), which does not overflow"""
    if node.type == "Divide" and not is_number(first_number(node), 1):
        return None
    below = node.inputs[-1].node
    if below.type != "Add":
        return None
    for e, value in with_number(below):
        if e.node.type == "Exp" and e.dtype.kind == "f" and is_number(value, 1):
            (x,) = e.node.inputs
            turned = x.node.inputs[0] if x.node.type == "Negative" else beside(node, NEGATIVE, x)
            return instead(node, Sigmoid(), turned)
    return None


# --- gradients of these, which would be NaN where their values no longer overflow -----------------


@rule("Multiply", over="Exp", level=FAST)
def exp_times_quotient(node: Node) -> Tensor | None:
    """exp(x) * (y / (1 + exp(x))) -> y * sigmoid(x); exp(x) * (y / sum(exp(x))) -> y * softmax(x);
    exp(x) * sigmoid(-x) -> sigmoid(x)
    """
    for e, t in (node.inputs, node.inputs[::-1]):
        if e.node.type != "Exp" or e.dtype.kind != "f":
            continue
        (x,) = e.node.inputs
        if t.node.type == "Sigmoid" and _is_negative_of(t.node.inputs[0], x):
            return instead(node, Sigmoid(), x)
        axes = t.node.op.attrs["axes"] if t.node.type == "ExpandDims" else None
        quotient = (t if axes is None else t.node.inputs[0]).node
        if quotient.type != "Divide":
            continue
        y, below = quotient.inputs
        if axes is None and _is_one_plus(below, e):
            return instead(node, MULTIPLY, y, beside(node, Sigmoid(), x))
        if _is_sum(below, e, axes) and (axes is None or y.ndim == below.ndim):
            (axis,) = below.node.op.attrs["axes"]
            y = y if axes is None else beside(node, ExpandDims(axes), y)
            return instead(node, MULTIPLY, y, beside(node, Softmax(axis), x))
    return None


def _is_sum(t: Tensor, e: Tensor, put_back: Any) -> bool:
    """Whether t is the sum of e over an axis, which is kept, or is the one that is put back."""
    if t.node.type != "ReduceSum" or t.node.inputs[0] is not e:
        return False
    axes, keepdims = t.node.op.attrs["axes"], t.node.op.attrs["keepdims"]
    return len(axes) == 1 and put_back == (None if keepdims else axes)


def _is_negative_of(t: Tensor, x: Tensor) -> bool:
    """Whether one of them is minus the other."""
    return any(a.node.type == "Negative" and a.node.inputs[0] is b for a, b in ((t, x), (x, t)))


def _is_one_plus(t: Tensor, e: Tensor) -> bool:
    """Whether t is 1 + e."""
    return t.node.type == "Add" and any(
        x is e and is_number(value, 1) for x, value in with_number(t.node)
    )


@rule("Multiply", over=("Divide", "Subtract"), level=FAST)
def times_divisor(node: Node) -> Tensor | None:
    """(x / y) * y -> x; (x / y - z) * y -> x - z * y"""
    for t, y in (node.inputs, node.inputs[::-1]):
        if t.node.type == "Divide" and t.node.inputs[1] is y:
            return t.node.inputs[0]
        if t.node.type == "Subtract" and t.node.inputs[0].node.type == "Divide":
            quotient, z = t.node.inputs
            x, below = quotient.node.inputs
            if below is y and x.dtype.kind == "f":
                return instead(node, SUBTRACT, x, beside(node, MULTIPLY, z, y))
    return None


@rule("Softmax", "LogSoftmax", over=("Subtract", "Add"), level=FAST)
def softmax_of_shifted(node: Node) -> Tensor | None:
    """softmax(x - c) -> softmax(x), where c is the same along the axis; log_softmax likewise"""
    x, c = node.inputs[0].node.inputs
    axis = node.op.attrs["axis"] - node.inputs[0].ndim
    for t, shift in ((x, c), (c, x)) if node.inputs[0].node.type == "Add" else ((x, c),):
        if t.ndim == node.inputs[0].ndim and (shift.ndim < -axis or shift.shape[axis] == 1):
            return instead(node, node.op, t)
    return None


# --- reductions --------------------------------------------------------------------------------


@rule("ReduceSum", "ReduceMean", over="Multiply", level=FAST)
def number_out_of_sum(node: Node) -> Tensor | None:
    """sum(x * c) -> sum(x) * c; mean likewise"""
    for x, value in with_number(node.inputs[0].node):
        made = beside(node, node.op, x)
        return instead(node, MULTIPLY, made, number_of(node, value, x.dtype))
    return None


@rule("ReduceSum", "ReduceMean", over="Negative", level=FAST)
def sum_of_negative(node: Node) -> Tensor | None:
    """sum(-x) -> -sum(x); mean likewise"""
    return instead(node, NEGATIVE, beside(node, node.op, *node.inputs[0].node.inputs))


@rule("ReduceMean", over="BroadcastTo", level=FAST)
def mean_of_broadcast(node: Node) -> Tensor | None:
    """the mean of equal numbers -> that number"""
    (t,), (y,) = node.inputs, node.outputs
    (x,) = t.node.inputs
    if not x.type.static or not y.type.static or 0 in t.shape:
        return None
    wide = (1,) * (t.ndim - x.ndim) + ints(x.shape)
    rest = tuple([a for a in node.op.attrs["axes"] if wide[a] != 1])
    made = x if wide == x.shape else beside(node, Reshape(wide), x)
    made = beside(node, ReduceMean(rest, True), made) if rest else made
    if not node.op.attrs["keepdims"]:
        left = [d for a, d in enumerate(ints(made.shape)) if a not in node.op.attrs["axes"]]
        made = beside(node, Reshape(tuple(left)), made)
    return instead(node, BroadcastTo(ints(y.shape)), made)


@rule("ReduceMax", "ReduceMin", over=("ReduceMax", "ReduceMin"), level=FAST)
def extremum_of_extremum(node: Node) -> Tensor | None:
    """max of max, min of min -> one over all axes; a zero may change its sign"""
    return at_once(node)


FASTER: tuple[Rule, ...] = (
    times_zero,
    plus_any_zero,
    with_its_like,
    over_number,
    factors_together,
    numbers_together,
    common_number,
    negative_of_difference,
    power_as_products,
    root_of_square,
    log_of_exp,
    log_of_one_plus_exp,
    log_of_sum_of_exp,
    log_of_softmax,
    exp_over_sum,
    one_over_one_plus_exp,
    exp_times_quotient,
    times_divisor,
    softmax_of_shifted,
    number_out_of_sum,
    sum_of_negative,
    mean_of_broadcast,
    extremum_of_extremum,
)
