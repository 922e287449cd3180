"""Reductions, argmax and cumulative sums that ignore NaN."""

from __future__ import annotations

from ..base import (
    Any,
    Tensor,
    TensorLike,
    as_tensor,
    cast,
    inexact,
    is_floating,
    is_inexact,
    like,
    np,
    rounded_once,
)
from ..elementwise.exponential import sqrt
from ..elementwise.logic import isnan, logical_and, logical_not
from ..elementwise.logic import where as _where
from ..reduce.cumulative import cumprod, cumsum
from ..reduce.reductions import all, argmax, argmin, fitted_mask, max, mean, min, prod, sum, var

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def filled(x: Tensor, number: float) -> Tensor:
    """x with a number in place of NaN; x itself where it can hold none."""
    return _where(isnan(x), like(number, x), x) if is_inexact(x.dtype) else x


def _known(x: Tensor, mask: Any) -> Any:
    """The where= of a reduction: what is no NaN, and what the caller picks."""
    known = logical_not(isnan(x))
    return known if mask is True else logical_and(known, fitted_mask(mask, x))


def _floating(x: TensorLike, dtype: Any) -> Tensor:
    x = as_tensor(x)
    return cast(x, inexact(x.dtype) if dtype is None else dtype)


def nansum(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: TensorLike | None = None,
    where: Any = True,
) -> Tensor:
    """Sum over axes, ignoring NaN.

    Parameters:
        x: any shape and dtype; small ints and bools are summed as 64 bits.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        dtype: the dtype that x is cast to first.
        initial: a number to begin with.
        where: bools that broadcast to x: only these elements count.

    Returns: x without the axes, or with length 1 there; 0 where all are NaN.

    Raises: ShapeError if x has no such axis, or where does not broadcast; DTypeError for a dtype,
        initial or where that does not fit.

    Gradient: dx = dy, broadcast; 0 at a NaN.

    Source: numpy.nansum.

    >>> gg.evaluate(gg.nansum([1.0, np.nan, 2.0]))
    array(3.)
    """
    x = filled(as_tensor(x), 0.0)
    return sum(x, axis, keepdims, dtype=dtype, initial=initial, where=where)


def nanprod(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: TensorLike | None = None,
    where: Any = True,
) -> Tensor:
    """Product over axes, ignoring NaN.

    Parameters:
        x: any shape and dtype; small ints and bools are multiplied as 64 bits.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        dtype: the dtype that x is cast to first.
        initial: a number to begin with.
        where: bools that broadcast to x: only these elements count.

    Returns: x without the axes, or with length 1 there; 1 where all are NaN.

    Raises: ShapeError if x has no such axis, or where does not broadcast; DTypeError for a dtype,
        initial or where that does not fit.

    Gradient: dx = dy * the product of all others; 0 at a NaN.

    Source: numpy.nanprod.

    >>> gg.evaluate(gg.nanprod([3.0, np.nan, 2.0]))
    array(6.)
    """
    x = filled(as_tensor(x), 1.0)
    return prod(x, axis, keepdims, dtype=dtype, initial=initial, where=where)


def nanmean(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    where: Any = True,
) -> Tensor:
    """Mean over axes, ignoring NaN: y = sum x / n over these.

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        dtype: the dtype that x is cast to first, floating or complex.
        where: bools that broadcast to x: only these elements count.

    Returns: x without the axes, or with length 1 there; NaN where all are NaN.

    Raises: ShapeError if x has no such axis, or where does not broadcast; DTypeError for a dtype or
        where that does not fit.

    Gradient: dx = dy / n; 0 at a NaN.

    Source: numpy.nanmean.

    >>> gg.evaluate(gg.nanmean([1.0, np.nan, 2.0]))
    array(1.5)
    """
    x = _floating(x, dtype)
    return mean(x, axis, keepdims, where=_known(x, where))


