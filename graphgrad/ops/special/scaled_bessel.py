"""Derivatives of the modified Bessel functions times exponentials, without cancellation."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..base import Any, np
from .scipy_functions import need_scipy

__all__ = ["scaled_i", "scaled_k"]

FAR = 25.0
"""From here on, and from v**2 / 2 on, the series in 1 / x has all digits."""
TERMS = 40


def scaled_i(v: Any, x: Any, order: int) -> Any:
    """The derivative of an order of exp(-|x|) I_v(x), in float64.

    Each derivative is half the sum of the functions of the neighbouring orders less the function
    [DLMF 10.29.1]. Where x is large these are nearly equal; there it is that of each term of the
    series [DLMF 10.40.1]. That of an odd function is even, and the other way round.
    """
    v, x = np.broadcast_arrays(np.asarray(v, np.float64), np.asarray(x, np.float64))
    size = np.abs(x)
    y = _by_neighbours(_ive, v, size, order, lambda y, less, more: 0.5 * (less + more) - y)
    y = _steepest(_ive, v, size, order, y, lambda y, less, more: 0.5 * less)
    y = _with_series(v, size, order, y, -1.0, 1.0 / math.sqrt(2.0 * math.pi))
    whole = v == np.rint(v)
    odd = np.where(whole, (v + order) % 2 == 1, False)
    y = np.where((x < 0) & odd, -y, np.where((x == 0) & odd, 0.0, y))
    return np.where((x < 0) & ~whole, np.nan, y)


def scaled_k(v: Any, x: Any, order: int) -> Any:
    """The derivative of an order of exp(x) K_v(x), in float64 [DLMF 10.29.1, 10.40.2]."""
    v, x = np.broadcast_arrays(np.asarray(v, np.float64), np.asarray(x, np.float64))
    y = _by_neighbours(_kve, v, x, order, lambda y, less, more: y - 0.5 * (less + more))
    y = _steepest(_kve, v, x, order, y, lambda y, less, more: -0.5 * (less + more))
    return _with_series(v, x, order, y, 1.0, math.sqrt(0.5 * math.pi))


def _ive(v: Any, x: Any) -> Any:
    scipy = need_scipy("ive")
    y = np.where(v == 0, scipy.i0e(x), np.where(np.abs(v) == 1, scipy.i1e(x), scipy.ive(v, x)))
    lost = np.isnan(y) & (x < 1e-9)  # of negative orders, SciPy's: the first term [DLMF 10.25.2]
    return np.where(lost, (0.5 * x) ** v * scipy.rgamma(v + 1.0), y) if lost.any() else y


def _kve(v: Any, x: Any) -> Any:
    scipy = need_scipy("kve")
    return np.where(v == 0, scipy.k0e(x), np.where(np.abs(v) == 1, scipy.k1e(x), scipy.kve(v, x)))


def _by_neighbours(function: Any, v: Any, x: Any, order: int, step: Callable[..., Any]) -> Any:
    """The derivative, made of the functions of the orders v - order ... v + order."""
    row = [function(v + float(k), x) for k in range(-order, order + 1)]
    while len(row) > 1:
        row = [step(y, a, b) for a, y, b in zip(row, row[1:], row[2:], strict=False)]
    return row[0]


def _steepest(function: Any, v: Any, x: Any, order: int, y: Any, step: Callable[..., Any]) -> Any:
    """y, but where it is a difference of infinities, near 0, the steepest of its terms."""
    lost = np.isnan(y) & ~np.isnan(x)
    return np.where(lost, _by_neighbours(function, v, x, order, step), y) if lost.any() else y


def _with_series(v: Any, x: Any, order: int, y: Any, sign: float, factor: float) -> Any:
    """y, but where x is large the derivative of factor * (the sum over k of sign**k * a_k(v) /
    x**(k + 1/2))."""
    far = (x >= FAR) & (x >= 0.5 * v * v) & np.isfinite(x)
    if not far.any():
        return y
    v, x = v[far], x[far]
    term: Any = np.full(x.shape, factor * (-1.0) ** order)
    for j in range(order):
        term = term * ((j + 0.5) / x)
    total = term
    for k in range(1, TERMS):
        grown = (k - 0.5 + order) / (k - 0.5)  # the derivatives of one more power
        term = term * (sign * grown * (4.0 * v * v - (2 * k - 1) ** 2) / (8.0 * k)) / x
        total = total + term
    y = np.array(y)
    y[far] = total / np.sqrt(x)
    return y
