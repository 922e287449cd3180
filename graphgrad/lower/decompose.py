"""Ops that go over a row several times, as element-wise nodes and reductions that can share a loop.

Each is what the kernel of the op computes, call by call. A sum of very many terms becomes sums of
a few at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program
from ..ir.types import as_dtype
from ..ops.accumulate import AddN
from ..ops.arithmetic import (
    ADD,
    DIVIDE,
    MULTIPLY,
    NEGATIVE,
    RECIPROCAL,
    SQUARE,
    SUBTRACT,
    Power,
)
from ..ops.base import Cast, Constant
from ..ops.exponential import EXP, LOG, SQRT
from ..ops.families import known_number
from ..ops.logic import EQUAL, LOGICAL_OR, NOT_EQUAL, WHERE, IsFinite
from ..ops.nn import (
    LogSoftmax,
    OneHot,
    OneHotLike,
    Softmax,
    SoftmaxCrossEntropyWithLogits,
    SparseSoftmaxCrossEntropyWithLogits,
)
from ..ops.reductions import (
    ExpShares,
    ReduceAny,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMin,
    ReduceSum,
    TieShares,
)
from ..ops.shaping import ExpandDims, Squeeze
from ..ops.windows import (
    AvgPool,
    AvgPoolGrad,
    Conv2D,
    Conv2DBackpropFilter,
    Conv2DBackpropInput,
    MaxPool,
    MaxPoolGrad,
)
from .channels import channels_last
from .making import Making
from .pooling import average, average_gradient, largest, largest_gradient

TERMS = 256  # of one AddN

Parts = Callable[[Any, Making], Tensor | None]


def decompose(program: Program) -> Program:
    """The program with these ops taken apart where lengths are known and not 0."""

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        parts = _PARTS.get(type(node.op))
        if parts is None or node.controls:
            return None
        if any(not t.type.static or 0 in t.shape for t in (*node.inputs, *node.outputs)):
            return None
        made = parts(node.op, Making(node))
        return None if made is None else (made,)

    return program.rebuild(visit)


def _exponentials(make: Making, x: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    """x less its largest along an axis; e to that; the sum of these."""
    shifted = make(SUBTRACT, x, make(ReduceMax((axis,), True), x))
    e = make(EXP, shifted)
    return shifted, e, make(ReduceSum((axis,), True), e)


def _softmax(op: Softmax, make: Making) -> Tensor:
    _, e, total = _exponentials(make, make.inputs[0], op.axis)
    return make(DIVIDE, e, total)


def _log_softmax(op: Any, make: Making) -> Tensor:
    shifted, _, total = _exponentials(make, make.inputs[0], op.axis)
    return make(SUBTRACT, shifted, make(LOG, total))


def _log_sum_exp(op: ReduceLogSumExp, make: Making) -> Tensor:
    (x,) = make.inputs
    if not op.axes:
        return make(ADD, x, make.zero(x))  # 0.0 for -0.0
    shift, _, total = _finite_exponentials(make, x, op.axes)
    y = make(ADD, make(LOG, total), shift)
    return y if op.keepdims else make(Squeeze(op.axes), y)


def _finite_exponentials(make: Making, x: Tensor, axes: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The largest x over axes, 0 for infinite ones; e to x less that; the sum of these."""
    largest = make(ReduceMax(axes, True), x)
    shift = make(WHERE, make(IsFinite(), largest), largest, make.zero(x))
    e = make(EXP, make(SUBTRACT, x, shift))
    return shift, e, make(ReduceSum(axes, True), e)


def _exp_shares(op: ExpShares, make: Making) -> Tensor | None:
    (x,) = make.inputs
    if not op.axes:
        return None
    _, e, total = _finite_exponentials(make, x, op.axes)
    empty = make(EQUAL, total, make.zero(total))
    return make(DIVIDE, e, make(WHERE, empty, make.number(1, x.dtype), total))


