"""Resizing by interpolation along each axis, and sampling at grid points."""

from __future__ import annotations

import math
from functools import reduce
from itertools import product

from ...base.bounds import at_least
from ...base.errors import ShapeError
from ...base.flags import truth
from ...base.length import Length
from ..base import (
    Any,
    Array,
    DType,
    Tensor,
    TensorLike,
    apply,
    as_dtype,
    as_tensor,
    cast,
    constant,
    np,
    promoted,
)
from ..contract.products import matmul
from ..create.creation import arange, counting, meshgrid, ones_like
from ..elementwise.arithmetic import add
from ..elementwise.bounds import clip, maximum, minimum
from ..elementwise.logic import greater, greater_equal, less, logical_and, where
from ..elementwise.magnitudes import absolute
from ..elementwise.remainders import remainder
from ..elementwise.rounding import floor, rint
from ..reduce.sorting import take_along_axis
from ..shape.folding import merged
from ..shape.indexing import take
from ..shape.joining import stack
from ..shape.padding import EnsureLength
from ..shape.reshaping import broadcast_to, expand_dims, matrix_transpose, moveaxis, reshape
from .moving_windows import format_of, rank_of, sizes_of
from .operands import check_real, one_of, real_operands, told_length
from .pools import adaptive_avg_pool

__all__ = ["affine_grid", "grid_sample", "interpolate"]

MODES = ("nearest", "nearest-exact", "linear", "cubic", "area")
SAME_MODE = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
FINEST = 1024
"""The parts of 1 that a factor of an open length is counted in, so that it is not rounded."""
CUBIC = -0.75
"""The parameter a of the cubic kernel, as PyTorch and OpenCV have it."""


def interpolate(
    x: TensorLike,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool = False,
    data_format: str = "NHWC",
) -> Tensor:
    """An image in another size, of one to three spatial axes.

    Parameters:
        x: an image; floating, ints and bools become float64.
        size: the spatial lengths of the result, an int or a length for all or one for each axis.
        scale_factor: instead of size: how much longer, a number > 0 for all or one for each axis;
            lengths are rounded down, and the factor is that of the coordinates. Of an open length a
            multiple of 1/1024.
        mode: "nearest" (the pixel before), "nearest-exact", "linear" (also called "bilinear",
            "trilinear"), "cubic" ("bicubic"), or "area" (means, as adaptive_avg_pool).
        align_corners: for linear and cubic: whether the centres of the outermost pixels stay where
            they are; else their outer edges do.
        data_format: "NHWC" or "NCHW".

    Returns: an image of the channels and dtype of x.

    Raises: ShapeError for an image without pixels, or sizes that do not fit; ValueError for an
        unknown mode, or for both or none of size and scale_factor; DTypeError if x is complex.

    Gradient: the adjoint of the linear map.

    Source: PyTorch, torch.nn.functional.interpolate; the cubic kernel: Keys 1981, "Cubic
        convolution interpolation for digital image processing".

    >>> gg.evaluate(gg.nn.interpolate(np.array([[[0.0], [4.0]]]), 4, mode="linear"))[0, :, 0]
    array([0., 1., 3., 4.])
    """
    truth("align_corners", align_corners)
    (x,) = real_operands("interpolate", x)
    mode = SAME_MODE.get(mode, mode)
    one_of("mode", mode, MODES)
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate takes size or scale_factor, and not both")
    rank, start = rank_of(x), 2 if format_of(data_format) == "NCHW" else 1
    lengths = [told_length("interpolate", x, start + a) for a in range(rank)]
    scales = _scales(scale_factor, rank)
    if size is None:
        size = tuple(scaled_length(n, s) for n, s in zip(lengths, scales, strict=True))
    sizes = sizes_of("size", size, rank, least=0 if Length in map(type, lengths) else 1)
    if 0 in lengths:
        raise ShapeError(f"interpolate of {x.type!r}: it is empty")
    if mode == "area":
        return adaptive_avg_pool(x, sizes, data_format)
    for axis, (n, m, s) in enumerate(zip(lengths, sizes, scales, strict=True), start):
        if n == m and (s is None or isinstance(n, Length) or n * s == m):
            continue
        if not at_least(n, 1):
            x = apply(EnsureLength(axis, 1, "interpolate"), x)
        x = resized(x, axis, _taps(mode, n, m, s, align_corners))
    return x


