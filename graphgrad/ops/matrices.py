"""Inverses, determinants and factors of square matrices."""

from __future__ import annotations

from functools import reduce
from math import prod

from ..ir.errors import ShapeError
from ..ir.types import broadcast, elements, lengths
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
    whole,
)
from .batching import Batch, Outputs
from .diagonal import DiagonalGrad, diagonal
from .products import MATMUL, matmul, may_equal, squeezed
from .reductions import sum
from .shaping import expand_dims, matrix_transpose

__all__ = ["cholesky", "det", "inv", "matrix_power", "slogdet", "solve"]


def check_square(what: str, x: TensorType) -> None:
    """ShapeError or DTypeError unless x is a (stack of) floating square matrices."""
    n, m = x.shape[-2:] if len(x.shape) >= 2 else (0, 1)
    if isinstance(n, int) and isinstance(m, int) and n != m:
        raise ShapeError(f"{what} takes (stacks of) square matrices, got {x!r}")
    if x.dtype.kind not in "fc":
        raise DTypeError(f"{what} takes floating matrices, got {x!r}")
    check_not_half(what, x)


def check_not_half(what: str, x: TensorType) -> None:
    """DTypeError for float16, for which there is no LAPACK."""
    if x.dtype.itemsize == 2:
        raise DTypeError(f"{what} takes matrices of 32 or 64 bits, got {x!r}; use gg.cast")


def check_real(what: str, x: TensorType) -> None:
    """DTypeError for complex numbers."""
    if x.dtype.kind == "c":
        raise DTypeError(f"{what} takes real matrices, got {x!r}")


def dense(x: TensorType, large: float, square: float) -> float:
    """large * m * n**2 + square * n**3 operations for each matrix (m, n) of a stack, m >= n
    [Golub and Van Loan 2013, "Matrix computations", sec. 5.4, 8.6].
    """
    *stack, m, n = lengths(x)
    m, n = max(m, n), min(m, n)
    return prod(stack) * (large * m * n**2 + square * n**3)


def positive(rng: np.random.Generator, *shape: int) -> Any:
    """Well conditioned, symmetric and positive definite."""
    x = rng.normal(size=shape)
    return x @ x.swapaxes(-1, -2) + 2 * np.eye(shape[-1])


class Inverse(Op):
    """y = x**-1, dx = -y.T @ dy @ y.T [Giles 2008, sec. 2.2.3]. Of a singular matrix: an error."""

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("inv", x)
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.inv(x)

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


