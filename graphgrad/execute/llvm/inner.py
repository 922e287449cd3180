"""One run along the last axis, in one pass over a row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .nest import Pass
from .reductions import CHAIN, Accumulator
from .spills import Spills
from .values import Value
from .vectors import (
    ORDERED,
    Values,
    bytes_of,
    computed,
    element,
    indexed,
    load,
    place,
    read,
    spread,
    store,
    whole,
    wide_enough,
)

if TYPE_CHECKING:
    from .rows import Rows


class Inner:
    """Writes it.

    values        what the row has
    index         the places along the other axes
    accumulators  of reductions that go over the last axis
    """

    def __init__(
        self,
        rows: Rows,
        step: Pass,
        values: Values,
        index: Sequence[str],
        accumulators: dict[int, Accumulator],
    ) -> None:
        self.rows, self.step, self.values = rows, step, values
        self.body, self.nest, self.items = rows.body, rows.nest, rows.items
        self.accumulators = accumulators
        self.loads = {i: self._start(i, index) for i in step.computes if i in rows.nest.loads}
        self.stores = {k: rows.output_at(k, index) for k in step.stores}
        self.ends = {i: rows.end_at(i, index) for i in step.reduces if i not in accumulators}
        self.kept = {i: rows.kept_at(i, index) for i in rows.kept}
        self.lanes = rows.blocks.lanes
        self._spread: dict[tuple[int, int], Value] = {}

    def _start(self, i: int, index: Sequence[str]) -> str:
        """Where what is read along the axis begins, by what the row has."""
        base = self.rows.load_at(i, index)
        if self.items[i].name == "load":
            return base
        return self.rows.gather_at(i, base, [self.values.get(a) for a in self.items[i].args])

    def write(self, row: str) -> None:
        """Whole vectors, then what is left."""
        t, blocks = self.body, self.rows.blocks
        length = self.nest.lengths[-1]
        main = whole(length, self.lanes)
        several = blocks.piece and blocks.rows > 1
        if main:
            start = t.mul(row, blocks.piece) if several else "0"
            stop = t.least(t.add(start, blocks.piece), main) if several else str(main)
            self._main(start, stop)
        if main == length:
            return
        inline = self.rows.inline and not main
        left = length - main
        tail = partial(self._vector, str(main), wide_enough(left), left, inline)
        if several:
            t.when(t(f"icmp eq i64 {row}, {blocks.rows - 1}"), tail)
        else:
            tail()

    def _main(self, start: str, stop: str) -> None:
        """Vector by vector; in chains, where sums are exact."""
        t, lanes = self.body, self.lanes
        self._spread_all()
        one = partial(self._vector, lanes=lanes, valid=lanes, inline=self.rows.inline)
        exact = [a for a in self.accumulators.values() if a.exact]
        if not exact:
            t.loop(start, stop, lanes, one)
            return

        def chain(at: str) -> None:
            t.loop(at, t.least(t.add(at, CHAIN * lanes), stop), lanes, one)
            for accumulator in exact:
                accumulator.carry()

        t.loop(start, stop, CHAIN * lanes, chain)

    def _spread_all(self) -> None:
        """What the row has, in every lane, before the loop."""
        reads = [a for i in self.step.computes for a in self.items[i].args]
        for i in (*reads, *self._at_last()):
            if i not in self.nest.inner:
                self._of_row(self.lanes, i)

    def _of_row(self, lanes: int, i: int) -> Value:
        found = self._spread.get((i, lanes))
        if found is None:
            found = self._spread[i, lanes] = spread(self.values[i], lanes)
        return found

    def _at_last(self) -> list[int]:
        """The items that are reduced or stored."""
        reduced = [self.items[i].args[0] for i in self.step.reduces]
        return [*reduced, *(self.nest.outputs[k].item for k in self.step.stores)]

    # --- one vector --------------------------------------------------------------------------

    def _vector(self, at: str, lanes: int, valid: int, inline: bool) -> None:
        """All that is computed for some neighbouring elements."""
        step, items, workspace = self.step, self.items, self.rows.workspace
        of_row = partial(self._of_row, lanes)
        here = Spills(items, step.computes, self._at_last(), lanes, workspace, of_row)
        order = ORDERED if here.long else ""
        for i in step.reads:
            kind = element(items[i])
            where = place(self.body, self.kept[i], kind, at)
            here.values[i] = load(self.body, kind, lanes, valid, where)
        for i in step.computes:
            if items[i].name == "load":
                x = self._loaded(i, at, lanes, valid, order)
            elif items[i].name == "gather":
                x = self._gathered(i, at, here, valid)
            else:
                x = computed(items, i, [here.get(a) for a in items[i].args], inline)
            here.put(i, x)
            if i in self.kept:
                store(x, valid, place(self.body, self.kept[i], x.element, at))
        for i in step.reduces:
            self._reduced(i, here.get(items[i].args[0]), at, valid)
        for k, base in self.stores.items():
            x = here.get(self.nest.outputs[k].item)
            store(x, valid, place(self.body, base, x.element, at), order)

    def _reduced(self, i: int, x: Value, at: str, valid: int) -> None:
        x = self.rows.operand(i, x)
        if i not in self.accumulators:
            self.rows.add_to(i, x, valid, place(self.body, self.ends[i], x.element, at))
        elif valid == x.lanes == self.lanes:
            self.accumulators[i].add(x)
        else:
            self.accumulators[i].add_tail(x, valid)

    def _loaded(self, i: int, at: str, lanes: int, valid: int, order: str) -> Value:
        kind, t = element(self.items[i]), self.body
        stride, base = self.rows.stride(i), self.loads[i]
        first = place(t, base, kind, at if stride == 1 else t.mul(at, stride)) if stride else base
        return read(t, kind, lanes, valid, first, stride, order)

    def _gathered(self, i: int, at: str, here: Spills, valid: int) -> Value:
        """Numbers at the places that indices of elements say, or of the row alone."""
        item, kind = self.items[i], element(self.items[i])
        terms = zip(item.args, item.data[3], strict=True)
        vary = [(here.get(a), *step) for a, step in terms if a in self.nest.inner]
        if not vary:
            return self._loaded(i, at, here.lanes, valid, "")
        t, stride = self.body, self.rows.stride(i)
        base = self.loads[i]
        if stride:
            base = t.at(base, t.mul(at, stride * bytes_of(kind)))
        return indexed(t, kind, valid, base, stride, vary)
