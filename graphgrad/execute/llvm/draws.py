"""Which random numbers are drawn by compiled code, and how the work is shared out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.node import Node
from ...ops.random.draws import RandomBits, RandomUniform
from ..backend import Kernel
from ..threads import parallel
from . import library
from .call import possible
from .philox import KINDS, LANES

NAMES = {
    (RandomBits, "uint64"): "words",
    (RandomBits, "int64"): "words",
    (RandomBits, "uint32"): "halves",
    (RandomUniform, "float64"): "double",
    (RandomUniform, "float32"): "float",
}
SHARED = 1 << 16  # numbers from which on several threads take part


def draw_writer(node: Node, threads: int) -> Kernel | None:
    """What writes the result of the node, None where that is left to NumPy."""
    op: Any = node.op
    name = NAMES.get((type(op), node.outputs[0].dtype.name))
    if name is None or not possible():
        return None
    rank = node.inputs[0].ndim
    shape: Any = node.outputs[0].shape
    rows, count = math.prod(shape[:rank]), math.prod(shape[rank:])
    blocks = -(-count // (LANES * KINDS[name].each))
    parts = threads if rows * count >= SHARED else 1
    by_row = rows >= parts
    cuts = [(rows if by_row else blocks) * i // parts for i in range(parts + 1)]
    fill, stream = library.filling(name), op.stream

    def draw(seed: Any, *others: Any) -> None:
        seeds = np.ascontiguousarray(seed.astype(np.uint64)).reshape(-1)
        out = others[-1]

        def part(i: int) -> None:
            first, last = cuts[i], cuts[i + 1]
            if by_row:
                fill(out, seeds, stream, count, first, last, 0, blocks)
            else:
                fill(out, seeds, stream, count, 0, rows, first, last)

        parallel(part, parts, threads)

    return draw
