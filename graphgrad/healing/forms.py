"""Stable forms: functions of tensors that keep their digits, and their derivatives theirs.

A quotient that is 0 / 0 somewhere is a series there, with terms enough for two derivatives, under a
double `where`. A scale is a constant for differentiation: f(x) = s**k f(x / s) holds for every s,
so the derivative with s held fixed is the whole one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ir.types import size_of
from ..ops.base import apply, like
from ..ops.create.creation import ones_like, zeros_like
from ..ops.elementwise.bounds import maximum, minimum
from ..ops.elementwise.exponential import SigmoidSlope, TanhSlope, exp, expm1, log, log1p, sqrt
from ..ops.elementwise.logic import isfinite, logical_and, logical_not, logical_or, where
from ..ops.elementwise.magnitudes import abs as absolute
from ..ops.elementwise.magnitudes import hypot, sign
from ..ops.elementwise.number_parts import frexp, ldexp
from ..ops.elementwise.rounding import floor
from ..ops.elementwise.sinc import SphericalBessel
from ..ops.elementwise.trigonometry import (
    arccos,
    arcsin,
    arctan,
    arctan2,
    cos,
    sin,
    sinh,
    tan,
    tanh,
)
from ..ops.linalg.determinants import slogdet
from ..ops.nn.activations import log1mexp, sigmoid, softplus
from ..ops.nn.softmaxes import softmax
from ..ops.reduce.reductions import max as largest
from ..ops.reduce.reductions import mean as mean_of
from ..ops.reduce.reductions import normal_axes
from ..ops.reduce.reductions import prod as product_of
from ..ops.reduce.reductions import sum as total_of
from ..ops.shape.reshaping import squeeze, sum_to
from ..ops.sources import stop_gradient
from ..ops.special.error import erf, erfc, erfcx
from ..regions.rules import own_rule
from ..regions.scopes import override_gradient

Function = Callable[..., Tensor]
LOG2 = math.log(2.0)


class StableForm:
    """A stable function of tensors that a term may call: its name, and what it was made with."""

    __slots__ = ("fn", "name", "options")
    _known: dict[Any, StableForm] = {}

    def __init__(self, name: str, fn: Function, options: tuple[Any, ...]) -> None:
        self.name, self.fn, self.options = name, fn, options

    @classmethod
    def of(cls, fn: Function, *options: Any) -> StableForm:
        """The one form of a function and its options."""
        if isinstance(fn, StableForm):
            return fn
        form = cls._known.get((fn, options))
        if form is None:
            form = cls._known[fn, options] = cls(fn.__name__.strip("_"), fn, options)
        return form

    def __call__(self, *tensors: Tensor) -> Tensor:
        """The function of these tensors."""
        return self.fn(*self.options, *tensors)

    def __repr__(self) -> str:
        return self.name


# --- series -------------------------------------------------------------------------------------


def series(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    """The polynomial in x, by Horner's rule."""
    total = like(coefficients[-1], x) + zeros_like(x)
    for c in reversed(coefficients[:-1]):
        total = total * x + like(c, x)
    return total


def near_zero(x: Tensor, radius: float, near: Function, far: Function) -> Tensor:
    """near(x) for |x| below the radius, else far(x), each only where it is chosen."""
    small = absolute(x) < radius
    return where(small, near(where(small, x, 0.0)), far(where(small, 1.0, x)))


def _factorials(first: int, step: int, signs: int, terms: int = 14) -> list[float]:
    return [signs**k / math.factorial(first + step * k) for k in range(terms)]


def _even(coefficients: Sequence[float]) -> Function:
    return lambda x: series(x * x, coefficients)


def _bernoulli(n: int) -> list[float]:
    """B_0, B_2, ..., B_{2n-2} by zeta(2k), of which the sum is known to all digits."""
    out = [1.0, 1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510]
    for k in range(len(out), n):
        zeta = sum(m ** (-2.0 * k) for m in range(1, 40))
        out.append((-1) ** (k + 1) * 2 * math.factorial(2 * k) / (2 * math.pi) ** (2 * k) * zeta)
    return out[:n]


_B = _bernoulli(20)
_TANH = [_B[k] * 4**k * (4**k - 1) / math.factorial(2 * k) for k in range(1, 20)]
_COTH = [_B[k] * 4**k / math.factorial(2 * k) for k in range(1, 20)]
_ARCTAN = [(-1) ** k / (2 * k + 1) for k in range(20)]
_ARCTANH = [1 / (2 * k + 1) for k in range(15)]
_ARCSIN = [math.comb(2 * k, k) / 4**k / (2 * k + 1) for k in range(20)]
_LOG1P = [(-1) ** k / (k + 1) for k in range(22)]


def sinc(x: Tensor) -> Tensor:
    """sin(x) / x; 1 at 0."""
    return apply(SphericalBessel(0), x)


def _grown(site: Site, dy: Tensor) -> Tensor:
    (x,) = site.inputs
    return dy * (growth(x) * (1.0 - 1.0 / x))


GROWTH = own_rule("gg.healing.growth", _grown, contract="exact")


def growth(x: Tensor) -> Tensor:
    """exp(x) / x for x > 1. Its slope growth(x) (1 - 1 / x) is one product where it overflows."""
    with override_gradient(GROWTH):
        half = exp(0.5 * x)
        return half / x * half


def sinhc(x: Tensor) -> Tensor:
    """sinh(x) / x; 1 at 0."""
    return near_zero(x, 1.0, _even(_factorials(1, 2, 1)), _sinh_over)


def _sinh_over(x: Tensor) -> Tensor:
    large = absolute(x) > 40.0
    mid, far = where(large, 1.0, x), where(large, absolute(x), 40.0)
    return where(large, 0.5 * growth(far), sinh(mid) / mid)


def tanc(x: Tensor) -> Tensor:
    """tan(x) / x; 1 at 0."""
    return sinc(x) / cos(x)


def tanhc(x: Tensor) -> Tensor:
    """tanh(x) / x; 1 at 0."""
    return near_zero(x, 0.5, _even(_TANH), lambda x: tanh(x) / x)


