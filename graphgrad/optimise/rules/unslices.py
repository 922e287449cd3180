"""Pieces put into zeros: what is cut out of them, and sums of them as joins."""

from __future__ import annotations

from heapq import heappop, heappush
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from ...base.kinds import is_inexact
from ...ir.node import Node, Tensor
from ...ops.elementwise.accumulate import AddN
from ...ops.elementwise.arithmetic import ADD, Add
from ...ops.shape.joining import Concat
from ...ops.shape.padding import Pad
from ...ops.shape.reshaping import BroadcastTo, Reshape
from ...ops.shape.slicing import Slice, Unslice
from ..build import beside, filled, instead, number_of, reshaped, total
from ..facts import at_least_zero, elements, ints, is_number, uniform_value
from ..keys import Place, along_one_axis, composed, key_of, places
from ..rule import ROUNDING, NodeOf, RewriteRule, rule


@rule(Pad)
def pad_is_unslice(node: NodeOf[Pad]) -> Tensor | None:
    """x with zeros around it -> x put into zeros"""
    (x,), (y,) = node.inputs, node.outputs
    value = np.asarray(node.op.value, dtype=x.dtype)[()]
    if not (x.type.static and is_number(value, 0.0)):
        return None
    ranges = [range(a, a + n) for (a, _), n in zip(node.op.widths, ints(x.shape))]
    return instead(node, Unslice(key_of(ranges, y.shape), ints(y.shape)), x)


@rule(Unslice)
def unslice_of_everything(node: NodeOf[Unslice]) -> Tensor | None:
    """x put into zeros of which it leaves none -> x reshaped"""
    (x,), (y,) = node.inputs, node.outputs
    if not x.type.static or elements(x.shape) != elements(y.shape):
        return None
    ranges = [p for p in places(node.op.key, y.shape) if isinstance(p, range)]
    return instead(node, Reshape(ints(y.shape)), x) if all(p.step == 1 for p in ranges) else None


@rule(Unslice, of=Unslice)
def unslice_of_unslice(node: NodeOf[Unslice], inner: NodeOf[Unslice]) -> Tensor | None:
    """x put into zeros, and these into others -> x put into the others"""
    (t,), (y,) = node.inputs, node.outputs
    key = composed(node.op.key, inner.op.key, y.shape, t.shape)
    return None if key is None else instead(node, Unslice(key, ints(y.shape)), *inner.inputs)


@rule(Slice, of=Unslice)
def slice_of_unslice(node: NodeOf[Slice], inner: NodeOf[Unslice]) -> Tensor | None:
    """a slice of x put into zeros -> a slice of x; a slice of the zeros -> 0"""
    (t,), (y,), (x,) = node.inputs, node.outputs, inner.inputs
    put, read = inner.op.key, node.op.key
    if not x.type.static or None in put or None in read:
        return None
    entries: list[Place] = []
    lengths: list[int] = []
    apart = False
    for p, r in zip(places(put, t.shape), places(read, t.shape), strict=True):
        at = range(p, p + 1) if isinstance(p, int) else p
        wanted = range(r, r + 1) if isinstance(r, int) else r
        if at is None or wanted is None or not wanted or at.step != 1 or wanted.step < 0:
            return None
        lengths.append(len(at))
        apart = apart or wanted[-1] < at.start or wanted[0] >= at.stop
        inside = wanted[0] in at and wanted[-1] in at
        first = wanted[0] - at.start
        last = range(first, first + wanted[-1] - wanted[0] + 1, wanted.step)
        entries.append((first if isinstance(r, int) else last) if inside else range(0))
    if apart:
        return filled(node, 0, y)
    if range(0) in entries:
        return None
    shape = tuple(lengths)
    return instead(node, Slice(key_of(entries, shape)), reshaped(node, x, shape))


class _Block(NamedTuple):
    """A piece along an axis of a sum: from where to where, which term, and it, with that axis."""

    start: int
    stop: int
    term: int
    piece: Tensor


