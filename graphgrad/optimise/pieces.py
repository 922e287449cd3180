"""Slices, joins, and pieces put into zeros: what is cut out of what was joined, and the reverse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import NamedTuple, TypeAlias

import numpy as np

from ..ir.node import Node, Tensor
from ..ir.types import Shape
from ..ops.accumulate import AddN
from ..ops.arithmetic import ADD
from ..ops.base import Constant
from ..ops.joining import Concat
from ..ops.shaping import BroadcastTo, Reshape
from ..ops.slicing import Key, Slice, Unslice, normal_slice, trimmed
from .facts import at_least_zero, elements, filled, ints, is_number, number_of, uniform_value
from .rewrite import ROUNDING, Rule, beside, instead, rule

Place: TypeAlias = int | range | None
"""What a key reads of an axis: one index, a range of them; None is a new axis."""


# --- keys --------------------------------------------------------------------------------------


def places(key: Key, shape: Shape) -> list[Place]:
    """The key with every index counted from the front, and an entry for every axis of the shape."""
    lengths = iter(ints(shape))
    found: list[Place] = []
    for item in key:
        if item is None:
            found.append(None)
            continue
        every = range(next(lengths))
        found.append(every[slice(*item)] if type(item) is tuple else every[item])
    return found + [range(n) for n in lengths]


@lru_cache(maxsize=1 << 12)
def one_spelling(key: Key, shape: Shape) -> Key:
    """The one key that reads what this one reads of the shape."""
    return key_of(places(key, shape), shape)


def key_of(found: Sequence[Place], shape: Shape) -> Key:
    """The one key that reads these places of the shape."""
    lengths = iter(ints(shape))
    items: list[object] = []
    for place in found:
        if place is None:
            items.append(None)
            continue
        length = next(lengths)
        if isinstance(place, int):
            items.append(place)
        else:
            stop = place.stop if place.stop >= 0 else None
            items.append(normal_slice(slice(place.start, stop, place.step), length))
    return trimmed(items)


def composed(first: Key, second: Key, shape: Shape, between: Shape) -> Key | None:
    """The key that reads of the shape what `second` reads of what `first` reads; None: no key."""
    then = places(second, between)
    found: list[Place] = []
    for place in places(first, shape):
        while then and then[0] is None and not isinstance(place, int):
            found.append(then.pop(0))
        if isinstance(place, int):
            found.append(place)
            continue
        again = then.pop(0)
        if place is not None:
            assert again is not None
            found.append(place[again] if isinstance(again, int) else _within(place, again))
        elif isinstance(again, range):  # an axis that the first key made
            if len(again) != 1:
                return None
            found.append(None)
    return key_of([*found, *then], shape)


def _within(outer: range, inner: range) -> range:
    """The elements of outer at the places of inner."""
    if not inner:
        return range(0)
    stop = outer[inner[-1]] + (1 if outer.step * inner.step > 0 else -1)
    return range(outer[inner[0]], stop, outer.step * inner.step)


class Cut(NamedTuple):
    """A tensor that is read of another along one axis alone: one index, or a range."""

    source: Tensor
    axis: int
    at: int | range


def cut_of(t: Tensor) -> Cut | None:
    """The cut that a tensor is, if it is one."""
    node = t.node
    if node.type not in ("Unstack", "Split", "Slice") or not node.inputs[0].type.static:
        return None
    (x,) = node.inputs
    if node.type == "Slice":
        found = along_one_axis(node.op.attrs["key"], x.shape)
        return None if found is None else Cut(x, *found)
    axis = node.op.attrs["axis"]
    if node.type == "Unstack":
        return Cut(x, axis, t.index)
    start = sum(ints(tuple([y.shape[axis] for y in node.outputs[: t.index]])))
    return Cut(x, axis, range(start, start + ints(t.shape)[axis]))


def along_one_axis(key: Key, shape: Shape) -> tuple[int, int | range] | None:
    """(axis, place) of a key that reads all of every other axis, with step 1."""
    if None in key:
        return None
    lengths = ints(shape)
    parts = [(i, p) for i, p in enumerate(places(key, shape)) if p != range(lengths[i])]
    if len(parts) != 1:
        return None
    axis, place = parts[0]
    if place is None or (isinstance(place, range) and (place.step != 1 or not place)):
        return None
    return axis, place


def follows(first: Cut, second: Cut) -> bool:
    """Whether a cut begins where another of the same source ends."""
    return (
        second.source is first.source
        and second.axis == first.axis
        and type(second.at) is type(first.at)
        and _start(second) == _end(first)
    )


def _joined(cuts: Sequence[Cut]) -> Cut:
    """Cuts that follow each other, as one."""
    first, last = cuts[0], cuts[-1]
    return Cut(first.source, first.axis, range(_start(first), _end(last)))


def _start(cut: Cut) -> int:
    return cut.at if isinstance(cut.at, int) else cut.at.start


def _end(cut: Cut) -> int:
    return cut.at + 1 if isinstance(cut.at, int) else cut.at.stop


def _read(node: Node, cut: Cut) -> Tensor:
    """A range of the source, the axis kept."""
    whole = [range(n) for n in ints(cut.source.shape)]
    assert isinstance(cut.at, range)
    if whole[cut.axis] == cut.at:
        return cut.source
    found: list[Place] = [*whole]
    found[cut.axis] = cut.at
    return beside(node, Slice(key_of(found, cut.source.shape)), cut.source)


def _shaped(node: Node, t: Tensor, shape: Shape) -> Tensor:
    return t if t.shape == shape else beside(node, Reshape(ints(shape)), t)


# --- slices ------------------------------------------------------------------------------------


@rule("Slice")
def slice_in_one_spelling(node: Node) -> Tensor | None:
    """x[-1], x[0:n], x[:, :] -> x[n - 1], x, x: one key for what is read"""
    (x,) = node.inputs
    if not x.type.static:
        return None
    written = node.op.attrs["key"]
    key = one_spelling(written, x.shape)
    if not key:
        return x
    return None if key == written else instead(node, Slice(key), x)


@rule("Slice")
def slice_of_ones(node: Node) -> Tensor | None:
    """x[0], x[None], where only axes of length 1 come and go -> x reshaped"""
    (x,), (y,) = node.inputs, node.outputs
    if not x.type.static or elements(x.shape) != elements(y.shape):
        return None
    found = [p for p in places(node.op.attrs["key"], x.shape) if isinstance(p, range)]
    return instead(node, Reshape(ints(y.shape)), x) if all(p.step == 1 for p in found) else None


@rule("Slice", over="Slice")
def slice_of_slice(node: Node) -> Tensor | None:
    """x[i][j] -> x[k]"""
    (t,) = node.inputs
    (x,) = t.node.inputs
    if not x.type.static:
        return None
    key = composed(t.node.op.attrs["key"], node.op.attrs["key"], x.shape, t.shape)
    return None if key is None else instead(node, Slice(key), x)


@rule("Slice", over="BroadcastTo")
def slice_of_broadcast(node: Node) -> Tensor | None:
    """broadcast(x)[i] -> broadcast(x[j])"""
    (t,), (y,) = node.inputs, node.outputs
    (x,) = t.node.inputs
    if not x.type.static:
        return None
    wide = (1,) * (t.ndim - x.ndim) + ints(x.shape)
    lengths = iter(wide)
    found: list[Place] = []
    for place in places(node.op.attrs["key"], t.shape):
        if place is not None and next(lengths) == 1:
            place = 0 if isinstance(place, int) else range(1)
        found.append(place)
    read = beside(node, Slice(key_of(found, wide)), _shaped(node, x, wide))
    return instead(node, BroadcastTo(ints(y.shape)), read)


@rule("Unstack", "Split", over="BroadcastTo")
def cuts_of_broadcast(node: Node) -> tuple[Tensor, ...] | None:
    """unstack(broadcast(x)), split(broadcast(x)) -> parts of x, broadcast"""
    (t,) = node.inputs
    found = []
    for y in node.outputs:
        cut = cut_of(y)
        if cut is None or not y.type.static:
            return None
        every: list[Place] = [range(n) for n in ints(t.shape)]
        every[cut.axis] = cut.at
        found.append(beside(node, Slice(key_of(every, t.shape)), t))
    return tuple(found)


@rule("Slice", over="Concat")
def slice_of_concat(node: Node) -> Tensor | None:
    """concat(x, y, z)[i] -> what is read of one of them, or of a part of them joined"""
    (t,) = node.inputs
    parts, axis = t.node.inputs, t.node.op.attrs["axis"]
    key = node.op.attrs["key"]
    if None in key or not all(p.type.static for p in parts):
        return None
    found = places(key, t.shape)
    read = found[axis]
    if read is None or (isinstance(read, range) and (read.step < 0 or not read)):
        return None
    first, last = (read, read) if isinstance(read, int) else (read[0], read[-1])
    ends = list(accumulate(ints(tuple([p.shape[axis] for p in parts]))))
    starts = [0, *ends[:-1]]
    kept = [i for i, (a, b) in enumerate(zip(starts, ends)) if max(a, first) < min(b, last + 1)]
    if len(kept) == len(parts):
        return None
    before = starts[kept[0]]
    if isinstance(read, int):
        found[axis] = read - before
    else:
        found[axis] = range(read.start - before, read.stop - before, read.step)
    few = [parts[i] for i in kept]
    joined = few[0] if len(few) == 1 else beside(node, t.node.op, *few)
    return instead(node, Slice(key_of(found, joined.shape)), joined)


@rule("Slice", over="Stack")
def slice_of_stack(node: Node) -> Tensor | None:
    """stack(x, y, z)[1] -> y"""
    (t,) = node.inputs
    axis, key = t.node.op.attrs["axis"], node.op.attrs["key"]
    if not t.type.static or None in key:
        return None
    found = places(key, t.shape)
    at = found.pop(axis)
    if not isinstance(at, int):
        return None
    x = t.node.inputs[at]
    return instead(node, Slice(key_of(found, x.shape)), x)


@rule("Gather", over="Constant")
def gather_in_a_row(node: Node) -> Tensor | None:
    """x at the constant index i -> x[i]; at i, i + 1, ... -> x[i : i + n]"""
    (x, at), (y,) = node.inputs, node.outputs
    axis = node.op.attrs["axis"]
    if type(at.node.op) is not Constant or not x.type.static or not at.size:
        return None
    length = ints(x.shape)[axis]
    read = at.node.op.value.reshape(-1).astype(np.int64)
    if read.min() < -length or read.max() >= length:
        return None  # an error when run
    read = read % length
    if (np.diff(read) != 1).any():
        return None
    found: list[Place] = [range(n) for n in ints(x.shape)]
    found[axis] = range(int(read[0]), int(read[-1]) + 1)
    return _shaped(node, beside(node, Slice(key_of(found, x.shape)), x), y.shape)


# --- joins -------------------------------------------------------------------------------------


@rule("Concat")
def concat_of_one(node: Node) -> Tensor | None:
    """concat(x, what is empty) -> x"""
    axis = node.op.attrs["axis"]
    kept = [x for x in node.inputs if x.shape[axis] != 0] or [node.inputs[0]]
    if len(kept) == len(node.inputs) > 1:
        return None
    return kept[0] if len(kept) == 1 else instead(node, node.op, *kept)


@rule("Concat", over="Concat")
def concat_of_concat(node: Node) -> Tensor | None:
    """concat(concat(x, y), z) -> concat(x, y, z)"""
    parts: list[Tensor] = []
    for x in node.inputs:
        parts += x.node.inputs if x.node.op is node.op else [x]
    return instead(node, node.op, *parts) if len(parts) > len(node.inputs) else None


@rule("Concat", over=("Slice", "Split", "Unstack"))
def concat_of_cuts(node: Node) -> Tensor | None:
    """concat(x[a:b], x[b:c]) -> x[a:c]; concat(x[i], x[i + 1]) -> x[i : i + 2] reshaped"""
    axis = node.op.attrs["axis"]
    if not all(t.type.static for t in node.inputs):
        return None
    parts: list[Tensor] = []
    for run in _runs([cut_of(t) for t in node.inputs], axis, node.inputs):
        if len(run) == 1:
            parts.append(run[0])
            continue
        joined = _joined([c for t in run if (c := cut_of(t)) is not None])
        shape = list(run[0].shape)
        shape[axis] = sum(ints(tuple([t.shape[axis] for t in run])))
        parts.append(_shaped(node, _read(node, joined), tuple(shape)))
    if len(parts) == len(node.inputs):
        return None
    return parts[0] if len(parts) == 1 else instead(node, node.op, *parts)


def _runs(cuts: Sequence[Cut | None], axis: int, tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """The tensors in runs of cuts that follow each other along the axis."""
    runs: list[list[Tensor]] = []
    last: Cut | None = None
    for t, cut in zip(tensors, cuts, strict=True):
        if cut is not None and cut.axis != axis:
            cut = None
        if last is not None and cut is not None and follows(last, cut):
            runs[-1].append(t)
        else:
            runs.append([t])
        last = cut
    return runs


@rule("Stack", over=("Slice", "Unstack"))
def stack_of_cuts(node: Node) -> Tensor | None:
    """stack(x[i], x[i + 1]) -> x[i : i + 2]"""
    cuts = [cut_of(t) for t in node.inputs]
    axis = node.op.attrs["axis"]
    found = [c for c in cuts if c is not None and isinstance(c.at, int) and c.axis == axis]
    if len(found) < len(cuts) or not all(follows(a, b) for a, b in pairwise(found)):
        return None
    return _read(node, _joined(found))


@rule("Unstack", over="Stack")
def unstack_of_stack(node: Node) -> tuple[Tensor, ...] | None:
    """unstack(stack(x, y)) -> x, y"""
    inner = node.inputs[0].node
    return inner.inputs if inner.op.attrs["axis"] == node.op.attrs["axis"] else None


@rule("Split", over="Concat")
def split_of_concat(node: Node) -> tuple[Tensor, ...] | None:
    """split(concat(x, y)) at the seams -> x, y"""
    inner = node.inputs[0].node
    same = inner.op.attrs["axis"] == node.op.attrs["axis"] and len(inner.inputs) == len(
        node.outputs
    )
    return inner.inputs if same and all(t.type.static for t in inner.inputs) else None


# --- pieces put into zeros -----------------------------------------------------------------------


@rule("Pad")
def pad_is_unslice(node: Node) -> Tensor | None:
    """x with zeros around it -> x put into zeros"""
    (x,), (y,) = node.inputs, node.outputs
    value = np.asarray(node.op.attrs["value"], dtype=x.dtype)[()]
    if not (x.type.static and is_number(value, 0.0)):
        return None
    found = [range(a, a + n) for (a, _), n in zip(node.op.attrs["widths"], ints(x.shape))]
    return instead(node, Unslice(key_of(found, y.shape), ints(y.shape)), x)


@rule("Unslice")
def unslice_of_everything(node: Node) -> Tensor | None:
    """x put into zeros of which it leaves none -> x reshaped"""
    (x,), (y,) = node.inputs, node.outputs
    if not x.type.static or elements(x.shape) != elements(y.shape):
        return None
    found = [p for p in places(node.op.attrs["key"], y.shape) if isinstance(p, range)]
    return instead(node, Reshape(ints(y.shape)), x) if all(p.step == 1 for p in found) else None


@rule("Unslice", over="Unslice")
def unslice_of_unslice(node: Node) -> Tensor | None:
    """x put into zeros, and these into others -> x put into the others"""
    (t,), (y,) = node.inputs, node.outputs
    key = composed(node.op.attrs["key"], t.node.op.attrs["key"], y.shape, t.shape)
    if key is None:
        return None
    return instead(node, Unslice(key, ints(y.shape)), *t.node.inputs)


@rule("Slice", over="Unslice")
def slice_of_unslice(node: Node) -> Tensor | None:
    """what is read where x was put -> that of x; what is read of the zeros -> 0"""
    (t,), (y,) = node.inputs, node.outputs
    (x,) = t.node.inputs
    put, read = t.node.op.attrs["key"], node.op.attrs["key"]
    if not x.type.static or None in put or None in read:
        return None
    found: list[Place] = []
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
        found.append((first if isinstance(r, int) else last) if inside else range(0))
    if apart:
        return filled(node, 0, y)
    if range(0) in found:
        return None
    shape = tuple(lengths)
    return instead(node, Slice(key_of(found, shape)), _shaped(node, x, shape))


class _Block(NamedTuple):
    """A piece along an axis of a sum: from where to where, which term, and it, with that axis."""

    start: int
    stop: int
    term: int
    piece: Tensor


@rule("Add", "AddN", over="Unslice", level=ROUNDING)
def sum_of_unslices(node: Node) -> Tensor | None:
    """pieces put into zeros, added -> concat of those that do not overlap; the sum of the concats

    A piece is added to 0.0, which makes 0.0 of a -0.0, as adding the zeros around the others did.
    """
    (y,) = node.outputs
    if not y.type.static:
        return None
    by_axis: dict[int, list[_Block]] = {}
    for i, t in enumerate(node.inputs):
        found = _block(node, i, t)
        if found is not None:
            by_axis.setdefault(found[0], []).append(found[1])
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


def total(node: Node, terms: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one type, to stand for a node."""
    if len(terms) == 1:
        return terms[0]
    return instead(node, ADD if len(terms) == 2 else AddN(), *terms)


