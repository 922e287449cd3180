"""Eigenvalues, singular values, orthogonal factors, and what is made of them."""

from __future__ import annotations

from ..ir.errors import GradientError, ShapeError
from ..ir.types import Dim, elements
from .base import (
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
    cast,
    is_zero,
    np,
    promoted,
    tensor_type,
)
from .logic import greater
from .matrices import (
    LowerHalf,
    Solve,
    check_not_half,
    check_real,
    check_square,
    dense,
    mirrored,
    positive,
)
from .products import MATMUL
from .reductions import max, sum
from .shaping import expand_dims, matrix_transpose

__all__ = ["eigh", "eigvalsh", "matrix_rank", "pinv", "qr", "svd", "svdvals"]


def _shorter(m: Dim, n: Dim) -> Dim:
    """The lesser of two lengths, where that is known."""
    if isinstance(m, int) and isinstance(n, int):
        return min(m, n)
    return m if m == n else None


def _square(m: Dim, n: Dim) -> bool:
    """Whether two lengths are known to be equal."""
    return m is not None and m == n


def _matrices(what: str, x: TensorType) -> tuple[Any, Dim, Dim]:
    check_real(what, x)
    if len(x.shape) < 2 or x.dtype.kind != "f":
        raise ShapeError(f"{what} takes (stacks of) floating matrices, got {x!r}")
    check_not_half(what, x)
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def _times(x: Tensor, y: Tensor, a: bool = False, b: bool = False) -> Tensor:
    return apply(MATMUL[a, b], x, y)


class Inverted(Op):
    """y[..., i, j] = 1 / (x[..., j] - x[..., i]), and 0 where the two are equal.

    dx from y alone: dx[k] = sum of dy * y**2 over row k less that over column k.
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        return (tensor_type((*x.shape, x.shape[-1]), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        gap = x[..., None, :] - x[..., :, None]
        return xp.where(gap == 0, 0, 1 / xp.where(gap == 0, 1, gap))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        flow = dy * y * y
        return (sum(flow, -1) - sum(flow, -2),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Two for each element."""
        return 2 * elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [np.array([1.0, 2.0, 4.0])]
        yield cls(), [np.array([[1.0, 2.0], [5.0, 3.0]])]


