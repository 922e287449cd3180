"""Matrix products of every kind."""

from __future__ import annotations

import math
import string
from math import prod

from ...base.errors import ShapeError
from ...ir.types import Dim, broadcast, lengths, merge_dims
from ..base import (
    NO_GRAD,
    Any,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Op,
    Samples,
    Sequence,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    is_floating,
    np,
    promoted,
    tensor_type,
    wants,
    whole,
)
from ..batching import Batch, Outputs
from ..documented import documented
from ..elementwise.accumulate import EnsureLike
from ..elementwise.arithmetic import multiply
from ..elementwise.complex_parts import conj
from ..shape.reshaping import Squeeze, distinct_axes, expand_dims, moveaxis, normal_axis, reshape
from .einsum import contract, einsum

__all__ = [
    "dot",
    "inner",
    "matmul",
    "matvec",
    "multi_dot",
    "outer",
    "tensordot",
    "vdot",
    "vecdot",
    "vecmat",
]


# --- matrix product ----------------------------------------------------------------------------


class MatMul(Op):
    """z = x1 @ x2 over the last two axes, either transposed first; the axes before broadcast.

    Gradient: dx1 = dz @ x2.T, dx2 = x1.T @ dz [Giles 2008, "An extended collection of matrix
        derivative results", sec. 2.2.2].

    x1: (..., M, K)    x2: (..., K, N)    z: (..., M, N), all of one dtype. ShapeError unless the
    inner lengths can be equal. Each gradient is one MatMul of the flags that need no transposed
    copy; where one operand is a matrix and the other a stack, the sum over the stack is part of
    the product.
    """

    transpose_a: bool = False
    transpose_b: bool = False
    broadcasts = True
    onnx = Onnx("MatMul")
    linear = "each"

    def infer(self, x: TensorType, y: TensorType) -> Types:
        if x.dtype is not y.dtype:
            raise DTypeError(f"MatMul takes operands of one dtype, got {x!r} and {y!r}")
        if len(x.shape) < 2 or len(y.shape) < 2:
            raise ShapeError(f"MatMul takes two (stacks of) matrices, got {x!r} and {y!r}")
        m, k = x.shape[:-3:-1] if self.transpose_a else x.shape[-2:]
        same, n = y.shape[:-3:-1] if self.transpose_b else y.shape[-2:]
        if not may_equal(k, same):
            raise ShapeError(f"matmul needs equal inner lengths, got {k} and {same}: {x!r} @ {y!r}")
        stack = broadcast([x.shape[:-2], y.shape[:-2]])
        return (tensor_type((*stack, m, n), x.dtype),)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        y = y.mT if self.transpose_b else y
        if x.ndim > 2 and y.ndim == 2 and not self.transpose_a:
            rows = xp.reshape(x, (math.prod(x.shape[:-1]), x.shape[-1]))
            return xp.reshape(xp.matmul(rows, y), (*x.shape[:-1], y.shape[1]))
        return xp.matmul(x.mT if self.transpose_a else x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        a, b = self.transpose_a, self.transpose_b
        if (a or b) and x.rank == y.rank == 2 and is_floating(x.dtype):
            return to.Gemm(x, y, transA=a, transB=b)
        return to.MatMul(_turned(to, x) if a else x, _turned(to, y) if b else y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return (
            self.grad_x(x, y, dz) if wants(x) else NO_GRAD,
            self.grad_y(x, y, dz) if wants(y) else NO_GRAD,
        )

    def grad_x(self, x: Tensor, y: Tensor, dz: Tensor) -> Tensor:
        """dz @ y.T, or its transpose."""
        if x.ndim == 2 and y.ndim > 2:
            of_x, of_y, stack = self._letters(y.ndim - 2)
            return contract(f"{stack}mn,{stack}{of_y}->{of_x}", dz, y)
        if self.transpose_a:
            return apply(MATMUL[self.transpose_b, True], y, dz)
        return apply(MATMUL[False, not self.transpose_b], dz, y)

    def grad_y(self, x: Tensor, y: Tensor, dz: Tensor) -> Tensor:
        """x.T @ dz, or its transpose."""
        if y.ndim == 2 and x.ndim > 2:
            of_x, of_y, stack = self._letters(x.ndim - 2)
            return contract(f"{stack}{of_x},{stack}mn->{of_y}", x, dz)
        if self.transpose_b:
            return apply(MATMUL[True, self.transpose_a], dz, x)
        return apply(MATMUL[not self.transpose_a, False], x, dz)

    def _letters(self, stack: int) -> tuple[str, str, str]:
        """The subscripts of x, of y, and of the axes before."""
        of_x = "km" if self.transpose_a else "mk"
        of_y = "nk" if self.transpose_b else "kn"
        return of_x, of_y, string.ascii_uppercase[:stack]

    def batch(self, batch: Batch) -> Outputs | None:
        """Matrices alone are a stack; vectors would be taken for one."""
        ranks = [len(t.shape) for t in batch.types]
        return batch.build(self, *batch.aligned()) if min(ranks) >= 2 else None

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Two for each product of elements."""
        x, y = map(lengths, inputs)
        m, k = x[:-3:-1] if self.transpose_a else x[-2:]
        n = y[-2] if self.transpose_b else y[-1]
        return 2 * max(prod(x[:-2]), prod(y[:-2])) * m * n * k

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for a in (False, True):
            for b in (False, True):
                x = (3, 2) if a else (2, 3)
                y = (4, 3) if b else (3, 4)
                for left, right in [((), ()), ((2,), ()), ((), (2,)), ((2, 1), (3,)), ((1,), (2,))]:
                    yield cls(a, b), [rng.normal(size=left + x), rng.normal(size=right + y)]
        yield cls(), [rng.normal(size=s).astype("float32") for s in [(2, 3), (3, 2)]]
        yield cls(), [rng.normal(size=s) for s in [(2, 0), (0, 3)]]
        yield cls(), [rng.normal(size=s) for s in [(2, 0, 3), (3, 0)]]


MATMUL = {(a, b): MatMul(a, b) for a in (False, True) for b in (False, True)}
_PLAIN = MATMUL[False, False]


def _turned(to: Any, x: Any) -> Any:
    """The last two axes exchanged, in ONNX."""
    axes = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    return to.Transpose(x, perm=axes)


@documented(MatMul)
def matmul(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Matrix product: z = x1 @ x2, over the last two axes; the axes before broadcast.

    Parameters:
        x1: (..., M, K), or (K,) for one row, whose axis goes from the result.
        x2: (..., K, N), or (K,) for one column, whose axis goes from the result.

    Returns: z, (..., M, N), dtypes promoted as NumPy 2 does.

    Raises: ShapeError for 0-d operands, and for inner lengths that differ.

    Source: numpy.matmul.

    >>> gg.evaluate(gg.matmul([[1, 2], [3, 4]], [1, 1]))
    array([3, 7])
    """
    x, y = promoted(x1, x2)
    if x.ndim >= 2 and y.ndim >= 2:
        return apply(_PLAIN, x, y)
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(f"matmul takes no 0-d operand, got {x.type!r} and {y.type!r}; use *")
    if x.ndim == 1 and y.ndim == 1:
        return einsum("i,i->", _as_long("matmul", x, y), y)
    if x.ndim == 1:
        return squeezed(apply(_PLAIN, expand_dims(x, 0), y), -2)
    return squeezed(apply(_PLAIN, x, expand_dims(y, 1)), -1)


def squeezed(x: Tensor, axis: int) -> Tensor:
    """x without the axis, counted from the end."""
    return apply(Squeeze((x.ndim + axis,)), x)


def may_equal(a: Dim, b: Dim) -> bool:
    """Whether two lengths can be the same when run."""
    return a == b or not (isinstance(a, int) and isinstance(b, int))


# --- products made of these --------------------------------------------------------------------


def tensordot(x1: TensorLike, x2: TensorLike, /, axes: Any = 2) -> Tensor:
    """Sum of products over pairs of axes.

    Parameters:
        x1, x2: any shapes; dtypes promoted as NumPy 2 does.
        axes: an int n for the last n of x1 and the first n of x2, or two sequences of axes.

    Returns: z, with the other axes of x1, then those of x2.

    Raises: ShapeError for axes that are not there or named twice, if the axes of a pair differ in
        length, or their numbers differ.

    Gradient: dx1 = the sum of dz * x2 over the other axes of x2, dx2 likewise.

    Source: numpy.tensordot.

    >>> gg.evaluate(gg.tensordot([[1, 2], [3, 4]], [[1, 0], [0, 1]], axes=2))
    array(5)
    """
    x, y = promoted(x1, x2)
    if isinstance(axes, tuple | list | np.ndarray) and len(axes) == 2:
        left, right = distinct_axes(axes[0], x.ndim), distinct_axes(axes[1], y.ndim)
    else:
        n = whole("tensordot: axes, unless a pair of sequences,", axes)
        if not 0 <= n <= min(x.ndim, y.ndim):
            raise ShapeError(f"tensordot over {n} axes of {x.type!r} and {y.type!r}")
        left, right = tuple(range(x.ndim - n, x.ndim)), tuple(range(n))
    if len(left) != len(right):
        raise ShapeError(f"tensordot over axes {axes} of {x.type!r} and {y.type!r}")
    for a, b in zip(left, right, strict=True):
        _same_length("tensordot", x, a, y, b)
    of_x = list(string.ascii_lowercase[: x.ndim])
    of_y = list(string.ascii_uppercase[: y.ndim])
    for a, b in zip(left, right, strict=True):
        of_y[b] = of_x[a]
    out = [c for c in of_x if c not in of_y] + [c for c in of_y if c not in of_x]
    return contract(f"{''.join(of_x)},{''.join(of_y)}->{''.join(out)}", x, y)


def _same_length(what: str, x: Tensor, a: int, y: Tensor, b: int) -> None:
    try:
        merge_dims(x.shape[a], y.shape[b])
    except (ShapeError, IndexError):
        raise ShapeError(
            f"{what}: axis {a} of {x.type!r} and axis {b} of {y.type!r} differ in length"
        ) from None


def _as_long(what: str, x: Tensor, y: Tensor) -> Tensor:
    """The vector x, as long as y: ShapeError if not, or ExecutionError when that is known."""
    _same_length(what, x, 0, y, 0)
    if x is y or (x.shape[0] is not None and x.shape[0] == y.shape[0]):
        return x
    message = f"{what}: {x.name} (built at {x.where}) with {y.name} (built at {y.where})"
    return apply(EnsureLike(message), x, y)


def outer(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Outer product: z[i, j] = x1[i] * x2[j].

    Parameters:
        x1, x2: any shapes, flattened unless one-dimensional; dtypes promoted as NumPy 2 does.

    Returns: z, (size of x1, size of x2).

    Raises: DTypeError for non-numeric input.

    Gradient: dx1 = dz @ x2, dx2 = x1 @ dz.

    Source: numpy.outer.

    >>> gg.evaluate(gg.outer([1, 2], [3, 4]))
    array([[3, 4],
           [6, 8]])
    """
    x, y = (t if t.ndim == 1 else reshape(t, (-1,)) for t in promoted(x1, x2))
    return multiply(expand_dims(x, 1), expand_dims(y, 0))


def inner(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Sum of products over the last axes, for every pair of the others; 0-d operands multiply.

    Parameters:
        x1, x2: (..., K) each, or 0-d; dtypes promoted as NumPy 2 does.

    Returns: z, with the other axes of x1, then those of x2.

    Raises: ShapeError if the last lengths differ.

    Gradient: dx1 = the sum of dz * x2 over the other axes of x2, dx2 likewise.

    Source: numpy.inner.

    >>> gg.evaluate(gg.inner([1, 2, 3], [4, 5, 6]))
    array(32)
    """
    x, y = promoted(x1, x2)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    return tensordot(x, y, axes=((x.ndim - 1,), (y.ndim - 1,)))


def dot(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Sum of products over the last axis of x1 and the last but one (or only) of x2; 0-d multiply.

    Parameters:
        x1: (..., K), or 0-d; dtypes promoted as NumPy 2 does.
        x2: (..., K, N), (K,), or 0-d.

    Returns: z, with the other axes of x1, then those of x2.

    Raises: ShapeError if the lengths differ.

    Gradient: dx1 = the sum of dz * x2 over the other axes of x2, dx2 likewise.

    Source: numpy.dot.

    >>> gg.evaluate(gg.dot([[1, 2], [3, 4]], [1, 1]))
    array([3, 7])
    """
    x, y = promoted(x1, x2)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    if y.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, axes=((x.ndim - 1,), (y.ndim - 2,)))


def vecdot(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> Tensor:
    """Sum of products over one axis, the others broadcast: z = sum conj(x1) * x2.

    Parameters:
        x1, x2: at least one axis; dtypes promoted as NumPy 2 does; complex x1 is conjugated.
        axis: an int, counted from the end if negative.

    Returns: z, of the broadcast shape without the axis.

    Raises: ShapeError for 0-d operands, and if there is no such axis or its lengths differ.

    Gradient: dx1 = conj(dz * x2), dx2 = dz * conj(x1).

    Source: numpy.vecdot.

    >>> gg.evaluate(gg.vecdot([[1, 2], [3, 4]], [1, 1]))
    array([3, 7])
    """
    x, y = promoted(x1, x2)
    x = conj(x)
    if x.ndim == 0 or y.ndim == 0:
        raise ShapeError(f"vecdot takes vectors, got {x.type!r} and {y.type!r}")
    x, y = (moveaxis(t, normal_axis(axis, t.ndim), -1) for t in (x, y))
    _same_length("vecdot", x, -1, y, -1)
    return einsum("...i,...i->...", x, y)


def vdot(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Sum of products of all elements, in row-major order: z = sum conj(x1) * x2.

    Parameters:
        x1, x2: any shapes of one size; dtypes promoted as NumPy 2 does; complex x1 is conjugated.

    Returns: z, 0-d.

    Raises: ShapeError if the sizes differ.

    Gradient: dx1 = conj(dz * x2), dx2 = dz * conj(x1), each in the shape of its operand.

    Source: numpy.vdot.

    >>> gg.evaluate(gg.vdot([[1, 2], [3, 4]], [1, 1, 1, 1]))
    array(10)
    """
    x, y = (t if t.ndim == 1 else reshape(t, (-1,)) for t in promoted(x1, x2))
    return matmul(conj(x), y)


def matvec(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Matrices times vectors: z = x1 @ x2.

    Parameters:
        x1: (..., M, N); dtypes promoted as NumPy 2 does.
        x2: (..., N); the axes before broadcast.

    Returns: z, (..., M).

    Raises: ShapeError for fewer axes, and if the lengths N differ.

    Gradient: dx1 = outer(dz, x2), dx2 = x1.T @ dz.

    Source: numpy.matvec.

    >>> gg.evaluate(gg.matvec([[1, 2], [3, 4]], [1, 1]))
    array([3, 7])
    """
    return _stacked("matvec", "...mn,...n->...m", x1, x2, (2, 1))


def vecmat(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Vectors times matrices: z = conj(x1) @ x2.

    Parameters:
        x1: (..., M); dtypes promoted as NumPy 2 does; complex x1 is conjugated.
        x2: (..., M, N); the axes before broadcast.

    Returns: z, (..., N).

    Raises: ShapeError for fewer axes, and if the lengths M differ.

    Gradient: dx1 = conj(x2 @ dz), dx2 = outer(conj(x1), dz).

    Source: numpy.vecmat.

    >>> gg.evaluate(gg.vecmat([1, 1], [[1, 2], [3, 4]]))
    array([4, 6])
    """
    return _stacked("vecmat", "...m,...mn->...n", conj(x1), x2, (1, 2))


def _stacked(
    what: str, subscripts: str, x1: TensorLike, x2: TensorLike, least: tuple[int, int]
) -> Tensor:
    x, y = promoted(x1, x2)
    if x.ndim < least[0] or y.ndim < least[1]:
        raise ShapeError(f"{what} takes at least {least} axes, got {x.type!r} and {y.type!r}")
    a, b = (-1, -least[1]) if least[0] == 2 else (-1, -2)
    _same_length(what, x, a, y, b)
    return einsum(subscripts, x, y)


def multi_dot(arrays: Sequence[TensorLike]) -> Tensor:
    """The matrix product of all, in the order of multiplication that costs least.

    Parameters:
        arrays: matrices, of which the first and the last may be vectors; dtypes promoted. Where
            lengths are unknown, they are multiplied from left to right.

    Returns: what matmul gives from left to right.

    Raises: ShapeError for fewer than two, other ranks, and inner lengths that differ.

    Gradient: that of the matrix products it is made of.

    Source: numpy.linalg.multi_dot; Cormen et al. 2009, "Introduction to algorithms", sec. 15.2.

    >>> gg.evaluate(gg.linalg.multi_dot([[[1, 2], [3, 4]], [[0, 1], [1, 0]], [1, 1]]))
    array([3, 7])
    """
    if len(arrays) < 2:
        raise ShapeError(f"multi_dot takes at least two matrices, got {len(arrays)}")
    tensors = promoted(*arrays)
    for i, t in enumerate(tensors):
        if t.ndim != 2 and not (t.ndim == 1 and i in (0, len(tensors) - 1)):
            raise ShapeError(f"multi_dot takes matrices, or vectors at the ends, got {t.type!r}")
    ends = tensors[0].shape[:1] if tensors[0].ndim == 2 else (1,)
    lengths = (*ends, *(t.shape[0] for t in tensors[1:]), tensors[-1].shape[-1])
    if tensors[-1].ndim == 1:
        lengths = (*lengths[:-1], 1)
    known = [d for d in lengths if isinstance(d, int)]
    best = _cheapest(known) if len(known) == len(lengths) else {}
    stack: list[tuple[int, int]] = [(0, len(tensors) - 1)]
    order: list[tuple[int, int]] = []
    while stack:
        i, j = stack.pop()
        order.append((i, j))
        if i < j:
            k = best.get((i, j), j - 1)
            stack += [(i, k), (k + 1, j)]
    made = {(i, i): t for i, t in enumerate(tensors)}
    for i, j in reversed(order):
        if i < j:
            k = best.get((i, j), j - 1)
            made[i, j] = matmul(made[i, k], made[k + 1, j])
    return made[0, len(tensors) - 1]


def _cheapest(lengths: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each chain of factors i..j [Cormen et al. 2009, sec. 15.2]."""
    n = len(lengths) - 1
    cost = {(i, i): 0 for i in range(n)}
    split: dict[tuple[int, int], int] = {}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + lengths[i] * lengths[k + 1] * lengths[j + 1], k)
                for k in range(i, j)
            )
    return split
