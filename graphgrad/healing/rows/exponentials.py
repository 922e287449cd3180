"""Logarithms and quotients of exponentials."""

from __future__ import annotations

from .reading import rows

EXPONENTIALS = rows("""
exp_of_exp = closed: exp(u - exp(x)) -> its slope is exp(u + x - exp(x))
    its gradient is 0 times infinity | "the Gumbel density" | stable exp_less_exp(x, u) |
    ranges ((-INF, INF), (-INF, 1000)) | rule exp_of_exp
cloglog = regimes: log(1 - exp(-exp(x))) -> x + log(expm1(-exp(x)) / -exp(x))
    exp(x) underflows | MAECHLER | stable log1mexp_exp(x) | ranges ((-10000.0, 700),)
log1mexp_exp = regimes: log(1 - exp(-exp(x))) -> x + log(expm1(-exp(x)) / -exp(x))
    exp(x) underflows | MAECHLER | naive log1mexp(exp(x)) | stable log1mexp_exp(x) |
    ranges ((-10000.0, 700),)
log1mexp = regimes: log(1 - exp(-x)) -> log1mexp(x)
    1 - exp(-x) cancels near 0 | MAECHLER | ranges POSITIVE
log_expm1 = regimes: log(exp(x) - 1) -> x + log1mexp(x)
    exp(x) overflows, and cancels near 0 | MAECHLER | stable log_expm1(x) | ranges POSITIVE
log_exp_difference = regimes: log(exp(x) - exp(y)) -> x + log1mexp(x - y)
    both overflow or underflow | MAECHLER | stable log_exp_difference(x, y)
log_cosh_of_softplus = regimes: x + softplus(-2 x) - log(2) -> |x| + softplus(-2 |x|) - log(2)
    cancels near 0 | MAECHLER | naive x + softplus(-2 * x) - 0.6931471805599453 |
    stable log_cosh(x)
log_sinh = regimes: log(sinh(x)) -> x + log1mexp(2 x) - log(2)
    sinh(x) overflows | MAECHLER | stable log_sinh(x) | ranges POSITIVE
log_cosh = regimes: log(cosh(x)) -> |x| + softplus(-2 |x|) - log(2)
    cosh(x) overflows, and rounds to 1 near 0 | MAECHLER | stable log_cosh(x)
log_cos = regimes: log(cos(x)) -> log1p(-sin(x)**2) / 2 near 0
    cos(x) rounds to 1 near 0 | MAECHLER | stable log_cos(x) | ranges ((-1.5, 1.5),)
log_tanh = regimes: log(tanh(x)) -> log1p(-2 sigmoid(-2 x)) for large x
    tanh(x) rounds to 1 | MAECHLER | stable log_tanh(x) | ranges POSITIVE
log_erf = regimes: log(erf(x)) -> log1p(-erfc(x)) for large x
    erf(x) rounds to 1 | CODY | stable log_erf(x) | ranges POSITIVE
log_det = peephole: log(det(a)) -> slogdet(a)
    det(a) overflows or underflows | HIGHAM | stable log_det(a) | shapes M
log_erfc = regimes: log(erfc(x)) -> log(erfcx(x)) - x**2 for large x
    erfc(x) underflows from x = 26.6 | CODY | stable log_erfc(x)
tanh = peephole: sinh(x) / cosh(x) -> tanh(x)
    infinity over infinity from |x| = 710 | DLMF_4
tanh_of_expm1 = peephole: (exp(2 x) - 1) / (exp(2 x) + 1) -> tanh(x)
    infinity over infinity from x = 355 | DLMF_4 | naive expm1(x) / (exp(x) + 1) |
    stable tanh(0.5 * x)
tanh_of_half = peephole: (exp(x) - 1) sigmoid(-x) -> tanh(x / 2)
    infinity times 0 | DLMF_4 | naive expm1(x) * sigmoid(-x)
log_of_bose = peephole: log(1 + 1 / (exp(x) - 1)) -> -log1mexp(x)
    its gradient is 0 / 0 | MAECHLER | naive log(1 + 1 / expm1(x)) | ranges POSITIVE
x_exp_over_expm1 = peephole: x exp(x) / (exp(x) - 1) -> -x / expm1(-x)
    0 / 0 at 0, infinity over infinity | SERIES | naive x * exp(x) / expm1(x) |
    stable bernoulli(-x)
exp_times_sinh = peephole: exp(x) sinh(x) -> expm1(2 x) / 2
    0 times infinity | DLMF_4
exp_times_cosh = peephole: exp(x) cosh(x) -> (exp(2 x) + 1) / 2
    0 times infinity | DLMF_4
sinh_over_exp = peephole: sinh(x) / exp(x) -> expm1(-2 x) / -2
    infinity over infinity | DLMF_4
cosh_over_exp = peephole: cosh(x) / exp(x) -> (exp(-2 x) + 1) / 2
    infinity over infinity | DLMF_4
exp_over_expm1 = peephole: exp(x) / (exp(x) - 1) -> -1 / expm1(-x)
    infinity over infinity | DLMF_4 | naive exp(x) / expm1(x)
exp_over_cosh = peephole: exp(x) / cosh(x) -> 2 sigmoid(2 x)
    infinity over infinity, or 0 / 0 | DLMF_4
exp_over_sinh = peephole: exp(x) / sinh(x) -> -2 / expm1(-2 x)
    infinity over infinity, or 0 / 0 | DLMF_4
exp_of_negative_over_cosh = peephole: exp(-x) / cosh(x) -> 2 sigmoid(-2 x)
    infinity over infinity, or 0 / 0 | DLMF_4
exp_of_negative_over_sinh = peephole: exp(-x) / sinh(x) -> 2 / expm1(2 x)
    infinity over infinity, or 0 / 0 | DLMF_4
langevin = regimes: coth(x) - 1 / x -> x / 3 - x**3 / 45 + ... near 0
    infinity minus infinity at 0, cancels near it | SERIES | naive 1 / tanh(x) - 1 / x |
    stable langevin(x) | rule poles_that_cancel
tanh_of_sigmoid = peephole: 2 sigmoid(2 x) - 1 -> tanh(x)
    cancels near 0 | DLMF_4 | naive 2 * sigmoid(x) - 1 | stable tanh(0.5 * x)
bose = regimes: 1 / (exp(x) - 1) - 1 / x -> (coth(x / 2) - 2 / x - 1) / 2
    infinity minus infinity at 0, cancels near it | SERIES | naive 1 / expm1(x) - 1 / x |
    stable bose(x) | rule poles_that_cancel
poles_that_cancel = regimes: 1 / x - 1 / sin(x) -> -x / 6 - ... near 0
    infinity minus infinity at 0, cancels near it | SERIES | naive 1 / tan(x) - 1 / sin(x) |
    stable tan(x / -2) | ranges ((-3, 3),) | rule poles_that_cancel
sigmoid_of_negative = peephole: 1 - sigmoid(x) -> sigmoid(-x)
    cancels from x = 37 | BLANCHARD
exp_less_one_and_softplus = peephole: exp(softplus(x)) - 1 -> exp(x)
    cancels | MAECHLER
exp_of_survival = peephole: 1 + (exp(x) - 1) -> exp(x)
    cancels from x = -37 | HIGHAM | naive 1 + expm1(x)
arctanh_of_tanh = peephole: arctanh(tanh(x)) -> x
    tanh(x) rounds to 1 | DLMF_4 | ranges ((-400, 400),)
sech_of_sigmoid = peephole: exp(x) sigmoid(-2 x) -> 1 / (2 cosh(x))
    infinity times 0 | DLMF_4
exp_over_expm1_square = closed: exp(x) / (exp(x) - 1)**2 -> 1 / (4 sinh(x / 2)**2)
    infinity over infinity | DLMF_4 | naive exp(x) / expm1(x)**2
sigmoid_of_exp = peephole: exp(x) sigmoid(-x) -> sigmoid(x)
    infinity times 0 | BLANCHARD
sigmoid_slope = peephole: exp(-x) / (1 + exp(-x))**2 -> sigmoid(x) sigmoid(-x)
    infinity over infinity | BLANCHARD | naive exp(x) * sigmoid(-x)**2 | stable sigmoid_slope(x)
tanh_complement = peephole: 1 - tanh(x)**2 -> 1 / cosh(x)**2
    cancels from |x| = 19 | DLMF_4 | stable tanh_slope(x)
one_less_tanh = peephole: 1 - tanh(x) -> 2 sigmoid(-2 x)
    cancels from x = 19 | DLMF_4
one_and_tanh = peephole: 1 + tanh(x) -> 2 sigmoid(2 x)
    cancels from x = -19 | DLMF_4
softplus_of_negative = peephole: x + softplus(-x) -> softplus(x)
    cancels for x < 0 | MAECHLER
odds = peephole: softplus(x) - softplus(-x) -> x
    cancels near 0 | MAECHLER
x_less_log_expm1 = peephole: x - log(exp(x) - 1) -> -log1mexp(x)
    cancels for large x | MAECHLER | ranges POSITIVE
difference_of_sigmoids = regimes: sigmoid(x) - sigmoid(y) -> sigmoid(x) sigmoid(-y) (1 - exp(y - x))
    both round to 1 | GOLDBERG | stable sigmoid_difference(x, y) | rule difference_of_sigmoids
log_of_product = peephole: log(exp(x) y) -> x + log(y)
    exp(x) overflows or underflows | BLANCHARD | naive log(exp(x) / 2.5) |
    stable x - 0.9162907318741551 | rule log_of_product
log1pexp = peephole: log(1 + exp(x)) -> softplus(x)
    exp(x) overflows from x = 709.8 | MAECHLER | rule log_of_product
logaddexp = peephole: log(exp(x) + exp(y)) -> logaddexp(x, y)
    both overflow or underflow | BLANCHARD | rule log_of_product
logsumexp = peephole: log(sum(exp(x))) -> logsumexp(x)
    exp(x) overflows or underflows | BLANCHARD | shapes V | rule log_of_product
log_softmax = peephole: log(softmax(x)) -> log_softmax(x)
    softmax(x) underflows | BLANCHARD | shapes V | rule log_of_product
log_sigmoid = peephole: log(sigmoid(x)) -> -softplus(-x)
    sigmoid(x) underflows from x = -745 | MAECHLER | rule log_of_product
log_of_weighted_sum = scaling: log(sum(w exp(x))) -> m + log(sum(w exp(x - m)))
    exp(x) overflows or underflows | BLANCHARD | stable weighted_log(0, False, x, w) |
    ranges ((0, INF), (-INF, INF)) | shapes VV | rule log_of_product
softmax = peephole: exp(x) / sum(exp(x)) -> softmax(x)
    infinity over infinity | BLANCHARD | shapes V | rule share_of_exponentials
sigmoid = peephole: 1 / (1 + exp(-x)) -> sigmoid(x)
    its gradient is infinity over infinity | BLANCHARD | rule share_of_exponentials
mean_by_softmax = peephole: sum(y exp(x)) / sum(exp(x)) -> sum(y softmax(x))
    infinity over infinity | BLANCHARD | shapes VV | rule share_of_exponentials
weighted_share = scaling: w exp(x) / sum(w exp(x)) -> the same of x - max(x)
    infinity over infinity | BLANCHARD | naive exp(x) / sum(w * exp(x)) |
    stable weighted_share(0, x, w) | ranges ((0, INF), (-INF, INF)) | shapes VV |
    rule share_of_exponentials
log_of_mean = peephole: log(mean(exp(x))) -> logsumexp(x) - log(n)
    exp(x) overflows or underflows | BLANCHARD | stable log_mean(0, False, x) | shapes V |
    rule log_of_product
log_sinhc = regimes: log(sinh(x) / x) -> x**2 / 6 - ... near 0
    sinh(x) overflows, and sinh(x) / x rounds to 1 near 0 | MAECHLER | stable log_sinhc(x) |
    rule log_of_product
log_softplus = regimes: log(log(1 + exp(x))) -> x + log(softplus(x) / exp(x)) for x < 0
    exp(x) underflows | MAECHLER | naive log(softplus(x)) | stable log_softplus(x) |
    rule log_of_product
log_sigmoid_difference = regimes: log(sigmoid(x) - sigmoid(y))
        -> log1mexp(x - y) - softplus(-x) - softplus(y)
    both underflow, or round to 1 | MAECHLER | stable log_sigmoid_difference(x, y) |
    rule log_of_product
product_by_logs = scaling: exp(sum(log(x))) -> prod(x)
    its gradient is 0 times infinity at 0 | HIGHAM | stable product_of_logs(0, False, x) |
    ranges POSITIVE | shapes V | rule product_by_logs
""")
