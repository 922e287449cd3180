"""Roots, logarithms, sigmoid and softmax for what they are written as, and quotients that cancel.

Algebra of real numbers, for fast_math=True: NaN, infinities, signs of zero and last bits may
change, and what overflowed may become a number.
"""

from __future__ import annotations

from ...base.kinds import is_floating, kind_of
from ...ir.node import Node, Tensor
from ...ops.elementwise.arithmetic import (
    ADD,
    DIVIDE,
    MULTIPLY,
    NEGATIVE,
    SUBTRACT,
    Add,
    Divide,
    Multiply,
    Subtract,
)
from ...ops.elementwise.exponential import (
    EXP,
    TANH,
    Exp,
    Log,
    Log1p,
    Sigmoid,
    SigmoidSlope,
    Sqrt,
    TanhSlope,
)
from ...ops.elementwise.magnitudes import ABS
from ...ops.elementwise.powers import Reciprocal, Square
from ...ops.nn.activations import Softplus
from ...ops.nn.softmaxes import LogSoftmax, Softmax
from ...ops.reduce.reductions import ReduceLogSumExp, ReduceSum
from ...ops.shape.reshaping import ExpandDims
from ..build import beside, instead, number_of
from ..facts import REAL, first_number, is_number, with_number
from ..rule import FAST, NodeOf, RewriteRule, rule


@rule(Sqrt, of=Square, level=FAST)
def root_of_square(node: Node, inner: Node) -> Tensor | None:
    """sqrt(x^2) -> |x|"""
    (x,) = inner.inputs
    return instead(node, ABS, x) if kind_of(x.dtype) in REAL else None


@rule(Log, Exp, of=(Log, Exp), level=FAST)
def log_of_exp(node: Node, inner: Node) -> Tensor | None:
    """log(exp(x)) -> x; exp(log(x)) -> x"""
    (x,) = inner.inputs
    return x if inner.op is not node.op and is_floating(x.dtype) else None


@rule(Log1p, of=Exp, level=FAST)
def log_of_one_plus_exp(node: Node, inner: Node) -> Tensor | None:
    """log(1 + exp(x)) -> softplus(x), which does not overflow"""
    (x,) = inner.inputs
    return instead(node, Softplus(), x) if is_floating(x.dtype) else None


@rule(Log, of=ReduceSum, level=FAST)
def log_of_sum_of_exp(node: Node, inner: NodeOf[ReduceSum]) -> Tensor | None:
    """log(sum(exp(x))) -> logsumexp(x), which does not overflow"""
    (e,), op = inner.inputs, inner.op
    if e.node.op is not EXP or not is_floating(e.dtype):
        return None
    return instead(node, ReduceLogSumExp(op.axes, op.keepdims), *e.node.inputs)


@rule(Log, of=Softmax, level=FAST)
def log_of_softmax(node: Node, inner: NodeOf[Softmax]) -> Tensor | None:
    """log(softmax(x)) -> log_softmax(x), which does not underflow"""
    return instead(node, LogSoftmax(inner.op.axis), *inner.inputs)


@rule(Divide, over=ReduceSum, level=FAST)
def exp_over_sum(node: Node) -> Tensor | None:
    """exp(x) / sum(exp(x)) -> softmax(x), which does not overflow"""
    e, total = node.inputs
    op = total.node.op
    if e.node.op is not EXP or type(op) is not ReduceSum or total.node.inputs[0] is not e:
        return None
    if len(op.axes) != 1 or not op.keepdims or not is_floating(e.dtype):
        return None
    return instead(node, Softmax(op.axes[0]), *e.node.inputs)


@rule(Divide, Reciprocal, over=Add, level=FAST)
def one_over_one_plus_exp(node: Node) -> Tensor | None:
    """1 / (1 + exp(-x)) -> sigmoid(x), which does not overflow"""
    if node.op is DIVIDE and not is_number(first_number(node), 1):
        return None
    below = node.inputs[-1].node
    if below.op is not ADD:
        return None
    for e, value in with_number(below):
        if e.node.op is EXP and is_floating(e.dtype) and is_number(value, 1):
            (x,) = e.node.inputs
            turned = x.node.inputs[0] if x.node.op is NEGATIVE else beside(node, NEGATIVE, x)
            return instead(node, Sigmoid(), turned)
    return None


