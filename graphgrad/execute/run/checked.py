"""A slow loop that trusts no kernel and no plan: for debugging, and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ...base.errors import ExecutionError
from ...base.kinds import is_inexact
from ...base.solving import LengthSolver
from ...ir.node import Node
from ...ir.types import Array
from ...lower.plan import Plan, Step
from ..kernels import ArrayFunction
from ..results import add_note, check_lengths, check_promise, share, shown, taken
from .arena import fixed_arrays, part_of

POISON = 0xCB


def checked_loop(plan: Plan) -> ArrayFunction:
    """The plan as a loop in which every kernel must keep its promises, on a new arena each time.

    ExecutionError where a result is not of the type inferred, where a named length has two values,
    where a kernel writes into what it reads and may not, returns memory of its inputs without
    saying so (`view`) or where the plan takes its result for a copy, or returns two results in one
    memory, and where the plan has a result written over a value that a later step reads, in whose
    memory that value may be a view. What is not needed any more is overwritten with rubbish (NaN in
    floats), so that a plan which gives a place away too early gives wrong results.
    """
    last_reads = _last_reads(plan)

    def run(*arrays: Array) -> tuple[Array, ...]:
        return _Checked(plan, last_reads, arrays).run()

    return run


_LastReads = list[dict[int, int]]
"""For each step, slots whose values it makes -> the last step that reads the value."""


def _last_reads(plan: Plan) -> _LastReads:
    """The end of the plan counts as a step that reads the outputs."""
    views: dict[int, list[int]] = {}  # array of the arena -> what looks into it
    base = {slot: slot for slot, _, _ in plan.places}
    for step in plan.views:
        root = base.get(step.inputs[0])
        if root is not None:  # else it is a constant's
            base.update(dict.fromkeys(step.outputs, root))
            views.setdefault(root, []).extend(step.outputs)
    last_reads: _LastReads = [{} for _ in plan.steps]
    maker: dict[int, int] = {}
    for at, step in enumerate(plan.steps):
        for slot in step.inputs:
            if slot in maker:
                last_reads[maker[slot]][slot] = at
        made = [s for slot in step.outputs for s in (slot, *views.get(slot, ()))]
        maker.update(dict.fromkeys(made, at))
    for result in plan.results:
        if result.slot in maker:
            last_reads[maker[result.slot]][result.slot] = len(plan.steps)
    return last_reads


class _Checked:
    """One run.

    live: slots that a later step reads -> the step that made the value, the last one that reads it
    """

    def __init__(self, plan: Plan, last_reads: _LastReads, arrays: Sequence[Array]) -> None:
        self.plan = plan
        self.last_reads = last_reads
        self.live: dict[int, tuple[int, int]] = {}
        self.values: list[Any] = [*arrays, *[None] * (plan.changing - len(arrays))]
        self.values += fixed_arrays(plan)
        self.lengths = LengthSolver()
        for t, a in zip(plan.program.inputs, arrays, strict=True):
            check_lengths(t, a.shape, self.lengths)

    def run(self) -> tuple[Array, ...]:
        """The outputs."""
        for at, step in enumerate(self.plan.steps):
            self._step(at, step)
        return tuple(
            taken(t, r.copied)(self.values[r.slot])
            for r, t in zip(self.plan.results, self.plan.program.outputs, strict=True)
        )

    def _step(self, at: int, step: Step) -> None:
        node, values = step.node, self.values
        for slot, type in step.fresh:
            shape: Any = type.shape
            values[slot] = np.empty(shape, type.dtype)
        for slot, host, type in step.lodged:
            values[slot] = part_of(values[host], type)
        args = [values[slot] for slot in step.inputs]
        outs = [values[slot] for slot in step.outputs] if step.writes else []
        over = [values[slot] for slot in step.over]
        self.live = {slot: (made, last) for slot, (made, last) in self.live.items() if last > at}
        for i, out in enumerate(outs):
            self._check_unread(node, out)
            if any(out is o for o in over):
                continue
            if any(share(out, a) for a in (*args, *outs[:i])):
                raise ExecutionError(
                    f"the plan writes {node.name} ({node.where}) over what it reads"
                )
            _poison(out)
        made = _called(step, args, outs, over)
        if not step.writes:
            outs = list(made) if len(node.outputs) > 1 else [made]
            _check_memory(step, args, outs)
            for slot, out in zip(step.outputs, outs, strict=True):
                values[slot] = out
        for t, out in zip(node.outputs, outs, strict=True):
            check_promise(node, t.index, out)
            check_lengths(t, out.shape, self.lengths)
        self.live.update((slot, (at, last)) for slot, last in self.last_reads[at].items())
        for slot in step.frees:
            values[slot] = None
        for slot in step.dead:
            _poison(values[slot])

    def _check_unread(self, node: Node, out: Array) -> None:
        """No later step reads what is in the memory of an output now."""
        steps = self.plan.steps
        for slot, (maker, last) in self.live.items():
            if share(out, self.values[slot]):
                reader = (
                    f"{steps[last].node.name} reads" if last < len(steps) else "the caller gets"
                )
                raise ExecutionError(
                    f"the plan writes {node.name} ({node.where}) over memory of "
                    f"{steps[maker].node.name}, which {reader} later"
                )


def _called(step: Step, args: Sequence[Any], outs: Sequence[Array], over: Sequence[Array]) -> Any:
    """What the kernel returns. over: outputs that are written over an argument."""
    node = step.node
    before = [_bytes(a) for a in args]
    try:
        made = step.kernel(*args, *outs)
    except Exception as error:
        add_note(error, node, args)
        raise
    for a, old in zip(args, before, strict=True):
        if _bytes(a) != old and not any(share(a, out) for out in over):
            raise ExecutionError(f"{node.name} ({node.op!r}, {node.where}) wrote into its inputs")
    return made


def _check_memory(step: Step, args: Sequence[Any], results: Sequence[Any]) -> None:
    """What a kernel returned looks into no memory but where the plan takes it for a view."""
    node = step.node
    what = f"{node.name} ({node.op!r}, {node.where})"
    for a in args[1:] if step.looks else args:
        if any(share(a, r) for r in results):
            why = (
                ", which the plan takes for copied"
                if node.op.memory.view
                else " without saying so: set `view = True`"
            )
            raise ExecutionError(f"{what} returned memory of an input ({shown(a)}){why}")
    if not step.looks and any(share(a, b) for a, b in combinations(results, 2)):
        raise ExecutionError(f"{what} returned two results that share memory")


def _poison(array: Array) -> None:
    if is_inexact(array.dtype):
        array.fill(np.nan)
    else:
        array.reshape(-1).view(np.uint8).fill(POISON)


def _bytes(a: Any) -> bytes:
    return np.asarray(a).tobytes()
