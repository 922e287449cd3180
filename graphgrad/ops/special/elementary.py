"""Special functions made of elementary ones, in float64: for where there is no SciPy.

Relative errors are about 1e-14, where the function is not near a zero of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .quantile import quantile

__all__ = [
    "dawson",
    "digamma",
    "erfc",
    "erfcx",
    "exponential_integral",
    "gamma_sign",
    "hurwitz",
    "log_gamma",
    "log_ndtr",
    "normal_point",
    "polygamma_difference",
    "principal_value",
    "spence",
]

BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
"""B2, B4, B6, ..."""
SHIFT = 10
"""From here on series in 1 / x have all digits; what is less is moved by as many steps."""

_ERFC = (
    *(-1.3026537197817094, 6.4196979235649026e-1, 1.9476473204185836e-2, -9.561514786808631e-3),
    *(-9.46595344482036e-4, 3.66839497852761e-4, 4.2523324806907e-5, -2.0278578112534e-5),
    *(-1.624290004647e-6, 1.303655835580e-6, 1.5626441722e-8, -8.5238095915e-8, 6.529054439e-9),
    *(5.059343495e-9, -9.91364156e-10, -2.27365122e-10, 9.6467911e-11, 2.394038e-12),
    *(-6.886027e-12, 8.94487e-13, 3.13092e-13, -1.12708e-13, 3.81e-16, 7.106e-15, -1.523e-15),
    *(-9.4e-17, 1.21e-16, -2.8e-17),
)


def _chebyshev(coefficients: Sequence[float], x: Any) -> Any:
    """The sum of c[k] T_k(x), less half of c[0] [Clenshaw 1955]."""
    above = here = 0.0
    for c in coefficients[:0:-1]:
        above, here = here, 2.0 * x * here - above + c
    return x * here - above + 0.5 * coefficients[0]


def erfcx(xp: Any, x: Any) -> Any:
    """exp(x**2) erfc(x), of float32 too [Press et al. 2007, "Numerical Recipes", sec. 6.2.2]."""
    t = 2.0 / (2.0 + xp.abs(x))
    terms = _ERFC if x.dtype.itemsize > 4 else _ERFC[:14]
    y = t * xp.exp(_chebyshev(terms, 2.0 * t - 1.0))
    return xp.where(x < 0, 2.0 * xp.exp(x * x) - y, y)


def erfc(xp: Any, x: Any, bell: Callable[..., Any]) -> Any:
    """1 - erf(x), of float32 too; bell(xp, x) is exp(-x**2)."""
    size = xp.abs(x)
    y = bell(xp, size) * erfcx(xp, size)
    return xp.where(x < 0, 2.0 - y, y)


def log_ndtr(xp: Any, x: Any) -> Any:
    """log P(normal < x)."""
    z = x * -math.sqrt(0.5)
    left, right = xp.where(x < 0, z, 1.0), xp.where(x < 0, -1.0, z)
    below = xp.log(0.5 * erfcx(xp, left)) - left * left
    return xp.where(x < 0, below, xp.log1p(-0.5 * xp.exp(-right * right) * erfcx(xp, -right)))


def normal_point(xp: Any, q: Any, tail: Any) -> Any:
    """z with P(normal < z) = 1/2 + q; tail = 1/2 - |q|, infinite where that is 0."""
    inside = tail > 0
    z = quantile(xp, q, xp.where(inside, tail, 0.25))
    return xp.where(inside, z, xp.where(tail == 0, xp.copysign(math.inf, q), math.nan))


# --- gamma functions ---------------------------------------------------------------------------


def log_gamma(xp: Any, x: Any) -> Any:
    """log |gamma(x)|: Stirling's series, behind SHIFT steps; of x < 0.5 by reflection
    [DLMF 5.5.3, 5.11.1]."""
    low = x < 0.5
    z = xp.where(low, 1.0 - x, x)
    near = z < SHIFT
    far = xp.where(near, z + SHIFT, z)
    safe = xp.where(near, z, 1.0)
    product = safe
    for k in range(1, SHIFT):
        product = product * (safe + float(k))
    y = (far - 0.5) * (xp.log(far) - 1.0) + (0.5 * math.log(2 * math.pi) - 0.5)
    y = y + _series(far, lambda n: 2 * n * (2 * n - 1))
    y = xp.where(near, y - xp.log(product), y)
    sine = xp.abs(xp.sin(math.pi * (x - xp.rint(x))))
    return xp.where(low, math.log(math.pi) - xp.log(sine) - y, y)


def gamma_sign(xp: Any, x: Any) -> Any:
    """The sign of gamma(x): of odd numbers of steps below 0 minus, NaN at its poles."""
    whole = xp.floor(x)
    odd = whole - 2.0 * xp.floor(0.5 * whole)
    pole = (x < 0) & (x == whole)
    below = xp.where(pole, math.nan, 1.0 - 2.0 * odd)
    return xp.where(x > 0, 1.0, xp.where(x == 0, xp.copysign(1.0, x), below))


def digamma(xp: Any, x: Any) -> Any:
    """The derivative of log_gamma [DLMF 5.5.2, 5.5.4, 5.11.2]."""
    low = x < 0.5
    z = xp.where(low, 1.0 - x, x)
    near = z < SHIFT
    far = xp.where(near, z + SHIFT, z)
    y = xp.log(far) - 0.5 / far - _series(far, lambda n: 2 * n) / far
    safe = xp.where(near, z, 1.0)
    steps = 1.0 / safe
    for k in range(1, SHIFT):
        steps = steps + 1.0 / (safe + k)
    y = xp.where(near, y - steps, y)
    angle = math.pi * (x - xp.rint(x))
    slope = math.pi * xp.cos(angle) / xp.where(angle == 0, math.nan, xp.sin(angle))
    return xp.where(low, y - slope, y)


def polygamma_difference(xp: Any, n: int, x: Any, step: Any) -> Any:
    """psi_n(x + step) - psi_n(x) for x > 0 and x + step > 0, exact where both are nearly equal.

    The difference of every term of the series [DLMF 5.15.1, 5.15.8] is x**-p expm1(-p log1p(step /
    x)), and that of the logarithm log1p(step / x).
    """

    def of_power(x: Any, p: int) -> Any:
        return x**-p * xp.expm1(-p * xp.log1p(step / x))

    sign = (-1.0) ** (n + 1)
    far = x + float(SHIFT)
    y = sign * math.factorial(n - 1) * of_power(far, n) if n else xp.log1p(step / far)
    y = y + sign * 0.5 * math.factorial(n) * of_power(far, n + 1)
    for k, b in enumerate(BERNOULLI, 1):
        factor = sign * b * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        y = y + factor * of_power(far, 2 * k + n)
    for k in range(SHIFT):
        y = y + sign * math.factorial(n) * of_power(x + float(k), n + 1)
    return y


def _series(x: Any, divisor: Callable[[int], int]) -> Any:
    """The sum over n of B(2 n) / divisor(n) / x**(2 n - 1), n from 1 on."""
    inverse, total = 1.0 / (x * x), 0.0
    for n in range(len(BERNOULLI), 0, -1):
        total = total * inverse + BERNOULLI[n - 1] / divisor(n)
    return total / x


def hurwitz(xp: Any, s: float, q: Any) -> Any:
    """The sum of (q + k)**-s over k >= 0, for q > 0 [DLMF 25.11.43, Euler and Maclaurin]."""
    total = 0.0
    for k in range(SHIFT):
        total = total + (q + float(k)) ** -s
    far = q + float(SHIFT)
    power = far**-s
    total = total + far * power / (s - 1.0) + 0.5 * power
    factor, inverse = s, 1.0 / (far * far)
    power = power / far
    for n, b in enumerate(BERNOULLI, 1):
        total = total + b / math.factorial(2 * n) * factor * power
        factor = factor * (s + 2 * n - 1) * (s + 2 * n)
        power = power * inverse
    return xp.where(q > 0, total, math.nan)


# --- integrals ---------------------------------------------------------------------------------


def exponential_integral(xp: Any, n: int, x: Any) -> Any:
    """The integral of exp(-x t) / t**n from 1 on, n > 0: a series up to 1, then a continued
    fraction [DLMF 8.19.8, 8.19.17]."""
    near = x <= 1
    small = xp.where(near, x, 1.0)
    y = (-small) ** (n - 1) / math.factorial(n - 1) * (_digamma_of(n) - xp.log(small))
    power = 1.0
    for k in range(24):
        if k != n - 1:
            y = y - power / ((k - n + 1) * math.factorial(k))
        power = power * -small
    if n > 1:
        y = xp.where(small == 0, 1.0 / (n - 1), y)
    large = xp.where(near, 2.0, x)
    fraction = large + float(n + 2 * FRACTIONS)
    for k in range(FRACTIONS, 0, -1):
        fraction = large + float(n + 2 * k - 2) - k * (n + k - 1) / fraction
    return xp.where(near, xp.where(x < 0, math.nan, y), xp.exp(-x) / fraction)


FRACTIONS = 64
"""Levels of a continued fraction: enough from 1 on."""


def _digamma_of(n: int) -> float:
    """digamma of an integer."""
    return sum(1 / k for k in range(1, n)) - 0.57721566490153286


def principal_value(xp: Any, x: Any) -> Any:
    """The integral of exp(t) / t up to x: by powers, from 40 on those of 1 / x [DLMF 6.6.1,
    6.12.2]."""
    far, low = x > 40, x < 0
    z = xp.where(far | low, 1.0, x)

    def step(k: Any, state: Any) -> Any:
        term, total = state
        n = k.astype(z.dtype)
        term = term * z / n
        return term, total + term / n

    ones = xp.zeros_like(z) + 1.0
    _, total = xp.fori_loop(1, 150, step, (ones, xp.zeros_like(z)))
    y = total + xp.log(z) - _digamma_of(1)
    beyond = xp.where(far & (x < 800), x, 50.0)
    series = 1.0
    for k in range(30, 0, -1):
        series = 1.0 + k / beyond * series
    y = xp.where(far, xp.where(x < 800, xp.exp(beyond) / beyond * series, math.inf), y)
    return xp.where(low, -exponential_integral(xp, 1, xp.where(low, -x, 1.0)), y)


def spence(xp: Any, x: Any) -> Any:
    """The integral of log(t) / (1 - t) from 1 to x: by its series around 1, to which reflection and
    inversion lead [DLMF 25.12.1, 25.12.4, 25.12.6]."""
    big, small = x > 1.5, x < 0.5
    turned = xp.where(big, 1.0 / xp.where(big, x, 1.0), x)
    mirrored = xp.where(turned < 0.5, 1.0 - turned, turned)
    z = 1.0 - mirrored
    total = 0.0
    for k in range(56, 0, -1):
        total = z * (total + 1.0 / (k * k))
    rest = xp.where(turned < 1, 1.0 - turned, 1.0)
    logs = xp.log(xp.where(turned > 0, turned, 1.0)) * xp.log(rest)
    y = xp.where(turned < 0.5, math.pi**2 / 6 - logs - total, total)
    y = xp.where(big, -0.5 * xp.log(xp.where(big, x, 1.0)) ** 2 - y, y)
    return xp.where(x < 0, math.nan, xp.where(small & (x == 0), math.pi**2 / 6, y))


def dawson(xp: Any, x: Any) -> Any:
    """exp(-x**2) times the integral of exp(t**2) from 0 to x [Rybicki 1989, "Dawson's integral and
    the sampling theorem"]."""
    width = 0.2
    even = 2.0 * xp.rint(x / (2 * width))
    rest = x - even * width
    total = 0.0
    for n in range(-35, 36, 2):
        gap = rest - n * width
        total = total + xp.exp(-gap * gap) / (even + float(n))
    series = 1.0
    for k in range(10, 0, -1):
        series = 1.0 - 2.0 / (2 * k + 1) * (x * x) * series
    y = xp.where(xp.abs(x) < width, x * series, total / math.sqrt(math.pi))
    far = xp.abs(x) > 1e8
    return xp.where(far, 0.5 / xp.where(far, x, 1.0), y)
