"""Functions of linear algebra: `tf.linalg`."""

from __future__ import annotations

from typing import Any

from ..create import apply, convert_to_tensor, name_scope
from ..graph import Tensor
from . import math as M
from .array import (
    diag,
    diag_part,
    eye,
    matrix_band_part,
    matrix_diag_part,
    matrix_set_diag,
    matrix_transpose,
    trace,
)
from .math import cross, einsum, matmul, tensordot
from .nn import norm

__all__ = [
    "band_part", "cholesky", "cholesky_solve", "cross", "det", "diag", "diag_part", "eigh",
    "eigvalsh", "einsum", "expm", "eye", "inv", "logdet", "matmul", "matrix_determinant",
    "matrix_inverse", "matrix_solve", "matrix_transpose", "matrix_triangular_solve", "norm", "qr",
    "self_adjoint_eig", "self_adjoint_eigvals", "set_diag", "slogdet", "solve", "svd",
    "tensor_diag", "tensor_diag_part", "tensordot", "trace", "triangular_solve",
]  # fmt: skip
Name = str | None


def matrix_inverse(input: Any, adjoint: bool = False, name: Name = None) -> Tensor:
    """The inverses of matrices."""
    return apply("MatrixInverse", input, name=name, adjoint=bool(adjoint))


def matrix_determinant(input: Any, name: Name = None) -> Tensor:
    """The determinants of matrices."""
    return apply("MatrixDeterminant", input, name=name)


def slogdet(input: Any, name: Name = None) -> Any:
    """Signs, and logarithms of absolute values, of determinants."""
    return tuple(apply("LogMatrixDeterminant", input, name=name))


def logdet(matrix: Any, name: Name = None) -> Tensor:
    """log det of positive definite matrices."""
    with name_scope(name, "logdet", [matrix]):
        factor = cholesky(matrix)
        return 2.0 * M.reduce_sum(M.log(matrix_diag_part(factor)), [-1])


def cholesky(input: Any, name: Name = None) -> Tensor:
    """The lower factors of positive definite matrices."""
    return apply("Cholesky", input, name=name)


def cholesky_solve(chol: Any, rhs: Any, name: Name = None) -> Tensor:
    """x of a x = rhs, with a given by its lower factor."""
    with name_scope(name, "cholesky_solve", [chol, rhs]):
        y = matrix_triangular_solve(chol, rhs)
        return matrix_triangular_solve(chol, y, adjoint=True)


def matrix_solve(matrix: Any, rhs: Any, adjoint: bool = False, name: Name = None) -> Tensor:
    """x of a x = rhs."""
    return apply("MatrixSolve", matrix, rhs, name=name, adjoint=bool(adjoint))


def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: Name = None
) -> Tensor:
    """x of a x = rhs, for triangular a."""
    return apply("MatrixTriangularSolve", matrix, rhs, name=name, lower=bool(lower),
                         adjoint=bool(adjoint))  # fmt: skip


def self_adjoint_eig(tensor: Any, name: Name = None) -> Any:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return tuple(apply("SelfAdjointEigV2", tensor, name=name, compute_v=True))


def self_adjoint_eigvals(tensor: Any, name: Name = None) -> Tensor:
    """Eigenvalues of symmetric matrices."""
    return apply("SelfAdjointEigV2", tensor, name=name, compute_v=False)[0]


def svd(
    tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: Name = None
) -> Any:
    """s, u and v of a = u diag(s) v^T; s alone without compute_uv."""
    s, u, v = apply("Svd", tensor, name=name, compute_uv=bool(compute_uv),
                    full_matrices=bool(full_matrices))  # fmt: skip
    return (s, u, v) if compute_uv else s


def qr(input: Any, full_matrices: bool = False, name: Name = None) -> Any:
    """q and r of a = q r."""
    return tuple(apply("Qr", input, name=name, full_matrices=bool(full_matrices)))


def expm(input: Any, name: Name = None) -> Tensor:
    """The exponentials of matrices."""
    return apply("MatrixExponential", convert_to_tensor(input), name=name)


det, inv = matrix_determinant, matrix_inverse
eigh, eigvalsh = self_adjoint_eig, self_adjoint_eigvals
solve, triangular_solve, set_diag = matrix_solve, matrix_triangular_solve, matrix_set_diag
band_part, tensor_diag, tensor_diag_part = matrix_band_part, diag, diag_part
