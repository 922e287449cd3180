"""Which random numbers are drawn by compiled code, and how the work is shared out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.node import Node
from ...ops.random.draws import RandomBits, RandomIntegers, RandomUniform
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
    if not possible():
        return None
    if type(op) is RandomIntegers:
        return _integers(op, _drawing("words", op.streams(0)[0], node, threads))
    name = NAMES.get((type(op), node.outputs[0].dtype.name))
    return None if name is None else _drawing(name, op.stream, node, threads)


def _integers(op: RandomIntegers, draw_words: Kernel) -> Kernel:
    """The words are drawn where the integers go, which NumPy makes of them block by block."""

    def draw(seed: Any, *others: Any) -> None:
        out = others[-1]
        here = out.itemsize == 8
        drawn = out.view(np.uint64) if here else np.empty(out.shape, np.uint64)
        draw_words(seed, drawn)
        count = out.size // max(seed.size, 1)
        made = op.of_words(drawn.reshape((*seed.shape, count)), seed, count)
        if not here:
            out[...] = made.reshape(out.shape)

    return draw


def _drawing(name: str, stream: int, node: Node, threads: int) -> Kernel:
    """What fills its last argument with what is made of the words of a stream."""
    rank = node.inputs[0].ndim
    shape: Any = node.outputs[0].shape
    rows, count = math.prod(shape[:rank]), math.prod(shape[rank:])
    blocks = -(-count // (LANES * KINDS[name].each))
    parts = threads if rows * count >= SHARED else 1
    by_row = rows >= parts
    cuts = [(rows if by_row else blocks) * i // parts for i in range(parts + 1)]
    fill = library.filling(name)

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
