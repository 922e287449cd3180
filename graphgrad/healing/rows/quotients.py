"""Differences that vanish at 0, and quotients that are 0 / 0 there."""

from __future__ import annotations

from .reading import rows

QUOTIENTS = rows("""
one_less_cos = peephole: 1 - cos(x) -> 2 sin(x / 2)**2
    cancels near 0 | DLMF_4
cosh_less_one = peephole: cosh(x) - 1 -> 2 sinh(x / 2)**2
    cancels near 0 | DLMF_4
one_and_cos = peephole: 1 + cos(x) -> 2 cos(x / 2)**2
    cancels near pi | DLMF_4
one_less_cos_square = peephole: 1 - cos(x)**2 -> sin(x)**2
    cancels near 0 | DLMF_4
one_less_sin_square = peephole: 1 - sin(x)**2 -> cos(x)**2
    cancels near pi / 2 | DLMF_4
cosh_square_less_one = peephole: cosh(x)**2 - 1 -> sinh(x)**2
    cancels near 0 | DLMF_4
tan_less_sin = peephole: tan(x) - sin(x) -> 2 tan(x) sin(x / 2)**2
    cancels near 0 | DLMF_4
sinh_less_tanh = regimes: sinh(x) - tanh(x) -> 2 tanh(x) sinh(x / 2)**2 near 0
    cancels near 0 | DLMF_4 | stable sinh_less_tanh(x)
tan_of_half = peephole: (1 - cos(x)) / sin(x) -> tan(x / 2)
    0 / 0 at 0 | DLMF_4
half_of_tan = peephole: sin(x) / (1 + cos(x)) -> tan(x / 2)
    0 / 0 near pi | DLMF_4
difference_of_sines = regimes: sin(x) - sin(y) -> 2 cos((x + y) / 2) sin((x - y) / 2)
    cancels where x is near y | DLMF_4 | stable sin_difference(x, y) | rule difference_of_sines
difference_of_cosines = peephole: cos(x) - cos(y) -> -2 sin((x + y) / 2) sin((x - y) / 2)
    cancels where x is near y | DLMF_4 | stable cos_difference(x, y)
sinc = regimes: sin(x) / x -> sinc(x)
    0 / 0 at 0 | SERIES | rule vanishing_quotient
sinhc = regimes: sinh(x) / x -> 1 + x**2 / 6 + ... near 0
    0 / 0 at 0 | SERIES | stable sinhc(x) | rule vanishing_quotient
tanc = regimes: tan(x) / x -> sinc(x) / cos(x)
    0 / 0 at 0 | SERIES | stable tanc(x) | rule vanishing_quotient
tanhc = regimes: tanh(x) / x -> 1 - x**2 / 3 + ... near 0
    0 / 0 at 0 | SERIES | stable tanhc(x) | rule vanishing_quotient
arctanc = regimes: arctan(x) / x -> 1 - x**2 / 3 + ... near 0
    0 / 0 at 0 | SERIES | stable arctanc(x) | rule vanishing_quotient
arcsinc = regimes: arcsin(x) / x -> 1 + x**2 / 6 + ... near 0
    0 / 0 at 0 | SERIES | stable arcsinc(x) | ranges UNIT | rule vanishing_quotient
expm1c = regimes: (exp(x) - 1) / x -> 1 + x / 2 + ... near 0
    0 / 0 at 0 | SERIES | naive expm1(x) / x | stable expm1c(x) | rule vanishing_quotient
log1pc = regimes: log(1 + x) / x -> 1 - x / 2 + ... near 0
    0 / 0 at 0 | SERIES | naive log1p(x) / x | stable log1pc(x) | ranges ABOVE |
    rule vanishing_quotient
geometric_sum = peephole: (1 - x**n) / (1 - x) -> 1 + x + ... + x**(n-1)
    0 / 0 at 1 | HIGHAM | naive (1 - x**5) / (1 - x) | stable geometric(5, x) | rule geometric_sum
x_less_sin = regimes: x - sin(x) -> x**3 / 6 - ... near 0
    cancels near 0 | SERIES | form VANISHES["sin_deficit"]
sinh_less_x = regimes: sinh(x) - x -> x**3 / 6 + ... near 0
    cancels near 0 | SERIES | form VANISHES["sinh_excess"]
tan_less_x = regimes: tan(x) - x -> x**3 / 3 + ... near 0
    cancels near 0 | SERIES | form VANISHES["tan_excess"] | ranges ((-1.5, 1.5),)
x_less_arctan = regimes: x - arctan(x) -> x**3 / 3 - ... near 0
    cancels near 0 | SERIES | form VANISHES["arctan_deficit"]
x_less_tanh = regimes: x - tanh(x) -> x**3 / 3 - ... near 0
    cancels near 0 | SERIES | form VANISHES["tanh_deficit"]
sin_less_x_cos = regimes: sin(x) - x cos(x) -> x**3 / 3 - ... near 0
    cancels near 0 | SERIES | form VANISHES["spherical_excess"]
expm1_less_x = regimes: expm1(x) - x -> x**2 / 2 + ... near 0
    cancels near 0 | SERIES | form VANISHES["expm1_excess"]
exp_less_tangent = regimes: exp(x) - x - 1 -> x**2 / 2 + ... near 0
    cancels near 0 | SERIES | form VANISHES["expm1_excess"] | partial
x_less_log1p = regimes: x - log1p(x) -> x**2 / 2 - ... near 0
    cancels near 0 | SERIES | form VANISHES["log1p_deficit"] | ranges ABOVE
ratio_of_vanishing = regimes: (x - sin(x)) / (x - tan(x)) -> -1 / 2 + ... near 0
    0 / 0 at 0 | SERIES | naive sinh(x) / sin(x) | stable sinhc(x) / sinc(x) |
    rule ratio_of_vanishing
divided_difference = regimes: (exp(x) - exp(y)) / (x - y)
        -> exp((x + y) / 2) sinh((x - y) / 2) / ((x - y) / 2)
    0 / 0 where x is y | HIGHAM | stable divided_exp(x, y) | rule divided_difference
vanishing_quotient = regimes: (x - sin(x)) / x**3 -> 1 / 6 - x**2 / 120 + ... near 0
    0 / 0 at 0 | SERIES | stable sin_deficit(x) | rule vanishing_quotient
""")
