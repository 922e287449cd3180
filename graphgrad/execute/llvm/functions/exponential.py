"""Exponentials, logarithms, and the hyperbolic functions made of them.

exp:  x = n ln 2 + r with |r| <= ln(2) / 2, and e**x = 2**n e**r.
log:  x = 2**k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2), and ln x = k ln 2 + ln(1 + f).
ln 2 is two numbers, the first with so few bits that n times it is exact.
"""

from __future__ import annotations

import math

from ..emit.values import Value, polynomial
from .formats import format_of, integer_part, times_power

_LOG2_E = 1 / math.log(2)
_LN2 = {
    "float": (0.693145751953125, 1.428606765330187e-06),
    "double": (0.6931471803691238, 1.9082149292705877e-10),
}
_EXP = {  # (e**r - 1 - r) / r**2
    "float": (
        0.4999999403953552, 0.16666515171527863, 0.041668083518743515, 0.008369294926524162,
        0.0013838611776009202,
    ),
    "double": (
        0.5000000000000011, 0.16666666666666421, 0.041666666666525555, 0.00833333333348569,
        0.0013888888944971502, 0.00019841269531890507, 2.4801491589761457e-05,
        2.7557557466290542e-06, 2.763082567278953e-07, 2.501137462764572e-08,
    ),
}  # fmt: skip
_EXPM1 = {  # the same, for the least error relative to e**r - 1
    "float": (
        0.5, 0.16666635870933533, 0.041666511446237564, 0.00834150705486536,
        0.0013930514687672257, 0.00015048743807710707,
    ),
    "double": (
        0.5, 0.16666666666666677, 0.04166666666666667, 0.008333333333321721,
        0.0013888888888900482, 0.0001984126988564574, 2.4801587267116506e-05,
        2.755724476426354e-06, 2.755733833566787e-07, 2.510884523503115e-08,
        2.0891562076826474e-09,
    ),
}  # fmt: skip
_EXP2 = {  # (2**r - 1) / r
    "float": (
        0.6931471824645996, 0.24022650718688965, 0.055504050105810165, 0.009618074633181095,
        0.0013338287826627493, 0.00015457400877494365, 1.4183303392201196e-05,
    ),
    "double": (
        0.6931471805599453, 0.24022650695909997, 0.05550410866482377, 0.009618129107670799,
        0.0013333558145895191, 0.00015403530314855277, 1.5252734325751563e-05,
        1.3215550291735272e-06, 1.0177859088443543e-07, 7.031626929414552e-09,
        4.4850477023047873e-10, 5.7426740371212216e-11,
    ),
}  # fmt: skip
_RANGE = {"float": (-104.0, 89.0), "double": (-746.0, 710.0)}  # beyond: 0 and infinity
_RANGE2 = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}
_HALF_RANGE = {"float": 89.6, "double": 710.6}  # beyond, half of it is infinite too
_MINUS_ONE = {"float": -20.0, "double": -40.0}  # below, e**x - 1 rounds to -1
_LARGE = 2.0**60  # above, 1 + x is x
_LOG10_2 = {
    "float": (0.301025390625, 4.605038981195214e-06),
    "double": (0.3010299955494702, 1.1451100898021838e-10),
}

_LOG = (  # (ln(1 + f) - f + f**2 / 2) / f**3
    0.3333333134651184, -0.250008225440979, 0.20001259446144104, -0.1662333905696869,
    0.14201045036315918, -0.13159622251987457, 0.1276618093252182, -0.07641653716564178,
)  # fmt: skip
_ATANH = (  # (2 artanh s - 2 s) / s**3 as a function of s**2
    0.6666666666666735, 0.3999999999940939, 0.2857142874365992, 0.2222219843350633,
    0.18183572041758617, 0.15313841753441243, 0.14798150494752704,
)  # fmt: skip


def _reduced(x: Value) -> tuple[Value, Value, Value]:
    """(r, n as a float, n as integer_part shifts it) with x = n ln 2 + r."""
    high, low = _LN2[x.element]
    shifter = format_of(x).shifter
    shifted = x.fma(_LOG2_E, shifter)
    n = shifted - shifter
    return n.fma(-low, n.fma(-high, x)), n, shifted


def exp(x: Value) -> Value:
    """e**x."""
    low, high = _RANGE[x.element]
    r, n, shifted = _reduced(x.at_least(low).at_most(high))
    tail = polynomial(r, _EXP[x.element])
    return times_power(tail.fma(r * r, r) + 1.0, n, shifted)


def exp2(x: Value) -> Value:
    """2**x."""
    low, high = _RANGE2[x.element]
    x = x.at_least(low).at_most(high)
    shifted, n = integer_part(x)
    r = x - n
    return times_power(polynomial(r, _EXP2[x.element]).fma(r, 1.0), n, shifted)


def _half_expm1(x: Value) -> Value:
    """(e**x - 1) / 2, finite wherever that is: 2 ((e**r - 1) p + (p - 1/4)) with p = 2**(n-2)."""
    f = format_of(x)
    r, _, shifted = _reduced(x.at_least(_MINUS_ONE[x.element]).at_most(_HALF_RANGE[x.element]))
    tail = polynomial(r, _EXPM1[x.element]).fma(r * r, r)
    power = ((shifted.bits() << f.mantissa) + ((f.bias - 2) << f.mantissa)).as_float()
    quarter = tail.fma(power, power - 0.25)
    return quarter + quarter


def _tiny(x: Value) -> Value:
    """Whether a quarter of x loses bits; there e**x - 1 and sinh x are x."""
    return x.abs() < format_of(x).tiny * 4.0


def expm1(x: Value) -> Value:
    """e**x - 1."""
    half = _half_expm1(x)
    return _tiny(x).where(x, half + half)


