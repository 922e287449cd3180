"""Operators on arrays that hold lengths known only at run time: those that move or compute them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from ...base.bounds import at_least, never_equal
from ...base.length import Length, as_length
from ...ir.types import Array
from .call import OperatorCall
from .lengths import RunLength

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
    if call.opset < 10:
        return None
    starts, ends = (call.known(i, "bounds").tolist() for i in (1, 2))
    axes = call.known(3, "axes").tolist() if call.given(3) else range(len(starts))
    steps = call.known(4, "steps").tolist() if call.given(4) else [1] * len(starts)
    key = [slice(None)] * x.ndim
    for axis, *bounds in zip(axes, starts, ends, steps, strict=True):
        key[axis] = slice(*bounds)
    part: Array = x[tuple(key)]
    return part


def _transpose(call: OperatorCall) -> Array:
    turned: Array = np.transpose(call.values[0], call.attribute("perm"))
    return turned


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


def _add(call: OperatorCall) -> Any:
    x, y = call.values
    return x + y


def _sub(call: OperatorCall) -> Any:
    x, y = call.values
    return x - y


def _div(call: OperatorCall) -> Any:
    """Of what is never below 0, which ONNX rounds as a length."""
    x, y = call.values
    natural = all(_is_natural(d, 0) for d in x.flat) and all(_is_natural(d, 1) for d in y.flat)
    return x // y if natural else None


def _mod(call: OperatorCall) -> Any:
    call.attribute("fmod", 0)
    x, y = call.values
    natural = all(_is_natural(d, 0) for d in x.flat) and all(_is_natural(d, 1) for d in y.flat)
    return x % y if natural else None


def _is_natural(d: Any, least: int) -> bool:
    return isinstance(d, RunLength) or at_least(as_length(d), least)


def _max(call: OperatorCall) -> Any:
    return reduce(np.vectorize(partial(_extreme, Length.max), otypes=[object]), call.values)


def _min(call: OperatorCall) -> Any:
    return reduce(np.vectorize(partial(_extreme, Length.min), otypes=[object]), call.values)


def _extreme(of: Callable[..., Any], a: Any, b: Any) -> Any:
    """Of lengths that depend on data and are the same, that; of others only a run knows it."""
    if isinstance(a, RunLength) and a == b:
        return a
    return of(a, b)  # TypeError for others


def _prod(call: OperatorCall) -> Any:
    if call.attribute("keepdims", 1) not in (0, 1) or call.values[0].ndim != 1:
        return None
    call.axes(1)
    total = np.prod(call.values[0])
    return [total] if call.attribute("keepdims", 1) else total


def _equal(call: OperatorCall) -> Array | None:
    """Where that is certain: a length is not a number that stands for something else, such as
    -1."""
    x, y = np.broadcast_arrays(*call.values)
    same = [_same(a, b) for a, b in zip(x.reshape(-1), y.reshape(-1), strict=True)]
    return None if None in same else np.array(same, bool).reshape(x.shape)


def _same(a: Any, b: Any) -> bool | None:
    """Whether two are equal; None where only a run knows it."""
    if a == b:
        return True
    if isinstance(b, RunLength):
        a, b = b, a
    if isinstance(a, RunLength):
        return False if isinstance(b, int | np.integer) and b < 0 else None
    return False if never_equal(as_length(a), as_length(b)) else None


def _where(call: OperatorCall) -> Any:
    return np.where(*(v if i else v.astype(bool) for i, v in enumerate(call.values)))


def _array(made: Any) -> Array:
    """An array of objects, also without axes; int64 where it holds numbers alone."""
    array: Array = made
    if not isinstance(made, np.ndarray):
        listed = isinstance(made, list)
        array = np.empty((1,) if listed else (), object)
        array[(0,) if listed else ()] = made[0] if listed else made
    if array.dtype == object and all(isinstance(d, int) for d in array.reshape(-1).tolist()):
        array = array.astype(np.int64)
    return array


_MOVES: dict[str, Callable[[OperatorCall], Any]] = {
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Gather": _gather,
    "Concat": _concat,
    "Slice": _slice,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Cast": _cast,
    "Identity": _identity,
    "Add": _add,
    "Sub": _sub,
    "Mul": _mul,
    "Div": _div,
    "Mod": _mod,
    "Max": _max,
    "Min": _min,
    "ReduceProd": _prod,
    "Equal": _equal,
    "Where": _where,
}
