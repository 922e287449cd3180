"""A slow loop that trusts no kernel and no plan: for debugging, and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.errors import ExecutionError
from ..ir.kinds import is_inexact
from ..ir.node import Node
from ..ir.types import Array
from ..lower.alias import is_view
from ..lower.plan import Plan, Step
from .arena import fixed_arrays, part_of
from .backend import Compiled
from .results import Lengths, add_note, check_lengths, check_promise, shown, taken

POISON = 0xCB


def checked_loop(plan: Plan) -> Compiled:
    """The plan as a loop in which every kernel must keep its promises, on a new arena each time.

    ExecutionError where a result is not of the type inferred, where a named length has two values,
    where a kernel writes into what it reads and may not, or returns memory of its inputs without
    saying so (`view`). What is not needed any more is overwritten with rubbish (NaN in floats), so
    that a plan which gives a place away too early gives wrong results.
    """

    def run(*arrays: Array) -> tuple[Array, ...]:
        return _Checked(plan, arrays).run()

    return run


class _Checked:
    """One run."""

    def __init__(self, plan: Plan, arrays: Sequence[Array]) -> None:
        self.plan = plan
        self.values: list[Any] = [*arrays, *[None] * (plan.changing - len(arrays))]
        self.values += fixed_arrays(plan)
        self.lengths: Lengths = {}
        for t, a in zip(plan.program.inputs, arrays, strict=True):
            check_lengths(t, a.shape, self.lengths)

    def run(self) -> tuple[Array, ...]:
        """The outputs."""
        for step in self.plan.steps:
            self._step(step)
        return tuple(
            taken(t, r.copied)(self.values[r.slot])
            for r, t in zip(self.plan.results, self.plan.program.outputs, strict=True)
        )

    def _step(self, step: Step) -> None:
        node, values = step.node, self.values
        for slot, type in step.fresh:
            shape: Any = type.shape
            values[slot] = np.empty(shape, type.dtype)
        for slot, host, type in step.lodged:
            values[slot] = part_of(values[host], type)
        args = [values[slot] for slot in step.inputs]
        outs = [values[slot] for slot in step.outputs] if step.writes else []
        over = [values[slot] for slot in step.over]
        for out in outs:
            if any(out is o for o in over):
                continue
            if any(_share(out, a) for a in args):
                raise ExecutionError(
                    f"the plan writes {node.name} ({node.where}) over what it reads"
                )
            _poison(out)
        made = _called(step, args, outs, over)
        if not step.writes:
            outs = list(made) if len(node.outputs) > 1 else [made]
            _check_memory(node, args, outs)
            for slot, out in zip(step.outputs, outs, strict=True):
                values[slot] = out
        for t, out in zip(node.outputs, outs, strict=True):
            check_promise(node, t.index, out)
            check_lengths(t, out.shape, self.lengths)
        for slot in step.frees:
            values[slot] = None
        for slot in step.dead:
            _poison(values[slot])


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
        if _bytes(a) != old and not any(_share(a, out) for out in over):
            raise ExecutionError(
                f"{node.name} ({node.op!r}, {node.where}) wrote into what it reads"
            )
    return made


def _check_memory(node: Node, args: Sequence[Any], results: Sequence[Any]) -> None:
    seen = args[1:] if is_view(node) else args
    for a in seen:
        if any(_share(a, r) for r in results):
            raise ExecutionError(
                f"{node.name} ({node.op!r}, {node.where}) returned memory of an input "
                f"({shown(a)}) without saying so: set `view = True`"
            )


def _poison(array: Array) -> None:
    if is_inexact(array.dtype):
        array.fill(np.nan)
    else:
        array.reshape(-1).view(np.uint8).fill(POISON)


def _bytes(a: Any) -> bytes:
    return np.asarray(a).tobytes()


def _share(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)
