"""Arrays with some elements changed, in any array namespace.

NumPy's arrays are written to; those that never change, such as JAX's, have `at` for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.kinds import is_floating

__all__ = [
    "extreme_at",
    "plus",
    "plus_along",
    "plus_at",
    "set_at",
    "times_at",
    "winners",
    "with_at",
]


def with_at(x: Any, key: Any, values: Any) -> Any:
    """x, which nobody else has seen, with values at the key."""
    if never_changes(x):
        return x.at[key].set(values)
    x[key] = values
    return x


def plus(x: Any, key: Any, values: Any) -> Any:
    """x, which nobody else has seen, with values added at a key that names nothing twice."""
    if never_changes(x):
        return x.at[key].add(values)
    x[key] += values
    return x


def plus_at(x: Any, key: Any, values: Any) -> Any:
    """A copy of x with values added at the key; what is named twice is added twice."""
    if never_changes(x):
        return x.at[key].add(values)
    y = x.copy()
    np.add.at(y, key, values)
    return y


def plus_along(x: Any, axis: int, indices: Any, values: Any) -> Any:
    """A copy of x with values added at the indices along an axis.

    By flat positions: np.add.at is several times faster on one axis than on rows.
    """
    if never_changes(x):
        return plus_at(x, (slice(None),) * axis + (indices,), values)
    indices, y, length = np.asarray(indices), x.copy(order="C"), x.shape[axis]
    if indices.size and not (-length <= indices.min() and indices.max() < length):
        raise IndexError(f"scatter_add: an index is out of bounds for length {length}")
    flat, values = _flat_places(x.shape, axis, np.ravel(indices)), np.ravel(values)
    if _counts_alike(y, values):
        return np.bincount(flat, values, y.size).astype(y.dtype, copy=False).reshape(y.shape)
    np.add.at(y.reshape(-1), flat, values)
    return y


def _flat_places(shape: Any, axis: int, indices: Any) -> Any:
    """Where the elements that indices along an axis name lie, counted in order."""
    places = indices.astype(np.int64, copy=False)
    if places.min(initial=0) < 0:
        places = np.where(places < 0, places + shape[axis], places)
    if len(shape) == 1:
        return places
    before = np.arange(int(np.prod(shape[:axis], dtype=int)))
    after = np.arange(int(np.prod(shape[axis + 1 :], dtype=int)))
    rows = before[:, None] * shape[axis] + places
    return (rows[:, :, None] * after.size + after).ravel()


def _counts_alike(y: Any, values: Any) -> bool:
    """Whether np.bincount, many times faster, makes the same sums: it adds float64 from 0.0 on.

    Not of float32, which is added in float32, nor of integers whose sums are not exact.
    """
    if y.dtype not in _COUNTED or values.size < y.size // 4 or np.any(y):
        return False
    if is_floating(y.dtype):
        return not np.signbit(y).any()
    low, high = values.min(initial=0), values.max(initial=0)
    return bool(max(-int(low), int(high)) * values.size < 2**53)


_COUNTED = (np.dtype("float64"), np.dtype("int64"))


def set_at(xp: Any, x: Any, key: Any, values: Any, twice: bool) -> Any:
    """A copy of x with values at the key.

    twice: whether the key may name something twice; then the last value counts.
    """
    if never_changes(x):
        if twice:
            _, last = winners(xp, x.shape, key)
            values = xp.reshape(values, -1)[last]
        return x.at[key].set(values)
    y = x.copy()
    y[_in_order(key)] = np.ascontiguousarray(values) if twice else values
    return y


def winners(xp: Any, shape: Any, key: Any) -> tuple[Any, Any]:
    """The number of each element of x[key], and that of the last one with the same place in x."""
    picked = xp.zeros(shape, dtype=bool)[key]
    numbers = xp.reshape(xp.arange(picked.size), picked.shape)
    owner = xp.zeros(shape, dtype=numbers.dtype)
    if never_changes(owner):
        return numbers, owner.at[key].max(numbers)[key]
    owner[_in_order(key)] = numbers
    return numbers, owner[key]


def _in_order(key: Any) -> Any:
    """The key with its arrays in row-major order: so NumPy goes through them in that order."""
    arrays = [i for i, item in enumerate(key) if isinstance(item, np.ndarray | np.integer)]
    together = np.broadcast_arrays(*[key[i] for i in arrays])
    items = list(key)
    for i, array in zip(arrays, together, strict=True):
        items[i] = np.ascontiguousarray(array) if array.ndim else array
    return tuple(items)


def times_at(x: Any, key: Any, values: Any) -> Any:
    """A copy of x multiplied by values at the key, once for each time that it is named."""
    if never_changes(x):
        return x.at[key].multiply(values)
    y = x.copy()
    np.multiply.at(y, key, values)
    return y


def extreme_at(which: str, x: Any, key: Any, values: Any) -> Any:
    """A copy of x with the "max" or "min" of it and the values at the key."""
    if never_changes(x):
        return getattr(x.at[key], which)(values)
    y = x.copy()
    (np.maximum if which == "max" else np.minimum).at(y, key, values)
    return y


def never_changes(x: Any) -> bool:
    return hasattr(x, "at")
