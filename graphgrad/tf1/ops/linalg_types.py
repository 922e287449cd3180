"""Op types of linear algebra."""

from __future__ import annotations

from typing import Any

import graphgrad as gg

from ..definition import define
from .elementwise import same

__all__: list[str] = []


@define("MatrixInverse", "input", infer=same)
def _inverse(trace: Any, op: Any, x: Any) -> Any:
    x = gg.matrix_transpose(x) if op.attrs.get("adjoint") else x
    return gg.linalg.inv(x)


define("MatrixDeterminant", "input", native=gg.linalg.det)
define("LogMatrixDeterminant", "input", native=gg.linalg.slogdet, like=(0, 0))
define("Cholesky", "input", native=gg.linalg.cholesky, infer=same)
define("SelfAdjointEigV2", "input", native=gg.linalg.eigh, like=(0, 0))
define("MatrixExponential", "input", native=gg.linalg.expm, infer=same)


@define("Svd", "input", like=(0, 0, 0))
def _svd(trace: Any, op: Any, x: Any) -> Any:
    if not op.attrs["compute_uv"]:
        s = gg.linalg.svdvals(x)
        return [s, gg.zeros((0,), x.dtype), gg.zeros((0,), x.dtype)]
    u, s, vh = gg.linalg.svd(x, full_matrices=op.attrs["full_matrices"])
    return [s, u, gg.matrix_transpose(vh)]


@define("Qr", "input", like=(0, 0))
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
