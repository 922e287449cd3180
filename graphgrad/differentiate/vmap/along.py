"""A function of vectors, applied to all that lie along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.node import Tensor
from ...ops.base import TensorLike, as_tensor
from ...ops.shape.reshaping import moveaxis, normal_axis
from .vmap import vmap

__all__ = ["apply_along_axis"]


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, x: TensorLike, *args: Any, **kwargs: Any
) -> Tensor:
    """func1d of each vector along an axis, as one batch.

    Parameters:
        func1d: a function of a vector, which returns a tensor.
        axis: the axis of x along which the vectors lie.
        x: at least one axis, any dtype.
        *args, **kwargs: further arguments of func1d.

    Returns: x with the shape of what func1d returns in place of the axis.

    Raises: ShapeError if x has no such axis.

    Source: numpy.apply_along_axis.

    >>> gg.evaluate(gg.apply_along_axis(gg.sort, 1, [[3, 1, 2], [9, 8, 7]]))
    array([[1, 2, 3],
           [7, 8, 9]])
    """
    x = as_tensor(x)
    axis = normal_axis(axis, x.ndim)

    def of_vectors(v: Tensor) -> Tensor:
        return as_tensor(func1d(v, *args, **kwargs))

    batched: Any = of_vectors
    for _ in range(x.ndim - 1):
        batched = vmap(batched)
    y: Tensor = batched(moveaxis(x, axis, -1))
    made = range(x.ndim - 1, y.ndim)
    return moveaxis(y, tuple(made), tuple(range(axis, axis + len(made))))
