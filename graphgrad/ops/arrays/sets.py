"""Set operations: distinct elements, unions and intersections."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from ...base.flags import truth
from ..base import (
    Any,
    Tensor,
    TensorLike,
    apply,
    as_tensor,
    cast,
    is_inexact,
    kind_of,
    like,
    np,
    promoted,
)
from ..create.creation import ones_like
from ..elementwise.arithmetic import subtract
from ..elementwise.complex_parts import imag, real
from ..elementwise.logic import isnan, less, logical_and, logical_not, not_equal, where
from ..reduce.cumulative import cumsum
from ..reduce.reductions import Flat, any
from ..reduce.sorting import ArgSort, sort
from ..shape.indexing import getitem, scatter_add, take
from ..shape.joining import concat, stack
from ..shape.places import Nonzero
from ..shape.reshaping import flatten, moveaxis, normal_axis, permute_dims, reshape, reshape_like
from .nonzero import checked_size, first_places, length_of
from .searching import LexSort, isin

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


class Distinct:
    """The distinct elements of x in order, or its distinct slices along an axis.

    What is made of them is built when it is asked for.

    order    the places that put the elements in order
    first    for each place in order, whether an element is there that was not before
    """

    def __init__(
        self,
        x: Tensor,
        axis: int | None = None,
        equal_nan: bool = False,
        size: int | None = None,
        fill_value: Any = None,
    ) -> None:
        self._x, self._flat, self._fill = x, axis is None, fill_value
        self._size = None if size is None else checked_size(size)
        self._along = flatten(x) if axis is None else x
        self._at = 0 if axis is None else normal_axis(axis, x.ndim)
        rows = moveaxis(self._along, self._at, 0)
        rows = rows if rows.ndim == 1 else apply(Flat(1), rows)
        self.order = _order(rows)
        self.first = _first(rows, self.order, equal_nan)

    @cached_property
    def _length(self) -> Tensor:
        return reshape(length_of(self.order), (1,))

    @cached_property
    def _bounds(self) -> Tensor:
        """Of a size that is given: where each begins, and where the last one ends."""
        assert self._size is not None
        places, there = first_places(self.first, self._size + 1)
        return where(there, places, self._length)

    @cached_property
    def _starts(self) -> Tensor:
        if self._size is None:
            return apply(Nonzero(), self.first)
        return getitem(self._bounds, slice(-1))

    @cached_property
    def _there(self) -> Tensor:
        """Which of them there are, of a size that is given."""
        return less(self._starts, self._length)

    @cached_property
    def indices(self) -> Tensor:
        """Where each stands first, (K,)."""
        starts = self._starts if self._size is None else where(self._there, self._starts, 0)
        return take(self.order, starts, 0)

    @cached_property
    def values(self) -> Tensor:
        """They themselves, K along the axis."""
        values = take(self._along, self.indices, self._at)
        if self._size is None or self._fill is None:
            return values
        held = where(self._there, moveaxis(values, self._at, -1), like(self._fill, self._x))
        return moveaxis(held, -1, self._at)

    @cached_property
    def inverse(self) -> Tensor:
        """Which of them each element, or slice, is."""
        numbers = cumsum(self.first) - 1
        inverse = scatter_add(numbers * 0, self.order, numbers)
        return reshape_like(inverse, self._x) if self._flat else inverse

    @cached_property
    def counts(self) -> Tensor:
        """How often each is there, (K,)."""
        if self._size is None:
            ends = concat([getitem(self._starts, slice(1, None)), self._length])
        else:
            ends = getitem(self._bounds, slice(1, None))
        return subtract(ends, self._starts)


def _first(x: Tensor, order: Tensor, equal_nan: bool) -> Tensor:
    """For each place in order, whether the element or row there differs from the one before."""
    inside = take(x, order, 0)
    later, sooner = getitem(inside, slice(1, None)), getitem(inside, slice(-1))
    new = not_equal(later, sooner)
    if equal_nan and is_inexact(x.dtype):
        new = logical_and(new, logical_not(logical_and(isnan(later), isnan(sooner))))
    if x.ndim == 2:
        new = any(new, 1)
    n = order.shape[0]
    if isinstance(n, int):
        return concat([np.ones(min(n, 1), bool), new])
    return concat([ones_like(getitem(order, slice(1)), dtype="bool"), new])


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
        return_index: whether to return the index of each first occurrence.
        return_inverse: whether to say which of them each element is.
        return_counts: whether to say how often each is there.
        axis: the axis whose slices are compared; None: x is flattened.
        equal_nan: whether all NaN are one.
        size: how many; None: all of them, a number that is known only at run time (not on JAX
            or under vmap). What is too much is left out.
        fill_value: the value of missing entries; None: the least one.

    Returns: the distinct ones, (K,) or x with K along the axis, of its dtype; or a tuple of them
    and, in this order, of the other requested results, int64: places (K,), the inverse in the shape
    of x (for an axis, one for each slice), counts (K,), which are 0 for those that are missing.

    Raises: ShapeError if x has no such axis, or for a negative size.

    Gradient: dx = dy at each first occurrence, zeros elsewhere.

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
    each = Distinct(as_tensor(x), axis, equal_nan, size, fill_value)
    parts = [each.values]
    parts += [each.indices] if return_index else []
    parts += [each.inverse] if return_inverse else []
    parts += [each.counts] if return_counts else []
    return tuple(parts) if len(parts) > 1 else parts[0]


def unique_all(x: TensorLike, /, *, size: int | None = None) -> UniqueAllResult:
    """The distinct elements of x in order, where each is first, which each element is, how often.

    Parameters:
        x: any shape and dtype.
        size: how many; None: all of them, a number that is known only at run time (not on JAX
            or under vmap).

    Returns: (values, indices, inverse_indices, counts): as of gg.unique, but each NaN is one of its
    own.

    Raises: ShapeError for a negative size.

    Gradient: dx = the gradient of values at each first occurrence, zeros elsewhere.

    Source: the array API standard, unique_all; jax.numpy.unique_all for size.

    >>> gg.evaluate(gg.unique_all([3, 1, 3]).indices)
    array([1, 0])
    """
    each = Distinct(as_tensor(x), size=size)
    return UniqueAllResult(each.values, each.indices, each.inverse, each.counts)


def unique_counts(x: TensorLike, /, *, size: int | None = None) -> UniqueCountsResult:
    """The distinct elements of x in order, and how often each is there.

    Parameters:
        x: any shape and dtype.
        size: how many; None: all of them, a number that is known only at run time (not on JAX
            or under vmap).

    Returns: (values, counts): as of gg.unique, but each NaN is one of its own.

    Raises: ShapeError for a negative size.

    Gradient: dx = the gradient of values at each first occurrence, zeros elsewhere.

    Source: the array API standard, unique_counts; jax.numpy.unique_counts for size.

    >>> gg.evaluate(gg.unique_counts([3, 1, 3]).counts)
    array([1, 2])
    """
    each = Distinct(as_tensor(x), size=size)
    return UniqueCountsResult(each.values, each.counts)


def unique_inverse(x: TensorLike, /, *, size: int | None = None) -> UniqueInverseResult:
    """The distinct elements of x in order, and which of them each element is.

    Parameters:
        x: any shape and dtype.
        size: how many; None: all of them, a number that is known only at run time (not on JAX
            or under vmap).

    Returns: (values, inverse_indices): as of gg.unique, but each NaN is one of its own.

    Raises: ShapeError for a negative size.

    Gradient: dx = the gradient of values at each first occurrence, zeros elsewhere.

    Source: the array API standard, unique_inverse; jax.numpy.unique_inverse for size.

    >>> gg.evaluate(gg.unique_inverse([3, 1, 3]).inverse_indices)
    array([1, 0, 1])
    """
    each = Distinct(as_tensor(x), size=size)
    return UniqueInverseResult(each.values, each.inverse)


def unique_values(x: TensorLike, /, *, size: int | None = None) -> Tensor:
    """The distinct elements of x in order.

    Parameters:
        x: any shape and dtype.
        size: how many; None: all of them, a number that is known only at run time (not on JAX
            or under vmap).

    Returns: (K,), of the dtype of x; as of gg.unique, but each NaN is one of its own.

    Raises: ShapeError for a negative size.

    Gradient: dx = dy at each first occurrence, zeros elsewhere.

    Source: the array API standard, unique_values; jax.numpy.unique_values for size.

    >>> gg.evaluate(gg.unique_values([3, 1, 3]))
    array([1, 3])
    """
    return Distinct(as_tensor(x), size=size).values


# --- of two tensors ------------------------------------------------------------------------------


def union1d(
    x1: TensorLike, x2: TensorLike, *, size: int | None = None, fill_value: Any = None
) -> Tensor:
    """The distinct elements of two tensors in order.

    Parameters:
        x1, x2: any shapes, flattened, and dtypes, promoted together.
        size, fill_value: as of gg.unique.

    Returns: (K,); K is known only at run time, without a size.

    Raises: ShapeError for a negative size.

    Gradient: dy at each first occurrence, in x1 before x2; zeros elsewhere.

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
        return_indices: whether to return the index of each first occurrence in x1, and in x2.

    Returns: (K,), K known only at run time; or it and two vectors of places, int64.

    Raises: DTypeError for complex numbers.

    Gradient: dx1 = dy at each first occurrence, zeros elsewhere; none to x2.

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

    Returns: (K,), of the dtype of x1; K known only at run time.

    Raises: DTypeError for complex numbers.

    Gradient: dx1 = dy at each first occurrence, zeros elsewhere; none to x2.

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

    Returns: (K,), K known only at run time.

    Raises: DTypeError for complex numbers.

    Gradient: dy at each first occurrence in its tensor, zeros elsewhere.

    Source: numpy.setxor1d.

    >>> gg.evaluate(gg.setxor1d([3, 1], [1, 2]))
    array([2, 3])
    """
    truth("assume_unique", assume_unique)
    return sort(concat([setdiff1d(x1, x2), setdiff1d(x2, x1)]))
