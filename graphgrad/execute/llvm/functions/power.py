"""x**y of single precision, by way of doubles."""

from __future__ import annotations

import math

from ..emit.values import Value, call
from .exponential import exp2, log2


def power(x: Value, y: Value) -> Value:
    """x**y as C has it: 1 where y is 0 or x is 1; NaN for negative numbers to broken powers.

    2**(y log2 |x|) in doubles is off by less than rounding to single precision is.
    """
    logarithm = call(log2, [x.abs().convert("fpext", "double")], inline=False)
    exponent = y.convert("fpext", "double") * logarithm
    size = call(exp2, [exponent], inline=False).convert("fptrunc", "float")
    size = (x.abs().equals(1.0) | y.equals(0.0)).where(x.number(1.0), size)
    whole = y.intrinsic("trunc").equals(y)
    half = y * 0.5
    odd = whole & half.intrinsic("trunc").compare("une", half)
    size = odd.where(size.with_sign_of(x), size)
    broken = (x < 0.0) & (x > -math.inf) & ~whole
    made = broken.where(x.number(math.nan), size)
    missing = (x.is_nan() & y.compare("une", 0.0)) | (y.is_nan() & x.compare("une", 1.0))
    return missing.where(x + y, made)
