"""Convolutions by minimal filtering: which they are, and how they are shared out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir.types import DType
from ....ops.nn.moving_windows import ONE, Window
from ...run.threads import parallel, ranges
from . import library
from .convolved import SUMS, TILE, Convolved, Writer, fields_of, lines
from .winograd import PLANES, STEP, TAPS

TILES = 48  # at a time, about: their pixels and products stay in the second-level cache
CHANNELS = 16, 32  # at least, of the image and of what comes out; for the gradient of filters
CONSTANT, GIVEN = 8, 64  # tiles, at least, of filters that are packed once; or each time
SUMMED = 512  # tiles, of which the sums for a filter's gradient are kept apart


class ByWinograd(Convolved):
    """A convolution as it `suits`, of images (N, H, W, C) with filters (3, 3, C, out)."""

    def __init__(
        self, dtype: DType, x: tuple[int, ...], window: Window, outputs: int, groups: int
    ) -> None:
        super().__init__(dtype, x, window, outputs, groups)
        high, wide = (-(-e.out // STEP) for e in window.axes)
        self.rows = x[0] * high
        unit = TILE // math.gcd(TILE, wide)
        self.block = min(max(1, TILES // (unit * wide)) * unit, self.rows)
        self._fields = fields_of(self.told | {"high": high, "wide": wide, "block": self.block})
        self._columns = self.panels * library.panel(dtype)

    @staticmethod
    def suits(how: Convolved, constant: bool = False) -> bool:
        """Whether it is one: 3 x 3 in steps of 1, float32, with enough to do.

        constant: whether its filters are.
        """
        return _suits(how, CHANNELS[0]) and _tiles(how) >= (CONSTANT if constant else GIVEN)

    @staticmethod
    def suits_gradient(how: Convolved) -> bool:
        """Whether the gradient of its filters is."""
        return _suits(how, CHANNELS[1]) and _tiles(how) >= GIVEN

    @property
    def slices(self) -> tuple[int, int]:
        """How filters are packed: as those of no other."""
        return 0, TAPS

    def packed(self, w: Any) -> Any:
        """The filters as `runner` takes them."""
        entries = (PLANES + TAPS * TAPS) * self.told["own"] * self._columns
        to = lines(entries * self.dtype.itemsize)
        filters = library.windows(self.dtype, "winograd_filters")
        filters(np.ascontiguousarray(w), to, self._fields)
        return to

    def few(self, threads: int) -> bool:
        """Whether the outputs are shared out among threads, since there are few rows of tiles."""
        return self.shared(threads) and self.rows <= self.block

    def runner(self, threads: int) -> Writer:
        """run(x, packed w, z, ...), of arrays in order: shared out by rows of tiles, or outputs."""
        conv, fields, panels = library.windows(self.dtype, "winograd"), self._fields, self.panels
        if not self.shared(threads):
            return lambda x, w, z, *behind: conv(x, w, z, fields, 0, self.rows, 0, panels, *behind)
        if self.few(threads):
            parts = [(0, self.rows, *cut) for cut in ranges(panels, threads)]
        else:
            parts = [(*cut, 0, panels) for cut in ranges(self.rows, 4 * threads, self.block)]

        def run(x: Any, w: Any, z: Any, *behind: Any) -> None:
            parallel(lambda i: conv(x, w, z, fields, *parts[i], *behind), len(parts), threads)

        return run

    def filter_gradient(self, threads: int) -> Writer:
        """run(x, dz, dw), of arrays in order, shared out by rows of tiles.

        By the definition where it is not finite.
        """
        run, settle = (
            library.windows(self.dtype, f"winograd_{name}") for name in ("gradient", "settle")
        )
        direct = super().filter_gradient(threads)
        parts = ranges(self.rows, min(SUMS, _tiles(self) // SUMMED), self.block)
        shape = len(parts), PLANES, self.told["own"], self._columns

        def gradient(x: Any, dz: Any, dw: Any) -> None:
            sums = np.zeros(shape, self.dtype.name)
            parallel(lambda i: run(x, dz, sums[i], self._fields, *parts[i]), len(parts), threads)
            settle(sums, dw, self._fields, len(parts))
            if not np.isfinite(dw).all():
                direct(x, dz, dw)

        return gradient


def _suits(how: Convolved, channels: int) -> bool:
    window = how.window
    plain = window.size == (TAPS, TAPS) and (window.strides, window.dilation) == (ONE, ONE)
    enough = min(how.told["own"], how.outputs) >= channels
    return plain and enough and how.groups == 1 and how.dtype.char == "f"


def _tiles(how: Convolved) -> int:
    down, across = (-(-e.out // STEP) for e in how.window.axes)
    return int(how.shape[0] * down * across)