def nanvar(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    correction: float = 0.0,
    ddof: float | None = None,
    dtype: Any = None,
    where: Any = True,
    mean: TensorLike | None = None,
) -> Tensor:
    """Variance over axes, ignoring NaN: y = sum (x - mean x)**2 / (n - correction).

    Parameters:
        x: any shape; floating, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        correction: 0 for that of the numbers, 1 for that of a sample.
        ddof: NumPy's other name of correction, which counts if given.
        dtype: the dtype that x is cast to first, floating.
        where: bools that broadcast to x: only these elements count.
        mean: the mean of x, if it is known already, with keepdims.

    Returns: x without the axes, or with length 1 there; NaN where n <= correction.

    Raises: ShapeError if x has no such axis, or where does not broadcast; DTypeError if x is
        complex, or for a dtype or where that does not fit.

    Gradient: dx = dy * 2 (x - mean x) / (n - correction); 0 at a NaN.

    Source: numpy.nanvar.

    >>> gg.evaluate(gg.nanvar([1.0, np.nan, 3.0]))
    array(1.)
    """
    x = _floating(x, dtype)
    less = correction if ddof is None else ddof
    known = _known(x, where)
    y = var(x, axis, correction=less, keepdims=keepdims, where=known, mean=mean)
    n = sum(known, axis, keepdims)
    return _where(n > less, y, np.nan)


def nanstd(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    correction: float = 0.0,
    ddof: float | None = None,
    dtype: Any = None,
    where: Any = True,
    mean: TensorLike | None = None,
) -> Tensor:
    """Standard deviation over axes, ignoring NaN.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        correction: 0 for that of the numbers, 1 for that of a sample.
        ddof: NumPy's other name of correction, which counts if given.
        dtype: the dtype that x is cast to first, floating.
        where: bools that broadcast to x: only these elements count.
        mean: the mean of x, if it is known already, with keepdims.

    Returns: x without the axes, or with length 1 there; NaN where n <= correction.

    Raises: ShapeError if x has no such axis, or where does not broadcast; DTypeError if x is
        complex, or for a dtype or where that does not fit.

    Gradient: dx = dy * (x - mean x) / ((n - correction) y); 0 at a NaN.

    Source: numpy.nanstd.

    >>> gg.evaluate(gg.nanstd([1.0, np.nan, 3.0]))
    array(1.)
    """
    less = correction if ddof is None else ddof
    chosen: dict[str, Any] = {"correction": less, "where": where, "mean": mean}
    return rounded_once(lambda x: sqrt(nanvar(x, axis, keepdims, **chosen)), _floating(x, dtype))


def nanmax(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    initial: TensorLike | None = None,
    where: Any = True,
) -> Tensor:
    """Largest element over axes that is not NaN.

    Parameters:
        x: any shape; bool, integer or floating.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        initial: a number to begin with; with it, there may be nothing along an axis.
        where: bools that broadcast to x: only these elements count; takes an initial.

    Returns: x without the axes, or with length 1 there; NaN where all are NaN.

    Raises: ShapeError if x has no such axis, nothing along it, or a where without initial;
        DTypeError if x is complex, or for an initial or where that does not fit.

    Gradient: dx = dy in equal shares to the elements that are the largest; 0 at a NaN.

    Source: numpy.nanmax.

    >>> gg.evaluate(gg.nanmax([1.0, np.nan, 2.0]))
    array(2.)
    """
    x = as_tensor(x)
    least = max(filled(x, -np.inf), axis, keepdims, initial=initial, where=where)
    if not is_inexact(x.dtype) or initial is not None:
        return least
    return _where(all(isnan(x), axis, keepdims), np.nan, least)


