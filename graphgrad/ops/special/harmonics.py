"""Spherical harmonics."""

from __future__ import annotations

import math

from ...base.errors import DTypeError
from ..base import Tensor, TensorLike, is_floating, promoted, whole
from ..elementwise.arithmetic import multiply
from ..elementwise.trigonometry import cos, sin

__all__ = [
    "sph_harm_y",
]


def _legendre(n: int, m: int, theta: Tensor) -> Tensor:
    """The normalised Legendre function, m >= 0: the degrees from m to n, one after the other."""
    if m > n:
        return multiply(theta, 0.0)
    x = cos(theta)
    one = math.sqrt(1 / (4 * math.pi))
    for k in range(1, m + 1):
        one *= -math.sqrt((2 * k + 1) / (2 * k))
    before, last = multiply(x, 0.0), one * sin(theta) ** m if m else one + 0.0 * x
    for k in range(m + 1, n + 1):
        a = math.sqrt((2 * k + 1) * (2 * k - 1) / ((k - m) * (k + m)))
        b = 0.0
        if k > m + 1:
            b = (2 * k + 1) * (k + m - 1) * (k - m - 1) / ((k - m) * (k + m) * (2 * k - 3))
        before, last = last, a * x * last - math.sqrt(b) * before
    return last


def sph_harm_y(n: int, m: int, theta: TensorLike, phi: TensorLike, /) -> Tensor:
    """The spherical harmonic of degree n and order m, with the Condon-Shortley phase.

    It is the Legendre function of cos(theta), of which the integral of the square over the sphere
    is 1, times exp(i m phi).

    Parameters:
        n, m: known integers, n >= 0; of |m| > n it is 0.
        theta: the angle from the pole; floating, ints and bools become float64.
        phi: the angle around it; the shapes broadcast.

    Returns: complex, the broadcast shape.

    Raises: ValueError for n < 0; ShapeError if the shapes do not broadcast; DTypeError for complex
        angles.

    Gradient: that of the sums and products of its recurrence, for theta and phi.

    Source: scipy.special.sph_harm_y; the recurrence is that of Holmes and Featherstone 2002, "A
        unified approach to the Clenshaw summation", eq. 11.

    >>> gg.evaluate(gg.special.sph_harm_y(1, 0, [0.0], 0.0)).round(4)
    array([0.4886+0.j])
    """
    if whole("n", n) < 0:
        raise ValueError(f"degrees of spherical harmonics count from 0, got {n}")
    theta, phi = promoted(theta, phi, floating=True)
    if not is_floating(theta.dtype):
        raise DTypeError(f"sph_harm_y takes real angles, got {theta.type!r}")
    turn = multiply(phi, float(whole("m", m)))
    size = _legendre(n, abs(m), theta)
    if m < 0 and m % 2:
        size = -size
    return size * cos(turn) + 1j * (size * sin(turn))
