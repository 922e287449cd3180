"""Bin indices and linear interpolation."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...base.flags import truth
from ...ir.types import compatible
from ..arrays.searching import searchsorted
from ..base import (
    Constant,
    Tensor,
    TensorLike,
    as_dtype,
    as_tensor,
    cast,
    kind_of,
    like,
    np,
    promoted,
)
from ..elementwise.bounds import maximum, minimum
from ..elementwise.logic import equal, greater, less, where
from ..elementwise.remainders import remainder
from ..reduce.reductions import size_over
from ..reduce.sorting import argsort
from ..shape.indexing import take
from ..shape.joining import concat
from ..shape.padding import flip

__all__ = ["digitize", "interp"]

INT64 = as_dtype("int64")


def digitize(x: TensorLike, bins: TensorLike, right: bool = False) -> Tensor:
    """The number of the bin that each element is in: i where bins[i - 1] <= x < bins[i].

    Parameters:
        x: any shape; bool, integer or floating.
        bins: one axis, in ascending or descending order.
        right: whether bins include their right end and not their left one.

    Returns: int64, the shape of x: 0 before all bins, the length of bins behind them.

    Raises: ShapeError unless bins is a vector; ValueError for known bins that have no order;
        DTypeError for complex numbers.

    Gradient: none, the result is integer.

    Source: numpy.digitize.

    >>> gg.evaluate(gg.digitize([0.5, 2.0, 9.0], [1.0, 2.0, 3.0]))
    array([0, 2, 3])
    """
    truth("right", right)
    x, bins = promoted(x, bins)
    side = "left" if right else "right"
    n = bins.shape[0] if bins.ndim == 1 else None
    if bins.ndim != 1 or n in (0, 1):
        return searchsorted(bins, x, side=side)
    ascending = _ascending(bins)
    if ascending is True:
        return searchsorted(bins, x, side=side)
    count = size_over(bins, (0,), INT64)
    backward = count - searchsorted(flip(bins), x, side=side)
    if ascending is False:
        return backward
    return where(bins[-1] >= bins[0], searchsorted(bins, x, side=side), backward)


def _ascending(bins: Tensor) -> bool | None:
    """Whether bins ascend, where that is known; ValueError where they have no order."""
    if not isinstance(bins.node.op, Constant):
        return None
    steps = np.diff(bins.node.op.value)
    if (steps >= 0).all():
        return True
    if (steps <= 0).all():
        return False
    raise ValueError(f"bins ascend or descend, got {bins.node.op.value.tolist()}")


def interp(
    x: TensorLike,
    xp: TensorLike,
    fp: TensorLike,
    left: TensorLike | None = None,
    right: TensorLike | None = None,
    period: float | None = None,
) -> Tensor:
    """Piecewise linear interpolation through points (xp[k], fp[k]).

    Parameters:
        x: any shape; real.
        xp: one axis, ascending unless there is a period; real.
        fp: the values there; real or complex.
        left, right: the values below xp[0] and above xp[-1]; None: fp[0] and fp[-1].
        period: x and xp are taken modulo this; then left and right mean nothing.

    Returns: the shape of x; float64, or complex128.

    Raises: ShapeError unless xp and fp are vectors of one length, which is not 0; ValueError for a
        period of 0.

    Gradient: dx = dy * the slope between the two points, 0 beyond the ends; dfp = dy * the share of
        each of them; dxp accordingly. At xp[k] the slope is that on the right.

    Source: numpy.interp.

    >>> gg.evaluate(gg.interp([1.5, 9.0], [1.0, 2.0, 3.0], [10.0, 20.0, 40.0]))
    array([15., 40.])
    """
    x, points, values = (as_tensor(t) for t in (x, xp, fp))
    values = cast(values, "complex128" if kind_of(values.dtype) == "c" else "float64")
    x, points = cast(x, "float64"), cast(points, "float64")
    if points.ndim != 1 or not compatible(points.shape, values.shape) or points.shape[0] == 0:
        raise ShapeError(
            f"interp through points {points.type!r}, {values.type!r}: two vectors of one length "
            "are needed"
        )
    if period is not None:
        x, points, values = _periodic(x, points, values, period)
        left = right = None
    last = size_over(points, (0,), INT64) - 1
    k = maximum(minimum(searchsorted(points, x, side="right"), last), 1) - 1
    after = minimum(k + 1, last)
    x0, y0 = take(points, k, 0), take(values, k, 0)
    width = take(points, after, 0) - x0
    width = where(equal(width, 0), like(1, width), width)
    slope = (take(values, after, 0) - y0) / width
    y = slope * (x - x0) + y0
    first, final = points[0], points[-1]
    below = values[0] if left is None else like(left, values)
    above = values[-1] if right is None else like(right, values)
    y = where(less(x, first), below, where(greater(x, final), above, y))
    return where(equal(x, final), values[-1], y)


def _periodic(
    x: Tensor, points: Tensor, values: Tensor, period: float
) -> tuple[Tensor, Tensor, Tensor]:
    """x, and the points in order, with one more at each end."""
    if period == 0:
        raise ValueError("the period of interp is not 0")
    length = abs(float(period))
    x, points = remainder(x, length), remainder(points, length)
    order = argsort(points)
    points, values = take(points, order, 0), take(values, order, 0)
    points = concat([points[-1:] - length, points, points[:1] + length])
    return x, points, concat([values[-1:], values, values[:1]])
