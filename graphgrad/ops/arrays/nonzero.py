"""Indices of true elements, and selection by a mask.

Without `size` the length of what is picked is known only at run time. With it, it is that number:
what is too much is left out, what is missing is filled up, and all backends and vmap can run it.
"""

from __future__ import annotations

from ...base.errors import ShapeError
from ...ir.types import Dim, is_negative
from ..base import (
    Any,
    Constant,
    Tensor,
    TensorLike,
    apply,
    as_tensor,
    build,
    cast,
    count,
    kind_of,
    like,
)
from ..create.creation import counting, ones_like, zeros, zeros_like
from ..documented import documented
from ..elementwise.bounds import maximum, minimum
from ..elementwise.logic import less, not_equal, where
from ..elementwise.remainders import floor_divide, remainder
from ..reduce.cumulative import cumsum
from ..reduce.reductions import any, normal_axes, size_over, sum
from ..shape.indexing import getitem, scatter_add, take
from ..shape.joining import stack
from ..shape.padding import flip, repeat_by_numbers
from ..shape.places import INT64, Nonzero, RepeatedPlaces
from ..shape.reshaping import broadcast_to, expand_dims, flatten, moveaxis, normal_axis, reshape

__all__ = ["argwhere", "compress", "extract", "flatnonzero", "nonzero", "repeat", "trim_zeros"]


def checked_size(size: Any) -> Any:
    """A size as an int, or the length that it is; ShapeError for a negative one."""
    length = count("size", size)
    if is_negative(length):
        raise ShapeError(f"a size is never negative, got {length}")
    return length


def counted_up(x: Tensor) -> Tensor:
    """0, 1, 2, ... for the elements of a vector, whose length may be unknown."""
    if x.shape[0] is not None:
        return counting(x.shape[0])
    return cumsum(ones_like(x, dtype=INT64)) - 1


def length_of(x: Tensor, axis: int = 0) -> Tensor:
    """The length of an axis as a 0-d int64."""
    return size_over(x, (axis,), INT64)


def first_places(flags: Tensor, size: Any) -> tuple[Tensor, Tensor]:
    """The first places where a vector of bools holds, and which of them there are; (size,) both."""
    before = cumsum(flags) - 1
    slot = where(flags, minimum(before, size), size)
    slots = scatter_add(zeros(size + 1, "int64"), slot, counted_up(flags))
    there = less(counting(size), sum(flags))
    return _first(slots, size), there


def _first(x: Tensor, size: Any) -> Tensor:
    """So many elements, the first ones."""
    return broadcast_to(getitem(x, slice(size)), (size,))


@documented(Nonzero)
def nonzero(
    x: TensorLike, /, *, size: int | None = None, fill_value: Any = 0
) -> tuple[Tensor, ...]:
    """The indices of the nonzero elements, in row-major order.

    Parameters:
        x: at least one axis, any dtype.
        size: the number of indices; None: all of them, a number that is known only at run time (not
            on JAX or under vmap).
        fill_value: the place named where there are fewer than size; one for all axes, or several.

    Returns: for each axis of x a vector of places along it, int64.

    Raises: ShapeError if x has no axis, for a negative size, or not one fill_value for each axis;
    TypeError for a size that is not an int.

    Source: the array API standard, nonzero; jax.numpy.nonzero for size and fill_value.

    >>> gg.evaluate(gg.nonzero([[0, 1], [2, 0]]))
    (array([0, 1]), array([1, 0]))
    >>> gg.evaluate(gg.nonzero([0, 5], size=2, fill_value=-1))
    (array([ 1, -1]),)
    """
    x = as_tensor(x)
    if size is None:
        return build(Nonzero(), (x,)).outputs
    if x.ndim == 0:
        raise ShapeError(f"nonzero takes at least one axis, got {x.type!r}")
    fills = fill_value if isinstance(fill_value, list | tuple) else (fill_value,) * x.ndim
    if len(fills) != x.ndim:
        raise ShapeError(f"nonzero of {x.type!r} takes {x.ndim} fill values, got {fill_value!r}")
    places, there = first_places(not_equal(flatten(x), 0), checked_size(size))
    along = _unravelled(places, x)
    return tuple([where(there, at, like(fill, at)) for at, fill in zip(along, fills, strict=True)])


def _unravelled(places: Tensor, x: Tensor) -> list[Tensor]:
    """Row-major places in x as a vector for each axis."""
    if x.ndim == 1:
        return [places]
    axes = range(x.ndim)
    after = [size_over(x, tuple(axes[axis + 1 :]), INT64) for axis in axes]
    return [remainder(floor_divide(places, after[axis]), length_of(x, axis)) for axis in axes]


