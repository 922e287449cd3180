"""Shapes that ops look up when run, where they are known after all: lengths were filled in."""

from __future__ import annotations

from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.types import DType
from ...ops.accumulate import EnsureLike
from ...ops.joining import ConcatPart
from ...ops.nn import OneHot, OneHotLike
from ...ops.padding import EnsureLength
from ...ops.reductions import SizeOf
from ...ops.shaping import BroadcastLike, BroadcastTo, Reshape, ReshapeLike, SumTo, SumToShape
from ...ops.slicing import FULL, Slice, Unslice, UnsliceLike
from ..build import instead, number_of
from ..facts import elements, ints
from ..rule import NodeOf, Rule, rule

_TO_SHAPE: dict[type[Op], type[Op]] = {
    BroadcastLike: BroadcastTo,
    ReshapeLike: Reshape,
    SumTo: SumToShape,
}


@rule(BroadcastLike, ReshapeLike, SumTo, UnsliceLike, OneHotLike)
def like_a_known_shape(node: Node) -> Tensor | None:
    """x broadcast, reshaped, summed, put into zeros like y -> the same with the known shape of y"""
    (x, like), (y,) = node.inputs, node.outputs
    if not like.type.static:
        return None
    return instead(node, _with_shape(node.op, ints(like.shape), y.dtype), x)


def _with_shape(op: Op, shape: tuple[int, ...], dtype: DType) -> Op:
    """What an op does that takes a shape from an input, with the shape."""
    if type(op) is UnsliceLike:
        return Unslice(op.key, shape)
    if type(op) is OneHotLike:
        return OneHot(shape[op.axis], op.axis, dtype)
    return _TO_SHAPE[type(op)](shape)


@rule(SizeOf)
def known_size(node: NodeOf[SizeOf]) -> Tensor | None:
    """the number of elements along axes of known lengths -> that number"""
    (x,), (y,) = node.inputs, node.outputs
    shape = tuple([x.shape[a] for a in node.op.axes])
    known = all(isinstance(d, int) for d in shape)
    return number_of(node, elements(shape), y.dtype) if known else None


@rule(Reshape)
def reshape_to_known_lengths(node: NodeOf[Reshape]) -> Tensor | None:
    """x reshaped to (-1, ...) or to lengths of its axes, which are known -> to these numbers"""
    (x,), (y,) = node.inputs, node.outputs
    if not y.type.static or y.shape == node.op.shape:
        return None
    return instead(node, Reshape(ints(y.shape)), x)


@rule(ConcatPart)
def known_part(node: NodeOf[ConcatPart]) -> Tensor | None:
    """the part of what was joined that was one of tensors of known lengths -> a slice"""
    joined, *xs = node.inputs
    axis, index = node.op.axis, node.op.index
    lengths = [x.shape[axis] for x in xs[: index + 1]]
    if not all(isinstance(d, int) for d in lengths):
        return None
    ends = ints(tuple(lengths))
    start = sum(ends[:-1])
    return instead(node, Slice((*(FULL,) * axis, (start, start + ends[-1], None))), joined)


@rule(EnsureLike)
def ensured_shape(node: Node) -> Tensor | None:
    """x, checked when run to have the shape of y, which both are known to have -> x"""
    x, like = node.inputs
    return x if like.type.static and x.shape == like.shape else None


@rule(EnsureLength)
def ensured_length(node: NodeOf[EnsureLength]) -> Tensor | None:
    """x, checked when run to have so many places along an axis, whose length is known -> x"""
    (x,) = node.inputs
    return x if isinstance(x.shape[node.op.axis], int) else None


KNOWN_SHAPES: tuple[Rule, ...] = (
    like_a_known_shape,
    known_size,
    reshape_to_known_lengths,
    known_part,
    ensured_shape,
    ensured_length,
)
