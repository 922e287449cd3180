"""The matrix exponential."""

from __future__ import annotations

from ...ir.types import computed
from ..base import (
    NO_GRAD,
    Any,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    np,
    promoted,
    tensor_type,
    wants,
)
from ..documented import documented
from ..shape.reshaping import matrix_transpose
from . import lapack, stepwise
from .matrices import check_square, dense

__all__ = ["expm"]


class MatrixExp(Op):
    """y = 1 + x + x @ x / 2 + ..., by SciPy.

    Gradient: the upper right quarter of the exponential of [[x.T, dy], [0, x.T]] [Higham 2008,
        "Functions of matrices", sec. 3.2 and 10.3].
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("expm", x)
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.asarray(lapack.needed("expm").expm(x), x.dtype)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(stepwise.expm, x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(MatrixExpDerivative(), matrix_transpose(node.inputs[0]), dy),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """15 n**3, for six products and a division, without squares."""
        return dense(inputs[0], 0, 15)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        if lapack.scipy is not None:
            yield cls(), [rng.normal(size=(2, 3, 3))]


class MatrixExpDerivative(Op):
    """dy of y = exp(x) along dx: the upper right quarter of the exponential of [[x, dx], [0, x]].

    Gradient: it is its own adjoint at x.T; the derivative in x is that of the greater
        exponential [Higham 2008, "Functions of matrices", sec. 3.2].
    """

    linear = (1,)
    stacks = True

    def infer(self, x: TensorType, dx: TensorType) -> Types:
        check_square("expm", x)
        return (x,)

    def kernel(self, xp: Any, x: Any, dx: Any) -> Any:
        y = MatrixExp().kernel(xp, with_corner(xp, x, dx))
        return xp.copy(Quarter(0, 1).kernel(xp, y))

    def to_onnx(self, to: Any, x: Any, dx: Any) -> Any:
        def derivative(xp: Any, x: Any, dx: Any) -> Any:
            n = x.shape[-1]
            return stepwise.expm(xp, with_corner(xp, x, dx))[..., :n, n:]

        return to.in_double(derivative, x, dx)

    def vjp(self, node: Node, ddy: Tensor) -> Gradients:
        x, dx = map(matrix_transpose, node.inputs)
        of_dx = apply(MatrixExpDerivative(), x, ddy)
        if not wants(node.inputs[0]):
            return NO_GRAD, of_dx
        greater = _twice(x) + apply(Quartered(0, 1), dx)
        both = apply(MatrixExpDerivative(), greater, _twice(ddy))
        return apply(Quarter(0, 1), both), of_dx

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """That of matrices twice as long."""
        return dense(inputs[0], 0, 8 * 15)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        if lapack.scipy is not None:
            yield cls(), [rng.normal(size=(2, 2, 2)), rng.normal(size=(2, 2, 2))]


def with_corner(xp: Any, x: Any, dx: Any) -> Any:
    """[[x, dx], [0, x]]"""
    above = xp.concatenate([x, dx], axis=-1)
    return xp.concatenate([above, xp.concatenate([xp.zeros_like(x), x], axis=-1)], axis=-2)


def _twice(x: Tensor) -> Tensor:
    """[[x, 0], [0, x]]"""
    return apply(Quartered(0, 0), x) + apply(Quartered(1, 1), x)


class Quarter(Op):
    """One of the four quarters of matrices (..., 2 N, 2 N). Gradient: dx = Quartered of dy."""

    row: int
    column: int
    linear = "joint"
    stacks = True
    flop_free = True

    def infer(self, x: TensorType) -> Types:
        n = computed(lambda n: n // 2, x.shape[-1])
        return (tensor_type((*x.shape[:-2], n, n), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        n = x.shape[-1] // 2
        rows, columns = (slice(n, None) if i else slice(n) for i in (self.row, self.column))
        return xp.copy(x[..., rows, columns])

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(Quartered(self.row, self.column), dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, 1), [rng.normal(size=(2, 4, 4))]


class Quartered(Op):
    """Zeros (..., 2 N, 2 N) with x in one of their quarters; the adjoint of Quarter.

    Gradient: dx = Quarter of dy.
    """

    row: int
    column: int
    linear = "joint"
    stacks = True
    flop_free = True

    def infer(self, x: TensorType) -> Types:
        n = computed(lambda n: 2 * n, x.shape[-1])
        return (tensor_type((*x.shape[:-2], n, n), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        zeros = xp.zeros_like(x)
        row = xp.concatenate([zeros, x] if self.column else [x, zeros], axis=-1)
        none = xp.zeros_like(row)
        return xp.concatenate([none, row] if self.row else [row, none], axis=-2)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(Quarter(self.row, self.column), dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(1, 1), [rng.normal(size=(2, 3, 3))]


@documented(MatrixExp)
def expm(x: TensorLike, /) -> Tensor:
    """The exponentials of square matrices: 1 + x + x @ x / 2 + ...

    Parameters: x: (..., N, N); floating or complex, ints become float64.

    Returns: (..., N, N), dtype of x.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16; GraphGradError
        without SciPy (the extra `scipy`).

    Source: scipy.linalg.expm.

    >>> gg.evaluate(gg.linalg.expm([[0.0, 1.0], [0.0, 0.0]]))
    array([[1., 1.],
           [0., 1.]])
    """
    lapack.needed("expm")
    return apply(MatrixExp(), *promoted(x, floating=True))
