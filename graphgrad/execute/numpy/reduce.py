"""Reductions that write into a given array, faster and more exact than one call of NumPy where the
first axes go and little is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.types import DType
from ..kernels import PartialKernel

Reduce = Callable[[Any, Any], object]
WIDTH = 1024  # elements in a row of which NumPy adds up many at full speed


def reducer(ufunc: np.ufunc, axes: tuple[int, ...], shape: tuple[int, ...], dtype: DType) -> Reduce:
    """A function (x, out) that reduces x over axes into out, which has the other axes.

    shape: that of x; its first length may be less when called. Where the first axes go, NumPy adds
    up one row after the other, which is slow for short rows, and every sum is one long chain. So
    rows are added WIDTH elements at a time, and the sums of these at the end.
    """
    reduce: Any = ufunc.reduce
    width = math.prod(shape[len(axes) :])
    if axes != tuple(range(len(axes))) or not 1 < width <= WIDTH // 2:
        return PartialKernel(reduce, axes, dtype)
    together = WIDTH // width

    def folded(x: Any, out: Any) -> None:
        rows = x.size // width
        if rows < 4 * together or not x.flags.c_contiguous:
            reduce(x, axes, dtype, out)
            return
        x = x.reshape(rows, width)
        even = rows // together * together
        sums = reduce(x[:even].reshape(-1, together * width), 0, dtype).reshape(together, width)
        rest = x[even:]
        ufunc(sums[: len(rest)], rest, out=sums[: len(rest)])
        reduce(sums, 0, dtype, out.reshape(width))

    return folded


def means(reduce: Reduce, count: int, dtype: DType) -> Reduce:
    """The reduction divided by a count, which may be 0."""
    number = dtype.type(count)

    def run(x: Any, out: Any) -> None:
        reduce(x, out)
        np.divide(out, number, out)

    return run
