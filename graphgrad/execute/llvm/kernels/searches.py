"""Which searches run as LLVM code, and how they are shared out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.node import Node
from ....ops.arrays.searching import SearchSorted
from ...kernels import Kernel
from ...run.threads import ranges, shared_out
from ..emit.call import possible
from . import library

DTYPES = ("float32", "float64", "int32", "int64")
SHARED = 1 << 16  # values from which on several threads take part


def search_writer(node: Node, threads: int) -> Kernel | None:
    """What writes the places of a SearchSorted, None where that is left to NumPy."""
    op = node.op
    if not isinstance(op, SearchSorted) or not possible():
        return None
    if node.inputs[0].dtype.name not in DTYPES or any(0 in t.shape for t in node.inputs):
        return None
    run = library.searching(node.inputs[0].dtype, op.right)

    def search(x: Any, v: Any, out: Any) -> None:
        x, v = np.ascontiguousarray(x), np.ascontiguousarray(v)
        parts = 1 if v.size < SHARED else threads
        each = ranges(v.size, parts)
        shared_out(lambda start, stop: run(x, v, out, start, stop), each, threads)

    return search
