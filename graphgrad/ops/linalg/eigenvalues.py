"""Eigenvalues and eigenvectors of Hermitian and general matrices."""

from __future__ import annotations

from ...ir.types import elements
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
    apply,
    as_dtype,
    build,
    is_zero,
    np,
    promoted,
    real_dtype,
    result_dtype,
    tensor_type,
)
from ..create.diagonal import diagonal
from ..documented import documented
from ..elementwise.complex_parts import conj, real
from ..reduce.reductions import sum
from ..shape.reshaping import expand_dims
from . import stepwise
from .inverses import Solve
from .matrices import adjoint, check_square, conjugated, dense, positive, times
from .results import EighResult, EigResult
from .triangular import LowerHalf

__all__ = ["eig", "eigh", "eigvals", "eigvalsh"]


ROUNDING = 16
"""Eigenvalues and singular values are right to so many spacings of the largest one."""


class OverGaps(Op):
    """z[..., i, j] = y[..., i, j] / (x[..., j] - x[..., i]); 0 on the diagonal.

    Gradient: dy = dz / gaps; dx[k] = sum of dz * z / gaps over row k less that over column k.

    NaN where x_i and x_j are equal, so that 0 / 0 has a limit which no value here tells, and where
    rounding may be all that tells them apart. There z is 0 only where columns i and j of y are 0:
    nobody reads these vectors. No such pair of unequal numbers is let through if `strict`: where
    y is a difference, it may have rounded to 0.
    """

    strict: bool = False
    linear = (1,)
    stacks = True

    def infer(self, x: TensorType, y: TensorType) -> Types:
        return (y,)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        every = xp.ones_like(y, dtype=bool)
        other = xp.tril(every, -1) | xp.triu(every, 1)
        gap = (
            x[..., None, :] - x[..., :, None]
        ) * other  # XLA subtracts what it rounds in two ways
        size = xp.max(xp.abs(x), axis=-1, keepdims=True, initial=0)[..., None]
        alike = other & (xp.abs(gap) <= ROUNDING * xp.finfo(x.dtype).eps * size)
        if not self.strict:
            read = xp.any(y != 0, axis=-2)
            alike = alike & ((gap == 0) | read[..., None, :] | read[..., :, None])
        z = y * other / xp.where(gap == 0, 1, gap)
        return xp.where(alike, xp.asarray(np.nan, dtype=y.dtype), z)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        (x, _), (z,) = node.inputs, node.outputs
        flow = dz * apply(self, x, z)
        dx = sum(flow, -1) - sum(flow, -2)
        return dx if x.type.complex else real(dx), apply(self, x, dz)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Two for each element."""
        return 2 * elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [np.array([1.0, 2.0, 4.0]), rng.normal(size=(3, 3))]
        yield cls(True), [np.array([[1.0, 2.0], [5.0, 3.0]]), rng.normal(size=(2, 2, 2))]


class Eigh(Op):
    """Eigenvalues w (rising) and eigenvectors v (columns) of x = v @ diag(w) @ v.H; only the lower
    triangle is read.

    Gradient: v @ (diag(dw) + f * (v.H @ dv)) @ v.H made Hermitian, f[i, j] = 1 / (w[j] - w[i])
        for i != j [Giles 2008, "An extended collection of matrix derivative results", sec. 3.1];
        beside the diagonal, twice that in the triangle that is read and 0 in the other. Of complex
        vectors it is right for what does not depend on their phases. NaN if a vector is read whose
        eigenvalue equals another one, or nearly so: these vectors are not function of x. That of
        the eigenvalues alone is right, and matrix_function has that of v @ diag(f(w)) @ v.H.
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("eigh", x)
        return tensor_type(x.shape[:-1], real_dtype(x.dtype)), x

    def kernel(self, xp: Any, x: Any) -> Any:
        return tuple(xp.linalg.eigh(x, UPLO="L"))

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(stepwise.eigh, x)

    def vjp(self, node: Node, dw: Tensor, dv: Tensor) -> Gradients:
        w, v = node.outputs
        dv = conjugated(dv)
        core = v * expand_dims(dw, -2)
        if not is_zero(dv):
            core = core + times(v, apply(OverGaps(), w, times(v, dv, a=True)))
        s = times(core, v, b=True)
        return (conjugated(apply(LowerHalf(), s + adjoint(s))),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """9 n**3."""
        return dense(inputs[0], 0, 9)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


class EigenvaluesH(Op):
    """The eigenvalues of Eigh alone, without the work for the vectors, which the gradient needs.

    Gradient: v @ diag(dw) @ v.H with the eigenvectors v; beside the diagonal, twice that in the
        triangle that is read and 0 in the other.
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("eigvalsh", x)
        return (tensor_type(x.shape[:-1], real_dtype(x.dtype)),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.eigvalsh(x, UPLO="L")

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(lambda xp, x: stepwise.eigh(xp, x)[0], x)

    def vjp(self, node: Node, dw: Tensor) -> Gradients:
        _, v = build(Eigh(), node.inputs).outputs
        s = times(v * expand_dims(dw, -2), v, b=True)
        return (conjugated(apply(LowerHalf(), s + adjoint(s))),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """4/3 n**3."""
        return dense(inputs[0], 0, 4 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [positive(rng, 2, 3, 3)]


class Eig(Op):
    """Eigenvalues w and eigenvectors v (columns of length 1) of any square x: x @ v = v * w.

    Gradient: v.H**-1 @ (diag(dw) + (v.H @ dv - v.H @ v @ diag(re(diag(v.H @ dv)))) * f) @ v.H
        with f[i, j] = 1 / conj(w[j] - w[i]) for i != j, of the conjugates of dw, dv and dx, and of
        real x its real part [Boeddeker et al. 2017, sec. 4.7]. It is right for eigenvalues that
        differ, and for what does not depend on the phases of the vectors; NaN if vectors are read
        and two eigenvalues are equal, or nearly so.
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("eig", x)
        dtype = result_dtype([x.dtype, as_dtype("complex64")])
        return tensor_type(x.shape[:-1], dtype), tensor_type(x.shape, dtype)

    def kernel(self, xp: Any, x: Any) -> Any:
        w, v = xp.linalg.eig(x)
        dtype = xp.result_type(x.dtype, xp.complex64)
        return xp.astype(w, dtype), xp.astype(v, dtype)

    def vjp(self, node: Node, dw: Tensor, dv: Tensor) -> Gradients:
        (x,), (w, v) = node.inputs, node.outputs
        dw, dv = conjugated(dw), conjugated(dv)
        right = expand_dims(dw, -1) * adjoint(v)
        if not is_zero(dv):
            along = times(v, dv, a=True)
            lengths = expand_dims(real(diagonal(along, 0, -2, -1)), -2)
            turned = along - times(v, v, a=True) * lengths
            coupled = conj(apply(OverGaps(True), w, conj(turned)))
            right = right + times(coupled, v, b=True)
        dx = conjugated(apply(Solve(False), adjoint(v), right))
        return (dx if x.type.complex else real(dx),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """25 n**3 [Golub and Van Loan 2013, sec. 7.5]."""
        return dense(inputs[0], 0, 25)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape) + np.triu(rng.normal(size=shape), 1) / 4]


