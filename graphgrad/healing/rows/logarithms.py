"""Logarithms near 1, of powers and of ratios."""

from __future__ import annotations

from ..identity import peephole, regimes, scaling
from ..rules.logarithms import difference_of_logs, log_near_one, log_of_power, log_of_ratio
from .sources import ABOVE, GOLDBERG, HIGHAM, INF, KAHAN, POSITIVE, UNIT

LOGARITHMS = (
    peephole("expm1", "exp(x) - 1 -> expm1(x)", "cancels near 0", HIGHAM),
    peephole(
        "arcsinh",
        "log(x + sqrt(x**2 + 1)) -> arcsinh(x)",
        "cancels for x < 0, overflows from 1e154",
        KAHAN,
    ),
    peephole(
        "arccosh",
        "log(x + sqrt(x**2 - 1)) -> arccosh(x)",
        "overflows from 1e154, rounds near 1",
        KAHAN,
        ranges=((1, INF),),
    ),
    peephole(
        "arctanh",
        "log((1 + x) / (1 - x)) / 2 -> arctanh(x)",
        "rounds near 0",
        KAHAN,
        naive="log((1 + x) / (1 - x))",
        stable="2 * arctanh(x)",
        ranges=UNIT,
    ),
    scaling(
        "log_of_length",
        "log(x**2 + y**2) -> 2 log(hypot(x, y))",
        "x**2 overflows or underflows",
        HIGHAM,
        rule=log_of_power,
    ),
    regimes(
        "log_one_less_square",
        "log(1 - x**2) -> log1p(x) + log1p(-x)",
        "x**2 rounds near 1",
        GOLDBERG,
        stable="log1m_square(x)",
        ranges=UNIT,
    ),
    peephole(
        "log_square_less_one",
        "log(x**2 - 1) -> log(|x| - 1) + log1p(|x|)",
        "x**2 overflows, and rounds near 1",
        GOLDBERG,
        stable="log_square_less_one(x)",
        ranges=((1, INF),),
    ),
    peephole(
        "log_of_power",
        "log(x**n) -> n log(x)",
        "x**n overflows or underflows",
        GOLDBERG,
        naive="log(x**3)",
        stable="3 * log(x)",
        ranges=POSITIVE,
        rule=log_of_power,
    ),
    regimes(
        "log1p_square",
        "log(1 + x**2) -> 2 log(|x|) + log1p(1 / x**2) for |x| > 1",
        "x**2 overflows or rounds",
        GOLDBERG,
        stable="log1p_square(x)",
        rule=log_of_power,
    ),
    peephole(
        "log_of_ratio",
        "log(a / b) -> log1p((a - b) / b) near a = b, where a - b is shorter",
        "a / b rounds near 1",
        GOLDBERG,
        naive="log((x + 2) / (x + 1))",
        stable="log1p(1 / (x + 1))",
        ranges=POSITIVE,
        rule=log_of_ratio,
    ),
    peephole(
        "log1p", "log(1 + x) -> log1p(x)", "1 + x rounds", GOLDBERG, ranges=ABOVE, rule=log_near_one
    ),
    peephole(
        "arctanh_of_log1p",
        "log(1 + x) - log(1 - x) -> 2 arctanh(x)",
        "1 + x rounds",
        KAHAN,
        naive="log1p(x) - log1p(-x)",
        ranges=UNIT,
    ),
    regimes(
        "difference_of_logs",
        "log(x + 1) - log(x) -> log1p(1 / x)",
        "cancels for large x",
        GOLDBERG,
        naive="log(x + 2) - log(x + 3)",
        stable="log_ratio_difference(x + 3, -1 + 0 * x)",
        ranges=POSITIVE,
        rule=difference_of_logs,
    ),
)
