"""The order in which the ops of a run come: reads before writes, where nothing says otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappop, heappush

from .definition import DEFINITIONS
from .graph import Operation, Tensor

__all__ = ["needed_ops", "ordered"]


def needed_ops(
    fetches: Iterable[Tensor], targets: Iterable[Operation], feeds: Iterable[Tensor]
) -> list[Operation]:
    """The ops that fetches and targets need, beyond what is fed."""
    given = set(feeds)
    seen: set[Operation] = set()
    stack = [*(t.op for t in fetches if t not in given), *targets]
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.outputs and all(t in given for t in op.outputs):
            continue
        stack += [t.op for t in op._inputs if t not in given and t.op not in seen]
        stack += op.control_inputs
    return list(seen)


def _rank(op: Operation) -> int:
    """Pure ops, then Python, then what changes variables: a read sees what was there before."""
    definition = DEFINITIONS.get(op.type)
    if definition is None:
        return 0
    if definition.lower is None and definition.host is not None:
        return 1
    return 2 if definition.stateful else 0


def ordered(ops: list[Operation], feeds: Iterable[Tensor]) -> list[Operation]:
    """Ops in an order in which they can run. Raises ValueError where they wait for each other."""
    given = set(feeds)
    waiting: dict[Operation, int] = {}
    readers: dict[Operation, list[Operation]] = {}
    inside = set(ops)
    for op in ops:
        fed = bool(op.outputs) and all(t in given for t in op.outputs)
        before = {t.op for t in op._inputs if t not in given} | set(op.control_inputs)
        before = set() if fed else before & inside
        waiting[op] = len(before)
        for other in before:
            readers.setdefault(other, []).append(op)
    ready: list[tuple[int, int, Operation]] = []
    for op in ops:
        if not waiting[op]:
            heappush(ready, (_rank(op), op._id, op))
    found = []
    while ready:
        op = heappop(ready)[2]
        found.append(op)
        for reader in readers.get(op, ()):
            waiting[reader] -= 1
            if not waiting[reader]:
                heappush(ready, (_rank(reader), reader._id, reader))
    if len(found) != len(ops):
        stuck = sorted((op for op in ops if waiting[op]), key=lambda op: op._id)
        names = ", ".join(op.name for op in stuck[:5])
        raise ValueError(f"these ops wait for each other: {names}")
    return found