class Det(Op):
    """y = det(x), dx = dy * the cofactors of x, singular ones too [Giles 2008, sec. 2.2.4]."""

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("det", x)
        return (tensor_type(x.shape[:-2], x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.det(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (expand_dims(dy, (-2, -1)) * apply(Cofactors(), *node.inputs),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """2/3 n**3."""
        return dense(inputs[0], 0, 2 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]
        yield cls(), [np.array([[1.0, 2.0], [2.0, 4.0]])]


class Cofactors(Op):
    """y = det(x) * x.T**-1, and its limit where x is singular; NaN where x is not finite.

    x = u @ diag(s) @ vh: y = det(u @ vh) * u @ diag(the products of all other s) @ vh [Giles 2008,
    sec. 2.2.4; Golub and Van Loan 2013, sec. 2.4].
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("cofactors", x)
        check_real("cofactors", x)
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        finite, u, s, vh = _finite_svd(xp, x)
        return xp.where(finite, _turn(xp, u, vh) * (u * _others(xp, s)[..., None, :]) @ vh, xp.nan)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(CofactorsGrad(), *node.inputs, dy),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """24 n**3, most of them for the factors."""
        return dense(inputs[0], 0, 24)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(4, 4), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


class CofactorsGrad(Op):
    """dx of y = Cofactors(x): det(x) * (<a, dy> * a - a @ dy.T @ a), a = x.T**-1, or its limit.

    With d = u.T @ dy @ vh.T and p[i, k] the product of all s but i and k, u.T @ dx @ vh.T has
    -det(u @ vh) * p[i, k] * d[k, i] beside the diagonal and sums of p * d[i, i] on it. It is
    linear in dy and its own adjoint there; its gradient in x needs an invertible x.
    """

    linear = (1,)
    stacks = True

    def infer(self, x: TensorType, dy: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any, dy: Any) -> Any:
        finite, u, s, vh = _finite_svd(xp, x)
        d = u.mT @ dy @ vh.mT
        one = xp.eye(s.shape[-1], dtype=x.dtype)
        rest = _others(xp, xp.where(one == 1, one, s[..., None, :])) * (1 - one)
        on = rest @ xp.sum(d * one, axis=-1, keepdims=True)
        dx = u @ (on * one - rest * d.mT) @ vh
        return xp.where(finite, _turn(xp, u, vh) * dx, xp.nan)

    def vjp(self, node: Node, ddx: Tensor) -> Gradients:
        x, dy = node.inputs
        return (
            _third(x, dy, ddx) if wants(x) else NO_GRAD,
            apply(CofactorsGrad(), x, ddx) if wants(dy) else NO_GRAD,
        )

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """30 n**3, most of them for the factors."""
        return dense(inputs[0], 0, 30)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(4, 4), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape), rng.normal(size=shape)]


def _third(x: Tensor, g: Tensor, h: Tensor) -> Tensor:
    """The gradient of <h, CofactorsGrad(x, g)> in x: the third derivative of det along g and h."""

    def times(*ts: Tensor) -> Tensor:
        return reduce(lambda a, b: apply(MATMUL[False, False], a, b), ts)

    def along(t: Tensor) -> Tensor:
        return sum(a * t, (-2, -1), True)

    a = matrix_transpose(apply(Inverse(), x))
    ag, ah = (times(a, matrix_transpose(t)) for t in (g, h))
    both = along(g) * along(h) - sum(h * times(ag, a), (-2, -1), True)
    twice = times(ag, ah, a) + times(ah, ag, a)
    inner = both * a - along(h) * times(ag, a) - along(g) * times(ah, a) + twice
    return expand_dims(apply(Det(), x), (-2, -1)) * inner


def _finite_svd(xp: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Which matrices are finite, and the factors of these."""
    finite = xp.all(xp.isfinite(x), axis=(-2, -1), keepdims=True)
    return finite, *xp.linalg.svd(xp.where(finite, x, 0))


def _turn(xp: Any, u: Any, vh: Any) -> Any:
    """det(u @ vh), which is 1 or -1."""
    return xp.sign(xp.linalg.det(u @ vh))[..., None, None]


def _others(xp: Any, s: Any) -> Any:
    """The products of all other elements along the last axis."""

    def before(s: Any) -> Any:
        ones = xp.ones_like(s[..., :1])
        return xp.cumprod(xp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)

    return before(s) * xp.flip(before(xp.flip(s, axis=-1)), axis=-1)


def _scaled(dy: Tensor, x: Tensor) -> Tensor:
    """dy * x.T**-1, of every matrix of a stack."""
    scale = expand_dims(dy, (-2, -1))
    return multiply(scale, matrix_transpose(apply(Inverse(), x)))


class SLogDet(Op):
    """sign and log |det(x)|; of the second dx = dy * x.T**-1, of the sign nothing."""

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("slogdet", x)
        check_real("slogdet", x)
        t = tensor_type(x.shape[:-2], x.dtype)
        return t, t

    def kernel(self, xp: Any, x: Any) -> Any:
        return tuple(xp.linalg.slogdet(x))

    def vjp(self, node: Node, dsign: Tensor, dlog: Tensor) -> Gradients:
        return (_scaled(dlog, node.inputs[0]),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """2/3 n**3."""
        return dense(inputs[0], 0, 2 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


class Cholesky(Op):
    """The lower triangular y with y @ y.T = (x + x.T) / 2.

    dx is symmetric: y.T**-1 @ p @ y**-1 with p the lower half of y.T @ dy, made symmetric
    [Murray 2016, "Differentiation of the Cholesky decomposition", sec. 3.1].
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("cholesky", x)
        check_real("cholesky", x)
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.cholesky((x + x.mT) / 2)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        half = apply(LowerHalf(), apply(MATMUL[True, False], y, dy))
        left = apply(Solve(True), y, half)
        dx = matrix_transpose(apply(Solve(True), y, matrix_transpose(left)))
        return ((dx + matrix_transpose(dx)) * 0.5,)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """n**3 / 3."""
        return dense(inputs[0], 0, 1 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


class Mirrored(Op):
    """The symmetric matrix that has this triangle of x; the other triangle of x is not read.

    dx is dy + dy.T in that triangle, dy on the diagonal and 0 in the other.
    """

    lower: bool = True
    linear = "joint"
    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("mirrored", x)
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        if not self.lower:
            return xp.triu(x) + xp.triu(x, 1).mT
        return xp.tril(x) + xp.tril(x, -1).mT

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        both = apply(LowerHalf(), dy + matrix_transpose(dy))
        return (both if self.lower else matrix_transpose(both),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element."""
        return elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for lower in (True, False):
            yield cls(lower), [rng.normal(size=(2, 3, 3))]


def mirrored(what: str, x: TensorLike, lower: bool) -> Tensor:
    """The symmetric matrices whose lower, or upper, triangles those of x are."""
    (x,) = promoted(x, floating=True)
    check_square(what, x.type)
    check_real(what, x.type)
    return apply(Mirrored(lower), x)


class LowerHalf(Op):
    """The lower triangle of x with its diagonal halved; its own adjoint."""

    linear = "joint"
    stacks = True

    def infer(self, x: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        row, column = xp.arange(x.shape[-2])[:, None], xp.arange(x.shape[-1])[None, :]
        return xp.where(row > column, x, xp.where(row == column, x / 2, 0))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(LowerHalf(), dy),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element."""
        return elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3, 3))]


def inv(x: TensorLike, /) -> Tensor:
    """The inverses of square matrices: y = x**-1.

    Parameters: x: (..., N, N); floating or complex, ints become float64.

    Returns: (..., N, N), dtype of x; when run, numpy.linalg.LinAlgError where one is singular.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16.

    Gradient: dx = -y.T @ dy @ y.T [Giles 2008, "An extended collection of matrix derivative
        results", sec. 2.2.3].

    >>> gg.evaluate(gg.linalg.inv([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return apply(Inverse(), *promoted(x, floating=True))


def solve(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """The z with x1 @ z = x2.

    Parameters:
        x1: (..., N, N); floating or complex, dtypes promoted, ints become float64.
        x2: (..., N, K), or (N,) for one vector; the axes before broadcast.

    Returns: z, of the shape of x2, broadcast; when run, numpy.linalg.LinAlgError where x1 is
        singular.

    Raises: ShapeError if x1 is not square, or x2 does not fit; DTypeError for float16.

    Gradient: dx2 = x1.T**-1 @ dz, dx1 = -dx2 @ z.T [Giles 2008, "An extended collection of matrix
        derivative results", sec. 2.3.1].

    >>> gg.evaluate(gg.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [2.0, 2.0]))
    array([1. , 0.5])
    """
    x, y = promoted(x1, x2, floating=True)
    if y.ndim == 1:
        return squeezed(apply(Solve(False), x, expand_dims(y, 1)), -1)
    return apply(Solve(False), x, y)


def det(x: TensorLike, /) -> Tensor:
    """The determinants of square matrices: y = det x.

    Parameters: x: (..., N, N); floating or complex, ints become float64.

    Returns: (...), dtype of x.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16.

    Gradient: dx = dy * det(x) x.T**-1, the cofactors [Giles 2008, "An extended collection of matrix
        derivative results", sec. 2.2.4]; first and second derivatives are there for singular
        matrices too, higher ones are not.

    >>> x = gg.constant([[1.0, 2.0], [2.0, 4.0]])
    >>> gg.evaluate(gg.gradients([gg.linalg.det(x)], [x])[0]).round(4)
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    return apply(Det(), *promoted(x, floating=True))


def slogdet(x: TensorLike, /) -> tuple[Tensor, Tensor]:
    """The sign of the determinants of square matrices, and y = log |det x|.

    Parameters: x: (..., N, N); floating, ints become float64.

    Returns: sign and y, each (...); 0 and -inf of a singular matrix.

    Raises: ShapeError if the matrices are not square; DTypeError if x is complex or float16.

    Gradient: dx = dy * x.T**-1 [Giles 2008, "An extended collection of matrix derivative results",
        sec. 2.2.4]; of the sign 0.

    >>> gg.evaluate(gg.linalg.slogdet([[1.0, 0.0], [0.0, -1.0]]))
    (array(-1.), array(0.))
    """
    sign, log = build(SLogDet(), promoted(x, floating=True)).outputs
    return sign, log


def cholesky(x: TensorLike, /, *, upper: bool = False) -> Tensor:
    """The triangular factors y of symmetric positive definite matrices: y @ y.T = x.

    Parameters:
        x: (..., N, N); floating, ints become float64; only the lower triangle is read.
        upper: whether the upper triangle is read, and y.T given.

    Returns: (..., N, N), dtype of x; when run, numpy.linalg.LinAlgError where x is not positive
        definite.

    Raises: ShapeError if the matrices are not square; DTypeError if x is complex or float16.

    Gradient: y.T**-1 @ p @ y**-1 with p the lower half of y.T @ dy, made symmetric [Murray 2016,
        "Differentiation of the Cholesky decomposition", sec. 3.1]; beside the diagonal, twice that
        in the triangle that is read and 0 in the other.

    >>> gg.evaluate(gg.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    y = apply(Cholesky(), mirrored("cholesky", x, not upper))
    return matrix_transpose(y) if upper else y


def matrix_power(x: TensorLike, n: int, /) -> Tensor:
    """Square matrices multiplied n times; for n < 0 their inverses, -n times.

    Parameters:
        x: (..., N, N); any dtype, that of inv for n < 0.
        n: an int; 0 gives the identity.

    Returns: shape and dtype of x.

    Raises: ShapeError if the matrices are not square; TypeError if n is no int.

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
