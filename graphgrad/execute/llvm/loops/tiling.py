"""Tiling: which axes of a lowered group run outside and which inside, in which order.

A row is what one run of the inner loops goes over; there is one for each place of the outer axes.
Rows are the last axes, wherever they are in the shape that the loop runs over. Adjacent axes that
can be run through as one are one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ....lower.items import Item, Lowered, Output, Read, Reduced

LEFT = 8  # a reduction that ends a loop leaves at most this fraction of what it reduces


class Load(NamedTuple):
    """Where an input is read, as a `Read`, but with the strides along the axes of the nest."""

    place: int
    strides: tuple[int, ...]
    offset: int
    indexed: tuple[tuple[int, int], ...]


class Tiled(NamedTuple):
    """A lowered group on the axes of a nest.

    lengths  of the axes, from the outermost on
    rows     how many axes are outer ones
    reduces  whether the others were chosen because reductions go over them
    items    as lowered
    loads    where loads and gathers read
    reduced  over which axes reductions go
    left     which axes what they make has
    outputs  items and axes
    """

    lengths: tuple[int, ...]
    rows: int
    reduces: bool
    items: tuple[Item, ...]
    loads: dict[int, Load]
    reduced: dict[int, frozenset[int]]
    left: dict[int, tuple[int, ...]]
    outputs: tuple[Output, ...]


def tile(lowered: Lowered, row: Iterable[int]) -> Tiled:
    """The axes of a nest. row: those that fusion needs as a row; where it needs none, those of the
    reductions with whose results most is computed, if there are any.
    """
    row = frozenset(row) or _most_used(lowered)
    lowered = _row_last(lowered, row)
    outer = len(lowered.lengths) - len(row)
    groups = _joined(lowered, outer if row else None)
    place = {a: i for i, g in enumerate(groups) for a in g}
    rows = sum(g[0] < outer for g in groups) if row else max(len(groups) - 1, 0)

    def axes(of: Sequence[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys([place[a] for a in of]))

    items = lowered.items
    reads = {i: item.data for i, item in enumerate(items) if isinstance(item.data, Read)}
    reduced = {i: item.data for i, item in enumerate(items) if isinstance(item.data, Reduced)}
    return Tiled(
        tuple([math.prod([lowered.lengths[a] for a in g]) for g in groups]),
        rows,
        bool(row),
        items,
        {i: _load(read, groups) for i, read in reads.items()},
        {i: frozenset(axes(one.axes)) for i, one in reduced.items()},
        {i: axes(one.left) for i, one in reduced.items()},
        tuple([Output(o.item, axes(o.axes)) for o in lowered.outputs]),
    )


def is_last(axes: Sequence[int], lengths: Sequence[int]) -> bool:
    """Whether axes, in their order, are the last ones."""
    rank = len(lengths)
    return list(axes) == list(range(rank - len(axes), rank))


def leaves_little(axes: Sequence[int], lengths: Sequence[int]) -> bool:
    """Whether what a reduction over these axes leaves can wait for the end of the loop.

    That is so where all that it leaves is written again and again: by each place of the first axis.
    """
    gone = math.prod([lengths[a] for a in axes])
    return gone >= LEFT and (axes[0] == 0 or is_last(axes, lengths))


def _most_used(lowered: Lowered) -> frozenset[int]:
    """The axes of reductions with which most is computed; none where all can wait for the end."""
    lengths = lowered.lengths
    used: Counter[frozenset[int]] = Counter()
    sources: list[frozenset[frozenset[int]]] = []
    for item in lowered.items:
        of = frozenset[frozenset[int]]().union(*[sources[a] for a in item.args])
        others = [a for a in item.args if not sources[a] and lowered.items[a].name != "number"]
        if item.reduces or others:
            used.update(of)
        if isinstance(item.data, Reduced) and _makes_rows(item.data, lengths):
            axes = frozenset(item.data.axes)
            used[axes] += 0
            of |= {axes}
        sources.append(of)
    return max(used, key=used.__getitem__, default=frozenset())


def _makes_rows(reduced: Reduced, lengths: tuple[int, ...]) -> bool:
    """Whether a reduction of elements leaves numbers that rows may have."""
    axes, left = reduced
    if not left or len(axes) + len(left) < len(lengths):
        return False
    return is_last(axes, lengths) or not leaves_little(axes, lengths)


def _row_last(lowered: Lowered, row: frozenset[int]) -> Lowered:
    """The same with the axes of a row after all others."""
    order = sorted(range(len(lowered.lengths)), key=lambda a: a in row)
    place = {a: i for i, a in enumerate(order)}.__getitem__
    lengths = tuple([lowered.lengths[a] for a in order])
    items = tuple([item.on(place) for item in lowered.items])
    outputs = tuple([Output(o.item, tuple(map(place, o.axes))) for o in lowered.outputs])
    return lowered._replace(lengths=lengths, items=items, outputs=outputs)


def _joined(lowered: Lowered, border: int | None) -> list[list[int]]:
    """Neighbouring axes that can be run through as one; none across the border of a row."""
    groups: list[list[int]] = []
    for axis in range(len(lowered.lengths)):
        if groups and axis != border and _one(lowered, axis):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _one(lowered: Lowered, axis: int) -> bool:
    """Whether an axis and the one before it can be run through as one."""
    length = lowered.lengths[axis]
    for item in lowered.items:
        if isinstance(item.data, Read):
            steps = dict(item.data.along)
            if steps.get(axis - 1, 0) != steps.get(axis, 0) * length:
                return False
        elif isinstance(item.data, Reduced) and not all(_pair(axes, axis) for axes in item.data):
            return False
    return all(_pair(o.axes, axis) for o in lowered.outputs)


def _pair(axes: tuple[int, ...], axis: int) -> bool:
    """Whether an axis follows the one before it, or both are missing."""
    if axis in axes:
        return axis - 1 in axes[: axes.index(axis)][-1:]
    return axis - 1 not in axes


def _load(read: Read, groups: list[list[int]]) -> Load:
    strides = dict(read.along)
    along = tuple([strides.get(g[-1], 0) for g in groups])
    return Load(read.place, along, read.offset, read.indexed)
