"""Diagonals of two axes."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...base.length import Length
from ...ir.types import computed, lengths
from ..base import (
    ZERO,
    Any,
    Constant,
    Derivative,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_tensor,
    kind_of,
    np,
    tensor_type,
    whole,
)
from ..documented import documented
from ..elementwise.logic import EQUAL, WHERE
from ..making import Making
from ..onnx_places import AT, places_of
from ..reduce.reductions import sum
from ..shape.reshaping import ExpandDims, normal_axis
from ..shape.slicing import FULL

__all__ = ["diagonal", "trace"]


class Diagonal(Op):
    """y[..., i] = x at (i, i + offset) of two axes, which go; y's last axis is the diagonal.

    Gradient: dx = dy on the diagonal, zeros elsewhere.
    """

    offset: int
    axis1: int
    axis2: int
    linear = "joint"
    derivative = Derivative(relevance="moved")
    flop_free = True
    axis_attrs = ("axis1", "axis2")

    def infer(self, x: TensorType) -> Types:
        n, m = x.shape[self.axis1], x.shape[self.axis2]
        below, above = min(self.offset, 0), max(self.offset, 0)
        length = computed(lambda n, m: Length.max(Length.min(n + below, m - above), 0), n, m)
        rest = [d for i, d in enumerate(x.shape) if i not in (self.axis1, self.axis2)]
        return (tensor_type((*rest, length), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.copy(xp.diagonal(x, self.offset, self.axis1, self.axis2))

    def to_onnx(self, to: Any, x: Any) -> Any:
        row, column = max(-self.offset, 0), max(self.offset, 0)
        left = to.Sub(to.length(x, self.axis1), row), to.Sub(to.length(x, self.axis2), column)
        count = to.Squeeze(to.Max(to.Min(*left), 0), [0])
        rows = to.Add(to.Range(np.int64(0), count, np.int64(1), shape=(None,)), row)
        kept = [a for a in range(x.rank) if a not in (self.axis1, self.axis2)]
        shape = tuple([x.shape[a] for a in (*kept, self.axis1, self.axis2)])
        moved = to.Transpose(x, perm=[*kept, self.axis1, self.axis2], shape=shape)
        key = (*(FULL,) * len(kept), AT, AT)
        return to.GatherND(moved, places_of(to, moved, key, [rows, to.Add(rows, column - row)]))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(DiagonalGrad(self.offset, self.axis1, self.axis2), dy, node.inputs[0]),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, 0, 1), [rng.normal(size=(3, 3))]
        yield cls(1, 0, 1), [rng.normal(size=(3, 4))]
        yield cls(-1, 2, 0), [rng.normal(size=(3, 2, 4))]
        yield cls(5, 0, 1), [rng.normal(size=(3, 2))]


class DiagonalGrad(Op):
    """dy on the diagonal of zeros of the shape of the second input; the adjoint of Diagonal.

    Gradient: that of dy is its diagonal, for the second input zero.
    """

    offset: int
    axis1: int
    axis2: int
    linear = (0,)
    shape_only = (1,)
    derivative = Derivative(relevance="moved")
    flop_free = True
    axis_attrs = ("axis1", "axis2")

    def infer(self, dy: TensorType, like: TensorType) -> Types:
        return (tensor_type(like.shape, dy.dtype),)

    def kernel(self, xp: Any, dy: Any, like: Any) -> Any:
        n, m = like.shape[self.axis1], like.shape[self.axis2]
        k = dy.shape[-1]
        row, column = xp.arange(n)[:, None], xp.arange(m)[None, :]
        at = row + min(self.offset, 0)
        hit = (row + self.offset == column) & (at >= 0) & (at < k)
        padded = xp.concatenate([dy, xp.zeros((*dy.shape[:-1], 1), dy.dtype)], axis=-1)
        spread = xp.take(padded, xp.where(hit, at, k), axis=-1)
        return xp.moveaxis(spread, (-2, -1), (self.axis1, self.axis2))

    def decompose(self, make: Making) -> Tensor | None:
        """dy where the numbers of row and column are the diagonal's, else 0, for the last axes."""
        dy, y = make.inputs[0], make.node.outputs[0]
        rank, (*_, n, m) = y.ndim, lengths(y.type)
        plain = (self.axis1, self.axis2) == (rank - 2, rank - 1)
        if not (plain and counted(dy) and dy.shape[-1] in (n, m)):
            return None
        rows, columns = numbered(make, y, self.offset)
        along = make(ExpandDims((rank - 1 if dy.shape[-1] == n else rank - 2,)), dy)
        return make(WHERE, make(EQUAL, columns, rows), along, make.zero(dy))

    def vjp(self, node: Node, dx: Tensor) -> Gradients:
        return apply(Diagonal(self.offset, self.axis1, self.axis2), dx), ZERO

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, 0, 1), [rng.normal(size=(3,)), rng.normal(size=(3, 3))]
        yield cls(1, 0, 1), [rng.normal(size=(3,)), rng.normal(size=(3, 4))]
        yield cls(-1, 2, 0), [rng.normal(size=(2, 3)), rng.normal(size=(3, 2, 4))]


def counted(x: Tensor) -> bool:
    """Whether there are numbers of rows and columns of the size of x's."""
    return kind_of(x.dtype) in "iuf" and x.dtype.itemsize >= 4


def numbered(make: Making, x: Tensor, offset: int) -> tuple[Tensor, Tensor]:
    """The numbers of the rows of matrices, plus an offset, and of their columns: they broadcast."""
    *_, n, m = lengths(x.type)
    dtype = np.dtype(f"i{x.dtype.itemsize}")
    rows = make(Constant(np.arange(offset, n + offset, dtype=dtype)[:, None]))
    return rows, make(Constant(np.arange(m, dtype=dtype)))


@documented(Diagonal)
def diagonal(x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The elements (i, i + offset) of two axes, as the last axis of the result.

    Parameters:
        x: at least two axes, any dtype.
        offset: how far the diagonal is above the main one (below for offset < 0).
        axis1, axis2: the axes of i and of i + offset.

    Returns: x without the two axes and with one for the diagonal, last; dtype of x.

    Raises: ShapeError if x has no such axes, or they are the same.

    Source: numpy.diagonal.

    >>> gg.evaluate(gg.diagonal([[1, 2], [3, 4]]))
    array([1, 4])
    """
    x = as_tensor(x)
    first, second = (normal_axis(a, x.ndim) for a in (axis1, axis2))
    if first == second:
        raise ShapeError(f"diagonal of {x.type!r} takes two axes, got {axis1} twice")
    return apply(Diagonal(whole("an offset", offset), first, second), x)


def trace(
    x: TensorLike, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None
) -> Tensor:
    """The sum of the diagonal.

    Parameters:
        x: at least two axes, any dtype.
        offset: how far the diagonal is above the main one (below for offset < 0).
        axis1, axis2: the axes of rows and of columns.
        dtype: the dtype of the accumulation.

    Returns: x without the two axes; its dtype unless another is given, but int64 for bools and
    small integers, uint64 for small unsigned ones.

    Raises: ShapeError if x has no such axes, or they are the same.

    Gradient: dx = dy on the diagonal, zeros elsewhere.

    Source: numpy.trace.

    >>> gg.evaluate(gg.trace([[1, 2], [3, 4]]))
    array(5)
    """
    return sum(diagonal(x, offset, axis1, axis2), -1, dtype=dtype)
