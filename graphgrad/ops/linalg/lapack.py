"""LAPACK and BLAS through SciPy, for (stacks of) matrices; NumPy's own where there is no SciPy.

The routines take matrices by columns, so they are given transposes: views of arrays by rows.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from ...base.errors import GraphGradError
from ...base.kinds import kind_of
from ...base.lazy import lazy_module

_blas: Any = lazy_module("scipy.linalg.blas")
_lapack: Any = lazy_module("scipy.linalg.lapack")
scipy: Any = lazy_module("scipy.linalg")
"""SciPy's linear algebra, None where it is not installed."""


def needed(what: str) -> Any:
    """SciPy's linear algebra; GraphGradError where it is not installed."""
    if scipy is None:
        raise GraphGradError(f"{what} needs SciPy: pip install 'graphgrad[scipy]'")
    return scipy


LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


@cache
def _routine(name: str, dtype: np.dtype[Any]) -> Any:
    library = _blas if name in ("trsm", "trsv") else _lapack
    return getattr(library, LETTERS[dtype.name] + name)


# --- triangular systems --------------------------------------------------------------------------


def solve_triangular(x: Any, y: Any, lower: bool, transpose: bool, unit: bool) -> Any:
    """z with x @ z = y, or x.T @ z = y, of which one triangle of x is read; stacks broadcast."""
    if not unit and (np.diagonal(x, axis1=-2, axis2=-1) == 0).any():
        raise np.linalg.LinAlgError("Singular matrix")
    return _solved(x, y, lower, transpose, unit)


def _solved(x: Any, y: Any, lower: bool, transpose: bool, unit: bool) -> Any:
    """The same where there is no 0 on the diagonal."""
    if _blas is None or x.size == 0 or y.size == 0:
        return _by_numpy(x, y, lower, transpose, unit)
    solve = _of_vector if y.shape[-1] == 1 else _of_matrix
    if x.ndim == y.ndim == 2:
        z = np.array(y, order="C")
        solve(x, z, lower, transpose, unit)
        return z
    stack = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    z = np.empty((*stack, *y.shape[-2:]), y.dtype)
    z[...] = y
    x = np.broadcast_to(x, (*stack, *x.shape[-2:]))
    for at in np.ndindex(stack):
        solve(x[at], z[at], lower, transpose, unit)
    return z


def _of_matrix(x: Any, z: Any, lower: bool, transpose: bool, unit: bool) -> None:
    """z by rows becomes x**-1 @ z, or x.T**-1 @ z: z.T @ x.T**-1 by columns."""
    _routine("trsm", x.dtype)(1.0, x.T, z.T, 1, not lower, transpose, unit, 1)


def _of_vector(x: Any, z: Any, lower: bool, transpose: bool, unit: bool) -> None:
    """The same of one column."""
    trsv = _routine("trsv", x.dtype)
    z[:, 0] = trsv(x.T, z[:, 0], lower=not lower, trans=not transpose, diag=unit, overwrite_x=1)


def _by_numpy(x: Any, y: Any, lower: bool, transpose: bool, unit: bool) -> Any:
    """The same by a solver for any matrix."""
    x = np.tril(x) if lower else np.triu(x)
    if unit:
        one = np.eye(x.shape[-1], dtype=x.dtype)
        x = x * (1 - one) + one
    return np.linalg.solve(x.mT if transpose else x, y)


# --- Cholesky factors ----------------------------------------------------------------------------

PANEL = 64  # columns
ALONE = 64  # rows from which on a matrix of a stack is worth a call


def cholesky(x: Any) -> Any:
    """The lower triangular y with y @ y.H = x; only the lower triangle is read.

    By columns x.T is u.H @ u, with the upper triangle u = y.T.
    """
    if _lapack is None or x.size == 0 or (x.ndim > 2 and x.shape[-1] < ALONE):
        return np.linalg.cholesky(x)
    potrf, y = _routine("potrf", x.dtype), np.empty_like(x, order="C")
    for at in np.ndindex(x.shape[:-2]):
        u, info = potrf(x[at].T, 0, 1)
        if info > 0:
            raise np.linalg.LinAlgError("Matrix is not positive definite")
        y[at] = u.T
    return y