class Eigenvalues(Op):
    """The eigenvalues of Eig alone, without the work for the vectors, which the gradient needs.

    Gradient: v.H**-1 @ diag(dw) @ v.H of the conjugates of dw and dx, with the eigenvectors v;
        for eigenvalues that differ.
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        return Eig().infer(x)[:1]

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.astype(xp.linalg.eigvals(x), xp.result_type(x.dtype, xp.complex64))

    def vjp(self, node: Node, dw: Tensor) -> Gradients:
        (x,) = node.inputs
        _, v = build(Eig(), (x,)).outputs
        right = expand_dims(conj(dw), -1) * adjoint(v)
        dx = conj(apply(Solve(False), adjoint(v), right))
        return (dx if x.type.complex else real(dx),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """10 n**3 [Golub and Van Loan 2013, sec. 7.5]."""
        return dense(inputs[0], 0, 10)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3, 3))]


@documented(Eigh)
def eigh(x: TensorLike, /, UPLO: str = "L") -> EighResult:
    """Eigenvalues w and eigenvectors v of Hermitian matrices: x @ v = v * w.

    Parameters:
        x: (..., N, N); floating or complex, ints become float64.
        UPLO: which triangle is read, the lower ("L") or the upper one ("U").

    Returns: eigenvalues (..., N), real and rising; eigenvectors (..., N, N), in columns.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16; ValueError for
        another UPLO.

    >>> w, v = gg.linalg.eigh([[2.0, 1.0], [1.0, 2.0]])
    >>> gg.evaluate(w).round(4)
    array([1., 3.])
    """
    return EighResult(*build(Eigh(), (_lower("eigh", x, UPLO),)).outputs)


@documented(EigenvaluesH)
def eigvalsh(x: TensorLike, /, UPLO: str = "L") -> Tensor:
    """Eigenvalues of Hermitian matrices, as by eigh.

    Parameters:
        x: (..., N, N); floating or complex, ints become float64.
        UPLO: which triangle is read, the lower ("L") or the upper one ("U").

    Returns: (..., N), real and rising.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16; ValueError for
        another UPLO.

    >>> gg.evaluate(gg.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]])).round(4)
    array([1., 3.])
    """
    return apply(EigenvaluesH(), _lower("eigvalsh", x, UPLO))


def _lower(what: str, x: TensorLike, UPLO: str) -> Tensor:
    """x, or its adjoint, whose lower triangle is the one to read."""
    if not isinstance(UPLO, str) or UPLO.upper() not in ("L", "U"):
        raise ValueError(f"UPLO is 'L' or 'U', got {UPLO!r}")
    (x,) = promoted(x, floating=True)
    check_square(what, x.type)
    return x if UPLO.upper() == "L" else adjoint(x)


@documented(Eig)
def eig(x: TensorLike, /) -> EigResult:
    """Eigenvalues w and right eigenvectors v of square matrices: x @ v = v * w.

    Parameters: x: (..., N, N); floating or complex, ints become float64.

    Returns: eigenvalues (..., N) and eigenvectors (..., N, N), in columns of length 1; always
        complex, in the order of LAPACK.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16.

    Source: numpy.linalg.eig, which gives real results where all eigenvalues are; Boeddeker et al.
        2017, "On the computation of complex-valued gradients with application to statistically
        optimum beamforming", sec. 4.7.

    >>> w, v = gg.linalg.eig([[0.0, 1.0], [-1.0, 0.0]])
    >>> gg.evaluate(w).round(4)
    array([0.+1.j, 0.-1.j])
    """
    return EigResult(*build(Eig(), promoted(x, floating=True)).outputs)


@documented(Eigenvalues)
def eigvals(x: TensorLike, /) -> Tensor:
    """Eigenvalues of square matrices, as by eig.

    Parameters: x: (..., N, N); floating or complex, ints become float64.

    Returns: (..., N), always complex, in the order of LAPACK.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16.

    Source: numpy.linalg.eigvals, which gives real results where all eigenvalues are.

    >>> gg.evaluate(gg.linalg.eigvals([[0.0, 1.0], [-1.0, 0.0]])).round(4)
    array([0.+1.j, 0.-1.j])
    """
    return apply(Eigenvalues(), *promoted(x, floating=True))
