"""Which matrix products and convolutions run as LLVM code, and how they are shared out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.node import Node, Tensor
from ...ops.products import MatMul
from ...ops.windows import ONE, Conv2D, Conv2DBackpropFilter, Conv2DBackpropInput, Window
from ..threads import parallel
from . import library

Writer = Callable[..., Any]
SHARED = 1 << 22  # multiplications from which on several threads take part
THIN = 1 << 12  # entries of a matrix from which on NumPy's product with a vector is faster


def product_writer(node: Node, threads: int) -> Writer | None:
    """What writes the result of the node, None where NumPy does it better."""
    make = _MAKERS.get(type(node.op))
    if make is None or node.outputs[0].dtype.char not in "fd" or not library.fast():
        return None
    if any(0 in t.shape for t in (*node.inputs, *node.outputs)):
        return None
    return make(node, threads)


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


def _conv(node: Node, threads: int) -> Writer | None:
    op: Any = node.op
    x, w = node.inputs
    if not _plain(op):
        return None
    window = op.moved(op.spatial(x.shape), w.shape[:2])
    return _over_examples(window, x, w, threads)


def _conv_input(node: Node, threads: int) -> Writer | None:
    """The convolution of dz with w turned round, its channels exchanged."""
    op: Any = node.op
    w, dz = node.inputs[:2]
    if not _plain(op) or op.size is None:
        return None
    window = op.moved(op.size, w.shape[:2])
    if any(max(e.low, e.high) >= n for e, n in zip(window.axes, window.size, strict=True)):
        return None
    tops = [n - 1 - e.low for e, n in zip(window.axes, window.size, strict=True)]
    turned = window._replace(
        axes=tuple([e._replace(low=t) for e, t in zip(window.axes, tops, strict=True)])
    )
    run = _over_examples(turned, dz, w, threads)

    def back(w: Any, dz: Any, out: Any) -> None:
        run(dz, w[::-1, ::-1].transpose(0, 1, 3, 2), out)

    return back


def _over_examples(
    window: Window, x: Tensor, w: Tensor, threads: int
) -> Callable[[Any, Any, Any], None]:
    run = library.conv(x.dtype)
    top, left = (e.low for e in window.axes)
    examples = _lengths(x)[0]
    work = math.prod((examples, *(e.out for e in window.axes), *_lengths(w)))
    parts = 1 if threads == 1 or work < SHARED else min(4 * threads, examples)
    cuts = [examples * i // parts for i in range(parts + 1)]

    def conv(x: Any, w: Any, out: Any) -> None:
        x, w = np.ascontiguousarray(x), np.ascontiguousarray(w)
        parallel(lambda i: run(x, w, out, top, left, cuts[i], cuts[i + 1]), parts, threads)

    return conv


def _conv_filter(node: Node, threads: int) -> Writer | None:
    op: Any = node.op
    x, dz = node.inputs[:2]
    if not _plain(op) or op.size is None:
        return None
    window = op.moved(op.spatial(x.shape), op.size)
    top, left = (e.low for e in window.axes)
    run = library.conv_filter(x.dtype)
    pieces = op.size[0] * -(-_lengths(dz)[3] // library.panel(x.dtype))
    parts = 1 if threads == 1 else min(threads, pieces)
    cuts = [pieces * i // parts for i in range(parts + 1)]

    def filter_gradient(x: Any, dz: Any, out: Any) -> None:
        x, dz = np.ascontiguousarray(x), np.ascontiguousarray(dz)
        out.fill(0)
        work = np.zeros((2, *out.shape), out.dtype)
        parallel(lambda i: run(x, out, dz, top, left, cuts[i], cuts[i + 1], work), parts, threads)

    return filter_gradient


def _plain(op: Any) -> bool:
    return (op.strides, op.dilation, op.groups, op.data_format) == (ONE, ONE, 1, "NHWC")


def _lengths(t: Tensor) -> tuple[int, ...]:
    shape: Any = t.shape
    found: tuple[int, ...] = shape
    return found


_MAKERS: dict[type, Callable[[Node, int], Writer | None]] = {
    MatMul: _matmul,
    Conv2D: _conv,
    Conv2DBackpropInput: _conv_input,
    Conv2DBackpropFilter: _conv_filter,
}
