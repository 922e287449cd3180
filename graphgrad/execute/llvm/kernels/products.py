"""Which matrix products run as LLVM code, and how they are shared out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....ir.node import Node, Tensor
from ....ops.contract.products import MatMul
from ...run.threads import parallel, ranges
from . import library

Writer = Callable[..., Any]
SHARED = 1 << 22  # multiplications from which on several threads take part
PART = 1 << 24  # multiplications of a part, at least, where threads have several
PARTS = 2  # for a thread, at most: another takes what is left where one is held up
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
    dtype = node.outputs[0].dtype
    run = library.matmul(dtype, op.transpose_a, op.transpose_b)
    if threads == 1 or work < SHARED:
        return run
    parts = min(PARTS * threads, max(threads, work // PART))
    pieces = _pieces(node, parts, threads)

    def shared(a: Any, b: Any, out: Any) -> None:
        def piece(i: int) -> None:
            of_a, of_b, of_out = pieces[i]
            run(a[of_a], b[of_b], out[of_out])

        parallel(piece, len(pieces), threads)

    return shared


Piece = tuple[Any, Any, Any]


def _pieces(node: Node, parts: int, threads: int) -> list[Piece]:
    """What each part reads of a and b, and writes: matrices of a stack, or columns, or rows.

    Each part packs what it reads of b, and of a where a is turned; so what is read by all parts is
    the smaller one, and there are no more parts than threads where it has to be packed.
    """
    op: Any = node.op
    a, b = node.inputs
    out = node.outputs[0]
    *stack, rows, cols = _lengths(out)
    if stack and stack[0] >= threads:
        deep = [len(_lengths(t)) == len(_lengths(out)) and _lengths(t)[0] > 1 for t in (a, b)]
        every = slice(None)
        return [
            (cut if deep[0] else every, cut if deep[1] else every, cut)
            for cut in _cuts(stack[0], parts)
        ]
    if cols > rows or (cols == rows and not op.transpose_a):
        cuts = _cuts(cols, threads if op.transpose_a else parts, library.panel(out.dtype))
        turned = op.transpose_b
        return [(..., (..., *((c, slice(None)) if turned else (c,))), (..., c)) for c in cuts]
    cuts = _cuts(rows, threads, library.tallest(out.dtype))
    turned = op.transpose_a
    whole = slice(None)
    return [((..., c) if turned else (..., c, whole), ..., (..., c, whole)) for c in cuts]


def _cuts(length: int, parts: int, unit: int = 1) -> list[slice]:
    return [slice(*ends) for ends in ranges(length, parts, unit)]


def _lengths(t: Tensor) -> tuple[int, ...]:
    shape: Any = t.shape
    lengths: tuple[int, ...] = shape
    return lengths
