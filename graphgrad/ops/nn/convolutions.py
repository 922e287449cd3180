"""Convolution over one to three spatial axes, and its adjoint from small images to large ones.

Over one axis it is that over two with a height of 1. Over three, the places of the window along the
first are channels of an image of the other two: one convolution of kd times as many channels.
"""

from __future__ import annotations

from functools import reduce

from ...base.errors import ShapeError
from ...ir.types import is_negative
from ..base import Any, Tensor, TensorLike, apply, promoted, whole
from ..documented import documented
from ..elementwise.arithmetic import add
from ..shape.folding import merged, parted
from ..shape.joining import stack
from ..shape.padding import Pad
from ..shape.reshaping import Squeeze, expand_dims, moveaxis
from ..shape.slicing import FULL, Slice
from .conv2d import Conv2D, Conv2DBackpropInput
from .moving_windows import (
    Extent,
    at_least_0,
    extent,
    format_of,
    numbers_of,
    of_two,
    padding_of,
    rank_of,
)
from .operands import known_length, told_length

__all__ = ["conv", "conv_transpose"]


@documented(Conv2D)
def conv(
    x: TensorLike,
    filters: TensorLike,
    strides: Any = 1,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """Convolution over one to three spatial axes, as neural networks use the word: not flipped.

    z[n, i, j, o] = sum over k, l, c of x[n, i*s + k*d - p, j*s + l*d - p, c] * filters[k, l, c, o],
    with strides s, dilation d and p zeros before.

    Parameters:
        x: (N, H, W, C), or (N, C, H, W) with data_format="NCHW", or without H, or (N, D, H, W, C)
            with C known; floating or complex, ints and bools become float64.
        filters: (height, width, C / groups, out), without height where x has no H, with depth in
            front where it has D.
        strides: an int >= 1, or one for each spatial axis.
        padding: "SAME" (ceil(length / stride) outputs), "VALID", an int, or an int or a pair
            (before, after) for each spatial axis.
        data_format: "NHWC" or "NCHW".
        dilation: an int >= 1, or one for each spatial axis.
        groups: into how many parts the channels are split, each with filters of its own.

    Returns: z, an image of out channels; dtypes promoted.

    Raises: ShapeError if filters do not fit x, or for another choice than these.

    Source: Dumoulin and Visin 2016, "A guide to convolution arithmetic for deep learning".

    >>> gg.evaluate(gg.nn.conv(np.ones((1, 4, 1)), np.ones((3, 1, 1))))[0, :, 0]
    array([2., 3., 3., 2.])
    """
    x, w = promoted(x, filters, floating=True)
    rank, parts = rank_of(x), whole("groups", groups)
    if w.ndim != x.ndim:
        raise ShapeError(f"conv of {x.type!r} takes filters of {x.ndim} axes, got {w.type!r}")
    _check_groups(w, parts)
    steps, spread = numbers_of("strides", strides, rank), numbers_of("dilation", dilation, rank)
    around = padding_of(padding, rank)
    data_format = format_of(data_format)
    if rank == 3:
        return _deep(x, w, _Deep(steps, around, data_format, spread, parts))
    op = Conv2D(*of_two(steps, around, data_format, spread), parts)
    if rank == 2:
        return apply(op, x, w)
    at = 2 if data_format == "NCHW" else 1
    return apply(Squeeze((at,)), apply(op, expand_dims(x, at), expand_dims(w, 0)))


def _check_groups(w: Tensor, groups: int) -> None:
    if groups < 1 or (isinstance(w.shape[-1], int) and w.shape[-1] % groups):
        raise ShapeError(f"conv in {groups} groups makes as many outputs in each, got {w.type!r}")


def conv_transpose(
    x: TensorLike,
    filters: TensorLike,
    strides: Any = 1,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilation: Any = 1,
    groups: int = 1,
    output_padding: Any = 0,
) -> Tensor:
    """The adjoint of conv over one to three spatial axes: from small images to large ones.

    Parameters:
        x: (N, H, W, in), or (N, in, H, W) with data_format="NCHW", or without H, or with D in
            front of it; floating or complex, ints and bools become float64.
        filters: (height, width, out / groups, in), those of the convolution that goes back.
        strides: an int >= 1, or one for each spatial axis.
        padding: "SAME" (H * stride outputs), or "VALID", an int, or an int or a pair for each
            spatial axis (the least lengths that conv takes to H and W, and output_padding).
        data_format: "NHWC" or "NCHW".
        dilation: an int >= 1, or one for each spatial axis.
        groups: into how many parts the channels are split, each with filters of its own.
        output_padding: how much longer the result is, an int from 0 to below the stride, or one for
            each spatial axis; 0 with "SAME".

    Returns: an image of out channels; dtypes promoted.

    Raises: ShapeError for lengths that depend on values, operands that do not fit, or another
        choice than these.

    Gradient: of x the convolution conv of dz with filters; of filters that of the same conv, with
        dz for its image and x for its gradient.

    Source: Dumoulin and Visin 2016, "A guide to convolution arithmetic for deep learning", ch. 4.

    >>> gg.nn.conv_transpose(np.ones((1, 3, 3, 2)), np.ones((2, 2, 5, 2)), strides=2).shape
    (1, 6, 6, 5)
    """
    x, w = promoted(x, filters, floating=True)
    rank, parts = rank_of(x), whole("groups", groups)
    if w.ndim != x.ndim:
        raise ShapeError(
            f"conv_transpose of {x.type!r} takes filters of {x.ndim} axes, got {w.type!r}"
        )
    _check_groups(w, parts)
    data_format = format_of(data_format)
    channels = 1 if data_format == "NCHW" else x.ndim - 1
    c, into = x.shape[channels], w.shape[-1]
    if isinstance(c, int) and isinstance(into, int) and c != into:
        raise ShapeError(
            f"conv_transpose of {c} channels takes filters of shape (height, width, out, {c}), "
            f"got {x.type!r} and {w.type!r}"
        )
    steps, spread = numbers_of("strides", strides, rank), numbers_of("dilation", dilation, rank)
    around = padding_of(padding, rank)
    small = x.shape[2:] if data_format == "NCHW" else x.shape[1:-1]
    window = w.shape[:rank]
    if None in (*small, *window):
        raise ShapeError(
            f"conv_transpose takes lengths that do not depend on values, got {x.type!r} and "
            f"{w.type!r}"
        )
    more = numbers_of("output_padding", output_padding, rank, least=0)
    size = _grown(small, window, steps, around, spread, more)
    if rank == 3:
        return _deep_back(x, w, _Deep(steps, around, data_format, spread, parts), size)
    op = Conv2D(*of_two(steps, around, data_format, spread), parts)
    if rank == 2:
        return apply(Conv2DBackpropInput(*op.attributes(), size), w, x)
    at = 2 if data_format == "NCHW" else 1
    back = Conv2DBackpropInput(*op.attributes(), (1, size[0]))
    return apply(Squeeze((at,)), apply(back, expand_dims(w, 0), expand_dims(x, at)))


def _grown(
    small: Any, window: Any, strides: Any, padding: Any, dilation: Any, more: Any
) -> tuple[Any, ...]:
    """The lengths that a convolution takes to the small ones: by "SAME" the greatest, else the
    least, and `more`.
    """
    if any(m >= s for m, s in zip(more, strides, strict=True)) or (padding == "SAME" and any(more)):
        raise ShapeError(
            f"output_padding is below the stride, and 0 with 'SAME' padding; got {more} with "
            f"strides {strides} and padding {padding}"
        )
    if padding == "SAME":
        return tuple(n * s for n, s in zip(small, strides, strict=True))
    pads = ((0, 0),) * len(small) if isinstance(padding, str) else padding
    parts = zip(small, strides, window, dilation, pads, more, strict=True)
    size = tuple(
        (n - 1) * s + (k - 1) * d + 1 - low - high + m for n, s, k, d, (low, high), m in parts
    )
    if any(is_negative(n) for n in size):
        raise ShapeError(f"conv_transpose of lengths {tuple(small)} is padded to {size}")
    return size


# --- three axes --------------------------------------------------------------------------------


class _Deep:
    """A convolution over depth, height and width: depth by itself, and the op over the others."""

    def __init__(
        self, strides: Any, padding: Any, data_format: str, dilation: Any, groups: int
    ) -> None:
        self.stride, self.dilation, self.groups = strides[0], dilation[0], groups
        self.padding = padding if isinstance(padding, str) else padding[0]
        self.first = data_format == "NCHW"
        flat = padding if isinstance(padding, str) else padding[1:]
        self.op = Conv2D(strides[1:], flat, "NHWC", dilation[1:], groups)

    def last(self, x: Tensor) -> Tensor:
        """An image with its channels last."""
        return moveaxis(x, 1, -1) if self.first else x

    def back(self, x: Tensor) -> Tensor:
        """An image in the given format again."""
        return moveaxis(x, -1, 1) if self.first else x

    def over(self, depth: Any, window: int) -> Extent:
        """The extent of the depth."""
        return extent(depth, window, self.stride, self.dilation, self.padding)

    def cut(self, place: int, out: Any) -> Any:
        """Where a place of the window stands along the padded depth, for each output."""
        start = place * self.dilation
        return (FULL, (start, start + at_least_0((out - 1) * self.stride + 1), self.stride))


def _flat_filters(w: Tensor) -> Tensor:
    """(depth, height, width, in, out) as (height, width, depth * in, out)."""
    return merged(moveaxis(w, 0, 2), 2)


def _deep(x: Tensor, w: Tensor, over: _Deep) -> Tensor:
    x = over.last(x)
    depth, c = told_length("conv", x, 1), known_length("conv", x, 4)
    window = known_length("conv", w, 0)
    if c % over.groups:
        raise ShapeError(f"conv of {c} channels in {over.groups} groups, got {x.type!r}")
    e = over.over(depth, window)
    x = apply(Pad(((0, 0), (e.low, e.high), (0, 0), (0, 0), (0, 0))), x)
    x = parted(x, 4, over.groups, c // over.groups)
    places = [apply(Slice(over.cut(k, e.out)), x) for k in range(window)]
    together = merged(merged(stack(places, -2), 5), 4)
    z = apply(over.op, merged(together, 0), _flat_filters(w))
    return over.back(parted(z, 0, x.shape[0], e.out))


def _deep_back(x: Tensor, w: Tensor, over: _Deep, size: tuple[Any, ...]) -> Tensor:
    x = over.last(x)
    window, per_group = known_length("conv_transpose", w, 0), known_length("conv_transpose", w, 3)
    e = over.over(size[0], window)
    back = Conv2DBackpropInput(*over.op.attributes(), size[1:])
    flat = apply(back, _flat_filters(w), merged(x, 0))
    flat = parted(flat, 4 - 1, over.groups, window, per_group)
    given = parted(flat, 0, x.shape[0], e.out)  # (N, D', H, W, groups, window, out / groups)
    total = size[0] + e.low + e.high
    pieces = [
        _spread(apply(Slice((FULL,) * 5 + (k,)), given), over, k, total) for k in range(window)
    ]
    inside = apply(Slice((FULL, (e.low, e.low + size[0], None))), reduce(add, pieces))
    return over.back(merged(inside, 4))


def _spread(piece: Tensor, over: _Deep, place: int, total: Any) -> Tensor:
    """The adjoint of cutting one place of the window out of the padded depth."""
    rest = [(0, 0)] * (piece.ndim - 2)
    out, stride = told_length("conv_transpose", piece, 1), over.stride
    if stride > 1:
        piece = apply(Pad(((0, 0), (0, 0), (0, stride - 1), *rest)), expand_dims(piece, 2))
        piece = apply(Slice((FULL, (None, (out - 1) * stride + 1, None))), merged(piece, 1))
    before = place * over.dilation
    length = at_least_0((out - 1) * stride + 1)
    return apply(Pad(((0, 0), (before, total - before - length), *rest)), piece)
