"""Derivatives of the modified Bessel functions times exponentials, without cancellation."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..base import Any, np
from .scipy_functions import need_scipy

__all__ = ["scaled_i", "scaled_k"]

FAR, REACH, TERMS = 25.0, 25.0, 100
"""From FAR on, the series in 1 / x have all digits where v**2 / (2 x) is at most REACH."""


def scaled_i(v: Any, x: Any, order: int) -> Any:
    """The derivative of an order of exp(-|x|) I_v(x), in float64.

    Each derivative is half the sum of the functions of the neighbouring orders less the function
    [DLMF 10.29.1]. Where x is large these are nearly equal; there it follows from those of exp(x)
    K_v(x) and of the product I_v(x) K_v(x), whose series do not cancel [DLMF 10.40.2, 10.40.6].
    That of an odd function is even, and the other way round.
    """
    v, x = np.broadcast_arrays(np.asarray(v, np.float64), np.asarray(x, np.float64))
    size = np.abs(x)
    y = _by_neighbours(_ive, v, size, order, lambda y, less, more: 0.5 * (less + more) - y)
    y = _steepest(_ive, v, size, order, y, lambda y, less, more: 0.5 * less)
    y = _far(_i_series, v, size, order, y, _is_far(v, size) & (size >= 2.0 * np.abs(v)))
    whole = v == np.rint(v)
    odd = np.where(whole, (v + order) % 2 == 1, False)
    y = np.where((x < 0) & odd, -y, np.where((x == 0) & odd, 0.0, y))
    return np.where((x < 0) & ~whole, np.nan, y)


def scaled_k(v: Any, x: Any, order: int) -> Any:
    """The derivative of an order of exp(x) K_v(x), in float64 [DLMF 10.29.1, 10.40.2]."""
    v, x = np.broadcast_arrays(np.asarray(v, np.float64), np.asarray(x, np.float64))
    y = _by_neighbours(_kve, v, x, order, lambda y, less, more: y - 0.5 * (less + more))
    y = _steepest(_kve, v, x, order, y, lambda y, less, more: -0.5 * (less + more))
    return _far(_k_series, v, x, order, y, _is_far(v, x))


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


def _is_far(v: Any, x: Any) -> Any:
    return (x >= FAR) & (2.0 * REACH * x >= v * v)


def _far(series: Any, v: Any, x: Any, order: int, y: Any, far: Any) -> Any:
    """y, but where x is far by a series of x**(order + 1/2) times it."""
    if not far.any():
        return y
    v, x, y = v[far], x[far], np.array(y)
    y[far] = series(v, x, order) * x ** -(order + 0.5)
    return y


def _k_series(v: Any, x: Any, order: int) -> Any:
    """Of exp(x) K_v(x): the sum over k of a_k(v) / x**(k + 1/2), each term differentiated."""
    term: Any = np.full(x.shape, math.sqrt(0.5 * math.pi) * _falling(-0.5, order))
    total = term
    for k in range(1, TERMS):
        grown = (k - 0.5 + order) / (k - 0.5)  # the derivatives of one more power
        ratio = grown * (4.0 * v * v - (2 * k - 1) ** 2) / (8.0 * k) / x
        term = np.where(k > 2.0 * x, 0.0, term * ratio)  # from there on it would grow
        total = total + term
    return total


def _i_series(v: Any, x: Any, order: int) -> Any:
    """Of exp(-x) I_v(x), whose product with exp(x) K_v(x) has these derivatives by Leibniz."""
    k = [_k_series(v, x, n) for n in range(order + 1)]
    i: list[Any] = []
    for n in range(order + 1):
        known = [math.comb(n, j) * i[j] * k[n - j] for j in range(n)]
        i.append((_product_series(v, x, n) - sum(known)) / k[0])
    return i[order]


def _product_series(v: Any, x: Any, order: int) -> Any:
    """x**(order + 1) times that of I_v(x) K_v(x), a series in 1 / x**2."""
    term: Any = np.full(x.shape, 0.5)
    total = term * _falling(-1.0, order)
    for k in range(1, TERMS // 2):
        ratio = (2 * k - 1) / (2.0 * k) * ((2 * k - 1) ** 2 - 4.0 * v * v) / (2.0 * x) / (2.0 * x)
        term = np.where(k > x, 0.0, term * ratio)
        total = total + term * _falling(-1.0 - 2 * k, order)
    return total


def _falling(power: float, order: int) -> float:
    """The factor of a derivative of a power."""
    return math.prod(power - j for j in range(order))
