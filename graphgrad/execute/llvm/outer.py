"""Rows abreast: each lane of a vector is in another row, a neighbour along the last outer axis.

So rows may be as short as they like, or lie across memory, and the numbers that rows have are
vectors as those of elements are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .loops import Loops
from .nest import SHORT, Pass
from .reductions import CHAIN, Accumulator, lanes_of
from .spills import Spills
from .turning import columns
from .types import stored
from .values import Value
from .vectors import (
    ORDERED,
    Values,
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


class Abreast(Loops):
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
        Neighbours(self, index, lanes, valid).write()


class Neighbours:
    """Writes what is done for one vector of rows.

    index   the places along the outer axes, of the first row
    lanes   of the vectors; `valid` of them are rows
    values  what the rows have
    along   the axis along which the rows lie
    steps   strides of the elements of one row, in their order
    """

    def __init__(self, rows: Abreast, index: list[str], lanes: int, valid: int) -> None:
        self.rows, self.index, self.lanes, self.valid = rows, index, lanes, valid
        self.body, self.nest, self.items = rows.body, rows.nest, rows.items
        self.values: Values = {}
        nest = rows.nest
        self.along = nest.rows - 1
        inner = sorted(nest.row_axes)
        steps = nest.steps(inner)
        self.steps = tuple([steps[a] for a in inner])
        written = [k for k, o in enumerate(nest.outputs) if o.item not in nest.final]
        self.loads = {i: rows.load_at(i, index) for i in nest.loads}
        self.stores = {k: rows.output_at(k, index) for k in written}
        self._room: list[tuple[int, int]] = []
        self.turned_loads: dict[int, str] = {}
        self.turned_stores: dict[int, str] = {}
        self.turned_ends: dict[int, str] = {}

    def write(self) -> None:
        """Pass by pass."""
        nest = self.nest
        self._turn()
        self._of_rows(-1)
        for p, step in enumerate(nest.passes):
            self._pass(step)
            self._of_rows(p)
        for k, where in self.stores.items():
            if not nest.of_elements(nest.outputs[k]):
                store(self._of_row(nest.outputs[k].item), self.valid, where)
        for i in sorted(nest.ends):
            if not nest.over_elements(i):
                self._end(i, self._of_row(self.items[i].args[0]), ())
        self._turn_back()

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
                self._move(element(self.items[i]), self._end_at(i, ()), self.turned_ends[i])

    def _turn_back(self) -> None:
        """Columns to the rows that they were made for."""
        for k, buffer in self.turned_stores.items():
            kind = element(self.items[self.nest.outputs[k].item])
            self._move(kind, self.stores[k], buffer, back=True)
        for i, buffer in self.turned_ends.items():
            self._move(element(self.items[i]), self._end_at(i, ()), buffer, back=True)
        for offset, size in self._room:
            self.rows.workspace.give(offset, size)

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
        offset = self.rows.workspace.take(size)
        self._room.append((offset, size))
        return self.rows.workspace.at(offset)

    def _move(self, kind: str, where: str, buffer: str, *, back: bool = False) -> None:
        t, width = self.body, self.nest.size(self.nest.row_axes)
        name = columns(t.module, stored(kind), width, back=back)
        step = self.lanes * bytes_of(kind)
        t.do(f"call void @{name}(ptr {where}, ptr {buffer}, i64 {step}, i64 {self.valid})")

    # --- what the rows have ------------------------------------------------------------------

    def _of_row(self, i: int) -> Value:
        found = self.values.get(i)
        if found is None:
            found = self.values[i] = spread(self.rows.fixed[i], self.lanes)
        return found

    def _of_rows(self, after: int) -> None:
        """The numbers that the rows have after this pass."""
        nest = self.nest
        for i, passed in enumerate(nest.passed):
            known = i in self.values or i in nest.fixed
            if passed == after and not known and i not in nest.inner and i not in nest.final:
                self.values[i] = self._item(i, self._of_row, ())

    def _item(
        self, i: int, get: Callable[[int], Value], places: Sequence[str], order: str = ""
    ) -> Value:
        """An item of the rows, or of their elements at places along the axes of a row."""
        item = self.items[i]
        if item.name == "load":
            return self._loaded(i, places, order)
        if item.name == "gather":
            return self._gathered(i, get, places)
        return computed(self.items, i, [get(a) for a in item.args], self.rows.inline)

    def _load_at(self, i: int, places: Sequence[str]) -> str:
        strides = self.nest.loads[i].strides[self.along + 1 :]
        terms = list(zip(places, strides, strict=False))
        return self.rows.at(self.loads[i], bytes_of(element(self.items[i])), terms)

    def _loaded(self, i: int, places: Sequence[str], order: str) -> Value:
        kind = element(self.items[i])
        if i in self.turned_loads:
            where = self._column(self.turned_loads[i], kind, places)
            return load(self.body, kind, self.lanes, self.valid, where, order)
        stride = self.nest.loads[i].strides[self.along]
        where = self._load_at(i, places)
        return read(self.body, kind, self.lanes, self.valid, where, stride, order)

    def _gathered(self, i: int, get: Callable[[int], Value], places: Sequence[str]) -> Value:
        """Numbers at the places that indices say, which may be the same for all the rows."""
        item, across = self.items[i], self.nest.across
        vary = [
            (get(a), *step) for a, step in zip(item.args, item.data[3], strict=True) if a in across
        ]
        same = [None if a in across else lanes_of(get(a), 0, 1) for a in item.args]
        base = self.rows.gather_at(i, self._load_at(i, places), same)
        stride, kind = self.nest.loads[i].strides[self.along], element(item)
        if not vary:
            return read(self.body, kind, self.lanes, self.valid, base, stride)
        return indexed(self.body, kind, self.valid, base, stride, vary)

    def _column(self, buffer: str, kind: str, places: Sequence[str]) -> str:
        """Where a vector is among those of all elements of the rows."""
        terms = list(zip(places, self.steps, strict=True))
        return self.rows.at(buffer, self.lanes * bytes_of(kind), terms)

    # --- a pass over the elements ------------------------------------------------------------

    def _pass(self, step: Pass) -> None:
        nest = self.nest
        long = self.rows.exact and nest.size(nest.row_axes) > CHAIN
        sums = {
            i: Accumulator(self.body, self.rows.how(i), self.lanes, long)
            for i in step.reduces
            if nest.reduced[i] >= nest.row_axes
        }
        for accumulator in sums.values():
            accumulator.begin()
        known = [a for i in step.computes for a in self.items[i].args]
        for a in (*known, *self._at_last(step)):
            if a not in nest.inner:
                self._of_row(a)  # before the loops
        exact = [a for a in sums.values() if a.exact]
        self._through((), partial(self._element, step, sums), exact)
        for i, accumulator in sums.items():
            if i in nest.ends:
                self._end(i, accumulator.each(), ())
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

    def _at_last(self, step: Pass) -> list[int]:
        """The items that are reduced or stored."""
        reduced = [self.items[i].args[0] for i in step.reduces]
        return [*reduced, *(self.nest.outputs[k].item for k in step.stores)]

    def _element(self, step: Pass, sums: dict[int, Accumulator], places: tuple[str, ...]) -> None:
        """All that is computed for one element of each row."""
        rows, items = self.rows, self.items
        at_last = self._at_last(step)
        here = Spills(items, step.computes, at_last, self.lanes, rows.workspace, self._of_row)
        order = ORDERED if here.long else ""
        for i in step.reads:
            where = self._kept_at(i, places)
            here.values[i] = load(self.body, element(items[i]), self.lanes, self.lanes, where)
        for i in step.computes:
            x = self._item(i, here.get, places, order)
            here.put(i, x)
            if i in rows.kept:
                store(x, self.lanes, self._kept_at(i, places))
        for i in step.reduces:
            x = here.get(items[i].args[0])
            if i in sums:
                sums[i].add(rows.operand(i, x))
            else:
                self._end(i, x, places)
        for k in step.stores:
            self._stored(k, here.get(self.nest.outputs[k].item), places, order)

    def _kept_at(self, i: int, places: Sequence[str]) -> str:
        """Where a value that waits for a later pass is."""
        return self._column(
            self.rows.workspace.at(self.rows.kept[i]), element(self.items[i]), places
        )

    def _stored(self, k: int, x: Value, places: Sequence[str], order: str) -> None:
        if k in self.turned_stores:
            where = self._column(self.turned_stores[k], x.element, places)
            store(x, self.valid, where, order)
            return
        axes = self.nest.outputs[k].axes
        terms = self.rows.terms(axes, [*["0"] * len(self.index), *places])
        size, stride = bytes_of(x.element), self.nest.steps(axes)[self.along]
        where = self.rows.at(self.stores[k], size, terms)
        if stride == 1:
            store(x, self.valid, where, order)
            return
        for lane in range(self.valid):
            one = lanes_of(x, lane, 1)
            store(one, 1, self.body.at(where, lane * stride * size), order)

    # --- reductions that are complete in the end ---------------------------------------------

    def _end_at(self, i: int, places: Sequence[str]) -> str:
        return self.rows.end_at(i, [*self.index, *places])

    def _end(self, i: int, x: Value, places: Sequence[str]) -> None:
        """Put what rows have, or their elements at some places, together with what there is."""
        rows, how = self.rows, self.rows.how(i)
        x = rows.operand(i, x)
        if self.along in self.nest.reduced[i]:
            rows.add(i, how.across(how.masked(x, self.valid)), [*self.index, *places])
        elif i in self.turned_ends:
            where = self._column(self.turned_ends[i], x.element, places)
            rows.add_to(i, x, self.valid, where)
        else:
            self._spread_end(i, x, self._end_at(i, places))

    def _spread_end(self, i: int, x: Value, where: str) -> None:
        stride = self.nest.steps(self.nest.left[i])[self.along]
        if stride == 1:
            self.rows.add_to(i, x, self.valid, where)
            return
        for lane in range(self.valid):
            at = self.body.at(where, lane * stride * bytes_of(x.element))
            self.rows.add_to(i, lanes_of(x, lane, 1), 1, at)
