"""LU factorization with row exchanges, and linear systems solved with it."""

from __future__ import annotations

from typing import Literal

from ...base.errors import ShapeError
from ...ir.types import Dim
from ..base import (
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
    cast,
    kind_of,
    np,
    promoted,
    real_dtype,
    tensor_type,
)
from ..contract.products import MATMUL, squeezed
from ..create.creation import Tril, Triu, zeros_like
from ..create.diagonal import DiagonalGrad, diagonal
from ..documented import documented
from ..elementwise.logic import equal
from ..reduce.sorting import argsort, sort, take_along_axis
from ..shape.joining import concat
from ..shape.reshaping import expand_dims, matrix_transpose
from . import lapack, stepwise
from .matrices import check_square, dense, matrices, operands, shorter, square
from .triangular import SolveTriangular, solve_triangular

__all__ = ["lu", "lu_factor", "lu_solve"]


class LuFactor(Op):
    """Both triangular factors l and u of p.T @ x in one matrix (..., M, N), and pivots (..., K).

    Gradient: p @ l.T**-1 @ (strictly lower part of l.T @ dl + upper part of du @ u.T) @ u.T**-1
        of square matrices, and likewise of others, where the first K rows and columns are not
        singular; none of p [Giles 2008, "An extended collection of matrix derivative results", sec.
        2.3.1, of x = l @ u].

    The ones on the diagonal of l are not kept; row i was exchanged with row pivots[i], one after
    the other. K = min(M, N).
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        stack, m, n = matrices("lu", x)
        if m is None or n is None:
            raise ShapeError(f"lu takes matrices whose lengths do not depend on values, got {x!r}")
        return x, tensor_type((*stack, shorter(m, n)), "int32")

    def kernel(self, xp: Any, x: Any) -> Any:
        return lapack.lu(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(stepwise.lu, x)

    def vjp(self, node: Node, dy: Tensor, _: Any) -> Gradients:
        (x,), (y, pivots) = node.inputs, node.outputs
        k = shorter(*x.shape[-2:])
        rows = take_along_axis(
            _backward(y, dy, k, *x.shape[-2:]),
            expand_dims(argsort(apply(Permutation(), pivots, x), axis=-1), -1),
            axis=-2,
        )
        return (rows,)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """m n**2 - n**3 / 3."""
        return dense(inputs[0], 1, -1 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(3, 3), (3, 2), (2, 2, 3)]:
            yield cls(), [rng.normal(size=shape)]


def _backward(y: Tensor, dy: Tensor, k: Dim, m: Dim, n: Dim) -> Tensor:
    """p.T @ dx; see LuFactor."""
    whole = square(m, n)
    top, dtop = (y, dy) if whole else (y[..., :k, :k], dy[..., :k, :k])
    left = apply(Tril(-1), top)
    one_l = _product(left, apply(Tril(-1), dtop), a=True) + apply(Tril(-1), dtop)
    of_l, of_u = one_l, _product(apply(Triu(0), dtop), apply(Triu(0), top), b=True)
    beside = below = None
    if not whole and k != n:
        beside = apply(SolveTriangular(True, True, True), top, dy[..., :k, k:])
        of_l = of_l - _product(dy[..., :k, k:], y[..., :k, k:], b=True)
    if not whole and k != m:
        below = _divided(dy[..., k:, :k], top)
        of_u = of_u - _product(y[..., k:, :k], dy[..., k:, :k], a=True)
    inner = apply(Tril(-1), of_l) + apply(Triu(0), of_u)
    dx = _divided(apply(SolveTriangular(True, True, True), top, inner), top)
    if beside is not None:
        dx = concat([dx, beside], axis=-1)
    if below is None:
        return dx
    if beside is not None:  # one of the two is empty, which of them only a run knows
        below = concat([below, zeros_like(y[..., k:, k:])], axis=-1)
    return concat([dx, below], axis=-2)


def _product(x: Tensor, y: Tensor, a: bool = False, b: bool = False) -> Tensor:
    """x @ y, of which those that are flagged are transposed."""
    return apply(MATMUL[a, b], x, y)


def _divided(x: Tensor, u: Tensor) -> Tensor:
    """x @ u.T**-1 with an upper triangle u."""
    return matrix_transpose(apply(SolveTriangular(False), u, matrix_transpose(x)))


class Permutation(Op):
    """Where the rows come from that exchanges with the pivots make, (..., M), for x (..., M, N)."""

    differentiable = False
    stacks = True
    shape_only = (1,)
    flop_free = True

    def infer(self, pivots: TensorType, x: TensorType) -> Types:
        return (tensor_type((*pivots.shape[:-1], x.shape[-2]), "int64"),)

    def kernel(self, xp: Any, pivots: Any, x: Any) -> Any:
        return lapack.permutation(pivots, x)

    def to_onnx(self, to: Any, pivots: Any, x: Any) -> Any:
        count = x.shape[-2]
        return to.traced(lambda xp, pivots: stepwise.permutation(xp, pivots, count), pivots)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [np.array([2, 1, 2], "int32"), rng.normal(size=(3, 3))]
        yield cls(), [np.array([[1, 1], [3, 2]], "int32"), rng.normal(size=(2, 4, 2))]


@documented(LuFactor)
def lu_factor(x: TensorLike, /) -> tuple[Tensor, Tensor]:
    """Triangular factors of matrices with exchanged rows: what lu_solve takes.

    Parameters: x: (..., M, N); floating or complex, ints become float64.

    Returns: both factors in one matrix (..., M, N), the ones on the diagonal of the lower one left
        out; pivots (..., min(M, N)), int32: row i was exchanged with row pivots[i].

    Raises: ShapeError if x has fewer than two axes, or lengths that values decide; DTypeError
        if x is float16.

    Source: scipy.linalg.lu_factor.

    >>> factors, pivots = gg.linalg.lu_factor([[1.0, 2.0], [2.0, 2.0]])
    >>> gg.evaluate((factors, pivots))
    (array([[2. , 2. ],
           [0.5, 1. ]]), array([1, 1], dtype=int32))
    """
    factors, pivots = build(LuFactor(), promoted(x, floating=True)).outputs
    return factors, pivots


def lu_solve(
    lu_and_piv: tuple[TensorLike, TensorLike], b: TensorLike, /, *, trans: Literal[0, 1, 2] = 0
) -> Tensor:
    """The z with x @ z = b, given the factors of x by lu_factor.

    Parameters:
        lu_and_piv: the factors (..., N, N) and the pivots (..., N).
        b: (..., N, K), or (N,) for one vector; the axes before broadcast.
        trans: 0 for x itself, 1 for its transpose, 2 for its adjoint.

    Returns: z, of the shape of b, broadcast; when run, numpy.linalg.LinAlgError where x is
        singular.

    Raises: ShapeError if the factors are not square, or b does not fit; DTypeError for float16, and
        pivots that are not integers; ValueError for an unknown trans.

    Gradient: that of the two triangular systems it is made of.

    Source: scipy.linalg.lu_solve.

    >>> factors = gg.linalg.lu_factor([[1.0, 2.0], [2.0, 2.0]])
    >>> gg.evaluate(gg.linalg.lu_solve(factors, [3.0, 4.0]))
    array([1., 1.])
    """
    factors, y = operands(lu_and_piv[0], b)
    pivots = as_tensor(lu_and_piv[1])
    check_square("lu_solve", factors.type)
    if kind_of(pivots.dtype) not in "iu":
        raise DTypeError(f"lu_solve takes integer pivots, got {pivots.type!r}")
    order = apply(Permutation(), pivots, factors)
    vector = y.ndim == 1
    y = expand_dims(y, 1) if vector else y
    if not trans:
        y = take_along_axis(y, expand_dims(order, -1), axis=-2)
        z = solve_triangular(factors, y, lower=True, unit_diagonal=True)
        z = solve_triangular(factors, z)
    else:
        z = solve_triangular(factors, y, trans=trans)
        z = solve_triangular(factors, z, lower=True, trans=trans, unit_diagonal=True)
        z = take_along_axis(z, expand_dims(argsort(order, axis=-1), -1), axis=-2)
    return squeezed(z, -1) if vector else z


@documented(LuFactor)
def lu(x: TensorLike, /) -> tuple[Tensor, Tensor, Tensor]:
    """A permutation p, unit lower triangular l and upper triangular u with x = p @ l @ u.

    Parameters: x: (..., M, N); floating or complex, ints become float64.

    Returns: p (..., M, M), l (..., M, K), u (..., K, N), K = min(M, N), all of the dtype of x, but
        for p, which is real.

    Raises: ShapeError if x has fewer than two axes, or lengths that values decide; DTypeError
        if x is float16.

    Source: scipy.linalg.lu.

    >>> p, l, u = gg.linalg.lu([[1.0, 2.0], [2.0, 2.0]])
    >>> gg.evaluate((p, l, u))
    (array([[0., 1.],
           [1., 0.]]), array([[1. , 0. ],
           [0.5, 1. ]]), array([[2., 2.],
           [0., 1.]]))
    """
    (x,) = promoted(x, floating=True)
    factors, pivots = build(LuFactor(), (x,)).outputs
    k = shorter(*x.shape[-2:])
    whole = square(*x.shape[-2:])
    low, high = (factors, factors) if whole else (factors[..., :, :k], factors[..., :k, :])
    order = apply(Permutation(), pivots, x)
    p = equal(expand_dims(sort(order, axis=-1), -1), expand_dims(order, -2))
    return cast(p, real_dtype(x.dtype)), _with_ones(low), apply(Triu(0), high)


def _with_ones(x: Tensor) -> Tensor:
    """The lower triangle with ones on the diagonal."""
    at = x.ndim - 2, x.ndim - 1
    ones = apply(DiagonalGrad(0, *at), apply(OnesLike(), diagonal(x, 0, *at)), x)
    return apply(Tril(-1), x) + ones
