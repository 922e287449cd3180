"""Outer vectorisation: each lane of a vector is in another row, a neighbour along the last outer
axis.

So rows may be as short as they like, or lie across memory, and the numbers that rows have are
vectors as those of elements are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..emit.types import stored
from ..emit.values import Value
from .access import (
    bytes_of,
    computed,
    element,
    indexed,
    load,
    read,
    spread,
    store,
    whole,
    wide_enough,
)
from .nest import SHORT, Pass
from .reductions import CHAIN, Accumulator, lanes_of
from .rows import Loops
from .transposes import columns
from .vectorise import Lanes, RowPass, Vector


class Outer(Loops):
    """Writes the function; see Loops. A vector of rows is what it counts as a row."""

    def row(self, row: str) -> None:
        """A whole vector of rows, or those that are left at the end of their axis."""
        t, nest, lanes = self.body, self.nest, self.blocks.lanes
        length = nest.lengths[nest.rows - 1]
        vectors = -(-length // lanes)
        *outer, number = self.unravelled(row, (*nest.lengths[: nest.rows - 1], vectors))
        main = whole(length, lanes)
        left = length - main
        full = partial(self._vector, [*outer, t.mul(number, lanes)], lanes, lanes)
        tail = partial(self._vector, [*outer, str(main)], wide_enough(max(left, 1)), left)
        if not left:
            full()
        elif not main:
            tail()
        else:
            t.when(t(f"icmp slt i64 {number}, {vectors - 1}"), full, tail)

    def _vector(self, index: list[str], lanes: int, valid: int) -> None:
        _Rows(self, index, lanes, valid).write()


class _Rows(RowPass):
    """Writes what is done for one vector of rows.

    index   the places along the outer axes, of the first row
    lanes   of the vectors; `valid` of them are rows
    along   the axis along which the rows lie
    steps   strides of the elements of one row, in their order
    """

    def __init__(self, loops: Outer, index: list[str], lanes: int, valid: int) -> None:
        super().__init__(loops, index)
        self.loops, self.lanes, self.valid = loops, lanes, valid
        nest = loops.nest
        self.along = nest.rows - 1
        inner = sorted(nest.row_axes)
        steps = nest.steps(inner)
        self.steps = tuple([steps[a] for a in inner])
        written = [k for k, o in enumerate(nest.outputs) if o.item not in nest.final]
        self.loads = {i: loops.load_at(i, index) for i in nest.loads}
        self.stores = {k: loops.output_at(k, index) for k in written}
        self._room: list[tuple[int, int]] = []
        self.turned_loads: dict[int, str] = {}
        self.turned_stores: dict[int, str] = {}
        self.turned_ends: dict[int, str] = {}

    def write(self) -> None:
        """Pass by pass, between turning short rows into columns and back."""
        self._turn()
        super().write()
        self._turn_back()

    def get(self, i: int) -> Value:
        """A number of each row."""
        cached = self.values.get(i)
        if cached is None:
            cached = self.values[i] = spread(self.loops.fixed[i], self.lanes)
        return cached

    def compute(self, i: int) -> Value:
        """A number of each row, from others."""
        return self.item(i, self.get, ())

    def store(self, k: int, x: Value) -> None:
        """Write a number for each row."""
        store(x, self.valid, self.stores[k])

    def end(self, i: int, x: Value) -> None:
        """Put a number of each row together with what there is."""
        self.end_elements(i, x, ())

    # --- short rows that lie one after the other ---------------------------------------------

    def _turn(self) -> None:
        """Workspace for columns: an element of each row, and the next one of each after them."""
        nest = self.nest
        if nest.size(nest.row_axes) > SHORT:
            return
        for i, load_ in nest.loads.items():
            if i in nest.inner and self.items[i].name == "load" and self._short(load_.strides):
                self.turned_loads[i] = self._columns(element(self.items[i]))
                self._move(element(self.items[i]), self.loads[i], self.turned_loads[i])
        for k in self.stores:
            if nest.of_elements(nest.outputs[k]) and self._short(
                self._strides(nest.outputs[k].axes)
            ):
                self.turned_stores[k] = self._columns(element(self.items[nest.outputs[k].item]))
        for i in sorted(nest.ends):
            if nest.over_elements(i) and self._short(self._strides(nest.left[i])):
                self.turned_ends[i] = self._columns(element(self.items[i]))
                self._move(element(self.items[i]), self.end_at(i, ()), self.turned_ends[i])

    def _turn_back(self) -> None:
        """Columns to the rows that they were made for."""
        for k, buffer in self.turned_stores.items():
            kind = element(self.items[self.nest.outputs[k].item])
            self._move(kind, self.stores[k], buffer, back=True)
        for i, buffer in self.turned_ends.items():
            self._move(element(self.items[i]), self.end_at(i, ()), buffer, back=True)
        for offset, size in self._room:
            self.loops.workspace.give(offset, size)

    def _strides(self, axes: Sequence[int]) -> tuple[int, ...]:
        steps = self.nest.steps(axes)
        return tuple([steps.get(a, 0) for a in range(len(self.nest.lengths))])

    def _short(self, strides: Sequence[int]) -> bool:
        """Whether rows lie one after the other, in order."""
        inner = tuple(strides[self.along + 1 :])
        size = self.nest.size(self.nest.row_axes)
        return strides[self.along] == size and inner == self.steps

    def _columns(self, kind: str) -> str:
        size = self.nest.size(self.nest.row_axes) * self.lanes * bytes_of(kind)
        offset = self.loops.workspace.take(size)
        self._room.append((offset, size))
        return self.loops.workspace.at(offset)

    def _move(self, kind: str, where: str, buffer: str, *, back: bool = False) -> None:
        t, width = self.body, self.nest.size(self.nest.row_axes)
        name = columns(t.module, stored(kind), width, back=back)
        step = self.lanes * bytes_of(kind)
        t.do(f"call void @{name}(ptr {where}, ptr {buffer}, i64 {step}, i64 {self.valid})")

    # --- what the rows have ------------------------------------------------------------------

    def item(
        self, i: int, get: Callable[[int], Value], places: Sequence[str], order: str = ""
    ) -> Value:
        """An item of the rows, or of their elements at places along the axes of a row."""
        item = self.items[i]
        if item.name == "load":
            return self._loaded(i, places, order)
        if item.name == "gather":
            return self._gathered(i, get, places)
        return computed(self.items, i, [get(a) for a in item.args], self.loops.inline)

    def _load_at(self, i: int, places: Sequence[str]) -> str:
        strides = self.nest.loads[i].strides[self.along + 1 :]
        terms = list(zip(places, strides, strict=False))
        return self.loops.at(self.loads[i], bytes_of(element(self.items[i])), terms)

    def _loaded(self, i: int, places: Sequence[str], order: str) -> Value:
        kind = element(self.items[i])
        if i in self.turned_loads:
            where = self.column(self.turned_loads[i], kind, places)
            return load(self.body, kind, self.lanes, self.valid, where, order)
        stride = self.nest.loads[i].strides[self.along]
        where = self._load_at(i, places)
        return read(self.body, kind, self.lanes, self.valid, where, stride, order)

    def _gathered(self, i: int, get: Callable[[int], Value], places: Sequence[str]) -> Value:
        """Numbers at the places that indices say, which may be the same for all the rows."""
        item, across = self.items[i], self.nest.across
        terms = zip(item.args, self.nest.loads[i].indexed, strict=True)
        vary = [(get(a), *step) for a, step in terms if a in across]
        same = [None if a in across else lanes_of(get(a), 0, 1) for a in item.args]
        base = self.loops.gather_at(i, self._load_at(i, places), same)
        stride, kind = self.nest.loads[i].strides[self.along], element(item)
        if not vary:
            return read(self.body, kind, self.lanes, self.valid, base, stride)
        return indexed(self.body, kind, self.valid, base, stride, vary)

    def column(self, buffer: str, kind: str, places: Sequence[str]) -> str:
        """Where a vector is among those of all elements of the rows."""
        terms = list(zip(places, self.steps, strict=True))
        return self.loops.at(buffer, self.lanes * bytes_of(kind), terms)

    # --- a pass over the elements ------------------------------------------------------------

    def one_pass(self, step: Pass) -> None:
        """Loops over the axes of a row, an element of each row at a time."""
        nest = self.nest
        long = self.loops.exact and nest.size(nest.row_axes) > CHAIN
        sums = {
            i: Accumulator(self.body, self.loops.how(i), self.lanes, long)
            for i in step.reduces
            if nest.reduced[i] >= nest.row_axes
        }
        for accumulator in sums.values():
            accumulator.begin()
        elements = _Elements(self, step, sums)
        for i in elements.of_rows:
            self.get(i)  # before the loops
        exact = [a for a in sums.values() if a.exact]
        self._through((), elements.write, exact)
        for i, accumulator in sums.items():
            if i in nest.ends:
                self.end(i, accumulator.each())
            else:
                self.values[i] = accumulator.each()

    def _through(
        self,
        places: tuple[str, ...],
        write: Callable[[tuple[str, ...]], None],
        exact: Sequence[Accumulator],
    ) -> None:
        """Loops over the axes of a row; the last one in chains, where sums are exact."""
        t = self.body
        axis = self.along + 1 + len(places)
        length = self.nest.lengths[axis]
        if axis < len(self.nest.lengths) - 1:
            t.loop(0, length, 1, lambda i: self._through((*places, i), write, exact))
            return

        def chain(start: str | int, stop: str | int) -> None:
            t.loop(start, stop, 1, lambda i: write((*places, i)))
            for accumulator in exact:
                accumulator.carry()

        if exact and length > CHAIN:
            t.loop(0, length, CHAIN, lambda i: chain(i, t.least(t.add(i, CHAIN), length)))
        else:
            chain(0, length)

    # --- reductions that are complete in the end ---------------------------------------------

    def end_at(self, i: int, places: Sequence[str]) -> str:
        return self.loops.end_at(i, [*self.index, *places])

    def end_elements(self, i: int, x: Value, places: Sequence[str]) -> None:
        """Put what rows have, or their elements at some places, together with what there is."""
        loops, how = self.loops, self.loops.how(i)
        x = loops.operand(i, x)
        if self.along in self.nest.reduced[i]:
            loops.add(i, how.across(how.masked(x, self.valid)), [*self.index, *places])
        elif i in self.turned_ends:
            where = self.column(self.turned_ends[i], x.element, places)
            loops.add_to(i, x, self.valid, where)
        else:
            self._spread_end(i, x, self.end_at(i, places))

    def _spread_end(self, i: int, x: Value, where: str) -> None:
        stride = self.nest.steps(self.nest.left[i])[self.along]
        if stride == 1:
            self.loops.add_to(i, x, self.valid, where)
            return
        for lane in range(self.valid):
            at = self.body.at(where, lane * stride * bytes_of(x.element))
            self.loops.add_to(i, lanes_of(x, lane, 1), 1, at)


class _Elements(Vector):
    """Writes what a pass does for one element of each row, at places along the axes of a row.

    sums: reductions of whole rows.
    """

    def __init__(self, rows: _Rows, step: Pass, sums: dict[int, Accumulator]) -> None:
        super().__init__(rows.loops, step)
        self.rows, self.loops, self.sums = rows, rows.loops, sums

    def write(self, places: tuple[str, ...]) -> None:
        """All that is computed for it; where there are fewer rows, for the other lanes too."""
        self.vector(Lanes(places, self.rows.lanes, self.rows.lanes))

    def row(self, lanes: int) -> Callable[[int], Value]:
        """A number of each row."""
        return self.rows.get

    def compute(self, i: int, get: Callable[[int], Value], v: Lanes, order: str) -> Value:
        """An item, of each row."""
        return self.rows.item(i, get, v.at, order)

    def kept_at(self, i: int, v: Lanes) -> str:
        """Where a value is that an earlier pass keeps for a later one."""
        where = self.loops.workspace.at(self.loops.kept[i])
        return self.rows.column(where, element(self.items[i]), v.at)

    def reduce(self, i: int, x: Value, v: Lanes) -> None:
        """Put it together with the sums of the rows, or with what is at its place."""
        if i in self.sums:
            self.sums[i].add(self.loops.operand(i, x))
        else:
            self.rows.end_elements(i, x, v.at)

    def store(self, k: int, x: Value, v: Lanes, order: str) -> None:
        """Write it to an output, lane by lane where rows do not lie side by side."""
        rows, nest = self.rows, self.nest
        if k in rows.turned_stores:
            where = rows.column(rows.turned_stores[k], x.element, v.at)
            store(x, rows.valid, where, order)
            return
        axes = nest.outputs[k].axes
        terms = self.loops.terms(axes, [*["0"] * len(rows.index), *v.at])
        size, stride = bytes_of(x.element), nest.steps(axes)[rows.along]
        where = self.loops.at(rows.stores[k], size, terms)
        if stride == 1:
            store(x, rows.valid, where, order)
            return
        for lane in range(rows.valid):
            one = lanes_of(x, lane, 1)
            store(one, 1, self.body.at(where, lane * stride * size), order)
