"""The loops of a group: which axes run outside and which inside, and what is computed when.

A row is what one run of the inner loops goes over; there is one for each place of the outer axes.
An item is computed once for each element, once for each row, or once for all. Where a reduction of
the row is read again for its elements, the row is gone through several times: in passes. A value of
an earlier pass is computed again if that is cheap, else kept in a buffer of the length of a row.

Rows are the last axes of a nest, wherever they are in the shape that the loop runs over. A vector
holds neighbours in a row, or neighbouring rows that run abreast: where rows are too short for a
vector, or neighbours in memory belong to different rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ...ir.types import DType
from .expressions import HELPERS
from .lowered import Item, Lowered, Output

BUFFERS = 1 << 19  # bytes for rows kept from pass to pass
LANES = 64  # at most, of a vector whose rows run abreast
SHORT = 32  # elements of a row up to which rows that lie in order may run abreast
BESIDE = 4  # neighbours that a short row needs at least, times its length
MOVED = 32  # bytes between rows and columns, times the length of a row, that cost 1
ACROSS = 8  # the cost of putting the lanes of a vector together
LEFT = 8  # a reduction that ends a loop leaves at most this fraction of what it reduces
MANY = 1000  # cost beyond which it no longer matters
CHEAP = 10  # cost up to which a value is computed again rather than kept
ALIKE = 8  # outputs that lie alike of which it is worked out what they may be written over
_READS = ("load", "pick")
_COSTS = {
    "pick": 4,
    "divide": 8,
    "reciprocal": 8,
    "sqrt": 8,
    "floor_divide": 40,
    "remainder": 40,
    "fmod": 40,
    "logaddexp": 40,
    "power": 100,
}
_HELPER = 16


def cost_of(item: Item) -> int:
    """Roughly how many instructions an item takes."""
    return _COSTS.get(item.name, _HELPER if item.name in HELPERS else 1)


Layout = tuple[tuple[int, ...], DType]
"""How what is read or written lies: its strides along the axes of the nest, and its dtype."""


class Load(NamedTuple):
    """Where an input is read: its place, the strides along the axes of the nest, an offset."""

    place: int
    strides: tuple[int, ...]
    offset: int


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
    abreast  whether the lanes of a vector are places of the last outer axis
    split    whether there is one axis, whose pieces can be rows
    items    as lowered; `loads` says where loads and picks read, `reduced` over which axes
             reductions go, and `left` which axes what they make has
    outputs  items and axes
    ends     reductions that are complete when all rows are done
    final    those, and what is computed from them
    inner    items that are computed for each element
    fixed    items that are the same everywhere
    across   items that vary along the last outer axis
    passed   item -> the first pass that can compute it for elements, or that it comes after
    passes   what each does
    """

    def __init__(self, lowered: Lowered, again: tuple[int, ...]) -> None:
        row = frozenset(again) or _row_of(lowered)
        lowered = _row_last(lowered, row)
        self.items = lowered.items
        masks = _masks(lowered)
        border = len(lowered.lengths) - len(row) if row else None
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
        along = sum(1 << a for g in groups[self.rows - 1 : self.rows] for a in g)
        self.across = frozenset(i for i, m in enumerate(masks) if m & along)
        self.abreast = self._rows_abreast(border is not None)
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
        row = self.size(self.row_axes) * (LANES if self.abreast else 1)
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

        A plan uses one pair, so of outputs that lie alike a few are enough.
        """
        last = {i: p for p, step in enumerate(self.passes) for i in step.computes}
        written = {k: p for p, step in enumerate(self.passes) for k in step.stores}
        read = self._read_alike()
        outer = set(range(len(self.lengths) if self.split else self.rows))
        alike: Counter[Layout] = Counter()
        for k, output in enumerate(self.outputs):
            if output.item in self.final or not outer <= set(output.axes):
                continue
            steps = self.steps(output.axes)
            strides = tuple([steps.get(a, 0) for a in range(len(self.lengths))])
            layout = strides, self.items[output.item].dtype
            alike[layout] += 1
            if alike[layout] > ALIKE:
                continue
            end = written.get(k, len(self.passes))
            for place, loads in read.get(layout, ()):
                if all(last.get(i, -1) <= end for i in loads):
                    yield k, place

    def _read_alike(self) -> dict[Layout, list[tuple[int, list[int]]]]:
        """How inputs lie -> those that are read so alone and not at the end, with their loads."""
        late = [self.at_the_end(o.item) for o in self.outputs if o.item in self.final]
        finished = frozenset[int]().union(*late)
        read: dict[int, list[int]] = {}
        for i, load in self.loads.items():
            read.setdefault(load.place, []).append(i)
        found: dict[Layout, list[tuple[int, list[int]]]] = {}
        for place, loads in read.items():
            layouts = {(self.loads[i].strides, self.items[i].dtype) for i in loads}
            plain = all(self.items[i].name == "load" and not self.loads[i].offset for i in loads)
            if plain and len(layouts) == 1 and finished.isdisjoint(loads):
                found.setdefault(layouts.pop(), []).append((place, loads))
        return found

    def size(self, axes: Iterable[int]) -> int:
        """How many places axes have together."""
        return math.prod([self.lengths[a] for a in axes])

    def steps(self, axes: Sequence[int]) -> dict[int, int]:
        """The strides of a row-major array that has these axes, in this order."""
        found: dict[int, int] = {}
        step = 1
        for a in reversed(axes):
            found[a] = step
            step *= self.lengths[a]
        return found

    def _rows_abreast(self, reduces: bool) -> bool:
        """Whether vectors hold neighbouring rows. reduces: whether rows are reduced.

        So it is where most of what is read and written lies so, and where it must be: along a row,
        what is written for elements would not lie in order.
        """
        if not self.rows:
            return False
        if self._short_rows():
            return True
        along, last = self.rows - 1, len(self.lengths) - 1
        written = [o.axes for o in self.outputs if self.of_elements(o)]
        left = [axes for i, axes in self.left.items() if i in self.ends and last in axes]
        if any(self.steps(axes)[last] != 1 for axes in (*written, *left)):
            return True
        if not reduces:
            return False
        read = [self.loads[i].strides for i in self.loads if i in self.inner]
        return sum(s[along] == 1 for s in read) > sum(s[last] == 1 for s in read) + len(written)

    def _short_rows(self) -> bool:
        """Whether rows are so short, and what is computed for them so much, that it pays to turn
        what is read and written into columns.
        """
        size = self.size(self.row_axes)
        along = self.rows - 1
        if size > SHORT or self.lengths[along] < BESIDE * size:
            return False
        inner = [i for i in self.loads if i in self.inner]
        if any(self.items[i].name == "pick" for i in inner):
            return False
        turned = [i for i in inner if self.loads[i].strides[along] not in (0, 1)]
        turned += [o.item for o in self.outputs if self.of_elements(o)]
        turned += [i for i in self.ends if self.over_elements(i) and along in self.left[i]]
        moved = size * size * sum(max(self.items[i].dtype.itemsize, 4) for i in turned)
        work = 3
        for i, item in enumerate(self.items):
            if item.reduces:
                work += ACROSS
            elif i in self.inner:
                work += cost_of(item)
            elif i in self.across and i not in self.final:
                work += 2 * cost_of(item)
        return moved <= MOVED * work


def _row_of(lowered: Lowered) -> frozenset[int]:
    """The axes of a row: those of reductions that are read again for elements, or else of those
    with which most is computed. None where all reductions can wait for the end.
    """
    lengths = lowered.lengths
    used: Counter[frozenset[int]] = Counter()
    sources: list[frozenset[frozenset[int]]] = []
    for item in lowered.items:
        of = frozenset[frozenset[int]]().union(*[sources[a] for a in item.args])
        others = [a for a in item.args if not sources[a] and lowered.items[a].name != "number"]
        if item.reduces or others:
            used.update(of)
        if item.reduces and _makes_rows(item, lengths):
            axes = frozenset(item.data)
            used[axes] += 0
            of |= {axes}
        sources.append(of)
    return max(used, key=used.__getitem__, default=frozenset())


def _makes_rows(item: Item, lengths: tuple[int, ...]) -> bool:
    """Whether a reduction of elements leaves numbers that rows may have."""
    if not item.left or len(item.data) + len(item.left) < len(lengths):
        return False
    return is_last(item.data, lengths) or not leaves_little(item.data, lengths)


def _row_last(lowered: Lowered, row: frozenset[int]) -> Lowered:
    """The same with the axes of a row after all others."""
    order = sorted(range(len(lowered.lengths)), key=lambda a: a in row)
    place = {a: i for i, a in enumerate(order)}
    items = []
    for item in lowered.items:
        data = item.data
        if item.name in _READS:
            at, steps, *rest = data
            data = (at, tuple(sorted((place[a], s) for a, s in steps)), *rest)
        elif item.reduces:
            data = tuple(sorted(place[a] for a in data))
        items.append(item._replace(data=data, left=tuple([place[a] for a in item.left])))
    outputs = [Output(o.item, tuple([place[a] for a in o.axes])) for o in lowered.outputs]
    lengths = tuple([lowered.lengths[a] for a in order])
    return lowered._replace(lengths=lengths, items=tuple(items), outputs=tuple(outputs))


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


def _one(lowered: Lowered, axis: int) -> bool:
    """Whether an axis and the one before it can be run through as one."""
    length = lowered.lengths[axis]
    for item in lowered.items:
        if item.name in _READS:
            steps = dict(item.data[1])
            if steps.get(axis - 1, 0) != steps.get(axis, 0) * length:
                return False
        elif item.reduces and not (_pair(item.data, axis) and _pair(item.left, axis)):
            return False
    return all(_pair(o.axes, axis) for o in lowered.outputs)


def _pair(axes: tuple[int, ...], axis: int) -> bool:
    """Whether an axis follows the one before it, or both are missing."""
    if axis in axes:
        return axis - 1 in axes[: axes.index(axis)][-1:]
    return axis - 1 not in axes


def _load(item: Item, groups: list[list[int]]) -> Load:
    place, steps, offset, *_ = item.data
    known = dict(steps)
    return Load(place, tuple([known.get(g[-1], 0) for g in groups]), offset)
