"""Loops over rows: one op, or built row by row where the caller of load asked for that."""

from __future__ import annotations

from collections.abc import Callable

from ....ir.errors import ShapeError
from ....ir.node import Tensor
from ....ops.control import scan
from ....ops.indexing import getitem
from ....ops.joining import stack
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
            f"it runs over {xs[0]!r}: to be unrolled it has to have a known number of rows, at "
            f"most {MOST_BUILT}"
        )
    states, made = start, []
    for i in reversed(range(count)) if reverse else range(count):
        states, rows = step(states, tuple([getitem(x, i) for x in xs]))
        made.append(rows)
    made = made[::-1] if reverse else made
    return states, tuple([stack(list(column)) for column in zip(*made, strict=True)])
