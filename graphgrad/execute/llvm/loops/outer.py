"""Outer vectorisation: each lane of a vector is in another row, a neighbour along the last outer
axis.

So rows may be as short as they like, or lie across memory, and the numbers that rows have are
vectors as those of elements are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..emit.module import Body
from ..emit.types import stored
from ..emit.values import Value, lanes_of
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
from .reductions import CHAIN, Accumulator
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
        where = _Where(self, index, lanes, valid)
        turned = _TurnedRows(where)
        turned.fill()
        _Rows(self, _Access(where, turned)).write()
        turned.empty()


class _Where:
    """Where a vector of rows is in memory.

    index   the places along the outer axes, of the first row
    lanes   of the vectors; `valid` of them are rows
    along   the axis along which the rows lie
    steps   strides of the elements of one row, in their order
    loads, stores  where the first row of what is read and of each output begins
    """

    def __init__(self, loops: Outer, index: list[str], lanes: int, valid: int) -> None:
        self.loops, self.index, self.lanes, self.valid = loops, index, lanes, valid
        self.nest = nest = loops.nest
        self.along = nest.rows - 1
        inner = sorted(nest.row_axes)
        steps = nest.steps(inner)
        self.steps = tuple([steps[a] for a in inner])
        written = [k for k, o in enumerate(nest.outputs) if o.item not in nest.final]
        self.loads = {i: loops.load_at(i, index) for i in nest.loads}
        self.stores = {k: loops.output_at(k, index) for k in written}

    def load_at(self, i: int, places: Sequence[str]) -> str:
        """Where an item is read, at places along the axes of a row."""
        strides = self.nest.loads[i].strides[self.along + 1 :]
        terms = list(zip(places, strides, strict=False))
        return self.loops.at(self.loads[i], bytes_of(element(self.loops.items[i])), terms)

    def output_at(self, k: int, places: Sequence[str]) -> str:
        """Where an output is written; () are the places of one that has a number for each row."""
        if not places:
            return self.stores[k]
        output = self.nest.outputs[k]
        terms = self.loops.terms(output.axes, [*["0"] * len(self.index), *places])
        return self.loops.at(
            self.stores[k], bytes_of(element(self.loops.items[output.item])), terms
        )

    def end_at(self, i: int, places: Sequence[str]) -> str:
        """Where there is what a reduction has so far."""
        return self.loops.end_at(i, [*self.index, *places])

    def column_at(self, buffer: str, kind: str, places: Sequence[str]) -> str:
        """Where an element of each row is, in a buffer that has them side by side."""
        terms = list(zip(places, self.steps, strict=True))
        return self.loops.at(buffer, self.lanes * bytes_of(kind), terms)


class _TurnedRows:
    """Short rows that lie one after the other, as columns: an element of each row, then the next.

    loads, stores, ends  the workspace for what is read, written and reduced so
    """

    def __init__(self, where: _Where) -> None:
        self.where, self.loops, self.nest = where, where.loops, where.nest
        self.width = self.nest.size(self.nest.row_axes)
        self.loads: dict[int, str] = {}
        self.stores: dict[int, str] = {}
        self.ends: dict[int, str] = {}
        self._room: list[tuple[int, int]] = []

    def fill(self) -> None:
        """Take workspace, and turn rows into columns."""
        nest, items, where = self.nest, self.loops.items, self.where
        if self.width > SHORT:
            return
        for i, load_ in nest.loads.items():
            if i in nest.inner and items[i].name == "load" and self._short(load_.strides):
                self.loads[i] = self._take(element(items[i]))
                self._move(element(items[i]), where.loads[i], self.loads[i])
        for k in where.stores:
            output = nest.outputs[k]
            if nest.of_elements(output) and self._short(self._strides(output.axes)):
                self.stores[k] = self._take(element(items[output.item]))
        for i in sorted(nest.ends):
            if nest.over_elements(i) and self._short(self._strides(nest.left[i])):
                self.ends[i] = self._take(element(items[i]))
                self._move(element(items[i]), where.end_at(i, ()), self.ends[i])

    def empty(self) -> None:
        """Turn columns into the rows that they were made for, and give the workspace back."""
        items, where = self.loops.items, self.where
        for k, buffer in self.stores.items():
            kind = element(items[self.nest.outputs[k].item])
            self._move(kind, where.stores[k], buffer, back=True)
        for i, buffer in self.ends.items():
            self._move(element(items[i]), where.end_at(i, ()), buffer, back=True)
        for offset, size in self._room:
            self.loops.workspace.give(offset, size)

    def _strides(self, axes: Sequence[int]) -> tuple[int, ...]:
        steps = self.nest.steps(axes)
        return tuple([steps.get(a, 0) for a in range(len(self.nest.lengths))])

    def _short(self, strides: Sequence[int]) -> bool:
        """Whether rows lie one after the other, in order."""
        along = self.where.along
        return strides[along] == self.width and tuple(strides[along + 1 :]) == self.where.steps

    def _take(self, kind: str) -> str:
        size = self.width * self.where.lanes * bytes_of(kind)
        offset = self.loops.workspace.take(size)
        self._room.append((offset, size))
        return self.loops.workspace.at(offset)

    def _move(self, kind: str, rows: str, buffer: str, *, back: bool = False) -> None:
        t, where = self.loops.body, self.where
        name = columns(t.module, stored(kind), self.width, back=back)
        step = where.lanes * bytes_of(kind)
        t.do(f"call void @{name}(ptr {rows}, ptr {buffer}, i64 {step}, i64 {where.valid})")


class _Access:
    """Reads and writes a vector of rows: numbers of each, or its elements at some places.

    `places` are along the axes of a row, () for what is one number of each.
    """

    def __init__(self, where: _Where, turned: _TurnedRows) -> None:
        self.where, self.turned = where, turned
        self.loops, self.nest = where.loops, where.nest
        self.body, self.items = self.loops.body, self.loops.items
        self.lanes, self.valid = where.lanes, where.valid

    def item(
        self, i: int, get: Callable[[int], Value], places: Sequence[str], order: str = ""
    ) -> Value:
        """An item, from memory or from others."""
        item = self.items[i]
        if item.name == "load":
            return self._loaded(i, places, order)
        if item.name == "gather":
            return self._gathered(i, get, places)
        return computed(self.nest, i, [get(a) for a in item.args], self.loops.inline)

    def _loaded(self, i: int, places: Sequence[str], order: str) -> Value:
        kind, where = element(self.items[i]), self.where
        if i in self.turned.loads:
            at = where.column_at(self.turned.loads[i], kind, places)
            return load(self.body, kind, self.lanes, self.valid, at, order)
        stride = self.nest.loads[i].strides[where.along]
        return read(
            self.body, kind, self.lanes, self.valid, where.load_at(i, places), stride, order
        )

    def _gathered(self, i: int, get: Callable[[int], Value], places: Sequence[str]) -> Value:
        """Numbers at the places that indices say, which may be the same for all the rows."""
        item, across = self.items[i], self.nest.across
        terms = zip(item.args, self.nest.loads[i].indexed, strict=True)
        vary = [(get(a), *step) for a, step in terms if a in across]
        same = [None if a in across else lanes_of(get(a), 0, 1) for a in item.args]
        base = self.loops.gather_at(i, self.where.load_at(i, places), same)
        stride, kind = self.nest.loads[i].strides[self.where.along], element(item)
        if not vary:
            return read(self.body, kind, self.lanes, self.valid, base, stride)
        return indexed(self.body, kind, self.valid, base, stride, vary)

    def store(self, k: int, x: Value, places: Sequence[str], order: str = "") -> None:
        """Write to an output, lane by lane where rows do not lie side by side."""
        if k in self.turned.stores:
            at = self.where.column_at(self.turned.stores[k], x.element, places)
            store(x, self.valid, at, order)
            return
        at = self.where.output_at(k, places)
        stride = self.nest.steps(self.nest.outputs[k].axes)[self.where.along]
        if stride == 1:
            store(x, self.valid, at, order)
            return
        for lane in range(self.valid):
            one = lanes_of(x, lane, 1)
            store(one, 1, self._row_at(at, lane * stride, x), order)

    def end(self, i: int, x: Value, places: Sequence[str]) -> None:
        """Put together with what there is of a reduction that ends later."""
        loops, how, where = self.loops, self.loops.how(i), self.where
        x = loops.operand(i, x)
        if where.along in self.nest.reduced[i]:
            loops.add(i, how.across(how.masked(x, self.valid)), [*where.index, *places])
            return
        if i in self.turned.ends:
            at = where.column_at(self.turned.ends[i], x.element, places)
            loops.add_to(i, x, self.valid, at)
            return
        at = where.end_at(i, places)
        stride = self.nest.steps(self.nest.left[i])[where.along]
        if stride == 1:
            loops.add_to(i, x, self.valid, at)
            return
        for lane in range(self.valid):
            here = self._row_at(at, lane * stride, x)
            loops.add_to(i, lanes_of(x, lane, 1), 1, here)

    def _row_at(self, at: str, number: int, x: Value) -> str:
        """The address so many numbers after another."""
        return self.body.at(at, number * bytes_of(x.element))


class _Rows(RowPass):
    """Writes what is done for one vector of rows: each lane has the numbers of a row."""

    def __init__(self, loops: Outer, access: _Access) -> None:
        super().__init__(loops, access.where.index)
        self.loops, self.access, self.lanes = loops, access, access.lanes

    def get(self, i: int) -> Value:
        """A number of each row."""
        cached = self.values.get(i)
        if cached is None:
            cached = self.values[i] = spread(self.loops.fixed[i], self.lanes)
        return cached

    def compute(self, i: int) -> Value:
        """A number of each row, from others."""
        return self.access.item(i, self.get, ())

    def store(self, k: int, x: Value) -> None:
        """Write a number for each row."""
        self.access.store(k, x, ())

    def end(self, i: int, x: Value) -> None:
        """Put a number of each row together with what there is."""
        self.access.end(i, x, ())

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
        _through(self.body, nest.lengths[nest.rows :], exact, elements.write)
        for i, accumulator in sums.items():
            if i in nest.ends:
                self.end(i, accumulator.each())
            else:
                self.values[i] = accumulator.each()


class _Elements(Vector):
    """Writes what a pass does for one element of each row, at places along the axes of a row.

    sums: reductions of whole rows.
    """

    def __init__(self, rows: _Rows, step: Pass, sums: dict[int, Accumulator]) -> None:
        super().__init__(rows.loops, step)
        self.rows, self.access, self.sums = rows, rows.access, sums

    def write(self, places: tuple[str, ...]) -> None:
        """All that is computed for it; where there are fewer rows, for the other lanes too."""
        self.vector(Lanes(places, self.rows.lanes, self.rows.lanes))

    def row(self, lanes: int) -> Callable[[int], Value]:
        """A number of each row."""
        return self.rows.get

    def compute(self, i: int, get: Callable[[int], Value], v: Lanes, order: str) -> Value:
        """An item, of each row."""
        return self.access.item(i, get, v.at, order)

    def kept_at(self, i: int, v: Lanes) -> str:
        """Where a value is that an earlier pass keeps for a later one."""
        loops = self.rows.loops
        buffer = loops.workspace.at(loops.kept[i])
        return self.access.where.column_at(buffer, element(self.items[i]), v.at)

    def reduce(self, i: int, x: Value, v: Lanes) -> None:
        """Put it together with the sums of the rows, or with what is at its place."""
        if i in self.sums:
            self.sums[i].add(self.rows.loops.operand(i, x))
        else:
            self.access.end(i, x, v.at)

    def store(self, k: int, x: Value, v: Lanes, order: str) -> None:
        """Write it to an output."""
        self.access.store(k, x, v.at, order)


def _through(
    t: Body,
    lengths: Sequence[int],
    exact: Sequence[Accumulator],
    write: Callable[[tuple[str, ...]], None],
) -> None:
    """Loops over axes of these lengths; the last one in chains, where sums are exact."""
    length, *within = lengths
    if within:
        inside = partial(_through, t, within, exact)
        t.loop(0, length, 1, lambda i: inside(lambda places: write((i, *places))))
        return

    def chain(start: str | int, stop: str | int) -> None:
        t.loop(start, stop, 1, lambda i: write((i,)))
        for accumulator in exact:
            accumulator.carry()

    if exact and length > CHAIN:
        t.loop(0, length, CHAIN, lambda i: chain(i, t.least(t.add(i, CHAIN), length)))
    else:
        chain(0, length)
