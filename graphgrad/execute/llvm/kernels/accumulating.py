"""Which cumulative ops run as LLVM code, and how they are shared out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir.node import Node
from ....ir.types import lengths
from ....ops.reduce.cumulative import CumProd, CumSum
from ....ops.reduce.running_extrema import CumMax, CumMin
from ...kernels import Kernel
from ...run.threads import ranges, shared_out
from ..emit.call import possible
from . import library

DTYPES = ("float32", "float64", "int32", "int64")
SHARED = 1 << 16  # elements from which on several threads take part
LINE = 64  # elements, of which no two threads write the same
_OPS = {  # for Accumulations, and what there is before the first
    CumSum: ("sum", 0),
    CumProd: ("product", 1),
    CumMax: ("largest", 0),
    CumMin: ("smallest", 0),
}


def accumulation_writer(node: Node, threads: int) -> Kernel | None:
    """What writes the result of a cumulative op, None where that is left to NumPy."""
    op: Any = node.op
    if type(op) not in _OPS or not possible() or node.outputs[0].dtype.name not in DTYPES:
        return None
    shape = lengths(node.outputs[0].type)
    name, neutral = _OPS[type(op)]
    before, after = math.prod(shape[: op.axis]), math.prod(shape[op.axis + 1 :])
    reverse, exclusive = (getattr(op, flag, False) for flag in ("reverse", "exclusive"))
    run = library.accumulating(node.outputs[0].dtype, name)["rows" if after == 1 else "columns"]
    many = before if after == 1 else after
    if not (size := math.prod(shape)):
        return None
    parts = threads if size >= SHARED and many >= threads * LINE else 1
    each = ranges(many, parts, LINE)

    def accumulate(x: Any, out: Any) -> None:
        x, y = (a.reshape(before, shape[op.axis], after) for a in (np.ascontiguousarray(x), out))
        if reverse:
            x, y = x[:, ::-1], y[:, ::-1]
        if exclusive:
            y[:, 1:], y[:, 0] = x[:, :-1], neutral
            x = y
        shared_out(lambda start, stop: run(x, y, start, stop), each, threads)

    return accumulate
