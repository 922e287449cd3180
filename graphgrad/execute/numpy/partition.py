"""A shape in blocks of about equal size, and where in an array a block is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

Shape = tuple[int, ...]
Key = tuple[Any, ...]


class Block(NamedTuple):
    """One block: its place on the axes before the one that is cut, and what it has of that.

    piece: as a slice; nth: counted along the axis.
    """

    before: tuple[int, ...]
    nth: int
    piece: slice


class Blocks(NamedTuple):
    """A shape in pieces along one axis, each with all of the axes after it and one place on the
    axes before it. All are of one length along the axis, but for the last, which may be shorter.
    """

    shape: Shape
    axis: int
    length: int

    @property
    def along(self) -> int:
        """The number of pieces along the axis."""
        return -(-self.shape[self.axis] // self.length)

    @property
    def number(self) -> int:
        """The number of blocks."""
        return math.prod(self.shape[: self.axis]) * self.along

    def at(self, i: int) -> Block:
        """Block i."""
        outer, nth = divmod(i, self.along)
        before = []
        for d in reversed(self.shape[: self.axis]):
            outer, place = divmod(outer, d)
            before.append(place)
        start = nth * self.length
        end = min(start + self.length, self.shape[self.axis])
        return Block(tuple(reversed(before)), nth, slice(start, end))

    # --- of arrays that are broadcast to the shape -------------------------------------------

    def varies(self, shape: Shape) -> bool:
        """Whether an array of this shape differs from block to block."""
        return any(d != 1 for d in shape[: max(self._cut_axis(shape) + 1, 0)])

    def of(self, shape: Shape) -> Shape:
        """The shape that an array of this shape has in a block."""
        at = self._cut_axis(shape)
        if at < 0:
            return shape
        return (min(self.length, shape[at]), *shape[at + 1 :])

    def key(self, shape: Shape) -> Callable[[Block], Key]:
        """A function that says where a block is in an array of this shape, which varies."""
        at = self._cut_axis(shape)
        skip = self.axis - at
        if skip == 0 and shape[: at + 1] == self.shape[: at + 1]:
            return lambda block: (*block.before, block.piece)
        every = slice(None)

        def key(block: Block) -> Key:
            pairs = zip(block.before[skip:], shape, strict=False)
            outer = [i if d != 1 else 0 for i, d in pairs]
            return (*outer, block.piece if shape[at] != 1 else every)

        return key

    def _cut_axis(self, shape: Shape) -> int:
        """The axis of such an array that is cut; below 0 where it has not so many."""
        return len(shape) - len(self.shape) + self.axis

    # --- of what is left of each block by a reduction ----------------------------------------

    def results(self, axes: Sequence[int]) -> Shape:
        """The shape of the results of all blocks of a reduction over axes."""
        middle = self.along if self.axis in axes else self.shape[self.axis]
        rest = [d for a, d in enumerate(self.shape) if a > self.axis and a not in axes]
        return (*self.shape[: self.axis], middle, *rest)

    def result_key(self, axes: Sequence[int]) -> Callable[[Block], Key]:
        """A function that says where in these the result of a block is."""
        if self.axis in axes:
            return lambda block: (*block.before, block.nth, ...)
        return lambda block: (*block.before, block.piece)


@lru_cache(maxsize=4096)
def blocks_of(shape: Shape, limit: int) -> Blocks | None:
    """Blocks of at most `limit` elements; None for what is one block."""
    if math.prod(shape) <= limit:
        return None
    axis = next(a for a in range(len(shape)) if math.prod(shape[a + 1 :]) <= limit)
    inner = math.prod(shape[axis + 1 :])
    pieces = -(-shape[axis] // max(limit // inner, 1))
    length = -(-shape[axis] // pieces)
    if inner == 1:
        length -= length % 64 if length > 64 else 0  # so pieces start where lines of cache do
    return Blocks(shape, axis, length)
