"""Forms of what works number by number."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.node import Tensor
from ..opened import Form, gg, of, plain

__all__ = ["FORMS"]


def _divide(x: Tensor, y: Tensor, **_: Any) -> Any:
    """Integers are truncated; by 0 all bits of the quotient are set, as in XLA."""
    if x.dtype.kind not in "iu":
        return gg.divide(x, y)
    ones = gg.constant(-1 if x.dtype.kind == "i" else np.iinfo(x.dtype).max, x.dtype)
    down = gg.floor_divide(x, y)
    if x.dtype.kind == "i":
        off = gg.logical_and(down * y != x, (x < 0) != (y < 0))
        down = gg.where(off, down + gg.ones_like(down), down)
    return gg.where(y == 0, ones, down)


def _rem(x: Tensor, y: Tensor, **_: Any) -> Any:
    """With the sign of x; of integers by 0 it is x."""
    left = gg.fmod(x, y)
    return left if x.dtype.kind == "f" else gg.where(y == 0, x, left)


def _polygamma(n: Tensor, x: Tensor, **_: Any) -> Any:
    order = getattr(n.node.op, "value", None)
    if order is None or np.any(order != np.rint(order)):
        raise NotImplementedError("orders that are not known integers")
    return gg.special.polygamma(order.astype("int64"), x)


def _round(x: Tensor, *, rounding_method: Any, **_: Any) -> Any:
    if int(rounding_method) == 1:
        return gg.round(x)
    whole = gg.trunc(x)
    return gg.where(gg.abs(x - whole) >= 0.5, whole + gg.sign(x), whole)


def _integer_pow(x: Tensor, *, y: int, **_: Any) -> Any:
    if y == 2:
        return gg.square(x)
    return gg.reciprocal(x) if y == -1 else gg.power(x, y)


def _clamp(low: Tensor, x: Tensor, high: Tensor, **_: Any) -> Any:
    """Like XLA's; at a bound no gradient goes to x, and beyond it all goes to the bound."""
    y = gg.minimum(gg.maximum(x, low), high)
    if x.dtype.kind != "f":
        return y
    inside = gg.logical_and(x > low, x < high)
    beyond = gg.where(high < x, high, gg.where(low > x, low, gg.stop_gradient(y)))
    return gg.where(inside, x, beyond)


def _rsqrt(x: Tensor, **_: Any) -> Any:
    return gg.reciprocal(gg.sqrt(x))


def _select_n(which: Tensor, *cases: Tensor, **_: Any) -> Any:
    if which.dtype.kind == "b":
        return gg.where(which, cases[1], cases[0])
    y = cases[0]
    for i, case in enumerate(cases[1:], 1):
        y = gg.where(which == i, case, y)
    return y


def _polynomial(x: Tensor, *coefficients: Tensor, **_: Any) -> Any:
    """Of coefficients from the lowest power on."""
    y = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        y = y * x + c
    return y


def _convert(x: Tensor, *, new_dtype: Any, **_: Any) -> Any:
    new = np.dtype(new_dtype)
    if x.dtype == new:
        return x
    if x.dtype.kind == "c" and new.kind != "c":
        x = gg.real(x)
    if x.dtype.kind == "f" and new.kind in "iu":
        return _whole(x, new)
    return gg.cast(x, new)


def _whole(x: Tensor, new: Any) -> Any:
    """Towards 0; the least or the greatest integer beyond them, and 0 for NaN."""
    least, most = np.iinfo(new).min, np.iinfo(new).max
    low, high = x < float(least), x >= float(most) + 1.0
    inside = gg.logical_not(gg.logical_or(gg.isnan(x), gg.logical_or(low, high)))
    made = gg.cast(gg.where(inside, x, gg.zeros_like(x)), new)
    made = gg.where(high, gg.constant(most, new), made)
    return gg.where(low, gg.constant(least, new), made)