# --- gradients of these, which would be NaN where their values no longer overflow -----------------


@rule(Multiply, over=Exp, level=FAST)
def exp_times_quotient(node: Node) -> Tensor | None:
    """exp(x) * (y / (1 + exp(x))) -> y * sigmoid(x); exp(x) * (y / sum(exp(x))) -> y * softmax(x);
    exp(x) * sigmoid(-x) -> sigmoid(x)
    """
    for e, t in (node.inputs, node.inputs[::-1]):
        if e.node.op is not EXP or not is_floating(e.dtype):
            continue
        (x,) = e.node.inputs
        if type(t.node.op) is Sigmoid and _is_negative_of(t.node.inputs[0], x):
            return instead(node, Sigmoid(), x)
        expanding = t.node.op
        axes = expanding.axes if type(expanding) is ExpandDims else None
        quotient = (t if axes is None else t.node.inputs[0]).node
        if quotient.op is not DIVIDE:
            continue
        y, below = quotient.inputs
        if axes is None and _is_one_plus(below, e):
            return instead(node, MULTIPLY, y, beside(node, Sigmoid(), x))
        axis = _summed_axis(below, e, axes)
        if axis is not None and (axes is None or y.ndim == below.ndim):
            y = y if axes is None else beside(node, ExpandDims(axes), y)
            return instead(node, MULTIPLY, y, beside(node, Softmax(axis), x))
    return None


def _summed_axis(t: Tensor, e: Tensor, put_back: tuple[int, ...] | None) -> int | None:
    """The axis over which t is the sum of e, if it is kept, or is the one that is put back."""
    op = t.node.op
    if type(op) is not ReduceSum or t.node.inputs[0] is not e or len(op.axes) != 1:
        return None
    return op.axes[0] if put_back == (None if op.keepdims else op.axes) else None


def _is_negative_of(t: Tensor, x: Tensor) -> bool:
    """Whether one of them is minus the other."""
    return any(a.node.op is NEGATIVE and a.node.inputs[0] is b for a, b in ((t, x), (x, t)))


def _is_one_plus(t: Tensor, e: Tensor) -> bool:
    """Whether t is 1 + e."""
    return t.node.op is ADD and any(
        x is e and is_number(value, 1) for x, value in with_number(t.node)
    )


@rule(Multiply, over=(Divide, Subtract), level=FAST)
def times_divisor(node: Node) -> Tensor | None:
    """(x / y) * y -> x; (x / y - z) * y -> x - z * y"""
    for t, y in (node.inputs, node.inputs[::-1]):
        if t.node.op is DIVIDE and t.node.inputs[1] is y:
            return t.node.inputs[0]
        if t.node.op is SUBTRACT and t.node.inputs[0].node.op is DIVIDE:
            quotient, z = t.node.inputs
            x, below = quotient.node.inputs
            if below is y and is_floating(x.dtype):
                return instead(node, SUBTRACT, x, beside(node, MULTIPLY, z, y))
    return None


@rule(Softmax, LogSoftmax, of=(Subtract, Add), level=FAST)
def softmax_of_shifted(node: NodeOf[Softmax], inner: Node) -> Tensor | None:
    """softmax(x - c) -> softmax(x), where c is the same along the axis; log_softmax likewise"""
    x, c = inner.inputs
    ndim = node.inputs[0].ndim
    axis = node.op.axis - ndim
    for t, shift in ((x, c), (c, x)) if inner.op is ADD else ((x, c),):
        if t.ndim == ndim and (shift.ndim < -axis or shift.shape[axis] == 1):
            return instead(node, node.op, t)
    return None


@rule(TanhSlope, SigmoidSlope, level=FAST)
def slope_of_value(node: Node) -> Tensor | None:
    """1 / cosh(x)^2 -> 1 - tanh(x)^2; the slope of sigmoid -> sigmoid(x) (1 - sigmoid(x))"""
    y = beside(node, TANH if isinstance(node.op, TanhSlope) else Sigmoid(), *node.inputs)
    one = number_of(node, 1, y.dtype)
    if isinstance(node.op, TanhSlope):
        return instead(node, SUBTRACT, one, beside(node, MULTIPLY, y, y))
    return instead(node, MULTIPLY, y, beside(node, SUBTRACT, one, y))


FAST_FORMS: tuple[RewriteRule, ...] = (
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
    slope_of_value,
)
