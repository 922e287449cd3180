"""Sums and other reductions: of broadcasts, of reductions, of what was scattered."""

from __future__ import annotations

import numpy as np

from ...base.kinds import is_floating, kind_of
from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.types import DType
from ...ops.elementwise.accumulate import AddN
from ...ops.elementwise.arithmetic import ADD, MULTIPLY, Add
from ...ops.reduce.reductions import (
    ReduceSum,
    Reduction,
)
from ...ops.shape.indexing import AddAt, ScatterAdd
from ...ops.shape.joining import Concat
from ...ops.shape.reshaping import BroadcastTo, Reshape, SumToShape
from ..build import beside, instead, number_of, reshaped, total
from ..facts import REAL, aligned, elements, ints, is_number, uniform_value
from ..rule import ROUNDING, NodeOf, RewriteRule, rule

_TRUTH = "any", "all"


def _nests(op: type[Op]) -> bool:
    return issubclass(op, Reduction) and op.traits.reduction not in (None, "mean")


def _picks(op: type[Op]) -> bool:
    return issubclass(op, Reduction) and op.traits.reduction in ("max", "min", *_TRUTH)


# --- one spelling ------------------------------------------------------------------------------


@rule(AddN)
def sum_of_few(node: Node) -> Tensor | None:
    """a sum of one -> that; a sum of two -> x + y"""
    return total(node, node.inputs) if len(node.inputs) < 3 else None


@rule(SumToShape)
def sum_to_shape_is_sum(node: Node) -> Tensor | None:
    """x summed to a known shape -> x summed over axes"""
    (x,), (y,) = node.inputs, node.outputs
    if not x.type.static or x.type is y.type:
        return None
    extra = x.ndim - y.ndim
    kept = [i for i in range(y.ndim) if y.shape[i] == 1 and x.shape[extra + i] != 1]
    axes = (*range(extra), *(extra + i for i in kept))
    if not kept:
        return instead(node, ReduceSum(axes, False), x)
    if not extra:
        return instead(node, ReduceSum(axes, True), x)
    return instead(node, Reshape(ints(y.shape)), beside(node, ReduceSum(axes, True), x))


# --- of broadcasts -----------------------------------------------------------------------------


@rule(ReduceSum, of=BroadcastTo, level=ROUNDING)
def sum_of_broadcast(node: NodeOf[ReduceSum], inner: Node) -> Tensor | None:
    """the sum of n times the same x -> n * x + 0.0, which is rounded once"""
    pair = _without_equal(node, inner)
    if pair is None:
        return None
    x, count = pair
    if not _holds_number(count, x.dtype):
        return None
    if count == 0:
        return _spread(node, number_of(node, 0, x.dtype))
    times = beside(node, MULTIPLY, x, number_of(node, count, x.dtype))
    if is_floating(x.dtype):  # a sum begins with 0.0
        times = beside(node, ADD, times, number_of(node, 0, x.dtype))
    return _spread(node, times)


@rule(fits=_picks, of=BroadcastTo)
def extremum_of_broadcast(node: NodeOf[Reduction], inner: Node) -> Tensor | None:
    """the largest, least, any or all of n times the same x -> x"""
    pair = _without_equal(node, inner)
    if pair is None or pair[1] == 0 or (pair[0].dtype is not node.outputs[0].dtype):
        return None
    return _spread(node, pair[0])


def _without_equal(node: NodeOf[Reduction], inner: Node) -> tuple[Tensor, int] | None:
    """What is left to be repeated of a broadcast that is reduced over axes of equal elements.

    A tensor reduced over the other axes, in the rank of the broadcast, and the number of equal
    elements that each of its own stands for. None where no axis is one of equal elements.
    """
    (t,), (x,) = node.inputs, inner.inputs
    if not x.type.static:
        return None
    wide = aligned(x.shape, t.ndim)
    equal = [a for a in node.op.axes if wide[a] == 1 and t.shape[a] != 1]
    if not equal:
        return None
    shaped = reshaped(node, x, wide)
    rest = tuple([a for a in node.op.axes if a not in equal and wide[a] != 1])
    if rest:
        shaped = beside(node, type(node.op)(rest, True), shaped)
    return shaped, elements(tuple([t.shape[a] for a in equal]))


def _spread(node: NodeOf[Reduction], x: Tensor) -> Tensor:
    """x, of the rank before the reduction, in the shape of the result."""
    (y,) = node.outputs
    if not node.op.keepdims and x.ndim == node.inputs[0].ndim:
        left = tuple([d for i, d in enumerate(ints(x.shape)) if i not in node.op.axes])
        x = beside(node, Reshape(left), x)
    return instead(node, BroadcastTo(ints(y.shape)), x)


