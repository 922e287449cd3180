"""Whether indices of gathers are in range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ....ir.types import DType
from ....lower.gathers import Range
from ..emit.text import Text


def check(ranges: Sequence[Range], arrays: Sequence[Any]) -> None:
    """IndexError for indices that are out of range. arrays: inputs of a kernel, in any order."""
    for place, (shape, strides, offset), axis, length in ranges:
        flat = np.ascontiguousarray(arrays[place]).reshape(-1)[offset:]
        index = as_strided(flat, shape, [s * flat.itemsize for s in strides], writeable=False)
        check_index(index, axis, length)


def check_index(index: Any, axis: int, length: int) -> None:
    """IndexError, with NumPy's words, for an array of indices with one that is out of range."""
    least, most = index.min(), index.max()
    if least < -length or most >= length:
        wrong = most if most >= length else least
        raise IndexError(f"index {wrong} is out of bounds for axis {axis} with size {length}")


def write_check(
    t: Text, data: str, dtype: DType, range_: Range, unless: Callable[[str], None]
) -> None:
    """Loops over the indices in memory; unless(condition) goes elsewhere where it does not hold."""
    shape, strides, offset = range_.view.squeezed
    size, signed, length = dtype.itemsize, dtype.kind == "i", range_.length

    def along(axis: int, where: str) -> None:
        if axis < len(shape):
            step = strides[axis] * size
            t.loop(0, shape[axis], 1, lambda i: along(axis + 1, t.at(where, t.mul(i, step))))
            return
        index = t.load(f"i{8 * size}", where)
        if size < 8:
            index = t(f"{'sext' if signed else 'zext'} i{8 * size} {index} to i64")
        if signed:
            index = t.add(index, length)
        unless(t(f"icmp ult i64 {index}, {2 * length if signed else length}"))

    along(0, t.at(data, offset * size))
