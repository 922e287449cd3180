"""Inverses, determinants and factors of square matrices."""

from __future__ import annotations

from ..ir.errors import ShapeError
from ..ir.types import broadcast
from .arithmetic import multiply
from .base import (
    NO_GRAD,
    Any,
    DTypeError,
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
    build,
    np,
    promoted,
    tensor_type,
    wants,
)
from .diagonal import DiagonalGrad, diagonal
from .products import MATMUL, matmul, may_equal, squeezed
from .shaping import expand_dims, matrix_transpose

__all__ = ["cholesky", "det", "inv", "matrix_power", "slogdet", "solve"]


def check_square(what: str, x: TensorType) -> None:
    """ShapeError or DTypeError unless x is a (stack of) floating square matrices."""
    n, m = x.shape[-2:] if len(x.shape) >= 2 else (0, 1)
    if isinstance(n, int) and isinstance(m, int) and n != m:
        raise ShapeError(f"{what} takes (stacks of) square matrices, got {x!r}")
    if x.dtype.kind not in "fc":
        raise DTypeError(f"{what} takes floating matrices, got {x!r}")


def positive(rng: np.random.Generator, *shape: int) -> Any:
    """Well conditioned, symmetric and positive definite."""
    x = rng.normal(size=shape)
    return x @ x.swapaxes(-1, -2) + 2 * np.eye(shape[-1])


class Inverse(Op):
    """y = x**-1, dx = -y.T @ dy @ y.T [Giles 2008, sec. 2.2.3]. Of a singular matrix: an error."""

    def infer(self, x: TensorType) -> Types:
        check_square("inv", x)
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.inv(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        left = apply(MATMUL[True, False], y, dy)
        return (-apply(MATMUL[False, True], left, y),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


class Solve(Op):
    """z = x**-1 @ y, or x.T**-1 @ y; dy = x.T**-1 @ dz, dx = -dy @ z.T [Giles 2008, sec. 2.3.1]."""

    transpose: bool = False
    broadcasts = True
    linear = (1,)

    def infer(self, x: TensorType, y: TensorType) -> Types:
        check_square("solve", x)
        if len(y.shape) < 2 or x.dtype is not y.dtype:
            raise ShapeError(f"Solve takes (stacks of) matrices of one dtype, got {x!r}, {y!r}")
        if not may_equal(x.shape[-1], y.shape[-2]):
            raise ShapeError(f"solve needs equal lengths, got {x!r} and {y!r}")
        stack = broadcast([x.shape[:-2], y.shape[:-2]])
        return (tensor_type((*stack, *y.shape[-2:]), x.dtype),)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.linalg.solve(x.mT if self.transpose else x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, _ = node.inputs
        (z,) = node.outputs
        dy = apply(Solve(not self.transpose), x, dz)
        if not wants(x):
            return NO_GRAD, dy
        dx = apply(MATMUL[False, True], *((z, dy) if self.transpose else (dy, z)))
        return -dx, dy

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for transpose in (False, True):
            yield cls(transpose), [positive(rng, 3, 3), rng.normal(size=(3, 2))]
            yield cls(transpose), [positive(rng, 2, 3, 3), rng.normal(size=(3, 2))]
            yield cls(transpose), [positive(rng, 3, 3), rng.normal(size=(2, 3, 2))]


class Det(Op):
    """y = det(x), dx = dy * y * x.T**-1 [Giles 2008, sec. 2.2.4]. No gradient where singular."""

    def infer(self, x: TensorType) -> Types:
        check_square("det", x)
        return (tensor_type(x.shape[:-2], x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.det(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (_scaled(dy * y, node.inputs[0]),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


def _scaled(dy: Tensor, x: Tensor) -> Tensor:
    """dy * x.T**-1, of every matrix of a stack."""
    scale = expand_dims(dy, (-2, -1))
    return multiply(scale, matrix_transpose(apply(Inverse(), x)))


class SLogDet(Op):
    """sign and log |det(x)|; of the second dx = dy * x.T**-1, of the sign nothing."""

    def infer(self, x: TensorType) -> Types:
        check_square("slogdet", x)
        t = tensor_type(x.shape[:-2], x.dtype)
        return t, t

    def kernel(self, xp: Any, x: Any) -> Any:
        return tuple(xp.linalg.slogdet(x))

    def vjp(self, node: Node, dsign: Tensor, dlog: Tensor) -> Gradients:
        return (_scaled(dlog, node.inputs[0]),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


class Cholesky(Op):
    """The lower triangular y with y @ y.T = (x + x.T) / 2.

    dx is symmetric: y.T**-1 @ p @ y**-1 with p the lower half of y.T @ dy, made symmetric
    [Murray 2016, "Differentiation of the Cholesky decomposition", sec. 3.1].
    """

    def infer(self, x: TensorType) -> Types:
        check_square("cholesky", x)
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.cholesky((x + x.mT) / 2)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        half = apply(LowerHalf(), apply(MATMUL[True, False], y, dy))
        left = apply(Solve(True), y, half)
        dx = matrix_transpose(apply(Solve(True), y, matrix_transpose(left)))
        return ((dx + matrix_transpose(dx)) * 0.5,)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


class LowerHalf(Op):
    """The lower triangle of x with its diagonal halved; its own adjoint."""

    linear = "joint"

    def infer(self, x: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        row, column = xp.arange(x.shape[-2])[:, None], xp.arange(x.shape[-1])[None, :]
        return xp.where(row > column, x, xp.where(row == column, x / 2, 0))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(LowerHalf(), dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3, 3))]


def inv(x: TensorLike, /) -> Tensor:
    """The inverses of square matrices (..., N, N); an error when run where one is singular."""
    return apply(Inverse(), *promoted(x, floating=True))


def solve(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """The z with x1 @ z = x2: x1 (..., N, N), x2 (..., N, K), or (N,) for one vector."""
    x, y = promoted(x1, x2, floating=True)
    if y.ndim == 1:
        return squeezed(apply(Solve(False), x, expand_dims(y, 1)), -1)
    return apply(Solve(False), x, y)


def det(x: TensorLike, /) -> Tensor:
    """The determinants of square matrices (..., N, N). Its gradient needs them to be invertible."""
    return apply(Det(), *promoted(x, floating=True))


def slogdet(x: TensorLike, /) -> tuple[Tensor, Tensor]:
    """sign(det(x)) and log |det(x)| of square matrices (..., N, N)."""
    sign, log = build(SLogDet(), promoted(x, floating=True)).outputs
    return sign, log


def cholesky(x: TensorLike, /, *, upper: bool = False) -> Tensor:
    """The triangular factors of symmetric positive definite matrices (..., N, N).

    x is made symmetric first, and so is its gradient. upper: the transposed factor.
    """
    y = apply(Cholesky(), *promoted(x, floating=True))
    return matrix_transpose(y) if upper else y


def matrix_power(x: TensorLike, n: int, /) -> Tensor:
    """Square matrices (..., N, N) multiplied n times; for n < 0 the inverses, -n times."""
    x = as_tensor(x)
    if x.ndim < 2 or not may_equal(x.shape[-1], x.shape[-2]):
        raise ShapeError(f"matrix_power takes (stacks of) square matrices, got {x.type!r}")
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
