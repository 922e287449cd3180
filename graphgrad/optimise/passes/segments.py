"""Loops whose gradients run them again, segment by segment, instead of keeping every run.

The gradient of a scan takes what each run took, which the loop has kept: n states. Here both go
over segments: a loop over them of a loop over the runs of one. The outer loop keeps what its
segments began with, and the gradient's runs a segment again before it goes back through it, so
that there are no more than about 2 sqrt(n) states at a time [Chen et al. 2016, "Training deep nets
with sublinear memory cost"]. Of orders above the first, each runs the loops before it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import isqrt
from typing import Any, NamedTuple

from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.program import Program, derive
from ...ops.control import Scan
from ...ops.shape.joining import Concat
from ...ops.shape.slicing import Slice
from ...ops.sources import Placeholder
from ..build import beside, reshaped
from ..facts import ints
from .stored_runs import origin_of, passes_on

FEWEST = 16  # runs that are worth segments


class Segmenting:
    """Puts the loops of programs into segments, and those of segments, to some depth.

    depth: of the loops over the runs of a segment, by op: in how many segments they are.
    """

    def __init__(self, deepest: int, fired: Counter[str]) -> None:
        self.deepest, self.fired = deepest, fired
        self.depth: dict[Op, int] = {}

    def __call__(self, program: Program) -> Program:
        """The program with loops that keep the state of every so many runs."""
        again = _computed_again(program)
        chosen = [n for n in program.nodes if _runs(n) and again.intersection(_kept(n))]
        chosen = [n for n in chosen if self.depth.get(n.op, 0) < self.deepest]
        if not chosen:
            return program
        self.fired["segments"] += len(chosen)
        return _Segments(program, again, chosen, self.depth).rebuilt()


def _kept(node: Node) -> list[Tensor]:
    """What a loop keeps of every run, and what it takes of what others kept."""
    return [*node.outputs, *_sources(node)]


def _computed_again(program: Program) -> set[Tensor]:
    """What loops keep of every run, which nobody but loops over as many runs reads row by row."""
    read: set[Tensor] = set()
    elsewhere = {origin_of(t) for t in program.outputs}
    for node in program.nodes:
        op: Any = node.op
        rows = range(0)
        if _runs(node):
            rows = range(op.carries, op.carries + op.slices)
        elif passes_on(node):
            continue
        for at, t in enumerate(node.inputs):
            origin = origin_of(t)
            if at in rows and _runs(origin.node) == _runs(node):
                read.add(origin)
            else:
                elsewhere.add(origin)
    return {t for t in read - elsewhere if t.index >= _carries(t.node)}


def _carries(node: Node) -> int:
    op: Any = node.op
    count: int = op.carries
    return count


def _runs(node: Node) -> int:
    """How often a loop runs, where that is known and worth segments; else 0."""
    if type(node.op) is not Scan or node.controls:
        return 0
    runs = node.op.runs_of([t.type for t in node.inputs])
    return runs if isinstance(runs, int) and runs >= FEWEST else 0


def _sources(node: Node) -> list[Tensor]:
    op: Any = node.op
    return [origin_of(t) for t in node.inputs[op.carries : op.carries + op.slices]]


class Segmentation(NamedTuple):
    """So many segments of so many runs; the rest of the runs is one that is shorter."""

    segments: int
    length: int
    rest: int

    @property
    def whole(self) -> int:
        """How many runs are in segments."""
        return self.segments * self.length


def cut(runs: int) -> Segmentation:
    """Segments of about sqrt(runs) runs, without a rest where that is near."""
    root = isqrt(runs)
    near = range(max(2, root // 2), min(2 * root, runs // 2) + 1)
    even = [n for n in near if not runs % n]
    length = min(even, key=lambda n: runs // n + n) if even else root
    return Segmentation(runs // length, length, runs % length)


class _Segments:
    """The loops of a program, one after the other.

    again      outputs of loops that are computed again, of the program as it was
    inside     of these, what it is in the body over segments: the rows of one
    rests      of these, the rows of the rest
    slices     tensor of a body over segments -> the stack whose rows it stands for
    constants  the same for what all segments read
    """

    def __init__(
        self,
        program: Program,
        again: set[Tensor],
        chosen: Iterable[Node],
        depth: dict[Op, int],
    ) -> None:
        self.program, self.again, self.chosen, self.depth = program, again, set(chosen), depth
        self.inside: dict[Tensor, Tensor] = {}
        self.rests: dict[Tensor, Tensor] = {}
        self.slices: dict[Tensor, Tensor] = {}
        self.constants: dict[Tensor, Tensor] = {}
        self._pieces: dict[tuple[Tensor, Segmentation], Tensor] = {}
        self._fixed: dict[Tensor, Tensor] = {}

    def rebuilt(self) -> Program:
        """The program with these loops in segments."""
        originals = iter(self.program.nodes)

        def visit(node: Node) -> tuple[Tensor, ...] | None:
            old = next(originals)
            return self._loop(old, node) if old in self.chosen else None

        return self.program.rebuild(visit)

    def _loop(self, old: Node, node: Node) -> tuple[Tensor, ...]:
        """What stands for the outputs of a loop."""
        op: Any = node.op
        c, at = op.carries, cut(_runs(old))
        carries, rows = list(node.inputs[:c]), []
        for part in (self._rest, self._in_segments)[:: 1 if op.reverse else -1]:
            made = part(old, node, carries, at)
            carries = list(made[:c])
            rows.append(made[c:])
        if op.reverse:
            rows.reverse()
        outputs = [*carries]
        for first, *more in zip(*filter(None, rows), strict=True):
            outputs.append(_joined(node, [first, *more], at))
        return tuple(outputs)

    def _in_segments(
        self, old: Node, node: Node, carries: Sequence[Tensor], at: Segmentation
    ) -> tuple[Tensor, ...]:
        """The outputs of the loop over segments."""
        op: Any = node.op
        c, (_, stacked, constants) = op.carries, op.parts(node.inputs)
        began = [_given(node, t) for t in carries]
        blocks = [
            self.inside[source] if source in self.again else self._block(node, t, at)
            for source, t in zip(_sources(old), stacked, strict=True)
        ]
        fixed = [self._constant(node, t) for t in constants]
        runs = op.replace(length=at.length)
        self.depth[runs] = self.depth.get(op, 0) + 1
        inner = beside(node, runs, *began, *blocks, *fixed).node
        outputs = inner.outputs
        nodes = Program([*began, *self.slices, *self.constants], outputs).nodes
        read = {t for n in nodes for t in n.inputs}
        slices = {t: x for t, x in self.slices.items() if t in read}
        constants = {t: x for t, x in self.constants.items() if t in read}
        loop = op.replace(
            programs=(Program([*began, *slices, *constants], outputs),),
            slices=len(slices),
            length=at.segments,
            history=tuple(range(c)),
        )
        made = derive(node, loop, (*carries, *slices.values(), *constants.values())).outputs
        self.slices.update(zip(began, made[len(outputs) :], strict=True))
        self.inside.update(zip(old.outputs[c:], outputs[c:], strict=True))
        return made[: len(outputs)]

    def _rest(
        self, old: Node, node: Node, carries: Sequence[Tensor], at: Segmentation
    ) -> tuple[Tensor, ...]:
        """The outputs of the loop over what is left, with the rows that it makes."""
        op: Any = node.op
        if not at.rest:
            return tuple(carries)
        _, stacked, constants = op.parts(node.inputs)
        rests = [
            self.rests[source]
            if source in self.again
            else _rows(node, t, at.whole, at.whole + at.rest)
            for source, t in zip(_sources(old), stacked, strict=True)
        ]
        made = beside(node, op.replace(length=at.rest), *carries, *rests, *constants).node.outputs
        self.rests.update(zip(old.outputs[op.carries :], made[op.carries :], strict=True))
        return made

    def _block(self, node: Node, stack: Tensor, at: Segmentation) -> Tensor:
        """What stands for the rows of a segment in the body over segments."""
        block = self._pieces.get((stack, at))
        if block is None:
            rows = ints(stack.shape[1:])
            whole = _rows(node, stack, 0, at.whole) if at.rest else stack
            blocks = reshaped(node, whole, (at.segments, at.length, *rows))
            block = self._pieces[stack, at] = _given(node, blocks, 1)
            self.slices[block] = blocks
        return block

    def _constant(self, node: Node, t: Tensor) -> Tensor:
        fixed = self._fixed.get(t)
        if fixed is None:
            fixed = self._fixed[t] = _given(node, t)
            self.constants[fixed] = t
        return fixed


def _given(node: Node, like: Tensor, axes: int = 0) -> Tensor:
    """An input of a body: a tensor like another, without so many axes in front."""
    return beside(node, Placeholder(like.shape[axes:], like.dtype))


def _rows(node: Node, stack: Tensor, first: int, last: int) -> Tensor:
    return beside(node, Slice(((first, last, None),)), stack)


def _joined(node: Node, parts: Sequence[Tensor], at: Segmentation) -> Tensor:
    """The rows of all segments, and of the rest behind them."""
    main, *rest = parts
    main = reshaped(node, main, (at.whole, *ints(main.shape[2:])))
    return beside(node, Concat(0), main, *rest) if rest else main
