"""The loops of a group: which axes run outside and which inside, and what is computed when.

A row is what one run of the inner loops goes over; there is one for each place of the outer axes.
An item is computed once for each element, once for each row, or once for all. Where a reduction of
the row is read again for its elements, the row is gone through several times: in passes. A value of
an earlier pass is computed again if that is cheap, else kept in a buffer of the length of a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .expressions import HELPERS
from .lowered import Item, Lowered, Output

BUFFERS = 1 << 19  # bytes for rows kept from pass to pass
MANY = 1000  # cost beyond which it no longer matters
CHEAP = 10  # cost up to which a value is computed again rather than kept
_READS = ("load", "pick")
_COSTS = {
    "pick": 4,
    "divide": 8,
    "reciprocal": 8,
    "sqrt": 8,
    "floor_divide": 40,
    "remainder": 40,
    "fmod": 40,
}
_HELPER = 16
_LOGADDEXP = 40


def cost_of(item: Item) -> int:
    """Roughly how many instructions an item takes."""
    if item.name in HELPERS:
        return _HELPER
    return _LOGADDEXP if item.name == "logaddexp" else _COSTS.get(item.name, 1)


class Load(NamedTuple):
    """Where an input is read: its place, the strides along the axes of the nest, an offset."""

    place: int
    strides: tuple[int, ...]
    offset: int


class Pass(NamedTuple):
    """One way through a row.

    computes  items, in order
    reads     items that an earlier pass computed and kept
    stores    outputs that are written
    reduces   reductions that go over the elements
    """

    computes: tuple[int, ...]
    reads: tuple[int, ...]
    stores: tuple[int, ...]
    reduces: tuple[int, ...]


class Nest:
    """A lowered group with adjacent axes run together.

    lengths  of the axes, from the outermost on
    rows     how many axes are outer ones
    split    whether there is one axis, whose pieces can be rows
    items    as lowered; `loads` says where loads and picks read, `reduced` over which axes
             reductions go, and `left` which axes what they make has
    outputs  items and axes
    ends     reductions that are complete when all rows are done
    final    those, and what is computed from them
    inner    items that are computed for each element
    fixed    items that are the same everywhere
    passed   item -> the first pass that can compute it for elements, or that it comes after
    passes   what each does
    """

    def __init__(self, lowered: Lowered) -> None:
        self.items = lowered.items
        masks = _masks(lowered)
        again = _read_again(lowered, masks)
        border = min(again, default=None)
        groups = _groups(lowered, border)
        place = {a: i for i, g in enumerate(groups) for a in g}
        self.lengths = tuple([math.prod([lowered.lengths[a] for a in g]) for g in groups])
        self.rows = max(len(groups) - 1, 0) if border is None else place[border]
        self.row_axes = frozenset(range(self.rows, len(groups)))
        self.split = border is None and len(groups) == 1
        self.loads = {i: _load(m, groups) for i, m in enumerate(self.items) if m.name in _READS}
        self.reduced = {
            i: frozenset([place[a] for a in item.data])
            for i, item in enumerate(self.items)
            if item.reduces
        }
        self.left = {
            i: tuple(dict.fromkeys([place[a] for a in item.left]))
            for i, item in enumerate(self.items)
            if item.reduces
        }
        outputs = [(o.item, dict.fromkeys([place[a] for a in o.axes])) for o in lowered.outputs]
        self.outputs = tuple([Output(item, tuple(axes)) for item, axes in outputs])
        self.ends = frozenset(
            i for i, axes in self.reduced.items() if self.split or axes != self.row_axes
        )
        self.final = self._final()
        inside = sum(1 << a for g in groups[self.rows :] for a in g)
        self.inner = frozenset(i for i, m in enumerate(masks) if m & inside) - self.final
        self.passed = self._passed()
        self.fixed = frozenset(
            i
            for i, m in enumerate(masks)
            if not m and self.passed[i] < 0 and i not in self.final and i not in self.inner
        )
        self.passes = tuple(self._planned())

    def _final(self) -> frozenset[int]:
        final: set[int] = set()
        for i, item in enumerate(self.items):
            if i in self.ends or any(a in final for a in item.args):
                final.add(i)
        return frozenset(final)

    def _passed(self) -> list[int]:
        passed: list[int] = []
        for i, item in enumerate(self.items):
            looped = i in self.inner or (item.reduces and self.over_elements(i))
            before = [passed[a] + (looped and a not in self.inner) for a in item.args]
            passed.append(max(before, default=0 if looped else -1))
        return passed

    def _planned(self) -> Iterator[Pass]:
        """The passes over a row, one after the other."""
        stores: dict[int, list[int]] = {}
        reduces: dict[int, list[int]] = {}
        for k, o in enumerate(self.outputs):
            if self.of_elements(o):
                after = o.item not in self.inner
                stores.setdefault(self.passed[o.item] + after, []).append(k)
        for i in self.reduced:
            if self.over_elements(i):
                reduces.setdefault(self.passed[i], []).append(i)
        weights = self._weights()
        row = self.size(self.row_axes)
        room = BUFFERS
        there: set[int] = set()
        kept: set[int] = set()
        for p in range(1 + max([*stores, *reduces], default=-1)):
            roots = [self.outputs[k].item for k in stores.get(p, ())]
            roots += [self.items[i].args[0] for i in reduces.get(p, ())]
            computes: set[int] = set()
            reads: set[int] = set()
            stack = [i for i in roots if i in self.inner]
            while stack:
                i = stack.pop()
                if i in computes or i in reads:
                    continue
                if i in there and weights[i] > CHEAP:
                    size = 0 if i in kept else row * self.items[i].dtype.itemsize
                    if size <= room:
                        room -= size
                        kept.add(i)
                        reads.add(i)
                        continue
                computes.add(i)
                stack.extend(a for a in self.items[i].args if a in self.inner)
            there |= computes
            yield Pass(
                tuple(sorted(computes)),
                tuple(sorted(reads)),
                tuple(stores.get(p, ())),
                tuple(reduces.get(p, ())),
            )

    def _weights(self) -> list[int]:
        """What it costs to compute each item from the inputs and what rows have."""
        weights: list[int] = []
        for i, item in enumerate(self.items):
            below = sum(weights[a] for a in item.args if a in self.inner)
            weights.append(min(cost_of(item) + below, MANY) if i in self.inner else 0)
        return weights

    def over_elements(self, reduction: int) -> bool:
        """Whether a reduction goes over elements, not over numbers that rows have."""
        (of,) = self.items[reduction].args
        axes = self.reduced[reduction].union(self.left[reduction])
        return of in self.inner or not axes.isdisjoint(self.row_axes)

    def of_elements(self, output: Output) -> bool:
        """Whether an output has a number for each element, none of them left by `ends`."""
        return output.item not in self.final and not self.row_axes.isdisjoint(output.axes)

    def at_the_end(self, item: int) -> list[int]:
        """What computes an item from complete reductions: these, and all from there on."""
        needed: set[int] = set()
        stack = [item]
        while stack:
            i = stack.pop()
            if i not in needed:
                needed.add(i)
                stack.extend(() if i in self.ends else self.items[i].args)
        return sorted(needed)

    def overwrites(self) -> Iterator[tuple[int, int]]:
        """(output, input) places of which every element is read, if at all, before it is written,
        and never again: not by other rows, and not at the end.
        """
        read: dict[int, set[int]] = {}
        last = {i: p for p, step in enumerate(self.passes) for i in step.computes}
        for i, load in self.loads.items():
            read.setdefault(load.place, set()).add(i)
        written = {k: p for p, step in enumerate(self.passes) for k in step.stores}
        late = [self.at_the_end(o.item) for o in self.outputs if o.item in self.final]
        finished = frozenset[int]().union(*late)
        outer = range(len(self.lengths) if self.split else self.rows)
        for k, output in enumerate(self.outputs):
            if output.item in self.final or not set(outer) <= set(output.axes):
                continue
            dtype = self.items[output.item].dtype
            strides = tuple(
                [
                    self.size(b for b in output.axes if b > a) if a in output.axes else 0
                    for a in range(len(self.lengths))
                ]
            )
            for place, loads in read.items():
                if all(
                    self.items[i].name == "load"
                    and self.loads[i].strides == strides
                    and self.loads[i].offset == 0
                    and self.items[i].dtype == dtype
                    and last.get(i, -1) <= written.get(k, len(self.passes))
                    and i not in finished
                    for i in loads
                ):
                    yield k, place

    def size(self, axes: Iterable[int]) -> int:
        """How many places axes have together."""
        return math.prod([self.lengths[a] for a in axes])


def _groups(lowered: Lowered, border: int | None) -> list[list[int]]:
    """Neighbouring axes that can be run through as one; none across the border of a row."""
    groups: list[list[int]] = []
    for axis in range(len(lowered.lengths)):
        if groups and axis != border and _one(lowered, axis):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _masks(lowered: Lowered) -> list[int]:
    """For each item the axes along which it varies, as bits."""
    masks: list[int] = []
    for item in lowered.items:
        mask = 0
        for a in item.args:
            mask |= masks[a]
        if item.name in _READS:
            mask |= sum(1 << axis for axis, _ in item.data[1])
        elif item.reduces:
            mask &= ~sum(1 << axis for axis in item.data)
        masks.append(mask)
    return masks


def _read_again(lowered: Lowered, masks: list[int]) -> frozenset[int]:
    """The axes of the reductions whose results are read again for the elements that they reduce."""
    found: set[frozenset[int]] = set()
    sources: list[frozenset[frozenset[int]]] = []

    def read(of: frozenset[frozenset[int]], axes: Iterable[int]) -> None:
        found.update(s for s in of if not s.isdisjoint(axes))

    for item, mask in zip(lowered.items, masks, strict=True):
        of = frozenset[frozenset[int]]().union(*[sources[a] for a in item.args])
        read(of, [a for a in range(len(lowered.lengths)) if mask >> a & 1])
        if item.reduces:
            read(of, (*item.data, *item.left))
            of |= {frozenset(item.data)}
        sources.append(of)
    for o in lowered.outputs:
        read(sources[o.item], o.axes)
    if not found:
        return frozenset()
    (axes,) = found
    rank = len(lowered.lengths)
    assert axes == frozenset(range(rank - len(axes), rank)), "rows are not the last axes"
    return axes


def _one(lowered: Lowered, axis: int) -> bool:
    """Whether an axis and the one before it can be run through as one."""
    length = lowered.lengths[axis]
    for item in lowered.items:
        if item.name in _READS:
            steps = dict(item.data[1])
            if steps.get(axis - 1, 0) != steps.get(axis, 0) * length:
                return False
        elif any((axis in axes) != (axis - 1 in axes) for axes in _axes_of(item)):
            return False
    return all((axis in o.axes) == (axis - 1 in o.axes) for o in lowered.outputs)


def _axes_of(item: Item) -> tuple[tuple[int, ...], ...]:
    """The axes that a reduction takes away, and those that it leaves."""
    return (item.data, item.left) if item.reduces else ()


def _load(item: Item, groups: list[list[int]]) -> Load:
    place, steps, offset, *_ = item.data
    known = dict(steps)
    return Load(place, tuple([known.get(g[-1], 0) for g in groups]), offset)
