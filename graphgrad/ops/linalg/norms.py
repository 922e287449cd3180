"""Norms of vectors and matrices."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...base.flags import truth
from ...ir.types import elements
from ..base import (
    Any,
    Derivative,
    Gradients,
    Node,
    Tensor,
    TensorLike,
    Types,
    apply,
    cast,
    np,
    promoted,
    rounded_once,
)
from ..elementwise.logic import where
from ..reduce import reductions
from ..reduce.reductions import Axes, Reduction, sum
from ..shape.reshaping import Squeeze, distinct_axes, expand_dims, moveaxis
from ..special.information import xdivy
from .inverses import inv
from .matrices import check_square, matrices
from .singular_values import svdvals

__all__ = ["cond", "matrix_norm", "norm", "vector_norm"]


class EuclideanNorm(Reduction):
    """y = sqrt(sum of x**2 over axes).

    Gradient: dx = dy * x / y; 0 at x = 0, where the norm has a kink: the subgradient of least
        norm.
    """

    derivative = Derivative(singular=0, relevance="taylor")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.sqrt(xp.sum(x * x, axis=self.axes, keepdims=self.keepdims, dtype=x.dtype))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (self.spread(dy, x) * xdivy(x, self.spread(y, x)),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Two for each element of x."""
        return 2 * elements(inputs[0])


