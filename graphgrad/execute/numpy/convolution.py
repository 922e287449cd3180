"""Convolutions on NumPy: patches of a few rows at a time, and one matrix product with them.

The patches of a tile of the output lie side by side in memory that stays in the cache; those of a
whole batch never exist. Images here are (N, H, W, C) with any strides; groups of channels make
stacks of matrices.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ...ops.nn.conv2d import turned
from ...ops.nn.moving_windows import Window
from ..run.threads import parallel
from .blas import ALONE, product, slice_rows
from .scratch import Place, scratch

PATCHES = 1 << 20  # bytes of the patches of a tile
FEW = 8  # channels of the image; a product with so thin a matrix is slow
ROWS = 16  # of the slices in which products are added up to a filter's gradient
LEAST = 64  # places that make such a product
PARTS = 8  # sums of a filter's gradient that are added up at the end


def convolve(window: Window, groups: int, x: Any, w: Any, z: Any, threads: int) -> None:
    """z = the convolution of the image x with the filters w (height, width, C / groups, out)."""
    if not (x.size and z.size):
        z[...] = 0
        return
    patches = _Patches(window, x, groups)
    matrix = _matrix(w, groups)
    row = z.dtype, (patches.places, w.shape[3])

    def task(i: int) -> None:
        with scratch([*patches.scratch, row]) as (columns, lines, made):
            tile, under = patches.read(i, columns, lines)
            out = tile.of(z)
            made = out if out.flags.c_contiguous else made[: out.size // w.shape[3]]
            product(under, matrix, _stack(made, groups))
            if made is not out:
                out[...] = made.reshape(out.shape)

    parallel(task, patches.number, threads if slice_rows(*matrix.shape[1:]) else 1)


def gradient_of_filter(window: Window, groups: int, x: Any, dz: Any, dw: Any, threads: int) -> None:
    """dw = the adjoint of convolve in w, applied to dz: the sum over places of patch * dz."""
    if not (x.size and dz.size):
        dw[...] = 0
        return
    columns = dz.shape[3] // groups
    patches = _Patches(window, x, groups)
    step = max(ALONE // (ROWS * columns), LEAST)  # places whose products are added up
    parts = min(PARTS, patches.number)
    each = -(-patches.number // parts)
    sums = np.zeros((parts, groups, patches.depth, columns), dw.dtype)
    one = dw.dtype, sums.shape[1:]
    row = dz.dtype, (patches.places, dz.shape[3])

    def task(part: int) -> None:
        with scratch([*patches.scratch, row, one]) as (columns, lines, rows, made):
            for i in range(part * each, min((part + 1) * each, patches.number)):
                tile, under = patches.read(i, columns, lines)
                given = tile.of(dz)
                if not given.flags.c_contiguous:
                    copy = rows[: given.size // dz.shape[3]]
                    copy.reshape(given.shape)[...] = given
                    given = copy
                stack = _stack(given, groups)
                for start in range(0, stack.shape[1], step):
                    some = slice(start, start + step)
                    product(under[:, some].mT, stack[:, some], made)
                    np.add(sums[part], made, sums[part])

    parallel(task, parts, threads if slice_rows(step, columns) else 1)
    total = np.add.reduce(sums, 0)
    dw.reshape(patches.depth, groups, -1)[...] = total.transpose(1, 0, 2)


def gradient_of_image(window: Window, groups: int, w: Any, dz: Any, dx: Any, threads: int) -> None:
    """dx = the adjoint of convolve in x, applied to dz.

    Infinite filters are spread: a border of zeros times them would be NaN.
    """
    if not (dz.size and dx.size):
        dx[...] = 0
        return
    back = turned(window)
    if back is None or dx.shape[3] < FEW * groups or not np.isfinite(w).all():
        _spread(window, groups, w, dz, dx, threads)
        return
    kh, kw, c, out = w.shape
    flipped = w[::-1, ::-1].reshape(kh, kw, c, groups, out // groups).transpose(0, 1, 4, 3, 2)
    convolve(back, groups, dz, flipped.reshape(kh, kw, out // groups, groups * c), dx, threads)


def _spread(window: Window, groups: int, w: Any, dz: Any, dx: Any, threads: int) -> None:
    """gradient_of_image, image by image: what each place of dz gives to each place of its window
    is added up there. Channels come first meanwhile, since few of them would make short rows.
    """
    n, high, wide, _ = dz.shape
    kh, kw, c, _ = w.shape
    padded = [e.low + e.length + e.high for e in window.axes]
    matrix = _matrix(w, groups).mT
    inside = [slice(e.low, e.low + e.length) for e in window.axes]
    total_place = dx.dtype, (groups, c, *padded)
    given_place = dx.dtype, (groups, kh * kw * c, high * wide)

    def task(i: int) -> None:
        with scratch([total_place, given_place]) as (total, given):
            total[...] = 0
            stack = _stack(np.ascontiguousarray(dz[i]).reshape(high * wide, -1), groups)
            product(stack, matrix, given.mT)
            pieces = given.reshape(groups, kh * kw, c, high, wide)
            for at, cut in enumerate(window.cuts()):
                part = total[(slice(None), *cut)]
                np.add(part, pieces[:, at], part)
            dx[i] = total[:, :, *inside].reshape(groups * c, *dx.shape[1:3]).transpose(1, 2, 0)

    parallel(task, n, threads if slice_rows(*matrix.shape[1:]) else 1)


def _matrix(w: Any, groups: int) -> Any:
    """Filters as (groups, height * width * C / groups, out / groups)."""
    return w.reshape(math.prod(w.shape[:3]), groups, -1).transpose(1, 0, 2)


def _stack(rows: Any, groups: int) -> Any:
    """(places, out), contiguous, as (groups, places, out / groups)."""
    return rows.reshape(-1, groups, rows.shape[-1] // groups).transpose(1, 0, 2)


# --- patches ---------------------------------------------------------------------------------


class _Tile(NamedTuple):
    """A part of the output: some images, and some of their rows."""

    images: slice
    rows: slice

    def of(self, array: Any) -> Any:
        """What an array (N, H, W, ...) has there."""
        return array[self.images, self.rows]


class _Patches:
    """What is under a window at each place of the output, tile by tile.

    depth   numbers in the patch of a group
    places  places of the output in a tile, at most
    number  of tiles
    scratch what `read` works in: patches, and the lines of an image with its borders
    """

    def __init__(self, window: Window, x: Any, groups: int) -> None:
        self._window, self._x, self._groups = window, x, groups
        high, wide = window.axes[0].out, window.axes[1].out
        self.depth = window.size[0] * window.size[1] * (x.shape[3] // groups)
        fitting = max(PATCHES // (self.depth * groups * x.itemsize), 1)
        pieces = -(-high // max(fitting // wide, 1))
        self._rows = -(-high // pieces)
        self._images = max(fitting // (high * wide), 1) if self._rows == high else 1
        self._images = min(self._images, len(x))
        self.places = self._images * self._rows * wide
        self._down = -(-high // self._rows)
        self.number = self._down * -(-len(x) // self._images)
        e = window.axes[1]
        self._padded = any(e.low or e.high for e in window.axes)
        lines = (self._images, self._reach(self._rows), e.low + e.length + e.high, x.shape[3])
        self.scratch: list[Place] = [
            (x.dtype, (groups * self.places * self.depth,)),
            (x.dtype, lines if self._padded else (0,)),
        ]
        self._seen = None if self._padded else self._under(x, high)

    def read(self, i: int, columns: Any, lines: Any) -> tuple[_Tile, Any]:
        """Tile i, and its patches as (groups, places, depth)."""
        image, row = divmod(i, self._down)
        start, first = image * self._images, row * self._rows
        tile = _Tile(
            slice(start, min(start + self._images, len(self._x))),
            slice(first, min(first + self._rows, self._window.axes[0].out)),
        )
        if self._seen is None:
            self._fill(lines, tile)
            seen = self._under(lines, self._rows)
            seen = seen[: tile.images.stop - start, : tile.rows.stop - first]
        else:
            seen = tile.of(self._seen)
        if seen.flags.c_contiguous and seen.shape[3:6] == (1, 1, 1):
            return tile, seen.reshape(1, -1, self.depth)
        n, r, v, kh, kw, g, c = seen.shape
        columns = columns[: seen.size].reshape(g, n, r, v, kh, kw, c)
        columns[...] = seen.transpose(5, 0, 1, 2, 3, 4, 6)
        return tile, columns.reshape(g, n * r * v, self.depth)

    def _reach(self, rows: int) -> int:
        """Lines of the image that are under the window for so many rows of the output."""
        window = self._window
        return (rows - 1) * window.strides[0] + (window.size[0] - 1) * window.dilation[0] + 1

    def _fill(self, lines: Any, tile: _Tile) -> None:
        """Copy the lines of the image that a tile needs, with the borders around it."""
        down, across = self._window.axes
        first = tile.rows.start * self._window.strides[0] - down.low
        end = first + self._reach(tile.rows.stop - tile.rows.start)
        low, high = min(max(first, 0), end), max(min(end, down.length), 0)
        lines = lines[: tile.images.stop - tile.images.start, : end - first]
        inside = slice(across.low, across.low + across.length)
        lines[:, : low - first] = 0
        lines[:, max(high, low) - first :] = 0
        lines[:, :, : across.low] = 0
        lines[:, :, across.low + across.length :] = 0
        if low < high:
            lines[:, low - first : high - first, inside] = self._x[tile.images, low:high]

    def _under(self, image: Any, rows: int) -> Any:
        """(N, rows, W', height, width, groups, C / groups): the image, seen through the window."""
        n, _, _, c = image.shape
        of_n, of_h, of_w, of_c = image.strides
        (sh, sw), (dh, dw), size = self._window.strides, self._window.dilation, self._window.size
        each = c // self._groups
        return as_strided(
            image,
            (n, rows, self._window.axes[1].out, *size, self._groups, each),
            (of_n, of_h * sh, of_w * sw, of_h * dh, of_w * dw, of_c * each, of_c),
            writeable=False,
        )
