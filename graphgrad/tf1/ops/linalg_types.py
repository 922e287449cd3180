"""Op types of linear algebra."""

from __future__ import annotations

from typing import Any

import graphgrad as gg

from ..definition import define
from .math_types import same

__all__: list[str] = []


@define("MatrixInverse", "input", infer=same)
def _inverse(trace: Any, op: Any, x: Any) -> Any:
    x = gg.matrix_transpose(x) if op.attrs.get("adjoint") else x
    return gg.linalg.inv(x)


@define("MatrixDeterminant", "input")
def _determinant(trace: Any, op: Any, x: Any) -> Any:
    return gg.linalg.det(x)


@define("LogMatrixDeterminant", "input", types=lambda i, a: [i[0].dtype.base_dtype] * 2)
def _log_determinant(trace: Any, op: Any, x: Any) -> Any:
    return list(gg.linalg.slogdet(x))


@define("Cholesky", "input", infer=same)
def _cholesky(trace: Any, op: Any, x: Any) -> Any:
    return gg.linalg.cholesky(x)


@define("SelfAdjointEigV2", "input", types=lambda i, a: [i[0].dtype.base_dtype] * 2)
def _eigen(trace: Any, op: Any, x: Any) -> Any:
    return list(gg.linalg.eigh(x))


@define("Svd", "input", types=lambda i, a: [i[0].dtype.base_dtype] * 3)
def _svd(trace: Any, op: Any, x: Any) -> Any:
    if not op.attrs["compute_uv"]:
        s = gg.linalg.svdvals(x)
        return [s, gg.zeros((0,), x.dtype), gg.zeros((0,), x.dtype)]
    u, s, vh = gg.linalg.svd(x, full_matrices=op.attrs["full_matrices"])
    return [s, u, gg.matrix_transpose(vh)]


@define("Qr", "input", types=lambda i, a: [i[0].dtype.base_dtype] * 2)
def _qr(trace: Any, op: Any, x: Any) -> Any:
    mode = "complete" if op.attrs.get("full_matrices") else "reduced"
    return list(gg.linalg.qr(x, mode=mode))


@define("MatrixSolve", "matrix rhs")
def _solve(trace: Any, op: Any, a: Any, b: Any) -> Any:
    return gg.linalg.solve(gg.matrix_transpose(a) if op.attrs["adjoint"] else a, b)


@define("MatrixTriangularSolve", "matrix rhs")
def _triangular(trace: Any, op: Any, a: Any, b: Any) -> Any:
    trans = 1 if op.attrs["adjoint"] else 0
    return gg.linalg.solve_triangular(a, b, lower=op.attrs["lower"], trans=trans)


@define("MatrixExponential", "input", infer=same)
def _exponential(trace: Any, op: Any, x: Any) -> Any:
    return gg.linalg.expm(x)