def scaled_length(n: Any, s: float) -> Any:
    """n * s, rounded down."""
    if not isinstance(n, Length):
        return math.floor(n * s)
    over, under = float(s).as_integer_ratio()
    if under > FINEST:
        raise ShapeError(
            f"scale_factor={s} of the open length {n}is not a multiple of 1/{FINEST}, so it would "
            f"be rounded differently for each length; give size=({n})*a//b"
        )
    return n * over // under


def _scales(given: Any, rank: int) -> tuple[Any, ...]:
    """A factor for each axis; None where sizes are given."""
    values = tuple(given) if isinstance(given, tuple | list) else (given,) * rank
    if len(values) != rank or (given is not None and not all(v > 0 for v in values)):
        raise ShapeError(f"scale_factor: {rank} numbers > 0, or one for all, got {given!r}")
    return values


def _taps(mode: str, n: Any, m: Any, scale: float | None, align: bool) -> list[tuple[Any, Any]]:
    """For m places along a length of n: which are taken, with which weights (None: of 1).

    They are arrays of NumPy, or tensors where a length is open.
    """
    fixed = isinstance(n, int) and isinstance(m, int)
    xp: Any = np if fixed else _Open
    last = Length.max(n - 1, 0)
    i = xp.arange(m) * 1.0
    step = 1.0 / scale if scale is not None else n / Length.max(m, 1)
    if mode.startswith("nearest"):
        at = xp.floor((i + 0.5) * step if mode == "nearest-exact" else i * step)
        return [(xp.clip(at, 0, last), None)]
    if align:
        at = i * (last / Length.max(m - 1, 1))
    else:
        at = (i + 0.5) * step - 0.5
    at = xp.maximum(at, 0) if mode == "linear" else at
    low = xp.floor(at)
    t = at - low
    if mode == "linear":
        low = xp.minimum(low, last)
        t = xp.minimum(at - low, 1)
        weights, first = (1 - t, t), 0
    else:
        weights, first = _cubic(t), -1
    return [(xp.clip(low + k, 0, last), w) for k, w in enumerate(weights, first)]


class _Open:
    """The functions that places and weights are made of, for tensors."""

    arange, floor, clip = counting, floor, clip
    maximum, minimum = maximum, minimum


def _cubic(t: Any) -> tuple[Any, ...]:
    """Keys' weights of the pixels at -1, 0, 1 and 2 for a point t behind that at 0."""
    a = CUBIC

    def near(s: Any) -> Any:
        return ((a + 2) * s - (a + 3)) * s * s + 1

    def far(s: Any) -> Any:
        return ((a * s - 5 * a) * s + 8 * a) * s - 4 * a

    return far(t + 1), near(t), near(1 - t), far(2 - t)


def resized(x: Tensor, axis: int, taps: list[tuple[Any, Any]]) -> Tensor:
    """The sum of what the taps take along an axis, times their weights."""
    after = tuple(range(1, x.ndim - axis))
    parts = []
    for places, weights in taps:
        part = take(x, _as(places, as_dtype("int64")), axis)
        if weights is not None:
            part = part * expand_dims(_as(weights, x.dtype), after)
        parts.append(part)
    return reduce(add, parts)


def _as(values: Any, dtype: DType) -> Tensor:
    """An array or a tensor as a tensor of this dtype."""
    return cast(values, dtype) if isinstance(values, Tensor) else constant(values.astype(dtype))


# --- grids -------------------------------------------------------------------------------------


