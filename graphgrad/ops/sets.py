"""The distinct elements of a tensor, and what two tensors have in common."""

from __future__ import annotations

from typing import NamedTuple

from ..ir.flags import truth
from .arithmetic import subtract
from .base import (
    Any,
    Tensor,
    TensorLike,
    apply,
    as_tensor,
    cast,
    is_inexact,
    kind_of,
    like,
    promoted,
)
from .complex_parts import imag, real
from .creation import ones_like
from .cumulative import cumsum
from .indexing import getitem, scatter_add, take
from .joining import concat, stack
from .logic import isnan, less, logical_and, logical_not, not_equal, where
from .nonzero import checked_size, first_places, length_of
from .places import Nonzero
from .reductions import Flat, any
from .searching import LexSort, isin
from .shaping import flatten, moveaxis, normal_axis, permute_dims, reshape, reshape_like
from .sorting import ArgSort, sort

__all__ = [
    "UniqueAllResult",
    "UniqueCountsResult",
    "UniqueInverseResult",
    "intersect1d",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]


class UniqueAllResult(NamedTuple):
    """What unique_all returns.

    >>> gg.unique_all([3, 1, 3])._fields
    ('values', 'indices', 'inverse_indices', 'counts')
    """

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """What unique_counts returns.

    >>> gg.unique_counts([3, 1, 3])._fields
    ('values', 'counts')
    """

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """What unique_inverse returns.

    >>> gg.unique_inverse([3, 1, 3])._fields
    ('values', 'inverse_indices')
    """

    values: Tensor
    inverse_indices: Tensor


class Runs(NamedTuple):
    """A vector, or rows, in order, cut into runs of equal ones.

    order    the places that put it in order
    first    for each place in order, whether a run begins there
    starts   where the runs begin, (K,)
    ends     where they end, (K,)
    """

    order: Tensor
    first: Tensor
    starts: Tensor
    ends: Tensor


def _runs(x: Tensor, equal_nan: bool, size: int | None) -> Runs:
    """The runs of equal elements, or rows, of x in order."""
    order = _order(x)
    inside = take(x, order, 0)
    later, sooner = getitem(inside, slice(1, None)), getitem(inside, slice(-1))
    new = not_equal(later, sooner)
    if equal_nan and is_inexact(x.dtype):
        new = logical_and(new, logical_not(logical_and(isnan(later), isnan(sooner))))
    if x.ndim == 2:
        new = any(new, 1)
    first = concat([ones_like(getitem(order, slice(1)), dtype="bool"), new])
    n = reshape(length_of(order), (1,))
    if size is None:
        starts = apply(Nonzero(), first)
        return Runs(order, first, starts, concat([getitem(starts, slice(1, None)), n]))
    places, there = first_places(first, size + 1)
    bounds = where(there, places, n)
    return Runs(order, first, getitem(bounds, slice(-1)), getitem(bounds, slice(1, None)))


def _order(x: Tensor) -> Tensor:
    """The places that put a vector, or rows, in order; complex numbers as NumPy orders them."""
    keys = x
    if kind_of(x.dtype) == "c":
        parts = stack([cast(isnan(x), real(x).dtype), real(x), imag(x)], -1)
        keys = parts if x.ndim == 1 else apply(Flat(1), parts)
    if keys.ndim == 1:
        return apply(ArgSort(0), keys)
    last_first = getitem(keys, (slice(None), slice(None, None, -1)))
    return apply(LexSort(), permute_dims(last_first, (1, 0)))


def _inverse(runs: Runs) -> Tensor:
    """For each element, or row, the number of its run."""
    numbers = cumsum(runs.first) - 1
    return scatter_add(numbers * 0, runs.order, numbers)


def _unique(
    x: Tensor, axis: int | None, equal_nan: bool, size: int | None, fill_value: Any
) -> UniqueAllResult:
    """Values, first places, inverse and counts along an axis; None: of the flattened x."""
    size = None if size is None else checked_size(size)
    along = flatten(x) if axis is None else x
    at = 0 if axis is None else normal_axis(axis, x.ndim)
    rows = moveaxis(along, at, 0)
    runs = _runs(rows if rows.ndim == 1 else apply(Flat(1), rows), equal_nan, size)
    there = less(runs.starts, length_of(rows))
    starts = runs.starts if size is None else where(there, runs.starts, 0)
    indices = take(runs.order, starts, 0)
    values = take(along, indices, at)
    if size is not None and fill_value is not None:
        held = where(there, moveaxis(values, at, -1), like(fill_value, x))
        values = moveaxis(held, -1, at)
    inverse = _inverse(runs)
    shaped = reshape_like(inverse, x) if axis is None else inverse
    return UniqueAllResult(values, indices, shaped, subtract(runs.ends, runs.starts))