def nanmin(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    initial: TensorLike | None = None,
    where: Any = True,
) -> Tensor:
    """Smallest element over axes that is not NaN.

    Parameters:
        x: any shape; bool, integer or floating.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        initial: a number to begin with; with it, there may be nothing along an axis.
        where: bools that broadcast to x: only these elements count; takes an initial.

    Returns: x without the axes, or with length 1 there; NaN where all are NaN.

    Raises: ShapeError if x has no such axis, nothing along it, or a where without initial;
        DTypeError if x is complex, or for an initial or where that does not fit.

    Gradient: dx = dy in equal shares to the elements that are the smallest; 0 at a NaN.

    Source: numpy.nanmin.

    >>> gg.evaluate(gg.nanmin([1.0, np.nan, 2.0]))
    array(1.)
    """
    x = as_tensor(x)
    least = min(filled(x, np.inf), axis, keepdims, initial=initial, where=where)
    if not is_inexact(x.dtype) or initial is not None:
        return least
    return _where(all(isnan(x), axis, keepdims), np.nan, least)


def nanargmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first largest element along an axis that is not NaN.

    Where all are NaN, NumPy raises an error, which depends on values; here the place is -1.

    Parameters:
        x: any shape; bool, integer or floating.
        axis: an int, or None for the place in the flattened x.
        keepdims: whether the axes stay, with length 1.

    Returns: int64, x without the axes, or with length 1 there; -1 where all are NaN.

    Raises: ShapeError if x has no such axis, or nothing along it; DTypeError if x is complex.

    Gradient: none, the result is not floating.

    Source: numpy.nanargmax; jax.numpy.nanargmax for the -1.

    >>> gg.evaluate(gg.nanargmax([[1.0, np.nan, 2.0]], axis=1))
    array([2])
    """
    x = as_tensor(x)
    place = argmax(filled(x, -np.inf), axis, keepdims)
    if not is_floating(x.dtype):
        return place
    return _where(all(isnan(x), axis, keepdims), -1, place)


def nanargmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first smallest element along an axis that is not NaN.

    Where all are NaN, NumPy raises an error, which depends on values; here the place is -1.

    Parameters:
        x: any shape; bool, integer or floating.
        axis: an int, or None for the place in the flattened x.
        keepdims: whether the axes stay, with length 1.

    Returns: int64, x without the axes, or with length 1 there; -1 where all are NaN.

    Raises: ShapeError if x has no such axis, or nothing along it; DTypeError if x is complex.

    Gradient: none, the result is not floating.

    Source: numpy.nanargmin; jax.numpy.nanargmin for the -1.

    >>> gg.evaluate(gg.nanargmin([[1.0, np.nan, 2.0]], axis=1))
    array([0])
    """
    x = as_tensor(x)
    place = argmin(filled(x, np.inf), axis, keepdims)
    if not is_floating(x.dtype):
        return place
    return _where(all(isnan(x), axis, keepdims), -1, place)


def nancumsum(x: TensorLike, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Running sum along an axis, with 0 in place of NaN.

    Parameters:
        x: any shape and dtype; small ints and bools count as 64 bits.
        axis: an int, or None for the flattened x.
        dtype: the dtype that x is cast to first.

    Returns: shape of x, or of the flattened x.

    Raises: ShapeError if x has no such axis; DTypeError if dtype would drop the imaginary part.

    Gradient: dx[k] = dy[k] + ... + dy[last]; 0 at a NaN.

    Source: numpy.nancumsum.

    >>> gg.evaluate(gg.nancumsum([3.0, np.nan, 2.0]))
    array([3., 3., 5.])
    """
    return cumsum(filled(as_tensor(x), 0.0), axis, dtype)


def nancumprod(x: TensorLike, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Running product along an axis, with 1 in place of NaN.

    Parameters:
        x: any shape and dtype; small ints and bools count as 64 bits.
        axis: an int, or None for the flattened x.
        dtype: the dtype that x is cast to first.

    Returns: shape of x, or of the flattened x.

    Raises: ShapeError if x has no such axis; DTypeError if dtype would drop the imaginary part.

    Gradient: as of cumulative_prod; 0 at a NaN.

    Source: numpy.nancumprod.

    >>> gg.evaluate(gg.nancumprod([3.0, np.nan, 2.0]))
    array([3., 3., 6.])
    """
    return cumprod(filled(as_tensor(x), 1.0), axis, dtype)