def _holds_number(count: int, dtype: DType) -> bool:
    """Whether the dtype has this very number."""
    if kind_of(dtype) in "iu":
        return count <= np.iinfo(dtype).max
    with np.errstate(all="ignore"):
        return kind_of(dtype) in REAL and float(np.asarray(count).astype(dtype)) == count


# --- of reductions -----------------------------------------------------------------------------


@rule(fits=_nests, of=_nests)
def reduction_of_reduction(node: NodeOf[Reduction], inner: NodeOf[Reduction]) -> Tensor | None:
    """any of any, all of all; sum of sum, product, max, min likewise for integers -> one of both"""
    (x,) = inner.inputs
    exact = node.op.traits.reduction in _TRUTH or kind_of(x.dtype) in "iu"
    return at_once(node, inner) if exact else None


@rule(ReduceSum, of=ReduceSum, level=ROUNDING)
def sum_of_sum(node: NodeOf[ReduceSum], inner: NodeOf[ReduceSum]) -> Tensor | None:
    """the sum of sums -> the sum over all axes at once"""
    return at_once(node, inner)


def at_once(node: NodeOf[Reduction], inner: NodeOf[Reduction]) -> Tensor | None:
    """One reduction over the axes of two of the same kind."""
    (x,), (y,) = inner.inputs, node.outputs
    if type(inner.op) is not type(node.op):
        return None
    first, keeps = inner.op.axes, inner.op.keepdims
    left = list(range(x.ndim)) if keeps else [a for a in range(x.ndim) if a not in first]
    axes = tuple(sorted({*first, *(left[a] for a in node.op.axes)}))
    keepdims = keeps and node.op.keepdims
    if keepdims or not (keeps or node.op.keepdims):
        return instead(node, type(node.op)(axes, keepdims), x)
    if not y.type.static:
        return None
    return instead(node, Reshape(ints(y.shape)), beside(node, type(node.op)(axes, False), x))


# --- of what was scattered -----------------------------------------------------------------------


@rule(Add, AddN, over=ScatterAdd, level=ROUNDING)
def sum_of_scatters(node: Node) -> Tensor | None:
    """updates added into zeros at indices, and others at others, added -> all added into one"""
    groups: dict[tuple[ScatterAdd, DType], list[Node]] = {}
    for t in node.inputs:
        op = t.node.op
        if type(op) is ScatterAdd and _static(t.node) and _into_zeros(t):
            groups.setdefault((op, t.node.inputs[1].dtype), []).append(t.node)
    many = {n: key for key, nodes in groups.items() if len(nodes) > 1 for n in nodes}
    if not many:
        return None
    terms = [t for t in node.inputs if t.node not in many]
    for key in dict.fromkeys(many.values()):
        terms.append(_scattered_together(node, key[0].axis, groups[key]))
    return total(node, terms)


def _static(node: Node) -> bool:
    return all(t.type.static for t in node.inputs)


def _into_zeros(t: Tensor) -> bool:
    return is_number(uniform_value(t.node.inputs[0]), 0.0)


def _scattered_together(node: Node, axis: int, scatters: list[Node]) -> Tensor:
    """All updates added into one array of zeros."""
    zeros = scatters[0].inputs[0]
    before, after = ints(zeros.shape[:axis]), ints(zeros.shape[axis + 1 :])
    places, updates = [], []
    for one in scatters:
        _, at, update = one.inputs
        n = elements(at.shape)
        places.append(beside(node, Reshape((n,)), at))
        updates.append(beside(node, Reshape((*before, n, *after)), update))
    at = beside(node, Concat(0), *places)
    return beside(node, ScatterAdd(axis), zeros, at, beside(node, Concat(axis), *updates))


@rule(Add, AddN, over=AddAt, level=ROUNDING)
def sum_of_additions_at(node: Node) -> Tensor | None:
    """updates added into zeros at a key, and others at others, added -> one after the other"""
    additions = [t for t in node.inputs if type(t.node.op) is AddAt and _into_zeros(t)]
    if len(additions) < 2:
        return None
    whole = additions[0]
    for t in additions[1:]:
        whole = beside(node, t.node.op, whole, *t.node.inputs[1:])
    gone = set(additions)
    return total(node, [*(t for t in node.inputs if t not in gone), whole])


SUMS: tuple[RewriteRule, ...] = (
    sum_of_few,
    sum_to_shape_is_sum,
    sum_of_broadcast,
    extremum_of_broadcast,
    reduction_of_reduction,
    sum_of_sum,
    sum_of_scatters,
    sum_of_additions_at,
)
