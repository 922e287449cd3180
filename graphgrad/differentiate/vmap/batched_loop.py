"""A loop for a batch: one over bodies that are built for all examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.build import apply, build
from ...ir.context import CONTEXT
from ...ir.node import Node, Tensor
from ...ir.program import Program
from ...ir.types import TensorType, as_dtype, tensor_type
from ...ops.base import cast, constant
from ...ops.control import BODY_OF, BodyGraph, BodyScope, Scan, While, constants_of, looped
from ...ops.elementwise.logic import Where
from ...ops.reduce.reductions import any
from ...ops.shape.reshaping import moveaxis
from ...ops.sources import Placeholder
from ..control.bodies import body_of
from .batch import aligned
from .batcher import Batcher
from .bodies import adopting, built, check_pure, door, give, known

Inputs = tuple[Tensor, ...]
Flags = tuple[bool, ...]


def batched_scan(
    batcher: Batcher, node: Node, op: Scan, inputs: Inputs, flags: Flags, for_each: bool
) -> Inputs:
    """The outputs of a scan in a batch.

    for_each: the carries and outputs are there for every example, since an input differs between
    examples or a rule inside is called for each; else nothing is.
    """
    (program,) = op.programs
    taken, slices, read = op.parts(program.inputs)
    first, stacked, constants = op.parts(inputs)
    inside = dict(zip(program.inputs, flags, strict=True)) | dict.fromkeys(taken, for_each)
    reads = dict(zip(read, constants, strict=True))
    loop = LoopBody(batcher, node, program, reads, {t: inside[t] for t in (*taken, *slices)})
    with BodyScope(loop.graph):
        made = loop.outputs(program)
        after = loop.as_carried(made[: len(taken)], taken)
        rows = [batcher.examples.repeated(t) if for_each else t for t in made[len(taken) :]]
    with batcher.standing_for(node):
        starts = batcher.examples.each(first, [inside[t] for t in taken])
        turned = [
            moveaxis(x, 0, 1) if inside[t] else x for t, x in zip(slices, stacked, strict=True)
        ]
        outputs = looped(
            loop.graph, loop.given, after, rows, [*starts, *turned], op.length, op.reverse
        )
        places = [*(inside[t] for t in taken), *(t in batcher.examples for t in rows)]
        return in_front(batcher, outputs, [*places, *places[: len(taken)]], len(taken))


def batched_while(
    batcher: Batcher, node: Node, op: While, inputs: Inputs, flags: Flags, for_each: bool
) -> Inputs:
    """The outputs of a loop with a test in a batch; for_each as for a scan.

    With a test of every example, it goes on until all have ended, and those that have stay as they
    are.
    """
    c = op.carries
    taken, read = op.programs[1].inputs[:c], op.programs[1].inputs[c:]
    if for_each:
        check_pure(node, op, "end at different runs of", "their bodies are")
    reads = dict(zip(read, inputs[c:], strict=True))
    loop = LoopBody(batcher, node, op.programs[1], reads, dict.fromkeys(taken, for_each), for_each)
    ends, after = _run_of_while(batcher, op, loop, for_each)
    with batcher.standing_for(node):
        starts = [batcher.examples.repeated(x) if for_each else x for x in inputs[:c]]
        if for_each:
            starts.append(batcher.examples.repeated(constant(0, "int64")))
        constants = constants_of(loop.graph, [ends, *after], loop.given)
        ins, carried = [*loop.given, *constants], tuple(range(len(after)))
        programs = Program(ins, [ends]), Program(ins, after)
        whole = While(programs, len(after), op.max_trips, carried, op.at)
        made = build(whole, (*starts, *constants.values())).outputs
        trips = made[c] if for_each else made[-1]
        outputs = [*made[:c], *made[len(after) : len(after) + c]]
        moved = in_front(batcher, outputs, [for_each] * (2 * c), c)
        if for_each:
            batcher.examples.batched.add(trips)
        return (*moved, trips)


def _run_of_while(
    batcher: Batcher, op: While, loop: LoopBody, apart: bool
) -> tuple[Tensor, list[Tensor]]:
    """Whether any example goes on, and what a run leaves; in the body of the loop."""
    test, program = op.programs
    taken = program.inputs[: op.carries]
    with BodyScope(loop.graph):
        (going,) = loop.outputs(test)
        if not apart:
            return going, loop.as_carried(loop.outputs(program), taken)
        going = batcher.examples.repeated(going)
        loop.close_behind(going)
        after = loop.as_carried(loop.outputs(program), taken)
        after = [_while_going(going, *pair) for pair in zip(after, loop.given, strict=True)]
        after.append(loop.counted(going))
        return any(going), after


class LoopBody:
    """The body of a loop, built for the batch.

    graph  the body
    given  its placeholders: what stands for what the loop gives its runs
    """

    def __init__(
        self,
        batcher: Batcher,
        node: Node,
        program: Program,
        reads: dict[Tensor, Tensor],
        flags: dict[Tensor, bool],
        apart: bool = False,
    ) -> None:
        """reads: what constants stand for; flags: which of the others differ between examples;
        apart: it shares its steps with no loop over the same body."""
        self._batcher = batcher
        self._reads = reads
        self._taken = tuple(flags)
        self._source = body_of(program)
        here: dict[Any, Any] = reads | flags
        inner = None if apart else known(batcher, program, here)
        new: Any = BodyGraph(CONTEXT.get().graph, f"{BODY_OF}{node.name}")
        graph: Any = new if inner is None else inner.graph
        self.graph: BodyGraph = graph
        with BodyScope(self.graph):
            self._read = adopting(self.graph)
            self._inner = inner or batcher.within(self._source, self._read)
            for t, flag in flags.items():
                if t not in self._inner.tensors:
                    self._inner.tensors[t] = self._placeholder(t.type, flag)
            if apart:
                self._inner.tensors.update({t: self._read(x) for t, x in reads.items()})
            else:
                give(batcher, self._inner, here)
        self.given = [self._inner.tensors[t] for t in flags]

    def outputs(self, program: Program) -> list[Tensor]:
        """The outputs of a program of the body."""
        return built(self._inner, program)

    def as_carried(self, made: Sequence[Tensor], taken: Sequence[Tensor]) -> list[Tensor]:
        """What a run carries on, for every example where that is how it is taken."""
        examples = self._batcher.examples
        return examples.each(made, [t in examples for t in self.given[: len(made)]])

    def close_behind(self, going: Tensor) -> None:
        """Let what is built from now on read all through doors, which are open for who goes on."""
        batcher, inner = self._batcher, self._inner
        enter = door(batcher, going, True)
        behind = batcher.within(self._source, lambda t: enter(self._read(t)))
        given = (*self._taken, *self._reads)
        behind.tensors.update({t: enter(inner.tensors[t]) for t in given})
        self._inner = behind

    def counted(self, going: Tensor) -> Tensor:
        """A carry more: how many runs each example has had."""
        count = self._placeholder(tensor_type((), as_dtype("int64")), True)
        self.given.append(count)
        return count + cast(going, "int64")

    def _placeholder(self, type: TensorType, flag: bool) -> Tensor:
        lengths = self._batcher.examples.like.shape[:1] if flag else ()
        made = build(Placeholder((*lengths, *type.shape), type.dtype), ()).outputs[0]
        if flag:
            self._batcher.examples.batched.add(made)
        return made


def in_front(
    batcher: Batcher, outputs: Sequence[Tensor], flags: Sequence[bool], carries: int
) -> Inputs:
    """The outputs of a loop, with the batch axis in front where there is one: carries, stacks."""
    moved = []
    for at, (t, flag) in enumerate(zip(outputs, flags, strict=True)):
        here = moveaxis(t, 1, 0) if flag and at >= carries else t
        moved.append(here)
        if flag:
            batcher.examples.batched.add(here)
    return tuple(moved)


def _while_going(going: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """new where an example goes on, else old."""
    return apply(Where(), *aligned((going, new, old), (True, True, True)))
