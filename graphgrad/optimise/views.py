"""Transposes, reshapes and broadcasts: joined, cancelled, and moved to where they cost nothing.

A broadcast moves towards the readers: what is computed of equal elements is computed once. A
transpose goes into a matrix product. Neither moves across an element-wise node otherwise: a view is
free, and one between two element-wise nodes would keep them from being one loop. Every rewrite here
keeps every bit.
"""

from __future__ import annotations

from itertools import pairwise

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.types import Shape, broadcast
from ..ops.base import Cast, ZerosLike
from ..ops.products import MatMul
from ..ops.shaping import BroadcastLike, BroadcastTo, Reshape, Transpose
from .facts import (
    BROADCASTS,
    elements,
    filled,
    ints,
    settled_shape,
)
from .rewrite import Rule, beside, instead, rule

_RESHAPES = ("Reshape", "ExpandDims", "Squeeze", "Flat")
_FAR = 8  # steps that a rule goes back over element-wise nodes


# --- transposes --------------------------------------------------------------------------------


@rule("Transpose")
def transpose_to_the_same(node: Node) -> Tensor | None:
    """x with its axes in the order they have -> x"""
    axes = node.op.attrs["axes"]
    return node.inputs[0] if axes == tuple(range(len(axes))) else None


@rule("Transpose")
def transpose_of_ones(node: Node) -> Tensor | None:
    """x transposed, where only axes of length 1 move -> x reshaped"""
    (x,), (y,) = node.inputs, node.outputs
    moved = [a for a in node.op.attrs["axes"] if x.shape[a] != 1]
    still = x.type.static and all(a < b for a, b in pairwise(moved))
    return instead(node, Reshape(ints(y.shape)), x) if still else None


@rule("Transpose", over="Transpose")
def transpose_of_transpose(node: Node) -> Tensor | None:
    """x with its axes permuted twice -> once, or not at all"""
    inner = node.inputs[0].node
    first, second = inner.op.attrs["axes"], node.op.attrs["axes"]
    return instead(node, Transpose(tuple([first[a] for a in second])), inner.inputs[0])


@rule("MatMul", over="Transpose")
def matmul_of_transpose(node: Node) -> Tensor | None:
    """x^T @ y, x @ y^T -> the product that reads its operand so"""
    flags = [node.op.attrs["transpose_a"], node.op.attrs["transpose_b"]]
    stack_by_matrix = node.inputs[0].ndim > 2 and node.inputs[1].ndim == 2
    for i, t in enumerate(node.inputs):
        if t.node.type != "Transpose" or (i == 0 and stack_by_matrix):
            continue  # the rows of a stack are one matrix, but not if read so
        *rest, a, b = t.node.op.attrs["axes"]
        if a < b:
            continue
        order = (*rest, b, a)
        flags[i] = not flags[i]
        inputs = list(node.inputs)
        (inputs[i],) = t.node.inputs
        if order != tuple(range(len(order))):
            inputs[i] = beside(node, Transpose(order), inputs[i])
        return instead(node, MatMul(*flags), *inputs)
    return None


# --- reshapes ----------------------------------------------------------------------------------


@rule("Reshape", "ExpandDims", "Squeeze", "Flat")
def reshape_to_the_same(node: Node) -> Tensor | None:
    """x reshaped to its own shape -> x"""
    (x,), (y,) = node.inputs, node.outputs
    return x if x.type is y.type and x.type.static else None


@rule("Reshape", "ExpandDims", "Squeeze", "Flat", over=_RESHAPES)
def reshape_of_reshape(node: Node) -> Tensor | None:
    """x reshaped twice -> once, or not at all"""
    (y,) = node.outputs
    (x,) = node.inputs[0].node.inputs
    if not (y.type.static and x.type.static):
        return None  # the first may be an error when run
    return instead(node, Reshape(ints(y.shape)), x)


@rule("Squeeze", over="ExpandDims")
def squeeze_of_expand_dims(node: Node) -> Tensor | None:
    """axes put in and taken out -> x"""
    return _undone(node)


@rule("ExpandDims", over="Squeeze")
def expand_dims_of_squeeze(node: Node) -> Tensor | None:
    """axes of length 1 taken out and put back -> x"""
    return _undone(node)


def _undone(node: Node) -> Tensor | None:
    inner = node.inputs[0].node
    if inner.op.attrs["axes"] != node.op.attrs["axes"]:
        return None
    return inner.inputs[0] if settled_shape(inner.inputs[0]) else None


