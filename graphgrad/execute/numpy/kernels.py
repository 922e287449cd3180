"""What NumPy does better than the general kernels: the same result with less overhead."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import numpy as np

from ...ir.node import Node
from ...lower.loop_ir import Fused
from ...ops.base import Cast, Full
from ...ops.reduce.reductions import ReduceSum
from ...ops.shape.reshaping import ExpandDims, Reshape, Squeeze, Transpose
from ..kernels import Kernel, Kernels, Pairs
from . import moves, products, softmax, windows
from .groups import written

KERNELS = Kernels(np)
_add_reduce: Any = np.add.reduce


@KERNELS.override(Reshape)
def _reshape(op: Reshape) -> Kernel | None:
    return methodcaller("reshape", op.shape) if all(type(d) is int for d in op.shape) else None


@KERNELS.override(ExpandDims)
def _expand_dims(op: ExpandDims) -> Kernel:
    index: list[Any] = []
    for axis in sorted(op.axes):
        index += [slice(None)] * (axis - len(index)) + [None]
    key = (*index, ...)
    return lambda x: x[key]


@KERNELS.override(Squeeze)
def _squeeze(op: Squeeze) -> Kernel:
    return methodcaller("squeeze", op.axes)


@KERNELS.override(ReduceSum)
def _reduce_sum(op: ReduceSum) -> Kernel:
    axes, keepdims = op.axes, op.keepdims
    return lambda x: _add_reduce(x, axes, x.dtype, None, keepdims)


@KERNELS.override(Transpose)
def _transpose(op: Transpose) -> Kernel:
    return methodcaller("transpose", op.axes)


@KERNELS.override(Cast)
def _cast(op: Cast) -> Kernel:
    return methodcaller("astype", op.dtype)


@KERNELS.override(Full)
def _full(op: Full) -> Kernel:
    value = np.broadcast_to(np.full((), op.value, dtype=op.dtype), op.shape)
    return lambda: value


# --- writers ---------------------------------------------------------------------------------


def element_writer(node: Node, threads: int) -> Kernel | None:
    """What writes the results of what is element by element, reduces, or was fused of these."""
    writer = written(node)
    return None if writer is None else writer.on(threads)


def _element_overwrites(node: Node) -> Pairs:
    writer = written(node)
    return () if writer is None else writer.overwrites


KERNELS.writes(Fused, _element_overwrites)(element_writer)
for _module in (moves, products, windows):
    for _op_type, _make in _module.WRITERS.items():
        KERNELS.writes(_op_type)(_make)
for _op_type, _make in softmax.WRITERS.items():
    KERNELS.writes(_op_type, lambda node: ((0, 0),))(_make)
