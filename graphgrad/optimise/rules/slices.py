"""Slices of what was sliced, broadcast, joined: read from what it was made of."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from ...ir.node import Node, Tensor
from ...ops.base import Constant
from ...ops.shape.indexing import Gather
from ...ops.shape.joining import Concat, Split, Stack, Unstack
from ...ops.shape.reshaping import BroadcastTo, Reshape
from ...ops.shape.slicing import Slice
from ..build import beside, instead, reshaped
from ..cuts import cut_of
from ..facts import aligned, elements, ends_of_parts, ints
from ..keys import Place, composed, key_of, one_spelling, places
from ..rule import NodeOf, RewriteRule, rule


@rule(Slice)
def slice_in_one_spelling(node: NodeOf[Slice]) -> Tensor | None:
    """x[-1], x[0:n], x[:, :] -> x[n - 1], x, x: one key for what is read"""
    (x,) = node.inputs
    if not x.type.static:
        return None
    key = one_spelling(node.op.key, x.shape)
    if not key:
        return x
    return None if key == node.op.key else instead(node, Slice(key), x)


@rule(Slice)
def slice_of_ones(node: NodeOf[Slice]) -> Tensor | None:
    """x[0], x[None], where only axes of length 1 come and go -> x reshaped"""
    (x,), (y,) = node.inputs, node.outputs
    if not x.type.static or elements(x.shape) != elements(y.shape):
        return None
    ranges = [p for p in places(node.op.key, x.shape) if isinstance(p, range)]
    return instead(node, Reshape(ints(y.shape)), x) if all(p.step == 1 for p in ranges) else None


@rule(Slice, of=Slice)
def slice_of_slice(node: NodeOf[Slice], inner: NodeOf[Slice]) -> Tensor | None:
    """x[i][j] -> x[k]"""
    (t,), (x,) = node.inputs, inner.inputs
    if not x.type.static:
        return None
    key = composed(inner.op.key, node.op.key, x.shape, t.shape)
    return None if key is None else instead(node, Slice(key), x)


@rule(Slice, of=BroadcastTo)
def slice_of_broadcast(node: NodeOf[Slice], inner: Node) -> Tensor | None:
    """broadcast(x)[i] -> broadcast(x[j])"""
    (t,), (y,), (x,) = node.inputs, node.outputs, inner.inputs
    if not x.type.static:
        return None
    wide = aligned(x.shape, t.ndim)
    lengths = iter(wide)
    entries: list[Place] = []
    for place in places(node.op.key, t.shape):
        if place is not None and next(lengths) == 1:
            place = 0 if isinstance(place, int) else range(1)
        entries.append(place)
    read = beside(node, Slice(key_of(entries, wide)), reshaped(node, x, wide))
    return instead(node, BroadcastTo(ints(y.shape)), read)


@rule(Unstack, Split, over=BroadcastTo)
def cuts_of_broadcast(node: Node) -> tuple[Tensor, ...] | None:
    """unstack(broadcast(x)), split(broadcast(x)) -> parts of x, broadcast"""
    (t,) = node.inputs
    parts = []
    for y in node.outputs:
        cut = cut_of(y)
        if cut is None or not y.type.static:
            return None
        every: list[Place] = [range(n) for n in ints(t.shape)]
        every[cut.axis] = cut.at
        parts.append(beside(node, Slice(key_of(every, t.shape)), t))
    return tuple(parts)


@rule(Slice, of=Concat)
def slice_of_concat(node: NodeOf[Slice], inner: NodeOf[Concat]) -> Tensor | None:
    """concat(x, y, z)[i] -> a slice of one of them, or of some of them concatenated"""
    (t,), parts, axis = node.inputs, inner.inputs, inner.op.axis
    ends = ends_of_parts(inner)
    if None in node.op.key or ends is None:
        return None
    entries = places(node.op.key, t.shape)
    read = entries[axis]
    if read is None or (isinstance(read, range) and (read.step < 0 or not read)):
        return None
    first, last = (read, read) if isinstance(read, int) else (read[0], read[-1])
    begin, end = bisect_right(ends, first), bisect_left(ends, last + 1) + 1
    kept = [p for p in parts[begin:end] if p.shape[axis]]
    if len(kept) == len(parts):
        return None
    before = ends[begin - 1] if begin else 0
    if isinstance(read, int):
        entries[axis] = read - before
    else:
        entries[axis] = range(read.start - before, read.stop - before, read.step)
    joined = kept[0] if len(kept) == 1 else beside(node, inner.op, *kept)
    return instead(node, Slice(key_of(entries, joined.shape)), joined)


@rule(Slice, of=Stack)
def slice_of_stack(node: NodeOf[Slice], inner: NodeOf[Stack]) -> Tensor | None:
    """stack(x, y, z)[1] -> y"""
    (t,) = node.inputs
    if not t.type.static or None in node.op.key:
        return None
    entries = places(node.op.key, t.shape)
    at = entries.pop(inner.op.axis)
    if not isinstance(at, int):
        return None
    x = inner.inputs[at]
    return instead(node, Slice(key_of(entries, x.shape)), x)


@rule(Gather, over=Constant)
def gather_in_a_row(node: NodeOf[Gather]) -> Tensor | None:
    """x at the constant index i -> x[i]; at i, i + 1, ... -> x[i : i + n]"""
    (x, at), (y,) = node.inputs, node.outputs
    known, axis = at.node.op, node.op.axis
    if type(known) is not Constant or not x.type.static or not at.size:
        return None
    length = ints(x.shape)[axis]
    read = known.value.reshape(-1).astype(np.int64)
    if read.min() < -length or read.max() >= length:
        return None  # an error when run
    read = read % length
    if (np.diff(read) != 1).any():
        return None
    entries: list[Place] = [range(n) for n in ints(x.shape)]
    entries[axis] = range(int(read[0]), int(read[-1]) + 1)
    return reshaped(node, beside(node, Slice(key_of(entries, x.shape)), x), y.shape)


SLICES: tuple[RewriteRule, ...] = (
    slice_in_one_spelling,
    slice_of_ones,
    slice_of_slice,
    slice_of_broadcast,
    cuts_of_broadcast,
    slice_of_concat,
    slice_of_stack,
    gather_in_a_row,
)
