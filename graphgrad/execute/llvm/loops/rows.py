"""What the functions that run rows of a group share: void(frame, begin, end, partial, workspace).

frame: where the inputs and then the outputs are. partial: what these rows leave of the reductions
that are complete when all rows are done, one region after the other. workspace: memory to work in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial

from ....lower.loop_ir import Number
from ..emit.module import Body, Module
from ..emit.text import function
from ..emit.values import Value, constant
from ..emit.workspace import Workspace
from .access import Values, along, bytes_of, computed, element, from_start, load, place, store
from .nest import Nest
from .partition import RowBlocks
from .reductions import Accumulator, VectorReduction

TAKES = "ptr %frame, i64 %begin, i64 %end, ptr %partial, ptr %workspace"


class Loops(ABC):
    """Writes the loop over rows, addresses, and what is the same for all rows.

    inputs  how many arrays are read
    inline  whether functions that have a name are written out where they are called
    """

    def __init__(
        self, module: Module, nest: Nest, blocks: RowBlocks, inputs: int, inline: bool
    ) -> None:
        self.body = Body(module)
        self.nest, self.blocks, self.inputs, self.inline = nest, blocks, inputs, inline
        self.items = nest.items
        self.workspace = Workspace(self.body)
        self.kept = self._kept()
        self.fixed: Values = {}
        self._pointers: dict[int, str] = {}
        self._totals: dict[int, Accumulator] = {}

    def write(self, name: str) -> str:
        """The whole text."""
        for i in sorted(self.nest.fixed):
            self.fixed[i] = self.scalar(i, self.fixed, ())
        self._begin_ends()
        self.body.loop("%begin", "%end", 1, self.row)
        for i, total in self._totals.items():
            store(total.result(), 1, self._region(i))
        return function("void", name, TAKES, self.body, internal=False)

    @abstractmethod
    def row(self, row: str) -> None:
        """All that is done for a row, or for a vector of rows, by its number."""

    def scalar(self, i: int, values: Values, index: Sequence[str]) -> Value:
        """An item as one number, from others."""
        item = self.items[i]
        if isinstance(item.data, Number):
            return constant(self.body, element(item), 1, item.data.value)
        if item.name == "load":
            return load(self.body, element(item), 1, 1, self.load_at(i, index))
        if item.name == "gather":
            where = self.gather_at(i, self.load_at(i, index), [values[a] for a in item.args])
            return load(self.body, element(item), 1, 1, where)
        return computed(self.nest, i, [values[a] for a in item.args], self.inline)

    def unravelled(self, row: str, lengths: Sequence[int]) -> list[str]:
        """The places along axes of these lengths, by their number in row-major order."""
        t = self.body
        places: list[str] = []
        for length in reversed(lengths[1:]):
            places.append(t(f"urem i64 {row}, {length}"))
            row = t.div(row, length)
        return [row, *reversed(places)] if lengths else []

    # --- addresses ---------------------------------------------------------------------------

    def _pointer(self, number: int) -> str:
        """Where an input, or an output (after the inputs), is."""
        pointer = self._pointers.get(number)
        if pointer is None:
            pointer = self._pointers[number] = f"%p{number}"
            self.body.enter(f"{pointer} = load ptr, ptr {pointer}.at")
            self.body.enter(f"{pointer}.at = getelementptr i8, ptr %frame, i64 {8 * number}")
        return pointer

    def at(self, base: str, size: int, terms: Sequence[tuple[str, int]]) -> str:
        """base + sum of index * stride * size bytes."""
        t = self.body
        for index, stride in terms:
            if stride:
                base = t.at(base, t.mul(index, stride * size))
        return base

    def terms(self, axes: Sequence[int], index: Sequence[str]) -> list[tuple[str, int]]:
        """Places along the axes of something in row-major order, with its strides."""
        steps = self.nest.steps(axes)
        return [(index[a], steps[a]) for a in axes if a < len(index)]

    def load_at(self, i: int, index: Sequence[str]) -> str:
        """Where a load reads at these places of the first axes."""
        at, strides, offset, _ = self.nest.loads[i]
        size = bytes_of(element(self.items[i]))
        base = self._pointer(at)
        if offset:
            base = self.body.at(base, offset * size)
        return self.at(base, size, list(zip(index, strides, strict=False)))

    def gather_at(self, i: int, base: str, indices: Sequence[Value | None]) -> str:
        """Where a gather reads, of which load_at gave the base; None: an index of elements."""
        terms = list(zip(indices, self.nest.loads[i].indexed, strict=True))
        known = [(from_start(x, n).name, stride) for x, (stride, n) in terms if x is not None]
        return self.at(base, bytes_of(element(self.items[i])), known)

    def output_at(self, k: int, index: Sequence[str]) -> str:
        """Where an output is written at these places of the first axes."""
        output = self.nest.outputs[k]
        size = bytes_of(element(self.items[output.item]))
        return self.at(self._pointer(self.inputs + k), size, self.terms(output.axes, index))

    def end_at(self, i: int, index: Sequence[str]) -> str:
        """Where what these rows leave of a reduction is, at these places of the first axes."""
        size = bytes_of(element(self.items[i]))
        return self.at(self._region(i), size, self.terms(self.nest.left[i], index))

    def _kept(self) -> dict[int, int]:
        row = self.nest.size(self.nest.row_axes) * (
            self.blocks.lanes if self.nest.outer_lanes else 1
        )
        kept = sorted({i for step in self.nest.passes for i in step.reads})
        return {i: self.workspace.take(row * bytes_of(element(self.items[i]))) for i in kept}

    # --- reductions --------------------------------------------------------------------------

    def how(self, i: int) -> VectorReduction:
        """How the numbers of an item that reduces are put together."""
        return VectorReduction(self.items[i].name, self.items[i].dtype)

    @property
    def exact(self) -> bool:
        """Whether sums keep what rounding loses."""
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
            how, size = self.how(i), self.blocks.regions[i].size
            if size == 1:
                self._totals[i] = Accumulator(t, how, 1, self.exact)
                self._totals[i].begin()
                continue
            fill = partial(self._fill, how, self._region(i))
            along(t, size, self.blocks.lanes, fill)

    def _fill(self, how: VectorReduction, base: str, at: str, lanes: int, valid: int) -> None:
        start = constant(self.body, how.element, lanes, how.start)
        store(start, valid, place(self.body, base, how.element, at))

    def add(self, i: int, x: Value, index: Sequence[str]) -> None:
        """Put a number together with what there is of a reduction that ends with the last row."""
        total = self._totals.get(i)
        if total is None:
            self.add_to(i, x, 1, self.end_at(i, index))
        else:
            total.add(x)
            total.carry()

    def add_to(self, i: int, x: Value, valid: int, where: str) -> None:
        """Put a vector together with what is at an address."""
        how = self.how(i)
        before = load(self.body, how.element, x.lanes, valid, where)
        store(how.together(before, x), valid, where)
