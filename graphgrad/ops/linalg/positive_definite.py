"""Cholesky factors of positive definite matrices, and linear systems with them."""

from __future__ import annotations

from ...base.flags import truth
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
    wants,
)
from ..documented import documented
from . import lapack, stepwise
from .matrices import adjoint, check_square, conjugated, dense, lower, operands, positive, times
from .triangular import LowerHalf, SolveTriangular, solve_triangular

__all__ = ["cho_factor", "cho_solve", "cholesky"]


class Cholesky(Op):
    """The lower triangular y with y @ y.H = x; only the lower triangle is read.

    Gradient: y.H**-1 @ p @ y**-1 with p the lower half of y.H @ dy, made Hermitian [Murray
        2016, "Differentiation of the Cholesky decomposition", sec. 3.1]; beside the diagonal, twice
        that in the triangle that is read and 0 in the other.
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("cholesky", x)
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return lapack.cholesky(x) if xp is np else xp.linalg.cholesky(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(stepwise.cholesky, x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (conjugated(apply(CholeskyGrad(), y, conjugated(dy))),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """n**3 / 3."""
        return dense(inputs[0], 0, 1 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


class CholeskyGrad(Op):
    """dx of y = Cholesky(x), for the inner product Re <dx, x>; of y and dy the lower triangles.

    Gradient: with k the lower half of h, the gradient of dx, s @ y.H is what dy gets, and so
        on; see vjp.
    """

    stacks = True
    linear = (1,)

    def infer(self, y: TensorType, dy: TensorType) -> Types:
        return (y,)

    def kernel(self, xp: Any, y: Any, dy: Any) -> Any:
        return lapack.cholesky_backward(y, dy)

    def to_onnx(self, to: Any, y: Any, dy: Any) -> Any:
        def gradient(xp: Any, y: Any, dy: Any) -> Any:
            y, dy = xp.tril(y), xp.tril(dy)
            p = xp.matmul(y.mT, dy)
            half = xp.tril(p) - 0.5 * p * np.eye(y.shape[-1])
            first = stepwise.solve_triangular(xp, y, half, True, True, False)
            s = stepwise.solve_triangular(xp, y, first.mT, True, True, False)
            return xp.tril(s + s.mT) - s * np.eye(y.shape[-1])

        return to.in_double(gradient, y, dy)

    def vjp(self, node: Node, ddx: Tensor) -> Gradients:
        """The adjoint of dx = half(s + s.H), s = y.H**-1 @ half(m) @ y**-1, m = y.H @ dy."""
        y, dy = (lower(t) for t in node.inputs)
        half = apply(LowerHalf(), conjugated(ddx))
        both = half + adjoint(half)
        right = adjoint(_solved(y, both))  # both @ y.H**-1
        dm = apply(LowerHalf(), _solved(y, right))
        ddy = lower(times(y, dm))
        if not wants(node.inputs[0]):
            return NO_GRAD, conjugated(ddy)
        p = apply(LowerHalf(), times(y, dy, a=True))
        s = _solved(y, adjoint(_solved(y, adjoint(p), True)), True)
        of_y = times(dy, dm, b=True) - times(s + adjoint(s), right)
        return conjugated(lower(of_y)), conjugated(ddy)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """2/3 n**3."""
        return dense(inputs[0], 0, 2 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [np.linalg.cholesky(positive(rng, *shape)), rng.normal(size=shape)]


def _solved(y: Tensor, x: Tensor, by_adjoint: bool = False) -> Tensor:
    """y**-1 @ x, or y.H**-1 @ x, of a lower triangle y."""
    return apply(SolveTriangular(True, by_adjoint), conjugated(y) if by_adjoint else y, x)


@documented(Cholesky)
def cholesky(x: TensorLike, /, *, upper: bool = False) -> Tensor:
    """The triangular factors y of Hermitian positive definite matrices: y @ y.H = x.

    Parameters:
        x: (..., N, N); floating or complex, ints become float64; only the lower triangle is read.
        upper: whether the upper triangle is read, and y.H given.

    Returns: (..., N, N), dtype of x; when run, numpy.linalg.LinAlgError where x is not positive
        definite.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16.

    >>> gg.evaluate(gg.linalg.cholesky([[4.0, 2.0], [2.0, 5.0]]))
    array([[2., 0.],
           [1., 2.]])
    """
    truth("upper", upper)
    (x,) = promoted(x, floating=True)
    check_square("cholesky", x.type)
    return adjoint(apply(Cholesky(), adjoint(x))) if upper else apply(Cholesky(), x)


def cho_factor(x: TensorLike, /, *, lower: bool = False) -> tuple[Tensor, bool]:
    """A Cholesky factor, and which triangle it is: what cho_solve takes.

    Parameters:
        x: (..., N, N), Hermitian and positive definite; floating or complex, ints become float64;
            only that triangle is read.
        lower: whether the factor is the lower triangle; else the upper one.

    Returns: the factor (..., N, N), with zeros in the other triangle, and lower.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16.

    Gradient: that of cholesky.

    Source: scipy.linalg.cho_factor, which leaves what it finds in the other triangle.

    >>> factor, lower = gg.linalg.cho_factor([[4.0, 2.0], [2.0, 5.0]])
    >>> gg.evaluate(factor), lower
    (array([[2., 1.],
           [0., 2.]]), False)
    """
    return cholesky(x, upper=not lower), truth("lower", lower)


def cho_solve(c_and_lower: tuple[TensorLike, bool], b: TensorLike, /) -> Tensor:
    """The z with x @ z = b, given a Cholesky factor of x.

    Parameters:
        c_and_lower: the factor (one triangle of it is read), and whether that is the lower one.
        b: (..., N, K), or (N,) for one vector; the axes before broadcast.

    Returns: z, of the shape of b, broadcast.

    Raises: ShapeError if the factor is not square, or b does not fit; DTypeError for float16.

    Gradient: that of the two triangular systems it is made of.

    Source: scipy.linalg.cho_solve.

    >>> factor = gg.linalg.cho_factor([[4.0, 2.0], [2.0, 5.0]])
    >>> gg.evaluate(gg.linalg.cho_solve(factor, [6.0, 7.0]))
    array([1., 1.])
    """
    c, is_lower = c_and_lower
    factor, y = operands(c, b)
    first, second = ("N", "C") if is_lower else ("C", "N")
    z = solve_triangular(factor, y, lower=is_lower, trans=first)
    return solve_triangular(factor, z, lower=is_lower, trans=second)
