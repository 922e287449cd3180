"""A large group run block by block: what is done once, in every block, and with all results.

The blocks are shared out over threads. Sums are taken within blocks, and then over the blocks, in
an order that does not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...lower.calls import CHOOSE
from ..run.threads import parallel
from .body import ArrayFunction, Writer, fill, output_names, where
from .elements import SPREAD, Elements, ReductionStep, UfuncStep, ValueType
from .partition import Block, Blocks, Shape
from .reduce import means, reducer
from .scratch import Place, scratch

SHORT = 64  # elements; rows shorter than this are repeated once, not in every block


class InBlocks:
    """A large group as a function of its inputs and outputs."""

    def __init__(self, elements: Elements, blocks: Blocks) -> None:
        self.arity, self.blocks = elements.arity, blocks
        self.per_task = max(1, min(8, blocks.number // 32))
        self.once = once = _Once(elements, blocks)
        self.totals = [_Total(s.fn, blocks) for s in once.others if isinstance(s.fn, ReductionStep)]
        given = _given(once)
        self.whole = [v for v in given if once.is_whole(v)]
        self.cut = [v for v in given if not once.is_whole(v)]
        self.body = self._written(elements)
        self.in_keys = [blocks.key(once.values[v].shape) for v in self.cut]
        self.out_keys = [blocks.key(blocks.shape)] * len(elements.outputs)
        for total in self.totals:
            self.out_keys[total.fn.output] = blocks.result_key(total.fn.axes)
        rank = len(blocks.shape) - blocks.axis
        shapes = [once.place(v)[1] for v in self.whole] + [s for _, s in self.body.scratch]
        self.shortens = [len(s) == rank and s[0] == blocks.length for s in shapes]

    def _written(self, elements: Elements) -> ArrayFunction:
        """What is done in every block."""
        names = {v: f"a{v}" for v in (*self.cut, *self.whole)}
        reduces = {total.fn.output: total.reduce for total in self.totals}
        writer = Writer(elements, self.once.others, names, reduces, self.once.place, False)
        inputs, whole = ([names[v] for v in vs] for vs in (self.cut, self.whole))
        return writer.write([*inputs, *output_names(elements), *whole])

    @property
    def scratch_bytes(self) -> int:
        """How much a thread writes besides outputs."""
        return sum(math.prod(shape) * dtype.itemsize for dtype, shape in self.body.scratch)

    def run(self, threads: int, *arrays: Any) -> None:
        """Write the outputs, which follow the inputs."""
        targets = list(arrays[self.arity :])
        for total in self.totals:
            targets[total.fn.output] = total.target(targets[total.fn.output])
        pairs = [(arrays[v], key) for v, key in zip(self.cut, self.in_keys, strict=True)]
        pairs += zip(targets, self.out_keys, strict=True)
        whole = self.once.run(arrays, self.whole)
        count, each = self.blocks.number, self.per_task

        def task(t: int) -> None:
            with scratch(self.body.scratch) as own:
                fixed = [*whole, *own]
                for i in range(t * each, min((t + 1) * each, count)):
                    block = self.blocks.at(i)
                    self.body.run(*[x[key(block)] for x, key in pairs], *self._short(fixed, block))

        parallel(task, -(-count // each), threads)
        for total in self.totals:
            total.finish(targets[total.fn.output], arrays[self.arity + total.fn.output])

    def _short(self, fixed: list[Any], block: Block) -> list[Any]:
        """What is of the length of a block, as long as this one."""
        length = block.piece.stop - block.piece.start
        if length == self.blocks.length:
            return fixed
        return [x[:length] if s else x for x, s in zip(fixed, self.shortens, strict=True)]


def _given(once: _Once) -> list[int]:
    """The values that blocks read and do not make."""
    made = {s.makes for s in once.others}
    read = dict.fromkeys(o for s in once.others for o in s.operands if isinstance(o, int))
    return [v for v in read if v not in made]


class _Once:
    """What is the same in every block is computed before.

    values  those of the group, and rows repeated to fill a block
    steps   what is done once
    others  what is done in every block
    """

    def __init__(self, elements: Elements, blocks: Blocks) -> None:
        self.blocks = blocks
        self.values = list(elements.values)
        self.steps: list[UfuncStep] = []
        self.others: list[UfuncStep] = []
        self._made: set[int] = set()
        self._repeated: dict[int, int] = {}
        for step in elements.steps:
            if step.makes is not None and step.makes not in elements.outputs and self._same(step):
                self._add(step)
            else:
                self.others.append(self._with_long_rows(step))

    def is_whole(self, v: int) -> bool:
        """Whether a value is the same in every block."""
        return v in self._made or not self.blocks.varies(self.values[v].shape)

    def place(self, v: int) -> Place:
        """dtype and shape of a value in a block."""
        return self.values[v].dtype, self.blocks.of(self.values[v].shape)

    def run(self, arrays: Sequence[Any], wanted: Sequence[int]) -> list[Any]:
        """The values wanted, each as it is in a block."""
        computed: dict[int, Any] = dict(enumerate(arrays))
        for step in self.steps:
            operands = [computed[o] if isinstance(o, int) else o for o in step.operands]
            assert step.makes is not None
            if isinstance(step.fn, np.ufunc):
                computed[step.makes] = step.fn(*operands)
                continue
            dtype, shape = self.values[step.makes]
            computed[step.makes] = made = np.empty(self._once_shape(step.fn, shape), dtype)
            write: Callable[..., None] = where if step.fn is CHOOSE else fill
            write(*operands, made)
        rank = len(self.blocks.shape) - self.blocks.axis
        return [
            x if x.ndim <= rank else x[(0,) * (x.ndim - rank)]
            for x in map(computed.__getitem__, wanted)
        ]

    def _same(self, step: UfuncStep) -> bool:
        """Whether a step makes the same in every block; what is spread out fills a block then."""
        if step.fn is SPREAD:
            return all(not isinstance(o, int) or self.is_whole(o) for o in step.operands)
        assert step.makes is not None
        return not self.blocks.varies(self.values[step.makes].shape)

    def _once_shape(self, fn: Any, shape: Shape) -> Shape:
        return self.blocks.of(shape) if fn is SPREAD else shape

    def _add(self, step: UfuncStep) -> None:
        assert step.makes is not None
        self.steps.append(step)
        self._made.add(step.makes)

    def _with_long_rows(self, step: UfuncStep) -> UfuncStep:
        """The step, on repeated rows where its operands have short ones."""
        if not isinstance(step.fn, np.ufunc) or self.blocks.number < 4:
            return step
        operands = tuple([self._repeat(o) if isinstance(o, int) else o for o in step.operands])
        return UfuncStep(step.fn, operands, step.makes)

    def _repeat(self, v: int) -> int:
        """Rows that fill a block, in place of a few that would be read again for each line of it.

        NumPy runs its inner loop over what all operands have in one piece.
        """
        loop, (dtype, shape) = self.blocks.shape, self.values[v]
        if not self.is_whole(v) or v in self._made or not shape or shape[-1] in (1, 0):
            return v
        row = 1
        for d, whole in zip(reversed(shape), reversed(loop), strict=False):
            if d != whole:
                break
            row *= d
        if row >= SHORT:
            return v
        if v not in self._repeated:
            self._repeated[v] = len(self.values)
            self.values.append(ValueType(dtype, loop))
            self._add(UfuncStep(SPREAD, (v,), self._repeated[v]))
        return self._repeated[v]


class _Total:
    """A reduction: its results in every block, and these together."""

    def __init__(self, fn: ReductionStep, blocks: Blocks) -> None:
        self.fn = fn
        self._kept = tuple([d for a, d in enumerate(blocks.shape) if a not in fn.axes])
        self._parts = blocks.results(fn.axes)
        self._across = tuple([a for a in fn.axes if a <= blocks.axis])
        inner = tuple([a - blocks.axis for a in fn.axes if a >= blocks.axis])
        self.reduce = reducer(fn.ufunc, inner, blocks.of(blocks.shape), fn.dtype)
        if fn.divisor is not None and not self._across:
            self.reduce = means(self.reduce, fn.divisor, fn.dtype)

    def target(self, out: Any) -> Any:
        """Where the results of the blocks go: where they belong, or to be added up."""
        return np.empty(self._parts, self.fn.dtype) if self._across else out.reshape(self._kept)

    def finish(self, target: Any, out: Any) -> None:
        """Add up the results of the blocks."""
        if not self._across:
            return
        reduce: Any = self.fn.ufunc.reduce
        reduce(target, self._across, self.fn.dtype, out.reshape(self._kept))
        if self.fn.divisor is not None:
            np.divide(out, self.fn.dtype.type(self.fn.divisor), out)