# --- broadcasts --------------------------------------------------------------------------------


@rule("Full")
def full_is_broadcast(node: Node) -> Tensor | None:
    """an array of one number -> the number, broadcast"""
    (y,) = node.outputs
    return filled(node, node.op.attrs["value"], y) if y.shape else None


@rule("ZerosLike", "OnesLike")
def like_is_broadcast(node: Node) -> Tensor | None:
    """zeros or ones in the shape of x -> the number, broadcast to the shape of x"""
    value = 0 if type(node.op) is ZerosLike else 1
    return filled(node, value, node.inputs[0])


@rule("BroadcastTo", "SumToShape")
def to_own_shape(node: Node) -> Tensor | None:
    """x broadcast or summed to its own shape -> x"""
    (x,) = node.inputs
    return x if x.type.static else None


@rule("BroadcastTo", over="BroadcastTo")
def broadcast_of_broadcast(node: Node) -> Tensor | None:
    """x broadcast twice -> once"""
    inner = node.inputs[0].node
    if not inner.inputs[0].type.static:
        return None  # of unknown lengths, the first may be an error when run
    return instead(node, node.op, inner.inputs[0])


@rule("BroadcastTo", over=_RESHAPES)
def broadcast_of_leading_ones(node: Node) -> Tensor | None:
    """x with axes of length 1 put in front, broadcast -> x broadcast"""
    (x,) = node.inputs
    (start,) = x.node.inputs
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
        if t.node.type not in BROADCASTS or t.shape != shape:
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
        starts = [t.node.inputs[0] if t.node.type == "BroadcastTo" else t for t in node.inputs]
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
    if first.type != "BroadcastLike" or any(t.node is not first for t in wide):
        return None
    if first.outputs[0].shape != out.shape:
        return None
    start, like = first.inputs
    starts = [start if t.node is first else t for t in node.inputs]
    return instead(node, BroadcastLike(), beside(node, node.op, *starts), like)


@rule("ExpandDims", "Squeeze", "Reshape", over="BroadcastTo")
def reshape_of_broadcast(node: Node) -> Tensor | None:
    """broadcast(x) with axes of length 1 put in or taken out -> x so, broadcast"""
    (y,), (t,) = node.outputs, node.inputs
    (x,) = t.node.inputs
    if not (x.type.static and y.type.static):
        return None
    if elements(x.shape) == 1:
        small: Shape = ()
    else:
        wide = _aligned(x.shape, t.ndim)
        places = _only_ones_move(t.shape, y.shape)
        if places is None:
            return None
        small = tuple([1 if at is None else wide[at] for at in places])
    shaped = x if small == x.shape else beside(node, Reshape(ints(small)), x)
    return instead(node, BroadcastTo(ints(y.shape)), shaped)


@rule("Transpose", over="BroadcastTo")
def transpose_of_broadcast(node: Node) -> Tensor | None:
    """broadcast(x)^T -> broadcast(x^T)"""
    (y,), (t,) = node.outputs, node.inputs
    (x,) = t.node.inputs
    if not x.type.static:
        return None
    wide = _aligned(x.shape, t.ndim)
    shaped = x if wide == x.shape else beside(node, Reshape(ints(wide)), x)
    return instead(node, BroadcastTo(ints(y.shape)), beside(node, node.op, shaped))


@rule("BroadcastLike", "ReshapeLike", "SumTo", "UnsliceLike", "SizeOf")
def shape_from_an_input(node: Node) -> Tensor | None:
    """what reads f(x, 0-d) only for its shape -> reads x, where x is an input of the program"""
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


def _aligned(shape: Shape, ndim: int) -> Shape:
    """The shape with axes of length 1 in front, of this rank."""
    return (*(1,) * (ndim - len(shape)), *shape)


def _only_ones_move(old: Shape, new: Shape) -> list[int | None] | None:
    """For each axis of `new` the axis of `old` that it is, None for a new one of length 1.

    None where the shapes differ in more than axes of length 1.
    """
    if [d for d in old if d != 1] != [d for d in new if d != 1]:
        return None
    rest = iter([i for i, d in enumerate(old) if d != 1])
    return [None if d == 1 else next(rest) for d in new]


VIEWS: tuple[Rule, ...] = (
    transpose_to_the_same,
    transpose_of_ones,
    transpose_of_transpose,
    matmul_of_transpose,
    reshape_to_the_same,
    squeeze_of_expand_dims,
    expand_dims_of_squeeze,
    reshape_of_reshape,
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
