"""Convolutions with filters for single channels, taken apart.

Products of matrices would be of single columns. Taken apart, such a convolution is element-wise
nodes over views of the image, one for each tap, which share loops with their neighbours. Where a
channel has a few filters, it is first repeated for each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from typing import NamedTuple

from ...ir.types import lengths
from ..base import Any, Full, Tensor, TensorType, is_floating
from ..elementwise.arithmetic import ADD, MULTIPLY
from ..making import Making
from ..reduce.reductions import ReduceSum
from ..shape.joining import Stack
from ..shape.padding import Pad
from ..shape.reshaping import BroadcastTo, ExpandDims, Reshape
from ..shape.slicing import FULL, Slice
from .moving_windows import Extent, Window

TAPS = 49
"""Those of a filter, at most, for which a convolution is taken apart."""
MANY = 5
"""So many filters of a channel, and its products of matrices are worth it."""

Filters = tuple[int, ...]
"""The lengths of filters (height, width, in / groups, out)."""


def fits(image: TensorType, groups: int, filters: Filters) -> int:
    """How many filters each channel has, if the convolution can be taken apart; else 0.

    image: what the taps are views of, of known lengths.
    """
    high, wide, per_group, out = filters
    several, rest = divmod(out, groups)
    mine = groups > 1 == per_group and not rest and several < MANY
    few = 0 < high * wide <= TAPS and is_floating(image.dtype)
    return several if mine and few and image.static else 0


def repeated(make: Making, x: Tensor, at: int, count: int) -> Tensor:
    """An image with each channel `count` times side by side; at: the axis of the channels."""
    if count == 1:
        return x
    shape = lengths(x.type)
    apart = make(ExpandDims((at + 1,)), x)
    apart = make(BroadcastTo((*shape[: at + 1], count, *shape[at + 1 :])), apart)
    return make(Reshape((*shape[:at], shape[at] * count, *shape[at + 1 :])), apart)


def added(make: Making, x: Tensor, at: int, count: int) -> Tensor:
    """The adjoint of `repeated`."""
    if count == 1:
        return x
    shape = lengths(x.type)
    apart = make(Reshape((*shape[:at], shape[at] // count, count, *shape[at + 1 :])), x)
    return make(ReduceSum((at + 1,), False), apart)


def convolved(make: Making, x: Tensor, w: Tensor, at: int, window: Window) -> Tensor:
    """The sum over taps of the image, shifted, times theirs."""
    padded = _bordered(make, x, at, window.axes)
    return _weighted(make, _under(make, padded, at, window), _factors(make, w, at))


def gradient_of_image(
    make: Making, w: Tensor, dz: Tensor, at: int, window: Window, back: Window | None
) -> Tensor:
    """The sum over taps of dz, shifted back, times theirs; back: its window, if any."""
    if back is None:
        return _in_phases(make, w, dz, at, window)
    padded = _bordered(make, dz, at, back.axes)
    return _weighted(make, _under(make, padded, at, back), _factors(make, w, at)[::-1])


def gradient_of_filter(make: Making, x: Tensor, dz: Tensor, at: int, window: Window) -> Tensor:
    """For each tap the sum of dz times the image, shifted."""
    padded = _bordered(make, x, at, window.axes)
    axes = (0, 2, 3) if at == 1 else (0, 1, 2)
    taps = [
        make(ReduceSum(axes, False), make(MULTIPLY, part, dz))
        for part in _under(make, padded, at, window)
    ]
    return make(Reshape((*window.size, 1, lengths(dz.type)[at])), make(Stack(0), *taps))


def _bordered(make: Making, x: Tensor, at: int, axes: Sequence[Extent]) -> Tensor:
    """The image with borders of zeros."""
    pairs = [(e.low, e.high) for e in axes]
    if not any(map(sum, pairs)):
        return x
    spatial = [(0, 0), (0, 0), *pairs] if at == 1 else [(0, 0), *pairs, (0, 0)]
    return make(Pad(tuple(spatial)), x)


def _under(make: Making, x: Tensor, at: int, window: Window) -> list[Tensor]:
    """What of an image with borders stands under each tap."""
    return [
        _cut(make, x, at, [(c.start, c.stop, c.step) for c in cuts[1:]]) for cuts in window.cuts()
    ]


def _cut(make: Making, x: Tensor, at: int, spatial: Sequence[Any]) -> Tensor:
    before = (FULL,) * (2 if at == 1 else 1)
    return make(Slice((*before, *spatial)), x)


def _factors(make: Making, w: Tensor, at: int) -> list[Tensor]:
    """The filters of each tap, as what broadcasts with an image."""
    high, wide = lengths(w.type)[:2]
    rows = [make(Slice((i, j, 0)), w) for i in range(high) for j in range(wide)]
    return [make(ExpandDims((1, 2)), r) for r in rows] if at == 1 else rows


def _weighted(make: Making, images: Sequence[Tensor], factors: Sequence[Tensor]) -> Tensor:
    """The sum of images, each times its factors."""
    terms = [make(MULTIPLY, x, w) for x, w in zip(images, factors, strict=True)]
    return reduce(lambda a, b: make(ADD, a, b), terms)


# --- where the window takes steps -----------------------------------------------------------------


class _Steps(NamedTuple):
    """An axis of an image under a window that takes steps s, of entries d apart.

    Pixel p = s q + r of the image with its borders is seen by entry k from place q + (r - k d) / s,
    where that is an integer. It is not above q, so dz needs `before` zeros in front.
    """

    axis: Extent
    size: int
    stride: int
    dilation: int

    @property
    def steps(self) -> int:
        """The number of q."""
        steps: int = -(-(self.axis.low + self.axis.length) // self.stride)
        return steps

    @property
    def border(self) -> Extent:
        """What is put around dz."""
        before = (self.size - 1) * self.dilation // self.stride
        return Extent(self.axis.out, 0, before, max(self.steps - self.axis.out, 0))

    def taps(self, r: int) -> Iterator[tuple[int, Any]]:
        """The entries by which pixels of rest r are seen, and from where."""
        for k in range(self.size):
            places, rest = divmod(r - k * self.dilation, self.stride)
            if not rest:
                start = self.border.low + places
                yield k, (start, start + self.steps, None)


def _in_phases(make: Making, w: Tensor, dz: Tensor, at: int, window: Window) -> Tensor:
    """By the place that a pixel has in a step: each is reached from other entries of the window."""
    down, right = (
        _Steps(*each)
        for each in zip(window.axes, window.size, window.strides, window.dilation, strict=True)
    )
    padded = _bordered(make, dz, at, (down.border, right.border))
    factors, first = _factors(make, w, at), 2 if at == 1 else 1

    def phase(r: int, c: int) -> Tensor:
        pairs = list(product(down.taps(r), right.taps(c)))
        if not pairs:
            n, *_, last = shape = lengths(dz.type)
            spatial = (down.steps, right.steps)
            zeros = (n, shape[1], *spatial) if at == 1 else (n, *spatial, last)
            return make(Full(zeros, 0, dz.dtype))
        images = [_cut(make, padded, at, [rows, columns]) for (_, rows), (_, columns) in pairs]
        mine = [factors[k * right.size + m] for (k, _), (m, _) in pairs]
        return _weighted(make, images, mine)

    lines = [
        make(Stack(first + 2), *[phase(r, c) for c in range(right.stride)])
        for r in range(down.stride)
    ]
    whole = make(Stack(first + 1), *lines)
    shape = lengths(whole.type)
    grown = down.steps * down.stride, right.steps * right.stride
    whole = make(Reshape((*shape[:first], *grown, *shape[first + 4 :])), whole)
    inside = [(e.low, e.low + e.length, None) for e in window.axes]
    return _cut(make, whole, at, inside)