def cholesky_backward(y: Any, dy: Any) -> Any:
    """The gradient of the lower triangle that y is the Cholesky factor of, panel by panel.

    With the blocks of y around the panel, r to the left, d on the diagonal, b and c below r and d:
    dc becomes dc @ d**-1, db loses dc @ r, dd loses dc.H @ c, and so on from the last panel to the
    first [Murray 2016, "Differentiation of the Cholesky decomposition", sec. 4.2]. A third of the
    products of the formula for whole matrices.
    """
    dx = np.array(dy, order="C")
    for end in range(y.shape[-1], 0, -PANEL):
        _panel_backward(y, dx, max(end - PANEL, 0), end)
    return dx


def _panel_backward(y: Any, dx: Any, start: int, end: int) -> None:
    """What one panel of columns leaves for those before it, into dx."""
    left, own, below = slice(start), slice(start, end), slice(end, None)
    d, r = _lower(y[..., own, own]), y[..., own, left]
    dd = dx[..., own, own]
    if end < y.shape[-1]:
        b, c = y[..., below, left], y[..., below, own]
        dc = _right(d, dx[..., below, own])
        dx[..., below, own] = dc
        dx[..., below, left] -= dc @ r
        dd -= _adjoint(dc) @ c
        dx[..., own, left] -= _adjoint(dc) @ b
    both = _symmetric(d, dd)
    dd[...] = halved(both)
    dx[..., own, below] = 0
    dx[..., own, left] -= both @ r


def _symmetric(d: Any, dd: Any) -> Any:
    """w + w.H with w = d.H**-1 @ p @ d**-1, p the lower half of d.H @ dd."""
    half = halved(_adjoint(d) @ dd)
    w = _right(d, _solved(_conj(d), half, True, True, False))
    return w + _adjoint(w)


def _right(d: Any, x: Any) -> Any:
    """x @ d**-1 with a lower triangle d."""
    return _solved(d, x.mT, True, True, False).mT


def _conj(x: Any) -> Any:
    return x.conj() if kind_of(x.dtype) == "c" else x


def _adjoint(x: Any) -> Any:
    return _conj(x.mT)


def halved(x: Any) -> Any:
    """The lower triangle with half the diagonal."""
    y = _lower(x)
    diagonal = np.einsum("...ii->...i", y)
    diagonal *= 0.5
    return y


def _lower(x: Any) -> Any:
    """np.tril, of which the mask is made once for every length of a panel."""
    if x.shape[-1] > PANEL:
        return np.tril(x)
    return np.where(_mask(x.shape[-1]), x, x.dtype.type(0))


@lru_cache(maxsize=PANEL)
def _mask(n: int) -> Any:
    return np.tri(n, dtype=bool)


# --- factors with pivots -------------------------------------------------------------------------


def lu(x: Any) -> tuple[Any, Any]:
    """Both triangular factors in one matrix, and which row was exchanged with the i-th one."""
    factors = np.array(x, order="C")
    *stack, m, n = x.shape
    pivots = np.zeros((*stack, min(m, n)), np.int32)
    for at in np.ndindex(*stack):
        if factors[at].size:
            factors[at], pivots[at] = _lu(factors[at])
    return factors, pivots


def _lu(x: Any) -> tuple[Any, Any]:
    if _lapack is None:
        return _lu_by_numpy(x)
    factors, pivots, _ = _routine("getrf", x.dtype)(x)
    return factors, pivots


def _lu_by_numpy(x: Any) -> tuple[Any, Any]:
    """Column by column [Golub and Van Loan 2013, algorithm 3.4.1]."""
    x = x.copy()
    pivots = np.arange(min(x.shape), dtype=np.int32)
    for k in range(len(pivots)):
        at = pivots[k] = k + np.argmax(abs(x[k:, k]))
        x[[k, at]] = x[[at, k]]
        if x[k, k] != 0:
            x[k + 1 :, k] /= x[k, k]
        x[k + 1 :, k + 1 :] -= x[k + 1 :, k, None] * x[k, k + 1 :]
    return x, pivots


def permutation(pivots: Any, like: Any) -> Any:
    """Where the rows come from that exchanges of the i-th row with pivots[i] make, for like's rows.

    like: (..., M, anything)
    """
    rows = like.shape[-2]
    stack = np.broadcast_shapes(pivots.shape[:-1])
    orders = np.empty((*stack, rows), np.int64)
    orders[...] = np.arange(rows)
    for at in np.ndindex(*stack):
        order = orders[at]
        for i, j in enumerate(pivots[at]):
            order[i], order[j] = order[j], order[i]
    return orders
