"""What loops make for nobody is not made."""

from __future__ import annotations

from collections.abc import Collection

from ...ir.node import Node, Tensor
from ...ir.program import Program, derive, needed
from ...ops.control import Scan, While
from .bodies import outer_first


def drop_unread(program: Program) -> Program:
    """The program with loops that make, keep, carry and read only what somebody needs.

    Loops in bodies come after those around them, which may need less then.
    """
    return outer_first(program, _trimmed)


def _trimmed(program: Program) -> Program:
    """The program with its own loops as they are needed."""
    if not any(isinstance(op, Scan | While) for op in program.ops):
        return program
    read = {t for node in program.nodes for t in node.inputs}.union(program.outputs)
    originals = iter(program.nodes)

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        wanted = [at for at, t in enumerate(next(originals).outputs) if t in read]
        if isinstance(node.op, Scan):
            return _scan(node, node.op, wanted)
        return _while(node, node.op, wanted) if isinstance(node.op, While) else None

    return program.rebuild(visit)


def _scan(node: Node, op: Scan, wanted: Collection[int]) -> tuple[Tensor, ...] | None:
    """The outputs of a scan, where those that are not wanted are as they were."""
    (body,) = op.programs
    c, end = op.carries, len(body.outputs)
    history = tuple([i for at, i in enumerate(op.history) if end + at in wanted])
    rows = [at for at in range(c, end) if at in wanted]
    carries = {at for at in wanted if at < c}.union(history)
    carries = _carried(body, c, carries, [body.outputs[at] for at in rows])
    kept = sorted(carries)
    outputs = [body.outputs[at] for at in (*kept, *rows)]
    read = _places(body, outputs)
    used = [at for at in range(c, c + op.slices) if at in read]
    if not used and op.length is None:  # whose rows are counted
        used = [c]
    given = [*kept, *used, *sorted(at for at in read if at >= c + op.slices)]
    if len(given) == len(body.inputs) and len(outputs) == end and history == op.history:
        return None
    new = op.replace(
        programs=(Program([body.inputs[at] for at in given], outputs),),
        carries=len(kept),
        slices=len(used),
        history=tuple([kept.index(i) for i in history]),
    )
    made = derive(node, new, tuple([node.inputs[at] for at in given])).outputs
    stands = dict(zip((*kept, *rows), made, strict=False))
    tails = [end + op.history.index(i) for i in history]
    stands.update(zip(tails, made[len(outputs) :], strict=True))
    return tuple([stands.get(at, t) for at, t in enumerate(node.outputs)])


def _while(node: Node, op: While, wanted: Collection[int]) -> tuple[Tensor, ...] | None:
    """The outputs of a loop with a test, where those that are not wanted are as they were."""
    test, body = op.programs
    c = op.carries
    history = tuple([i for at, i in enumerate(op.history) if c + at in wanted])
    carries = {at for at in wanted if at < c}.union(history)
    kept = sorted(_carried(body, c, carries, [], _places(test, test.outputs)))
    outputs = [body.outputs[at] for at in kept]
    read = _places(body, outputs) | _places(test, test.outputs)
    given = [*kept, *(at for at in range(c, len(body.inputs)) if at in read)]
    if len(given) == len(body.inputs) and history == op.history:
        return None
    asked = Program([test.inputs[at] for at in given], test.outputs)
    new = op.replace(
        programs=(asked, Program([body.inputs[at] for at in given], outputs)),
        carries=len(kept),
        history=tuple([kept.index(i) for i in history]),
    )
    made = derive(node, new, tuple([node.inputs[at] for at in given])).outputs
    stands = dict(zip(kept, made, strict=False))
    tails = [*(c + op.history.index(i) for i in history), len(node.outputs) - 1]
    stands.update(zip(tails, made[len(kept) :], strict=True))
    return tuple([stands.get(at, t) for at, t in enumerate(node.outputs)])


def _carried(
    body: Program,
    count: int,
    carries: set[int],
    rows: list[Tensor],
    asked: Collection[int] = (),
) -> set[int]:
    """The carries that some carries and rows need, in any run, and those that are asked for."""
    required = carries.union(at for at in asked if at < count)
    while True:
        read = _places(body, [*(body.outputs[at] for at in required), *rows])
        more = {at for at in read if at < count} - required
        if not more:
            return required
        required |= more


def _places(program: Program, outputs: Collection[Tensor]) -> set[int]:
    """The inputs of a program, by place, that some outputs need."""
    nodes = needed(program.inputs, outputs)
    read = {t for node in nodes for t in node.inputs}.union(outputs)
    return {at for at, t in enumerate(program.inputs) if t in read}
