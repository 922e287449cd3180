"""The function that ends a group: void(frame, scratch).

The partial results of blocks are put together in pairs, and pairs of pairs; what is computed from
the whole is written to the outputs.
"""

from __future__ import annotations

from functools import partial

from ....lower.items import Output
from ....lower.loop_ir import Number
from ..emit.module import Body, Module
from ..emit.text import function
from ..emit.values import Value, constant
from .access import (
    Values,
    along,
    bytes_of,
    computed,
    element,
    load,
    place,
    spread,
    store,
)
from .nest import Nest
from .partition import PartialResult, RowBlocks
from .reductions import VectorReduction

TAKES = "ptr %frame, ptr %scratch"


class Ends:
    """Writes the function."""

    def __init__(
        self, module: Module, nest: Nest, blocks: RowBlocks, inputs: int, inline: bool
    ) -> None:
        self.body = Body(module)
        self.nest, self.blocks, self.inputs, self.inline = nest, blocks, inputs, inline
        self.items = nest.items

    def write(self, name: str) -> str:
        """The whole text."""
        t = self.body
        for i, region in self.blocks.regions.items():
            how = VectorReduction(self.items[i].name, self.items[i].dtype)
            width = 1
            while width < self.blocks.number:
                pair = partial(self._pair, how, region, width)
                t.loop(0, self.blocks.number - width, 2 * width, pair)
                width *= 2
        for k, output in enumerate(self.nest.outputs):
            if output.item in self.nest.final:
                to = t.load("ptr", t.at("%frame", 8 * (self.inputs + k)))
                one = partial(self._output, output, to)
                along(t, self.nest.size(output.axes), self.blocks.lanes, one)
        return function("void", name, TAKES, t, internal=False)

    def _pair(self, how: VectorReduction, region: PartialResult, width: int, block: str) -> None:
        """One block's part of a reduction together with that of the block `width` further on."""
        t = self.body
        left = t.at(t.at("%scratch", t.mul(block, self.blocks.bytes)), region.offset)
        right = t.at(left, width * self.blocks.bytes)

        def one(at: str, lanes: int, valid: int) -> None:
            a, b = (place(t, base, how.element, at) for base in (left, right))
            x, y = (load(t, how.element, lanes, valid, where) for where in (a, b))
            store(how.together(x, y), valid, a)

        along(t, region.size, self.blocks.lanes, one)

    def _output(self, output: Output, to: str, at: str, lanes: int, valid: int) -> None:
        x = self._final(output, at, lanes, valid)
        store(x, valid, place(self.body, to, x.element, at))

    def _final(self, output: Output, at: str, lanes: int, valid: int) -> Value:
        """What an output holds, computed from complete reductions, at some neighbouring places."""
        t, regions = self.body, self.blocks.regions
        values: Values = {}
        for i in self.nest.at_the_end(output.item):
            item = self.items[i]
            if i in regions:
                base = t.at("%scratch", regions[i].offset)
                where = place(t, base, element(item), at)
                values[i] = load(t, element(item), lanes, valid, where)
            elif isinstance(item.data, Number):
                values[i] = constant(t, element(item), lanes, item.data.value)
            elif item.name == "load":
                values[i] = self._load(i, output, at, lanes, valid)
            else:
                values[i] = computed(self.nest, i, [values[a] for a in item.args], self.inline)
        return values[output.item]

    def _load(self, i: int, output: Output, at: str, lanes: int, valid: int) -> Value:
        """An input at the places of an output: one number for all, or in the output's order."""
        t, kind = self.body, element(self.items[i])
        where, strides, offset, _ = self.nest.loads[i]
        base = t.at(t.load("ptr", t.at("%frame", 8 * where)), offset * bytes_of(kind))
        if not any(strides):
            return spread(load(t, kind, 1, 1, base), lanes)
        steps = self.nest.steps(output.axes)
        wanted = tuple([steps.get(a, 0) for a in range(len(strides))])
        assert strides == wanted, "an input in another order than the reductions it joins"
        return load(t, kind, lanes, valid, place(t, base, kind, at))
