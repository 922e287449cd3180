"""Convolutions by compiled code: what it is told of them, and how they are shared out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.types import DType
from ....ops.nn.moving_windows import ONE, Extent, Window
from ...run.threads import parallel, ranges, shared_out
from . import library
from .convolution import BORDERED, FIELDS, GATHERED, PIXELS, told_of
from .gemm import DEPTH

Writer = Callable[..., Any]
SHARED = 1 << 22  # multiplications from which on several threads take part
BLOCK = 240  # places at a time, at most: a multiple of the heights of tiles
TILE = 12  # places that a part is a multiple of
LINE = 64
FEW = 8  # channels, which make short rows
TOGETHER = 8  # blocks that are a chunk
THIN = 48  # rows of a filter's gradient, up to which threads share examples
SUMS = 8  # of examples, at most, that are added up at the end
NARROW, NEAR = 128, 1 << 19  # outputs, and bytes of filters, up to which images are read in rows
FILLED = 0.95  # of the time of tiles that is spent on outputs


class Convolved:
    """A convolution of images of one shape, with filters of another, by compiled code.

    x: (N, H, W, C)    w: (height, width, C / groups, out)    z: (N, H', W', out)
    crop: leave out rows and columns of the window that never see the image.
    """

    def __init__(
        self,
        dtype: DType,
        x: tuple[int, ...],
        window: Window,
        outputs: int,
        groups: int,
        crop: bool = False,
    ) -> None:
        self.dtype, self.groups = dtype, groups
        self.window, self.taps = _cropped(window) if crop else (window, (slice(None), slice(None)))
        self.shape = n, height, width, channels = x
        down, across = self.window.axes
        own = channels // groups
        beside = self.window.dilation[1] == 1
        self.depth = math.prod(self.window.size) * own
        self.places = n * down.out * across.out
        self.outputs = outputs // groups
        self.panels = -(-self.outputs // library.panel(dtype))
        block = _up(-(-self.places // -(-self.places // BLOCK)))
        plain = (self.window.size, self.window.strides) == (ONE, ONE)
        whole = plain and not any(e.low or e.out != e.length for e in self.window.axes)
        self.told = told_of(self.window) | {
            "own": own,
            "apart": n * height * width * own,
            "columns": 1 if beside else self.window.size[1],
            "run": own * (self.window.size[1] if beside else 1),
            "depth": self.depth,
            "outputs": self.outputs,
            "groups": groups,
            "block": block,
            "chunk": block * TOGETHER,
            "stretch": self.depth,
            "slice": DEPTH,
            "mode": PIXELS if whole else GATHERED,
            "high": down.out,
            "wide": across.out,
        }
        self._conv = self.told | (self._by_rows() if self._has_rows() else {})

    def _has_rows(self) -> bool:
        """Whether the outputs of a row fill tiles, and filters may be read again for each."""
        down, across = self.window.axes
        filled = across.out / sum(max(h, 4) for h in library.tiles(self.dtype, across.out))
        size = self.depth * self.outputs * self.dtype.itemsize
        some = self.outputs <= NARROW and size <= NEAR and min(down.low, across.low) >= 0
        return math.prod(self.window.size) > 1 and filled > FILLED and some

    def _by_rows(self) -> dict[str, int]:
        """What is told of a convolution in rows."""
        sizes = zip(
            self.window.axes,
            self.window.size,
            self.window.strides,
            self.window.dilation,
            strict=True,
        )
        high, wide = ((e.out - 1) * s + (k - 1) * d + 1 for e, k, s, d in sizes)
        run = self.told["run"]
        pieces = -(-run // DEPTH)
        return {
            "block": self.window.axes[1].out,
            "chunk": self.window.axes[0].out * self.window.axes[1].out,
            "stretch": run,
            "slice": -(-run // pieces),
            "mode": BORDERED,
            "high": high,
            "wide": wide,
        }

    @property
    def slices(self) -> tuple[int, int]:
        """How filters are packed."""
        return self._conv["stretch"], self._conv["slice"]

    @property
    def work(self) -> int:
        """Multiplications."""
        return int(self.places * self.depth * self.outputs * self.groups)

    def image(self, x: Any) -> Any:
        """An image as it is read: in order, its groups one after the other."""
        if self.groups == 1:
            return _in_order(x)
        apart = x.reshape(*x.shape[:3], self.groups, -1)
        return np.ascontiguousarray(apart.transpose(3, 0, 1, 2, 4))

    def packed(self, w: Any) -> Any:
        """The filters as `runner` takes them."""
        w = w[self.taps]
        if w.strides[2] < w.strides[3]:  # the entries of an output are near one another
            matrix = _in_blocks(w.transpose(3, 0, 1, 2), 0).reshape(-1, self.depth).T
        else:
            matrix = _in_blocks(w, 2).reshape(self.depth, -1)
        return _packed(self.dtype, matrix, self._conv)

    def few(self, threads: int) -> bool:
        """Whether the outputs are shared out among threads, since there are few places."""
        return self.shared(threads) and self.places < 2 * TILE * threads

    def shared(self, threads: int) -> bool:
        """Whether several threads take part."""
        return threads > 1 and self.work >= SHARED

    def runner(self, threads: int) -> Writer:
        """run(x, packed w, z, ...), of arrays in order: shared out by places, or by outputs if few.

        What stands for dots is as for conv, and only where places are shared out.
        """
        conv, fields = library.windows(self.dtype, "conv"), fields_of(self._conv)
        places, panels = self.places, self.panels
        if not self.shared(threads):
            return lambda x, w, z, *behind: conv(x, w, z, fields, 0, places, 0, panels, *behind)
        if self.few(threads):
            parts = [(0, places, *cut) for cut in ranges(panels, threads)]
        else:
            unit = self._conv["block"] if self._conv["mode"] == BORDERED else TILE
            most = min(4 * threads, places // max(unit, 2 * TILE))
            parts = [(*cut, 0, panels) for cut in ranges(places, most, unit)]

        def run(x: Any, w: Any, z: Any, *behind: Any) -> None:
            parallel(lambda i: conv(x, w, z, fields, *parts[i], *behind), len(parts), threads)

        return run

    def spread(self, threads: int) -> Writer | None:
        """run(dz, w, dx), of arrays in order: the image's gradient; None where others are better.

        With so few channels, filters would make too narrow a matrix.
        """
        told = self.told
        if told["own"] * self.groups > FEW or self.groups > 1 or told["columns"] > 1:
            return None
        if min(told["top"], told["left"]) < 0:
            return None
        rows = self._by_rows()
        told = told | {
            "high": max(rows["high"], told["top"] + told["height"]),
            "wide": max(rows["wide"], told["left"] + told["width"]),
        }
        turned = {"depth": self.outputs, "outputs": self.depth, "stretch": self.outputs}
        parts = threads if self.shared(threads) else 1
        each = ranges(self.shape[0], parts)
        run, fields = library.windows(self.dtype, "conv_spread"), fields_of(told)

        def gradient(dz: Any, w: Any, dx: Any) -> None:
            packed = _packed(self.dtype, w.reshape(self.depth, -1).T, told | turned)
            shared_out(lambda i, j: run(dz, packed, dx, fields, i, j), each, threads)

        return gradient

    def _even(self, pieces: int) -> int:
        """The length of at least so many equal pieces of a run, or of as many as there can be.

        0 where it has none, which does not depend on how many: how sums are cut depends on it.
        """
        run = self.told["run"]
        lengths = [d for d in range(TILE, DEPTH + 1) if run % d == 0]
        enough = [d for d in lengths if run >= pieces * d]
        if not enough:
            return min(lengths, default=0)
        return max(enough, key=lambda d: (d % TILE == 0, d))

    def filter_gradient(self, threads: int) -> Writer:
        """run(x, dz, dw), of arrays in order: shared out by rows of dw, or by examples."""
        examples = self.shape[0]
        if self.groups > 1 or self.depth > THIN or examples == 1 or self.work < SHARED:
            return self._by_rows_of_filters(threads)
        each = ranges(examples, SUMS)
        runs = {
            n: Convolved(
                self.dtype, (n, *self.shape[1:]), self.window, self.outputs, 1
            )._by_rows_of_filters(1)
            for n in {stop - start for start, stop in each}
        }

        def gradient(x: Any, dz: Any, dw: Any) -> None:
            sums = np.empty((len(each), *dw.shape), dw.dtype)

            def part(i: int) -> None:
                start, stop = each[i]
                runs[stop - start](x[start:stop], dz[start:stop], sums[i])

            parallel(part, len(each), threads)
            np.sum(sums, 0, out=dw)

        return gradient

    def _by_rows_of_filters(self, threads: int) -> Writer:
        run = library.windows(self.dtype, "conv_filter")
        shared = self.shared(threads)
        told, pieces = self.told, 2 * threads if shared else 1
        rows = self._conv["mode"] == BORDERED
        even = self._even(-(-pieces * self._conv["run"] // (self.depth * self.groups)))
        if rows and even:
            told = self._conv | {"slice": even}
        else:
            least = max(-(-self.depth // DEPTH), pieces if shared else 1)
            told = told | {"slice": min(_up(-(-self.depth // least)), DEPTH)}
        slices = self.groups * -(-self.depth // told["slice"])
        each = ranges(slices, threads if shared else 1)
        fields, places = fields_of(told), self.places
        several = places > told["chunk"]

        def gradient(x: Any, dz: Any, dw: Any) -> None:
            work = dw
            if several:
                dw.fill(0)
                work = np.zeros((2, *dw.shape), dw.dtype)
            shared_out(lambda i, j: run(x, dw, dz, fields, places, i, j, work), each, threads)

        return gradient


def fields_of(told: dict[str, int]) -> Any:
    """The numbers of `FIELDS` as an array."""
    return np.array([told[name] for name in FIELDS], np.int64)


def _packed(dtype: DType, matrix: Any, told: dict[str, int]) -> Any:
    """A matrix of filters for the functions, in memory of its own that starts a cache line."""
    size = told["groups"] * library.packed_bytes(dtype, told["depth"], told["outputs"])
    to = lines(size)
    library.windows(dtype, "conv_pack")(matrix, to, fields_of(told))
    return to


def lines(size: int) -> Any:
    """Memory that starts a cache line."""
    memory = np.empty(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size]


def _in_order(x: Any) -> Any:
    """x, or a copy in row-major order: channel by channel where they are few."""
    if x.flags.c_contiguous or x.shape[3] > FEW:
        return np.ascontiguousarray(x)
    made = np.empty(x.shape, x.dtype)
    for c in range(x.shape[3]):
        made[..., c] = x[..., c]
    return made


def _in_blocks(w: Any, axis: int) -> Any:
    """w, or a copy in row-major order, made some places of an axis at a time: what of each cache
    line the others need is still near.
    """
    if w.flags.c_contiguous:
        return w
    made, before = np.empty(w.shape, w.dtype), (slice(None),) * axis
    for at in range(0, w.shape[axis], LINE):
        here = (*before, slice(at, at + LINE))
        made[here] = w[here]
    return made


def _up(places: int) -> int:
    return -(-places // TILE) * TILE


def _cropped(window: Window) -> tuple[Window, tuple[slice, slice]]:
    """The window without rows and columns that never see the image, and which are left."""
    taps, axes = [], []
    for axis, e in enumerate(window.axes):
        seen = np.flatnonzero(window.seen(axis).any(0))
        first, stop = (int(seen[0]), int(seen[-1]) + 1) if seen.size else (0, 1)
        low = e.low - first * window.dilation[axis]
        taps.append(slice(first, stop))
        axes.append(Extent(e.length, e.out, low, e.high))
    size = (taps[0].stop - taps[0].start, taps[1].stop - taps[1].start)
    cropped = Window(size, window.strides, window.dilation, (axes[0], axes[1]))
    return cropped, (taps[0], taps[1])
