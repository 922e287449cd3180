"""Fractional max-pooling, whose windows start at random positions."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod

from ...base.errors import ShapeError
from ...ir.types import size_of
from ..base import (
    Any,
    DTypeError,
    Tensor,
    TensorLike,
    as_tensor,
    cast,
    constant,
    is_floating,
    kind_of,
    np,
)
from ..elementwise.arithmetic import add
from ..elementwise.logic import where
from ..elementwise.rounding import floor
from ..random.continuous import uniform
from ..reduce.reductions import argmax
from ..reduce.sorting import take_along_axis
from ..shape.folding import merged, parted
from ..shape.indexing import getitem
from ..shape.joining import concat
from ..shape.reshaping import expand_dims, moveaxis, squeeze
from .moving_windows import format_of, numbers_of, rank_of
from .operands import known_length

__all__ = ["fractional_max_pool", "fractional_max_pool_with_indices"]


def fractional_max_pool(
    x: TensorLike,
    window: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    data_format: str = "NHWC",
    *,
    samples: TensorLike | None = None,
    seed: TensorLike | None = None,
) -> Tensor:
    """The largest element of windows that begin at random places, some 1 / ratio apart.

    Window i of m along a length n begins at floor((i + u) a) - floor(u a), a = (n - window) /
    (m - 1), with u in [0, 1) drawn for each axis of each channel; the last at n - window.

    Parameters:
        x: an image of one to three spatial axes, of known lengths but for N; integer or floating.
        window: an int >= 1, or one for each spatial axis.
        output_size: how many windows, likewise; None: by the ratio.
        output_ratio: that number as a part of the length, 0 < ratio < 1, or one for each axis.
        data_format: "NHWC" or "NCHW".
        samples: the numbers u, (N, C, number of spatial axes); None: they are drawn.
        seed: for drawing, an int or a scalar integer tensor. None: other windows in every run.

    Returns: an image of these lengths, of the channels and dtype of x.

    Raises: ShapeError unless one of output_size and output_ratio is given, if so many windows do
        not fit, if samples have another shape, or as for max_pool; DTypeError if x is bool or
        complex.

    Gradient: dx = dy to the first largest element of each window, added up where windows overlap.

    Source: Graham 2014, "Fractional max-pooling"; places as by PyTorch,
        torch.nn.functional.fractional_max_pool2d.

    >>> x = np.arange(10.0).reshape(1, 10, 1)
    >>> y = gg.nn.fractional_max_pool(x, 2, 5, samples=[[[0.5]]])
    >>> gg.evaluate(y)[0, :, 0]
    array([1., 3., 5., 7., 9.])
    """
    x, places, image = _largest(x, window, output_size, output_ratio, data_format, samples, seed)
    return image(take_along_axis(x, places, axis=2))


def fractional_max_pool_with_indices(
    x: TensorLike,
    window: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    data_format: str = "NHWC",
    *,
    samples: TensorLike | None = None,
    seed: TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    """fractional_max_pool, and where in the image the largest element of every window is.

    Parameters:
        x, window, output_size, output_ratio, data_format, samples, seed: as for
            fractional_max_pool.

    Returns: the pool; int64 of its shape, the place of the first largest element among those of its
        example and channel, in row-major order.

    Raises: as fractional_max_pool.

    Gradient: that of fractional_max_pool; none through the places.

    Source: PyTorch, torch.nn.functional.fractional_max_pool2d_with_indices.

    >>> x = np.arange(10.0).reshape(1, 10, 1)
    >>> y = gg.nn.fractional_max_pool_with_indices(x, 2, 3, samples=[[[0.5]]])
    >>> gg.evaluate(y[1])[0, :, 0]
    array([1, 5, 9])
    """
    x, places, image = _largest(x, window, output_size, output_ratio, data_format, samples, seed)
    return image(take_along_axis(x, places, axis=2)), image(places)


def _largest(
    x: TensorLike,
    window: Any,
    output_size: Any,
    output_ratio: Any,
    data_format: str,
    samples: Any,
    seed: Any,
) -> tuple[Tensor, Tensor, Callable[[Tensor], Tensor]]:
    """x as (N, C, places), the place of the largest element of each window, (N, C, windows), and
    what makes an image in the data format of such a tensor.
    """
    x = as_tensor(x)
    rank, first = rank_of(x), format_of(data_format) == "NCHW"
    if kind_of(x.dtype) not in "iuf":
        raise DTypeError(f"a pool takes an integer or floating image, got {x.type!r}")
    x = x if first else moveaxis(x, -1, 1)
    lengths = [known_length("fractional_max_pool", x, 2 + i) for i in range(rank)]
    size = numbers_of("window", window, rank)
    counts = _counts(lengths, size, output_size, output_ratio)
    for _ in range(rank - 1):
        x = merged(x, 2)
    u = _samples(x, rank, samples, seed)
    under = _places(u, lengths, size, counts)  # (N, C, windows, places in a window)
    taken = parted(take_along_axis(x, merged(under, 2), axis=2), 2, prod(counts), prod(size))
    best = argmax(taken, 3, True)
    places = squeeze(take_along_axis(under, best, axis=3), 3)

    def image(t: Tensor) -> Tensor:
        y = parted(t, 2, *counts)
        return y if first else moveaxis(y, 1, -1)

    return x, places, image


def _counts(lengths: Any, size: Any, output_size: Any, output_ratio: Any) -> tuple[int, ...]:
    """The number of windows along each axis."""
    if (output_size is None) == (output_ratio is None):
        raise ShapeError("fractional_max_pool takes either output_size or output_ratio")
    rank = len(lengths)
    if output_ratio is not None:
        ratios = output_ratio if isinstance(output_ratio, tuple | list) else (output_ratio,) * rank
        if len(ratios) != rank or not all(0 < r < 1 for r in ratios):
            raise ShapeError(f"output_ratio: {rank} numbers in (0, 1), got {output_ratio!r}")
        output_size = tuple(max(int(n * r), 1) for n, r in zip(lengths, ratios, strict=True))
    counts = numbers_of("output_size", output_size, rank)
    if any(m + k - 1 > n for n, k, m in zip(lengths, size, counts, strict=True)):
        raise ShapeError(
            f"{counts} windows of {tuple(size)} do not fit into {tuple(lengths)}: along each axis "
            "their number and their length take number + length - 1 places"
        )
    return counts


def _samples(x: Tensor, rank: int, given: Any, seed: Any) -> Tensor:
    """A number for each spatial axis of each channel: (N, C, rank)."""
    if given is None and size_of(x.shape[:2]) is not None:
        return uniform((*x.shape[:2], rank), seed=seed)
    if given is None:
        one = getitem(x, (slice(None), slice(None), slice(1)))
        return uniform(concat([one] * rank, axis=2), seed=seed)
    u = as_tensor(given)
    wanted = (*x.shape[:2], rank)
    wrong = u.ndim != 3 or any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(u.shape, wanted, strict=True)
    )
    if wrong or not is_floating(u.dtype):
        raise ShapeError(f"samples are floating, of shape {wanted}, got {u.type!r}")
    return cast(u, "float64")


def _places(u: Tensor, lengths: Any, size: Any, counts: Any) -> Tensor:
    """Where each place of each window is: (N, C, windows, places in a window)."""
    rank = len(lengths)
    parts = []
    for axis, (n, k, m) in enumerate(zip(lengths, size, counts, strict=True)):
        starts = _starts(getitem(u, (slice(None), slice(None), slice(axis, axis + 1))), n, k, m)
        at = expand_dims(starts, 3) + constant(np.arange(k))
        others = [a for a in range(2, 2 + 2 * rank) if a not in (2 + axis, 2 + rank + axis)]
        parts.append(expand_dims(at, tuple(others)) * prod(lengths[axis + 1 :]))
    under: Tensor = reduce(add, parts)
    for _ in range(rank - 1):
        under = merged(under, 2)
    for _ in range(rank - 1):
        under = merged(under, 3)
    return under


def _starts(u: Tensor, length: int, window: int, count: int) -> Tensor:
    """Where the windows along an axis begin: (N, C, count)."""
    numbers = np.arange(count)
    apart = (length - window) / max(count - 1, 1)
    starts = floor((u + constant(numbers.astype("float64"))) * apart) - floor(u * apart)
    return where(constant(numbers < count - 1), cast(starts, "int64"), length - window)