def unique(
    x: TensorLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The distinct elements of x in order, or its distinct slices along an axis.

    Parameters:
        x: any shape and dtype; complex numbers are in order of their real parts, then imaginary.
        return_index: whether to say where each stands first.
        return_inverse: whether to say which of them each element is.
        return_counts: whether to say how often each is there.
        axis: the axis whose slices are compared; None: x is flattened.
        equal_nan: whether all NaN are one.
        size: how many; None: as many as there are, known only when run (not on JAX, nor under
            vmap). What is too much is left out.
        fill_value: what stands for those that are missing; None: the least one.

    Returns: the distinct ones, (K,) or x with K along the axis, of its dtype; or a tuple of them
    and, in this order, of what else is asked for, int64: places (K,), the inverse in the shape of x
    (for an axis, one for each slice), counts (K,), which are 0 for those that are missing.

    Raises: ShapeError if x has no such axis, or for a negative size.

    Gradient: dx = dy at the place where each stands first, zeros elsewhere.

    Source: numpy.unique; jax.numpy.unique for size and fill_value.

    >>> gg.evaluate(gg.unique([3, 1, 3], return_counts=True))
    (array([1, 3]), array([1, 2]))
    >>> gg.evaluate(gg.unique([3, 1, 3], size=3, fill_value=0))
    array([1, 3, 0])
    """
    truth("return_index", return_index)
    truth("return_inverse", return_inverse)
    truth("return_counts", return_counts)
    truth("equal_nan", equal_nan)
    values, *rest = _unique(as_tensor(x), axis, equal_nan, size, fill_value)
    asked = (return_index, return_inverse, return_counts)
    found = [t for t, wanted in zip(rest, asked, strict=True) if wanted]
    return (values, *found) if found else values


def unique_all(x: TensorLike, /, *, size: int | None = None) -> UniqueAllResult:
    """The distinct elements of x in order, where each is first, which each element is, how often.

    Parameters:
        x: any shape and dtype.
        size: how many; None: as many as there are, known only when run (not on JAX, nor under
            vmap).

    Returns: (values, indices, inverse_indices, counts): as of gg.unique, but each NaN is one of its
    own.

    Raises: ShapeError for a negative size.

    Gradient: dx = the gradient of values where each stands first, zeros elsewhere.

    Source: the array API standard, unique_all; jax.numpy.unique_all for size.

    >>> gg.evaluate(gg.unique_all([3, 1, 3]).indices)
    array([1, 0])
    """
    return _unique(as_tensor(x), None, False, size, None)


def unique_counts(x: TensorLike, /, *, size: int | None = None) -> UniqueCountsResult:
    """The distinct elements of x in order, and how often each is there.

    Parameters:
        x: any shape and dtype.
        size: how many; None: as many as there are, known only when run (not on JAX, nor under
            vmap).

    Returns: (values, counts): as of gg.unique, but each NaN is one of its own.

    Raises: ShapeError for a negative size.

    Gradient: dx = the gradient of values where each stands first, zeros elsewhere.

    Source: the array API standard, unique_counts; jax.numpy.unique_counts for size.

    >>> gg.evaluate(gg.unique_counts([3, 1, 3]).counts)
    array([1, 2])
    """
    found = unique_all(x, size=size)
    return UniqueCountsResult(found.values, found.counts)


def unique_inverse(x: TensorLike, /, *, size: int | None = None) -> UniqueInverseResult:
    """The distinct elements of x in order, and which of them each element is.

    Parameters:
        x: any shape and dtype.
        size: how many; None: as many as there are, known only when run (not on JAX, nor under
            vmap).

    Returns: (values, inverse_indices): as of gg.unique, but each NaN is one of its own.

    Raises: ShapeError for a negative size.

    Gradient: dx = the gradient of values where each stands first, zeros elsewhere.

    Source: the array API standard, unique_inverse; jax.numpy.unique_inverse for size.

    >>> gg.evaluate(gg.unique_inverse([3, 1, 3]).inverse_indices)
    array([1, 0, 1])
    """
    found = unique_all(x, size=size)
    return UniqueInverseResult(found.values, found.inverse_indices)


def unique_values(x: TensorLike, /, *, size: int | None = None) -> Tensor:
    """The distinct elements of x in order.

    Parameters:
        x: any shape and dtype.
        size: how many; None: as many as there are, known only when run (not on JAX, nor under
            vmap).

    Returns: (K,), of the dtype of x; as of gg.unique, but each NaN is one of its own.

    Raises: ShapeError for a negative size.

    Gradient: dx = dy where each stands first, zeros elsewhere.

    Source: the array API standard, unique_values; jax.numpy.unique_values for size.

    >>> gg.evaluate(gg.unique_values([3, 1, 3]))
    array([1, 3])
    """
    return unique_all(x, size=size).values


# --- of two tensors ------------------------------------------------------------------------------


def union1d(
    x1: TensorLike, x2: TensorLike, *, size: int | None = None, fill_value: Any = None
) -> Tensor:
    """The distinct elements of two tensors in order.

    Parameters:
        x1, x2: any shapes, flattened, and dtypes, promoted together.
        size, fill_value: as of gg.unique.

    Returns: (K,); K is known only when run, without a size.

    Raises: ShapeError for a negative size.

    Gradient: dy where each stands first, in x1 before x2; zeros elsewhere.

    Source: numpy.union1d; jax.numpy.union1d for size and fill_value.

    >>> gg.evaluate(gg.union1d([3, 1], [1, 2]))
    array([1, 2, 3])
    """
    x, y = promoted(x1, x2)
    return unique(concat([flatten(x), flatten(y)]), size=size, fill_value=fill_value)  # type: ignore[no-any-return]


def intersect1d(
    x1: TensorLike, x2: TensorLike, assume_unique: bool = False, return_indices: bool = False
) -> Any:
    """The distinct elements that two tensors have in common, in order.

    Parameters:
        x1, x2: any shapes, flattened; integer, bool or floating, promoted together.
        assume_unique: taken for NumPy's sake; it changes nothing.
        return_indices: whether to say where each stands first in x1, and in x2.

    Returns: (K,), K known only when run; or it and two vectors of places, int64.

    Raises: DTypeError for complex numbers.

    Gradient: dx1 = dy where each stands first, zeros elsewhere; none to x2.

    Source: numpy.intersect1d.

    >>> gg.evaluate(gg.intersect1d([3, 1, 1], [1, 3, 2]))
    array([1, 3])
    """
    truth("assume_unique", assume_unique)
    truth("return_indices", return_indices)
    x, y = promoted(x1, x2)
    values, at = unique(x, return_index=True)
    common = isin(values, y)
    if not return_indices:
        return getitem(values, common)
    others, there = unique(y, return_index=True)
    places = getitem(there, isin(others, x))
    return getitem(values, common), getitem(at, common), places


def setdiff1d(x1: TensorLike, x2: TensorLike, assume_unique: bool = False) -> Tensor:
    """The distinct elements of a tensor that another does not have, in order.

    Parameters:
        x1, x2: any shapes, flattened; integer, bool or floating.
        assume_unique: whether to take the elements of x1 as they stand.

    Returns: (K,), of the dtype of x1; K known only when run.

    Raises: DTypeError for complex numbers.

    Gradient: dx1 = dy where each stands first, zeros elsewhere; none to x2.

    Source: numpy.setdiff1d.

    >>> gg.evaluate(gg.setdiff1d([3, 1, 1], [1, 2]))
    array([3])
    """
    truth("assume_unique", assume_unique)
    x = as_tensor(x1)
    values = flatten(x) if assume_unique else unique(x)
    return getitem(values, isin(values, x2, invert=True))


def setxor1d(x1: TensorLike, x2: TensorLike, assume_unique: bool = False) -> Tensor:
    """The distinct elements that only one of two tensors has, in order.

    Parameters:
        x1, x2: any shapes, flattened; integer, bool or floating, promoted together.
        assume_unique: taken for NumPy's sake; it changes nothing.

    Returns: (K,), K known only when run.

    Raises: DTypeError for complex numbers.

    Gradient: dy where each stands first in its tensor, zeros elsewhere.

    Source: numpy.setxor1d.

    >>> gg.evaluate(gg.setxor1d([3, 1], [1, 2]))
    array([2, 3])
    """
    truth("assume_unique", assume_unique)
    return sort(concat([setdiff1d(x1, x2), setdiff1d(x2, x1)]))
