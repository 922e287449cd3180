"""Rank, pseudo-inverses and least squares."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.errors import DTypeError, ShapeError
from ...base.flags import truth
from ...base.kinds import limits_of
from ...base.length import Length
from ...ir.types import broadcast
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
    as_tensor,
    build,
    cast,
    is_zero,
    kind_of,
    np,
    promoted,
    real_dtype,
    tensor_type,
    wants,
)
from ..batching import Batch, Outputs
from ..contract.products import may_equal, squeezed
from ..documented import documented
from ..elementwise.logic import greater
from ..elementwise.magnitudes import abs as moduli
from ..elementwise.powers import square as squared
from ..reduce.reductions import max, sum
from ..shape.reshaping import broadcast_like, broadcast_to, expand_dims
from .eigenvalues import eigvalsh
from .matrices import (
    adjoint,
    check_square,
    conjugated,
    dense,
    matrices,
    normal,
    operands,
    shorter,
    times,
)
from .singular_values import SingularValues, svdvals
from .triangular import LowerHalf

__all__ = ["lstsq", "matrix_rank", "pinv"]


def _kept(xp: Any, x: Any, s: Any, share: float | None, rtol: Any = None) -> Any:
    """Which of the singular values s of x are not negligible."""
    if rtol is not None:
        rtol = rtol[..., None]
    elif share is not None:
        rtol = share
    else:
        rtol = xp.maximum(x.shape[-2], x.shape[-1]) * xp.finfo(x.dtype).eps
    least = xp.max(s, axis=-1, keepdims=True, initial=0) * rtol
    return s > least.astype(s.dtype)


def _none(rtol: Sequence[Tensor]) -> tuple[Any, ...]:
    """The gradients of a tolerance, where there is one."""
    return tuple([NO_GRAD for _ in rtol])


def _inverted(xp: Any, x: Any, share: float | None, rtol: Any = None) -> tuple[Any, Any, Any, Any]:
    """u.H, 1 / s of what is not negligible, v, and s."""
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    kept = _kept(xp, x, s, share, rtol)
    inverted = xp.where(kept, 1 / xp.where(kept, s, 1), 0)
    return xp.conj(u.mT), inverted, xp.conj(vh.mT), s


class Coupling(Op):
    """t = sum over i kept, j not, of v_i v_i.H @ y @ v_j v_j.H / (s_i**2 - s_j**2), (..., N, N).

    Gradient: made of what t solves, t @ h - h @ t = -p @ y @ (1 - p): no two values that are
        both kept, or both not, are ever subtracted.

    v_i are the right singular vectors of x (..., M, N), of which those are kept whose singular
    value s_i is more than rtol times the greatest. The projector p = sum of v_i v_i.H over those
    moves with h = x.H @ x by t(dh) + t(dh).H [Kato 1995, "Perturbation theory for linear
    operators", sec. II.2].
    """

    rtol: float | None
    linear = (1,)
    stacks = True

    def infer(self, x: TensorType, y: TensorType, *rtol: TensorType) -> Types:
        stack, _, n = matrices("pinv", x)
        return (tensor_type((*stack, n, n), x.dtype),)

    def kernel(self, xp: Any, x: Any, y: Any, *rtol: Any) -> Any:
        _, s, vh = xp.linalg.svd(x, full_matrices=True)
        beyond = xp.zeros((*s.shape[:-1], vh.shape[-1] - s.shape[-1]), s.dtype)
        kept = xp.concat([_kept(xp, x, s, self.rtol, *rtol), beyond > 0], axis=-1)
        s = xp.concat([s, beyond], axis=-1)
        pairs = kept[..., :, None] & ~kept[..., None, :]
        rows, columns = s[..., :, None], s[..., None, :]
        gaps = xp.where(pairs, (rows - columns) * (rows + columns), 1)
        v = xp.conj(vh.mT)
        return v @ (xp.where(pairs, vh @ y @ v, 0) / gaps) @ vh

    def vjp(self, node: Node, dt: Tensor) -> Gradients:
        (x, y, *rtol), (t,) = node.inputs, node.outputs
        dt = conjugated(dt)
        f = apply(self, x, dt, *rtol)
        if not wants(x):
            return NO_GRAD, conjugated(f), *_none(rtol)
        moved = times(f, y, b=True) - times(y, f, a=True)
        moved = moved + times(dt, t, b=True) - times(t, dt, a=True)
        turned = apply(self, x, moved + adjoint(moved), *rtol)
        dh = times(t, f, a=True) - times(f, t, b=True) + turned
        return conjugated(times(x, dh + adjoint(dh))), conjugated(f), *_none(rtol)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """8 m n**2 + 28 n**3."""
        return dense(inputs[0], 8, 28)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for m in (3, 2):
            x, y = np.diag([3.0, 2.0, 1.0])[:m], rng.normal(size=(3, 3))
            yield cls(0.8), [x + 0.1 * rng.normal(size=(m, 3)), y]


class PseudoInverse(Op):
    """y = the pseudo-inverse of x (..., M, N), which is (..., N, M).

    Gradient: dx = -y.T @ dy @ y.T + (1 - x @ y) @ dy.T @ y @ y.T + y.T @ y @ dy.T @ (1 - y @
        x), as long as the rank does not change; with an rtol also what turns the kept singular
        vectors [Golub and Pereyra 1973, "The differentiation of pseudo-inverses and nonlinear least
        squares problems whose variables separate", eq. 4.12]; of complex x, with adjoints, of the
        conjugates of dx and dy.

    Singular values of at most rtol times the greatest count as 0, which is the attribute or a
    further input, of the axes of the stack; None: max(M, N) * eps.
    """

    rtol: float | None = None
    stacks = True

    def infer(self, x: TensorType, *rtol: TensorType) -> Types:
        stack, m, n = matrices("pinv", x)
        return (tensor_type((*stack, n, m), x.dtype),)

    def kernel(self, xp: Any, x: Any, *rtol: Any) -> Any:
        uh, inverted, v, _ = _inverted(xp, x, self.rtol, *rtol)
        return (v * inverted[..., None, :]) @ uh

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x, *rtol), (y,) = node.inputs, node.outputs
        dy = conjugated(dy)
        middle = times(times(y, dy, a=True), y, b=True)
        first = times(times(dy, y, a=True), y, b=True)
        second = times(y, times(y, dy, b=True), a=True)
        first = first - times(x, times(y, first))
        second = second - times(times(second, y), x)
        dx = _of_the_whole(x, y, first + second - middle, self.rtol, *rtol)
        return conjugated(dx), *_none(rtol)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """8 m n**2 + 20 n**3."""
        return dense(inputs[0], 8, 20)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (3, 2), (2, 3), (2, 3, 2)]:
            yield cls(), [rng.normal(size=shape)]
        yield cls(), [normal(rng, 3, 2)]
        for m, n in [(3, 3), (3, 2)]:
            yield cls(0.7), [np.diag([3.0, 1.0, 2.5])[:m, :n] + 0.1 * rng.normal(size=(m, n))]


def _of_the_whole(x: Tensor, y: Tensor, dx: Tensor, share: float | None, *rtol: Tensor) -> Tensor:
    """The gradient of x, by Re <dx, x>, from that of the part of x that counts.

    That part is x @ p, with the projector p = y @ x. No rtol: what does not count is rounding.
    """
    if share is None and not rtol:
        return dx
    op = Coupling(share)
    m, n = x.shape[-2:]
    if isinstance(m, int) and isinstance(n, int) and m < n:  # projectors of the shorter side
        return adjoint(_of_the_tall(op, adjoint(x), adjoint(y), adjoint(dx), *rtol))
    return _of_the_tall(op, x, y, dx, *rtol)


def _of_the_tall(op: Coupling, x: Tensor, y: Tensor, dx: Tensor, *rtol: Tensor) -> Tensor:
    dp = times(x, dx, a=True)
    turned = apply(op, x, dp + adjoint(dp), *rtol)
    return times(times(dx, y), x) + times(x, turned + adjoint(turned))


class LeastSquares(Op):
    """The shortest z (..., N, K) for which x @ z is nearest to y; rank and singular values of x.

    Gradient: with the pseudo-inverse p of x, dy = w = p.H @ dz and dx = -w @ z.H + (y - x @ z)
        @ w.H @ p.H + p.H @ z @ dz.H @ (1 - p @ x), for the inner product Re <dx, x> [Golub and
        Pereyra 1973, eq. 4.12].
    """

    rtol: float | None = None
    broadcasts = True

    def infer(self, x: TensorType, y: TensorType) -> Types:
        stack, m, n = matrices("lstsq", x)
        if len(y.shape) < 2 or x.dtype is not y.dtype or not may_equal(m, y.shape[-2]):
            raise ShapeError(
                f"lstsq takes the same number of rows and one dtype, got {x!r} and {y!r}"
            )
        both = broadcast([stack, y.shape[:-2]])
        return (
            tensor_type((*both, n, y.shape[-1]), x.dtype),
            tensor_type(both, "int32"),
            tensor_type((*both, shorter(m, n)), real_dtype(x.dtype)),
        )

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        uh, inverted, v, s = _inverted(xp, x, self.rtol)
        z = v @ (inverted[..., :, None] * (uh @ y))
        rank = xp.sum(inverted != 0, axis=-1, dtype=xp.int32)
        stack = z.shape[:-2]
        return z, xp.broadcast_to(rank, stack), xp.broadcast_to(s, (*stack, s.shape[-1]))

    def vjp(self, node: Node, dz: Tensor, _: Any, ds: Tensor) -> Gradients:
        (x, y), (z, _, _) = node.inputs, node.outputs
        dz = conjugated(dz)
        p = apply(PseudoInverse(self.rtol), x)
        w = times(p, dz, a=True)
        if not wants(x):
            return NO_GRAD, conjugated(w)
        rest = dz - times(p, times(x, dz))
        dx = times(times(p, z, a=True), rest, b=True) - times(w, z, b=True)
        dx = dx + times(y - times(x, z), times(p, w), b=True)
        dx = conjugated(_of_the_whole(x, p, dx, self.rtol))
        if not is_zero(ds):
            dx = dx + SingularValues().vjp(build(SingularValues(), (x,)), ds)[0]
        return dx, conjugated(w)

    def batch(self, batch: Batch) -> Outputs | None:
        """Matrices alone are a stack; vectors would be taken for one."""
        return batch.build(self, *batch.aligned())

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """8 m n**2 + 20 n**3."""
        return dense(inputs[0], 8, 20)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(3, 2), (2, 3), (2, 3, 2)]:
            yield cls(), [rng.normal(size=shape), rng.normal(size=(shape[-2], 2))]


@documented(PseudoInverse)
def pinv(
    x: TensorLike, /, rcond: float | None = None, hermitian: bool = False, *, rtol: Any = None
) -> Tensor:
    """The pseudo-inverses of matrices.

    Parameters:
        x: (..., M, N); floating or complex, ints become float64.
        rcond: what rtol is, under NumPy's older name.
        hermitian: whether x is Hermitian, so that its lower triangle alone is read.
        rtol: singular values of at most rtol times the greatest count as 0: a number, or real
            numbers for the matrices of a stack, (...); None: max(M, N) times the spacing of the
            dtype at 1.

    Returns: y, (..., N, M), dtype of x.

    Raises: ShapeError if x has fewer than two axes, or rtol does not broadcast; DTypeError if x is
        float16, or rtol not real; TypeError for both rcond and rtol.

    Source: the array API standard, linalg.pinv.

    >>> gg.evaluate(gg.linalg.pinv([[2.0, 0.0], [0.0, 0.0]])).round(4)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    truth("hermitian", hermitian)
    (x,) = promoted(x, floating=True)
    if rcond is not None and rtol is not None:
        raise TypeError("pinv takes rtol or rcond, which mean the same, not both")
    if hermitian:
        x = _from_lower("pinv", x)
    if rcond is None and (isinstance(rtol, Tensor) or np.ndim(rtol)):
        return apply(PseudoInverse(), *_with_tolerances(x, as_tensor(rtol)))
    return apply(PseudoInverse(_tolerance("pinv", rtol if rcond is None else rcond)), x)


def _with_tolerances(x: Tensor, rtol: Tensor) -> tuple[Tensor, Tensor]:
    """x and rtol, with all the axes of both stacks."""
    stack, m, n = matrices("pinv", x.type)
    if kind_of(rtol.dtype) not in "iuf":
        raise DTypeError(f"pinv takes real tolerances, got {rtol.type!r}, built at {rtol.where}")
    both = broadcast([stack, rtol.shape])
    if x.type.static and rtol.type.static:
        x, rtol = broadcast_to(x, (*both, m, n)), broadcast_to(rtol, both)
    elif x.ndim == len(both) + 2:
        rtol = broadcast_like(rtol, x[..., 0, 0])
    else:
        raise ShapeError(f"pinv takes no tolerances {rtol.type!r} for {x.type!r}: lengths unknown")
    return x, cast(rtol, real_dtype(x.dtype))


def _from_lower(what: str, x: Tensor) -> Tensor:
    """The Hermitian matrices with these lower triangles."""
    check_square(what, x.type)
    half = apply(LowerHalf(), x)
    return half + adjoint(half)


def _tolerance(what: str, rtol: Any) -> float | None:
    if rtol is None:
        return None
    if isinstance(rtol, Tensor) or np.ndim(rtol) or np.iscomplexobj(rtol):
        raise TypeError(f"{what} takes one real number as its tolerance, got {rtol!r}")
    return float(rtol)


def lstsq(
    a: TensorLike, b: TensorLike, /, rcond: float | None = None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The shortest x for which a @ x is nearest to b.

    Parameters:
        a: (..., M, N); floating or complex, dtypes promoted, ints become float64.
        b: (..., M, K), or (M,) for one vector; the axes before broadcast.
        rcond: singular values of at most rcond times the greatest count as 0; None: max(M, N) times
            the spacing of the dtype at 1.

    Returns: x (..., N, K), or (N,); the sums of squares of b - a @ x over its rows, (..., K), real,
        of rank-deficient a too; the rank of a (...), int32; the singular values of a, (..., min(M,
        N)), broadcast too. Where M <= N is known, the sums are (..., 0), as of NumPy.

    Raises: ShapeError if b does not fit; DTypeError for float16; TypeError for an rcond that is
        not a number.

    Gradient: that of pinv(a) @ b [Golub and Pereyra 1973,
        "The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
        separate", eq. 4.12].

    Source: numpy.linalg.lstsq.

    >>> x, rest, rank, s = gg.linalg.lstsq([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], [1.0, 3.0, 5.0])
    >>> gg.evaluate(x).round(4)
    array([1., 2.])
    """
    x, y = operands(a, b)
    columns = expand_dims(y, 1) if y.ndim == 1 else y
    z, rank, s = solution(x, columns, rcond)
    rest = _sums_of_squares(columns - times(x, z), *x.shape[-2:])
    return squeezed(z, -1) if y.ndim == 1 else z, rest, rank, s


def solution(a: Tensor, b: Tensor, rcond: float | None) -> tuple[Tensor, Tensor, Tensor]:
    """What lstsq returns but for the sums of squares: x, the rank and the singular values."""
    x, y = operands(a, b)
    columns = expand_dims(y, 1) if y.ndim == 1 else y
    op = LeastSquares(_tolerance("lstsq", rcond))
    z, rank, s = build(op, (x, columns)).outputs
    return squeezed(z, -1) if y.ndim == 1 else z, rank, s


def _sums_of_squares(rest: Tensor, m: Any, n: Any) -> Tensor:
    """Over the rows; none where the equations are known not to be more than the unknowns."""
    if isinstance(m, int) and isinstance(n, int) and m <= n:
        rest = rest[..., :0]
    return sum(squared(moduli(rest)), -2)


def matrix_rank(
    x: TensorLike, /, tol: TensorLike | None = None, hermitian: bool = False, *, rtol: Any = None
) -> Tensor:
    """How many singular values are not negligible.

    Parameters:
        x: (..., M, N); floating or complex, ints become float64.
        tol: those of at most tol, (...), are; None: as rtol says.
        hermitian: whether x is Hermitian, so that its lower triangle alone is read.
        rtol: those of at most rtol, (...), times the greatest are; None: max(M, N) times the
            spacing of the dtype at 1.

    Returns: int64, (...).

    Raises: ShapeError if x has fewer than two axes, or M or N are decided by values and needed;
        DTypeError if x is float16; TypeError for both tol and rtol.

    Gradient: none, the result is not floating.

    Source: numpy.linalg.matrix_rank.

    >>> gg.evaluate(gg.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]))
    array(1)
    """
    truth("hermitian", hermitian)
    if tol is not None and rtol is not None:
        raise TypeError("matrix_rank takes tol or rtol, not both")
    (x,) = promoted(x, floating=True)
    matrices("matrix_rank", x.type)
    s = moduli(eigvalsh(x)) if hermitian else svdvals(x)
    if tol is None:
        share = as_tensor(_spacing(x) if rtol is None else rtol)
        least = max(s, -1, True) * (expand_dims(share, -1) if share.ndim else share)
    else:
        least = as_tensor(tol)
        least = expand_dims(least, -1) if least.ndim else least
    return sum(cast(greater(s, least), "int64"), -1)


def _spacing(x: Tensor) -> Any:
    """max(M, N) times the spacing of the dtype at 1, in that dtype."""
    m, n = x.shape[-2:]
    if m is None or n is None:
        raise ShapeError(
            "matrix_rank takes matrices whose lengths do not depend on values, or rtol, got "
            f"{x.type!r}"
        )
    spacing = np.asarray(limits_of(x.dtype).eps, real_dtype(x.dtype))
    longer = Length.max(m, n)
    return spacing * longer if isinstance(longer, int) else as_tensor(spacing) * longer
