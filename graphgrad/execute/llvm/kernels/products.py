"""Which matrix products run as LLVM code, and how they are shared out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....ir.node import Node, Tensor
from ....ops.contract.products import MatMul
from ...run.threads import parallel
from . import library

Writer = Callable[..., Any]
SHARED = 1 << 22  # multiplications from which on several threads take part
THIN = 1 << 12  # entries of a matrix from which on NumPy's product with a vector is faster


def product_writer(node: Node, threads: int) -> Writer | None:
    """What writes the result of the node, None where NumPy does it better."""
    if type(node.op) is not MatMul or node.outputs[0].dtype.char not in "fd" or not library.fast():
        return None
    if any(0 in t.shape for t in (*node.inputs, *node.outputs)):
        return None
    return _matmul(node, threads)


def _matmul(node: Node, threads: int) -> Writer | None:
    op: Any = node.op
    shape = _lengths(node.outputs[0])
    *_, rows, cols = shape
    depth = _lengths(node.inputs[0])[-2 if op.transpose_a else -1]
    thin = min(rows, cols) == 1 and rows * cols * depth >= THIN
    if thin or len(shape) > 4:
        return None
    work = math.prod(shape) * depth
    run = library.matmul(node.outputs[0].dtype, op.transpose_a, op.transpose_b)
    if threads == 1 or work < SHARED:
        return run

    def shared(a: Any, b: Any, out: Any) -> None:
        parallel(lambda part: run(a, b, out, part, threads), threads, threads)

    return shared


def _lengths(t: Tensor) -> tuple[int, ...]:
    shape: Any = t.shape
    lengths: tuple[int, ...] = shape
    return lengths
