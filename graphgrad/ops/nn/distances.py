"""Distances and angles between vectors."""

from __future__ import annotations

from ...base.domains import FINITE, NUMBER, POSITIVE
from ...base.errors import ShapeError
from ..arrays.grids import triu_indices
from ..base import Tensor, TensorLike, rounded_once
from ..elementwise.bounds import maximum
from ..linalg.norms import vector_norm
from ..reduce.reductions import sum
from ..shape.indexing import take
from ..shape.reshaping import normal_axis
from .operands import real_operands, told_length

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]


def normalize(x: TensorLike, ord: float = 2.0, axis: int = -1, epsilon: float = 1e-12) -> Tensor:
    """x divided by its norm along an axis, or by epsilon where that is greater.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        ord: the order p of the norm, (sum |x|**p)**(1/p).
        axis: the axis along which y has norm 1.
        epsilon: a Python number > 0.

    Returns: shape and dtype of x.

    Raises: ShapeError if x has no such axis; DTypeError if x is complex.

    Gradient: of norm 2, dx = (dy - y * sum(dy * y)) / norm.

    Source: PyTorch, torch.nn.functional.normalize.

    >>> gg.evaluate(gg.nn.normalize([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    NUMBER("ord", ord)
    POSITIVE("epsilon", epsilon)
    (x,) = real_operands("normalize", x)
    at = normal_axis(axis, x.ndim)

    def unit(x: Tensor) -> Tensor:
        return x / maximum(vector_norm(x, axis=at, keepdims=True, ord=ord), epsilon)

    return rounded_once(unit, x)


def cosine_similarity(
    x: TensorLike, y: TensorLike, axis: int = -1, epsilon: float = 1e-8
) -> Tensor:
    """The cosine of the angle between vectors along an axis.

    Parameters:
        x, y: shapes that broadcast; floating, ints and bools become float64.
        axis: that of the vectors, in the shape to which they broadcast.
        epsilon: a Python number > 0; a smaller norm counts as so much.

    Returns: the broadcast shape without the axis; dtypes promoted.

    Raises: ShapeError if the shapes do not broadcast, or there is no such axis; DTypeError for
        complex operands.

    Gradient: that of sum(normalize(x) * normalize(y)).

    Source: PyTorch, torch.nn.functional.cosine_similarity.

    >>> gg.evaluate(gg.nn.cosine_similarity([[1.0, 0.0], [1.0, 1.0]], [2.0, 2.0])).round(4)
    array([0.7071, 1.    ])
    """
    POSITIVE("epsilon", epsilon)
    x, y = real_operands("cosine_similarity", x, y)
    rank = max(x.ndim, y.ndim)
    from_end = normal_axis(axis, rank) - rank
    if min(x.ndim, y.ndim) < -from_end:
        raise ShapeError(f"cosine_similarity along axis {axis} of {x.type!r} and {y.type!r}")
    unit_x, unit_y = (normalize(t, 2.0, from_end, epsilon) for t in (x, y))
    return sum(unit_x * unit_y, from_end)


def pairwise_distance(
    x: TensorLike,
    y: TensorLike,
    p: float = 2.0,
    epsilon: float = 1e-6,
    keepdims: bool = False,
) -> Tensor:
    """The norm of x - y + epsilon along the last axis.

    Parameters:
        x, y: shapes that broadcast; floating, ints and bools become float64.
        p: the order of the norm.
        epsilon: a Python number, which keeps the norm away from its kink.
        keepdims: whether the last axis stays, with length 1.

    Returns: the broadcast shape without the last axis; dtypes promoted.

    Raises: ShapeError if the shapes do not broadcast, or have no axis; DTypeError for complex
        operands.

    Gradient: that of the norm; at 0 of norm 2 it is 0.

    Source: PyTorch, torch.nn.functional.pairwise_distance.

    >>> gg.evaluate(gg.nn.pairwise_distance([[3.0, 4.0]], [[0.0, 0.0]])).round(4)
    array([5.])
    """
    NUMBER("p", p)
    FINITE("epsilon", epsilon)
    x, y = real_operands("pairwise_distance", x, y)
    return vector_norm(x - y + epsilon, axis=-1, keepdims=keepdims, ord=p)


def pdist(x: TensorLike, p: float = 2.0) -> Tensor:
    """The distances between the rows of a matrix, each pair once: (0, 1), (0, 2), ... (1, 2), ...

    Parameters:
        x: (N, M); floating, ints and bools become float64.
        p: the order of the norm.

    Returns: (N (N - 1) / 2,), dtype of x.

    Raises: ShapeError if x is not a matrix, or N depends on values; DTypeError if x is complex.

    Gradient: that of the norms; where rows are equal, 0 for norm 2.

    Source: scipy.spatial.distance.pdist.

    >>> gg.evaluate(gg.nn.pdist([[0.0], [3.0], [4.0]]))
    array([3., 4., 1.])
    """
    NUMBER("p", p)
    (x,) = real_operands("pdist", x)
    if x.ndim != 2:
        raise ShapeError(f"pdist takes the rows of a matrix, got {x.type!r}")
    first, second = triu_indices(told_length("pdist", x, 0), 1)
    return vector_norm(take(x, first, 0) - take(x, second, 0), axis=-1, ord=p)