def arctanc(x: Tensor) -> Tensor:
    """arctan(x) / x; 1 at 0."""
    return near_zero(x, 0.3, _even(_ARCTAN), lambda x: arctan(x) / x)


def arcsinc(x: Tensor) -> Tensor:
    """arcsin(x) / x; 1 at 0."""
    return near_zero(x, 0.3, _even(_ARCSIN), lambda x: arcsin(x) / x)


def expm1c(x: Tensor) -> Tensor:
    """(exp(x) - 1) / x; 1 at 0."""
    small, large = absolute(x) < 1.0, x > 40.0
    near = series(where(small, x, 0.0), _factorials(1, 1, 1, 21))
    other = where(logical_or(small, large), 1.0, x)
    far = where(large, growth(where(large, x, 40.0)), expm1(other) / other)
    return where(small, near, far)


def log1pc(x: Tensor) -> Tensor:
    """log(1 + x) / x; 1 at 0."""
    return near_zero(x, 0.1, lambda x: series(x, _LOG1P), lambda x: log1p(x) / x)


def langevin(x: Tensor) -> Tensor:
    """coth(x) - 1 / x; 0 at 0."""

    def near(x: Tensor) -> Tensor:
        return x * series(x * x, _COTH)

    return near_zero(x, 1.0, near, lambda x: 1.0 / tanh(x) - 1.0 / x)


def bose(x: Tensor) -> Tensor:
    """1 / (exp(x) - 1) - 1 / x; -1/2 at 0."""

    def near(x: Tensor) -> Tensor:
        return 0.5 * (langevin(0.5 * x) - 1.0)

    return near_zero(x, 2.0, near, lambda x: -exp_share(-x) - 1.0 / x)


def sigmoid_slope(x: Tensor) -> Tensor:
    """sigmoid(x) sigmoid(-x)."""
    return apply(SigmoidSlope(), x)


def tanh_slope(x: Tensor) -> Tensor:
    """1 / cosh(x)**2."""
    return apply(TanhSlope(), x)


def sin_deficit(x: Tensor) -> Tensor:
    """(x - sin(x)) / x**3; 1/6 at 0."""

    def far(x: Tensor) -> Tensor:
        return (1.0 - sinc(x)) / x / x

    return near_zero(x, 2.0, _even(_factorials(3, 2, -1)), far)


def sinh_excess(x: Tensor) -> Tensor:
    """(sinh(x) - x) / x**3; 1/6 at 0."""

    def far(x: Tensor) -> Tensor:
        return (sinhc(x) - 1.0) / x / x

    return near_zero(x, 2.0, _even(_factorials(3, 2, 1)), far)


def tan_excess(x: Tensor) -> Tensor:
    """(tan(x) - x) / x**3; 1/3 at 0."""
    signs = [(-1) ** (k + 1) * c for k, c in enumerate(_TANH[1:])]
    return near_zero(x, 0.5, _even(signs), lambda x: (tan(x) - x) / x / x / x)


def arctan_deficit(x: Tensor) -> Tensor:
    """(x - arctan(x)) / x**3; 1/3 at 0."""
    signs = [-c for c in _ARCTAN[1:]]
    return near_zero(x, 0.3, _even(signs), lambda x: (x - arctan(x)) / x / x / x)


def tanh_deficit(x: Tensor) -> Tensor:
    """(x - tanh(x)) / x**3; 1/3 at 0."""
    signs = [-c for c in _TANH[1:]]
    return near_zero(x, 0.5, _even(signs), lambda x: (x - tanh(x)) / x / x / x)


def spherical_excess(x: Tensor) -> Tensor:
    """(sin(x) - x cos(x)) / x**3; 1/3 at 0."""
    near = [2 * (j + 1) * c for j, c in enumerate(_factorials(3, 2, -1))]
    return near_zero(x, 2.0, _even(near), lambda x: (sinc(x) - cos(x)) / x / x)


def expm1_excess(x: Tensor) -> Tensor:
    """(exp(x) - 1 - x) / x**2; 1/2 at 0."""

    def near(x: Tensor) -> Tensor:
        return series(x, _factorials(2, 1, 1, 22))

    return near_zero(x, 2.0, near, lambda x: (expm1c(x) - 1.0) / x)


def log1p_deficit(x: Tensor) -> Tensor:
    """(x - log(1 + x)) / x**2; 1/2 at 0."""
    signs = [-c for c in _LOG1P[1:]]
    return near_zero(x, 0.1, lambda x: series(x, signs), lambda x: (1.0 - log1pc(x)) / x)


def vanishing(form: StableForm, order: int, radius: float, naive: Function, x: Tensor) -> Tensor:
    """x**order times a form for |x| below a radius, else what is written."""

    def near(x: Tensor) -> Tensor:
        return reduce(lambda y, _: y * x, range(order), form(x))

    return near_zero(x, radius, near, naive)


def vanishing_ratio(
    order: int, f: StableForm, g: StableForm, above: Any, below: Any, x: Tensor
) -> Tensor:
    """x**order f(x) / g(x) for |x| < 1, else what is written: a call of above over one of below."""

    def near(x: Tensor) -> Tensor:
        left = x ** abs(order)
        return f(x) / g(x) * left if order > 0 else f(x) / g(x) if not order else f(x) / g(x) / left

    def far(x: Tensor) -> Tensor:
        calls = [key(x) if isinstance(key, StableForm) else apply(key, x) for key in (above, below)]
        return calls[0] / calls[1]

    return near_zero(x, 1.0, near, far)


# --- exponentials and logarithms ----------------------------------------------------------------


def _sech_slope(site: Site, dy: Tensor) -> Tensor:
    (x,) = site.inputs
    return -dy * (sech(x) * tanh(x))


def _csch_slope(site: Site, dy: Tensor) -> Tensor:
    (x,) = site.inputs
    return -dy * (csch(x) / tanh(x))


def _exp_share_slope(site: Site, dy: Tensor) -> Tensor:
    (x,) = site.inputs
    half = 0.5 * csch(0.5 * x)
    return -dy * (half * half)


