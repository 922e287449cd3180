"""Loops over rows in ONNX: its Scan, and what it makes of no rows, which runtimes do not know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.types import TensorType, tensor_type
from .onnx_places import FIRST

__all__ = ["along", "filled_beside", "greatest_so_far", "scanned"]


def scanned(
    to: Any,
    run: Callable[..., Any],
    carries: Sequence[Any],
    stacked: Sequence[Any],
    types: Sequence[TensorType],
    reverse: bool = False,
    axis: int = 0,
    empty: Sequence[Any] = (),
) -> tuple[Any, ...]:
    """What run(to, *carries, *rows) makes, (next carries, rows made), along an axis.

    types: of the last carries and of the stacked rows. Rows are written where others were read.
    empty: the rows where there are none; else their lengths that are not known are 0.
    """
    length = stacked[0].shape[axis]
    ends = len(carries)

    def nothing(to: Any) -> tuple[Any, ...]:
        return (*carries, *(empty or _no_rows(to, types[ends:])))

    if length == 0:
        return nothing(to)
    given = [("carry", t.dtype, t.shape) for t in types[:ends]]
    given += [("row", x.dtype, (*x.shape[:axis], *x.shape[axis + 1 :])) for x in stacked]

    def loop(to: Any) -> tuple[Any, ...]:
        """By rows and forwards, which is all that some runtimes know."""
        rows = [_turned(to, _moved(to, x, axis, 0), reverse) for x in stacked]
        moved = [tensor_type(_first(t.shape, axis), t.dtype) for t in types[ends:]]
        outputs = to.Scan(
            *carries,
            *rows,
            body=to.subgraph(run, *given),
            num_scan_inputs=len(rows),
            types=(*types[:ends], *moved),
        )
        made = outputs if isinstance(outputs, tuple) else (outputs,)
        back = [_moved(to, _turned(to, x, reverse), 0, axis) for x in made[ends:]]
        return (*made[:ends], *back)

    if isinstance(length, int):
        return loop(to)
    none = to.Equal(to.Squeeze(to.length(stacked[0], axis), [0]), 0)
    branches = {"then_branch": to.subgraph(nothing), "else_branch": to.subgraph(loop)}
    outputs = to.If(none, **branches, types=types)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _moved(to: Any, x: Any, start: int, end: int) -> Any:
    """x with an axis at another place."""
    if start == end:
        return x
    axes = [a for a in range(x.rank) if a != start]
    axes.insert(end, start)
    return to.Transpose(x, perm=axes, shape=tuple([x.shape[a] for a in axes]))


def _turned(to: Any, x: Any, reverse: bool) -> Any:
    """x with its last row first."""
    if not reverse:
        return x
    return to.Slice(x, [-1], [FIRST], [0], [-1], shape=x.shape)


def _first(shape: Any, axis: int) -> Any:
    """The shape with an axis in front."""
    return (shape[axis], *shape[:axis], *shape[axis + 1 :])


def _no_rows(to: Any, types: Sequence[TensorType]) -> list[Any]:
    known = [[d if isinstance(d, int) else 0 for d in t.shape[1:]] for t in types]
    return [to.value(np.zeros((0, *d), t.dtype)) for d, t in zip(known, types, strict=True)]


def along(
    to: Any, step: Callable[..., Any], first: Any, xs: Any, axis: int, reverse: bool = False
) -> Any:
    """The rows that step(to, carry, *rows) makes along an axis, as (next carry, row)."""
    types = (to.type_of(first), to.type_of(xs[0]))
    return scanned(to, step, (first,), xs, types, reverse, axis, xs[:1])[1]


def greatest_so_far(to: Any, operator: str, x: Any, axis: int) -> Any:
    """x joined along an axis by Max or Min."""

    def step(to: Any, so_far: Any, row: Any) -> Any:
        made = to(operator, so_far, row)
        return made, made

    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    start = to.Slice(x, [0], [1], [axis])
    first = to("ReduceMax" if operator == "Max" else "ReduceMin", start, [axis], keepdims=0)
    first.shape = shape
    return along(to, step, first, (x,), axis)


def filled_beside(to: Any, x: Any, axis: int, value: float) -> Any:
    """A number, in the shape of x without an axis."""
    lengths = [to.length(x, a) for a in range(x.rank) if a != axis]
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return to.ConstantOfShape(to.lengths(*lengths), value=np.full(1, value, x.dtype), shape=shape)
