"""Pixel shuffles between channels and positions, and patches as rows."""

from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod

from ...base.errors import ShapeError
from ...ir.types import never_equal
from ..base import Any, Tensor, TensorLike, apply, as_tensor, whole
from ..elementwise.arithmetic import add
from ..shape.folding import merged, parted
from ..shape.joining import stack
from ..shape.padding import Pad
from ..shape.reshaping import moveaxis, permute_dims
from ..shape.slicing import FULL, Slice, Unslice
from .moving_windows import (
    at_least_0,
    extent,
    format_of,
    numbers_of,
    padding_of,
    rank_of,
    sizes_of,
)
from .operands import known_length, told_length

__all__ = ["channel_shuffle", "fold", "pixel_shuffle", "pixel_unshuffle", "unfold"]


def pixel_shuffle(x: TensorLike, upscale_factor: int, data_format: str = "NHWC") -> Tensor:
    """(N, H, W, C r r) as (N, H r, W r, C): channel c r r + i r + j is pixel (i, j) of channel c.

    Parameters:
        x: (N, H, W, C r r), or (N, C r r, H, W) with data_format="NCHW"; any dtype.
        upscale_factor: r, an int >= 1.
        data_format: "NHWC" or "NCHW".

    Returns: (N, H r, W r, C), or (N, C, H r, W r); dtype of x.

    Raises: ShapeError if x has no four axes, C is unknown, or r does not fit.

    Gradient: dx = pixel_unshuffle(dy, r).

    Source: Shi et al. 2016, "Real-time single image and video super-resolution using an efficient
        sub-pixel convolutional neural network".

    >>> gg.evaluate(gg.nn.pixel_shuffle(np.arange(4).reshape(1, 1, 1, 4), 2))[0, :, :, 0]
    array([[0, 1],
           [2, 3]])
    """
    x, r = _last(x, data_format), _factor("upscale_factor", upscale_factor)
    c = known_length("pixel_shuffle", x, 3)
    if c % (r * r):
        raise ShapeError(f"pixel_shuffle by {r} of {c} channels, got {x.type!r}")
    parts = permute_dims(parted(x, 3, c // (r * r), r, r), (0, 1, 4, 2, 5, 3))
    return _back(merged(merged(parts, 3), 1), data_format)


def pixel_unshuffle(x: TensorLike, downscale_factor: int, data_format: str = "NHWC") -> Tensor:
    """(N, H r, W r, C) as (N, H, W, C r r): what undoes pixel_shuffle.

    Parameters:
        x: (N, H r, W r, C), or (N, C, H r, W r) with data_format="NCHW"; any dtype.
        downscale_factor: r, an int >= 1.
        data_format: "NHWC" or "NCHW".

    Returns: (N, H, W, C r r), or (N, C r r, H, W); dtype of x.

    Raises: ShapeError if x has no four axes, or r does not fit.

    Gradient: dx = pixel_shuffle(dy, r).

    Source: PyTorch, torch.nn.functional.pixel_unshuffle.

    >>> gg.evaluate(gg.nn.pixel_unshuffle(np.arange(4).reshape(1, 2, 2, 1), 2))[0, 0, 0]
    array([0, 1, 2, 3])
    """
    x, r = _last(x, data_format), _factor("downscale_factor", downscale_factor)
    h, w = (told_length("pixel_unshuffle", x, a) for a in (1, 2))
    if any(isinstance(d % r, int) and d % r for d in (h, w)):
        raise ShapeError(f"pixel_unshuffle by {r} of {h} x {w} pixels, got {x.type!r}")
    parts = parted(parted(x, 2, w // r, r), 1, h // r, r)  # (N, H, r, W, r, C)
    parts = permute_dims(parts, (0, 1, 3, 5, 2, 4))
    return _back(merged(merged(parts, 3), 3), data_format)


def channel_shuffle(x: TensorLike, groups: int, data_format: str = "NHWC") -> Tensor:
    """Channels dealt out: those of each group, side by side, end `groups` apart.

    Parameters:
        x: (N, ..., C), or (N, C, ...) with data_format="NCHW"; any dtype.
        groups: an int >= 1 that divides C.
        data_format: "NHWC" or "NCHW".

    Returns: shape and dtype of x.

    Raises: ShapeError if x has less than two axes, C is unknown, or groups do not divide it.

    Gradient: dx = channel_shuffle(dy, C / groups).

    Source: Zhang et al. 2018, "ShuffleNet".

    >>> gg.evaluate(gg.nn.channel_shuffle([[0, 1, 2, 3, 4, 5]], 2))
    array([[0, 3, 1, 4, 2, 5]])
    """
    x, count = as_tensor(x), _factor("groups", groups)
    if x.ndim < 2:
        raise ShapeError(f"channel_shuffle takes examples with channels, got {x.type!r}")
    at = 1 if format_of(data_format) == "NCHW" else x.ndim - 1
    c = known_length("channel_shuffle", x, at)
    if c % count:
        raise ShapeError(f"channel_shuffle in {count} groups of {c} channels, got {x.type!r}")
    return merged(moveaxis(parted(x, at, count, c // count), at, at + 1), at)


def _factor(what: str, n: Any) -> int:
    factor = whole(what, n)
    if factor < 1:
        raise ShapeError(f"{what} is an int >= 1, got {factor}")
    return factor


def _last(x: TensorLike, data_format: str) -> Tensor:
    """An image of four axes with its channels last."""
    x = as_tensor(x)
    if x.ndim != 4:
        raise ShapeError(f"an image (N, H, W, C) is needed, got {x.type!r}")
    return moveaxis(x, 1, -1) if format_of(data_format) == "NCHW" else x


def _back(x: Tensor, data_format: str) -> Tensor:
    return moveaxis(x, -1, 1) if format_of(data_format) == "NCHW" else x


# --- windows as rows ---------------------------------------------------------------------------


def unfold(
    x: TensorLike,
    window: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    data_format: str = "NHWC",
    dilation: Any = 1,
) -> Tensor:
    """What is under a window at each of its places, as one row: a convolution's patches.

    In a row the places in the window follow each other, for one channel after the other.

    Parameters:
        x: an image of one to three spatial axes; any dtype.
        window: an int >= 1, or one for each spatial axis.
        strides, dilation: likewise.
        padding: as for conv; zeros.
        data_format: "NHWC" or "NCHW".

    Returns: (N, L, C * K) for L places of a window of K, or (N, C * K, L) with data_format="NCHW";
        dtype of x.

    Raises: ShapeError for lengths that depend on values, or for another choice than these.

    Gradient: dx = fold(dy), which adds up where windows overlap.

    Source: PyTorch, torch.nn.functional.unfold.

    >>> gg.evaluate(gg.nn.unfold(np.arange(4).reshape(1, 4, 1), 2))[0]
    array([[0, 1],
           [1, 2],
           [2, 3]])
    """
    x = as_tensor(x)
    rank, first = rank_of(x), format_of(data_format) == "NCHW"
    x = moveaxis(x, 1, -1) if first else x
    lengths = tuple(told_length("unfold", x, 1 + a) for a in range(rank))
    pads, cuts, _ = _cuts(lengths, window, strides, padding, dilation)
    padded = apply(Pad(((0, 0), *pads, (0, 0))), x)
    rows = stack([apply(Slice((FULL, *cut)), padded) for cut in cuts], -1)
    for _ in range(rank - 1):
        rows = merged(rows, 1)
    rows = merged(rows, 2)  # (N, L, C * K)
    return moveaxis(rows, 1, 2) if first else rows


def fold(
    x: TensorLike,
    output_size: Any,
    window: Any,
    strides: Any = 1,
    padding: Any = "VALID",
    data_format: str = "NHWC",
    dilation: Any = 1,
) -> Tensor:
    """Rows as of unfold added up to an image: the adjoint of unfold.

    Parameters:
        x: (N, L, C * K), or (N, C * K, L) with data_format="NCHW"; integer, floating or complex.
        output_size: the spatial lengths of the image, an int or a length for each axis, one to
            three.
        window: an int >= 1, or one for each spatial axis.
        strides, dilation: likewise.
        padding: as for conv; what falls there is dropped.
        data_format: "NHWC" or "NCHW".

    Returns: the image, of dtype of x.

    Raises: ShapeError for lengths that depend on values, rows that do not fit, or another choice
        than these.

    Gradient: dx = unfold(dy).

    Source: PyTorch, torch.nn.functional.fold.

    >>> gg.evaluate(gg.nn.fold(np.ones((1, 3, 2)), (4,), 2))[0, :, 0]
    array([1., 2., 2., 1.])
    """
    x = as_tensor(x)
    first = format_of(data_format) == "NCHW"
    if x.ndim != 3:
        raise ShapeError(f"fold takes rows (N, L, C * K), got {x.type!r}")
    x = moveaxis(x, 1, 2) if first else x
    size = tuple(output_size) if isinstance(output_size, tuple | list) else (output_size,)
    lengths = sizes_of("output_size", size, len(size), least=0)
    pads, cuts, out = _cuts(lengths, window, strides, padding, dilation)
    count, columns = (told_length("fold", x, a) for a in (1, 2))
    rest = columns % len(cuts)
    if never_equal(count, prod(out)) or (isinstance(rest, int) and rest):
        raise ShapeError(
            f"fold to {lengths} takes {prod(out)} rows of a multiple of {len(cuts)}, got {x.type!r}"
        )
    rows = parted(parted(x, 2, columns // len(cuts), len(cuts)), 1, *out)
    whole = tuple(n + low + high for n, (low, high) in zip(lengths, pads, strict=True))
    pieces = [
        _placed(apply(Slice((FULL,) * (rows.ndim - 1) + (k,)), rows), cut, whole)
        for k, cut in enumerate(cuts)
    ]
    inside = [(low, low + n, None) for n, (low, _) in zip(lengths, pads, strict=True)]
    image = apply(Slice((FULL, *inside)), reduce(add, pieces))
    return moveaxis(image, -1, 1) if first else image


def _cuts(lengths: Any, window: Any, strides: Any, padding: Any, dilation: Any) -> Any:
    """What is padded, for each place in the window where it stands, and the lengths of these."""
    rank = len(lengths)
    size = numbers_of("window", window, rank)
    steps, spread = numbers_of("strides", strides, rank), numbers_of("dilation", dilation, rank)
    around = padding_of(padding, rank)
    each = (around,) * rank if isinstance(around, str) else around
    parts = zip(lengths, size, steps, spread, each, strict=True)
    extents = [extent(*part) for part in parts]
    cuts = [
        tuple(
            (k * d, k * d + at_least_0((e.out - 1) * s + 1), s)
            for k, d, s, e in zip(place, spread, steps, extents, strict=True)
        )
        for place in product(*map(range, size))
    ]
    return [(e.low, e.high) for e in extents], cuts, tuple(e.out for e in extents)


def _placed(piece: Tensor, cut: Any, whole: tuple[Any, ...]) -> Tensor:
    """Zeros of these lengths, with the piece where it was cut."""
    n, c = piece.shape[0], piece.shape[-1]
    if n is not None and c is not None:
        return apply(Unslice((FULL, *cut), (n, *whole, c)), piece)
    for axis, ((start, stop, step), length) in enumerate(zip(cut, whole, strict=True), 1):
        piece = _spread(piece, axis, start, stop, step, length)
    return piece


def _spread(x: Tensor, axis: int, start: Any, stop: Any, step: int, length: Any) -> Tensor:
    """x with zeros between its places along an axis, and around."""
    if step > 1:
        x = parted(x, axis, told_length("fold", x, axis), 1)
        widths = [(0, 0)] * x.ndim
        widths[axis + 1] = (0, step - 1)
        x = merged(apply(Pad(tuple(widths)), x), axis)
        x = apply(Slice((*(FULL,) * axis, (None, stop - start, None))), x)
    widths = [(0, 0)] * x.ndim
    widths[axis] = (start, length - stop)
    return apply(Pad(tuple(widths)), x)
