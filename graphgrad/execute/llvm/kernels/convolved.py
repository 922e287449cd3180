"""Which convolutions run as LLVM code, what they are told, and how they are shared out."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise, product
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from ....ir.node import Node, Tensor
from ....ir.op import Op
from ....ir.types import DType
from ....ops.base import Constant
from ....ops.contract.products import MatMul
from ....ops.nn.conv2d import Conv2D, Conv2DBackpropFilter, Conv2DBackpropInput
from ....ops.nn.moving_windows import ONE, Extent, Window
from ....ops.shape.reshaping import Reshape, Transpose
from ...run.threads import parallel
from . import library
from .convolution import BORDERED, FIELDS, GATHERED, PIXELS, told_of
from .gemm import DEPTH
from .swept import is_swept

Writer = Callable[..., Any]
SHARED = 1 << 22  # multiplications from which on several threads take part
BLOCK = 240  # places at a time, at most: a multiple of the heights of tiles
TILE = 12  # places that a part is a multiple of
LINE, RANK = 64, 2
FEW = 8  # channels, which make short rows
TOGETHER = 8  # blocks that are a chunk
NARROW, NEAR = 128, 1 << 19  # outputs, and bytes of filters, up to which images are read in rows
FILLED = 0.95  # of the time of tiles that is spent on outputs


def convolution_writer(node: Node, threads: int, keep: bool = True) -> Writer | None:
    """What writes the result of the node, None where NumPy does it.

    keep: whether filters that are constants stay packed.
    """
    make = _MAKERS.get(type(node.op))
    if make is None or node.outputs[0].dtype.char not in "fd" or not library.fast():
        return None
    op: Any = node.op
    if op.data_format != "NHWC" or any(0 in t.shape for t in (*node.inputs, *node.outputs)):
        return None
    if is_swept(node):
        return None
    return make(node, threads, keep)


class Convolved:
    """A convolution of images of one shape, with filters of another, by compiled code.

    x: (N, H, W, C)    w: (height, width, C / groups, out)    z: (N, H', W', out)
    crop: leave out rows and columns of the window that never see the image.
    """

    def __init__(
        self,
        dtype: DType,
        x: tuple[int, ...],
        window: Window,
        outputs: int,
        groups: int,
        crop: bool = False,
    ) -> None:
        self.dtype, self.groups = dtype, groups
        self.window, self.taps = _cropped(window) if crop else (window, (slice(None), slice(None)))
        n, height, width, channels = x
        down, across = self.window.axes
        own = channels // groups
        beside = self.window.dilation[1] == 1
        self.depth = math.prod(self.window.size) * own
        self.places = n * down.out * across.out
        self.outputs = outputs // groups
        self.panels = -(-self.outputs // library.panel(dtype))
        block = _up(-(-self.places // -(-self.places // BLOCK)))
        plain = (self.window.size, self.window.strides) == (ONE, ONE)
        whole = plain and not any(e.low or e.out != e.length for e in self.window.axes)
        self._told = told_of(self.window) | {
            "own": own,
            "apart": n * height * width * own,
            "columns": 1 if beside else self.window.size[1],
            "run": own * (self.window.size[1] if beside else 1),
            "depth": self.depth,
            "outputs": self.outputs,
            "groups": groups,
            "block": block,
            "chunk": block * TOGETHER,
            "stretch": self.depth,
            "slice": DEPTH,
            "mode": PIXELS if whole else GATHERED,
            "high": down.out,
            "wide": across.out,
        }
        self._conv = self._told | (self._by_rows() if self._has_rows() else {})

    def _has_rows(self) -> bool:
        """Whether the outputs of a row fill tiles, and filters may be read again for each."""
        down, across = self.window.axes
        filled = across.out / sum(max(h, 4) for h in library.tiles(self.dtype, across.out))
        size = self.depth * self.outputs * self.dtype.itemsize
        some = self.outputs <= NARROW and size <= NEAR and min(down.low, across.low) >= 0
        return math.prod(self.window.size) > 1 and filled > FILLED and some

    def _by_rows(self) -> dict[str, int]:
        """What is told of a convolution in rows."""
        sizes = zip(
            self.window.axes,
            self.window.size,
            self.window.strides,
            self.window.dilation,
            strict=True,
        )
        high, wide = ((e.out - 1) * s + (k - 1) * d + 1 for e, k, s, d in sizes)
        run = self._told["run"]
        pieces = -(-run // DEPTH)
        return {
            "block": self.window.axes[1].out,
            "chunk": self.window.axes[0].out * self.window.axes[1].out,
            "stretch": run,
            "slice": -(-run // pieces),
            "mode": BORDERED,
            "high": high,
            "wide": wide,
        }

    @property
    def slices(self) -> tuple[int, int]:
        """How filters are packed."""
        return self._conv["stretch"], self._conv["slice"]

    @property
    def work(self) -> int:
        """Multiplications."""
        return int(self.places * self.depth * self.outputs * self.groups)

    def image(self, x: Any) -> Any:
        """An image as it is read: in order, its groups one after the other."""
        if self.groups == 1:
            return _in_order(x)
        apart = x.reshape(*x.shape[:3], self.groups, -1)
        return np.ascontiguousarray(apart.transpose(3, 0, 1, 2, 4))

    def packed(self, w: Any) -> Any:
        """The filters as `runner` takes them."""
        w = w[self.taps]
        if w.strides[2] < w.strides[3]:  # the entries of an output are near one another
            matrix = _in_blocks(w.transpose(3, 0, 1, 2), 0).reshape(-1, self.depth).T
        else:
            matrix = _in_blocks(w, 2).reshape(self.depth, -1)
        return _packed(self.dtype, matrix, self._conv)

    def few(self, threads: int) -> bool:
        """Whether the outputs are shared out among threads, since there are few places."""
        return self._shared(threads) and self.places < 2 * TILE * threads

    def _shared(self, threads: int) -> bool:
        return threads > 1 and self.work >= SHARED

    def runner(self, threads: int) -> Writer:
        """run(x, packed w, z, ...), of arrays in order: shared out by places, or by outputs if few.

        What stands for dots is as for conv, and only where places are shared out.
        """
        conv, fields = library.windows(self.dtype, "conv"), _fields(self._conv)
        places, panels = self.places, self.panels
        if not self._shared(threads):
            return lambda x, w, z, *behind: conv(x, w, z, fields, 0, places, 0, panels, *behind)
        if self.few(threads):
            parts = min(threads, panels)
            cuts = [panels * i // parts for i in range(parts + 1)]
            ranges = [(0, places, *cut) for cut in pairwise(cuts)]
        else:
            unit = self._conv["block"] if self._conv["mode"] == BORDERED else TILE
            parts = min(4 * threads, max(places // max(unit, 2 * TILE), 1))
            cuts = [min(-(-places // unit) * i // parts * unit, places) for i in range(parts + 1)]
            ranges = [(*cut, 0, panels) for cut in pairwise(cuts)]

        def run(x: Any, w: Any, z: Any, *behind: Any) -> None:
            parallel(lambda i: conv(x, w, z, fields, *ranges[i], *behind), parts, threads)

        return run

    def spread(self, threads: int) -> Writer | None:
        """run(dz, w, dx), of arrays in order: the image's gradient; None where others are better.

        With so few channels, filters would make too narrow a matrix.
        """
        told = self._told
        if told["own"] * self.groups > FEW or self.groups > 1 or told["columns"] > 1:
            return None
        if min(told["top"], told["left"]) < 0:
            return None
        rows = self._by_rows()
        told = told | {
            "high": max(rows["high"], told["top"] + told["height"]),
            "wide": max(rows["wide"], told["left"] + told["width"]),
        }
        turned = {"depth": self.outputs, "outputs": self.depth, "stretch": self.outputs}
        examples = self.places // (told["out_height"] * told["out_width"])
        parts = min(threads, examples) if self._shared(threads) else 1
        cuts = [examples * i // parts for i in range(parts + 1)]
        run, fields = library.windows(self.dtype, "conv_spread"), _fields(told)

        def gradient(dz: Any, w: Any, dx: Any) -> None:
            packed = _packed(self.dtype, w.reshape(self.depth, -1).T, told | turned)
            parallel(lambda i: run(dz, packed, dx, fields, cuts[i], cuts[i + 1]), parts, threads)

        return gradient

    def _even(self, pieces: int) -> int:
        """The length of at least so many equal pieces of a run, or of as many as there can be.

        0 where it has none, which does not depend on how many: how sums are cut depends on it.
        """
        run = self._told["run"]
        lengths = [d for d in range(TILE, DEPTH + 1) if run % d == 0]
        enough = [d for d in lengths if run >= pieces * d]
        if not enough:
            return min(lengths, default=0)
        return max(enough, key=lambda d: (d % TILE == 0, d))

    def filter_gradient(self, threads: int) -> Writer:
        """run(x, dz, dw), of arrays in order: shared out by rows of dw."""
        run = library.windows(self.dtype, "conv_filter")
        shared = self._shared(threads)
        told, pieces = self._told, 2 * threads if shared else 1
        rows = self._conv["mode"] == BORDERED
        even = self._even(-(-pieces * self._conv["run"] // (self.depth * self.groups)))
        if rows and even:
            told = self._conv | {"slice": even}
        else:
            least = max(-(-self.depth // DEPTH), pieces if shared else 1)
            told = told | {"slice": min(_up(-(-self.depth // least)), DEPTH)}
        slices = self.groups * -(-self.depth // told["slice"])
        parts = min(threads, slices) if shared else 1
        cuts = [slices * i // parts for i in range(parts + 1)]
        fields, places = _fields(told), self.places
        several = places > told["chunk"]

        def gradient(x: Any, dz: Any, dw: Any) -> None:
            work = dw
            if several:
                dw.fill(0)
                work = np.zeros((2, *dw.shape), dw.dtype)
            parallel(
                lambda i: run(x, dw, dz, fields, places, cuts[i], cuts[i + 1], work), parts, threads
            )

        return gradient


def _fields(told: dict[str, int]) -> Any:
    return np.array([told[name] for name in FIELDS], np.int64)


def _packed(dtype: DType, matrix: Any, told: dict[str, int]) -> Any:
    """A matrix of filters for the functions, in memory of its own that starts a cache line."""
    size = told["groups"] * library.packed_bytes(dtype, told["depth"], told["outputs"])
    memory = np.empty(size + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    to = memory[start : start + size]
    library.windows(dtype, "conv_pack")(matrix, to, _fields(told))
    return to


def _in_order(x: Any) -> Any:
    """x, or a copy in row-major order: channel by channel where they are few."""
    if x.flags.c_contiguous or x.shape[3] > FEW:
        return np.ascontiguousarray(x)
    made = np.empty(x.shape, x.dtype)
    for c in range(x.shape[3]):
        made[..., c] = x[..., c]
    return made


def _in_blocks(w: Any, axis: int) -> Any:
    """w, or a copy in row-major order, made some places of an axis at a time: what of each cache
    line the others need is still near.
    """
    if w.flags.c_contiguous:
        return w
    made, before = np.empty(w.shape, w.dtype), (slice(None),) * axis
    for at in range(0, w.shape[axis], LINE):
        here = (*before, slice(at, at + LINE))
        made[here] = w[here]
    return made


def _up(places: int) -> int:
    return -(-places // TILE) * TILE


def _cropped(window: Window) -> tuple[Window, tuple[slice, slice]]:
    """The window without rows and columns that never see the image, and which are left."""
    taps, axes = [], []
    for axis, e in enumerate(window.axes):
        seen = np.flatnonzero(window.seen(axis).any(0))
        first, stop = (int(seen[0]), int(seen[-1]) + 1) if seen.size else (0, 1)
        low = e.low - first * window.dilation[axis]
        taps.append(slice(first, stop))
        axes.append(Extent(e.length, e.out, low, e.high))
    size = (taps[0].stop - taps[0].start, taps[1].stop - taps[1].start)
    cropped = Window(size, window.strides, window.dilation, (axes[0], axes[1]))
    return cropped, (taps[0], taps[1])


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


def _of(node: Node) -> Convolved:
    op: Any = node.op
    x, w = node.inputs
    window = op.moved(op.spatial(x.shape), w.shape[:2], op.dilation)
    value, _ = _constant(w)
    crop = value is not None and bool(np.isfinite(value).all())
    return Convolved(x.dtype, _lengths(x), window, _lengths(w)[3], op.groups, crop)


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


def convolving(node: Node, threads: int, keep: bool) -> Convolving:
    """Of a Conv2D, by products."""
    how = _of(node)
    filters = _packing(node.inputs[1], how, keep)
    return Convolving(how.image, filters, how.runner(threads), how.few(threads))


def _conv(node: Node, threads: int, keep: bool) -> Writer:
    image, filters, run, _ = convolving(node, threads, keep)
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


def _conv_input(node: Node, threads: int, keep: bool) -> Writer | None:
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


def _conv_filter(node: Node, threads: int, keep: bool) -> Writer | None:
    op: Any = node.op
    x, dz = node.inputs[:2]
    if op.size is None:
        return None
    window = op.moved(op.spatial(x.shape), op.size, op.dilation)
    how = Convolved(x.dtype, _lengths(x), window, _lengths(dz)[3], op.groups)
    run = how.filter_gradient(threads)

    def filter_gradient(x: Any, dz: Any, out: Any) -> None:
        run(how.image(x), np.ascontiguousarray(dz), out)

    return filter_gradient


def _lengths(t: Tensor) -> tuple[int, ...]:
    shape: Any = t.shape
    lengths: tuple[int, ...] = shape
    return lengths


_MAKERS: dict[type, Callable[[Node, int, bool], Writer | None]] = {
    Conv2D: _conv,
    Conv2DBackpropInput: _conv_input,
    Conv2DBackpropFilter: _conv_filter,
}