def affine_grid(theta: TensorLike, size: Any, align_corners: bool = False) -> Tensor:
    """The points theta @ (x, y, 1) for each pixel (x, y) of an image, both from -1 to 1.

    Parameters:
        theta: (N, 2, 3), or (N, 3, 4) for three axes; floating, ints and bools become float64.
        size: the spatial lengths (H, W), or (D, H, W), ints and lengths.
        align_corners: whether -1 and 1 are the centres of the outermost pixels, or their outer
            edges.

    Returns: (N, H, W, 2), or (N, D, H, W, 3): points (x, y) or (x, y, z), for grid_sample.

    Raises: ShapeError where theta and size do not fit; DTypeError if theta is complex.

    Gradient: dtheta = the sum over pixels of dy times (x, y, 1).

    Source: Jaderberg et al. 2015, "Spatial transformer networks".

    >>> theta = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    >>> gg.evaluate(gg.nn.affine_grid(theta, (1, 2)))[0, 0]
    array([[-0.5,  0. ],
           [ 0.5,  0. ]])
    """
    truth("align_corners", align_corners)
    (theta,) = real_operands("affine_grid", theta)
    rank = len(size) if isinstance(size, tuple | list) else 0
    if rank not in (2, 3) or theta.ndim != 3 or theta.shape[1:] != (rank, rank + 1):
        raise ShapeError(
            f"affine_grid takes theta (N, 2, 3) and (H, W), or (N, 3, 4) and (D, H, W), got "
            f"{theta.type!r} and {size!r}"
        )
    sizes = sizes_of("size", size, rank)
    if any(isinstance(n, Length) for n in sizes):
        lines = meshgrid(*[_open_line(n, align_corners) for n in sizes], indexing="ij")
        grids = stack([*reversed(lines), ones_like(lines[0])], -1)
        points = cast(reshape(grids, (math.prod(sizes), rank + 1)), theta.dtype)
    else:
        known = np.meshgrid(*[_line(n, align_corners) for n in sizes], indexing="ij")
        rows = np.stack([*reversed(known), np.ones_like(known[0])], -1).reshape(-1, rank + 1)
        points = constant(rows, theta.dtype)
    grid = matmul(points, matrix_transpose(theta))
    count = theta.shape[0]
    return reshape(grid, (-1 if count is None else count, *sizes, rank))


def _line(n: int, align_corners: bool) -> Array:
    """n points from -1 to 1."""
    if align_corners:
        return np.linspace(-1, 1, n) if n > 1 else np.zeros(n)
    return (np.arange(n) * 2 + 1) / n - 1


def _open_line(n: Any, align_corners: bool) -> Tensor:
    if align_corners:
        line: Tensor = broadcast_to(arange(1 - n, n, 2), (n,)) / Length.max(n - 1, 1)
    else:
        line = (counting(n) * 2 + 1) / Length.max(n, 1) - 1.0
    return line


def grid_sample(
    x: TensorLike,
    grid: TensorLike,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
    data_format: str = "NHWC",
) -> Tensor:
    """The image at points: grid says where each pixel of the result is taken from.

    Parameters:
        x: (N, H, W, C), or (N, C, H, W) with data_format="NCHW", or with D in front of H;
            floating, ints and bools become float64.
        grid: (N, H', W', 2) of points (x, y) from -1 to 1, or (N, D', H', W', 3) of (x, y, z).
        mode: "bilinear" (in three axes: trilinear), "nearest" or, over two axes, "bicubic".
        padding_mode: what is outside: "zeros", "border" (the nearest pixel), or "reflection".
        align_corners: whether -1 and 1 are the centres of the outermost pixels, or their outer
            edges.
        data_format: "NHWC" or "NCHW".

    Returns: (N, H', W', C), or (N, C, H', W'), or so with D'; dtypes promoted.

    Raises: ShapeError where the shapes do not fit, or there are no pixels; DTypeError for complex
        operands; ValueError for an unknown mode.

    Gradient: dx = dy added up where it was taken from; dgrid = dy times the slope of the image
        there, 0 for "nearest" and where the border holds a point.

    Source: Jaderberg et al. 2015, "Spatial transformer networks"; PyTorch,
        torch.nn.functional.grid_sample.

    >>> x = np.array([[[[0.0], [4.0]]]])
    >>> gg.evaluate(gg.nn.grid_sample(x, np.array([[[[0.0, 0.0]]]])))[0, 0, 0]
    array([2.])
    """
    truth("align_corners", align_corners)
    x, points = promoted(x, grid, floating=True)
    check_real("grid_sample", x)
    one_of("mode", mode, ("bilinear", "nearest", "bicubic"))
    one_of("padding_mode", padding_mode, ("zeros", "border", "reflection"))
    rank, first = rank_of(x), format_of(data_format) == "NCHW"
    if rank == 1 or points.ndim != rank + 2 or points.shape[-1] != rank:
        raise ShapeError(
            f"grid_sample takes (N, H, W, C) and points (N, H', W', 2), or three axes and 3, got "
            f"{x.type!r} and {points.type!r}"
        )
    if mode == "bicubic" and rank == 3:
        raise ValueError("grid_sample by 'bicubic' is for two spatial axes")
    x = moveaxis(x, 1, -1) if first else x
    lengths = tuple(told_length("grid_sample", x, 1 + a) for a in range(rank))
    if 0 in lengths:
        raise ShapeError(f"grid_sample of {x.type!r}: it is empty")
    for axis, n in enumerate(lengths, 1):
        if not at_least(n, 1):
            x = apply(EnsureLength(axis, 1, "grid_sample"), x)
    at = [_pixel(points[..., rank - 1 - a], n, align_corners) for a, n in enumerate(lengths)]
    sample = _Sampler(x, lengths, padding_mode, align_corners)
    y = sample.at(at, mode)
    return moveaxis(y, -1, 1) if first else y


