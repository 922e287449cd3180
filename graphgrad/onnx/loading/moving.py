"""Operators on arrays that hold lengths known only when run: those that move or multiply them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.types import Array
from .call import OperatorCall

__all__ = ["moved"]


def moved(call: OperatorCall) -> list[Any] | None:
    """What an operator makes of arrays with lengths; None where it needs their numbers."""
    fn = _MOVES.get(call.type)
    if fn is None:
        return None
    try:
        lengths = fn(call)
    except TypeError:  # an operation that lengths do not have
        return None
    return None if lengths is None else [_array(lengths)]


def _axes(call: OperatorCall) -> tuple[int, ...]:
    return tuple(call.axes(1) or ())


def _unsqueeze(call: OperatorCall) -> Array:
    return np.expand_dims(call.values[0], _axes(call))


def _squeeze(call: OperatorCall) -> Array:
    squeezed: Array = np.squeeze(call.values[0], _axes(call) or None)
    return squeezed


def _gather(call: OperatorCall) -> Any:
    return np.take(call.values[0], call.known(1, "indices"), call.attribute("axis", 0))


def _concat(call: OperatorCall) -> Array:
    return np.concatenate([v.astype(object) for v in call.values], call.needed("axis"))


def _slice(call: OperatorCall) -> Array | None:
    x = call.values[0]
    if call.opset < 10 or x.ndim != 1:
        return None
    start, end = (int(call.known(i, "bounds")[0]) for i in (1, 2))
    step = int(call.known(4, "steps")[0]) if call.given(4) else 1
    part: Array = x[slice(start, end, step)]
    return part


def _reshape(call: OperatorCall) -> Array:
    call.attribute("allowzero")
    reshaped: Array = call.values[0].reshape(call.known(1, "shape"))
    return reshaped


def _cast(call: OperatorCall) -> Array | None:
    """Of lengths, only to another integer."""
    lengths: Array = call.values[0]
    return lengths if call.attribute("to") in (6, 7) else None


def _identity(call: OperatorCall) -> Array:
    lengths: Array = call.values[0]
    return lengths


def _mul(call: OperatorCall) -> Any:
    x, y = call.values
    return x * y


def _div(call: OperatorCall) -> Any:
    x, y = call.values
    return x // y


def _extreme(call: OperatorCall) -> Any:
    """Of lengths that are the same, that; of others only a run knows it."""
    rows = np.broadcast_arrays(*call.values)
    extreme = rows[0].copy()
    for row in rows[1:]:
        for at in np.ndindex(extreme.shape):
            if row[at] != extreme[at]:
                return None
    return extreme


def _prod(call: OperatorCall) -> Any:
    if call.attribute("keepdims", 1) not in (0, 1) or call.values[0].ndim != 1:
        return None
    call.axes(1)
    total = np.prod(call.values[0])
    return [total] if call.attribute("keepdims", 1) else total


def _equal(call: OperatorCall) -> Array:
    """A length is no number that stands for something else, such as -1."""
    x, y = np.broadcast_arrays(*call.values)
    same = [a == b for a, b in zip(x.reshape(-1), y.reshape(-1), strict=True)]
    return np.array(same, bool).reshape(x.shape)


def _where(call: OperatorCall) -> Any:
    return np.where(*(v if i else v.astype(bool) for i, v in enumerate(call.values)))


def _array(made: Any) -> Array:
    """An array of objects, also without axes; int64 where it holds numbers alone."""
    array: Array = made
    if not isinstance(made, np.ndarray):
        listed = isinstance(made, list)
        array = np.empty((1,) if listed else (), object)
        array[...] = made[0] if listed else made
    if array.dtype == object and all(isinstance(d, int) for d in array.reshape(-1).tolist()):
        array = array.astype(np.int64)
    return array


_MOVES: dict[str, Callable[[OperatorCall], Any]] = {
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Gather": _gather,
    "Concat": _concat,
    "Slice": _slice,
    "Reshape": _reshape,
    "Cast": _cast,
    "Identity": _identity,
    "Mul": _mul,
    "Div": _div,
    "Max": _extreme,
    "Min": _extreme,
    "ReduceProd": _prod,
    "Equal": _equal,
    "Where": _where,
}