def _block(node: Node, term: int, t: Tensor) -> tuple[int, _Block] | None:
    """The axis along which a term is a piece put into zeros, and the piece."""
    (y,) = node.outputs
    if t.node.type != "Unslice" or t.shape != y.shape or not t.node.inputs[0].type.static:
        return None
    found = along_one_axis(t.node.op.attrs["key"], y.shape)
    if found is None:
        return None
    axis, place = found
    start, stop = (place, place + 1) if isinstance(place, int) else (place.start, place.stop)
    shape = list(y.shape)
    shape[axis] = stop - start
    return axis, _Block(start, stop, term, _shaped(node, t.node.inputs[0], tuple(shape)))


def _layers(blocks: list[_Block]) -> list[list[list[_Block]]]:
    """As few lists as can be of blocks that are apart, in order; those of one place as one."""
    same: dict[tuple[int, int], list[_Block]] = {}
    for block in blocks:
        same.setdefault((block.start, block.stop), []).append(block)
    layers: list[list[list[_Block]]] = []
    ends: list[tuple[int, int]] = []  # of layers: the place, and which
    for (start, stop), found in sorted(same.items(), key=itemgetter(0)):
        if ends and ends[0][0] <= start:
            layer = heappop(ends)[1]
        else:
            layer = len(layers)
            layers.append([])
        layers[layer].append(found)
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
    if t.dtype.kind not in "fc" or at_least_zero(t) or _has_zero_added(t):
        return t
    return beside(node, ADD, t, number_of(node, 0, t.dtype))


def _has_zero_added(t: Tensor) -> bool:
    return t.node.type == "Add" and any(is_number(uniform_value(x), 0.0) for x in t.node.inputs)


PIECES: tuple[Rule, ...] = (
    slice_in_one_spelling,
    slice_of_ones,
    slice_of_slice,
    slice_of_broadcast,
    cuts_of_broadcast,
    slice_of_concat,
    slice_of_stack,
    gather_in_a_row,
    concat_of_one,
    concat_of_concat,
    concat_of_cuts,
    stack_of_cuts,
    unstack_of_stack,
    split_of_concat,
    pad_is_unslice,
    unslice_of_everything,
    unslice_of_unslice,
    slice_of_unslice,
    sum_of_unslices,
)
