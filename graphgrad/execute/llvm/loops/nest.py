"""The loops of a group: what is computed when.

An item is computed once for each element, once for each row, or once for all. Where a reduction of
the row is read again for its elements, the row is gone through several times: in passes. A value of
an earlier pass is computed again if that is cheap, else kept in a buffer of the length of a row.

A vector holds neighbours in a row, or, by outer vectorisation, elements of neighbouring rows: where
rows are too short for a vector, or neighbours in memory belong to different rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from ....ir.types import DType
from ....lower.items import Lowered, Output
from .expressions import HELPERS, PAIRS
from .tiling import tile

BUFFERS = 1 << 19  # bytes for rows kept from pass to pass
LANES = 64  # at most, of a vector with a row in each lane
SHORT = 32  # elements of a row up to which rows that lie in order may be lanes
BESIDE = 4  # neighbours that a short row needs at least, times its length
MOVED = 32  # bytes between rows and columns, times the length of a row, that cost 1
ACROSS = 8  # the cost of putting the lanes of a vector together
MANY = 1000  # cost beyond which it no longer matters
CHEAP = 10  # cost up to which a value is computed again rather than kept
ALIKE = 8  # outputs that lie alike of which it is worked out what they may be written over
_COSTS = {
    "gather": 4,
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


def cost_of(name: str) -> int:
    """Roughly how many instructions an item of this name takes."""
    return _COSTS.get(name, _HELPER if name in HELPERS else 1)


Layout = tuple[tuple[int, ...], DType]
"""How what is read or written lies: its strides along the axes of the nest, and its dtype."""


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


class _Buffers:
    """Rows that are kept from pass to pass, of so many elements, as long as there is memory."""

    def __init__(self, elements: int) -> None:
        self.elements = elements
        self.left = BUFFERS
        self.kept: set[int] = set()

    def keep(self, item: int, itemsize: int) -> bool:
        """Whether an item is kept."""
        size = 0 if item in self.kept else self.elements * itemsize
        if size > self.left:
            return False
        self.left -= size
        self.kept.add(item)
        return True


class Nest:
    """A lowered group as loops over axes, outer ones and those of a row: see `Tiled`."""

    def __init__(self, lowered: Lowered, row: Iterable[int]) -> None:
        self.tiled = tiled = tile(lowered, row)
        self.items, self.outputs = tiled.items, tiled.outputs
        self.lengths, self.rows = tiled.lengths, tiled.rows
        self.loads, self.reduced, self.left = tiled.loads, tiled.reduced, tiled.left

    # --- axes --------------------------------------------------------------------------------

    @cached_property
    def row_axes(self) -> frozenset[int]:
        """The axes of a row."""
        return frozenset(range(self.rows, len(self.lengths)))

    @cached_property
    def split(self) -> bool:
        """Whether there is one axis, whose pieces can be rows."""
        return not self.tiled.reduces and len(self.lengths) == 1

    @cached_property
    def _varies(self) -> list[int]:
        """For each item the axes along which it varies, as bits."""
        masks: list[int] = []
        for i, item in enumerate(self.items):
            axes = 0
            for a in item.args:
                axes |= masks[a]
            if i in self.loads:
                axes |= sum(1 << a for a, stride in enumerate(self.loads[i].strides) if stride)
            elif item.reduces:
                axes &= ~sum(1 << a for a in self.reduced[i])
            masks.append(axes)
        return masks

    def _along(self, axes: Iterable[int]) -> frozenset[int]:
        """The items that vary along some of these axes."""
        bits = sum(1 << a for a in axes)
        return frozenset(i for i, varies in enumerate(self._varies) if varies & bits)

    @cached_property
    def moved(self) -> int:
        """Bytes that are read and written, each entry once."""
        where = [*self.loads, *[o.item for o in self.outputs]]
        return sum(self.items[i].dtype.itemsize * self._entries(self._varies[i]) for i in where)

    def _entries(self, axes: int) -> int:
        return math.prod(n for a, n in enumerate(self.lengths) if axes >> a & 1)

    # --- items by how often they are computed ------------------------------------------------

    @cached_property
    def ends(self) -> frozenset[int]:
        """Reductions that are complete when all rows are done."""
        reduced = self.reduced.items()
        return frozenset(i for i, axes in reduced if self.split or axes != self.row_axes)

    @cached_property
    def final(self) -> frozenset[int]:
        """Those, and what is computed from them."""
        final: set[int] = set()
        for i, item in enumerate(self.items):
            if i in self.ends or not final.isdisjoint(item.args):
                final.add(i)
        return frozenset(final)

    @cached_property
    def inner(self) -> frozenset[int]:
        """Items that are computed for each element."""
        return self._along(self.row_axes) - self.final

    @cached_property
    def across(self) -> frozenset[int]:
        """Items that vary along the last outer axis."""
        return self._along(range(self.rows)[-1:])

    @cached_property
    def passed(self) -> list[int]:
        """Item -> the first pass that can compute it for elements, or that it comes after."""
        passed: list[int] = []
        for i, item in enumerate(self.items):
            looped = i in self.inner or (item.reduces and self.over_elements(i))
            before = [passed[a] + (looped and a not in self.inner) for a in item.args]
            passed.append(max(before, default=0 if looped else -1))
        return passed

    @cached_property
    def fixed(self) -> frozenset[int]:
        """Items that are the same everywhere."""
        same = {i for i, axes in enumerate(self._varies) if not axes and self.passed[i] < 0}
        return frozenset(same - self.final - self.inner)

    @cached_property
    def twins(self) -> dict[int, int]:
        """Item -> the other that one call computes with it, right after it in a pass."""
        first: dict[object, int] = {}
        twins: dict[int, int] = {}
        for i, item in enumerate(self.items):
            if item.name in PAIRS:
                other = first.setdefault((PAIRS[item.name][0], item.args), i)
                if other != i:
                    twins[i], twins[other] = other, i
        return twins

    # --- passes over a row -------------------------------------------------------------------

    @cached_property
    def passes(self) -> tuple[Pass, ...]:
        """What each does, one after the other."""
        there: set[int] = set()  # what earlier passes computed
        buffers = _Buffers(self.size(self.row_axes) * (LANES if self.outer_lanes else 1))
        passes = []
        for stores, reduces in self._roots():
            roots = [self.outputs[k].item for k in stores]
            roots += [self.items[i].args[0] for i in reduces]
            computes, reads = self._needed(roots, there, buffers)
            there |= computes
            order = sorted(computes, key=lambda i: (min(i, self.twins.get(i, i)), i))
            passes.append(Pass(*map(tuple, (order, sorted(reads), stores, reduces))))
        return tuple(passes)

    def _roots(self) -> list[tuple[list[int], list[int]]]:
        """What each pass is for: outputs that it stores, and reductions."""
        stores = {
            k: self.passed[o.item] + (o.item not in self.inner)
            for k, o in enumerate(self.outputs)
            if self.of_elements(o)
        }
        reduces = {i: self.passed[i] for i in self.reduced if self.over_elements(i)}
        count = 1 + max([*stores.values(), *reduces.values()], default=-1)
        roots: list[tuple[list[int], list[int]]] = [([], []) for _ in range(count)]
        for k, p in stores.items():
            roots[p][0].append(k)
        for i, p in reduces.items():
            roots[p][1].append(i)
        return roots

    def _needed(
        self, roots: Iterable[int], there: set[int], buffers: _Buffers
    ) -> tuple[set[int], set[int]]:
        """What a pass computes for elements, and what it reads that an earlier one kept."""
        computes, reads = set[int](), set[int]()
        stack = [i for i in roots if i in self.inner]
        while stack:
            i = stack.pop()
            if i in computes or i in reads:
                continue
            costly = i in there and self._weights[i] > CHEAP
            if costly and buffers.keep(i, self.items[i].dtype.itemsize):
                reads.add(i)
            else:
                computes.add(i)
                stack.extend(a for a in self.items[i].args if a in self.inner)
        return computes, reads

    @cached_property
    def _weights(self) -> list[int]:
        """What it costs to compute each item from the inputs and what rows have."""
        weights: list[int] = []
        for i, item in enumerate(self.items):
            below = sum(weights[a] for a in item.args if a in self.inner)
            weights.append(min(cost_of(item.name) + below, MANY) if i in self.inner else 0)
        return weights

    # --- what is read and written --------------------------------------------------------

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
        alike: dict[Layout, list[tuple[int, list[int]]]] = {}
        for place, loads in read.items():
            layouts = {(self.loads[i].strides, self.items[i].dtype) for i in loads}
            plain = all(self.items[i].name == "load" and not self.loads[i].offset for i in loads)
            if plain and len(layouts) == 1 and finished.isdisjoint(loads):
                alike.setdefault(layouts.pop(), []).append((place, loads))
        return alike

    def size(self, axes: Iterable[int]) -> int:
        """How many places axes have together."""
        return math.prod([self.lengths[a] for a in axes])

    def steps(self, axes: Sequence[int]) -> dict[int, int]:
        """The strides of a row-major array that has these axes, in this order."""
        strides: dict[int, int] = {}
        step = 1
        for a in reversed(axes):
            strides[a] = step
            step *= self.lengths[a]
        return strides

    # --- vectors -----------------------------------------------------------------------------

    @cached_property
    def outer_lanes(self) -> bool:
        """Outer vectorisation: whether the lanes of a vector are places of the last outer axis.

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
        if not self.tiled.reduces:
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
        if any(self.items[i].name == "gather" for i in inner):
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
                work += cost_of(item.name)
            elif i in self.across and i not in self.final:
                work += 2 * cost_of(item.name)
        return moved <= MOVED * work
