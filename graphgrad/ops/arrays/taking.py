"""Elements taken by index, with a choice of what an index out of bounds means."""

from __future__ import annotations

from ..base import Tensor, TensorLike, as_dtype, as_tensor
from ..documented import documented
from ..reduce.reductions import size_over
from ..shape.indexing import Gather, check_integers
from ..shape.indexing import take as take_in_bounds
from ..shape.reshaping import flatten, normal_axis
from .at import indices_in_bounds

__all__ = ["take"]


@documented(Gather)
def take(
    x: TensorLike, indices: TensorLike, axis: int | None = None, mode: str = "raise"
) -> Tensor:
    """x at indices along an axis.

    Parameters:
        x: any shape and dtype.
        indices: integers from -N to N - 1, of any shape, which takes the place of the axis.
        axis: an axis of length N; None: x is flattened first.
        mode: what other indices mean: "raise", "wrap" (modulo the length) or "clip" (the
            nearest one, and 0 for negative ones).

    Returns: x so, of its dtype.

    Raises: ShapeError if x has no such axis, or for an index that is known to be out of bounds;
    DTypeError for indices that are not integers; ValueError for an unknown mode. A run raises
    IndexError for a computed index that is out of bounds.

    Source: numpy.take; the array API standard, take.

    >>> gg.evaluate(gg.take([10, 20, 30], [2, 0, 2]))
    array([30, 10, 30])
    """
    if mode == "raise":
        return take_in_bounds(x, indices, axis)
    x, indices = as_tensor(x), as_tensor(indices)
    check_integers(indices.type)
    x, axis = (flatten(x), 0) if axis is None else (x, normal_axis(axis, x.ndim))
    length = size_over(x, (axis,), as_dtype("int64"))
    return take_in_bounds(x, indices_in_bounds(indices, length, mode), axis)
