"""The function that runs rows of a group: void(frame, begin, end, partial, room).

frame: where the inputs and then the outputs are. partial: what these rows leave of the reductions
that are complete when all rows are done, one region after the other. room: memory to work in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .blocks import Blocks
from .inner import Inner
from .module import Body, Module
from .nest import Nest, Pass
from .reductions import CHAIN, Accumulator, Reduction
from .room import Room
from .text import function
from .turning import turn
from .values import Value, constant
from .vectors import (
    Values,
    along,
    bytes_of,
    computed,
    element,
    from_start,
    load,
    place,
    store,
    whole,
)

TAKES = "ptr %frame, i64 %begin, i64 %end, ptr %partial, ptr %room"
TURNED = 1 << 18  # bytes of rows that are put in order at once


class Rows:
    """Writes the function.

    inputs  how many arrays are read
    inline  whether functions that have a name are written out where they are called
    """

    def __init__(
        self, module: Module, nest: Nest, blocks: Blocks, inputs: int, inline: bool
    ) -> None:
        self.body = Body(module)
        self.nest, self.blocks, self.inputs, self.inline = nest, blocks, inputs, inline
        self.items = nest.items
        self.room = Room(self.body)
        self.kept = self._kept()
        self._pointers: dict[int, str] = {}
        self._fixed: Values = {}
        self._totals: dict[int, Accumulator] = {}
        self._turned = self._turning()
        self._turned_at: dict[int, str] = {}  # where the row of a turned load is

    def write(self, name: str) -> str:
        """The whole text."""
        for i in sorted(self.nest.fixed):
            self._fixed[i] = self._scalar(i, self._fixed, ())
        self._begin_ends()
        self.body.loop("%begin", "%end", 1, self._row)
        for i, total in self._totals.items():
            store(total.result(), 1, self._region(i))
        return function("void", name, TAKES, self.body, internal=False)

    # --- addresses ---------------------------------------------------------------------------

    def _pointer(self, number: int) -> str:
        """Where an input, or an output (after the inputs), is."""
        found = self._pointers.get(number)
        if found is None:
            found = self._pointers[number] = f"%p{number}"
            self.body.enter(f"{found} = load ptr, ptr {found}.at")
            self.body.enter(f"{found}.at = getelementptr i8, ptr %frame, i64 {8 * number}")
        return found

    def _at(self, base: str, size: int, terms: Sequence[tuple[str, int]]) -> str:
        """base + sum of index * stride * size bytes."""
        t = self.body
        for index, stride in terms:
            if stride:
                base = t.at(base, t.mul(index, stride * size))
        return base

    def _terms(self, axes: Sequence[int], index: Sequence[str]) -> list[tuple[str, int]]:
        """Places along the axes of something in row-major order, with its strides."""
        return [
            (index[a], self.nest.size(b for b in axes if b > a)) for a in axes if a < len(index)
        ]

    def load_at(self, i: int, index: Sequence[str]) -> str:
        """Where a load reads at these places of the first axes."""
        if i in self._turned_at:
            return self._turned_at[i]
        at, strides, offset = self.nest.loads[i]
        size = bytes_of(element(self.items[i]))
        base = self._pointer(at)
        if offset:
            base = self.body.at(base, offset * size)
        return self._at(base, size, list(zip(index, strides, strict=False)))

    def pick_at(self, i: int, base: str, indices: Sequence[Value | None]) -> str:
        """Where a pick reads, of which load_at gave the base; None: an index of elements."""
        terms = list(zip(indices, self.items[i].data[3], strict=True))
        known = [(from_start(x, n).name, stride) for x, (stride, n) in terms if x is not None]
        return self._at(base, bytes_of(element(self.items[i])), known)

    def stride(self, i: int) -> int:
        """How far apart neighbours along the last axis are where a load reads."""
        return 1 if i in self._turned else self.nest.loads[i].strides[-1]

    def output_at(self, k: int, index: Sequence[str]) -> str:
        """Where an output is written at these places of the first axes."""
        output = self.nest.outputs[k]
        size = bytes_of(element(self.items[output.item]))
        return self._at(self._pointer(self.inputs + k), size, self._terms(output.axes, index))

    def end_at(self, i: int, index: Sequence[str]) -> str:
        """Where what these rows leave of a reduction is, at these places of the first axes."""
        size = bytes_of(element(self.items[i]))
        return self._at(self._region(i), size, self._terms(self.nest.left[i], index))

    def kept_at(self, i: int, index: Sequence[str]) -> str:
        """Where a value that waits for a later pass is, at these places of the first axes."""
        size = bytes_of(element(self.items[i]))
        axes = sorted(self.nest.row_axes)
        return self._at(self.room.at(self.kept[i]), size, self._terms(axes, index))

    def _kept(self) -> dict[int, int]:
        row = self.nest.size(self.nest.row_axes)
        kept = sorted({i for step in self.nest.passes for i in step.reads})
        return {i: self.room.take(row * bytes_of(element(self.items[i]))) for i in kept}

    # --- rows out of columns -----------------------------------------------------------------

    def _turning(self) -> dict[int, tuple[int, int]]:
        """Loads of elements that lie across memory: room for some rows, and for how many."""
        nest = self.nest
        last = len(nest.lengths) - 1
        found: dict[int, tuple[int, int]] = {}
        if nest.rows != last or last < 1:
            return found
        for i, load_ in nest.loads.items():
            if self.items[i].name != "load":
                continue
            kind = element(self.items[i])
            side = self.body.module.target.lanes(kind)
            size = side * nest.lengths[-1] * bytes_of(kind)
            across = load_.strides[last - 1] == 1 and load_.strides[last] not in (0, 1)
            if across and bytes_of(kind) >= 4 and size <= TURNED:
                found[i] = self.room.take(size), side
        return found

    def _turn(self, row: str, index: list[str]) -> None:
        """At the first of some rows, put these rows of what lies across memory in order."""
        t = self.body
        self._turned_at.clear()
        for i, (offset, side) in self._turned.items():
            kind = element(self.items[i])
            length, size = self.nest.lengths[-1], bytes_of(kind)
            at = t(f"urem i64 {index[-1]}, {side}")
            begin = t(f"icmp eq i64 {row}, %begin")
            first = t(f"or i1 {begin}, {t(f'icmp eq i64 {at}, 0')}")
            start = t.sub(index[-1], at)
            count = t.least(t.sub(self.nest.lengths[-2], start), side)
            source, to = self.load_at(i, [*index[:-1], start]), self.room.at(offset)
            step = self.nest.loads[i].strides[-1] * size
            given = f"ptr {source}, i64 {step}, ptr {to}, i64 {length}, i64 {count}"
            t.when(first, partial(t.do, f"call void @{turn(t.module, kind, side)}({given})"))
            self._turned_at[i] = t.at(to, t.mul(at, length * size))

    # --- a row -------------------------------------------------------------------------------

    def _row(self, row: str) -> None:
        nest = self.nest
        index = self._unravelled(row)
        values = dict(self._fixed)
        self._turn(row, index)
        self._of_rows(-1, values, index)
        for p, step in enumerate(nest.passes):
            self._pass(step, values, index, row)
            self._of_rows(p, values, index)
        for k, o in enumerate(nest.outputs):
            if o.item not in nest.final and not nest.of_elements(o):
                store(values[o.item], 1, self.output_at(k, index))
        for i in sorted(nest.ends):
            if not nest.over_elements(i):
                self._add(i, self.operand(i, values[self.items[i].args[0]]), index)

    def _unravelled(self, row: str) -> list[str]:
        """The places along the outer axes of a row."""
        t = self.body
        found: list[str] = []
        for length in reversed(self.nest.lengths[1 : self.nest.rows]):
            found.append(t(f"urem i64 {row}, {length}"))
            row = t.div(row, length)
        return [row, *reversed(found)] if self.nest.rows else []

    def _scalar(self, i: int, values: Values, index: Sequence[str]) -> Value:
        """An item as one number, from others."""
        item = self.items[i]
        if item.name == "number":
            return constant(self.body, element(item), 1, item.data)
        if item.name == "load":
            return load(self.body, element(item), 1, 1, self.load_at(i, index))
        if item.name == "pick":
            where = self.pick_at(i, self.load_at(i, index), [values[a] for a in item.args])
            return load(self.body, element(item), 1, 1, where)
        return computed(self.items, i, [values[a] for a in item.args], self.inline)

    def _of_rows(self, after: int, values: Values, index: Sequence[str]) -> None:
        """The numbers that the row has after this pass."""
        nest = self.nest
        for i, passed in enumerate(nest.passed):
            if passed == after and i not in values and i not in nest.inner and i not in nest.final:
                values[i] = self._scalar(i, values, index)

    # --- a pass over the elements ------------------------------------------------------------

    def _pass(self, step: Pass, values: Values, index: list[str], row: str) -> None:
        nest = self.nest
        last = len(nest.lengths) - 1
        accumulators = {i: self._accumulator(i) for i in step.reduces if last in nest.reduced[i]}
        of_row = [i for i in accumulators if nest.reduced[i] >= nest.row_axes]
        of_part = [i for i in accumulators if i not in of_row]
        for i in of_row:
            accumulators[i].begin()

        def innermost(places: list[str]) -> None:
            for i in of_part:
                accumulators[i].begin()
            Inner(self, step, values, places, accumulators).write(row)
            for i in of_part:
                self._add(i, accumulators[i].result(), places)

        self._between(nest.rows, index, innermost)
        for i in of_row:
            result = accumulators[i].result()
            if i in nest.ends:
                self._add(i, result, index)
            else:
                values[i] = result

    def _between(self, axis: int, index: list[str], write: Callable[[list[str]], None]) -> None:
        """Loops over the axes between the outer ones and the last."""
        if axis >= len(self.nest.lengths) - 1:
            write(index)
        else:
            length = self.nest.lengths[axis]
            inside = partial(self._between, axis + 1)
            self.body.loop(0, length, 1, lambda i: inside([*index, i], write))

    def _accumulator(self, i: int) -> Accumulator:
        length, blocks = self.nest.lengths[-1], self.blocks
        main = whole(length, blocks.lanes)
        several = len(self.nest.row_axes) > 1
        long = several or min(main, blocks.piece or main) > CHAIN * blocks.lanes
        lanes = blocks.lanes if main else 1
        return Accumulator(self.body, self._how(i), lanes, self._exact and long, main < length)

    # --- reductions --------------------------------------------------------------------------

    def _how(self, i: int) -> Reduction:
        return Reduction(self.items[i].name, self.items[i].dtype)

    @property
    def _exact(self) -> bool:
        return not self.body.module.flags

    def operand(self, i: int, x: Value) -> Value:
        """What a reduction goes over: whether it is not 0, for `any` and `all`."""
        if self.items[i].name in ("any", "all") and x.element != "i1":
            return x.compare("une" if x.floating else "ne", 0)
        return x

    def _region(self, i: int) -> str:
        return self.body.at("%partial", self.blocks.regions[i].offset)

    def _begin_ends(self) -> None:
        t = self.body
        for i in sorted(self.nest.ends):
            how, size = self._how(i), self.blocks.regions[i].size
            if size == 1:
                self._totals[i] = Accumulator(t, how, 1, self._exact)
                self._totals[i].begin()
                continue
            fill = partial(self._fill, how, self._region(i))
            along(t, size, self.blocks.lanes, fill)

    def _fill(self, how: Reduction, base: str, at: str, lanes: int, valid: int) -> None:
        start = constant(self.body, how.element, lanes, how.start)
        store(start, valid, place(self.body, base, how.element, at))

    def _add(self, i: int, x: Value, index: Sequence[str]) -> None:
        """Put a number together with what there is of a reduction that ends with the last row."""
        total = self._totals.get(i)
        if total is None:
            self.add_to(i, x, 1, self.end_at(i, index))
        else:
            total.add(x)
            total.carry()

    def add_to(self, i: int, x: Value, valid: int, where: str) -> None:
        """Put a vector together with what is at an address."""
        how = self._how(i)
        before = load(self.body, how.element, x.lanes, valid, where)
        store(how.together(before, x), valid, where)