def _reduce_precision(x: Tensor, *, exponent_bits: int, mantissa_bits: int, **_: Any) -> Any:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        kind = gg.finfo(dtype) if dtype != "bfloat16" else None
        said = (8, 7) if kind is None else (kind.bits - 1 - _mantissa(dtype), _mantissa(dtype))
        if said == (exponent_bits, mantissa_bits):
            return x if x.dtype.name == dtype else gg.cast(gg.cast(x, dtype), x.dtype)
    raise NotImplementedError(f"{exponent_bits} bits of exponent and {mantissa_bits} of mantissa")


def _mantissa(dtype: str) -> int:
    return int(np.finfo(dtype).nmant)


def _bitcast(x: Tensor, *, new_dtype: Any, **_: Any) -> Any:
    """Between integers, and from an unsigned integer to a float, by its parts."""
    new = np.dtype(new_dtype)
    if x.dtype == new:
        return x
    if new.itemsize == x.dtype.itemsize and x.dtype.kind in "iu":
        if new.kind in "iu":
            return gg.cast(x, new)
        if new.kind == "f":
            return _float_of_bits(x, new)
    raise NotImplementedError(f"the bits of {x.dtype} as {new}")


def _float_of_bits(x: Tensor, new: Any) -> Any:
    bits, digits = 8 * new.itemsize, _mantissa(new.name)
    x = gg.cast(x, f"uint{bits}")
    wide = gg.cast(gg.bitwise_and(x, gg.constant((1 << digits) - 1, x.dtype)), new)
    top = gg.bitwise_right_shift(x, gg.constant(digits, x.dtype))
    most = (1 << (bits - 1 - digits)) - 1
    exponent = gg.cast(gg.bitwise_and(top, gg.constant(most, x.dtype)), "int32")
    bias = most // 2
    part = gg.where(exponent == 0, wide, wide + 2.0**digits)
    size = gg.ldexp(part, gg.maximum(exponent, 1) - (bias + digits))
    special = gg.where(wide == 0, gg.constant(np.inf, new), gg.constant(np.nan, new))
    size = gg.where(exponent == most, special, size)
    return gg.where(gg.bitwise_right_shift(x, gg.constant(bits - 1, x.dtype)) != 0, -size, size)


def _before(x: Tensor, y: Tensor, **_: Any) -> Any:
    """x < y in the total order of floats: NaNs at both ends, -0 before 0."""
    if x.dtype.kind != "f":
        return gg.less(x, y)
    (a, signs), (b, others) = ((_end(t), gg.signbit(t)) for t in (x, y))
    zeros = gg.logical_and(x == y, gg.logical_and(signs, gg.logical_not(others)))
    among = gg.logical_or(x < y, gg.logical_and(zeros, a == b))
    return gg.logical_or(a < b, among)


def _end(x: Tensor) -> Any:
    """-1 and 1 of NaNs with and without a sign, 0 of numbers."""
    ends = gg.where(gg.signbit(x), gg.constant(-1, "int32"), gg.constant(1, "int32"))
    return gg.where(gg.isnan(x), ends, gg.constant(0, "int32"))


def _not_after(x: Tensor, y: Tensor, **_: Any) -> Any:
    return gg.logical_not(_before(y, x))


def _same_place(x: Tensor, y: Tensor, **_: Any) -> Any:
    return gg.logical_and(_not_after(x, y), _not_after(y, x))


def _clz(x: Tensor, **_: Any) -> Any:
    """Zeros before the first bit that is set."""
    bits = 8 * x.dtype.itemsize
    u = gg.cast(x, f"uint{bits}")
    step = 1
    while step < bits:  # every bit behind the first
        u = gg.bitwise_or(u, gg.bitwise_right_shift(u, gg.constant(step, u.dtype)))
        step *= 2
    return gg.cast(bits - gg.cast(gg.bitwise_count(u), "int64"), x.dtype)


