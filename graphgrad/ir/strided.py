"""Strided views: where the elements of a view lie in the memory of what it looks at."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

Lengths = tuple[int, ...]


class Strided(NamedTuple):
    """Element i of the view is element offset + sum of i[k] * strides[k] of the memory."""

    shape: Lengths
    strides: Lengths
    offset: int

    @property
    def squeezed(self) -> Strided:
        """The same without axes of length 1."""
        kept = [i for i, d in enumerate(self.shape) if d != 1]
        return Strided(
            tuple([self.shape[i] for i in kept]),
            tuple([self.strides[i] for i in kept]),
            self.offset,
        )

    @property
    def whole(self) -> bool:
        """Whether it is all of the memory, in order."""
        shape, strides, offset = self.squeezed
        return offset == 0 and strides == row_major(shape)

    def reshaped(self, shape: Lengths) -> Strided | None:
        """The same elements in another shape; None where they would have to be copied.

        Only lengths of 1 come and go, or all lies in order.
        """
        if self.squeezed.shape == tuple([d for d in shape if d != 1]):
            left = iter(self.squeezed.strides)
            strides = tuple([0 if d == 1 else next(left) for d in shape])
            return Strided(shape, strides, self.offset)
        return contiguous(shape) if self.whole and 0 not in self.shape else None


@lru_cache(maxsize=1024)
def row_major(shape: Lengths) -> Lengths:
    """The strides of a C-contiguous array, in elements."""
    strides = []
    step = 1
    for d in reversed(shape):
        strides.append(step)
        step *= d
    return tuple(reversed(strides))


def contiguous(shape: Lengths) -> Strided:
    """A C-contiguous array looked at as it is."""
    return Strided(shape, row_major(shape), 0)
