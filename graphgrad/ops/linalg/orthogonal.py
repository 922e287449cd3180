"""QR factorization."""

from __future__ import annotations

from ...base.errors import GradientError
from ...ir.types import Dim
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
    build,
    np,
    promoted,
    tensor_type,
)
from ..documented import documented
from ..shape.joining import concat
from . import stepwise
from .matrices import adjoint, conjugated, dense, matrices, normal, shorter, square, times
from .results import QRResult
from .triangular import LowerHalf, SolveTriangular

__all__ = ["qr"]


class Qr(Op):
    """q (..., M, K) with orthonormal columns, r (..., K, N) upper triangular, x = q @ r.

    Gradient: for M >= N and full rank dx = (dq + q @ c) @ r.H**-1 with c the lower triangle of
        r @ dr.H - dq.H @ q, made Hermitian; for M < N, of x = [x1, x2] and r = [r1, r2], dx2 = q @
        dr2, and dx1 is that of q and r1 for dq + x2 @ dr2.H [Walter and Lehmann 2018, "Algorithmic
        differentiation of linear algebra functions", sec. 4.2].

    complete: K = M, where the columns that are added may be any; else K = min(M, N).
    """

    complete: bool = False
    stacks = True

    def infer(self, x: TensorType) -> Types:
        stack, m, n = matrices("qr", x)
        k = m if self.complete else shorter(m, n)
        return tensor_type((*stack, m, k), x.dtype), tensor_type((*stack, k, n), x.dtype)

    def kernel(self, xp: Any, x: Any) -> Any:
        return tuple(xp.linalg.qr(x, mode="complete" if self.complete else "reduced"))

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(lambda xp, x: stepwise.qr(xp, x, self.complete), x)

    def vjp(self, node: Node, dq: Tensor, dr: Tensor) -> Gradients:
        (x,), (q, r) = node.inputs, node.outputs
        dq, dr = conjugated(dq), conjugated(dr)
        m, n = x.shape[-2:]
        if self.complete and not _is_wide(m, n):
            raise GradientError(
                f"Q of qr(x, mode='complete') has columns that x does not determine, so it has no "
                f"gradient: {x.type!r}, built at {node.where}. Use mode='reduced'."
            )
        if not _is_wide(m, n) or square(m, n):
            return (conjugated(_backward(q, r, dq, dr)),)
        beside = x[..., :, m:]
        of_r = dr[..., :, m:]
        first = _backward(q, r[..., :, :m], dq + times(beside, of_r, b=True), dr[..., :, :m])
        return (conjugated(concat([first, times(q, of_r)], axis=-1)),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """4 m n**2 - 4/3 n**3."""
        return dense(inputs[0], 4, -4 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (3, 2), (2, 3, 3)]:
            yield cls(), [rng.normal(size=shape)]
        yield cls(), [normal(rng, 3, 2)]


def _is_wide(m: Dim, n: Dim) -> bool:
    """Whether it is known that there are at least as many columns as rows."""
    return square(m, n) or (isinstance(m, int) and isinstance(n, int) and m < n)


def _backward(q: Tensor, r: Tensor, dq: Tensor, dr: Tensor) -> Tensor:
    """dx of a high matrix, for the inner product Re <dx, x>."""
    half = apply(LowerHalf(), times(r, dr, b=True) - times(dq, q, a=True))
    total = dq + times(q, half + adjoint(half))
    return adjoint(apply(SolveTriangular(False), r, adjoint(total)))


@documented(Qr)
def qr(x: TensorLike, /, mode: str = "reduced") -> Any:
    """Orthonormal columns Q and upper triangular R with x = Q @ R.

    Parameters:
        x: (..., M, N); floating or complex, ints become float64.
        mode: "reduced", "complete" for a square Q, or "r" for R alone.

    Returns: Q (..., M, K) and R (..., K, N), K = min(M, N); of mode "complete" K = M; of mode "r" R
        of the reduced factors, a tensor.

    Raises: ShapeError if x has fewer than two axes; DTypeError if x is float16; ValueError for
        an unknown mode; GradientError where completed factors get a gradient.

    >>> q, r = gg.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
    >>> gg.evaluate(q @ r).round(4)
    array([[3., 1.],
           [4., 2.]])
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr takes mode 'reduced', 'complete' or 'r', got {mode!r}")
    (x,) = promoted(x, floating=True)
    whole = mode == "complete" and not (x.ndim > 1 and _is_wide(*x.shape[-2:]))
    factors = QRResult(*build(Qr(whole), (x,)).outputs)
    return factors.R if mode == "r" else factors
