"""Inner vectorisation: rows one after the other, each along vectors of its elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from ..emit.module import Module
from ..emit.values import Value
from .access import (
    Values,
    bytes_of,
    computed,
    element,
    indexed,
    place,
    read,
    spread,
    store,
    whole,
    wide_enough,
)
from .nest import Nest, Pass
from .partition import RowBlocks
from .reductions import CHAIN, Accumulator
from .rows import Loops
from .transposes import turn
from .vectorise import Lanes, RowPass, Vector

TURNED = 1 << 18  # bytes of rows that are put in order at once


class Inner(Loops):
    """Writes the function; see Loops."""

    def __init__(
        self, module: Module, nest: Nest, blocks: RowBlocks, inputs: int, inline: bool
    ) -> None:
        super().__init__(module, nest, blocks, inputs, inline)
        self._turned = self._turning()
        self._turned_at: dict[int, str] = {}  # where the row of a turned load is

    def load_at(self, i: int, index: Sequence[str]) -> str:
        """Where a load reads, perhaps in the row that was put in order."""
        return self._turned_at.get(i) or super().load_at(i, index)

    def stride(self, i: int) -> int:
        """How far apart neighbours along the last axis are where a load reads."""
        return 1 if i in self._turned else self.nest.loads[i].strides[-1]

    def kept_at(self, i: int, index: Sequence[str]) -> str:
        """Where a value is that a pass keeps for a later one, at these places of the first axes."""
        size = bytes_of(element(self.items[i]))
        axes = sorted(self.nest.row_axes)
        return self.at(self.workspace.at(self.kept[i]), size, self.terms(axes, index))

    # --- rows out of columns -----------------------------------------------------------------

    def _turning(self) -> dict[int, tuple[int, int]]:
        """Loads of elements that lie across memory: workspace for some rows, and for how many."""
        nest = self.nest
        last = len(nest.lengths) - 1
        turned: dict[int, tuple[int, int]] = {}
        if nest.rows != last or last < 1:
            return turned
        for i, load_ in nest.loads.items():
            if self.items[i].name != "load":
                continue
            kind = element(self.items[i])
            side = self.body.module.target.lanes(kind)
            size = side * nest.lengths[-1] * bytes_of(kind)
            across = load_.strides[last - 1] == 1 and load_.strides[last] not in (0, 1)
            if across and bytes_of(kind) >= 4 and size <= TURNED:
                turned[i] = self.workspace.take(size), side
        return turned

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
            source, to = self.load_at(i, [*index[:-1], start]), self.workspace.at(offset)
            step = self.nest.loads[i].strides[-1] * size
            given = f"ptr {source}, i64 {step}, ptr {to}, i64 {length}, i64 {count}"
            t.when(first, partial(t.do, f"call void @{turn(t.module, kind, side)}({given})"))
            self._turned_at[i] = t.at(to, t.mul(at, length * size))

    # --- a row -------------------------------------------------------------------------------

    def row(self, row: str) -> None:
        """One row, by its number."""
        index = self.unravelled(row, self.nest.lengths[: self.nest.rows])
        self._turn(row, index)
        _Row(self, index, row).write()

    def accumulator(self, i: int) -> Accumulator:
        """A reduction over the last axis, in vectors and a tail."""
        length, blocks = self.nest.lengths[-1], self.blocks
        main = whole(length, blocks.lanes)
        several = len(self.nest.row_axes) > 1
        long = several or min(main, blocks.piece or main) > CHAIN * blocks.lanes
        lanes = blocks.lanes if main else 1
        return Accumulator(self.body, self.how(i), lanes, self.exact and long, main < length)


class _Row(RowPass):
    """Writes what is done for a row, by its number."""

    def __init__(self, loops: Inner, index: list[str], row: str) -> None:
        super().__init__(loops, index)
        self.loops, self.row = loops, row
        self.values = dict(loops.fixed)

    def get(self, i: int) -> Value:
        """An item that the row has."""
        return self.values[i]

    def compute(self, i: int) -> Value:
        """One number."""
        return self.loops.scalar(i, self.values, self.index)

    def store(self, k: int, x: Value) -> None:
        """Write one number."""
        store(x, 1, self.loops.output_at(k, self.index))

    def end(self, i: int, x: Value) -> None:
        """Put one number together with what there is."""
        self.loops.add(i, self.loops.operand(i, x), self.index)

    def one_pass(self, step: Pass) -> None:
        """One way through the row, along its last axis for each place of the others."""
        nest, loops = self.nest, self.loops
        last = len(nest.lengths) - 1
        accumulators = {i: loops.accumulator(i) for i in step.reduces if last in nest.reduced[i]}
        of_row = [i for i in accumulators if nest.reduced[i] >= nest.row_axes]
        of_part = [i for i in accumulators if i not in of_row]
        for i in of_row:
            accumulators[i].begin()

        def innermost(places: list[str]) -> None:
            for i in of_part:
                accumulators[i].begin()
            _Run(loops, step, self.values, places, accumulators).write(self.row)
            for i in of_part:
                loops.add(i, accumulators[i].result(), places)

        self._between(nest.rows, self.index, innermost)
        for i in of_row:
            result = accumulators[i].result()
            if i in nest.ends:
                loops.add(i, result, self.index)
            else:
                self.values[i] = result

    def _between(self, axis: int, index: list[str], write: Callable[[list[str]], None]) -> None:
        """Loops over the axes between the outer ones and the last."""
        if axis >= len(self.nest.lengths) - 1:
            write(index)
        else:
            length = self.nest.lengths[axis]
            inside = partial(self._between, axis + 1)
            self.body.loop(0, length, 1, lambda i: inside([*index, i], write))


class _Run(Vector):
    """Writes one run along the last axis, in one pass over a row.

    values        what the row has
    index         the places along the other axes
    accumulators  of reductions that go over the last axis
    """

    def __init__(
        self,
        loops: Inner,
        step: Pass,
        values: Values,
        index: Sequence[str],
        accumulators: dict[int, Accumulator],
    ) -> None:
        super().__init__(loops, step)
        self.loops, self.values = loops, values
        self.accumulators = accumulators
        self.loads = {i: self._start(i, index) for i in step.computes if i in self.nest.loads}
        self.stores = {k: loops.output_at(k, index) for k in step.stores}
        self.ends = {i: loops.end_at(i, index) for i in step.reduces if i not in accumulators}
        self.kept = {i: loops.kept_at(i, index) for i in loops.kept}
        self.lanes = loops.blocks.lanes
        self._spreads: dict[tuple[int, int], Value] = {}

    def _start(self, i: int, index: Sequence[str]) -> str:
        """Where what is read along the axis begins, by what the row has."""
        base = self.loops.load_at(i, index)
        if self.items[i].name == "load":
            return base
        return self.loops.gather_at(i, base, [self.values.get(a) for a in self.items[i].args])

    def write(self, row: str) -> None:
        """Whole vectors, then what is left."""
        t, blocks = self.body, self.loops.blocks
        length = self.nest.lengths[-1]
        main = whole(length, self.lanes)
        several = blocks.piece and blocks.rows > 1
        if main:
            start = t.mul(row, blocks.piece) if several else "0"
            stop = t.least(t.add(start, blocks.piece), main) if several else str(main)
            self._main(start, stop)
        if main == length:
            return
        left = length - main
        tail = partial(self.vector, Lanes((str(main),), wide_enough(left), left))
        if several:
            t.when(t(f"icmp eq i64 {row}, {blocks.rows - 1}"), tail)
        else:
            tail()

    def _main(self, start: str, stop: str) -> None:
        """Vector by vector; in chains, where sums are exact."""
        t, lanes = self.body, self.lanes
        for i in self.of_rows:
            self._spread(lanes, i)  # before the loop

        def one(at: str) -> None:
            self.vector(Lanes((at,), lanes, lanes))

        exact = [a for a in self.accumulators.values() if a.exact]
        if not exact:
            t.loop(start, stop, lanes, one)
            return

        def chain(at: str) -> None:
            t.loop(at, t.least(t.add(at, CHAIN * lanes), stop), lanes, one)
            for accumulator in exact:
                accumulator.carry()

        t.loop(start, stop, CHAIN * lanes, chain)

    # --- one vector --------------------------------------------------------------------------

    def row(self, lanes: int) -> Callable[[int], Value]:
        """What the row has, in every lane."""
        return partial(self._spread, lanes)

    def _spread(self, lanes: int, i: int) -> Value:
        cached = self._spreads.get((i, lanes))
        if cached is None:
            cached = self._spreads[i, lanes] = spread(self.values[i], lanes)
        return cached

    def kept_at(self, i: int, v: Lanes) -> str:
        """Where a value is that an earlier pass keeps for a later one."""
        return self._place(self.kept[i], element(self.items[i]), v)

    def store(self, k: int, x: Value, v: Lanes, order: str) -> None:
        """Neighbours in an output."""
        store(x, v.valid, self._place(self.stores[k], x.element, v), order)

    def _place(self, base: str, kind: str, v: Lanes) -> str:
        return place(self.body, base, kind, *v.at)

    def reduce(self, i: int, x: Value, v: Lanes) -> None:
        """Put elements together with those before, or with what is at their places."""
        x = self.loops.operand(i, x)
        if i not in self.accumulators:
            self.loops.add_to(i, x, v.valid, self._place(self.ends[i], x.element, v))
        elif v.valid == self.lanes:
            self.accumulators[i].add(x)
        else:
            self.accumulators[i].add_tail(x, v.valid)

    def compute(self, i: int, get: Callable[[int], Value], v: Lanes, order: str) -> Value:
        """An item of neighbouring elements. What is left after whole vectors calls functions."""
        if self.items[i].name == "load":
            return self._loaded(i, v, order)
        if self.items[i].name == "gather":
            return self._gathered(i, get, v)
        only = v.valid == self.lanes or self.nest.lengths[-1] < self.lanes
        args = [get(a) for a in self.items[i].args]
        return computed(self.nest, i, args, self.loops.inline and only)

    def _loaded(self, i: int, v: Lanes, order: str) -> Value:
        kind, t, (at,) = element(self.items[i]), self.body, v.at
        stride, base = self.loops.stride(i), self.loads[i]
        first = place(t, base, kind, at if stride == 1 else t.mul(at, stride)) if stride else base
        return read(t, kind, v.number, v.valid, first, stride, order)

    def _gathered(self, i: int, get: Callable[[int], Value], v: Lanes) -> Value:
        """Numbers at the places that indices of elements say, or of the row alone."""
        item, kind = self.items[i], element(self.items[i])
        terms = zip(item.args, self.nest.loads[i].indexed, strict=True)
        vary = [(get(a), *step) for a, step in terms if a in self.nest.inner]
        if not vary:
            return self._loaded(i, v, "")
        t, stride = self.body, self.loops.stride(i)
        base = self.loads[i]
        if stride:
            base = t.at(base, t.mul(v.at[0], stride * bytes_of(kind)))
        return indexed(t, kind, v.valid, base, stride, vary)
