"""Pooling over one to three spatial axes: maximum, mean or norm; fixed or adaptive windows."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import NamedTuple

from ...base.bounds import at_least
from ...base.domains import POSITIVE_OR_INFINITE
from ...base.errors import ShapeError
from ...base.flags import truth
from ...base.length import Length
from ..base import (
    Any,
    DTypeError,
    Sequence,
    Tensor,
    TensorLike,
    apply,
    as_tensor,
    cast,
    constant,
    kind_of,
    like,
    np,
    promoted,
    rounded_once,
)
from ..create.creation import arange, counting, full, zeros_like
from ..documented import documented
from ..elementwise.bounds import clip, minimum
from ..elementwise.logic import equal, greater, isnan, less, logical_and, logical_or, where
from ..elementwise.magnitudes import absolute
from ..reduce.reductions import argmax, sum
from ..reduce.sorting import ScatterElements, take_along_axis
from ..shape.folding import merged, parted
from ..shape.indexing import as_places, take
from ..shape.padding import EnsureLength, Pad
from ..shape.reshaping import Squeeze, broadcast_like, expand_dims, moveaxis, reshape, squeeze
from ..shape.slicing import FULL, Slice
from .moving_windows import (
    Extent,
    at_least_0,
    extent,
    format_of,
    numbers_of,
    of_two,
    padding_of,
    rank_of,
    sizes_of,
)
from .operands import one_of, real_operands, told_length
from .pool2d import AvgPool, MaxPool, Pool, lowest

__all__ = [
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "adaptive_max_pool_with_indices",
    "avg_pool",
    "lp_pool",
    "max_pool",
    "max_pool_with_indices",
    "max_unpool",
]


@documented(MaxPool)
def max_pool(
    x: TensorLike,
    window: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str = "NHWC",
    ties: str = "first",
    ceil_mode: bool = False,
    dilation: Any = 1,
) -> Tensor:
    """The largest element of every window over one to three spatial axes; borders never win.

    Parameters:
        x: (N, H, W, C), or (N, C, H, W) with data_format="NCHW", or without H, or with D in front
            of it; integer or floating.
        window: an int >= 1, or one for each spatial axis.
        strides: likewise; None for those of the window.
        padding: "SAME", "VALID", an int, or an int or a pair (before, after) for each spatial axis,
            as for conv.
        data_format: "NHWC" or "NCHW".
        ties: which of several largest elements has the gradient: the "first" in row-major order, as
            in TensorFlow, PyTorch and ONNX, or all in equal shares ("share", up to two axes).
        ceil_mode: whether a window that begins inside the image or its padding counts though it
            ends outside.
        dilation: how far the places of a window are apart, an int >= 1, or one for each axis.

    Returns: an image of the channels and dtype of x.

    Raises: ShapeError if x has no spatial axes, or for another choice than these; DTypeError if x
        is bool or complex; ValueError for other ties.

    >>> gg.evaluate(gg.nn.max_pool(np.array([[[1.0], [5.0], [2.0], [3.0]]]), 2))[0, :, 0]
    array([5., 3.])
    """
    one_of("ties", ties, ("first", "share"))
    x = as_tensor(x)
    moves = _moves(x, window, strides, padding, data_format, ceil_mode, dilation)
    if ties == "share" and len(moves.size) == 3:
        raise ShapeError(f"ties='share' is for one or two spatial axes, got {x.type!r}")
    return moves.largest(x, ties)


@documented(AvgPool)
def avg_pool(
    x: TensorLike,
    window: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str = "NHWC",
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Tensor:
    """The mean of every window over one to three spatial axes; borders are left out of the mean.

    Parameters:
        x: (N, H, W, C), or (N, C, H, W) with data_format="NCHW", or without H, or with D in front
            of it; floating, ints and bools become float64.
        window: an int >= 1, or one for each spatial axis.
        strides: likewise; None for those of the window.
        padding: "SAME", "VALID", an int, or an int or a pair (before, after) for each spatial axis,
            as for conv.
        data_format: "NHWC" or "NCHW".
        ceil_mode: whether a window that begins inside the image or its padding counts though it
            ends outside.
        count_include_pad: whether the zeros of the padding count, as by PyTorch's default.

    Returns: an image of the channels and dtype of x.

    Raises: ShapeError if x has no spatial axes, or for another choice than these; DTypeError if x
        is complex.

    >>> gg.evaluate(gg.nn.avg_pool(np.array([[[1.0], [5.0], [2.0], [3.0]]]), 2))[0, :, 0]
    array([3. , 2.5])
    """
    truth("count_include_pad", count_include_pad)
    (x,) = promoted(x, floating=True)
    moves = _moves(x, window, strides, padding, data_format, ceil_mode)
    if count_include_pad:
        x, moves = moves.bordered(x)
    return moves.means(x)


class _Moves(NamedTuple):
    """How a window of a pool moves over an image.

    size, steps  lengths and strides of the window, for each spatial axis
    around       what is padded: "SAME", "VALID", or a pair for each axis
    beyond       how far the last window may reach out of that
    first        whether channels come first
    spread       how far the places of the window are apart
    """

    size: tuple[Any, ...]
    steps: tuple[Any, ...]
    around: Any
    beyond: tuple[Any, ...]
    first: bool
    spread: tuple[int, ...]

    def axes(self) -> range:
        """The spatial axes of the image."""
        return range(2, 2 + len(self.size)) if self.first else range(1, 1 + len(self.size))

    def extents(self, x: Tensor) -> list[Extent]:
        """The extent of each spatial axis."""
        pads = self._pads()
        lengths = [told_length("this pool", x, a) for a in self.axes()]
        extents = []
        moves = zip(self.size, self.steps, self.spread, strict=True)
        for n, pad, more, (k, s, d) in zip(lengths, pads, self.beyond, moves, strict=True):
            e = extent(n, k, s, d, pad)
            extents.append(e if more == 0 else extent(n, k, s, d, (e.low, e.high + more)))
        return extents

    def reaching(self, x: Tensor) -> _Moves:
        """The same with windows that begin inside, and may end outside."""
        if self.around == "SAME":
            return self
        missing = []
        moves = zip(self.extents(x), self.size, self.steps, self.spread, strict=True)
        for e, k, s, d in moves:
            whole, reach = e.length + e.low + e.high, (k - 1) * d + 1
            out = -(-(whole - reach) // s) + 1
            outside = (out - 1) * s - (e.length + e.low) + 1  # above 0 where the last one begins so
            out -= Length.min(Length.max(outside, 0), 1)
            missing.append(Length.max((out - 1) * s + reach - whole, 0))
        return self._replace(beyond=tuple(missing))

    def padding(self) -> Any:
        """The padding of an op."""
        if all(more == 0 for more in self.beyond):
            return self.around
        pairs = zip(self._pads(), self.beyond, strict=True)
        return tuple([(0, m) if isinstance(p, str) else (p[0], p[1] + m) for p, m in pairs])

    def bordered(self, x: Tensor) -> tuple[Tensor, _Moves]:
        """The image with its borders as zeros, and the window over that."""
        if self.around == "VALID":
            return x, self
        widths = [(0, 0)] * x.ndim
        for a, e, more in zip(self.axes(), self.extents(x), self.beyond, strict=True):
            widths[a] = (e.low, e.high - more)
        return apply(Pad(tuple(widths)), x), self._replace(around="VALID")

    def largest(self, x: Tensor, ties: str = "first") -> Tensor:
        """The largest element of each window."""

        def op(steps: Any, pads: Any, data_format: str, size: Any, spread: Any) -> Pool:
            return MaxPool(steps, pads, data_format, size, ties, spread)

        return self.pool(op, x)

    def means(self, x: Tensor) -> Tensor:
        """The mean of each window."""
        return self.pool(lambda *moves: AvgPool(*moves[:-1]), x)

    def pool(self, op: Callable[..., Pool], x: Tensor) -> Tensor:
        """The pool over this image; over three axes, over the last two and then the first.

        op: makes it of strides, padding, data format, window and dilation.
        """
        data_format, around = "NCHW" if self.first else "NHWC", self.padding()
        if len(self.size) == 3:
            return self._deep(op, x, around)
        steps, pads, _, size = of_two(self.steps, around, data_format, self.size)
        spread = self.spread if len(self.size) == 2 else (1, *self.spread)
        made = op(steps, pads, data_format, size, spread)
        if len(self.size) == 2:
            return apply(made, x)
        at = self.axes()[0]
        return apply(Squeeze((at,)), apply(made, expand_dims(x, at)))

    def _deep(self, op: Callable[..., Pool], x: Tensor, around: Any) -> Tensor:
        """Over height and width with the depth as images, then over the depth."""
        whole: Any = isinstance(around, str)
        flat, deep = (around, around) if whole else (around[1:], (around[0], (0, 0)))
        x = moveaxis(x, 1, -1) if self.first else x
        n, depth = x.shape[0], x.shape[1]
        (stride, *steps), (window, *size), (far, *spread) = self.steps, self.size, self.spread
        made = op(tuple(steps), flat, "NHWC", tuple(size), tuple(spread))
        each = apply(made, merged(x, 0))
        y = parted(each, 0, n, depth)
        height, width = y.shape[2:4]
        y = apply(op((stride, 1), deep, "NHWC", (window, 1), (far, 1)), merged(y, 2))
        y = parted(y, 2, height, width)
        return moveaxis(y, -1, 1) if self.first else y

    def _pads(self) -> Any:
        return (self.around,) * len(self.size) if isinstance(self.around, str) else self.around


def _moves(
    x: Tensor,
    window: Any,
    strides: Any,
    padding: Any,
    data_format: str,
    ceil_mode: bool = False,
    dilation: Any = 1,
) -> _Moves:
    """How a window moves, by the arguments of a pool."""
    rank = rank_of(x)
    size = numbers_of("window", window, rank)
    steps = size if strides is None else numbers_of("strides", strides, rank)
    first = format_of(data_format) == "NCHW"
    spread = numbers_of("dilation", dilation, rank)
    moves = _Moves(size, steps, padding_of(padding, rank), (0,) * rank, first, spread)
    return moves.reaching(x) if truth("ceil_mode", ceil_mode) else moves


def lp_pool(
    x: TensorLike,
    norm_type: float,
    window: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str = "NHWC",
    ceil_mode: bool = False,
) -> Tensor:
    """The norm of every window: (sum |x|**p)**(1/p).

    Parameters:
        x: an image, as for avg_pool; floating, ints and bools become float64.
        norm_type: p, a Python number > 0.
        window: an int >= 1, or one for each spatial axis.
        strides: likewise; None for those of the window.
        padding: as for avg_pool.
        data_format: "NHWC" or "NCHW".
        ceil_mode: as for avg_pool.

    Returns: an image of the channels and dtype of x.

    Raises: ShapeError if x has no spatial axes, or for another choice than these; DTypeError if x
        is complex; ValueError for another p.

    Gradient: dx = dy * sign(x) * (|x| / y)**(p - 1), 0 where y is 0.

    Source: PyTorch, torch.nn.functional.lp_pool2d.

    >>> gg.evaluate(gg.nn.lp_pool(np.array([[[3.0], [4.0]]]), 2, 2))
    array([[[5.]]])
    """
    POSITIVE_OR_INFINITE("norm_type", norm_type)
    (x,) = real_operands("lp_pool", x)
    moves = _moves(x, window, strides, padding, data_format, ceil_mode)
    size = absolute(x)
    if norm_type == float("inf"):
        return moves.largest(size)
    widths = [(0, 0)] * x.ndim
    if moves.around != "VALID" or any(more != 0 for more in moves.beyond):
        for axis, e in zip(moves.axes(), moves.extents(x), strict=True):
            widths[axis] = (e.low, e.high)
    moves = moves._replace(around="VALID", beyond=(0,) * len(moves.size))

    def norms(size: Tensor) -> Tensor:
        total = moves.means(apply(Pad(tuple(widths)), size**norm_type)) * prod(moves.size)
        some = greater(total, 0)
        return where(some, where(some, total, 1.0) ** (1.0 / norm_type), 0.0)

    return rounded_once(norms, size)


# --- places ------------------------------------------------------------------------------------


def max_pool_with_indices(
    x: TensorLike,
    window: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str = "NHWC",
    ceil_mode: bool = False,
    dilation: Any = 1,
) -> tuple[Tensor, Tensor]:
    """max_pool, and where in the image the largest element of every window is.

    Parameters:
        x: an image, as for max_pool.
        window: an int >= 1, or one for each spatial axis.
        strides: likewise; None for those of the window.
        padding: as for max_pool.
        data_format: "NHWC" or "NCHW".
        ceil_mode, dilation: as for max_pool.

    Returns: the pool; int64 of its shape, the place of the first largest element among those of its
        example and channel, in row-major order.

    Raises: ShapeError if x has no spatial axes, a length depends on values, or for another choice
        than these; DTypeError if x is bool or complex.

    Gradient: that of max_pool; none through the places.

    Source: PyTorch, torch.nn.functional.max_pool2d_with_indices.

    >>> y, places = gg.nn.max_pool_with_indices(np.array([[[1.0], [5.0], [2.0], [3.0]]]), 2)
    >>> gg.evaluate(places)[0, :, 0]
    array([1, 3])
    """
    x = as_tensor(x)
    moves = _moves(x, window, strides, padding, data_format, ceil_mode, dilation)
    y = moves.largest(x)
    extents, axes = moves.extents(x), moves.axes()
    widths = [(0, 0)] * x.ndim
    for axis, e in zip(axes, extents, strict=True):
        widths[axis] = (e.low, e.high)
    padded = apply(Pad(tuple(widths), lowest(x.dtype)), x)
    places = zeros_like(y, dtype="int64")
    for place in reversed(list(product(*map(range, moves.size)))):
        at = [k * d for k, d in zip(place, moves.spread, strict=True)]
        starts = zip(at, moves.steps, extents, strict=True)
        cuts = [(k, k + at_least_0((e.out - 1) * s + 1), s) for k, s, e in starts]
        here = apply(Slice((FULL,) * axes[0] + tuple(cuts)), padded)
        fixed = all(isinstance(d, int) for cut in cuts for d in cut)
        inside, number = (_known_pixels if fixed else _open_pixels)(cuts, extents)
        if not moves.first:
            inside, number = expand_dims(inside, -1), expand_dims(number, -1)
        hit = logical_or(equal(here, y), isnan(here))
        places = where(logical_and(hit, inside), number, places)
    return y, places


def _known_pixels(cuts: Any, extents: Sequence[Extent]) -> tuple[Tensor, Tensor]:
    """For each place of a window that is cut out whether it is inside of the image, and the number
    of its pixel."""
    borders = [e.length for e in extents]
    lines = [np.arange(a, b, s) - e.low for (a, b, s), e in zip(cuts, extents, strict=True)]
    grid = np.meshgrid(*lines, indexing="ij")
    inside = np.all([(g >= 0) & (g < n) for g, n in zip(grid, borders, strict=True)], axis=0)
    number = np.ravel_multi_index(grid, borders, mode="clip") if all(borders) else grid[0]
    return constant(inside), constant(number, "int64")


def _open_pixels(cuts: Any, extents: Sequence[Extent]) -> tuple[Tensor, Tensor]:
    """The same, where lengths are open."""
    inside, number = constant(True), constant(0, "int64")
    for axis, ((a, b, s), e) in enumerate(zip(cuts, extents, strict=True), 1):
        line = expand_dims(arange(a, b, s) - e.low, tuple(range(1, 1 + len(extents) - axis)))
        inside = logical_and(inside, logical_and(line >= 0, less(line, e.length)))
        number = number * e.length + clip(line, 0, Length.max(e.length - 1, 0))
    return inside, number


def max_unpool(
    x: TensorLike, indices: TensorLike, output_size: Any, data_format: str = "NHWC"
) -> Tensor:
    """Zeros, with the elements of x at the places that max_pool_with_indices gave.

    Parameters:
        x: an image of known lengths but for N; any dtype but bool.
        indices: integers of the shape of x; what names a place twice gives it the mean.
        output_size: the spatial lengths of the result, an int for each axis.
        data_format: "NHWC" or "NCHW".

    Returns: an image of these lengths, dtype of x.

    Raises: ShapeError where the shapes do not fit; DTypeError for indices that are not integers. A
        run raises IndexError for one that is out of bounds.

    Gradient: dx = dy at the places, in shares where one is named twice.

    Source: PyTorch, torch.nn.functional.max_unpool2d.

    >>> gg.evaluate(gg.nn.max_unpool([[[5.0], [3.0]]], [[[1], [3]]], 4))[0, :, 0]
    array([0., 5., 0., 3.])
    """
    x, places = as_tensor(x), as_places(as_tensor(indices))
    rank, first = rank_of(x), format_of(data_format) == "NCHW"
    size = sizes_of("output_size", output_size, rank, least=0)
    if kind_of(places.dtype) not in "iu":
        raise DTypeError(f"places are integers, got {places.type!r}")
    if places.shape != x.shape:
        raise ShapeError(
            f"max_unpool of {x.type!r} takes places of the same shape, got {places.type!r}"
        )
    at = 2 if first else 1
    flat, where_to = (_flat(t, at, rank) for t in (x, places))
    if flat.shape[at] == 0:
        raise ShapeError(f"max_unpool of {x.type!r}: it is empty")
    empty = _emptied(flat, at, prod(size))
    total = apply(ScatterElements(at), empty, where_to, flat)
    times = apply(ScatterElements(at), empty, where_to, like(1, flat) + zeros_like(flat))
    y = total / where(greater(times, 1), times, like(1, times))
    return parted(y, at, *size)


def _flat(t: Tensor, at: int, rank: int) -> Tensor:
    """An image with its spatial axes as one."""
    for _ in range(rank - 1):
        t = merged(t, at)
    return t


def _emptied(x: Tensor, axis: int, count: Any) -> Tensor:
    """Zeros in the shape of x, but of that length along an axis."""
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    if None not in shape:
        return full(shape, 0, dtype=x.dtype)
    line = zeros_like(apply(Slice((FULL,) * axis + ((None, 1, None),)), x))
    return take(line, full(count, 0, "int64"), axis)


# --- adaptive ----------------------------------------------------------------------------------


def adaptive_avg_pool(x: TensorLike, output_size: Any, data_format: str = "NHWC") -> Tensor:
    """Means over the requested number of windows; of 1, the mean of the whole image.

    Window i of m along a length n goes from floor(i n / m) to ceil((i + 1) n / m).

    Parameters:
        x: an image of one to three spatial axes; floating, ints and bools become float64.
        output_size: an int >= 1 or a length, or one, or None for the length as it is, for each
            spatial axis.
        data_format: "NHWC" or "NCHW".

    Returns: an image of these lengths, of the channels and dtype of x.

    Raises: ShapeError if x has no spatial axes or a length is 0, which a run raises where it is
        open, or for another choice than these; DTypeError if x is complex.

    Gradient: dx = dy in equal shares to each window, added up where windows overlap.

    Source: PyTorch, torch.nn.functional.adaptive_avg_pool2d.

    >>> gg.evaluate(gg.nn.adaptive_avg_pool(np.arange(5.0).reshape(1, 5, 1), 2))[0, :, 0]
    array([1., 3.])
    """
    (x,) = promoted(x, floating=True)
    even = _even(x, output_size, data_format)
    if even is not None:
        return even.means(x)
    for axis, count in _wanted(x, output_size, data_format):
        if x.shape[axis] == count:
            continue
        taken, inside = _windows(x, axis, count)
        total = sum(where(inside, taken, like(0, x)), axis + 1)
        numbers = inside.sum(1)
        numbers = numbers if isinstance(numbers, Tensor) else constant(numbers)
        behind = tuple(range(numbers.ndim, total.ndim - axis))
        x = total / expand_dims(cast(numbers, x.dtype), behind)
    return x


def adaptive_max_pool(x: TensorLike, output_size: Any, data_format: str = "NHWC") -> Tensor:
    """The largest elements of the requested number of windows, those of adaptive_avg_pool.

    Parameters:
        x: an image of one to three spatial axes; integer or floating.
        output_size: an int >= 1 or a length, or one, or None for the length as it is, for each
            spatial axis.
        data_format: "NHWC" or "NCHW".

    Returns: an image of these lengths, of the channels and dtype of x.

    Raises: ShapeError if x has no spatial axes or a length is 0, which a run raises where it is
        open, or for another choice than these; DTypeError if x is bool or complex.

    Gradient: dx = dy to the first largest element of each window, added up where windows overlap.

    Source: PyTorch, torch.nn.functional.adaptive_max_pool2d.

    >>> gg.evaluate(gg.nn.adaptive_max_pool(np.arange(5.0).reshape(1, 5, 1), 2))[0, :, 0]
    array([2., 4.])
    """
    x = as_tensor(x)
    even = _even(x, output_size, data_format)
    if even is not None:
        return even.largest(x)
    for axis, count in reversed(_wanted(x, output_size, data_format)):
        if x.shape[axis] != count:
            x = _at(x, _best(x, axis, count), axis, count)
    return x


def adaptive_max_pool_with_indices(
    x: TensorLike, output_size: Any, data_format: str = "NHWC"
) -> tuple[Tensor, Tensor]:
    """adaptive_max_pool, and where in the image the largest element of every window is.

    Parameters:
        x, output_size, data_format: as for adaptive_max_pool.

    Returns: the pool; int64 of its shape, the place of the first largest element among those of its
        example and channel, in row-major order.

    Raises: as adaptive_max_pool.

    Gradient: that of adaptive_max_pool; none through the places.

    Source: PyTorch, torch.nn.functional.adaptive_max_pool2d_with_indices.

    >>> x = np.arange(5.0).reshape(1, 5, 1)
    >>> gg.evaluate(gg.nn.adaptive_max_pool_with_indices(x, 2)[1])[0, :, 0]
    array([2, 4])
    """
    x = as_tensor(x)
    even = _even(x, output_size, data_format)
    if even is not None:
        return max_pool_with_indices(x, even.size, data_format=data_format)
    wanted = _wanted(x, output_size, data_format)
    start, stop = wanted[0][0], wanted[-1][0] + 1
    lengths = [told_length("an adaptive pool", x, axis) for axis in range(start, stop)]
    numbers = reshape(arange(prod(lengths)), (*lengths, *(1,) * (x.ndim - stop)))
    places = broadcast_like(numbers, x)
    for axis, count in reversed(wanted):
        best = _best(x, axis, count)
        x, places = _at(x, best, axis, count), _at(places, best, axis, count)
    return x, places


def _best(x: Tensor, axis: int, count: Any) -> Tensor:
    """Where in each window along an axis the first largest element is."""
    taken, inside = _windows(x, axis, count)
    return argmax(where(inside, taken, like(lowest(x.dtype), x)), axis + 1, True)


def _at(x: Tensor, best: Tensor, axis: int, count: Any) -> Tensor:
    """The elements there."""
    taken, _ = _windows(x, axis, count)
    return squeeze(take_along_axis(taken, best, axis=axis + 1), axis + 1)


def _wanted(x: Tensor, output_size: Any, data_format: str) -> list[tuple[int, Any]]:
    """(axis, number of windows) of each spatial axis."""
    rank, first = rank_of(x), format_of(data_format) == "NCHW"
    given = tuple(output_size) if isinstance(output_size, tuple | list) else (output_size,) * rank
    start = 2 if first else 1
    lengths = [told_length("an adaptive pool", x, start + i) for i in range(rank)]
    if len(given) == rank:
        given = tuple(n if g is None else g for g, n in zip(given, lengths, strict=True))
    counts = sizes_of("output_size", given, rank, least=0 if Length in map(type, given) else 1)
    if 0 in lengths:
        raise ShapeError(f"an adaptive pool of {x.type!r}: it is empty")
    return [(start + i, n) for i, n in enumerate(counts)]


def _even(x: Tensor, output_size: Any, data_format: str) -> _Moves | None:
    """Windows side by side, where they are so."""
    wanted = _wanted(x, output_size, data_format)
    lengths = [told_length("an adaptive pool", x, axis) for axis, _ in wanted]
    if any(isinstance(n, Length) for n in (*lengths, *[count for _, count in wanted])):
        return None
    if any(n % count for n, (_, count) in zip(lengths, wanted, strict=True)):
        return None
    size = tuple(n // count for n, (_, count) in zip(lengths, wanted, strict=True))
    return _moves(x, size, None, "VALID", data_format)


def _windows(x: Tensor, axis: int, count: Any) -> tuple[Tensor, Any]:
    """x with an axis as (windows, places in the longest of them), and which places are inside."""
    n = told_length("an adaptive pool", x, axis)
    if isinstance(n, Length) or isinstance(count, Length):
        return _open_windows(x, axis, n, count)
    i = np.arange(count)
    starts, ends = i * n // count, -(-(i + 1) * n // count)
    places = starts[:, None] + np.arange((ends - starts).max())
    inside = places < ends[:, None]
    shape = (*inside.shape, *(1,) * (x.ndim - axis - 1))
    return take(x, np.minimum(places, n - 1), axis), inside.reshape(shape)


def _open_windows(x: Tensor, axis: int, n: Any, count: Any) -> tuple[Tensor, Tensor]:
    """The same, where lengths are open; the longest window may have a place that none is inside."""
    if not at_least(n, 1):
        x = apply(EnsureLength(axis, 1, "an adaptive pool"), x)
    i = counting(count)
    starts, ends = i * n // count, -(-(i + 1) * n // count)
    longest = Length.ceil_div(n, count) + (0 if n % count == 0 else 1)
    places = expand_dims(starts, 1) + arange(longest)
    inside = less(places, expand_dims(ends, 1))
    behind = tuple(range(2, x.ndim - axis + 1))
    return take(x, minimum(places, Length.max(n - 1, 0)), axis), expand_dims(inside, behind)