def norm(x: TensorLike, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The norm of vectors (one axis), matrices (two axes), or all elements, as np.linalg.norm.

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        ord: None, "fro" of matrices or 2 of vectors is the root of the sum of squares; of vectors
            also 0, 1, inf, -inf and p; of matrices 1, -1, inf, -inf, 2, -2 and "nuc".
        axis: an int, two in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.

    Returns: x without the axes, or with length 1 there; floating.

    Raises: ShapeError if x has no such axis, or there is no such norm of these axes.

    Gradient: dx = dy * x / y of the root of the sum of squares, 0 at x = 0: the subgradient of
        least norm; of others that of the sum, largest element or singular values they are made of.

    Source: numpy.linalg.norm; Golub and Van Loan 2013, "Matrix computations", sec. 2.2 and 2.3.

    >>> gg.evaluate(gg.linalg.norm([[3.0, 4.0], [0.0, 0.0]], axis=1))
    array([5., 0.])
    """
    keepdims = truth("keepdims", keepdims)
    (x,) = promoted(x, floating=True)
    axes = _given_axes(axis, x.ndim)
    if axis is not None and len(axes) not in (1, 2):
        raise ShapeError(f"norm takes one axis or two, got {axis} of {x.type!r}")
    if len(axes) != 2 or ord not in _OF_SINGULAR_VALUES:
        x = _moduli(x)
    if ord is None or (ord == "fro" and len(axes) == 2) or (ord == 2 and len(axes) == 1):
        return apply(EuclideanNorm(tuple(sorted(axes)), keepdims), x)
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
    return tuple(range(ndim)) if axis is None else distinct_axes(axis, ndim)


def _vector_norm(x: Tensor, ord: Any, axes: Axes, keepdims: bool) -> Tensor:
    if not isinstance(ord, int | float | np.integer | np.floating):
        raise ShapeError(f"there is no norm of vectors of order {ord!r}, got {x.type!r}")
    if ord == 0:
        return sum(cast(x != 0, x.dtype), axes, keepdims)
    size = abs(x)
    if ord == np.inf:
        return reductions.max(size, axes, keepdims)
    if ord == -np.inf:
        return reductions.min(size, axes, keepdims)
    if ord == 1:
        return sum(size, axes, keepdims)
    return rounded_once(lambda size: _power_norm(size, float(ord), axes, keepdims), size)


def _power_norm(size: Tensor, p: float, axes: Axes, keepdims: bool) -> Tensor:
    """(sum of size**p)**(1 / p), with no slope where that has none: at zero.

    For p < 1 an element of zero has none either.
    """
    if p < 1:
        zero = size == 0
        powers = where(zero, np.inf if p < 0 else 0.0, where(zero, 1.0, size) ** p)
    else:
        powers = size**p
    total = sum(powers, axes, keepdims)
    nothing = total == (np.inf if p < 0 else 0.0)
    return where(nothing, 0.0, where(nothing, 1.0, total) ** (1.0 / p))


_OF_SINGULAR_VALUES = (2, -2, "nuc")
_MATRIX_ORDERS = (1, -1, np.inf, -np.inf, *_OF_SINGULAR_VALUES)


def _matrix_norm(x: Tensor, ord: Any, axes: Axes, keepdims: bool) -> Tensor:
    if ord in _OF_SINGULAR_VALUES:
        values = svdvals(moveaxis(x, axes, (-2, -1)))
        norms = {2: reductions.max, -2: reductions.min, "nuc": sum}[ord](values, -1)
        return expand_dims(norms, tuple(sorted(axes))) if keepdims else norms
    rows, columns = axes
    summed, over = (rows, columns) if abs(ord) == 1 else (columns, rows)
    totals = sum(abs(x), summed, True)
    extreme = (reductions.max if ord > 0 else reductions.min)(totals, over, True)
    return extreme if keepdims else apply(Squeeze(tuple(sorted(axes))), extreme)


def vector_norm(
    x: TensorLike, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """The norm of vectors: y = (sum |x|**ord)**(1 / ord).

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        axis: where the vectors lie: an int, or several as one in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        ord: a number; inf and -inf for the extremes of |x|, 0 for how many are not 0.

    Returns: x without the axes, or with length 1 there; floating.

    Raises: ShapeError if x has no such axis, or for an order that is not a number.

    Gradient: dx = dy * sign(x) * (|x| / y)**(ord - 1), 0 at x = 0, which for ord >= 1 is the
        subgradient of least norm; for ord < 1 also 0 for elements that are 0.

    Source: the array API standard, linalg.vector_norm.

    >>> gg.evaluate(gg.linalg.vector_norm([3.0, -4.0], ord=1))
    array(7.)
    """
    keepdims = truth("keepdims", keepdims)
    x = _moduli(promoted(x, floating=True)[0])
    axes = tuple(sorted(_given_axes(axis, x.ndim)))
    if ord == 2:
        return apply(EuclideanNorm(axes, keepdims), x)
    return _vector_norm(x, ord, axes, keepdims)


def matrix_norm(x: TensorLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices, over the last two axes.

    Parameters:
        x: (..., M, N); floating or complex, ints and bools become float64.
        keepdims: whether the axes stay, with length 1.
        ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf.

    Returns: (...), or (..., 1, 1); floating.

    Raises: ShapeError if x has fewer than two axes, or there is no such norm.

    Gradient: as of norm; for "fro" dx = dy * x / y, 0 at x = 0.

    Source: the array API standard, linalg.matrix_norm.

    >>> gg.evaluate(gg.linalg.matrix_norm([[3.0, 0.0], [0.0, -4.0]], ord="nuc"))
    array(7.)
    """
    (x,) = promoted(x, floating=True)
    return norm(x, ord, (-2, -1), keepdims)


def cond(x: TensorLike, /, p: Any = None) -> Tensor:
    """The condition number of matrices: norm(x, p) * norm(inv(x), p).

    Parameters:
        x: (..., M, N), square unless p is None, 2 or -2; floating or complex, ints become float64.
        p: None and 2 for the greatest singular value over the least one, -2 for the inverse of
            that, or an order of norm for matrices: "fro", "nuc", 1, -1, inf, -inf.

    Returns: (...), real; infinity for singular x where p is None or 2, and when run
        numpy.linalg.LinAlgError for most other orders.

    Raises: ShapeError if x has fewer than two axes, is not square where it has to be, or there is
        no such norm; DTypeError if x is float16.

    Gradient: that of the singular values, or of the two norms.

    Source: numpy.linalg.cond.

    >>> gg.evaluate(gg.linalg.cond([[2.0, 0.0], [0.0, 0.5]]))
    array(4.)
    """
    (x,) = promoted(x, floating=True)
    matrices("cond", x.type)
    if p is None or p in (2, -2):
        s = svdvals(x)
        greatest, least = s[..., 0], s[..., -1]
        return least / greatest if p == -2 else greatest / least
    check_square("cond", x.type)
    return norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))
