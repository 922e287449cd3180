"""Differences of neighbouring elements."""

from __future__ import annotations

from ...ir.graph import Graph
from ...ir.program import Program
from ..base import DTypeError, Tensor, TensorLike, as_tensor, kind_of, np, tensor_type
from ..elementwise.arithmetic import subtract
from ..elementwise.logic import not_equal
from ..reduce.reductions import sum
from ..shape.joining import concat
from ..shape.reshaping import broadcast_like, broadcast_to, normal_axis

__all__ = ["diff"]


def diff(
    x: TensorLike,
    n: int = 1,
    axis: int = -1,
    prepend: TensorLike | None = None,
    append: TensorLike | None = None,
) -> Tensor:
    """Differences of neighbours along an axis, n times over: y[k] = x[k + 1] - x[k].

    Parameters:
        x: at least one axis; of bools, whether neighbours differ.
        n: how often, >= 0.
        axis: an int.
        prepend, append: what stands before and after x; a number is repeated along the other axes.

    Returns: shape of x with both ends, n less along the axis; dtype promoted with theirs.

    Raises: ValueError if n < 0; ShapeError if x has no such axis; DTypeError if n is not an int, or
        for graphs, which gg.graph_diff compares.

    Gradient: dx[k] = dy[k - 1] - dy[k], n times over.

    Source: numpy.diff.

    >>> gg.evaluate(gg.diff([1, 2, 4, 7])), gg.evaluate(gg.diff([1, 2, 4, 7], n=2))
    (array([1, 2, 3]), array([1, 1]))
    """
    if isinstance(x, Graph | Program) or not isinstance(n, int | np.integer):
        raise DTypeError(
            "gg.diff(x, n) is the difference of neighbours in a tensor, as np.diff; "
            "gg.graph_diff(before, after) compares graphs, programs and lists of tensors"
        )
    if n < 0:
        raise ValueError(f"diff is taken n >= 0 times, got {n}")
    x = as_tensor(x)
    if n == 0:
        return x
    axis = normal_axis(axis, x.ndim)
    parts = [*_edge(prepend, x, axis), x, *_edge(append, x, axis)]
    x = concat(parts, axis) if len(parts) > 1 else x
    before = (slice(None),) * axis
    for _ in range(n):
        left, right = x[(*before, slice(None, -1))], x[(*before, slice(1, None))]
        x = not_equal(right, left) if kind_of(x.dtype) == "b" else subtract(right, left)
    return x


def _edge(value: TensorLike | None, x: Tensor, axis: int) -> list[Tensor]:
    """What stands at an end of x, if anything; a number as one layer."""
    if value is None:
        return []
    t = as_tensor(value)
    if t.ndim:
        return [t]
    layer = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    if tensor_type(layer, x.dtype).static:
        return [broadcast_to(t, layer)]
    return [broadcast_like(t, sum(x, axis, True))]
