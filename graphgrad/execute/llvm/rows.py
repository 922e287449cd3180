"""Rows one after the other, each along vectors of its elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from .blocks import Blocks
from .inner import Inner
from .loops import Loops
from .module import Module
from .nest import Nest, Pass
from .reductions import CHAIN, Accumulator
from .turning import turn
from .vectors import Values, bytes_of, element, store, whole

TURNED = 1 << 18  # bytes of rows that are put in order at once


class Rows(Loops):
    """Writes the function; see Loops."""

    def __init__(
        self, module: Module, nest: Nest, blocks: Blocks, inputs: int, inline: bool
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
        """Where a value that waits for a later pass is, at these places of the first axes."""
        size = bytes_of(element(self.items[i]))
        axes = sorted(self.nest.row_axes)
        return self.at(self.workspace.at(self.kept[i]), size, self.terms(axes, index))

    # --- rows out of columns -----------------------------------------------------------------

    def _turning(self) -> dict[int, tuple[int, int]]:
        """Loads of elements that lie across memory: workspace for some rows, and for how many."""
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
                found[i] = self.workspace.take(size), side
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
            source, to = self.load_at(i, [*index[:-1], start]), self.workspace.at(offset)
            step = self.nest.loads[i].strides[-1] * size
            given = f"ptr {source}, i64 {step}, ptr {to}, i64 {length}, i64 {count}"
            t.when(first, partial(t.do, f"call void @{turn(t.module, kind, side)}({given})"))
            self._turned_at[i] = t.at(to, t.mul(at, length * size))

    # --- a row -------------------------------------------------------------------------------

    def row(self, row: str) -> None:
        """Pass by pass."""
        nest = self.nest
        index = self.unravelled(row, nest.lengths[: nest.rows])
        values = dict(self.fixed)
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
                self.add(i, self.operand(i, values[self.items[i].args[0]]), index)

    def _of_rows(self, after: int, values: Values, index: Sequence[str]) -> None:
        """The numbers that the row has after this pass."""
        nest = self.nest
        for i, passed in enumerate(nest.passed):
            if passed == after and i not in values and i not in nest.inner and i not in nest.final:
                values[i] = self.scalar(i, values, index)

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
                self.add(i, accumulators[i].result(), places)

        self._between(nest.rows, index, innermost)
        for i in of_row:
            result = accumulators[i].result()
            if i in nest.ends:
                self.add(i, result, index)
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
        return Accumulator(self.body, self.how(i), lanes, self.exact and long, main < length)
