"""Which convolutions run as LLVM code, and what runs for a node."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from ....ir.node import Node, Tensor
from ....ir.op import Op
from ....ops.base import Constant
from ....ops.contract.products import MatMul
from ....ops.nn.conv2d import Conv2D, Conv2DBackpropFilter, Conv2DBackpropInput
from ....ops.nn.moving_windows import ONE, Extent, Window
from ....ops.shape.reshaping import Reshape, Transpose
from . import library
from .by_winograd import ByWinograd
from .convolved import Convolved, Writer
from .swept import is_swept

RANK = 2


def convolution_writer(
    node: Node, threads: int, keep: bool = True, exact: bool = False
) -> Writer | None:
    """What writes the result of the node, None where NumPy does it.

    keep: whether filters that are constants stay packed; exact: sums of its definition only.
    """
    make = _MAKERS.get(type(node.op))
    if make is None or node.outputs[0].dtype.char not in "fd" or not library.fast():
        return None
    op: Any = node.op
    if op.data_format != "NHWC" or any(0 in t.shape for t in (*node.inputs, *node.outputs)):
        return None
    if is_swept(node):
        return None
    return make(node, threads, keep, exact)


# --- filters that stay the same ----------------------------------------------------------------


class _Kept:
    """Packed filters that are constants: once for all programs that have them."""

    def __init__(self, value: Any) -> None:
        self.value = value  # lives as long as its id is in use
        self.packed: Any = None


_kept: WeakValueDictionary[Any, _Kept] = WeakValueDictionary()


def _constant(w: Tensor) -> tuple[Any, list[Op]]:
    """The array that w is a view of, and the views, where it is a constant; else None."""
    views: list[Op] = []
    while type(w.node.op) in (Transpose, Reshape):
        views.append(w.node.op)
        w = w.node.inputs[0]
    return (w.node.op.value if type(w.node.op) is Constant else None), views


def _packing(w: Tensor, how: Convolved, keep: bool, turned: bool = False) -> Callable[[Any], Any]:
    """The packed filters, of filters: packed in each call, or in the first where w is constant.

    turned: whether they are those of w turned.
    """
    value, views = _constant(w)
    if not keep or value is None:
        return how.packed
    cut = tuple([(taps.start, taps.stop) for taps in how.taps])
    key = id(value), *views, turned, how.groups, cut, how.slices
    kept = _kept.setdefault(key, _Kept(value))

    def packed(w: Any) -> Any:
        if kept.packed is None:
            kept.packed = how.packed(w)
        return kept.packed

    return packed


# --- what runs for a node ----------------------------------------------------------------------


def _of(node: Node, exact: bool) -> Convolved:
    op: Any = node.op
    x, w = node.inputs
    window = op.moved(op.spatial(x.shape), w.shape[:2], op.dilation)
    value, _ = _constant(w)
    crop = value is not None and bool(np.isfinite(value).all())
    of = x.dtype, _lengths(x), window, _lengths(w)[3], op.groups
    how = Convolved(*of, crop)
    fast = not exact and ByWinograd.suits(how, value is not None)
    return ByWinograd(*of) if fast else how


class Convolving(NamedTuple):
    """How a convolution runs.

    image, filters  x and w, in any strides, as they are read
    run             run(image, filters, z, ...), of which the rest is a loop behind it
    few             whether its outputs are shared out among threads, so that nothing can be behind
    """

    image: Callable[[Any], Any]
    filters: Callable[[Any], Any]
    run: Writer
    few: bool


def convolving(node: Node, threads: int, keep: bool, exact: bool) -> Convolving:
    """Of a Conv2D, by products."""
    how = _of(node, exact)
    filters = _packing(node.inputs[1], how, keep)
    return Convolving(how.image, filters, how.runner(threads), how.few(threads))


def _conv(node: Node, threads: int, keep: bool, exact: bool) -> Writer:
    image, filters, run, _ = convolving(node, threads, keep, exact)
    return lambda x, w, out: run(image(x), filters(w), out)


def matrix_writer(node: Node, threads: int, keep: bool) -> Writer | None:
    """What writes a product with a matrix that is a constant, kept packed: a window of one place.

    None for other products, and for one row, with which NumPy goes through the matrix as it is.
    """
    op: Any = node.op
    if type(op) is not MatMul or not keep or op.transpose_a or not library.fast():
        return None
    a, b = node.inputs
    rank = len(_lengths(node.outputs[0]))
    if rank != RANK or a.dtype.char not in "fd" or _constant(b)[0] is None:
        return None
    (rows, depth), columns = _lengths(a), _lengths(node.outputs[0])[1]
    if rows == 1 or 0 in (rows, depth, columns):
        return None
    across = Extent(rows, rows, 0, 0)
    window = Window(ONE, ONE, ONE, (Extent(1, 1, 0, 0), across))
    how = Convolved(a.dtype, (1, 1, rows, depth), window, columns, 1)
    run, packed = how.runner(threads), _packing(b, how, keep, op.transpose_b)

    def write(a: Any, b: Any, out: Any) -> None:
        matrix = (b.T if op.transpose_b else b)[None, None]
        run(np.ascontiguousarray(a), packed(matrix), out)

    return write


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


def _conv_input(node: Node, threads: int, keep: bool, exact: bool) -> Writer | None:
    """Convolutions of dz with parts of w turned round, its channels exchanged.

    Not of infinite filters: a border of zeros times them would be NaN.
    """
    op: Any = node.op
    w, dz = node.inputs[:2]
    if op.size is None:
        return None
    window = op.moved(op.size, w.shape[:2], op.dilation)
    down, right = op.strides
    channels, outputs, groups = _lengths(node.outputs[0])[3], _lengths(w)[3], op.groups
    whole = Convolved(dz.dtype, _lengths(node.outputs[0]), window, outputs, groups)
    spread = whole.spread(threads)
    if spread is not None:
        return lambda w, dz, out: spread(np.ascontiguousarray(dz), np.ascontiguousarray(w), out)
    parts: list[Any] = []
    for rows, columns in product(_phases(window, 0), _phases(window, 1)):
        here = (slice(None), slice(rows.first, None, down), slice(columns.first, None, right))
        seen = _phase_window(rows, columns, window)
        if 0 in seen.size or any(e.length < 1 for e in seen.axes):
            parts.append((here, rows, columns, None))
            continue
        image = (_lengths(dz)[0], *[e.length for e in seen.axes], outputs)
        how = Convolved(dz.dtype, image, seen, channels, groups)
        if not exact and ByWinograd.suits(how):
            how = ByWinograd(dz.dtype, image, seen, channels, groups)
        parts.append((here, rows, columns, (how, how.runner(threads))))

    def exchanged(w: Any) -> Any:
        parts = w[::-1, ::-1].reshape(*w.shape[:3], groups, outputs // groups)
        return parts.transpose(0, 1, 4, 3, 2).reshape(*w.shape[:2], outputs // groups, channels)

    def back(w: Any, dz: Any, out: Any) -> None:
        if not np.isfinite(w).all():
            out[...] = op.kernel(np, w, dz)
            return
        for here, rows, columns, made in parts:
            to = out[here]
            if made is None:
                to[...] = 0
                continue
            how, run = made
            seen = how.image(dz[:, rows.start :, columns.start :])
            packed = how.packed(exchanged(w[rows.taps, columns.taps]))
            given = to if to.flags.c_contiguous else np.empty(to.shape, to.dtype)
            run(seen, packed, given)
            if given is not to:
                to[...] = given

    return back


def _phase_window(rows: _Phase, columns: _Phase, window: Window) -> Window:
    """The window of the convolution that makes the pixels of two phases."""
    size, axes = [], []
    for axis, phase in enumerate((rows, columns)):
        e = window.axes[axis]
        size.append(len(range(window.size[axis])[phase.taps]))
        pixels = len(range(phase.first, e.length, window.strides[axis]))
        axes.append(Extent(e.out - phase.start, pixels, phase.low, 0))
    spread = rows.spread, columns.spread
    return Window((size[0], size[1]), ONE, spread, (axes[0], axes[1]))


def _conv_filter(node: Node, threads: int, keep: bool, exact: bool) -> Writer | None:
    op: Any = node.op
    x, dz = node.inputs[:2]
    if op.size is None:
        return None
    window = op.moved(op.spatial(x.shape), op.size, op.dilation)
    of = x.dtype, _lengths(x), window, _lengths(dz)[3], op.groups
    how = Convolved(*of)
    if not exact and ByWinograd.suits_gradient(how):
        how = ByWinograd(*of)
    run = how.filter_gradient(threads)

    def filter_gradient(x: Any, dz: Any, out: Any) -> None:
        run(how.image(x), np.ascontiguousarray(dz), out)

    return filter_gradient


def _lengths(t: Tensor) -> tuple[int, ...]:
    shape: Any = t.shape
    lengths: tuple[int, ...] = shape
    return lengths


_MAKERS: dict[type, Callable[[Node, int, bool, bool], Writer | None]] = {
    Conv2D: _conv,
    Conv2DBackpropInput: _conv_input,
    Conv2DBackpropFilter: _conv_filter,
}
