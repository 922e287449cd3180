"""Angles, moments, matrices, x log x, the error function, gamma functions."""

from __future__ import annotations

from .reading import rows

OTHERS = rows("""
angle = scaling: arccos(sum(x y) / (|x| |y|)) -> 2 arctan2(|u - v|, |u + v|)
    loses half the digits near 0 | 'Kahan 2006, "How futile are mindless assessments of roundoff"' |
    naive arccos(sum(x * y) / (sqrt(sum(x * x)) * sqrt(sum(y * y)))) |
    stable angle(0, False, x, y) | shapes VV | rule arccos_of_cosine
csch = regimes: 1 / sinh(x) -> 2 sign(x) exp(-|x|) / (1 - exp(-2 |x|))
    its gradient is infinity over infinity | DLMF_4 | stable csch(x) | last
sech = regimes: 1 / cosh(x) -> 2 exp(-|x|) sigmoid(2 |x|)
    its gradient is infinity over infinity | DLMF_4 | stable sech(x) | last
inverse_expm1 = closed: 1 / (exp(x) - 1)
        -> -exp(-x) / expm1(-x); its slope is -1 / (4 sinh(x / 2)**2)
    its gradient is infinity over infinity | DLMF_4 | naive 1 / expm1(x) | stable inverse_expm1(x) |
    last
coth_less_csch = peephole: 1 / tanh(x) - 1 / sinh(x) -> tanh(x / 2)
    infinity minus infinity at 0 | DLMF_4
variance = peephole: mean(x**2) - mean(x)**2 -> mean((x - mean(x))**2)
    cancels for a large mean | HIGHAM | stable variance(0, False, x) | shapes V |
    rule central_moment
covariance = peephole: mean(x y) - mean(x) mean(y) -> mean((x - mean(x)) (y - mean(y)))
    cancels for large means | HIGHAM | stable covariance(0, False, x, y) | shapes VV |
    rule central_moment
solve = peephole: inv(a) @ b -> solve(a, b)
    the inverse overflows or rounds | HIGHAM | shapes ((3, 3), (3, 2))
power_times_log = closed: x**n log(x) -> x**(n-1) (x log(x))
    the slope x**n / x underflows | "DLMF 4.4" | naive x**2 * log(x) | stable x * x_log_x(x) |
    ranges POSITIVE | rule power_times_log
x_log_x = closed: x log(x) -> 0 at 0
    0 times infinity at 0 | "DLMF 4.4" | stable x_log_x(x) | ranges POSITIVE
x_log_ratio = regimes: x log(x / y) -> x log1p((x - y) / y) for x near y
    x / y rounds near 1, overflows or underflows | GOLDBERG | stable x_log_ratio(x, y) |
    ranges 2 * POSITIVE
x_log_y = closed: x log(y) -> 0 where x is 0
    0 times infinity | "scipy.special.xlogy" | stable x_log_y(x, y) |
    ranges ((-INF, INF), (0, INF))
log1p_times = closed: (1 - x) log(1 - x) -> (1 - x) log1p(-x); 0 at 1
    0 times infinity at 1 | "scipy.special.xlog1py" | naive (1 + x) * log1p(x) |
    stable log1p_times(x) | ranges ABOVE
x_log1p_inverse = closed: x log(1 + 1 / x) -> its slope is log(1 + 1 / x) - 1 / (1 + x)
    the slope is infinity times 0 near 0, and cancels for large x | GOLDBERG |
    stable x_log1p_inverse(x) | ranges POSITIVE
x_log_inverse_ratio = regimes: x log(y / x) -> -x log1p((x - y) / y) for x near y
    y / x rounds near 1, overflows or underflows | GOLDBERG | stable -x_log_ratio(x, y) |
    ranges 2 * POSITIVE
divergence = regimes: x log(x / y) - x + y -> (x - y)**2 / (2 y) - ... for x near y
    cancels where x is near y | SERIES | stable divergence(x, y) | ranges 2 * POSITIVE | partial
divergence_of_two = regimes: x log(x / y) + (1 - x) log((1 - x) / (1 - y))
        -> both with their tangents
    cancels where x is near y | SERIES | stable divergence_of_two(x, y) | ranges ((0, 1), (0, 1))
log_less_tangent = regimes: x - log(x) - 1 -> (x - 1)**2 / 2 - ... near 1
    cancels near 1 | SERIES | stable log_less_tangent(x) | ranges POSITIVE | partial
log_ratio_less_tangent = regimes: y / x + log(x / y) - 1 -> (x - y)**2 / (2 x y) - ... for x near y
    cancels where x is near y | SERIES | stable log_ratio_less_tangent(x, y) | ranges 2 * POSITIVE |
    partial
logs_less_tangent = regimes: y / x + log(x) - log(y) - 1 -> (x - y)**2 / (2 x y) - ... for x near y
    cancels where x is near y | SERIES | stable log_ratio_less_tangent(x, y) | ranges 2 * POSITIVE |
    partial
softsign = closed: x / (1 + |x|) -> its slope is 1 / (1 + |x|)**2
    the slope cancels for large x | HIGHAM | stable softsign(x) | last
log_square_less_tangent = regimes: x**2 - 2 log(x) - 1 -> (x - 1)**2 (x + 1)**2 / 2 - ... near 1
    cancels near 1 | SERIES | stable log_square_less_tangent(x) | ranges POSITIVE | partial
log_of_square_less_tangent = regimes: x**2 - log(x**2) - 1 -> (x - 1)**2 (x + 1)**2 / 2 - ... near 1
    cancels near 1 | SERIES | stable log_square_less_tangent(abs(x)) | partial
square_of_difference = peephole: x**2 - 2 x y + y**2 -> (x - y)**2
    cancels where x is near y | HIGHAM
square_of_distance = peephole: sum(x**2) - 2 sum(x y) + sum(y**2) -> sum((x - y)**2)
    cancels where x is near y | HIGHAM | shapes VV
erfc = peephole: 1 - erf(x) -> erfc(x)
    cancels from x = 5.9 | CODY
erfc_of_negative = peephole: 1 + erf(x) -> erfc(-x)
    cancels from x = -5.9 | CODY
erf_of_erfc = peephole: 1 - erfc(x) -> erf(x)
    cancels near 0 | CODY
difference_of_erf = regimes: erf(x) - erf(y) -> erfc(y) - erfc(x) in the tail
    both round to 1 | CODY | stable erf_difference(x, y) | rule difference_of_erf
tail_ratio = regimes: exp(-x**2) / erfc(x) -> 1 / erfcx(x)
    0 / 0 from x = 27 | CODY | naive exp(-x * x) / erfc(x) | stable tail_ratio(x) | rule tail
scaled_tail = peephole: exp(x**2) erfc(x) -> erfcx(x)
    infinity times 0 from x = 27 | CODY | rule tail
gammaln_step = peephole: gammaln(x + 1) - gammaln(x) -> log(|x|)
    cancels for large x | "DLMF 5.5" | ranges POSITIVE | rule step_of_gammaln
digamma_step = peephole: digamma(x + 1) - digamma(x) -> 1 / x
    cancels for large x | "DLMF 5.5" | ranges POSITIVE | rule step_of_digamma
betaln = peephole: gammaln(x) + gammaln(y) - gammaln(x + y) -> betaln(x, y)
    cancels for large x | "DLMF 5.12" | ranges 2 * POSITIVE
""")