def _cross_entropy(op: SoftmaxCrossEntropyWithLogits, make: Making) -> Tensor:
    _, p = make.inputs
    zero = make.zero(p)
    logs = make(WHERE, make(EQUAL, p, zero), zero, _log_softmax(op, make))
    return make(NEGATIVE, make(ReduceSum((op.axis,), False), make(MULTIPLY, p, logs)))


def _hits(make: Making, labels: Tensor, length: int, axis: int) -> Tensor:
    """Where along a new axis the place is that a label names."""
    after = len(labels.shape) - axis
    if length - 1 > np.iinfo(labels.dtype).max:  # places that labels of this dtype cannot name
        labels = make(Cast(as_dtype("int64")), labels)
    places = np.arange(length, dtype=labels.dtype).reshape((length,) + (1,) * after)
    return make(EQUAL, make(ExpandDims((axis,)), labels), make(Constant(places)))


def _one_hot(op: OneHot, make: Making) -> Tensor:
    return make(Cast(op.dtype), _hits(make, make.inputs[0], op.length, op.axis))


def _one_hot_like(op: OneHotLike, make: Making) -> Tensor:
    labels, like = make.inputs
    length: Any = like.shape[op.axis]
    return make(Cast(like.dtype), _hits(make, labels, length, op.axis))


def _sparse_cross_entropy(op: SparseSoftmaxCrossEntropyWithLogits, make: Making) -> Tensor:
    x, labels = make.inputs
    length: Any = x.shape[op.axis]
    hits = _hits(make, labels, length, op.axis)
    logs = make(WHERE, hits, _log_softmax(op, make), make.zero(x))
    loss = make(NEGATIVE, make(ReduceSum((op.axis,), False), logs))
    return make(WHERE, make(ReduceAny((op.axis,), False), hits), loss, make.number(np.nan, x.dtype))


def _tie_shares(op: TieShares, make: Making) -> Tensor:
    (x,) = make.inputs
    extremum = make((ReduceMax if op.largest else ReduceMin)(op.axes, True), x)
    best = make(LOGICAL_OR, make(EQUAL, x, extremum), make(NOT_EQUAL, x, x))
    counted = make(Cast(x.dtype), best)
    return make(DIVIDE, counted, make(ReduceSum(op.axes, True), counted))


def _power(op: Power, make: Making) -> Tensor | None:
    """A power that is known, and small."""
    x, y = make.inputs
    known = known_number(y)
    if known is None or y.shape:
        return None
    if known == 2:
        return make(SQUARE, x)
    if known == 3:
        return make(MULTIPLY, make(SQUARE, x), x)
    if known == 4:
        return make(SQUARE, make(SQUARE, x))
    if x.dtype.kind != "f":
        return None
    if known == -1:
        return make(RECIPROCAL, x)
    if known == -2:
        return make(SQUARE, make(RECIPROCAL, x))
    return make(SQRT, x) if known == 0.5 and x.dtype.itemsize > 2 else None  # as NumPy has it


def _sum(op: AddN, make: Making) -> Tensor | None:
    terms = make.inputs
    if len(terms) <= TERMS:
        return None
    total = terms[0]
    for i in range(1, len(terms), TERMS - 1):
        total = make(op, total, *terms[i : i + TERMS - 1])
    return total


_PARTS: dict[type[Op], Parts] = {
    Softmax: _softmax,
    LogSoftmax: _log_softmax,
    ReduceLogSumExp: _log_sum_exp,
    ExpShares: _exp_shares,
    SoftmaxCrossEntropyWithLogits: _cross_entropy,
    SparseSoftmaxCrossEntropyWithLogits: _sparse_cross_entropy,
    OneHot: _one_hot,
    OneHotLike: _one_hot_like,
    TieShares: _tie_shares,
    Power: _power,
    AddN: _sum,
    Conv2D: channels_last,
    Conv2DBackpropInput: channels_last,
    Conv2DBackpropFilter: channels_last,
    MaxPool: largest,
    MaxPoolGrad: largest_gradient,
    AvgPool: average,
    AvgPoolGrad: average_gradient,
}