def argwhere(x: TensorLike, /, *, size: int | None = None, fill_value: Any = 0) -> Tensor:
    """The indices of the nonzero elements, a row for each, in row-major order.

    Parameters:
        x: any shape and dtype.
        size: the number of rows; None: all of them, a number that is known only at run time (not
            on JAX or under vmap).
        fill_value: the place named where there are fewer than size.

    Returns: (K, number of axes of x), int64.

    Raises: as gg.nonzero, of which these are the columns; of 0-d x ShapeError for a size.

    Gradient: none, the result is integer.

    Source: numpy.argwhere; jax.numpy.argwhere for size and fill_value.

    >>> gg.evaluate(gg.argwhere([[0, 1], [2, 0]]))
    array([[0, 1],
           [1, 0]])
    """
    x = as_tensor(x)
    if x.ndim == 0:
        rows = nonzero(reshape(x, (1,)), size=size)[0]
        return getitem(expand_dims(rows, 1), (slice(None), slice(0)))
    return stack(nonzero(x, size=size, fill_value=fill_value), axis=1)


def flatnonzero(x: TensorLike, /, *, size: int | None = None, fill_value: Any = 0) -> Tensor:
    """The indices of the nonzero elements in the flattened x.

    Parameters:
        x: any shape and dtype.
        size: the number of indices; None: all of them, a number that is known only at run time (not
            on JAX or under vmap).
        fill_value: the place named where there are fewer than size.

    Returns: (K,), int64.

    Raises: ShapeError for a negative size; TypeError for one that is not an int.

    Gradient: none, the result is integer.

    Source: numpy.flatnonzero; jax.numpy.flatnonzero for size and fill_value.

    >>> gg.evaluate(gg.flatnonzero([[0, 1], [2, 0]]))
    array([1, 2])
    """
    return nonzero(flatten(x), size=size, fill_value=fill_value)[0]


def compress(
    condition: TensorLike,
    x: TensorLike,
    axis: int | None = None,
    *,
    size: int | None = None,
    fill_value: Any = 0,
) -> Tensor:
    """The slices of x along an axis where a condition holds.

    Parameters:
        condition: a vector, at most as long as the axis; what is not 0 holds.
        x: any shape and dtype.
        axis: an int; None: x is flattened first.
        size: the number of slices; None: all of them, a number that is known only at run time (not
            on JAX or under vmap).
        fill_value: the value of missing entries.

    Returns: x with fewer slices along the axis, of its dtype.

    Raises: ShapeError for a condition that is not a vector, or longer than the axis, if x has no
    such axis, or for a negative size. A run raises IndexError for a condition that holds behind the
    end.

    Gradient: dx = dy put back where its slices came from, zeros elsewhere.

    Source: numpy.compress; jax.numpy.compress for size and fill_value.

    >>> gg.evaluate(gg.compress([True, False, True], [1.0, 2.0, 3.0]))
    array([1., 3.])
    """
    condition, x = as_tensor(condition), as_tensor(x)
    if condition.ndim != 1:
        raise ShapeError(f"compress takes a vector as its condition, got {condition.type!r}")
    if axis is None:
        x, axis = flatten(x), 0
    axis = normal_axis(axis, x.ndim)
    _check_no_longer(condition.shape[0], x, axis)
    if size is None:
        return take(x, nonzero(condition)[0], axis)
    places, there = first_places(not_equal(condition, 0), checked_size(size))
    rows = moveaxis(take(x, places, axis), axis, -1)
    return moveaxis(where(there, rows, like(fill_value, x)), -1, axis)


def trim_zeros(x: TensorLike, trim: str = "fb", axis: Any = None) -> Tensor:
    """x without the zeros at its ends.

    Parameters:
        x: any shape but 0-d, any dtype; its length is known only at run time (not on JAX, nor under
            vmap).
        trim: "f": at the front; "b": at the back; "fb": at both ends.
        axis: an int, or several: where slices of zeros alone are left out; None: along all.

    Returns: x with fewer slices, of its dtype.

    Raises: ShapeError if x has no such axis; ValueError for another trim.

    Gradient: dx = dy put back where its elements came from, zeros elsewhere.

    Source: numpy.trim_zeros.

    >>> gg.evaluate(gg.trim_zeros([0.0, 0.0, 1.0, 0.0, 2.0, 0.0]))
    array([1., 0., 2.])
    """
    y = as_tensor(x)
    if not trim or set(trim.lower()) - set("fb"):
        raise ValueError(f"trim is 'f', 'b' or 'fb', got {trim!r}")
    if y.ndim == 0:
        raise ShapeError("trim_zeros takes at least one axis, got 0-d")
    full, ends = not_equal(y, 0), trim.lower()
    for a in normal_axes(axis, y.ndim):
        kept = cast(any(full, tuple([b for b in range(y.ndim) if b != a])), "int64")
        before = cumsum(kept) if "f" in ends else like(1, kept)
        behind = flip(cumsum(flip(kept))) if "b" in ends else like(1, kept)
        y = compress(before * behind, y, a)
    return y


