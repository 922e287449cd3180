"""Logarithms near 1, of powers and of ratios."""

from __future__ import annotations

from .reading import rows

LOGARITHMS = rows("""
arcsinh = peephole: log(x + sqrt(x**2 + 1)) -> arcsinh(x)
    cancels for x < 0, overflows from 1e154 | KAHAN
arcsinh_of_difference = peephole: log(sqrt(x**2 + 1) - x) -> -arcsinh(x)
    cancels for x > 0, overflows from 1e154 | KAHAN
arccosh = peephole: log(x + sqrt(x**2 - 1)) -> arccosh(x)
    overflows from 1e154, rounds near 1 | KAHAN | ranges ((1, INF),)
arctanh = peephole: log((1 + x) / (1 - x)) / 2 -> arctanh(x)
    rounds near 0 | KAHAN | naive log((1 + x) / (1 - x)) | stable 2 * arctanh(x) | ranges UNIT
log_of_length = scaling: log(x**2 + y**2) -> 2 log(hypot(x, y))
    x**2 overflows or underflows | HIGHAM | rule log_of_power
log_one_less_square = regimes: log(1 - x**2) -> log1p(x) + log1p(-x)
    x**2 rounds near 1 | GOLDBERG | stable log1m_square(x) | ranges UNIT
log_square_less_one = peephole: log(x**2 - 1) -> log(|x| - 1) + log1p(|x|)
    x**2 overflows, and rounds near 1 | GOLDBERG | stable log_square_less_one(x) |
    ranges ((1, INF),)
log_of_power = peephole: log(x**n) -> n log(x)
    x**n overflows or underflows | GOLDBERG | naive log(x**3) | stable 3 * log(x) |
    ranges POSITIVE | rule log_of_power
log1p_square = regimes: log(1 + x**2) -> 2 log(|x|) + log1p(1 / x**2) for |x| > 1
    x**2 overflows or rounds | GOLDBERG | stable log1p_square(x) | rule log_of_power
log_of_ratio = peephole: log(a / b) -> log1p((a - b) / b) near a = b, where a - b is shorter
    a / b rounds near 1 | GOLDBERG | naive log((x + 2) / (x + 1)) | stable log1p(1 / (x + 1)) |
    ranges POSITIVE | rule log_of_ratio
log1p = peephole: log(1 + x) -> log1p(x)
    1 + x rounds | GOLDBERG | ranges ABOVE | rule log_near_one
log1p_inverse = closed: log(1 + 1 / x) -> its slope is -1 / x / (1 + x)
    its gradient is 0 times infinity near 0 | GOLDBERG | stable log1p_inverse(x) | ranges POSITIVE |
    rule log_near_one
arctanh_of_log1p = peephole: log(1 + x) - log(1 - x) -> 2 arctanh(x)
    1 + x rounds | KAHAN | naive log1p(x) - log1p(-x) | ranges UNIT
logit = regimes: log(x) - log(1 - x) -> 2 arctanh(2 x - 1) near 1 / 2
    cancels near 1 / 2 | KAHAN | naive log(x) - log1p(-x) | stable logit(x) | ranges ((0, 1),)
logit_of_odds = regimes: log(x / (1 - x)) -> 2 arctanh(2 x - 1) near 1 / 2
    rounds near 1 / 2 | KAHAN | stable logit(x) | ranges ((0, 1),) | rule logit_of_odds
logit_of_inverse = regimes: log(1 / x - 1) -> -2 arctanh(2 x - 1) near 1 / 2
    rounds near 1 and 1 / 2 | KAHAN | stable -logit(x) | ranges ((0, 1),)
log_share_of_exp = regimes: log(y / (y + exp(x))) -> -softplus(x - log(y))
    exp(x) overflows | MAECHLER | stable log_share_of_exp(x, y) | ranges ((-INF, INF), (0, INF))
log_exp_share = regimes: log(exp(x) / (y + exp(x))) -> -softplus(log(y) - x)
    exp(x) overflows | MAECHLER | stable log_exp_share(x, y) | ranges ((-INF, INF), (0, INF))
difference_of_logs = regimes: log(x + 1) - log(x) -> log1p(1 / x)
    cancels for large x | GOLDBERG | naive log(x + 2) - log(x + 3) |
    stable log_ratio_difference(-1 + 0 * x, x + 2, x + 3) | ranges POSITIVE |
    rule difference_of_logs
""")
