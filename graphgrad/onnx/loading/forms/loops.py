"""Loops over rows: one op, or built row by row where the caller of load asked for that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....base.errors import ShapeError
from ....ir.node import Tensor
from ....ops.control import scan
from ....ops.shape.indexing import getitem
from ....ops.shape.joining import stack
from ..attributes import subgraphs_of
from ..call import OperatorCall

MOST_BUILT = 10_000

Rows = tuple[Tensor, ...]


def over_rows(
    call: OperatorCall,
    step: Callable[[Rows, Rows], tuple[Rows, Rows]],
    start: Rows,
    xs: Rows,
    reverse: bool = False,
) -> tuple[Rows, Rows]:
    """The last states and the stacked rows of states, rows = step(states, a row of each x)."""
    if not call.inside.unroll:
        return scan(step, start, xs, reverse=reverse)
    count = xs[0].shape[0]
    if not isinstance(count, int) or count > MOST_BUILT:
        raise ShapeError(
            f"it runs over {xs[0]!r}: to unroll it, its number of rows must be known, and at most "
            f"{MOST_BUILT}"
        )
    states, made = start, []
    for i in reversed(range(count)) if reverse else range(count):
        states, rows = step(states, tuple([getitem(x, i) for x in xs]))
        made.append(rows)
    made = made[::-1] if reverse else made
    return states, tuple([stack(list(column)) for column in zip(*made, strict=True)])


def trips(call: OperatorCall, body: Any) -> int | None:
    """How often a Loop runs, where all that its condition depends on is known while loading."""
    start = [said.name for said in body.input[2:]]
    after = [said.name for said in body.output[1 : 1 + len(start)]]
    nodes, names = _behind(body, dict(zip(start, after, strict=True)))
    state = {n: v for n, v in zip(start, call.values[2:], strict=True) if n in names}
    limit, test = call.values[0], call.values[1]
    told = [v for v in (limit, test, *state.values()) if v is not None]
    if any(subgraphs_of(n) for n in nodes) or not all(isinstance(v, np.ndarray) for v in told):
        return None
    most = MOST_BUILT if limit is None else min(MOST_BUILT, int(limit.reshape(())))
    goes_on, count = test is None or bool(test.reshape(())), 0
    changes = dict(zip(start, after, strict=True))
    while goes_on and count < most:
        given = {body.input[0].name: np.array(count, np.int64), body.input[1].name: np.array(True)}
        wanted = [body.output[0].name, *(changes[name] for name in state)]
        computed = call.inside.known_in(body, nodes, {**given, **state}, wanted)
        if computed is None:
            return None
        goes_on, count = bool(computed[0].reshape(())), count + 1
        state = dict(zip(state, computed[1:], strict=True))
    return None if goes_on and limit is None else count


def _behind(body: Any, after: dict[str, str]) -> tuple[list[Any], set[str]]:
    """The nodes of a body that its condition depends on, now or a run later, and their names."""
    names, nodes = {body.output[0].name}, 0
    while True:
        chosen = []
        for node in reversed(body.node):
            if names.intersection(node.output):
                chosen.append(node)
                names.update(node.input)
        names.update(after[name] for name in after if name in names)
        if len(chosen) == nodes:
            return chosen[::-1], names
        nodes = len(chosen)
