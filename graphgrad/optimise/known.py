"""Shapes that ops look up when run, where they are known after all: lengths were filled in."""

from __future__ import annotations

from ..ir.node import Node, Tensor
from ..ops.nn import OneHot
from ..ops.shaping import BroadcastTo, Reshape, SumToShape
from ..ops.slicing import FULL, Slice, Unslice
from .facts import elements, ints, number_of
from .rewrite import Rule, instead, rule


@rule("BroadcastLike", "ReshapeLike", "SumTo", "UnsliceLike", "OneHotLike")
def like_a_known_shape(node: Node) -> Tensor | None:
    """x broadcast, reshaped, summed, put into zeros like y -> the same with the known shape of y"""
    (x, like), (y,) = node.inputs, node.outputs
    if not like.type.static:
        return None
    shape = ints(like.shape)
    if node.type == "BroadcastLike":
        return instead(node, BroadcastTo(shape), x)
    if node.type == "ReshapeLike":
        return instead(node, Reshape(shape), x)
    if node.type == "SumTo":
        return instead(node, SumToShape(shape), x)
    if node.type == "UnsliceLike":
        return instead(node, Unslice(node.op.attrs["key"], shape), x)
    axis = node.op.attrs["axis"]
    return instead(node, OneHot(shape[axis], axis, y.dtype), x)


@rule("SizeOf")
def known_size(node: Node) -> Tensor | None:
    """the number of elements along axes of known lengths -> that number"""
    (x,), (y,) = node.inputs, node.outputs
    shape = tuple([x.shape[a] for a in node.op.attrs["axes"]])
    known = all(isinstance(d, int) for d in shape)
    return number_of(node, elements(shape), y.dtype) if known else None


@rule("Reshape")
def reshape_to_known_lengths(node: Node) -> Tensor | None:
    """x reshaped to (-1, ...) or to lengths of its axes, which are known -> to these numbers"""
    (x,), (y,) = node.inputs, node.outputs
    if not y.type.static or y.shape == node.op.attrs["shape"]:
        return None
    return instead(node, Reshape(ints(y.shape)), x)


@rule("ConcatPart")
def known_part(node: Node) -> Tensor | None:
    """the part of what was joined that was one of tensors of known lengths -> a slice"""
    joined, *xs = node.inputs
    axis, index = node.op.attrs["axis"], node.op.attrs["index"]
    lengths = [x.shape[axis] for x in xs[: index + 1]]
    if not all(isinstance(d, int) for d in lengths):
        return None
    ends = ints(tuple(lengths))
    start = sum(ends[:-1])
    return instead(node, Slice((*(FULL,) * axis, (start, start + ends[-1], None))), joined)


@rule("EnsureLike")
def ensured_shape(node: Node) -> Tensor | None:
    """x, checked when run to have the shape of y, which both are known to have -> x"""
    x, like = node.inputs
    return x if like.type.static and x.shape == like.shape else None


KNOWN_SHAPES: tuple[Rule, ...] = (
    like_a_known_shape,
    known_size,
    reshape_to_known_lengths,
    known_part,
    ensured_shape,
)