@rule(Add, AddN, over=Unslice, level=ROUNDING)
def sum_of_unslices(node: Node) -> Tensor | None:
    """a sum of tensors padded with zeros -> concat of those that do not overlap; a sum of concats

    A piece is added to 0.0, which makes 0.0 of a -0.0, as adding the zeros around the others did.
    """
    (y,) = node.outputs
    if not y.type.static:
        return None
    by_axis: dict[int, list[_Block]] = {}
    for i, t in enumerate(node.inputs):
        pair = _block(node, i, t)
        if pair is not None:
            by_axis.setdefault(pair[0], []).append(pair[1])
    joined: dict[int, Tensor] = {}
    for axis, blocks in by_axis.items():
        for layer in _layers(blocks):
            if len(layer) > 1:
                made = _side_by_side(node, axis, layer)
                joined.update((b.term, made) for same in layer for b in same)
    if not joined:
        return None
    terms = [t for i, t in enumerate(node.inputs) if i not in joined]
    return total(node, [*dict.fromkeys(joined.values()), *terms])


def _block(node: Node, term: int, t: Tensor) -> tuple[int, _Block] | None:
    """The axis along which a term is a piece put into zeros, and the piece."""
    (y,), op = node.outputs, t.node.op
    if type(op) is not Unslice or t.shape != y.shape or not t.node.inputs[0].type.static:
        return None
    axis_range = along_one_axis(op.key, y.shape)
    if axis_range is None:
        return None
    axis, place = axis_range
    start, stop = (place, place + 1) if isinstance(place, int) else (place.start, place.stop)
    shape = list(y.shape)
    shape[axis] = stop - start
    return axis, _Block(start, stop, term, reshaped(node, t.node.inputs[0], tuple(shape)))


def _layers(blocks: list[_Block]) -> list[list[list[_Block]]]:
    """As few lists as can be of blocks that are apart, in order; those of one place as one."""
    same: dict[tuple[int, int], list[_Block]] = {}
    for block in blocks:
        same.setdefault((block.start, block.stop), []).append(block)
    layers: list[list[list[_Block]]] = []
    ends: list[tuple[int, int]] = []  # of layers: the place, and which
    for (start, stop), group in sorted(same.items(), key=itemgetter(0)):
        if ends and ends[0][0] <= start:
            layer = heappop(ends)[1]
        else:
            layer = len(layers)
            layers.append([])
        layers[layer].append(group)
        heappush(ends, (stop, layer))
    return layers


def _side_by_side(node: Node, axis: int, layer: list[list[_Block]]) -> Tensor:
    """The sum of blocks that are apart or the same, as one tensor."""
    length = ints(node.outputs[0].shape)[axis]
    parts: list[Tensor] = []
    end = 0
    for same in layer:
        start, stop, *_ = same[0]
        if start > end:
            parts.append(_zeros(node, axis, start - end))
        pieces = [b.piece for b in same]
        parts.append(_plus_zero(node, total(pieces[0].node, pieces)))
        end = stop
    if end < length:
        parts.append(_zeros(node, axis, length - end))
    return beside(node, Concat(axis), *parts)


def _zeros(node: Node, axis: int, length: int) -> Tensor:
    shape = list(ints(node.outputs[0].shape))
    shape[axis] = length
    return beside(node, BroadcastTo(tuple(shape)), number_of(node, 0, node.outputs[0].dtype))


def _plus_zero(node: Node, t: Tensor) -> Tensor:
    """t without a -0.0."""
    if not is_inexact(t.dtype) or at_least_zero(t) or _has_zero_added(t):
        return t
    return beside(node, ADD, t, number_of(node, 0, t.dtype))


def _has_zero_added(t: Tensor) -> bool:
    return t.node.op is ADD and any(is_number(uniform_value(x), 0.0) for x in t.node.inputs)


UNSLICES: tuple[RewriteRule, ...] = (
    pad_is_unslice,
    unslice_of_everything,
    unslice_of_unslice,
    slice_of_unslice,
    sum_of_unslices,
)
