"""Norms of vectors and matrices."""

from __future__ import annotations

from ..ir.errors import ShapeError
from ..ir.types import elements
from . import reductions
from .base import (
    Any,
    Gradients,
    Node,
    Tensor,
    TensorLike,
    Types,
    apply,
    cast,
    np,
    promoted,
)
from .decompositions import svdvals
from .products import axis_list
from .reductions import Axes, Reduction, normal_axes, sum
from .shaping import Squeeze, expand_dims, moveaxis
from .special import xdivy

__all__ = ["matrix_norm", "norm", "vector_norm"]


class EuclideanNorm(Reduction):
    """y = sqrt(sum of x**2 over axes), dx = dy * x / y.

    At x = 0, where the norm has a kink, dx is 0: the subgradient of least norm.
    """

    singular = 0
    relevance = "taylor"

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.sqrt(xp.sum(x * x, axis=self.axes, keepdims=self.keepdims, dtype=x.dtype))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (self.spread(dy, x) * xdivy(x, self.spread(y, x)),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Two for each element of x."""
        return 2 * elements(inputs[0])


def norm(x: TensorLike, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors (one axis) or matrices (two axes), as np.linalg.norm.

    ord: None, 2 or "fro" is the square root of the sum of squares; its gradient at zero is zero.
    Of vectors also 0, 1, inf, -inf and p; of matrices 1, -1, inf, -inf, 2, -2, "nuc".
    Ints become float64.
    """
    (x,) = promoted(x, floating=True)
    axes = _given_axes(axis, x.ndim)
    if len(axes) != 2 or ord not in _OF_SINGULAR_VALUES:
        x = _moduli(x)
    if ord is None or (ord == "fro" and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return apply(EuclideanNorm(tuple(sorted(axes)), bool(keepdims)), x)
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, keepdims)
    if len(axes) == 2 and ord in _MATRIX_ORDERS:
        return _matrix_norm(x, ord, axes, keepdims)
    raise ShapeError(f"norm of order {ord!r} over axes {axes} of {x.type!r} is not available")


def _moduli(x: Tensor) -> Tensor:
    """|x| for complex numbers; floating numbers as they are."""
    return abs(x) if x.type.complex else x


def _given_axes(axis: Any, ndim: int) -> Axes:
    """Axes in the order given, non-negative."""
    if axis is None:
        return tuple(range(ndim))
    return tuple([normal_axes(a, ndim)[0] for a in axis_list(axis)])


def _vector_norm(x: Tensor, ord: Any, axes: Axes, keepdims: bool) -> Tensor:
    size = abs(x)
    if ord == np.inf:
        return reductions.max(size, axes, keepdims)
    if ord == -np.inf:
        return reductions.min(size, axes, keepdims)
    if ord == 0:
        return sum(cast(x != 0, x.dtype), axes, keepdims)
    if ord == 1:
        return sum(size, axes, keepdims)
    return sum(size ** float(ord), axes, keepdims) ** (1.0 / float(ord))


_OF_SINGULAR_VALUES = (2, -2, "nuc")
_MATRIX_ORDERS = (1, -1, np.inf, -np.inf, *_OF_SINGULAR_VALUES)


def _matrix_norm(x: Tensor, ord: Any, axes: Axes, keepdims: bool) -> Tensor:
    if ord in _OF_SINGULAR_VALUES:
        values = svdvals(moveaxis(x, axes, (-2, -1)))
        found = {2: reductions.max, -2: reductions.min, "nuc": sum}[ord](values, -1)
        return expand_dims(found, tuple(sorted(axes))) if keepdims else found
    rows, columns = axes
    summed, over = (rows, columns) if abs(ord) == 1 else (columns, rows)
    totals = sum(abs(x), summed, True)
    extreme = (reductions.max if ord > 0 else reductions.min)(totals, over, True)
    return extreme if keepdims else apply(Squeeze(tuple(sorted(axes))), extreme)


def vector_norm(
    x: TensorLike, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """The norm of order ord of vectors, which lie along an axis, or along several as one."""
    x = _moduli(promoted(x, floating=True)[0])
    axes = tuple(sorted(_given_axes(axis, x.ndim)))
    if ord == 2:
        return apply(EuclideanNorm(axes, bool(keepdims)), x)
    return _vector_norm(x, ord, axes, keepdims)


def matrix_norm(x: TensorLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices (..., M, N): "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    (x,) = promoted(x, floating=True)
    return norm(x, ord, (-2, -1), keepdims)
