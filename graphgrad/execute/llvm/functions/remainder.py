"""The rest of a division of floats, exactly, with the sign of the dividend: C's fmod."""

from __future__ import annotations

from ..emit.values import Value, call
from .formats import format_of
from .lanes import rarely


def rest(x: Value, y: Value) -> Value:
    """|x| - n |y| for the integer n that leaves it in [0, |y|), with the sign of x.

    n is the quotient without its fraction, or one off after rounding. As long as it is exact, so is
    the difference, which fits into a float however the quotient was rounded. Longer quotients, NaN
    and infinities are left to the C library.
    """
    if not x.body.module.target.fma:
        return _by_the_library(x, y)
    a, b = x.abs(), y.abs()
    n = (a / b).intrinsic("trunc")
    left = (-n).fma(b, a)
    left = (left < 0).where(left + b, left)
    left = (left >= b).where(left - b, left)
    left = n.equals(0.0).where(a, left)  # also of an infinite b
    long = ~(n < 2.0 ** format_of(x).mantissa)
    return rarely(long, left.with_sign_of(x), lambda: call(_by_the_library, (x, y), inline=False))


def _by_the_library(x: Value, y: Value) -> Value:
    return x.binary("frem", y)
