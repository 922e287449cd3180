"""Cotangents and tangents that pick one element after another, or one column of all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ...base.errors import ShapeError
from ...ir.node import Tensor
from ...ops.base import constant
from ...ops.control import map as map_rows
from ...ops.create.creation import eye
from ...ops.shape.joining import stack
from ...ops.shape.reshaping import broadcast_to, reshape

__all__ = ["Seeds"]

UNROLLED = 16
"""Up to so many seeds have a derivative each; more of them, or an open number, are a loop."""


class Seeds:
    """The unit vectors of a tensor.

    like  the tensor
    rows  whether one picks the same element of every row of the first axis
    """

    def __init__(self, like: Tensor, rows: bool) -> None:
        self.like = like
        self.rows = rows
        self.lengths: Sequence[Any] = like.shape[1:] if rows else like.shape
        if any(d is None for d in self.lengths):
            raise ShapeError(
                f"{like.name}: {like.type!r} has a length that depends on data, so a derivative "
                "of each of its elements has no shape"
            )
        self.count: Any = prod(self.lengths)

    def stacked(self, f: Callable[[Tensor], list[Tensor]]) -> list[Tensor]:
        """f of every seed, a list of tensors, each stacked along a new first axis."""
        if isinstance(self.count, int) and 0 < self.count <= UNROLLED:
            unit = np.eye(self.count, dtype=self.like.dtype)
            made = [f(self._shaped(constant(row))) for row in unit]
            return [stack(column) for column in zip(*made, strict=True)]
        looped: list[Tensor] = map_rows(
            lambda row: f(self._shaped(row)), eye(self.count, dtype=self.like.dtype)
        )
        return looped

    def _shaped(self, row: Tensor) -> Tensor:
        """A unit vector in the shape of the tensor."""
        if not self.rows:
            return reshape(row, tuple(self.lengths))
        return broadcast_to(reshape(row, (1, *self.lengths)), self.like.shape)
