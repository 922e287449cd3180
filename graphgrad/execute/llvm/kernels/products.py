"""Which matrix products and convolutions run as LLVM code, and how they are shared out."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ....ir.node import Node, Tensor
from ....ir.types import DType
from ....ops.contract.products import MatMul
from ....ops.nn.conv2d import Conv2D, Conv2DBackpropFilter, Conv2DBackpropInput
from ....ops.nn.moving_windows import ONE, Pair, Window
from ...run.threads import parallel
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
    if op.data_format != "NHWC":
        return None
    window = op.moved(op.spatial(x.shape), w.shape[:2], op.dilation)
    lengths = _lengths(node.outputs[0]), _lengths(w)
    run = _over_examples(x.dtype, *lengths, op.groups, threads)
    low = window.axes[0].low, window.axes[1].low

    def conv(x: Any, w: Any, out: Any) -> None:
        given = np.ascontiguousarray(x), np.ascontiguousarray(w)
        run(*given, out, low, op.strides, op.dilation)

    return conv


class _Phase(NamedTuple):
    """Pixels of an axis that the same entries of a window reach: every `stride`-th from `first` on.

    Their gradient is the convolution of dz, from `start` on with `low` zeros before, with the
    entries `taps` of the window turned round, `spread` apart.
    """

    first: int
    taps: slice
    start: int
    low: int
    spread: int


def _phases(window: Window, axis: int) -> list[_Phase]:
    """By what is left of i + low, divided by the stride.

    Of a stride s and a dilation d with the greatest common divisor g, pixel i = s q + r - low is
    seen by entries k = k0 + s/g m with k0 d = r modulo s, from place q + (r - k0 d) / s - d/g m.
    """
    extent, size, stride = window.axes[axis], window.size[axis], window.strides[axis]
    dilation = window.dilation[axis]
    common = math.gcd(stride, dilation)
    phases = []
    for r in range(stride):
        first = (r - extent.low) % stride
        if first >= extent.length:
            continue
        start = next((k for k in range(stride) if (k * dilation - r) % stride == 0), size)
        taps = range(size)[start :: stride // common]
        spread = dilation // common
        q = (first + extent.low - r) // stride + (r - start * dilation) // stride
        low = (len(taps) - 1) * spread - q
        some = slice(start, None, stride // common)
        phases.append(_Phase(first, some, max(-low, 0), max(low, 0), spread))
    return phases


def _conv_input(node: Node, threads: int) -> Writer | None:
    """Convolutions of dz with parts of w turned round, its channels exchanged."""
    op: Any = node.op
    w, groups = node.inputs[0], op.groups
    if op.data_format != "NHWC" or op.size is None:
        return None
    window = op.moved(op.size, w.shape[:2], op.dilation)
    down, right = op.strides
    pairs = list(product(_phases(window, 0), _phases(window, 1)))
    n, height, width, channels = _lengths(node.outputs[0])
    part = (n, -(-height // down), -(-width // right), channels)
    high, wide, _, out = _lengths(w)
    run = _over_examples(w.dtype, part, (high, wide, out // groups, channels), groups, threads)

    def exchanged(w: Any) -> Any:
        parts = w[::-1, ::-1].reshape(*w.shape[:3], groups, out // groups)
        return parts.transpose(0, 1, 4, 3, 2).reshape(*w.shape[:2], out // groups, channels)

    def back(w: Any, dz: Any, out: Any) -> None:
        for rows, columns in pairs:
            here = out[:, rows.first :: down, columns.first :: right]
            taps = w[rows.taps, columns.taps]
            seen = dz[:, rows.start :, columns.start :]
            if taps.size == 0 or seen.size == 0:
                here[...] = 0
                continue
            given = np.ascontiguousarray(seen), np.ascontiguousarray(exchanged(taps))
            low, spread = (rows.low, columns.low), (rows.spread, columns.spread)
            run(*given, here, low, ONE, spread)

    return back


def _over_examples(
    dtype: DType, out: tuple[int, ...], w: tuple[int, ...], groups: int, threads: int
) -> Callable[..., None]:
    """run(x, w, out, low, strides, dilation), examples of groups shared out among threads."""
    conv = library.conv(dtype)
    pieces = out[0] * groups
    work = math.prod(out[:3]) * math.prod(w)
    parts = 1 if threads == 1 or work < SHARED else min(4 * threads, pieces)
    cuts = [pieces * i // parts for i in range(parts + 1)]

    def run(x: Any, w: Any, out: Any, low: Pair, strides: Pair, dilation: Pair) -> None:
        def part(i: int) -> None:
            conv(x, w, out, *low, cuts[i], cuts[i + 1], *strides, *dilation, groups)

        parallel(part, parts, threads)

    return run


def _conv_filter(node: Node, threads: int) -> Writer | None:
    op: Any = node.op
    x, dz = node.inputs[:2]
    if op.data_format != "NHWC" or op.size is None:
        return None
    window = op.moved(op.spatial(x.shape), op.size, op.dilation)
    low = window.axes[0].low, window.axes[1].low
    run = library.conv_filter(x.dtype)
    rows = op.size[0] * (op.size[1] if op.dilation[1] > 1 else 1)
    columns = _lengths(dz)[3] // op.groups
    pieces = op.groups * rows * -(-columns // library.panel(x.dtype))
    parts = 1 if threads == 1 else min(threads, pieces)
    cuts = [pieces * i // parts for i in range(parts + 1)]
    how = *op.strides, *op.dilation, op.groups

    def filter_gradient(x: Any, dz: Any, out: Any) -> None:
        x, dz = np.ascontiguousarray(x), np.ascontiguousarray(dz)
        out.fill(0)
        work = np.zeros((2, *out.shape), out.dtype)
        parallel(lambda i: run(x, out, dz, *low, cuts[i], cuts[i + 1], *how, work), parts, threads)

    return filter_gradient


def _lengths(t: Tensor) -> tuple[int, ...]:
    shape: Any = t.shape
    lengths: tuple[int, ...] = shape
    return lengths


_MAKERS: dict[type, Callable[[Node, int], Writer | None]] = {
    MatMul: _matmul,
    Conv2D: _conv,
    Conv2DBackpropInput: _conv_input,
    Conv2DBackpropFilter: _conv_filter,
}