class Eigh(Op):
    """Eigenvalues w (rising) and eigenvectors v (columns) of (x + x.T) / 2 = v @ diag(w) @ v.T.

    dx = v @ (diag(dw) + f * (v.T @ dv)) @ v.T made symmetric, f[i, j] = 1 / (w[j] - w[i]) beside
    the diagonal [Giles 2008, sec. 3.1]. Of equal eigenvalues only gradients that do not depend
    on the choice of their eigenvectors are right.
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("eigh", x)
        check_real("eigh", x)
        return tensor_type(x.shape[:-1], x.dtype), x

    def kernel(self, xp: Any, x: Any) -> Any:
        return tuple(xp.linalg.eigh((x + x.mT) / 2))

    def vjp(self, node: Node, dw: Tensor, dv: Tensor) -> Gradients:
        w, v = node.outputs
        inner = apply(Inverted(), w) * _times(v, dv, a=True)
        dx = _times(v * expand_dims(dw, -2) + _times(v, inner), v, b=True)
        return ((dx + matrix_transpose(dx)) * 0.5,)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """9 n**3."""
        return dense(inputs[0], 0, 9)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


class Svd(Op):
    """u (..., M, K), s (..., K) falling, vh (..., K, N) with x = u @ diag(s) @ vh, K = min(M, N).

    full: u (..., M, M) and vh (..., N, N), whose further columns and rows are any that complete
    them, so that there is no gradient of the one that has such. The gradient [Townsend 2016,
    "Differentiating the singular value decomposition"] needs singular values that differ and are
    not zero; that of s alone does not.
    """

    full: bool = False
    stacks = True

    def infer(self, x: TensorType) -> Types:
        stack, m, n = _matrices("svd", x)
        k = _shorter(m, n)
        sides = (m, n) if self.full else (k, k)
        shapes = [(*stack, m, sides[0]), (*stack, k), (*stack, sides[1], n)]
        return tuple([tensor_type(s, x.dtype) for s in shapes])

    def kernel(self, xp: Any, x: Any) -> Any:
        return tuple(xp.linalg.svd(x, full_matrices=self.full))

    def vjp(self, node: Node, du: Tensor, ds: Tensor, dvh: Tensor) -> Gradients:
        if is_zero(du) and is_zero(dvh):
            return SingularValues().vjp(node, ds)
        (x,), (u, s, vh) = node.inputs, node.outputs
        if self.full:
            m, n = x.shape[-2:]
            _check_defined(node, m, n, du, dvh)
            if not _square(m, n):  # the shorter factor is whole; the other follows from it
                tall = is_zero(du)
                u = _times(x, vh, b=True) / expand_dims(s, -2) if tall else u
                vh = vh if tall else _times(u, x, a=True) / expand_dims(s, -1)
                du, dvh = (ZeroTensor(u), dvh) if tall else (du, ZeroTensor(vh))
        row = expand_dims(s, -2)
        gaps = apply(Inverted(), s * s)
        of_u, of_v = _times(u, du, a=True), _times(vh, dvh, b=True)
        left = gaps * (of_u - matrix_transpose(of_u)) * row
        right = gaps * (of_v - matrix_transpose(of_v)) * expand_dims(s, -1)
        core = _times(u, left + right) + u * expand_dims(ds, -2)
        beside_u = (du - _times(u, of_u)) / row
        beside_v = (dvh - _times(matrix_transpose(of_v), vh)) / expand_dims(s, -1)
        return (_times(core + beside_u, vh) + _times(u, beside_v),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """6 m n**2 + 20 n**3."""
        return dense(inputs[0], 6, 20)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (3, 2), (2, 3), (2, 3, 3)]:
            yield cls(), [rng.normal(size=shape)]


def _check_defined(node: Node, m: Dim, n: Dim, du: Tensor, dvh: Tensor) -> None:
    """GradientError unless the factors with a gradient are known to have no free columns or rows.

    A factor of an M x N matrix has such where its side is the longer one.
    """
    free = [
        name
        for name, dy, side, k in [("U", du, m, _shorter(m, n)), ("Vh", dvh, n, _shorter(m, n))]
        if not is_zero(dy) and (k is None or side != k)
    ]
    if free:
        raise GradientError(
            f"{' and '.join(free)} of svd(x, full_matrices=True) have columns or rows that x does "
            f"not determine, so they have no gradient: {node.inputs[0].type!r}, built at "
            f"{node.where}. Use svd(x, full_matrices=False)."
        )


class SingularValues(Op):
    """The singular values of x, falling; dx = u @ diag(dy) @ vh, equal ones included."""

    stacks = True

    def infer(self, x: TensorType) -> Types:
        stack, m, n = _matrices("svdvals", x)
        return (tensor_type((*stack, _shorter(m, n)), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.svd(x, full_matrices=False, compute_uv=False)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        u, _, vh = build(Svd(False), node.inputs).outputs
        return (_times(u * expand_dims(dy, -2), vh),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """4 m n**2 - 4/3 n**3."""
        return dense(inputs[0], 4, -4 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (3, 2), (2, 3, 3)]:
            yield cls(), [rng.normal(size=shape)]


class Qr(Op):
    """q (..., M, K) with orthonormal columns, r (..., K, N) upper triangular, x = q @ r.

    The gradient is for M >= N and full rank: dx = (dq + q @ c) @ r.T**-1 with c the lower triangle
    of m = r @ dr.T - dq.T @ q, made symmetric [Walter and Lehmann 2018, "Algorithmic
    differentiation of linear algebra functions", sec. 4.2].
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        stack, m, n = _matrices("qr", x)
        k = _shorter(m, n)
        return tensor_type((*stack, m, k), x.dtype), tensor_type((*stack, k, n), x.dtype)

    def kernel(self, xp: Any, x: Any) -> Any:
        return tuple(xp.linalg.qr(x, mode="reduced"))

    def vjp(self, node: Node, dq: Tensor, dr: Tensor) -> Gradients:
        m, n = node.inputs[0].shape[-2:]
        if isinstance(m, int) and isinstance(n, int) and m < n:
            raise GradientError(
                f"qr has no gradient for matrices wider than high: {node.inputs[0].type!r}, built "
                f"at {node.where}"
            )
        q, r = node.outputs
        half = apply(LowerHalf(), _times(r, dr, b=True) - _times(dq, q, a=True))
        total = dq + _times(q, half + matrix_transpose(half))
        return (matrix_transpose(apply(Solve(False), r, matrix_transpose(total))),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """4 m n**2 - 4/3 n**3."""
        return dense(inputs[0], 4, -4 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (3, 2), (2, 3, 3)]:
            yield cls(), [rng.normal(size=shape)]


class PseudoInverse(Op):
    """y = the pseudo-inverse of x (..., M, N), which is (..., N, M).

    dx = -y.T @ dy @ y.T + (1 - x @ y) @ dy.T @ y @ y.T + y.T @ y @ dy.T @ (1 - y @ x), as long as
    the rank does not change [Golub and Pereyra 1973, eq. 4.12].
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        stack, m, n = _matrices("pinv", x)
        return (tensor_type((*stack, n, m), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.pinv(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        middle = _times(_times(y, dy, a=True), y, b=True)
        first = _times(_times(dy, y, a=True), y, b=True)
        second = _times(y, _times(y, dy, b=True), a=True)
        first = first - _times(x, _times(y, first))
        second = second - _times(_times(second, y), x)
        return (first + second - middle,)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """8 m n**2 + 20 n**3."""
        return dense(inputs[0], 8, 20)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (3, 2), (2, 3), (2, 3, 2)]:
            yield cls(), [rng.normal(size=shape)]


def eigh(x: TensorLike, /, UPLO: str = "L") -> tuple[Tensor, Tensor]:
    """Eigenvalues w and eigenvectors v of symmetric matrices: x @ v = v * w.

    Parameters:
        x: (..., N, N); floating, ints become float64.
        UPLO: which triangle is read, the lower ("L") or the upper one ("U").

    Returns: w (..., N), rising; v (..., N, N), in columns.

    Raises: ShapeError if the matrices are not square; DTypeError if x is complex or float16;
        ValueError for another UPLO.

    Gradient: v @ (diag(dw) + f * (v.T @ dv)) @ v.T made symmetric, f[i, j] = 1 / (w[j] - w[i]) for
        i != j [Giles 2008, "An extended collection of matrix derivative results", sec. 3.1]; beside
        the diagonal, twice that in the triangle that is read and 0 in the other.

    >>> w, v = gg.linalg.eigh([[2.0, 1.0], [1.0, 2.0]])
    >>> gg.evaluate(w).round(4)
    array([1., 3.])
    """
    if UPLO.upper() not in ("L", "U"):
        raise ValueError(f"UPLO is 'L' or 'U', got {UPLO!r}")
    values, vectors = build(Eigh(), (mirrored("eigh", x, UPLO.upper() == "L"),)).outputs
    return values, vectors


def eigvalsh(x: TensorLike, /, UPLO: str = "L") -> Tensor:
    """Eigenvalues of symmetric matrices, as by eigh.

    Parameters:
        x: (..., N, N); floating, ints become float64.
        UPLO: which triangle is read, the lower ("L") or the upper one ("U").

    Returns: (..., N), rising; dtype of x.

    Raises: ShapeError if the matrices are not square; DTypeError if x is complex or float16;
        ValueError for another UPLO.

    Gradient: v @ diag(dw) @ v.T with the eigenvectors v; beside the diagonal, twice that in the
        triangle that is read and 0 in the other.

    >>> gg.evaluate(gg.linalg.eigvalsh([[2.0, 1.0], [1.0, 2.0]])).round(4)
    array([1., 3.])
    """
    return eigh(x, UPLO)[0]


def svd(x: TensorLike, /, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Singular values and vectors of matrices: x = u @ diag(s) @ vh.

    Parameters:
        x: (..., M, N); floating, ints become float64.
        full_matrices: whether u and vh are completed to square matrices; the columns and rows that
            are added may be any.

    Returns: u (..., M, M), s (..., K) falling, vh (..., N, N), K = min(M, N); unless full_matrices,
        u (..., M, K) and vh (..., K, N).

    Raises: ShapeError if x has fewer than two axes; DTypeError if x is complex or float16;
        GradientError where completed u or vh gets a gradient.

    Gradient: as in the source, for singular values that differ and are not 0; of s alone u @
        diag(ds) @ vh, for any.

    Source: Townsend 2016, "Differentiating the singular value decomposition".

    >>> u, s, vh = gg.linalg.svd([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]], full_matrices=False)
    >>> u.shape, vh.shape, gg.evaluate(s)
    ((3, 2), (2, 2), array([4., 3.]))
    """
    (x,) = promoted(x, floating=True)
    full = bool(full_matrices) and not (x.ndim > 1 and _square(*x.shape[-2:]))
    u, s, vh = build(Svd(full), (x,)).outputs
    return u, s, vh


def svdvals(x: TensorLike, /) -> Tensor:
    """Singular values of matrices.

    Parameters: x: (..., M, N); floating, ints become float64.

    Returns: (..., min(M, N)), falling; dtype of x.

    Raises: ShapeError if x has fewer than two axes; DTypeError if x is complex or float16.

    Gradient: dx = u @ diag(dy) @ vh with the singular vectors u and vh [Townsend 2016,
        "Differentiating the singular value decomposition"]; equal singular values included.

    >>> gg.evaluate(gg.linalg.svdvals([[3.0, 0.0], [0.0, 4.0]]))
    array([4., 3.])
    """
    return apply(SingularValues(), *promoted(x, floating=True))


def qr(x: TensorLike, /, *, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Orthonormal columns q and upper triangular r with x = q @ r.

    Parameters:
        x: (..., M, N); floating, ints become float64.
        mode: "reduced" only.

    Returns: q (..., M, K), r (..., K, N), K = min(M, N).

    Raises: ShapeError if x has fewer than two axes, or for another mode; DTypeError if x is
        complex or float16; GradientError when differentiated for M < N.

    Gradient: for M >= N and full rank dx = (dq + q @ c) @ r.T**-1, c the lower triangle of
        r @ dr.T - dq.T @ q made symmetric [Walter and Lehmann 2018, "Algorithmic differentiation of
        linear algebra functions", sec. 4.2].

    >>> q, r = gg.linalg.qr([[3.0, 1.0], [4.0, 2.0]])
    >>> gg.evaluate(q @ r).round(4)
    array([[3., 1.],
           [4., 2.]])
    """
    if mode != "reduced":
        raise ShapeError(f"qr gives the reduced factors only, not mode={mode!r}")
    q, r = build(Qr(), promoted(x, floating=True)).outputs
    return q, r


def pinv(x: TensorLike, /) -> Tensor:
    """The pseudo-inverses of matrices.

    Parameters: x: (..., M, N); floating, ints become float64.

    Returns: y, (..., N, M), dtype of x.

    Raises: ShapeError if x has fewer than two axes; DTypeError if x is complex or float16.

    Gradient: dx = -y.T @ dy @ y.T + (1 - x @ y) @ dy.T @ y @ y.T + y.T @ y @ dy.T @ (1 - y @ x), as
        long as the rank does not change [Golub and Pereyra 1973, "The differentiation of
        pseudo-inverses and nonlinear least squares problems whose variables separate", eq. 4.12].

    >>> gg.evaluate(gg.linalg.pinv([[2.0, 0.0], [0.0, 0.0]])).round(4)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """
    return apply(PseudoInverse(), *promoted(x, floating=True))


def matrix_rank(x: TensorLike, /) -> Tensor:
    """How many singular values exceed max(M, N) * eps times the greatest.

    Parameters: x: (..., M, N) of known lengths; floating, ints become float64.

    Returns: int64, (...).

    Raises: ShapeError if x has fewer than two axes or unknown lengths; DTypeError if x is complex
        or float16.

    Gradient: none, the result is not floating.

    Source: numpy.linalg.matrix_rank.

    >>> gg.evaluate(gg.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]))
    array(1)
    """
    (x,) = promoted(x, floating=True)
    lengths = [d for d in x.shape[-2:] if isinstance(d, int)]
    if len(lengths) < 2:
        raise ShapeError(f"matrix_rank takes matrices of known lengths, got {x.type!r}")
    s = svdvals(x)
    least = max(s, -1, True) * float(np.finfo(x.dtype).eps * np.max(lengths))
    return sum(cast(greater(s, least), "int64"), -1)