def _exp_less_exp_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, u = site.inputs
    y, large = exp_less_exp(x, u), x > 5.0
    slope = where(large, exp_less_exp(x, u + x), exp(where(large, 0.0, x)) * y)
    return sum_to(-dy * slope, like=x), sum_to(dy * y, like=u)


def _exp_difference_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, y = site.inputs
    return sum_to(dy * exp(x), like=x), sum_to(-dy * exp(y), like=y)


def _sigmoid_difference_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, y = site.inputs
    return sum_to(dy * sigmoid_slope(x), like=x), sum_to(-dy * sigmoid_slope(y), like=y)


def _log_ratio_difference_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, d = site.inputs
    by = dy / (x + d)
    return sum_to(-by * (d / x), like=x), sum_to(by, like=d)


def _sin_difference_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, y = site.inputs
    return sum_to(dy * cos(x), like=x), sum_to(-dy * cos(y), like=y)


def _arctan_difference_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, y = site.inputs
    a, b = (1.0 / lengths(t, ones_like(t)) for t in (x, y))
    return sum_to(dy * a * a, like=x), sum_to(-dy * b * b, like=y)


def _cos_difference_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, y = site.inputs
    return sum_to(-dy * sin(x), like=x), sum_to(dy * sin(y), like=y)


SECH = own_rule("gg.healing.sech", _sech_slope, contract="exact")
CSCH = own_rule("gg.healing.csch", _csch_slope, contract="exact")
EXP_DIFFERENCE = own_rule("gg.healing.exp_difference", _exp_difference_slopes, contract="exact")
COS_DIFFERENCE = own_rule("gg.healing.cos_difference", _cos_difference_slopes, contract="exact")
SIN_DIFFERENCE = own_rule("gg.healing.sin_difference", _sin_difference_slopes, contract="exact")
ARCTAN_DIFFERENCE = own_rule(
    "gg.healing.arctan_difference", _arctan_difference_slopes, contract="exact"
)
SIGMOID_DIFFERENCE = own_rule(
    "gg.healing.sigmoid_difference", _sigmoid_difference_slopes, contract="exact"
)
LOG_RATIO_DIFFERENCE = own_rule(
    "gg.healing.log_ratio_difference", _log_ratio_difference_slopes, contract="exact"
)
EXP_SHARE = own_rule("gg.healing.exp_share", _exp_share_slope, contract="exact")
EXP_LESS_EXP = own_rule("gg.healing.exp_less_exp", _exp_less_exp_slopes, contract="exact")


def sech(x: Tensor) -> Tensor:
    """1 / cosh(x) without an overflow; its slope is -sech(x) tanh(x)."""
    with override_gradient(SECH):
        size = absolute(x)
        return 2.0 * exp(-size) / (1.0 + exp(-2.0 * size))


def csch(x: Tensor) -> Tensor:
    """1 / sinh(x) without an overflow; its slope is -csch(x) coth(x)."""
    with override_gradient(CSCH):
        large = absolute(x) > 40.0
        far = where(large, x, 40.0)
        return where(large, sign(far) * 2.0 * exp(-absolute(far)), 1.0 / sinh(where(large, 1.0, x)))


def exp_share(x: Tensor) -> Tensor:
    """exp(x) / (exp(x) - 1); its slope is -csch(x / 2)**2 / 4."""
    with override_gradient(EXP_SHARE):
        right = x > 0.0
        low = where(right, -1.0, x)
        return where(right, -1.0 / expm1(-where(right, x, 1.0)), exp(low) / expm1(low))


def exp_less_exp(x: Tensor, u: Tensor) -> Tensor:
    """exp(u - exp(x)), of which the slope is 0 where exp(x) overflows."""
    with override_gradient(EXP_LESS_EXP, inputs=[x, u]):
        return exp(u - exp(x))


def bernoulli(x: Tensor) -> Tensor:
    """x / (exp(x) - 1); 1 at 0."""
    large = x > 1.0
    far = where(large, x, 1.0)
    low = near_zero(where(large, 0.0, x), 1.0, _over(expm1c), lambda x: x / expm1(x))
    return where(large, far * exp(-far) / -expm1(-far), low)


def _over(form: Function) -> Function:
    return lambda x: 1.0 / form(x)


def x_over_tanh(x: Tensor) -> Tensor:
    """x / tanh(x); 1 at 0."""
    return near_zero(x, 0.5, _over(tanhc), lambda x: x / tanh(x))


def x_over_arctan(x: Tensor) -> Tensor:
    """x / arctan(x); 1 at 0."""
    return near_zero(x, 0.5, _over(arctanc), lambda x: x / arctan(x))


def x_over_log1p(x: Tensor) -> Tensor:
    """x / log(1 + x); 1 at 0."""
    return near_zero(x, 0.5, _over(log1pc), lambda x: x / log1p(x))


def x_over_sinh(x: Tensor) -> Tensor:
    """x / sinh(x); 1 at 0."""
    return near_zero(x, 1.0, lambda x: 1.0 / sinhc(x), lambda x: x * csch(x))