def tanh(x: Value) -> Value:
    """tanh x."""
    return tanh_and_slope(x)[0]


def tanh_slope(x: Value) -> Value:
    """1 / cosh(x)**2; 1 - tanh(x)**2 would lose digits."""
    return tanh_and_slope(x)[1]


def tanh_and_slope(x: Value) -> tuple[Value, Value]:
    """Both of one e**(2 |x|) = e**r / s with s = 2**-n.

    tanh |x| = h / (h + 2 s) with h = e**r - s; the slope is 2 s (1 + tanh |x|) / (h + 2 s).
    """
    r, n, shifted = _reduced((x.abs() * -2.0).at_least(_RANGE[x.element][0]))
    r = -r
    tail = polynomial(r, _EXPM1[x.element]).fma(r * r, r)
    s = times_power(x.number(1.0), n, shifted)
    twice, h = s + s, 1.0 - s + tail
    below = h + twice
    share = 1.0 / below
    t = h * share
    t = t.fma(-below, h).fma(share, t)
    return t.with_sign_of(x), twice * share * (t + 1.0)


def sinh(x: Value) -> Value:
    """sinh |x| = h + h / (2 h + 1) with h = (e**|x| - 1) / 2."""
    h = _half_expm1(x.abs())
    g = h.at_most(_LARGE)
    return _tiny(x).where(x, (h + g / (g + g + 1.0)).with_sign_of(x))


def cosh(x: Value) -> Value:
    """cosh x = h + 1 / (4 h) with h = e**|x| / 2."""
    r, n, shifted = _reduced(x.abs().at_most(_HALF_RANGE[x.element]))
    half = (polynomial(r, _EXP[x.element]).fma(r * r, r) + 1.0) * 0.5
    h = times_power(half, n, shifted)
    return h + 0.25 / h


# --- logarithms --------------------------------------------------------------------------------


def _split(x: Value) -> tuple[Value, Value]:
    """(1 + f, k as an integer) of a positive, finite, normal x."""
    f = format_of(x)
    start = x.number(math.sqrt(0.5)).bits()
    offset = x.bits() - start
    return ((offset & ((1 << f.mantissa) - 1)) + start).as_float(), offset >> f.mantissa


def _log1p_of(f: Value) -> Value:
    """ln(1 + f) for 1 + f between sqrt(1/2) and sqrt(2)."""
    square = f * f
    if f.element == "float":
        return (polynomial(f, _LOG) * f - 0.5).fma(square, f)
    s = f / (f + 2.0)
    z = s * s
    half = square * 0.5
    return f - (half - s * (polynomial(z, _ATANH).fma(z, half)))


def _where_defined(x: Value, y: Value) -> Value:
    """y as a logarithm of x: infinite at infinity and 0, NaN for NaN and below 0."""
    undefined = x.equals(0.0).where(y.number(-math.inf), math.nan)
    return (x > 0.0).where((x < math.inf).where(y, x), undefined)


def _scaled_log(x: Value, factor: float, high: float, low: float) -> Value:
    """ln(1 + f) factor + k (high + low)."""
    f = format_of(x)
    denormal = x < f.tiny
    ones, k = _split(denormal.where(x * 2.0**f.mantissa, x))
    k = k - denormal.where(k.number(f.mantissa), 0)
    n = k.convert("sitofp", x.element)
    part = _log1p_of(ones - 1.0)
    if factor != 1.0:
        part = part * factor
    return _where_defined(x, n.fma(high, n.fma(low, part) if low else part))


def log(x: Value) -> Value:
    """ln x."""
    return _scaled_log(x, 1.0, *_LN2[x.element])


def log2(x: Value) -> Value:
    """log2 x."""
    return _scaled_log(x, _LOG2_E, 1.0, 0.0)


def log10(x: Value) -> Value:
    """log10 x."""
    return _scaled_log(x, 1.0 / math.log(10.0), *_LOG10_2[x.element])


def log1p(x: Value) -> Value:
    """ln(1 + x): f = x 2**-k + (2**-k - 1) has the bits that 1 + x loses."""
    form = format_of(x)
    high, low = _LN2[x.element]
    whole = x + 1.0
    ones, k = _split(whole)
    power = (k.number(form.one) - (k << form.mantissa)).as_float()
    f = (x > _LARGE).where(ones - 1.0, x.fma(power, power - 1.0))
    n = k.convert("sitofp", x.element)
    y = n.fma(high, n.fma(low, _log1p_of(f)))
    return _where_defined(whole, y).with_sign_of(x)


# --- inverse hyperbolic functions --------------------------------------------------------------


def asinh(x: Value) -> Value:
    """arsinh |x| = ln(1 + |x| + x**2 / (1 + sqrt(1 + x**2)))."""
    a = x.abs()
    square = a * a
    near = a + square / ((square + 1.0).sqrt() + 1.0)
    return _log1p_or_double(a, near).with_sign_of(x)


def acosh(x: Value) -> Value:
    """arcosh x = ln(1 + t + sqrt(t (t + 2))) with t = x - 1."""
    t = x - 1.0
    y = _log1p_or_double(x, t + (t * (t + 2.0)).sqrt())
    return (x < 1.0).where(x.number(math.nan), y)


def _log1p_or_double(x: Value, near: Value) -> Value:
    """ln(1 + near), but ln(2 x) where x is large."""
    large = x > _LARGE
    return log1p(large.where(x, near)) + large.where(x.number(math.log(2.0)), 0.0)


def atanh(x: Value) -> Value:
    """artanh |x| = ln(1 + 2 |x| / (1 - |x|)) / 2."""
    a = x.abs()
    return (log1p((a + a) / (1.0 - a)) * 0.5).with_sign_of(x)
