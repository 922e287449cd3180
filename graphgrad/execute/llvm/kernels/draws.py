"""Which random numbers are drawn by compiled code, and how the work is shared out."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....ir.node import Node
from ....ops.random.draws import RandomBits, RandomIntegers, RandomUniform
from ...kernels import Kernel
from ...run.threads import ranges, shared_out
from ..emit.call import possible
from . import library
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
        return _integers(op, node, threads)
    name = NAMES.get((type(op), node.outputs[0].dtype.name))
    if name is None:
        return None
    draw = _drawing(name, op.stream, node, threads)
    return lambda seed, *others: draw(seed, others[-1])


def _integers(op: RandomIntegers, node: Node, threads: int) -> Kernel:
    """Integers of the first words; where one of these is refused, NumPy makes all of them."""
    span = op.high - op.low
    bounds = np.array([span - 1, op.low % 2**64, 2**64 % span], np.uint64)
    first = _drawing(f"integers{8 * op.dtype.itemsize}", op.streams(0)[0], node, threads)

    def draw(seed: Any, *others: Any) -> None:
        out = others[-1]
        refused = np.zeros(1, np.int64)
        first(seed, out, bounds, refused)
        if refused[0]:
            count = out.size // max(seed.size, 1)
            out[...] = op.numbers(np, seed, count).reshape(out.shape)

    return draw


def _drawing(name: str, stream: int, node: Node, threads: int) -> Kernel:
    """draw(seed, out, *more): out becomes what is made of the words of a stream; more is KINDS'."""
    rank = node.inputs[0].ndim
    shape: Any = node.outputs[0].shape
    rows, count = math.prod(shape[:rank]), math.prod(shape[rank:])
    blocks = -(-count // (LANES * KINDS[name].each))
    parts = threads if rows * count >= SHARED else 1
    by_row = rows >= parts
    each = ranges(rows if by_row else blocks, parts)
    fill = library.filling(name)

    def draw(seed: Any, out: Any, *more: Any) -> None:
        seeds = np.ascontiguousarray(seed.astype(np.uint64)).reshape(-1)

        def part(first: int, last: int) -> None:
            if by_row:
                fill(out, seeds, stream, count, first, last, 0, blocks, *more)
            else:
                fill(out, seeds, stream, count, 0, rows, first, last, *more)

        shared_out(part, each, threads)

    return draw
