"""Where a key reads and writes, as places that ONNX's GatherND and ScatterND take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..base.length import Length

__all__ = ["AT", "BACKWARD", "placed_in_zeros", "places_of", "read_slices", "scattered"]

Key = tuple[Any, ...]
AT, FULL, BACKWARD = "at", (None, None, None), (None, None, -1)
"""In a key: an array of indices, a whole axis, an axis from its end."""


def places_of(to: Any, x: Any, key: Key, indices: Sequence[Any] = ()) -> Any:
    """The place in x of each element of x[key], but for axes at the end that are read as a whole.

    to writes ONNX; x and the arrays of indices are its values. Returns int64 of shape
    (..., number of axes before those).
    """
    key = _trimmed(key)
    parts = _Layout(to, x, key, list(indices)).parts()
    if not parts:
        return to.value([])
    if len(parts) == 1:
        return to.Unsqueeze(parts[0], [-1])
    lengths = to.Shape(reduce(to.Add, parts))
    return to.Concat(*[to.Unsqueeze(to.Expand(p, lengths), [-1]) for p in parts], axis=-1)


def scattered(
    to: Any, x: Any, key: Key, updates: Any, indices: Sequence[Any] = (), how: str = "none"
) -> Any:
    """x with updates at a key: put in ("none"), or joined by "add", "mul", "max" or "min"."""
    if x.rank == 0:
        updates = to.reshape(updates, shape=())
        return updates if how == "none" else to({"add": "Add", "mul": "Mul"}[how], x, updates)
    places = places_of(to, x, key, indices)
    return to.ScatterND(x, places, updates, reduction=how, shape=x.shape)


PADDED = frozenset(map(np.dtype, ("float32", "float64", "int32", "int64")))
"""What `Pad` of onnxruntime takes."""


def placed_in_zeros(
    to: Any, shape: Sequence[Any], length: Callable[[int], Any], key: Key, x: Any
) -> Any:
    """Zeros of a shape with x at a key, as x with borders; None for other keys than blocks.

    length(axis) makes an open length of the shape, as a vector of one element.
    """
    if x.dtype not in PADDED or None in key:
        return None
    before: list[Any] = [0] * len(shape)
    behind: list[Any] = [0] * len(shape)
    dropped = [axis for axis, item in enumerate(key) if isinstance(item, int)]
    y = to.Unsqueeze(x, dropped) if dropped else x
    for axis, item in enumerate(key):
        start, stop, step = (item, item + 1 or None, 1) if isinstance(item, int) else item
        if step not in (None, 1) or any(isinstance(bound, Length) for bound in (start, stop)):
            return None
        if (start, stop) == (None, None):
            continue
        borders = _borders(to, y, axis, (start, stop), shape[axis], length)
        if borders is None:
            return None
        before[axis], behind[axis] = borders
    return to.Pad(y, to.lengths(*before, *behind))


def _borders(
    to: Any, y: Any, axis: int, bounds: Any, n: Any, length: Callable[[int], Any]
) -> tuple[Any, Any] | None:
    """How many zeros stand before and behind a block along an axis of length n."""
    start, stop = bounds
    if isinstance(n, int):
        read = range(*slice(start, stop).indices(n))
        return read.start, n - read.start - len(read)
    left = to.Sub(length(axis), to.Shape(y, start=axis, end=axis + 1))
    if start is None or start >= 0:
        return start or 0, to.Sub(left, [start or 0])
    if stop is None:
        return left, 0
    return (to.Add(left, [stop]), -stop) if stop < 0 else None


def _trimmed(key: Key) -> Key:
    """Without what reads whole axes at the end."""
    while key and key[-1] == FULL:
        key = key[:-1]
    return key


class _Layout:
    """The axes of x[key] that parts of a key make, as NumPy lays them out."""

    def __init__(self, to: Any, x: Any, key: Key, indices: list[Any]) -> None:
        self.to = to
        self.x = x
        self.key = key
        self.indices = indices
        places = [i for i, item in enumerate(key) if self._is_array(item)]
        self.rank = max([i.rank for i in indices], default=0)
        together = bool(places) and places[-1] - places[0] + 1 == len(places)
        self.start = places[0] if together else 0
        self.first = places[0] if places else -1
        self.together = together

    def _is_array(self, item: Any) -> bool:
        return item == AT or (bool(self.indices) and isinstance(item, int))

    def parts(self) -> list[Any]:
        """The places along each axis of x, each with its axes where they stand in x[key]."""
        beside = [item for item in self.key if not self._is_array(item) and not _drops(item)]
        total = len(beside) + self.rank
        arrays = iter(self.indices)
        at = 0 if self.together or not self.indices else self.rank
        start = 0
        axis, places, seen = 0, [], False
        block = self._block()
        for item in self.key:
            if item is None:
                at += 1
                continue
            if self._is_array(item):
                if self.together and not seen:
                    at, seen = at + self.rank, True
                value = next(arrays) if item == AT else np.array(item)
                places.append(self._array(value, block, total))
            elif isinstance(item, int):
                places.append(self._array(np.array(item), start, total))
            else:
                places.append(self._range(axis, item, at, total))
                at += 1
            axis += 1
        return places

    def _block(self) -> int:
        """Where the axes of the arrays begin."""
        if not self.together:
            return 0
        before = self.key[: self.first]
        return sum(1 for item in before if not isinstance(item, int))

    def _array(self, value: Any, block: int, total: int) -> Any:
        if isinstance(value, np.ndarray):
            return self.to.value(value.reshape((1,) * total))
        lead = block + self.rank - value.rank
        axes = [*range(lead), *range(block + self.rank, total)]
        index = self.to.cast(value, "int64")
        return self.to.Unsqueeze(index, axes) if axes else index

    def _range(self, axis: int, item: Any, at: int, total: int) -> Any:
        """The places that a slice reads."""
        to, length = self.to, self.x.shape[axis]
        axes = [i for i in range(total) if i != at]
        if isinstance(length, int) and not any(isinstance(i, Length) for i in item):
            known = np.arange(length)[slice(*item)]
            return to.value(np.expand_dims(known, tuple(axes)))
        count = to.Squeeze(to.length(self.x, axis), [0])
        places = to.Range(np.int64(0), count, np.int64(1), shape=(None,))
        read = read_slices(to, places, (item,))
        return to.Unsqueeze(read, axes) if axes else read


def _drops(item: Any) -> bool:
    """Whether it takes an axis away."""
    return isinstance(item, int) and item is not None


def read_slices(to: Any, x: Any, key: Key) -> Any:
    """x[key], of a key of integers, slices and new axes."""
    axes: list[int] = []
    dropped: list[int] = []
    added: list[int] = []
    bounds: list[tuple[int, int, int]] = []
    axis = place = 0
    for item in key:
        if item is None:
            added.append(place)
            place += 1
            continue
        if isinstance(item, int):
            part = (item, item + 1 if item != -1 else LAST, 1)
            dropped.append(axis)
        else:
            part = _bounds(item)
            place += 1
        if item != FULL:
            axes.append(axis)
            bounds.append(part)
        axis += 1
    if axes:
        starts, ends, steps = zip(*bounds, strict=True)
        x = to.Slice(x, starts, ends, axes, steps)
    x = to.Squeeze(x, dropped) if dropped else x
    return to.Unsqueeze(x, added) if added else x


LAST = np.iinfo(np.int64).max
FIRST = np.iinfo(np.int64).min + 1


def _bounds(item: Any) -> tuple[int, int, int]:
    start, stop, step = item
    step = 1 if step is None else step
    first, last = (0, LAST) if step > 0 else (LAST, FIRST)
    return (first if start is None else start, last if stop is None else stop, step)
