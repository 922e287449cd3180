"""The largest elements under a window, and their gradient, on NumPy.

A few images at a time, so that what belongs to them stays in the cache. Images are (N, H, W, C)
with any strides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.types import DType
from ...ops.nn.moving_windows import Window
from ...ops.nn.pool2d import lowest
from ..run.threads import parallel
from .body import keep
from .scratch import Place, scratch

IMAGES = 1 << 19  # bytes of the images that are worked on at a time


def max_pool(window: Window, x: Any, y: Any, threads: int) -> None:
    """y = the largest element of x in every window."""
    padded = _Padded(window, x, lowest(x.dtype))
    first, *others = window.cuts()

    def task(i: int) -> None:
        with scratch([padded.scratch]) as (lines,):
            images, lines = padded.read(i, lines)
            largest = y[images]
            largest[...] = lines[first]
            for cut in others:
                np.maximum(largest, lines[cut], out=largest)

    parallel(task, padded.number, threads)


def max_pool_gradient(
    window: Window, dy: Any, x: Any, y: Any, dx: Any, threads: int, first: bool = True
) -> None:
    """dx = dy to the largest element of every window of x; y = max_pool of x.

    Of several to the first, or in equal shares to all.
    """
    padded = _Padded(window, x, lowest(x.dtype))
    cuts = list(window.cuts())
    moves = zip(window.strides, window.size, window.dilation, strict=True)
    apart = all(s > (k - 1) * d for s, k, d in moves)
    places = _for_gradient(padded, len(cuts), y.shape, dx.dtype, first)
    inside = (slice(None), *[slice(e.low, e.low + e.length) for e in window.axes])

    def task(i: int) -> None:
        with scratch(places) as (lines, hits, *others):
            images, lines = padded.read(i, lines)
            size = len(lines)
            hits = hits[:, :size]
            _find(window, lines, y[images], hits)
            share_out(images, hits, [a[:size] for a in others])

    def share_out(images: slice, hits: Any, others: list[Any]) -> None:
        count, share, mask, part, total = others
        if first:
            _keep_first(hits, count)
            share = dy[images]
        else:
            _divide(dy[images], hits, count, share)
        total = total if padded.differs else dx[images]
        total[...] = 0
        for hit, cut in zip(hits, cuts, strict=True):
            if apart:
                keep(hit, share, mask, total[cut])
            else:
                keep(hit, share, mask, part)
                np.add(total[cut], part, total[cut])
        if padded.differs:
            dx[images] = total[inside]

    parallel(task, padded.number, threads)


def _for_gradient(
    padded: _Padded, cuts: int, shape: tuple[int, ...], dtype: DType, first: bool
) -> list[Place]:
    """Scratch of a block: lines, hits, how many hits, shares, a mask, a part of dx, padded dx."""
    small = (padded.images, *shape[1:])
    return [
        padded.scratch,
        (np.dtype(bool), (cuts, *small)),
        (np.dtype(bool if first else np.int8 if cuts < 128 else np.int32), small),
        (dtype, (0,) if first else small),
        (np.dtype(f"i{dtype.itemsize}"), small),
        (dtype, small),
        (dtype, padded.shape if padded.differs else (0,)),
    ]


def _divide(dy: Any, hits: Any, count: Any, share: Any) -> None:
    """share = dy / the number of hits, which count is for."""
    count[...] = 0
    for hit in hits:
        np.add(count, hit.view(np.int8), count)
    share[...] = count
    np.divide(dy, share, share)


def _find(window: Window, lines: Any, y: Any, hits: Any) -> None:
    """hits = for each place in the window whether it is the largest; NaN is, a border is not."""
    plain = not (np.isnan(y).any() or np.isneginf(y).any())
    for hit, cut, inside in zip(hits, window.cuts(), window.inside(), strict=True):
        np.equal(lines[cut], y, hit)
        if not plain:
            np.logical_or(hit, np.isnan(lines[cut]), hit)
            np.logical_and(hit, inside, hit)


def _keep_first(hits: Any, taken: Any) -> None:
    """hits = the first of them, at each place of the output."""
    taken[...] = hits[0]
    for hit in hits[1:]:
        np.greater(hit, taken, hit)
        np.logical_or(taken, hit, taken)


class _Padded:
    """Images with their borders, a few at a time.

    shape   of so many images with borders
    number  of times that there are so many
    differs whether there are borders
    scratch what `read` works in
    """

    def __init__(self, window: Window, x: Any, border: Any) -> None:
        self._axes, self._x, self._border = window.axes, x, border
        n, _, _, c = x.shape
        lengths = [e.low + e.length + e.high for e in window.axes]
        size = math.prod(lengths) * c * x.itemsize
        self.images = max(min(IMAGES // max(size, 1), n), 1)
        self.shape = (self.images, *lengths, c)
        self.number = -(-n // self.images)
        self.differs = lengths != [*x.shape[1:3]]
        self.scratch: Place = x.dtype, self.shape if self.differs else (0,)

    def read(self, i: int, lines: Any) -> tuple[slice, Any]:
        """Which images, and these with their borders."""
        images = slice(i * self.images, min((i + 1) * self.images, len(self._x)))
        if not self.differs:
            return images, self._x[images]
        lines = lines[: images.stop - images.start]
        lines[...] = self._border
        down, across = (slice(e.low, e.low + e.length) for e in self._axes)
        lines[:, down, across] = self._x[images]
        return images, lines
