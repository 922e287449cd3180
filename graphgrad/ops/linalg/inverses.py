"""Inverses, powers, and linear systems with square matrices and tensors."""

from __future__ import annotations

from math import prod

from ...base.errors import ShapeError
from ...ir.types import elements, lengths, never_equal
from ..base import (
    NO_GRAD,
    Any,
    Gradients,
    Node,
    OnesLike,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_tensor,
    np,
    promoted,
    wants,
    whole,
)
from ..batching import Batch, Outputs
from ..contract.products import MATMUL, matmul, may_equal, squeezed
from ..create.diagonal import DiagonalGrad, diagonal
from ..documented import documented
from ..shape.reshaping import distinct_axes, expand_dims, moveaxis, reshape
from . import stepwise
from .matrices import check_square, dense, operands, positive
from .triangular import system

__all__ = ["inv", "matrix_power", "solve", "tensorinv", "tensorsolve"]


class Inverse(Op):
    """y = x**-1; of a singular matrix an error.

    Gradient: dx = -y.T @ dy @ y.T [Giles 2008, "An extended collection of matrix derivative
        results", sec. 2.2.3].
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("inv", x)
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.inv(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        def inverse(xp: Any, x: Any) -> Any:
            return stepwise.solve(xp, x, xp.zeros_like(x) + np.eye(x.shape[-1]))

        return to.in_double(inverse, x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        left = apply(MATMUL[True, False], y, dy)
        return (-apply(MATMUL[False, True], left, y),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """2 n**3."""
        return dense(inputs[0], 0, 2)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


class Solve(Op):
    """z = x1**-1 @ x2, or x1.T**-1 @ x2.

    Gradient: dx2 = x1.T**-1 @ dz, dx1 = -dx2 @ z.T [Giles 2008, "An extended collection of
        matrix derivative results", sec. 2.3.1].
    """

    transpose: bool = False
    broadcasts = True
    linear = (1,)

    def infer(self, x: TensorType, y: TensorType) -> Types:
        check_square("solve", x)
        return (system("solve", x, y),)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.linalg.solve(x.mT if self.transpose else x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        def solve(xp: Any, x: Any, y: Any) -> Any:
            return stepwise.solve(xp, x.mT if self.transpose else x, y)

        return to.in_double(solve, x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, _ = node.inputs
        (z,) = node.outputs
        dy = apply(Solve(not self.transpose), x, dz)
        if not wants(x):
            return NO_GRAD, dy
        dx = apply(MATMUL[False, True], *((z, dy) if self.transpose else (dy, z)))
        return -dx, dy

    def batch(self, batch: Batch) -> Outputs | None:
        """Matrices alone are a stack; vectors would be taken for one."""
        ranks = [len(t.shape) for t in batch.types]
        return batch.build(self, *batch.aligned()) if min(ranks) >= 2 else None

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """2/3 n**3 for the factors, 2 n for each element of y."""
        return dense(inputs[0], 0, 2 / 3) + 2 * lengths(inputs[0])[-1] * elements(inputs[1])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for transpose in (False, True):
            yield cls(transpose), [positive(rng, 3, 3), rng.normal(size=(3, 2))]
            yield cls(transpose), [positive(rng, 2, 3, 3), rng.normal(size=(3, 2))]
            yield cls(transpose), [positive(rng, 3, 3), rng.normal(size=(2, 3, 2))]


@documented(Inverse)
def inv(x: TensorLike, /) -> Tensor:
    """The inverses of square matrices: y = x**-1.

    Parameters: x: (..., N, N); floating or complex, ints become float64.

    Returns: (..., N, N), dtype of x; when run, numpy.linalg.LinAlgError where one is singular.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16.

    >>> gg.evaluate(gg.linalg.inv([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return apply(Inverse(), *promoted(x, floating=True))


@documented(Solve)
def solve(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """The z with x1 @ z = x2.

    Parameters:
        x1: (..., N, N); floating or complex, dtypes promoted, ints become float64.
        x2: (..., N, K), or (N,) for one vector; the axes before broadcast.

    Returns: z, of the shape of x2, broadcast; when run, numpy.linalg.LinAlgError where x1 is
        singular.

    Raises: ShapeError if x1 is not square, or x2 does not fit; DTypeError for float16.

    >>> gg.evaluate(gg.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]))
    array([1. , 0.5])
    """
    x, y = operands(x1, x2)
    if y.ndim == 1:
        return squeezed(apply(Solve(False), x, expand_dims(y, 1)), -1)
    return apply(Solve(False), x, y)


def matrix_power(x: TensorLike, n: int, /) -> Tensor:
    """Square matrices multiplied n times; for n < 0 their inverses, -n times.

    Parameters:
        x: (..., N, N); any dtype, that of inv for n < 0.
        n: an int; 0 gives the identity.

    Returns: shape and dtype of x.

    Raises: ShapeError if the matrices are not square; TypeError if n is not an int.

    Gradient: that of the matrix products it is made of.

    Source: repeated squaring [Knuth 1997, "The art of computer programming", vol. 2, sec. 4.6.3].

    >>> gg.evaluate(gg.linalg.matrix_power([[1, 1], [0, 1]], 5))
    array([[1, 5],
           [0, 1]])
    """
    x = as_tensor(x)
    if x.ndim < 2 or not may_equal(x.shape[-1], x.shape[-2]):
        raise ShapeError(f"matrix_power takes (stacks of) square matrices, got {x.type!r}")
    n = whole("the power of a matrix", n)
    if n < 0:
        return matrix_power(inv(x), -n)
    if n == 0:
        ones = apply(OnesLike(), diagonal(x, 0, -2, -1))
        return apply(DiagonalGrad(0, x.ndim - 2, x.ndim - 1), ones, x)
    power: Tensor | None = None
    while n:
        if n & 1:
            power = x if power is None else matmul(power, x)
        n >>= 1
        x = matmul(x, x) if n else x
    assert power is not None
    return power


def tensorinv(x: TensorLike, /, ind: int = 2) -> Tensor:
    """The inverse of the linear map that tensordot with x is.

    Parameters:
        x: an array whose first `ind` lengths have the product of the others; floating or
            complex, ints become float64.
        ind: how many axes are those of what the inverse takes; at least 1.

    Returns: y, with the other axes of x first: tensordot(y, tensordot(x, z, k), ind) is z.

    Raises: ShapeError for other shapes, lengths that values decide or another ind; DTypeError
        for float16.

    Gradient: that of inv.

    Source: numpy.linalg.tensorinv.

    >>> gg.linalg.tensorinv(np.eye(4).reshape(4, 2, 2), ind=1).shape
    (2, 2, 4)
    """
    (x,) = promoted(x, floating=True)
    ind = whole("ind", ind)
    if ind < 1 or ind > x.ndim:
        raise ShapeError(f"tensorinv: ind is from 1 to the rank of {x.type!r}, got {ind}")
    first, last = _split("tensorinv", x, ind)
    return reshape(inv(_as_square("tensorinv", x, first, last)), (*last, *first))


def tensorsolve(x1: TensorLike, x2: TensorLike, /, axes: Any = None) -> Tensor:
    """The z with tensordot(x1, z, z.ndim) = x2.

    Parameters:
        x1: x2.shape + that of z; dtypes promoted, ints become float64.
        x2: any shape.
        axes: axes of x1 that are moved to its end before, in this order; None: none.

    Returns: z.

    Raises: ShapeError where the number of elements of z is not that of x2, or for lengths that
        values decide; DTypeError for float16.

    Gradient: that of solve.

    Source: numpy.linalg.tensorsolve.

    >>> x = np.eye(4).reshape(2, 2, 2, 2)
    >>> gg.evaluate(gg.linalg.tensorsolve(x, [[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 2.],
           [3., 4.]])
    """
    x, y = operands(x1, x2)
    moved = () if axes is None else distinct_axes(axes, x.ndim)
    x = moveaxis(x, moved, tuple(range(-len(moved), 0)))
    first, last = _split("tensorsolve", x, y.ndim)
    flat = _as_square("tensorsolve", x, first, last)
    return reshape(solve(flat, reshape(y, (-1,))), last)


def _split(what: str, x: Tensor, at: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The lengths of the axes before and after; ShapeError where values decide them."""
    if None in x.shape:
        raise ShapeError(
            f"{what} takes tensors whose lengths do not depend on values, got {x.type!r}"
        )
    return x.shape[:at], x.shape[at:]


def _as_square(what: str, x: Tensor, first: tuple[Any, ...], last: tuple[Any, ...]) -> Tensor:
    """x as a square matrix."""
    if never_equal(prod(first), prod(last)):
        raise ShapeError(
            f"{what} takes as many elements before ind as after it, got {first} and {last} of "
            f"{x.type!r}"
        )
    return reshape(x, (prod(first), prod(last)))
