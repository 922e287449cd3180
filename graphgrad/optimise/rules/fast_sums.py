"""Sums, means and extrema of multiples, broadcasts and extrema.

Algebra of real numbers, for fast_math=True: NaN, infinities, signs of zero and last bits may
change, and what overflowed may become a number.
"""

from __future__ import annotations

from ...ir.node import Node, Tensor
from ...ops.elementwise.arithmetic import MULTIPLY, NEGATIVE, Multiply, Negative
from ...ops.reduce.reductions import ReduceMax, ReduceMean, ReduceMin, ReduceSum, Reduction
from ...ops.shape.reshaping import BroadcastTo, Reshape
from ..build import beside, instead, number_of, reshaped
from ..facts import aligned, ints, with_number
from ..rule import FAST, NodeOf, RewriteRule, rule
from .sums import at_once


@rule(ReduceSum, ReduceMean, of=Multiply, level=FAST)
def number_out_of_sum(node: Node, inner: Node) -> Tensor | None:
    """sum(x * c) -> sum(x) * c; mean likewise"""
    for x, value in with_number(inner):
        made = beside(node, node.op, x)
        return instead(node, MULTIPLY, made, number_of(node, value, x.dtype))
    return None


@rule(ReduceSum, ReduceMean, of=Negative, level=FAST)
def sum_of_negative(node: Node, inner: Node) -> Tensor | None:
    """sum(-x) -> -sum(x); mean likewise"""
    return instead(node, NEGATIVE, beside(node, node.op, *inner.inputs))


@rule(ReduceMean, of=BroadcastTo, level=FAST)
def mean_of_broadcast(node: NodeOf[ReduceMean], inner: Node) -> Tensor | None:
    """the mean of equal numbers -> that number"""
    (t,), (y,), (x,) = node.inputs, node.outputs, inner.inputs
    if not x.type.static or not y.type.static or 0 in t.shape:
        return None
    wide, axes = aligned(x.shape, t.ndim), node.op.axes
    rest = tuple([a for a in axes if wide[a] != 1])
    made = reshaped(node, x, wide)
    made = beside(node, ReduceMean(rest, True), made) if rest else made
    if not node.op.keepdims:
        left = [d for a, d in enumerate(ints(made.shape)) if a not in axes]
        made = beside(node, Reshape(tuple(left)), made)
    return instead(node, BroadcastTo(ints(y.shape)), made)


@rule(ReduceMax, ReduceMin, of=(ReduceMax, ReduceMin), level=FAST)
def extremum_of_extremum(node: NodeOf[Reduction], inner: NodeOf[Reduction]) -> Tensor | None:
    """max of max, min of min -> one over all axes; a zero may change its sign"""
    return at_once(node, inner)


FAST_SUMS: tuple[RewriteRule, ...] = (
    number_out_of_sum,
    sum_of_negative,
    mean_of_broadcast,
    extremum_of_extremum,
)