def _check_no_longer(length: Dim, x: Tensor, axis: int) -> None:
    here = x.shape[axis]
    if isinstance(length, int) and isinstance(here, int) and length > here:
        raise ShapeError(f"a condition of length {length} is longer than axis {axis} of {x.type!r}")


def extract(
    condition: TensorLike, x: TensorLike, *, size: int | None = None, fill_value: Any = 0
) -> Tensor:
    """The elements of x where a condition of its size holds.

    Parameters:
        condition: as many elements as x; what is not 0 holds.
        x: any shape and dtype.
        size: the number of elements; None: all of them, a number that is known only at run time
            (not on JAX or under vmap).
        fill_value: the value of missing entries.

    Returns: (K,), of the dtype of x.

    Raises: ShapeError if the condition is larger than x, or for a negative size.

    Gradient: dx = dy put back where its elements came from, zeros elsewhere.

    Source: numpy.extract; jax.numpy.extract for size and fill_value.

    >>> gg.evaluate(gg.extract([[True, False], [False, True]], [[1, 2], [3, 4]]))
    array([1, 4])
    """
    return compress(flatten(condition), flatten(x), 0, size=size, fill_value=fill_value)


def repeat(
    x: TensorLike,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
) -> Tensor:
    """Each element of x repeated along an axis.

    Parameters:
        x: any shape and dtype.
        repeats: a number or a length, or one number for each place along the axis, whose length is
            then known; or a tensor of such, 0-d or a vector.
        axis: the axis; None: x is flattened first.
        total_repeat_length: how long the axis becomes: what is too much is left out, the last place
            is repeated for what is missing, negative numbers count as 0. None: as long as the
            repeats say; of computed ones that is known only at run time (not on JAX, nor under
            vmap).

    Returns: x with the longer axis, of its dtype.

    Raises: ShapeError if x has no such axis, or for repeats that are negative, no integers, or not
    one for each place. A run raises ValueError for computed repeats that are negative.

    Gradient: dx = dy added up over the copies.

    Source: the array API standard, repeat; jax.numpy.repeat for total_repeat_length.

    >>> gg.evaluate(gg.repeat([1, 2, 3], [2, 0, 1]))
    array([1, 1, 3])
    """
    x = as_tensor(x)
    if axis is None:
        x, axis = flatten(x), 0
    axis = normal_axis(axis, x.ndim)
    if isinstance(repeats, Tensor) and isinstance(repeats.node.op, Constant):
        repeats = repeats.node.op.value
    if not isinstance(repeats, Tensor) and total_repeat_length is None:
        return repeat_by_numbers(x, repeats, axis)
    counts = _counts(as_tensor(repeats), x, axis)
    if total_repeat_length is None:
        return take(x, apply(RepeatedPlaces(), counts), axis)
    return take(x, _padded_places(counts, checked_size(total_repeat_length)), axis)


def _counts(repeats: Tensor, x: Tensor, axis: int) -> Tensor:
    """One number of copies for each place along the axis."""
    here, there = x.shape[axis], repeats.shape[0] if repeats.ndim == 1 else 1
    wrong = isinstance(here, int) and isinstance(there, int) and there not in (1, here)
    if kind_of(repeats.dtype) not in "iu" or repeats.ndim > 1 or wrong:
        raise ShapeError(
            f"repeat of axis {axis} of {x.type!r} takes numbers of copies, one or one for each "
            f"place, got {repeats.type!r}"
        )
    counts = cast(repeats, INT64)
    if here is not None:
        return counts if there == here else broadcast_to(counts, (here,))
    beside = tuple([i for i in range(x.ndim) if i != axis])
    return counts + sum(zeros_like(x, dtype=INT64), beside)


def _padded_places(counts: Tensor, total: Any) -> Tensor:
    """Each place as often as counts say, cut or the last one repeated to a total length."""
    ends = minimum(cumsum(maximum(counts, 0)), total)
    marks = scatter_add(zeros(total + 1, "int64"), ends, 1)
    return minimum(_first(cumsum(marks), total), length_of(counts) - 1)