def _pixel(t: Tensor, n: Any, align_corners: bool) -> Tensor:
    """Coordinates from -1 to 1 as places along a length of n."""
    half = _half(n - 1 if align_corners else n, t)
    place: Tensor = (t + 1.0) * half
    return place if align_corners else place - 0.5


def _half(n: Any, t: Tensor) -> Any:
    """n / 2, in the dtype of t where it is open."""
    return as_tensor(n, t.dtype) / 2.0 if isinstance(n, Length) else n / 2


class _Sampler:
    """An image (N, ..., C), and what is outside of it."""

    def __init__(
        self, x: Tensor, lengths: tuple[Any, ...], padding: str, align_corners: bool
    ) -> None:
        self._lengths, self._padding, self._align = lengths, padding, align_corners
        for _ in range(len(lengths) - 1):
            x = merged(x, 1)
        self._flat = x

    def at(self, places: list[Tensor], mode: str) -> Tensor:
        """The image at these places, one tensor of them for each axis."""
        if mode != "bicubic":
            places = [self._held(t, n) for t, n in zip(places, self._lengths, strict=True)]
        if mode == "nearest":
            return self._pick([_rounded(t) for t in places])
        before = [floor(t) for t in places]
        parts = [t - b for t, b in zip(places, before, strict=True)]
        weights: list[Any] = [(1.0 - t, t) if mode == "bilinear" else _cubic(t) for t in parts]
        start = 0 if mode == "bilinear" else -1
        terms = []
        for corner in product(range(len(weights[0])), repeat=len(places)):
            here = [b + float(k + start) for b, k in zip(before, corner, strict=True)]
            if mode == "bicubic":
                here = [self._held(t, n) for t, n in zip(here, self._lengths, strict=True)]
            weight = reduce(
                lambda a, b: a * b, [w[k] for w, k in zip(weights, corner, strict=True)]
            )
            terms.append(self._pick(here) * expand_dims(weight, -1))
        return reduce(add, terms)

    def _held(self, t: Tensor, n: Any) -> Tensor:
        """Places held inside the image, unless zeros are outside."""
        if self._padding == "zeros":
            return t
        last: Any = as_tensor(n - 1, t.dtype) if isinstance(n, Length) else n - 1.0
        if self._padding == "reflection":
            t = _reflected(t, (0.0, last) if self._align else (-0.5, last + 0.5))
        inside = logical_and(greater_equal(t, 0.0), less(t, last))
        return where(inside, t, clip(t, 0.0, last))

    def _pick(self, places: list[Tensor]) -> Tensor:
        """The pixels at whole places (floats), 0 outside."""
        number, inside = None, None
        for t, n in zip(places, self._lengths, strict=True):
            end = n if isinstance(n, Length) else float(n)
            here = logical_and(greater_equal(t, 0.0), less(t, end))
            index = cast(where(here, t, 0.0), "int64")
            number = index if number is None else number * n + index
            inside = here if inside is None else logical_and(inside, here)
        assert number is not None
        assert inside is not None
        rows = number
        for _ in range(number.ndim - 2):
            rows = merged(rows, 1)
        pixels = take_along_axis(self._flat, expand_dims(rows, -1), axis=1)
        count = number.shape[0]
        shape: Any = (-1 if count is None else count, *number.shape[1:], pixels.shape[-1])
        return where(expand_dims(inside, -1), reshape(pixels, shape), 0.0)


def _rounded(t: Tensor) -> Tensor:
    """The nearest integer, of two the even one."""
    return rint(t)


def _reflected(t: Tensor, ends: tuple[float, Any]) -> Tensor:
    """Places mirrored at both ends until they are between."""
    low, high = ends
    span = high - low
    if isinstance(span, Tensor):  # of one pixel 0: then all places are that
        some = where(greater(span, 0.0), span, 1.0)
        return where(greater(span, 0.0), _between(t, low, some), t * 0.0)
    return t * 0.0 if span == 0 else _between(t, low, span)


def _between(t: Tensor, low: float, span: Any) -> Tensor:
    away = remainder(absolute(t - low), 2 * span)
    return where(less(away, span), away, 2 * span - away) + low
