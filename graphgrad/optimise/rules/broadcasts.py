"""Broadcasts: joined, cancelled, and moved towards the readers, so that what is computed of equal
elements is computed once. Every rewrite here keeps every bit.
"""

from __future__ import annotations

from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.types import Shape, broadcast
from ...ops.base import Cast, Full, OnesLike, ZerosLike
from ...ops.reduce.reductions import SizeOf
from ...ops.shape.reshaping import (
    BroadcastLike,
    BroadcastTo,
    ExpandDims,
    Reshape,
    ReshapeLike,
    Squeeze,
    SumTo,
    SumToShape,
    Transpose,
)
from ...ops.shape.slicing import UnsliceLike
from ..build import beside, filled, instead, reshaped
from ..facts import BROADCASTS, aligned, elements, ints, settled_shape
from ..rule import NodeOf, RewriteRule, rule
from .reshapes import is_reshape

_FAR = 8  # steps that a rule goes back over element-wise nodes


@rule(Full)
def full_is_broadcast(node: NodeOf[Full]) -> Tensor | None:
    """an array of one number -> the number, broadcast"""
    (y,) = node.outputs
    return filled(node, node.op.value, y) if y.shape else None


@rule(ZerosLike, OnesLike)
def like_is_broadcast(node: Node) -> Tensor | None:
    """zeros or ones in the shape of x -> the number, broadcast to the shape of x"""
    return filled(node, 0 if type(node.op) is ZerosLike else 1, node.inputs[0])


@rule(BroadcastTo, SumToShape)
def to_own_shape(node: Node) -> Tensor | None:
    """x broadcast or summed to its own shape -> x"""
    (x,) = node.inputs
    return x if x.type.static else None


@rule(BroadcastTo, of=BroadcastTo)
def broadcast_of_broadcast(node: Node, inner: Node) -> Tensor | None:
    """x broadcast twice -> once"""
    (x,) = inner.inputs  # of unknown lengths, the first may be an error when run
    return instead(node, node.op, x) if x.type.static else None


@rule(BroadcastTo, of=is_reshape)
def broadcast_of_leading_ones(node: Node, inner: Node) -> Tensor | None:
    """x with axes of length 1 put in front, broadcast -> x broadcast"""
    (x,), (start,) = node.inputs, inner.inputs
    more = x.ndim - start.ndim
    ones = more > 0 and start.type.static and x.shape == (*(1,) * more, *start.shape)
    return instead(node, node.op, start) if ones else None


def _spreads(op: type[Op]) -> bool:
    return op.elementwise and op.broadcasts and op.pure


def _along(op: type[Op]) -> bool:
    return _spreads(op) or op is Cast


@rule(fits=_spreads, over=BROADCASTS)
def broadcast_into_elementwise(node: Node) -> Tensor | None:
    """broadcast(x) op y -> x op y, where y has the whole shape anyway"""
    shape = node.outputs[0].shape
    if None in shape:
        return None
    inputs = list(node.inputs)
    for i, t in enumerate(inputs):
        if type(t.node.op) not in BROADCASTS or t.shape != shape:
            continue
        rest = [*inputs[:i], *inputs[i + 1 :]]
        if any(r.shape == shape for r in rest):
            inputs[i] = t.node.inputs[0]
            if broadcast([r.shape for r in inputs]) == shape:
                return instead(node, node.op, *inputs)
            return None
    return None


@rule(fits=_along, over=BROADCASTS)
def elementwise_of_broadcast(node: Node) -> Tensor | None:
    """f(broadcast(x), broadcast(y)) -> broadcast(f(x, y))"""
    (out,) = node.outputs
    if out.type.static and all(t.type.static for t in node.inputs):
        starts = [t.node.inputs[0] if type(t.node.op) is BroadcastTo else t for t in node.inputs]
        if not all(t.type.static for t in starts):
            return None
        small = broadcast([t.shape for t in starts])
        if elements(small) >= elements(out.shape):
            return None
        return instead(node, BroadcastTo(ints(out.shape)), beside(node, node.op, *starts))
    return _of_broadcast_like(node, out)


def _of_broadcast_like(node: Node, out: Tensor) -> Tensor | None:
    """f(x broadcast like z, 0-d) -> f(x, 0-d) broadcast like z"""
    wide = [t for t in node.inputs if t.shape != ()]
    first = wide[0].node
    if type(first.op) is not BroadcastLike or any(t.node is not first for t in wide):
        return None
    if first.outputs[0].shape != out.shape:
        return None
    start, like = first.inputs
    starts = [start if t.node is first else t for t in node.inputs]
    return instead(node, BroadcastLike(), beside(node, node.op, *starts), like)


@rule(ExpandDims, Squeeze, Reshape, of=BroadcastTo)
def reshape_of_broadcast(node: Node, inner: Node) -> Tensor | None:
    """broadcast(x) with axes of length 1 put in or taken out -> x so, broadcast"""
    (y,), (t,), (x,) = node.outputs, node.inputs, inner.inputs
    if not (x.type.static and y.type.static):
        return None
    if elements(x.shape) == 1:
        small: Shape = ()
    else:
        wide = aligned(x.shape, t.ndim)
        places = _only_ones_move(t.shape, y.shape)
        if places is None:
            return None
        small = tuple([1 if at is None else wide[at] for at in places])
    return instead(node, BroadcastTo(ints(y.shape)), reshaped(node, x, small))


@rule(Transpose, of=BroadcastTo)
def transpose_of_broadcast(node: Node, inner: Node) -> Tensor | None:
    """broadcast(x)^T -> broadcast(x^T)"""
    (y,), (t,), (x,) = node.outputs, node.inputs, inner.inputs
    if not x.type.static:
        return None
    shaped = reshaped(node, x, aligned(x.shape, t.ndim))
    return instead(node, BroadcastTo(ints(y.shape)), beside(node, node.op, shaped))


@rule(BroadcastLike, ReshapeLike, SumTo, UnsliceLike, SizeOf)
def shape_from_an_input(node: Node) -> Tensor | None:
    """a node that reads f(x, 0-d) only for its shape -> reads x, an input of the program"""
    like = start = node.inputs[-1]
    for _ in range(_FAR):
        op = like.node.op
        if op.source:
            break
        same = [t for t in like.node.inputs if t.shape == like.shape]
        if not op.elementwise or not same or not settled_shape(like):
            return None
        like = same[0]
    if like is start or not like.node.op.source:
        return None
    return instead(node, node.op, *node.inputs[:-1], like)


def _only_ones_move(old: Shape, new: Shape) -> list[int | None] | None:
    """For each axis of `new` the axis of `old` that it is, None for a new one of length 1.

    None where the shapes differ in more than axes of length 1.
    """
    if [d for d in old if d != 1] != [d for d in new if d != 1]:
        return None
    rest = iter([i for i, d in enumerate(old) if d != 1])
    return [None if d == 1 else next(rest) for d in new]


BROADCASTING: tuple[RewriteRule, ...] = (
    full_is_broadcast,
    like_is_broadcast,
    to_own_shape,
    broadcast_of_broadcast,
    broadcast_of_leading_ones,
    broadcast_into_elementwise,
    elementwise_of_broadcast,
    reshape_of_broadcast,
    transpose_of_broadcast,
    shape_from_an_input,
)
