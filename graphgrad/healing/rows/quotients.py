"""Differences that vanish at 0, and quotients that are 0 / 0 there."""

from __future__ import annotations

from ..identity import Ranges, RealIdentity, peephole, regimes
from ..rules.differences import difference_of_sines
from ..rules.quotients import (
    VANISHES,
    divided_difference,
    geometric_sum,
    ratio_of_vanishing,
    vanishing_quotient,
)
from .sources import ABOVE, DLMF_4, HIGHAM, SERIES, UNIT


def vanishing(name: str, algebra: str, form: str, ranges: Ranges = ()) -> RealIdentity:
    """A difference that is a series near 0, of which a form is what is left over a power."""
    return regimes(name, algebra, "cancels near 0", SERIES, stable=VANISHES[form], ranges=ranges)


QUOTIENTS = (
    peephole("one_less_cos", "1 - cos(x) -> 2 sin(x / 2)**2", "cancels near 0", DLMF_4),
    peephole("cosh_less_one", "cosh(x) - 1 -> 2 sinh(x / 2)**2", "cancels near 0", DLMF_4),
    peephole("one_and_cos", "1 + cos(x) -> 2 cos(x / 2)**2", "cancels near pi", DLMF_4),
    peephole("one_less_cos_square", "1 - cos(x)**2 -> sin(x)**2", "cancels near 0", DLMF_4),
    peephole("one_less_sin_square", "1 - sin(x)**2 -> cos(x)**2", "cancels near pi / 2", DLMF_4),
    peephole("cosh_square_less_one", "cosh(x)**2 - 1 -> sinh(x)**2", "cancels near 0", DLMF_4),
    peephole("tan_less_sin", "tan(x) - sin(x) -> 2 tan(x) sin(x / 2)**2", "cancels near 0", DLMF_4),
    peephole(
        "sinh_less_tanh", "sinh(x) - tanh(x) -> 2 tanh(x) sinh(x / 2)**2", "cancels near 0", DLMF_4
    ),
    peephole("tan_of_half", "(1 - cos(x)) / sin(x) -> tan(x / 2)", "0 / 0 at 0", DLMF_4),
    peephole("half_of_tan", "sin(x) / (1 + cos(x)) -> tan(x / 2)", "0 / 0 near pi", DLMF_4),
    regimes(
        "difference_of_sines",
        "sin(x) - sin(y) -> 2 cos((x + y) / 2) sin((x - y) / 2)",
        "cancels where x is near y",
        DLMF_4,
        stable="sin_difference(x, y)",
        rule=difference_of_sines,
    ),
    peephole(
        "difference_of_cosines",
        "cos(x) - cos(y) -> -2 sin((x + y) / 2) sin((x - y) / 2)",
        "cancels where x is near y",
        DLMF_4,
        stable="cos_difference(x, y)",
    ),
    regimes("sinc", "sin(x) / x -> sinc(x)", "0 / 0 at 0", SERIES, rule=vanishing_quotient),
    regimes(
        "sinhc",
        "sinh(x) / x -> 1 + x**2 / 6 + ... near 0",
        "0 / 0 at 0",
        SERIES,
        stable="sinhc(x)",
        rule=vanishing_quotient,
    ),
    regimes(
        "tanc",
        "tan(x) / x -> sinc(x) / cos(x)",
        "0 / 0 at 0",
        SERIES,
        stable="tanc(x)",
        rule=vanishing_quotient,
    ),
    regimes(
        "tanhc",
        "tanh(x) / x -> 1 - x**2 / 3 + ... near 0",
        "0 / 0 at 0",
        SERIES,
        stable="tanhc(x)",
        rule=vanishing_quotient,
    ),
    regimes(
        "arctanc",
        "arctan(x) / x -> 1 - x**2 / 3 + ... near 0",
        "0 / 0 at 0",
        SERIES,
        stable="arctanc(x)",
        rule=vanishing_quotient,
    ),
    regimes(
        "arcsinc",
        "arcsin(x) / x -> 1 + x**2 / 6 + ... near 0",
        "0 / 0 at 0",
        SERIES,
        stable="arcsinc(x)",
        ranges=UNIT,
        rule=vanishing_quotient,
    ),
    regimes(
        "expm1c",
        "(exp(x) - 1) / x -> 1 + x / 2 + ... near 0",
        "0 / 0 at 0",
        SERIES,
        naive="expm1(x) / x",
        stable="expm1c(x)",
        rule=vanishing_quotient,
    ),
    regimes(
        "log1pc",
        "log(1 + x) / x -> 1 - x / 2 + ... near 0",
        "0 / 0 at 0",
        SERIES,
        naive="log1p(x) / x",
        stable="log1pc(x)",
        ranges=ABOVE,
        rule=vanishing_quotient,
    ),
    peephole(
        "geometric_sum",
        "(1 - x**n) / (1 - x) -> 1 + x + ... + x**(n-1)",
        "0 / 0 at 1",
        HIGHAM,
        naive="(1 - x**5) / (1 - x)",
        stable="geometric(5, x)",
        rule=geometric_sum,
    ),
    vanishing("x_less_sin", "x - sin(x) -> x**3 / 6 - ... near 0", "sin_deficit"),
    vanishing("sinh_less_x", "sinh(x) - x -> x**3 / 6 + ... near 0", "sinh_excess"),
    vanishing("tan_less_x", "tan(x) - x -> x**3 / 3 + ... near 0", "tan_excess", ((-1.5, 1.5),)),
    vanishing("x_less_arctan", "x - arctan(x) -> x**3 / 3 - ... near 0", "arctan_deficit"),
    vanishing("x_less_tanh", "x - tanh(x) -> x**3 / 3 - ... near 0", "tanh_deficit"),
    vanishing("sin_less_x_cos", "sin(x) - x cos(x) -> x**3 / 3 - ... near 0", "spherical_excess"),
    vanishing("expm1_less_x", "expm1(x) - x -> x**2 / 2 + ... near 0", "expm1_excess"),
    regimes(
        "exp_less_tangent",
        "exp(x) - x - 1 -> x**2 / 2 + ... near 0",
        "cancels near 0",
        SERIES,
        stable=VANISHES["expm1_excess"],
        partial=True,
    ),
    vanishing("x_less_log1p", "x - log1p(x) -> x**2 / 2 - ... near 0", "log1p_deficit", ABOVE),
    regimes(
        "ratio_of_vanishing",
        "(x - sin(x)) / (x - tan(x)) -> -1 / 2 + ... near 0",
        "0 / 0 at 0",
        SERIES,
        naive="sinh(x) / sin(x)",
        stable="sinhc(x) / sinc(x)",
        rule=ratio_of_vanishing,
    ),
    regimes(
        "divided_difference",
        "(exp(x) - exp(y)) / (x - y) -> exp((x + y) / 2) sinh((x - y) / 2) / ((x - y) / 2)",
        "0 / 0 where x is y",
        HIGHAM,
        stable="divided_exp(x, y)",
        rule=divided_difference,
    ),
    regimes(
        "vanishing_quotient",
        "(x - sin(x)) / x**3 -> 1 / 6 - x**2 / 120 + ... near 0",
        "0 / 0 at 0",
        SERIES,
        stable="sin_deficit(x)",
        rule=vanishing_quotient,
    ),
)
