"""The function that ends a group: void(frame, scratch).

The partial results of blocks are put together in pairs, and pairs of pairs; what is computed from
the whole is written to the outputs.
"""

from __future__ import annotations

from functools import partial

from .blocks import Blocks, Region
from .module import Body, Module
from .nest import Nest
from .reductions import Reduction
from .text import function
from .values import Value, constant
from .vectors import Values, along, computed, element, load, place, store

TAKES = "ptr %frame, ptr %scratch"


class Ends:
    """Writes the function."""

    def __init__(
        self, module: Module, nest: Nest, blocks: Blocks, inputs: int, inline: bool
    ) -> None:
        self.body = Body(module)
        self.nest, self.blocks, self.inputs, self.inline = nest, blocks, inputs, inline
        self.items = nest.items

    def write(self, name: str) -> str:
        """The whole text."""
        t = self.body
        for i, region in self.blocks.regions.items():
            how = Reduction(self.items[i].name, self.items[i].dtype)
            width = 1
            while width < self.blocks.number:
                pair = partial(self._pair, how, region, width)
                t.loop(0, self.blocks.number - width, 2 * width, pair)
                width *= 2
        for k, output in enumerate(self.nest.outputs):
            if output.item in self.nest.final:
                to = t.load("ptr", t.at("%frame", 8 * (self.inputs + k)))
                one = partial(self._output, output.item, to)
                along(t, self.nest.size(output.axes), self.blocks.lanes, one)
        return function("void", name, TAKES, t, internal=False)

    def _pair(self, how: Reduction, region: Region, width: int, block: str) -> None:
        """One block's part of a reduction together with that of the block `width` further on."""
        t = self.body
        left = t.at(t.at("%scratch", t.mul(block, self.blocks.bytes)), region.offset)
        right = t.at(left, width * self.blocks.bytes)

        def one(at: str, lanes: int, valid: int) -> None:
            a, b = (place(t, base, how.element, at) for base in (left, right))
            x, y = (load(t, how.element, lanes, valid, where) for where in (a, b))
            store(how.together(x, y), valid, a)

        along(t, region.size, self.blocks.lanes, one)

    def _output(self, item: int, to: str, at: str, lanes: int, valid: int) -> None:
        x = self._final(item, at, lanes, valid)
        store(x, valid, place(self.body, to, x.element, at))

    def _final(self, of: int, at: str, lanes: int, valid: int) -> Value:
        """An item computed from complete reductions, at some neighbouring places."""
        t, regions = self.body, self.blocks.regions
        needed: set[int] = set()
        stack = [of]
        while stack:
            i = stack.pop()
            if i not in needed:
                needed.add(i)
                stack.extend(() if i in regions else self.items[i].args)
        values: Values = {}
        for i in sorted(needed):
            item = self.items[i]
            if i in regions:
                base = t.at("%scratch", regions[i].offset)
                where = place(t, base, element(item), at)
                values[i] = load(t, element(item), lanes, valid, where)
            elif item.name == "number":
                values[i] = constant(t, element(item), lanes, item.data)
            else:
                values[i] = computed(self.items, i, [values[a] for a in item.args], self.inline)
        return values[of]
