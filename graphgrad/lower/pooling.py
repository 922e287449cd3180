"""Pooling as element-wise nodes over views of the image, one for each place in the window.

Only where the windows meet no border, and gradients only where they lie side by side: then an
image is (N, H / k, k, W / m, m, C), and the window's places are axes of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..ir.node import Tensor
from ..ir.types import Array, DType
from ..ops.arithmetic import ADD, DIVIDE, MAXIMUM
from ..ops.base import Cast, Constant
from ..ops.logic import EQUAL, LOGICAL_OR, NOT_EQUAL, WHERE
from ..ops.shaping import BroadcastTo, Reshape
from ..ops.slicing import FULL, Slice
from ..ops.windows import AvgPool, AvgPoolGrad, MaxPool, MaxPoolGrad, Pool, Window
from .making import Making

PLACES = 16  # in a window, at most


def largest(op: MaxPool, make: Making) -> Tensor | None:
    """The maximum of the places."""
    places = _places(op, make, make.inputs[0])
    return None if places is None else reduce(lambda a, b: make(MAXIMUM, a, b), places)


def average(op: AvgPool, make: Making) -> Tensor | None:
    """Their sum, divided by how many there are."""
    places = _places(op, make, make.inputs[0])
    if places is None:
        return None
    total = reduce(lambda a, b: make(ADD, a, b), places)
    return make(DIVIDE, total, make.number(len(places), total.dtype))


def largest_gradient(op: MaxPoolGrad, make: Making) -> Tensor | None:
    """dy to the first place that is the largest, or in shares to all that are."""
    dy, x, y = make.inputs
    places = _places(op, make, x)
    if places is None or not _side_by_side(op, x):
        return None
    hits = [_is_largest(make, p, y) for p in places]
    if op.ties == "share":
        counted = [make(Cast(dy.dtype), hit) for hit in hits]
        dy = make(DIVIDE, dy, reduce(lambda a, b: make(ADD, a, b), counted))
        apart, once = make(Reshape(_apart(op, x)), x), make(Reshape(_once(op, y)), y)
        here = _is_largest(make, apart, once)
    else:
        numbers = np.dtype(f"i{dy.dtype.itemsize}")
        first = make(Reshape(_once(op, y)), _first_of(make, hits, numbers))
        here = make(EQUAL, first, make(Constant(_numbered(op, numbers))))
    return _whole(make, make(WHERE, here, make(Reshape(_once(op, y)), dy), make.zero(dy)), x)


def _is_largest(make: Making, x: Tensor, y: Tensor) -> Tensor:
    """Where x is y, or NaN."""
    return make(LOGICAL_OR, make(EQUAL, x, y), make(NOT_EQUAL, x, x))


def _first_of(make: Making, hits: Sequence[Tensor], dtype: DType) -> Tensor:
    """The number of the first place that is one; the last, if none before it is."""
    found = make.number(len(hits) - 1, dtype)
    for i in range(len(hits) - 2, -1, -1):
        found = make(WHERE, hits[i], make.number(i, dtype), found)
    return found


def _numbered(op: Pool, dtype: DType) -> Array:
    """The numbers of the places, in the shape of a window of `_apart`."""
    (k, m), channels = op.window, () if op.data_format == "NCHW" else (1,)
    return np.arange(k * m, dtype=dtype).reshape(k, 1, m, *channels)


def average_gradient(op: AvgPoolGrad, make: Making) -> Tensor | None:
    """dy, divided by how many places there are, to each of these."""
    dy, made = make.inputs[0], make.node.outputs[0]
    if not _is_plain(op, made) or not _side_by_side(op, made):
        return None
    count = make.number(op.window[0] * op.window[1], dy.dtype)
    each = make(BroadcastTo(_apart(op, made)), make(Reshape(_once(op, dy)), dy))
    return _whole(make, make(DIVIDE, each, count), made)


def _places(op: Pool, make: Making, x: Tensor) -> list[Tensor] | None:
    """What stands at each place of every window; None where that is not worth it."""
    if not _is_plain(op, x):
        return None
    before = (FULL,) * _first(op)
    return [
        make(Slice((*before, *[(c.start, c.stop, c.step) for c in cuts[1:]])), x)
        for cuts in _window(op, x).cuts()
    ]


def _first(op: Pool) -> int:
    """The first of the two axes that the window moves over."""
    return 2 if op.data_format == "NCHW" else 1


def _is_plain(op: Pool, x: Tensor) -> bool:
    few = op.window[0] * op.window[1] <= PLACES
    return few and not any(e.low or e.high for e in _window(op, x).axes)


def _window(op: Pool, x: Tensor) -> Window:
    return op.moved(op.spatial(x.shape), op.window)


def _side_by_side(op: Pool, x: Tensor) -> bool:
    """Whether the windows cover the image, each pixel once."""
    lengths = op.spatial(x.shape)
    return op.strides == op.window and all(d % k == 0 for d, k in zip(lengths, op.window))


def _apart(op: Pool, x: Tensor) -> tuple[int, ...]:
    (h, w), (k, m) = op.spatial(x.shape), op.window
    return _around(op, x, (h // k, k, w // m, m))


def _once(op: Pool, y: Tensor) -> tuple[int, ...]:
    h, w = op.spatial(y.shape)
    return _around(op, y, (h, 1, w, 1))


def _around(op: Pool, t: Tensor, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an image with these in the place of height and width."""
    shape: Any = t.shape
    first = _first(op)
    return (*shape[:first], *axes, *shape[first + 2 :])


def _whole(make: Making, t: Tensor, like: Tensor) -> Tensor:
    shape: Any = like.shape
    return make(Reshape(shape), t)
