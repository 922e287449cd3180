"""Which ops that add at indices run as LLVM code, and how the work is shared out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.node import Node
from ....ir.strided import contiguous
from ....lower.gathers import Indexed, first_index, gathering, has_indices
from ....ops.reduce.sorting import ScatterElements
from ....ops.shape.indexing import AddAt, ScatterAdd
from ...kernels import Kernel
from ...run.threads import parallel, ranges
from ..emit.call import possible
from ..loops.ranges import check_index
from . import library
from .scatter_add import Layout

SCATTERS = frozenset([AddAt, ScatterAdd, ScatterElements])
DTYPES = ("float32", "float64", "int32", "int64")
SHARED = 1 << 18  # additions from which on several threads take part
LINE = 64  # bytes; what different threads write is in different lines

Part = tuple[int, int, int, int]
"""From which b on and up to which, and the same of a: see `Adding`."""


def scatter_writer(node: Node, threads: int) -> Kernel | None:
    """What writes the result of the node, None where that is left to NumPy."""
    op, out = node.op, node.outputs[0]
    if type(op) not in SCATTERS or out.dtype.name not in DTYPES or not possible():
        return None
    if any(0 in t.shape for t in (*node.inputs, out)) or not has_indices(op):
        return None
    first = first_index(op)
    shape: Any = out.shape
    offset, indexed, kept = gathering(op, contiguous(shape))
    before, after = _one_axis(kept[:first]), _one_axis(kept[first:])
    if before is None or after is None:
        return None
    updates: Any = node.inputs[1 if type(op) is AddAt else 2].shape
    count = math.prod(updates) // (before[0] * after[0])
    each = (count * after[0], after[0], 1) if type(op) is ScatterElements else (0, 1, 0)
    _, length, at = indexed[0] if len(indexed) == 1 else (0, math.prod(shape), 1)
    layout = Layout(count, after[0], length, offset, before[1], at, after[1], *each)
    work = math.prod(updates)
    unit = LINE // out.dtype.itemsize
    parts = _parts(before[0], after[0], unit, threads if work >= SHARED else 1)
    rows = after[1] == 1 and not each[2]
    return _writer(type(op) is AddAt, indexed, library.adding(out.dtype, rows), layout, parts)


def _writer(
    updates_first: bool, indexed: list[Indexed], run: Kernel, layout: Layout[int], parts: list[Part]
) -> Kernel:
    words = np.array(layout, np.int64)

    def add(x: Any, *others: Any) -> None:
        *given, out = others
        u = np.ascontiguousarray(given.pop(0 if updates_first else -1))
        index = _one_index(given, indexed)
        np.copyto(out, x)

        def part(i: int) -> None:
            if run(out, index, u, words, *parts[i]) is index:
                check_index(index, *indexed[0][:2])
                raise IndexError("an index was out of bounds, and was changed meanwhile")

        parallel(part, len(parts), threads=len(parts))

    return add


def _one_axis(axes: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Axes, as (length, stride), that can be gone along as one; None where they cannot."""
    length, stride = 1, 1
    for d, s in reversed([axis for axis in axes if axis[0] != 1]):
        if length == 1:
            stride = s
        elif s != length * stride:
            return None
        length *= d
    return length, stride


def _parts(before: int, after: int, unit: int, threads: int) -> list[Part]:
    """The work for each thread: some of the columns, or some of what stands before the indices."""
    if threads > 1 and after >= unit * threads:
        return [(0, before, *columns) for columns in ranges(after, threads, unit)]
    return [(*rows, 0, after) for rows in ranges(before, threads)]


def _one_index(indices: Sequence[Any], indexed: Sequence[Indexed]) -> Any:
    """One array of indices: as it is, or several as places of the array in memory."""
    if len(indices) == 1:
        (index,) = indices
        if index.dtype == np.uint64:  # whose largest would become negative
            check_index(index, *indexed[0][:2])
        return np.ascontiguousarray(index, np.int64)
    total: Any = 0
    for index, (axis, length, stride) in zip(indices, indexed, strict=True):
        check_index(index, axis, length)
        total = total + np.where(index < 0, index + length, index).astype(np.int64) * stride
    return np.ascontiguousarray(total)