def _shift(name: str) -> Form:
    def shifted(x: Tensor, by: Tensor, **_: Any) -> Any:
        bits, kind = 8 * x.dtype.itemsize, x.dtype
        u = gg.cast(x, f"uint{bits}") if name == "right_logical" else x
        many = gg.cast(by, f"uint{bits}") >= bits
        safe = gg.where(many, gg.zeros_like(by), by)
        if name == "left":
            return gg.where(many, gg.zeros_like(x), gg.bitwise_left_shift(x, safe))
        if name == "right_logical":
            made = gg.bitwise_right_shift(u, gg.cast(safe, u.dtype))
            return gg.cast(gg.where(many, gg.zeros_like(u), made), kind)
        signed = gg.cast(x, f"int{bits}")
        most = gg.where(many, gg.full_like(by, bits - 1), by)
        return gg.cast(gg.bitwise_right_shift(signed, gg.cast(most, signed.dtype)), kind)

    return shifted


def _bits(logical: str, bitwise: str) -> Form:
    def call(*xs: Tensor, **_: Any) -> Any:
        return getattr(gg, logical if xs[0].dtype.kind == "b" else bitwise)(*xs)

    return call


_SAME_NAME = """
    abs sign floor ceil exp exp2 expm1 log log2 log1p sqrt cbrt sin cos tan sinh cosh tanh asin acos
    atan asinh acosh atanh atan2 square nextafter real imag add stop_gradient
"""

FORMS: dict[str, Form] = {
    **{name: of(name) for name in _SAME_NAME.split()},
    "add_any": of("add"),
    "sub": of("subtract"),
    "mul": of("multiply"),
    "neg": of("negative"),
    "div": _divide,
    "rem": _rem,
    "pow": of("power"),
    "integer_pow": _integer_pow,
    "one_minus_square": plain(lambda x: 1 - gg.square(x)),
    "polynomial": _polynomial,
    "max": of("maximum"),
    "min": of("minimum"),
    "clamp": _clamp,
    "round": _round,
    "rsqrt": _rsqrt,
    "logistic": plain(lambda x: 1 / (1 + gg.exp(-x)) if x.dtype.kind == "c" else gg.nn.sigmoid(x)),
    "conj": plain(lambda x: gg.conj(x if x.dtype.kind == "c" else x + 0j)),
    "is_finite": of("isfinite"),
    "eq": of("equal"),
    "ne": of("not_equal"),
    "lt": of("less"),
    "le": of("less_equal"),
    "gt": of("greater"),
    "ge": of("greater_equal"),
    "lt_to": _before,
    "le_to": _not_after,
    "eq_to": _same_place,
    "and": _bits("logical_and", "bitwise_and"),
    "or": _bits("logical_or", "bitwise_or"),
    "xor": _bits("logical_xor", "bitwise_xor"),
    "not": _bits("logical_not", "bitwise_invert"),
    "population_count": plain(
        lambda x: gg.cast(gg.bitwise_count(gg.cast(x, f"uint{8 * x.dtype.itemsize}")), x.dtype)
    ),
    "clz": _clz,
    "shift_left": _shift("left"),
    "shift_right_logical": _shift("right_logical"),
    "shift_right_arithmetic": _shift("right_arithmetic"),
    "complex": plain(lambda re, im: re + im * 1j),
    "erf": of("special.erf"),
    "erfc": of("special.erfc"),
    "erf_inv": of("special.erfinv"),
    "lgamma": of("special.gammaln"),
    "digamma": of("special.digamma"),
    "polygamma": _polygamma,
    "zeta": of("special.zeta"),
    "igamma": of("special.gammainc"),
    "igammac": of("special.gammaincc"),
    "regularized_incomplete_beta": of("special.betainc"),
    "bessel_i0e": of("special.i0e"),
    "bessel_i1e": of("special.i1e"),
    "select_n": _select_n,
    "convert_element_type": _convert,
    "reduce_precision": _reduce_precision,
    "bitcast_convert_type": _bitcast,
    "copy": plain(lambda x: x),
    "copy_p": plain(lambda x: x),
    "name": plain(lambda x: x),
    "device_put": lambda *xs, **_: xs,
    "sharding_constraint": plain(lambda x: x),
    "optimization_barrier": lambda *xs, **_: xs,
    "pvary": lambda *xs, **_: xs,
}
