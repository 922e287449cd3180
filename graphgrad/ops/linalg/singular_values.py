"""Singular values and singular vectors."""

from __future__ import annotations

from ...base.errors import GradientError
from ...base.flags import truth
from ...ir.types import Dim, elements
from ..base import (
    Any,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    ZeroTensor,
    apply,
    build,
    is_zero,
    like,
    np,
    promoted,
    real_dtype,
    tensor_type,
)
from ..create.diagonal import diagonal
from ..documented import documented
from ..elementwise.complex_parts import conj, imag, real
from ..elementwise.logic import equal, less, where
from ..elementwise.magnitudes import abs
from ..reduce.reductions import sum
from ..reduce.sorting import argsort, take_along_axis
from ..shape.reshaping import expand_dims
from . import stepwise
from .eigenvalues import ROUNDING, OverGaps, eigh, eigvalsh
from .matrices import adjoint, conjugated, dense, matrices, shorter, square, times
from .results import SVDResult

__all__ = ["svd", "svdvals"]


class OverValues(Op):
    """z[..., i, j] = y[..., i, j] / x[..., j], of x that are not negative.

    Gradient: dy = dz / x; dx[j] = -sum of dz * z / x over column j.

    NaN where x_j is 0, and where rounding may be all that it is; there z is 0 only where column j
    of y is 0.
    """

    linear = (1,)
    stacks = True

    def infer(self, x: TensorType, y: TensorType) -> Types:
        return (y,)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        size = xp.max(x, axis=-1, keepdims=True, initial=0)
        none = x <= ROUNDING * xp.finfo(x.dtype).eps * size
        none = none & ((x == 0) | xp.any(y != 0, axis=-2))
        z = y / xp.where(x == 0, 1, x)[..., None, :]
        return xp.where(none[..., None, :], xp.asarray(np.nan, dtype=y.dtype), z)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        (x, _), (z,) = node.inputs, node.outputs
        dx = -sum(dz * apply(self, x, z), -2)
        return real(dx), apply(self, x, dz)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element."""
        return elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [np.array([4.0, 2.0]), rng.normal(size=(3, 2))]


class Svd(Op):
    """u (..., M, K), s (..., K) falling, vh (..., K, N) with x = u @ diag(s) @ vh, K = min(M, N).

    Gradient: as in [Townsend 2016, "Differentiating the singular value decomposition"], for
        singular values that differ and are not 0; of complex vectors it is right for what does not
        depend on their phases. NaN if vectors are read whose singular values are equal, or nearly
        so. Of s alone conj(u @ diag(ds) @ vh), for any.

    full: u (..., M, M) and vh (..., N, N), whose further columns and rows are any that complete
    them, so that there is no gradient of the one that has such.
    """

    full: bool = False
    stacks = True

    def infer(self, x: TensorType) -> Types:
        stack, m, n = matrices("svd", x)
        k = shorter(m, n)
        rows, columns = (m, n) if self.full else (k, k)
        return (
            tensor_type((*stack, m, rows), x.dtype),
            tensor_type((*stack, k), real_dtype(x.dtype)),
            tensor_type((*stack, columns, n), x.dtype),
        )

    def kernel(self, xp: Any, x: Any) -> Any:
        return tuple(xp.linalg.svd(x, full_matrices=self.full))

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(lambda xp, x: stepwise.svd(xp, x, self.full), x)

    def vjp(self, node: Node, du: Tensor, ds: Tensor, dvh: Tensor) -> Gradients:
        if is_zero(du) and is_zero(dvh):
            return SingularValues().vjp(node, ds)
        (x,), (u, s, vh) = node.inputs, node.outputs
        if self.full:
            m, n = x.shape[-2:]
            _check_defined(node, m, n, du, dvh)
            if not square(m, n):  # the shorter factor is whole; the other follows from it
                tall = is_zero(du)
                u = times(x, vh, b=True) / expand_dims(s, -2) if tall else u
                vh = vh if tall else times(u, x, a=True) / expand_dims(s, -1)
                du, dvh = (ZeroTensor(u), dvh) if tall else (du, ZeroTensor(vh))
        return (conjugated(_backward(u, s, vh, conjugated(du), ds, conjugated(dvh))),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """6 m n**2 + 20 n**3."""
        return dense(inputs[0], 6, 20)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (3, 2), (2, 3), (2, 3, 3)]:
            yield cls(), [rng.normal(size=shape)]


def _backward(u: Tensor, s: Tensor, vh: Tensor, du: Tensor, ds: Tensor, dvh: Tensor) -> Tensor:
    """dx for the inner product Re <dx, x>, of the reduced factors."""
    row, column = expand_dims(s, -2), expand_dims(s, -1)
    of_u, of_v = times(u, du, a=True), times(vh, dvh, b=True)
    core = _turned(s, of_u) * row + _turned(s, of_v) * column
    if u.type.complex:  # how the vectors turn together
        ds = ds + imag(diagonal(of_u, 0, -2, -1)) / s * 1j
    left = times(u, core) + u * expand_dims(ds, -2)
    left = left + _beside(u, s, du, of_u)
    return times(left, vh) + times(u, _beside(adjoint(vh), s, adjoint(dvh), of_v), b=True)


def _beside(v: Tensor, s: Tensor, dv: Tensor, along: Tensor) -> Tensor:
    """(dv - v @ along) / s, along = v.H @ dv: 0 for square v, but NaN where OverValues has it."""
    if square(*v.shape[-2:]):
        return apply(OverValues(), s, dv) * 0.0  # without what rounding would leave
    return apply(OverValues(), s, dv - times(v, along))


def _turned(s: Tensor, along: Tensor) -> Tensor:
    """(along - along.H) / (s[j]**2 - s[i]**2), 0 on the diagonal, without rounding of squares."""
    total = expand_dims(s, -2) + expand_dims(s, -1)
    part = apply(OverGaps(), s, along) / where(equal(total, 0), like(1, total), total)
    return part + adjoint(part)


def _check_defined(node: Node, m: Dim, n: Dim, du: Tensor, dvh: Tensor) -> None:
    """GradientError unless the factors with a gradient are known to have no free columns or rows.

    A factor of an M x N matrix has such where its side is the longer one.
    """
    free = [
        name
        for name, dy, side, k in [("U", du, m, shorter(m, n)), ("Vh", dvh, n, shorter(m, n))]
        if not is_zero(dy) and (k is None or side != k)
    ]
    if free:
        raise GradientError(
            f"{' and '.join(free)} of svd(x, full_matrices=True) have columns or rows that x does "
            f"not determine, so they have no gradient: {node.inputs[0].type!r}, built at "
            f"{node.where}. Use svd(x, full_matrices=False)."
        )


class SingularValues(Op):
    """The singular values of x, falling.

    Gradient: dx = conj(u @ diag(dy) @ vh) with the singular vectors u and vh [Townsend 2016,
        "Differentiating the singular value decomposition"]; equal singular values included.
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        stack, m, n = matrices("svdvals", x)
        return (tensor_type((*stack, shorter(m, n)), real_dtype(x.dtype)),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.svd(x, full_matrices=False, compute_uv=False)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(lambda xp, x: stepwise.svd(xp, x, False)[1], x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        u, _, vh = build(Svd(False), node.inputs).outputs
        return (conj(times(u * expand_dims(dy, -2), vh)),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """4 m n**2 - 4/3 n**3."""
        return dense(inputs[0], 4, -4 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (3, 2), (2, 3, 3)]:
            yield cls(), [rng.normal(size=shape)]


@documented(Svd)
def svd(
    x: TensorLike, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """Singular values and vectors of matrices: x = u @ diag(s) @ vh.

    Parameters:
        x: (..., M, N); floating or complex, ints become float64.
        full_matrices: whether u and vh are completed to square matrices; the columns and rows that
            are added may be any.
        compute_uv: whether the vectors are wanted, too.
        hermitian: whether x is known to be Hermitian: its eigenvalues and vectors are taken;
            only the lower triangle is read.

    Returns: U (..., M, M), S (..., K) real and falling, Vh (..., N, N), K = min(M, N); unless
        full_matrices, U (..., M, K) and Vh (..., K, N). Without compute_uv, S alone.

    Raises: ShapeError if x has fewer than two axes; DTypeError if x is float16; GradientError where
        completed U or Vh gets a gradient.

    Source: numpy.linalg.svd; Townsend 2016, "Differentiating the singular value decomposition".

    >>> u, s, vh = gg.linalg.svd([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]], full_matrices=False)
    >>> u.shape, vh.shape, gg.evaluate(s)
    ((3, 2), (2, 2), array([4., 3.]))
    """
    truth("full_matrices", full_matrices)
    truth("compute_uv", compute_uv)
    truth("hermitian", hermitian)
    if hermitian:
        return _of_hermitian(x) if compute_uv else _falling(abs(eigvalsh(x)))[0]
    if not compute_uv:
        return svdvals(x)
    (x,) = promoted(x, floating=True)
    full = bool(full_matrices) and not (x.ndim > 1 and square(*x.shape[-2:]))
    return SVDResult(*build(Svd(full), (x,)).outputs)


def _of_hermitian(x: TensorLike) -> SVDResult:
    """Moduli of the eigenvalues, falling; their signs go with the vectors on the right."""
    w, v = eigh(x)
    s, order = _falling(abs(w))
    u = take_along_axis(v, expand_dims(order, -2))
    signs = take_along_axis(where(less(w, 0), like(-1, w), like(1, w)), order)
    return SVDResult(u, s, adjoint(u * expand_dims(signs, -2)))


def _falling(s: Tensor) -> tuple[Tensor, Tensor]:
    """Numbers along the last axis, the largest first, and where they were."""
    order = argsort(s, -1, descending=True)
    return take_along_axis(s, order), order


@documented(SingularValues)
def svdvals(x: TensorLike, /) -> Tensor:
    """Singular values of matrices.

    Parameters: x: (..., M, N); floating or complex, ints become float64.

    Returns: (..., min(M, N)), real and falling.

    Raises: ShapeError if x has fewer than two axes; DTypeError if x is float16.

    >>> gg.evaluate(gg.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]]))
    array([4., 3.])
    """
    return apply(SingularValues(), *promoted(x, floating=True))
