"""A slow loop that trusts no kernel: for debugging, and for tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.errors import ExecutionError
from ..ir.node import Node
from ..ir.op import Op
from ..ir.types import Array
from ..lower.schedule import Plan, viewed
from ..ops.control import Cond
from .backend import Compiled, Kernel
from .results import add_note, check_promise, shown

Lengths = dict[str, tuple[int, str]]


def checked_loop(plan: Plan, kernel_of: Callable[[Op], Kernel]) -> Compiled:
    """The plan as a loop in which every kernel must keep its promises.

    ExecutionError where a result is not of the type inferred, where a named length has two values,
    where a kernel writes into what it reads, or returns memory of its inputs without saying so
    (`view`).
    """
    program = plan.program
    constants = {slot: kernel_of(node.op)() for slot, node in plan.constants}

    def run(*arrays: Array) -> tuple[Array, ...]:
        values: dict[int, Any] = dict(enumerate(arrays)) | constants
        lengths: Lengths = {}
        for t, a in zip(program.inputs, arrays, strict=True):
            _check_lengths(t.name, t.type.shape, a, lengths)
        for step in plan.steps:
            args = [values[slot] for slot in step.inputs]
            made = _run(step.node, kernel_of(step.node.op), args)
            for t, a in zip(step.node.outputs, made, strict=True):
                check_promise(t.node, t.index, a)
                _check_lengths(t.name, t.type.shape, a, lengths)
            values.update(zip(step.outputs, made, strict=True))
            for slot in step.frees:
                del values[slot]
        return tuple([values[slot] for slot in plan.outputs])

    return run


def _run(node: Node, kernel: Kernel, args: Sequence[Any]) -> Sequence[Any]:
    before = [_bytes(a) for a in args]
    try:
        made = kernel(*args)
    except Exception as error:
        add_note(error, node, args)
        raise
    if [_bytes(a) for a in args] != before:
        raise ExecutionError(f"{node.name} ({node.op!r}, {node.where}) wrote into what it reads")
    results = made if len(node.outputs) > 1 else (made,)
    may_share = node.inputs if type(node.op) is Cond else (viewed(node),)
    for t, a in zip(node.inputs, args, strict=True):
        if all(t is not v for v in may_share) and any(_share(a, r) for r in results):
            raise ExecutionError(
                f"{node.name} ({node.op!r}, {node.where}) returned memory of its input {t.name} "
                "without saying so: set `view = True`"
            )
    return results


def _bytes(a: Any) -> bytes:
    return np.asarray(a).tobytes()


def _share(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)


def _check_lengths(name: str, shape: Any, array: Any, lengths: Lengths) -> None:
    for d, n in zip(shape, array.shape, strict=True):
        if isinstance(d, str):
            length, first = lengths.setdefault(d, (n, name))
            if length != n:
                raise ExecutionError(
                    f"length {d!r} is {length} in {first} and {n} in {name} ({shown(array)})"
                )
