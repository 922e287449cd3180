"""Linear algebra with the names of np.linalg and the array API: the contents of gg.linalg.

diagonal and trace take the last two axes here, unlike NumPy's functions outside np.linalg, and
outer takes vectors.
"""

from __future__ import annotations

from ...base.errors import ShapeError
from ..base import Any, Tensor, TensorLike, promoted
from ..contract import products as _products
from ..contract import vectors as _vectors
from ..contract.einsum import einsum
from ..contract.products import dot, inner, matmul, multi_dot, tensordot, vecdot
from ..create import diagonal as _diagonal
from ..documented import documented
from ..shape.reshaping import matrix_transpose
from .determinants import det, slogdet
from .eigenvalues import eig, eigh, eigvals, eigvalsh
from .exponentials import expm
from .inverses import inv, matrix_power, solve, tensorinv, tensorsolve
from .least_squares import lstsq, matrix_rank, pinv
from .lu_factors import lu, lu_factor, lu_solve
from .norms import cond, matrix_norm, norm, vector_norm
from .orthogonal import qr
from .positive_definite import cho_factor, cho_solve, cholesky
from .results import EighResult, EigResult, QRResult, SlogdetResult, SVDResult
from .singular_values import svd, svdvals
from .triangular import solve_triangular

__all__ = [
    "EigResult",
    "EighResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "dot",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "einsum",
    "expm",
    "inner",
    "inv",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]


def cross(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> Tensor:
    """The vector product of vectors with three elements.

    Parameters:
        x1, x2: of length 3 along the axis; dtypes are promoted, the other axes broadcast.
        axis: that of the vectors, in all three.

    Returns: a tensor of the broadcast shape.

    Raises: ShapeError where a vector is not known to have three elements, or shapes do not
    broadcast.

    Gradient: dx1 = cross(x2, dy), dx2 = cross(dy, x1).

    Source: the array API standard, linalg.cross.

    >>> gg.evaluate(gg.linalg.cross([1, 0, 0], [0, 1, 0]))
    array([0, 0, 1])
    """
    return _vectors.cross(x1, x2, axis=axis)


@documented(_diagonal.Diagonal)
def diagonal(x: TensorLike, /, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Tensor:
    """The elements (i, i + offset) of matrices, as the last axis of the result.

    Parameters:
        x: (..., M, N); any dtype.
        offset: the offset from the main diagonal; above it for > 0.
        axis1, axis2: the axes of the matrices.

    Returns: (..., K), dtype of x.

    Raises: ShapeError if x has no such axes, or they are one.

    Source: the array API standard, linalg.diagonal; gg.diagonal takes the first two axes, as NumPy.

    >>> gg.evaluate(gg.linalg.diagonal([[1, 2], [3, 4]]))
    array([1, 4])
    """
    return _diagonal.diagonal(x, offset, axis1, axis2)


def trace(
    x: TensorLike,
    /,
    offset: int = 0,
    axis1: int = -2,
    axis2: int = -1,
    *,
    dtype: Any = None,
) -> Tensor:
    """The sum of the diagonal of matrices.

    Parameters:
        x: (..., M, N); any dtype; small ints and bools are summed as 64 bits.
        offset: the offset from the main diagonal; above it for > 0.
        axis1, axis2: the axes of the matrices.
        dtype: the dtype of the accumulation, in place of that.

    Returns: (...), x without the two axes.

    Raises: ShapeError if x has no such axes, or they are one.

    Gradient: dx = dy on the diagonal, 0 beside it.

    Source: the array API standard, linalg.trace; gg.trace takes the first two axes, as NumPy.

    >>> gg.evaluate(gg.linalg.trace([[1, 2], [3, 4]]))
    array(5)
    """
    return _diagonal.trace(x, offset, axis1, axis2, dtype)


def outer(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """Outer product of two vectors: z[i, j] = x1[i] * x2[j].

    Parameters: x1, x2: (M,) and (N,); dtypes promoted as NumPy 2 does.

    Returns: z, (M, N).

    Raises: ShapeError for input that is not a vector.

    Gradient: dx1 = dz @ x2, dx2 = x1 @ dz.

    Source: the array API standard, linalg.outer; gg.outer flattens what is not a vector, as NumPy.

    >>> gg.evaluate(gg.linalg.outer([1, 2], [3, 4]))
    array([[3, 4],
           [6, 8]])
    """
    x, y = promoted(x1, x2)
    if x.ndim != 1 or y.ndim != 1:
        raise ShapeError(f"linalg.outer takes two vectors, got {x.type!r} and {y.type!r}")
    return _products.outer(x, y)
