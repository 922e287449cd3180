"""Shapes that ops look up when run, where they are known after all: lengths were filled in."""

from __future__ import annotations

from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ops.elementwise.accumulate import EnsureLike
from ...ops.reduce.reductions import SizeOf
from ...ops.shape.joining import ConcatPart
from ...ops.shape.padding import EnsureLength
from ...ops.shape.reshaping import Reshape
from ...ops.shape.slicing import FULL, Slice
from ..build import instead, number_of
from ..facts import elements, ints
from ..rule import NodeOf, RewriteRule, rule


def _takes_a_shape(op: type[Op]) -> bool:
    return op.static is not Op.static


@rule(fits=_takes_a_shape)
def like_a_known_shape(node: Node) -> Tensor | None:
    """x broadcast, reshaped, summed, put into zeros like y -> the same with the known shape of y"""
    x, *likes = node.inputs
    if not all(like.type.static for like in likes):
        return None
    op = node.op.static(tuple([t.type for t in node.inputs]))
    return None if op is None else instead(node, op, x)


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
    """the part of a concatenation that was one of its tensors, of known lengths -> a slice"""
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
    """x, with a run-time check for the shape of y that is known to hold -> x"""
    x, like = node.inputs
    return x if like.type.static and x.shape == like.shape else None


@rule(EnsureLength)
def ensured_length(node: NodeOf[EnsureLength]) -> Tensor | None:
    """x, with a run-time check for the length of an axis that is known -> x"""
    (x,) = node.inputs
    return x if isinstance(x.shape[node.op.axis], int) else None


KNOWN_SHAPES: tuple[RewriteRule, ...] = (
    like_a_known_shape,
    known_size,
    reshape_to_known_lengths,
    known_part,
    ensured_shape,
    ensured_length,
)