def log_ratio(gap: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """log(a / b) by the difference gap = a - b where the ratio is near 1, else as it is."""
    part = gap / b
    near = absolute(part) < 0.5
    by_gap = log1p(where(near, part, zeros_like(part)))
    return where(near, by_gap, log(where(near, like(1.0, part), a / b)))


def log1p_square(x: Tensor) -> Tensor:
    """log(1 + x**2) without an overflow."""
    small = absolute(x) < 1.0
    near, size = where(small, x, 0.0), absolute(where(small, 1.0, x))
    inverse = 1.0 / size
    return where(small, log1p(near * near), 2.0 * log(size) + log1p(inverse * inverse))


def log1mexp_exp(x: Tensor) -> Tensor:
    """log(1 - exp(-exp(x))), which is x - exp(x) / 2 + ... where exp(x) underflows."""
    small = x < 0.0
    near = where(small, x, 0.0)
    far = where(small, 0.0, where(x > 8.0, 8.0, x))  # from 8 on it is 0
    return where(small, near + log(expm1c(-exp(near))), log1mexp(exp(far)))


def log_cosh(x: Tensor) -> Tensor:
    """log(cosh(x)) to all digits."""
    small = absolute(x) < 1.0
    s = sinh(where(small, x, 0.0))
    size = absolute(where(small, 1.0, x))
    return where(small, 0.5 * log1p(s * s), size + softplus(-2.0 * size) - LOG2)


def log_cos(x: Tensor) -> Tensor:
    """log(cos(x)) to all digits near 0."""
    small = absolute(x) < 0.5
    s = sin(where(small, x, 0.0))
    return where(small, 0.5 * log1p(-s * s), log(cos(where(small, 0.0, x))))


def log_tanh(x: Tensor) -> Tensor:
    """log(tanh(x)) to all digits where tanh rounds to 1, too; NaN for x < 0."""
    large = x > 1.0
    far = log1p(-2.0 * sigmoid(-2.0 * where(large, x, 1.0)))
    return where(large, far, log(tanh(where(large, 1.0, x))))


def log_erf(x: Tensor) -> Tensor:
    """log(erf(x)) to all digits where erf rounds to 1, too; NaN for x < 0."""
    large = x > 1.0
    far = log1p(-erfc(where(large, x, 1.0)))
    return where(large, far, log(erf(where(large, 1.0, x))))


def log_tanh_slope(x: Tensor) -> Tensor:
    """log(1 / cosh(x)**2)."""
    return -2.0 * log_cosh(x)


def log_sech(x: Tensor) -> Tensor:
    """log(1 / cosh(x))."""
    return -log_cosh(x)


def log_sigmoid_slope(x: Tensor) -> Tensor:
    """log(sigmoid(x) sigmoid(-x))."""
    return -softplus(x) - softplus(-x)


def log1m_square(x: Tensor) -> Tensor:
    """log(1 - x**2) by its factors."""
    small = absolute(x) < 0.5
    near, far = where(small, x, 0.0), where(small, 0.0, x)
    return where(small, log1p(-near * near), log1p(far) + log1p(-far))


def log_square_less_one(x: Tensor) -> Tensor:
    """log(x**2 - 1) by its factors."""
    size = absolute(x)
    return log(size - 1.0) + log1p(size)


def log_sinh(x: Tensor) -> Tensor:
    """log(sinh(x)) without an overflow; NaN for x < 0."""
    small = x < 1.0
    far = where(small, 1.0, x)
    return where(small, log(sinh(where(small, x, 1.0))), far + log1mexp(2.0 * far) - LOG2)


def log_expm1(x: Tensor) -> Tensor:
    """log(exp(x) - 1) without an overflow; NaN for x < 0."""
    small = x < 1.0
    far = where(small, 1.0, x)
    return where(small, log(expm1(where(small, x, 1.0))), far + log1mexp(far))


def log_half_erfc(x: Tensor) -> Tensor:
    """log(erfc(x) / 2) where that underflows or rounds to 0, too."""
    left, right = x < 0.0, x > 1.0
    low, high = where(left, -x, 1.0), where(right, x, 1.0)
    mid = where(logical_or(left, right), 0.5, x)
    tails = where(left, log1p(-0.5 * erfc(low)), log(erfcx(high)) - high * high - LOG2)
    return where(logical_or(left, right), tails, log(0.5 * erfc(mid)))


def log_erfc(x: Tensor) -> Tensor:
    """log(erfc(x)) where erfc underflows, too."""
    right = x > 1.0
    high = where(right, x, 1.0)
    tail = log(erfcx(high)) - high * high
    return where(right, tail, log(erfc(where(right, 0.0, x))))


def tail_ratio(x: Tensor) -> Tensor:
    """exp(-x**2) / erfc(x) where both underflow, too."""
    small = x < 0.0
    near = where(small, x, 0.0)
    return where(small, exp(-near * near) / erfc(near), 1.0 / erfcx(where(small, 0.0, x)))


def scaled_tail(x: Tensor) -> Tensor:
    """exp(x**2) erfc(x) where one overflows and the other underflows."""
    return erfcx(x)


def erf_difference(x: Tensor, y: Tensor) -> Tensor:
    """erf(x) - erf(y), by the tail in which both are."""
    right, left = minimum(x, y) > 0.5, maximum(x, y) < -0.5
    flip = where(left, like(-1.0, x), 1.0)
    tail = logical_or(right, left)
    a, b = where(tail, flip * x, 1.0), where(tail, flip * y, 1.0)
    c, d = where(tail, 0.0, x), where(tail, 0.0, y)
    return where(tail, flip * (erfc(b) - erfc(a)), erf(c) - erf(d))


def exp_difference(x: Tensor, y: Tensor) -> Tensor:
    """exp(x) - exp(y), with the larger one as a factor."""
    with override_gradient(EXP_DIFFERENCE, inputs=[x, y]):
        first = x >= y
        top, low = where(first, x, y), where(first, y, x)
        return where(x > y, like(-1.0, x), 1.0) * exp(top) * expm1(_gap(low, top))


def _gap(x: Tensor, y: Tensor) -> Tensor:
    """x - y; 0 where both are the same infinity."""
    same = logical_and(x == y, logical_not(isfinite(x)))
    return where(same, 0.0, x) - where(same, 0.0, y)


def cos_difference(x: Tensor, y: Tensor) -> Tensor:
    """cos(x) - cos(y) by the sines of half their sum and difference."""
    with override_gradient(COS_DIFFERENCE, inputs=[x, y]):
        near = absolute(x - y) * (1.0 + absolute(x)) < 1.0
        both = -2.0 * sin(0.5 * x + 0.5 * y) * sin(0.5 * x - 0.5 * y)
        return where(near, both, cos(x) - cos(y))


def sin_difference(x: Tensor, y: Tensor) -> Tensor:
    """sin(x) - sin(y) by the cosine of half their sum and the sine of half their difference."""
    with override_gradient(SIN_DIFFERENCE, inputs=[x, y]):
        near = absolute(x - y) * (1.0 + absolute(x)) < 1.0
        both = 2.0 * cos(0.5 * x + 0.5 * y) * sin(0.5 * x - 0.5 * y)
        return where(near, both, sin(x) - sin(y))


def tanh_difference(x: Tensor, y: Tensor) -> Tensor:
    """tanh(x) - tanh(y), of which neither rounds to 1."""
    return 2.0 * sigmoid_difference(2.0 * x, 2.0 * y)


def arctan_difference(x: Tensor, y: Tensor) -> Tensor:
    """arctan(x) - arctan(y) by one angle, where that is small."""
    with override_gradient(ARCTAN_DIFFERENCE, inputs=[x, y]):
        large = minimum(absolute(x), absolute(y)) > 1.0
        below = where(large, y, 1.0)
        part = (x - y) / below
        whole = where(large, x + 1.0 / below, 1.0 + where(large, 0.0, x) * where(large, 0.0, y))
        near = logical_and(absolute(part) < 0.5 * absolute(whole), isfinite(x + y))
        near = logical_and(near, whole * below > 0)
        angle_of = arctan(where(near, part, 0.0) / where(near, whole, 1.0))
        return where(near, angle_of, arctan(x) - arctan(y))


def log_exp_difference(x: Tensor, y: Tensor) -> Tensor:
    """log(exp(x) - exp(y)); NaN for x < y."""
    return x + log1mexp(_gap(x, y))


def sigmoid_difference(x: Tensor, y: Tensor) -> Tensor:
    """sigmoid(x) - sigmoid(y), of which neither rounds to 1."""
    with override_gradient(SIGMOID_DIFFERENCE, inputs=[x, y]):
        first = x >= y
        top, low = where(first, x, y), where(first, y, x)
        size = sigmoid(top) * sigmoid(-low) * expm1(_gap(low, top))
        return where(x > y, like(-1.0, x), 1.0) * size


def log_ratio_difference(x: Tensor, d: Tensor) -> Tensor:
    """log(x + d) - log(x); NaN where either is."""
    with override_gradient(LOG_RATIO_DIFFERENCE, inputs=[x, d]):
        ratio = d / absolute(x)
        apart = logical_or(x < 0, absolute(ratio) == math.inf)
        return where(apart, where(x < 0, log(x), log(x + d) - log(x)), log1p(ratio))


def shifted_log(*pairs: Tensor) -> Tensor:
    """log(w1 exp(x1) + w2 exp(x2) + ...) of (x1, w1, x2, w2, ...)."""
    xs, ws = pairs[::2], pairs[1::2]
    top = finite_or_zero(stop_gradient(reduce(maximum, xs)))
    total = reduce(lambda a, b: a + b, [w * exp(x - top) for x, w in zip(xs, ws, strict=True)])
    return top + log(total)


def _top(
    x: Tensor, axes: int | tuple[int, ...] | None, keep: bool = True, nothing: float = -math.inf
) -> Tensor:
    """The largest of x over axes; of no elements that which is given."""
    lengths = [x.shape[a] for a in normal_axes(axes, x.ndim)]
    return largest(x, axes, keep, initial=None if size_of(lengths) else nothing)


def share(axis: int, x: Tensor) -> Tensor:
    """softmax(x); where another entry is infinity, what is finite has the share 0."""
    lost = logical_and(x < math.inf, _top(x, (axis,)) == math.inf)
    return where(lost, 0.0, softmax(x, axis))


def weighted_log(axes: tuple[int, ...], keep: bool, x: Tensor, w: Tensor) -> Tensor:
    """log(sum(w exp(x)))."""
    top = finite_or_zero(stop_gradient(_top(x, axes)))
    rest = log(total_of(w * exp(x - top), axes, keepdims=keep))
    return rest + (top if keep else squeeze(top, axes))


def weighted_share(axes: tuple[int, ...], x: Tensor, w: Tensor) -> Tensor:
    """exp(x) / sum(w exp(x))."""
    top = finite_or_zero(stop_gradient(_top(x, axes)))
    e = exp(x - top)
    return e / total_of(w * e, axes, keepdims=True)


def weighted_mean(
    axes: tuple[int, ...], keep: bool, x: Tensor, above: Tensor, below: Tensor
) -> Tensor:
    """sum(above exp(x)) / sum(below exp(x))."""
    top = finite_or_zero(stop_gradient(_top(x, axes)))
    e = exp(x - top)
    return total_of(above * e, axes, keepdims=keep) / total_of(below * e, axes, keepdims=keep)


def log_mean(x: Tensor) -> Tensor:
    """log(mean(exp(x))) of all elements."""
    top = finite_or_zero(stop_gradient(_top(x, None, False)))
    return top + log(mean_of(exp(x - top)))


def finite_or_zero(x: Tensor) -> Tensor:
    """x where it is finite, else 0."""
    return where(isfinite(x), x, 0.0)


# --- products with logarithms -------------------------------------------------------------------


def x_log_x(x: Tensor) -> Tensor:
    """x log(x); 0 at 0, where the slope is infinite and none flows."""
    with override_gradient(X_LOG_X, inputs=[x]):
        return x * log(where(x != 0, x, 1.0))


def _x_log_x_slope(site: Site, dy: Tensor) -> Tensor:
    (x,) = site.inputs
    there = x != 0
    return dy * where(there, log(where(there, x, 1.0)) + 1.0, 0.0)


X_LOG_X = own_rule("gg.healing.x_log_x", _x_log_x_slope, contract="exact")


def x_log_y(x: Tensor, y: Tensor) -> Tensor:
    """x log(y); 0 where x is 0 and y is not negative."""
    there = logical_or(x != 0, y < 0)
    return x * log(where(logical_or(there, y > 0), y, 1.0))


def x_log_ratio(x: Tensor, y: Tensor) -> Tensor:
    """x log(x / y); 0 for x = 0, where the slope is infinite and none flows."""
    nought = logical_and(x == 0, y != 0)
    apart = sign(x) * sign(y) < 0
    near = logical_and(absolute(x - y) <= 0.5 * absolute(y), isfinite(y))
    a, b = where(near, x, 1.0), where(near, y, 1.0)
    far = logical_or(logical_or(near, nought), apart)
    c, d = where(far, 1.0, absolute(x)), where(far, 1.0, absolute(y))
    value = where(near, log1p((a - b) / b), log(c) - log(d))
    return x * where(apart, math.nan, value)


def log1p_times(x: Tensor) -> Tensor:
    """(1 + x) log(1 + x); 0 at x = -1."""
    there = x != -1
    return (1.0 + x) * log1p(where(there, x, 0.0))


def log_one_less_square_over(x: Tensor) -> Tensor:
    """log(1 - x**2) / x**2; -1 at 0."""
    return near_zero(x, 0.5, lambda x: -log1pc(-x * x), lambda x: log1m_square(x) / x / x)


def log_one_and_square_over(x: Tensor) -> Tensor:
    """log(1 + x**2) / x**2; 1 at 0."""
    return near_zero(x, 0.5, lambda x: log1pc(x * x), lambda x: log1p_square(x) / x / x)


def log_cosh_over(x: Tensor) -> Tensor:
    """log(cosh(x)) / x**2; 1/2 at 0."""

    def near(x: Tensor) -> Tensor:
        return 0.5 * sinhc(x) ** 2 * log1pc(sinh(x) ** 2)

    return near_zero(x, 0.5, near, lambda x: log_cosh(x) / x / x)


def log_cos_over(x: Tensor) -> Tensor:
    """log(cos(x)) / x**2; -1/2 at 0."""

    def near(x: Tensor) -> Tensor:
        return -0.5 * sinc(x) ** 2 * log1pc(-(sin(x) ** 2))

    return near_zero(x, 0.5, near, lambda x: log_cos(x) / x / x)


# --- differences over what they vanish with


def _divided(x: Tensor, y: Tensor, near: Function, far: Function, size: float = 0.0) -> Tensor:
    """near(middle, difference) where the difference is small, else far(x, y) over it."""
    d = x - y
    small = absolute(d) * (1.0 + size * absolute(x)) < 1.0
    by = where(small, 1.0, d)
    return where(small, near(0.5 * x + 0.5 * y, where(small, d, 0.0)), far(x, y) / by)


def _expm1c_slope(x: Tensor) -> Tensor:
    """The slope of (exp(x) - 1) / x; 1/2 at 0."""
    coefficients = [(k + 1) / math.factorial(k + 2) for k in range(22)]

    def near(x: Tensor) -> Tensor:
        return series(x, coefficients)

    return near_zero(x, 2.0, near, lambda x: (exp(x) - expm1c(x)) / x)


def _divided_exp_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, y = site.inputs
    top, gap = maximum(x, y), -absolute(x - y)
    less = _expm1c_slope(gap)
    more = expm1c(gap) - less
    of_x, of_y = (exp(top) * where(first, more, less) for first in (x >= y, x < y))
    return sum_to(dy * of_x, like=x), sum_to(dy * of_y, like=y)


DIVIDED_EXP = own_rule("gg.healing.divided_exp", _divided_exp_slopes, contract="exact")


def divided_exp(x: Tensor, y: Tensor) -> Tensor:
    """(exp(x) - exp(y)) / (x - y), with the larger one as a factor."""
    with override_gradient(DIVIDED_EXP, inputs=[x, y]):
        return exp(maximum(x, y)) * expm1c(-absolute(x - y))


def divided_sin(x: Tensor, y: Tensor) -> Tensor:
    """(sin(x) - sin(y)) / (x - y)."""
    return _divided(x, y, lambda m, d: cos(m) * sinc(0.5 * d), sin_difference, 1.0)


def divided_cos(x: Tensor, y: Tensor) -> Tensor:
    """(cos(x) - cos(y)) / (x - y)."""
    return _divided(x, y, lambda m, d: -sin(m) * sinc(0.5 * d), cos_difference, 1.0)


def divided_log(x: Tensor, y: Tensor) -> Tensor:
    """(log(x) - log(y)) / (x - y), by arctanh of the difference over the sum."""
    near = logical_and(absolute(x - y) < 0.25 * absolute(x + y), x > 0)
    a, b = where(near, x, 1.0), where(near, y, 1.0)
    by, d = 1.0 / (a + b), where(near, 1.0, x - y)
    q = (a - b) * by
    return where(near, 2.0 * by * series(q * q, _ARCTANH), (log(x) - log(y)) / d)


def divided_root(x: Tensor, y: Tensor) -> Tensor:
    """(sqrt(x) - sqrt(y)) / (x - y)."""
    return 1.0 / (sqrt(x) + sqrt(y))


# --- lengths and angles -------------------------------------------------------------------------


def _scale_of(size: Tensor) -> Tensor:
    """What to divide by: the size, held fixed; 1 where that is 0 or infinite."""
    size = stop_gradient(size)
    return where(logical_and(size > 0, isfinite(size)), size, 1.0)


def norm(axes: tuple[int, ...], keep: bool, x: Tensor) -> Tensor:
    """sqrt(sum(x * x)) without overflow or underflow, with the gradient 0 at 0."""
    s = _scale_of(_top(absolute(x), axes, nothing=0.0))
    u = x / s
    q = total_of(u * u, axes, keepdims=True)
    nought = q == 0
    y = s * where(nought, 0.0, sqrt(where(nought, 1.0, q)))
    return y if keep else squeeze(y, axes)


def whole_norm(length: Tensor) -> Tensor:
    """A length to divide by: 1 where it is 0."""
    return where(length == 0, 1.0, length)


def lengths(*xs: Tensor) -> Tensor:
    """sqrt(x1**2 + x2**2 + ...). Its slopes are directions, whose slopes do not cancel."""
    if len(xs) == 1:
        return absolute(xs[0])
    with override_gradient(LENGTHS, inputs=list(xs)):
        return reduce(hypot, xs)


def _length_slopes(site: Site, dy: Tensor) -> tuple[Tensor, ...]:
    return tuple([sum_to(dy * direction(x, *others), like=x) for x, *others in _each(site.inputs)])


def _each(xs: Sequence[Tensor]) -> list[tuple[Tensor, ...]]:
    """Each of these, with the others."""
    return [(x, *xs[:i], *xs[i + 1 :]) for i, x in enumerate(xs)]


def _direction_slopes(site: Site, dy: Tensor) -> tuple[Tensor, ...]:
    x, *others = site.inputs
    rest, scale = lengths(*others), 1.0 / lengths(x, *others)
    along, across = direction(x, *others), direction(rest, x)
    first = sum_to(dy * (across * across) * scale, like=x)
    parts = [(y, direction(y, x, *left)) for y, *left in _each(others)]
    return first, *[sum_to(-dy * (along * part) * scale, like=y) for y, part in parts]


def _inverse_length_slopes(site: Site, dy: Tensor) -> tuple[Tensor, ...]:
    y = inverse_length(*site.inputs)
    parts = [(x, direction(x, *others)) for x, *others in _each(site.inputs)]
    return tuple([sum_to(-dy * (part * y) * y, like=x) for x, part in parts])


def _log_squares_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, y = site.inputs
    twice = 2.0 * dy
    return sum_to(twice * over_squares(x, y), like=x), sum_to(twice * over_squares(y, x), like=y)


LENGTHS = own_rule("gg.healing.lengths", _length_slopes, contract="exact")
DIRECTION = own_rule("gg.healing.direction", _direction_slopes, contract="exact")
INVERSE_LENGTH = own_rule("gg.healing.inverse_length", _inverse_length_slopes, contract="exact")
LOG_SQUARES = own_rule("gg.healing.log_squares", _log_squares_slopes, contract="exact")


def direction(x: Tensor, *others: Tensor) -> Tensor:
    """x / sqrt(x**2 + y1**2 + ...); 0 at 0. Its slopes are products, without a difference."""
    with override_gradient(DIRECTION, inputs=[x, *others]):
        return x / whole_norm(reduce(hypot, others, x))


def inverse_length(*xs: Tensor) -> Tensor:
    """1 / sqrt(x1**2 + x2**2 + ...), of which the slopes by what is 0 are 0."""
    with override_gradient(INVERSE_LENGTH, inputs=list(xs)):
        return 1.0 / reduce(hypot, xs)


def log_squares(x: Tensor, y: Tensor) -> Tensor:
    """log(x**2 + y**2) without an overflow, and to all digits where that is near 1."""
    with override_gradient(LOG_SQUARES, inputs=[x, y]):
        a, b = maximum(absolute(x), absolute(y)), minimum(absolute(x), absolute(y))
        near = logical_and(a > 0.5, a < 1.5)
        c, d = where(near, a, 1.0), where(near, b, 0.0)
        return where(near, log1p((c - 1.0) * (c + 1.0) + d * d), 2.0 * log(hypot(a, b)))


def _inverse_norm_slope(site: Site, dy: Tensor) -> Tensor:
    (x,) = site.inputs
    y = inverse_norm(tuple([i for i, d in enumerate(dy.shape) if d == 1]), True, x)
    return -dy * ((x * y) * y) * y


INVERSE_NORM = own_rule("gg.healing.inverse_norm", _inverse_norm_slope, contract="exact")


def inverse_norm(axes: tuple[int, ...], keep: bool, x: Tensor) -> Tensor:
    """1 / sqrt(sum(x * x)), of which the slope by what is 0 is 0."""
    with override_gradient(INVERSE_NORM, inputs=[x]):
        y = 1.0 / norm(axes, True, x)
    return y if keep else squeeze(y, axes)


def _squares_difference_slopes(site: Site, dy: Tensor) -> tuple[Tensor, ...]:
    x, y, s = site.inputs
    twice = 2.0 * dy * s
    by_s = 2.0 * dy * ((x - y) * ((x + y) * s))
    return sum_to(twice * (x * s), like=x), sum_to(-twice * (y * s), like=y), sum_to(by_s, like=s)


SQUARES_DIFFERENCE = own_rule(
    "gg.healing.squares_difference", _squares_difference_slopes, contract="exact"
)


def squares_difference(x: Tensor, y: Tensor, s: Tensor) -> Tensor:
    """s**2 (x**2 - y**2) by its factors, with the slopes of the squares."""
    with override_gradient(SQUARES_DIFFERENCE, inputs=[x, y, s]):
        return ((x - y) * s) * ((x + y) * s)


def _over_squares_slopes(site: Site, dy: Tensor) -> tuple[Tensor, ...]:
    x, *others = site.inputs
    rest, s = lengths(*others), inverse_length(x, *others)
    first = sum_to(dy * (squares_difference(rest, x, s) * s * s), like=x)
    away = -2.0 * dy * direction(x, *others) * s * s
    return first, *[sum_to(away * direction(y, x, *left), like=y) for y, *left in _each(others)]


OVER_SQUARES = own_rule("gg.healing.over_squares", _over_squares_slopes, contract="exact")


def over_squares(x: Tensor, *others: Tensor) -> Tensor:
    """x / (x**2 + y1**2 + ...), of which the slope along x is the product of two differences."""
    with override_gradient(OVER_SQUARES, inputs=[x, *others]):
        length = reduce(hypot, others, x)
        return x / length / length


def _root_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, y = site.inputs
    return sum_to(dy * over_root(x, y), like=x), sum_to(-dy * under_root(x, y), like=y)


def _over_root_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, y = site.inputs
    a, b, r = over_root(x, y), under_root(x, y), root_of_difference(x, y)
    return sum_to(-dy * (b * b) / r, like=x), sum_to(dy * (a * b) / r, like=y)


def _under_root_slopes(site: Site, dy: Tensor) -> tuple[Tensor, Tensor]:
    x, y = site.inputs
    a, b, r = over_root(x, y), under_root(x, y), root_of_difference(x, y)
    return sum_to(-dy * (a * b) / r, like=x), sum_to(dy * (a * a) / r, like=y)


ROOT = own_rule("gg.healing.root_of_difference", _root_slopes, contract="exact")
OVER_ROOT = own_rule("gg.healing.over_root", _over_root_slopes, contract="exact")
UNDER_ROOT = own_rule("gg.healing.under_root", _under_root_slopes, contract="exact")


def root_of_difference(x: Tensor, y: Tensor) -> Tensor:
    """sqrt(x**2 - y**2) by its factors."""
    with override_gradient(ROOT, inputs=[x, y]):
        return _factored_root(x, y)


def over_root(x: Tensor, y: Tensor) -> Tensor:
    """x / sqrt(x**2 - y**2)."""
    with override_gradient(OVER_ROOT, inputs=[x, y]):
        return x / _factored_root(x, y)


def under_root(x: Tensor, y: Tensor) -> Tensor:
    """y / sqrt(x**2 - y**2)."""
    with override_gradient(UNDER_ROOT, inputs=[x, y]):
        return y / _factored_root(x, y)


def _factored_root(x: Tensor, y: Tensor) -> Tensor:
    a, b = absolute(x), absolute(y)
    return sqrt(a - b) * sqrt(a + b)


def scaled_root(signs: tuple[float, ...], *pairs: Tensor) -> Tensor:
    """sqrt(c1 x1 y1 + c2 x2 y2 + ...) of (x1, y1, x2, y2, ...), without overflow or underflow."""
    xs, ys = pairs[::2], pairs[1::2]
    sizes = [sqrt(absolute(x)) * sqrt(absolute(y)) for x, y in zip(xs, ys, strict=True)]
    s = _scale_of(reduce(maximum, sizes))
    parts = []
    for c, x, y in zip(signs, xs, ys, strict=True):
        big = stop_gradient(absolute(x) >= absolute(y))
        a, b = where(big, x, y), where(big, y, x)
        parts.append(c * (a / s) * (b / s))
    return s * sqrt(reduce(lambda a, b: a + b, parts))


def angle(axes: tuple[int, ...], keep: bool, x: Tensor, y: Tensor) -> Tensor:
    """The angle between x and y, to all digits for parallel ones, too."""
    u, v = x / norm(axes, True, x), y / norm(axes, True, y)
    cosine = total_of(u * v, axes, keepdims=keep)
    apart = absolute(cosine) < 0.7
    near = 2.0 * arctan2(norm(axes, keep, u - v), norm(axes, keep, u + v))
    return where(apart, arccos(where(apart, cosine, 0.0)), near)


# --- sums, products, matrices -------------------------------------------------------------------


def variance(axes: tuple[int, ...], keep: bool, x: Tensor) -> Tensor:
    """mean(x * x) - mean(x)**2 of what is left of x without its mean."""
    c = x - mean_of(x, axes, keepdims=True)
    return mean_of(c * c, axes, keepdims=keep)


def covariance(axes: tuple[int, ...], keep: bool, x: Tensor, y: Tensor) -> Tensor:
    """mean(x * y) - mean(x) mean(y) of what is left of both without their means."""
    a, b = x - mean_of(x, axes, keepdims=True), y - mean_of(y, axes, keepdims=True)
    return mean_of(a * b, axes, keepdims=keep)


def product_of_logs(axes: tuple[int, ...], keep: bool, x: Tensor) -> Tensor:
    """exp(sum(log(x))): the product, whatever order overflows on the way; NaN for x < 0."""
    ordinary = logical_and(isfinite(x), x > 0)
    _, e = frexp(stop_gradient(where(ordinary, x, 1.0)))
    power = total_of(e, axes, keepdims=True)
    half = power // 2
    y = product_of(ldexp(where(x < 0, math.nan, x), -e), axes, keepdims=True)
    y = ldexp(ldexp(y, half), power - half)
    return y if keep else squeeze(y, axes)


def geometric(n: int, x: Tensor) -> Tensor:
    """(1 - x**n) / (1 - x): 1 + x + ... + x**(n-1)."""
    return series(x, [1.0] * n)


def gammaln_step(n: int, x: Tensor) -> Tensor:
    """gammaln(x + n) - gammaln(x): log|x| + ... + log|x + n - 1|; NaN where both are poles."""
    return _unless_poles(n, x, reduce(lambda a, b: a + b, [log(absolute(x + k)) for k in range(n)]))


def digamma_step(n: int, x: Tensor) -> Tensor:
    """digamma(x + n) - digamma(x): 1 / x + ... + 1 / (x + n - 1); NaN where both are poles."""
    return _unless_poles(n, x, reduce(lambda a, b: a + b, [1.0 / (x + k) for k in range(n)]))


def _unless_poles(n: int, x: Tensor, y: Tensor) -> Tensor:
    return where(logical_and(x == floor(x), x <= -n), math.nan, y)


def _power_less_one_slope(site: Site, dy: Tensor) -> Tensor:
    (x,) = site.inputs
    n: int = site.attrs["n"]
    return dy * (n * (1.0 + x) ** (n - 1))


POWER_LESS_ONE = own_rule("gg.healing.power_less_one", _power_less_one_slope, contract="exact")


def power_less_one(n: int, x: Tensor) -> Tensor:
    """(1 + x)**n - 1."""
    with override_gradient(POWER_LESS_ONE, inputs=[x], n=n):
        return x * geometric(n, 1.0 + x)


def log_det(a: Tensor) -> Tensor:
    """log(det(a)); NaN where the determinant is negative."""
    sign_of, size = slogdet(a)
    return where(stop_gradient(sign_of) < 0, math.nan, size)


def larger_root(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """(-b + sqrt(b**2 - 4 a c)) / (2 a) without cancelling."""
    root = scaled_root((1.0, -4.0), b, b, a, c)
    away = b > 0
    far = where(away, root + where(away, b, 0.0), 1.0)
    return where(away, -2.0 * c / far, 0.5 * (root - where(away, 0.0, b)) / a)
