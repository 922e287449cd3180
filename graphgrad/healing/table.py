"""The table of identities, in the order in which they are tried.

What is matched is built by `naive`, a function of tensors, and read as a term, so that any spelling
of it is met: x * x or x**2, a - b or -b + a, with a factor in front or under a common power.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from ..ops.elementwise.exponential import EXP, LOG, SQRT, exp, expm1, log, log1p, logaddexp, sqrt
from ..ops.elementwise.logic import where
from ..ops.elementwise.magnitudes import abs as absolute
from ..ops.elementwise.magnitudes import hypot
from ..ops.elementwise.trigonometry import (
    Acos,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)
from ..ops.linalg.determinants import det
from ..ops.linalg.inverses import inv, solve
from ..ops.nn.activations import log1mexp, sigmoid, softplus
from ..ops.nn.softmaxes import log_softmax, softmax
from ..ops.reduce.reductions import mean
from ..ops.reduce.reductions import prod as product
from ..ops.reduce.reductions import sum as total
from ..ops.special.error import erf, erfc, erfcx
from ..ops.special.exponential_sums import logsumexp
from ..ops.special.gammas import Digamma, GammaLn, digamma, gammaln
from ..ops.special.betas import betaln
from . import forms, rules
from .identity import CLOSED, PEEPHOLE, REGIMES, SCALING, Identity, Pattern, Rewriter, heads_of
from .terms import PRODUCT, SUM

INF = math.inf
MAECHLER = 'Maechler 2012, "Accurately computing log(1 - exp(-|a|))"'
BLANCHARD = 'Blanchard, Higham, Higham 2021, "Accurately computing the log-sum-exp and softmax functions"'
GOLDBERG = 'Goldberg 1991, "What every computer scientist should know about floating-point arithmetic"'
HIGHAM = 'Higham 2002, "Accuracy and stability of numerical algorithms"'
KAHAN = 'Kahan 1987, "Branch cuts for complex elementary functions"'
CODY = 'Cody 1969, "Rational Chebyshev approximations for the error function"'
DLMF_4 = "DLMF 4.21, 4.35"
SERIES = "DLMF 4.19, 4.33; the double where of autodiff folklore"
CANCELS, OVERFLOWS, NOUGHT = "cancels", "overflows", "is 0 / 0"
V = ((4,),)
VV = ((4,), (4,))
M = ((3, 3),)

IDENTITIES: tuple[Identity, ...] = (
    # --- roots
    Identity(
        "root_square_less_one", PEEPHOLE, "sqrt(x**2 - 1) -> sqrt(|x| - 1) sqrt(|x| + 1)",
        lambda x: sqrt(x * x - 1.0), forms.root_square_less, "rounds near 1, overflows from 1e154", GOLDBERG, ranges=((1, INF),),
    ),
    Identity(
        "root_one_less_square", PEEPHOLE, "sqrt(1 - x**2) -> sqrt(1 - x) sqrt(1 + x)",
        lambda x: sqrt(1.0 - x * x), forms.root_less_square, "rounds near 1", GOLDBERG, ranges=((-1, 1),),
    ),
    Identity(
        "abs", SCALING, "sqrt(x**2) -> |x|",
        lambda x: sqrt(x * x), absolute, "x**2 overflows or underflows", HIGHAM,
        rule=rules.root_of_squares, heads=(SQRT,),
    ),
    Identity(
        "hypot", SCALING, "sqrt(x**2 + y**2) -> hypot(x, y)",
        lambda x, y: sqrt(x * x + y * y), hypot, "x**2 overflows or underflows; the gradient is 0 / 0 at 0", HIGHAM,
        rule=rules.root_of_squares, heads=(SQRT,),
    ),
    Identity(
        "scaled_root", SCALING, "sqrt(x y - z w) -> s sqrt((x / s) (y / s) - (z / s) (w / s))",
        lambda x, y, z: sqrt(x * x + y * z), lambda x, y, z: forms.scaled_root((1.0, 1.0), x, x, y, z),
        "products overflow or underflow", HIGHAM, rule=rules.root_of_squares, heads=(SQRT,),
        ranges=((-INF, INF), (0, INF), (0, INF)),
    ),
    Identity(
        "norm", SCALING, "sqrt(sum(x**2)) -> s sqrt(sum((x / s)**2)) with s = max|x|",
        lambda x: sqrt(total(x * x)), lambda x: forms.norm((0,), False, x),
        "x**2 overflows or underflows; the gradient is 0 / 0 at 0", HIGHAM,
        rule=rules.root_of_squares, heads=(SQRT,), shapes=V,
    ),
    Identity(
        "unit_vector", SCALING, "x / sqrt(sum(x**2)) -> x / norm(x); 0 at 0",
        lambda x: x / sqrt(total(x * x)), lambda x: x / forms.whole_norm(forms.norm((0,), True, x)),
        "0 / 0 at 0", HIGHAM, rule=rules.over_own_length, heads=(PRODUCT,), shapes=V,
    ),
    Identity(
        "root_that_cancels", REGIMES, "sqrt(b**2 + r) - b -> r / (sqrt(b**2 + r) + b) for b > 0",
        lambda a, b, c: (-b + sqrt(b * b - 4.0 * a * c)) / (2.0 * a),
        lambda a, b, c: _larger_root(a, b, c), "cancels where b**2 is much larger than r", GOLDBERG,
        rule=rules.root_that_cancels, heads=(SUM, PRODUCT), ranges=((0, INF), (-INF, INF), (-INF, 0)),
    ),
    Identity(
        "difference_of_roots", PEEPHOLE, "sqrt(x + 1) - sqrt(x) -> 1 / (sqrt(x + 1) + sqrt(x))",
        lambda x: sqrt(x + 1.0) - sqrt(x), lambda x: 1.0 / (sqrt(x + 1.0) + sqrt(x)), "cancels for large x", GOLDBERG,
        rule=rules.difference_of_roots, heads=(SUM,), ranges=((0, INF),),
    ),
    Identity(
        "difference_of_reciprocals", PEEPHOLE, "1 / x - 1 / (x + 1) -> 1 / x / (x + 1)",
        lambda x: 1.0 / x - 1.0 / (x + 1.0), lambda x: 1.0 / x / (x + 1.0), "cancels for large x", GOLDBERG,
        rule=rules.difference_of_reciprocals, heads=(SUM,),
    ),
    Identity(
        "sinh", PEEPHOLE, "exp(x) - exp(-x) -> 2 sinh(x)",
        lambda x: exp(x) - exp(-x), lambda x: 2.0 * sinh(x), "cancels near 0", DLMF_4,
    ),
    Identity(
        "cosh", PEEPHOLE, "exp(x) + exp(-x) -> 2 cosh(x)",
        lambda x: exp(x) + exp(-x), lambda x: 2.0 * cosh(x), "its quotients are infinity over infinity", DLMF_4,
    ),
    Identity(
        "difference_of_exponentials", REGIMES, "exp(x) - exp(y) -> exp(y) expm1(x - y)",
        lambda x, y: exp(x) - exp(y), forms.exp_difference, "cancels where x is near y", HIGHAM,
        rule=rules.difference_of_exponentials, heads=(SUM,),
    ),
    # --- logarithms of differences of exponentials
    Identity(
        "exp_of_exp", CLOSED, "exp(u - exp(x)) -> its slope is exp(u + x - exp(x))",
        lambda x, u: exp(u - exp(x)), forms.exp_less_exp, "its gradient is 0 times infinity", "the Gumbel density",
        rule=rules.exp_of_exp, heads=(EXP, PRODUCT), ranges=((-INF, 700), (-INF, INF)),
    ),
    Identity(
        "cloglog", REGIMES, "log(1 - exp(-exp(x))) -> x + log(expm1(-exp(x)) / -exp(x))",
        lambda x: log(1.0 - exp(-exp(x))), forms.log1mexp_exp, "exp(x) underflows", MAECHLER, ranges=((-1e4, 700),),
    ),
    Identity(
        "log1mexp_exp", REGIMES, "log(1 - exp(-exp(x))) -> x + log(expm1(-exp(x)) / -exp(x))",
        lambda x: log1mexp(exp(x)), forms.log1mexp_exp, "exp(x) underflows", MAECHLER, ranges=((-1e4, 700),),
    ),
    Identity(
        "log1mexp", REGIMES, "log(1 - exp(-x)) -> log1mexp(x)",
        lambda x: log(1.0 - exp(-x)), log1mexp, "1 - exp(-x) cancels near 0", MAECHLER, ranges=((0, INF),),
    ),
    Identity(
        "log1mexp_of_expm1", REGIMES, "log(-expm1(-x)) -> log1mexp(x)",
        lambda x: log(-expm1(-x)), log1mexp, "the logarithm cancels for large x", MAECHLER, ranges=((0, INF),),
    ),
    Identity(
        "log_expm1", REGIMES, "log(exp(x) - 1) -> x + log1mexp(x)",
        lambda x: log(exp(x) - 1.0), forms.log_expm1, "exp(x) overflows, and cancels near 0", MAECHLER,
        ranges=((0, INF),),
    ),
    Identity(
        "log_of_expm1", REGIMES, "log(expm1(x)) -> x + log1mexp(x)",
        lambda x: log(expm1(x)), forms.log_expm1, "expm1(x) overflows", MAECHLER, ranges=((0, INF),),
    ),
    Identity(
        "log_exp_difference", REGIMES, "log(exp(x) - exp(y)) -> x + log1mexp(x - y)",
        lambda x, y: log(exp(x) - exp(y)), forms.log_exp_difference, "both overflow or underflow", MAECHLER,
    ),
    Identity(
        "log_sinh", REGIMES, "log(sinh(x)) -> x + log1mexp(2 x) - log(2)",
        lambda x: log(sinh(x)), forms.log_sinh, "sinh(x) overflows", MAECHLER, ranges=((0, INF),),
    ),
    Identity(
        "log_cosh", REGIMES, "log(cosh(x)) -> |x| + softplus(-2 |x|) - log(2)",
        lambda x: log(cosh(x)), forms.log_cosh, "cosh(x) overflows, and rounds to 1 near 0", MAECHLER,
    ),
    Identity(
        "log_det", PEEPHOLE, "log(det(a)) -> slogdet(a)",
        lambda a: log(det(a)), forms.log_det, "det(a) overflows or underflows", HIGHAM, shapes=M,
    ),
    Identity(
        "log_erfc", REGIMES, "log(erfc(x)) -> log(erfcx(x)) - x**2 for large x",
        lambda x: log(erfc(x)), forms.log_erfc, "erfc(x) underflows from x = 26.6", CODY,
    ),
    # --- hyperbolic functions by exponentials
    Identity(
        "tanh", PEEPHOLE, "sinh(x) / cosh(x) -> tanh(x)",
        lambda x: sinh(x) / cosh(x), tanh, "infinity over infinity from |x| = 710", DLMF_4,
    ),
    Identity(
        "tanh_of_expm1", PEEPHOLE, "(exp(2 x) - 1) / (exp(2 x) + 1) -> tanh(x)",
        lambda x: expm1(x) / (exp(x) + 1.0), lambda x: tanh(0.5 * x), "infinity over infinity from x = 355", DLMF_4,
    ),
    Identity(
        "langevin", REGIMES, "coth(x) - 1 / x -> x / 3 - x**3 / 45 + ... near 0",
        lambda x: 1.0 / tanh(x) - 1.0 / x, forms.langevin, "infinity minus infinity at 0, cancels near it", SERIES,
    ),
    Identity(
        "tanh_of_sigmoid", PEEPHOLE, "2 sigmoid(2 x) - 1 -> tanh(x)",
        lambda x: 2.0 * sigmoid(x) - 1.0, lambda x: tanh(0.5 * x), "cancels near 0", DLMF_4,
    ),
    Identity(
        "bose", REGIMES, "1 / (exp(x) - 1) - 1 / x -> (coth(x / 2) - 2 / x - 1) / 2",
        lambda x: 1.0 / expm1(x) - 1.0 / x, forms.bose,
        "infinity minus infinity at 0, cancels near it", SERIES,
    ),
    # --- the logistic function
    Identity(
        "sigmoid_of_negative", PEEPHOLE, "1 - sigmoid(x) -> sigmoid(-x)",
        lambda x: 1.0 - sigmoid(x), lambda x: sigmoid(-x), "cancels from x = 37", BLANCHARD,
    ),
    Identity(
        "sigmoid_of_exp", PEEPHOLE, "exp(x) sigmoid(-x) -> sigmoid(x)",
        lambda x: exp(x) * sigmoid(-x), sigmoid, "infinity times 0", BLANCHARD,
    ),
    Identity(
        "sigmoid_slope", PEEPHOLE, "exp(-x) / (1 + exp(-x))**2 -> sigmoid(x) sigmoid(-x)",
        lambda x: exp(x) * sigmoid(-x) ** 2, forms.sigmoid_slope, "infinity over infinity", BLANCHARD,
    ),
    Identity(
        "tanh_complement", PEEPHOLE, "1 - tanh(x)**2 -> 1 / cosh(x)**2",
        lambda x: 1.0 - tanh(x) ** 2, forms.tanh_slope, "cancels from |x| = 19", DLMF_4,
    ),
    Identity(
        "one_less_tanh", PEEPHOLE, "1 - tanh(x) -> 2 sigmoid(-2 x)",
        lambda x: 1.0 - tanh(x), lambda x: 2.0 * sigmoid(-2.0 * x), "cancels from x = 19", DLMF_4,
    ),
    Identity(
        "one_and_tanh", PEEPHOLE, "1 + tanh(x) -> 2 sigmoid(2 x)",
        lambda x: 1.0 + tanh(x), lambda x: 2.0 * sigmoid(2.0 * x), "cancels from x = -19", DLMF_4,
    ),
    Identity(
        "softplus_of_negative", PEEPHOLE, "x + softplus(-x) -> softplus(x)",
        lambda x: x + softplus(-x), softplus, "cancels for x < 0", MAECHLER,
    ),
    Identity(
        "difference_of_sigmoids", REGIMES, "sigmoid(x) - sigmoid(y) -> sigmoid(x) sigmoid(-y) (1 - exp(y - x))",
        lambda x, y: sigmoid(x) - sigmoid(y), forms.sigmoid_difference, "both round to 1", GOLDBERG,
        rule=rules.difference_of_sigmoids, heads=(SUM,),
    ),
    # --- sums of exponentials
    Identity(
        "log_of_product", PEEPHOLE, "log(exp(x) y) -> x + log(y)",
        lambda x: log(exp(x) / 2.5), lambda x: x - math.log(2.5), "exp(x) overflows or underflows", BLANCHARD,
        rule=rules.log_of_product, heads=(LOG,),
    ),
    Identity(
        "log1pexp", PEEPHOLE, "log(1 + exp(x)) -> softplus(x)",
        lambda x: log(1.0 + exp(x)), softplus, "exp(x) overflows from x = 709.8", MAECHLER,
        rule=rules.log_of_product, heads=(LOG,),
    ),
    Identity(
        "logaddexp", PEEPHOLE, "log(exp(x) + exp(y)) -> logaddexp(x, y)",
        lambda x, y: log(exp(x) + exp(y)), logaddexp, "both overflow or underflow", BLANCHARD,
        rule=rules.log_of_product, heads=(LOG,),
    ),
    Identity(
        "logsumexp", PEEPHOLE, "log(sum(exp(x))) -> logsumexp(x)",
        lambda x: log(total(exp(x))), logsumexp, "exp(x) overflows or underflows", BLANCHARD,
        rule=rules.log_of_product, heads=(LOG,), shapes=V,
    ),
    Identity(
        "log_softmax", PEEPHOLE, "log(softmax(x)) -> log_softmax(x)",
        lambda x: log(softmax(x)), log_softmax, "softmax(x) underflows", BLANCHARD,
        rule=rules.log_of_product, heads=(LOG,), shapes=V,
    ),
    Identity(
        "log_sigmoid", PEEPHOLE, "log(sigmoid(x)) -> -softplus(-x)",
        lambda x: log(sigmoid(x)), lambda x: -softplus(-x), "sigmoid(x) underflows from x = -745", MAECHLER,
        rule=rules.log_of_product, heads=(LOG,),
    ),
    Identity(
        "log_of_weighted_sum", SCALING, "log(sum(w exp(x))) -> m + log(sum(w exp(x - m)))",
        lambda x, w: log(total(w * exp(x))), lambda x, w: forms.weighted_log((0,), False, x, w),
        "exp(x) overflows or underflows", BLANCHARD,
        rule=rules.log_of_product, heads=(LOG,), shapes=VV, ranges=((-INF, INF), (0, INF)),
    ),
    Identity(
        "softmax", PEEPHOLE, "exp(x) / sum(exp(x)) -> softmax(x)",
        lambda x: exp(x) / total(exp(x)), softmax, "infinity over infinity", BLANCHARD,
        rule=rules.share_of_exponentials, heads=(PRODUCT,), shapes=V,
    ),
    Identity(
        "sigmoid", PEEPHOLE, "1 / (1 + exp(-x)) -> sigmoid(x)",
        lambda x: 1.0 / (1.0 + exp(-x)), sigmoid, "its gradient is infinity over infinity", BLANCHARD,
        rule=rules.share_of_exponentials, heads=(PRODUCT,),
    ),
    Identity(
        "mean_by_softmax", PEEPHOLE, "sum(y exp(x)) / sum(exp(x)) -> sum(y softmax(x))",
        lambda x, y: total(y * exp(x)) / total(exp(x)), lambda x, y: total(y * softmax(x)),
        "infinity over infinity", BLANCHARD, rule=rules.share_of_exponentials, heads=(PRODUCT,), shapes=VV,
    ),
    Identity(
        "weighted_share", SCALING, "w exp(x) / sum(w exp(x)) -> the same of x - max(x)",
        lambda x, w: exp(x) / total(w * exp(x)), lambda x, w: forms.weighted_share((0,), x, w),
        "infinity over infinity", BLANCHARD, rule=rules.share_of_exponentials, heads=(PRODUCT,), shapes=VV,
        ranges=((-INF, INF), (0, INF)),
    ),
    Identity(
        "log_of_mean", PEEPHOLE, "log(mean(exp(x))) -> logsumexp(x) - log(n)",
        lambda x: log(mean(exp(x))), lambda x: logsumexp(x) - math.log(4.0), "exp(x) overflows or underflows", BLANCHARD,
        rule=rules.log_of_product, heads=(LOG,), shapes=V,
    ),
    Identity(
        "product_by_logs", SCALING, "exp(sum(log(x))) -> prod(x)",
        lambda x: exp(total(log(x))), lambda x: forms.product_of_logs((0,), False, x),
        "its gradient is 0 times infinity at 0", HIGHAM, rule=rules.product_by_logs, heads=(EXP,), shapes=V,
        ranges=((0, INF),),
    ),
    # --- expm1, log1p
    Identity(
        "expm1", PEEPHOLE, "exp(x) - 1 -> expm1(x)",
        lambda x: exp(x) - 1.0, expm1, "cancels near 0", HIGHAM,
    ),
    Identity(
        "arcsinh", PEEPHOLE, "log(x + sqrt(x**2 + 1)) -> arcsinh(x)",
        lambda x: log(x + sqrt(x * x + 1.0)), arcsinh, "cancels for x < 0, overflows from 1e154", KAHAN,
    ),
    Identity(
        "arccosh", PEEPHOLE, "log(x + sqrt(x**2 - 1)) -> arccosh(x)",
        lambda x: log(x + sqrt(x * x - 1.0)), arccosh, "overflows from 1e154, rounds near 1", KAHAN, ranges=((1, INF),),
    ),
    Identity(
        "arctanh", PEEPHOLE, "log((1 + x) / (1 - x)) / 2 -> arctanh(x)",
        lambda x: log((1.0 + x) / (1.0 - x)), lambda x: 2.0 * arctanh(x), "rounds near 0", KAHAN, ranges=((-1, 1),),
    ),
    Identity(
        "log_of_length", SCALING, "log(x**2 + y**2) -> 2 log(hypot(x, y))",
        lambda x, y: log(x * x + y * y), lambda x, y: 2.0 * log(hypot(x, y)), "x**2 overflows or underflows", HIGHAM,
        rule=rules.log_of_power, heads=(LOG,),
    ),
    Identity(
        "log_of_power", PEEPHOLE, "log(x**n) -> n log(x)",
        lambda x: log(x**3), lambda x: 3.0 * log(x), "x**n overflows or underflows", GOLDBERG,
        rule=rules.log_of_power, heads=(LOG,), ranges=((0, INF),),
    ),
    Identity(
        "log1p_square", REGIMES, "log(1 + x**2) -> 2 log(|x|) + log1p(1 / x**2) for |x| > 1",
        lambda x: log(1.0 + x * x), forms.log1p_square, "x**2 overflows or rounds", GOLDBERG,
        rule=rules.log_of_power, heads=(LOG,),
    ),
    Identity(
        "log_of_ratio", PEEPHOLE, "log(a / b) -> log1p((a - b) / b), where a - b is shorter",
        lambda x: log((x + 2.0) / (x + 1.0)), lambda x: log1p(1.0 / (x + 1.0)), "a / b rounds near 1", GOLDBERG,
        rule=rules.log_of_ratio, heads=(LOG,), ranges=((0, INF),),
    ),
    Identity(
        "log1p", PEEPHOLE, "log(1 + x) -> log1p(x)",
        lambda x: log(1.0 + x), log1p, "1 + x rounds", GOLDBERG, ranges=((-1, INF),),
        rule=rules.log_near_one, heads=(LOG,),
    ),
    Identity(
        "arctanh_of_log1p", PEEPHOLE, "log(1 + x) - log(1 - x) -> 2 arctanh(x)",
        lambda x: log1p(x) - log1p(-x), lambda x: 2.0 * arctanh(x), "1 + x rounds", KAHAN, ranges=((-1, 1),),
    ),
    Identity(
        "difference_of_logs", REGIMES, "log(x + 1) - log(x) -> log1p(1 / x)",
        lambda x: log(x + 2.0) - log(x + 3.0), lambda x: forms.log_ratio_difference(x + 3.0, -1.0 + 0.0 * x), "cancels for large x", GOLDBERG,
        rule=rules.difference_of_logs, heads=(SUM,), ranges=((0, INF),),
    ),
    # --- quotients that are 0 / 0, and differences that vanish
    Identity(
        "one_less_cos", PEEPHOLE, "1 - cos(x) -> 2 sin(x / 2)**2",
        lambda x: 1.0 - cos(x), lambda x: 2.0 * sin(0.5 * x) ** 2, "cancels near 0", DLMF_4,
    ),
    Identity(
        "cosh_less_one", PEEPHOLE, "cosh(x) - 1 -> 2 sinh(x / 2)**2",
        lambda x: cosh(x) - 1.0, lambda x: 2.0 * sinh(0.5 * x) ** 2, "cancels near 0", DLMF_4,
    ),
    Identity(
        "difference_of_cosines", PEEPHOLE, "cos(x) - cos(y) -> -2 sin((x + y) / 2) sin((x - y) / 2)",
        lambda x, y: cos(x) - cos(y), forms.cos_difference,
        "cancels where x is near y", DLMF_4,
    ),
    Identity(
        "sinc", REGIMES, "sin(x) / x -> sinc(x)",
        lambda x: sin(x) / x, forms.sinc, "0 / 0 at 0", SERIES, rule=rules.vanishing_quotient, heads=(PRODUCT,),
    ),
    Identity(
        "sinhc", REGIMES, "sinh(x) / x -> 1 + x**2 / 6 + ... near 0",
        lambda x: sinh(x) / x, forms.sinhc, "0 / 0 at 0", SERIES, rule=rules.vanishing_quotient, heads=(PRODUCT,),
    ),
    Identity(
        "tanc", REGIMES, "tan(x) / x -> sinc(x) / cos(x)",
        lambda x: tan(x) / x, forms.tanc, "0 / 0 at 0", SERIES, rule=rules.vanishing_quotient, heads=(PRODUCT,),
    ),
    Identity(
        "tanhc", REGIMES, "tanh(x) / x -> 1 - x**2 / 3 + ... near 0",
        lambda x: tanh(x) / x, forms.tanhc, "0 / 0 at 0", SERIES, rule=rules.vanishing_quotient, heads=(PRODUCT,),
    ),
    Identity(
        "arctanc", REGIMES, "arctan(x) / x -> 1 - x**2 / 3 + ... near 0",
        lambda x: arctan(x) / x, forms.arctanc, "0 / 0 at 0", SERIES, rule=rules.vanishing_quotient, heads=(PRODUCT,),
    ),
    Identity(
        "arcsinc", REGIMES, "arcsin(x) / x -> 1 + x**2 / 6 + ... near 0",
        lambda x: arcsin(x) / x, forms.arcsinc, "0 / 0 at 0", SERIES, rule=rules.vanishing_quotient, heads=(PRODUCT,),
        ranges=((-1, 1),),
    ),
    Identity(
        "expm1c", REGIMES, "(exp(x) - 1) / x -> 1 + x / 2 + ... near 0",
        lambda x: expm1(x) / x, forms.expm1c, "0 / 0 at 0", SERIES, rule=rules.vanishing_quotient, heads=(PRODUCT,),
    ),
    Identity(
        "log1pc", REGIMES, "log(1 + x) / x -> 1 - x / 2 + ... near 0",
        lambda x: log1p(x) / x, forms.log1pc, "0 / 0 at 0", SERIES, rule=rules.vanishing_quotient, heads=(PRODUCT,),
        ranges=((-1, INF),),
    ),
    Identity(
        "geometric_sum", PEEPHOLE, "(1 - x**n) / (1 - x) -> 1 + x + ... + x**(n-1)",
        lambda x: (1.0 - x**5) / (1.0 - x), lambda x: forms.geometric(5, x), "0 / 0 at 1", HIGHAM,
        rule=rules.geometric_sum, heads=(PRODUCT,),
    ),
    *(
        Identity(
            name, REGIMES, f"{written} -> {now} near 0", naive,
            rules.VANISHES[form.__name__], "cancels near 0", SERIES, ranges=ranges,
        )
        for name, written, now, naive, form, order, ranges in (
            ("x_less_sin", "x - sin(x)", "x**3 / 6 - ...", lambda x: x - sin(x), forms.sin_deficit, 3, ()),
            ("sinh_less_x", "sinh(x) - x", "x**3 / 6 + ...", lambda x: sinh(x) - x, forms.sinh_excess, 3, ()),
            ("tan_less_x", "tan(x) - x", "x**3 / 3 + ...", lambda x: tan(x) - x, forms.tan_excess, 3, ((-1.5, 1.5),)),
            ("x_less_arctan", "x - arctan(x)", "x**3 / 3 - ...", lambda x: x - arctan(x), forms.arctan_deficit, 3, ()),
            ("x_less_tanh", "x - tanh(x)", "x**3 / 3 - ...", lambda x: x - tanh(x), forms.tanh_deficit, 3, ()),
            ("sin_less_x_cos", "sin(x) - x cos(x)", "x**3 / 3 - ...", lambda x: sin(x) - x * cos(x), forms.spherical_excess, 3, ()),
            ("expm1_less_x", "exp(x) - 1 - x", "x**2 / 2 + ...", lambda x: expm1(x) - x, forms.expm1_excess, 2, ()),
            ("x_less_log1p", "x - log(1 + x)", "x**2 / 2 - ...", lambda x: x - log1p(x), forms.log1p_deficit, 2, ((-1, INF),)),
        )
    ),
    Identity(
        "vanishing_quotient", REGIMES, "(x - sin(x)) / x**3 -> 1 / 6 - x**2 / 120 + ... near 0",
        lambda x: (x - sin(x)) / x**3, forms.sin_deficit, "0 / 0 at 0", SERIES,
        rule=rules.vanishing_quotient, heads=(PRODUCT,),
    ),
    # --- angles
    Identity(
        "angle", SCALING, "arccos(sum(x y) / (|x| |y|)) -> 2 arctan2(|u - v|, |u + v|)",
        lambda x, y: arccos(total(x * y) / (sqrt(total(x * x)) * sqrt(total(y * y)))),
        lambda x, y: forms.angle((0,), False, x, y), "loses half the digits near 0", 'Kahan 2006, "How futile are mindless assessments of roundoff"',
        rule=rules.arccos_of_cosine, heads=(Acos,), shapes=VV,
    ),
    Identity(
        "csch", REGIMES, "1 / sinh(x) -> 2 sign(x) exp(-|x|) / (1 - exp(-2 |x|))",
        lambda x: 1.0 / sinh(x), forms.csch, "its gradient is infinity over infinity", DLMF_4,
    ),
    Identity(
        "sech", REGIMES, "1 / cosh(x) -> 2 exp(-|x|) sigmoid(2 |x|)",
        lambda x: 1.0 / cosh(x), forms.sech, "its gradient is infinity over infinity", DLMF_4,
    ),
    # --- moments and matrices
    Identity(
        "variance", PEEPHOLE, "mean(x**2) - mean(x)**2 -> mean((x - mean(x))**2)",
        lambda x: mean(x * x) - mean(x) ** 2, lambda x: forms.variance((0,), False, x), "cancels for a large mean", HIGHAM,
        rule=rules.central_moment, heads=(SUM,), shapes=V,
    ),
    Identity(
        "covariance", PEEPHOLE, "mean(x y) - mean(x) mean(y) -> mean((x - mean(x)) (y - mean(y)))",
        lambda x, y: mean(x * y) - mean(x) * mean(y), lambda x, y: forms.covariance((0,), False, x, y),
        "cancels for large means", HIGHAM, rule=rules.central_moment, heads=(SUM,), shapes=VV,
    ),
    Identity(
        "solve", PEEPHOLE, "inv(a) @ b -> solve(a, b)",
        lambda a, b: inv(a) @ b, solve, "the inverse overflows or rounds", HIGHAM, shapes=((3, 3), (3,)),
    ),
    Identity(
        "solve_matrix", PEEPHOLE, "inv(a) @ b -> solve(a, b) for a matrix b",
        lambda a, b: inv(a) @ b, solve, "the inverse overflows or rounds", HIGHAM, shapes=((3, 3), (3, 2)),
    ),
    # --- x log x
    Identity(
        "x_log_x", CLOSED, "x log(x) -> 0 at 0",
        lambda x: x * log(x), forms.x_log_x, "0 times infinity at 0", "DLMF 4.4", ranges=((0, INF),),
    ),
    Identity(
        "power_times_log", CLOSED, "x**n log(x) -> x**(n-1) (x log(x))",
        lambda x: x * x * log(x), lambda x: x * forms.x_log_x(x), "x**n underflows in the gradient", "DLMF 4.4",
        rule=rules.power_times_log, heads=(PRODUCT,), ranges=((0, INF),),
    ),
    Identity(
        "x_log_ratio", REGIMES, "x log(x / y) -> x log1p((x - y) / y) for x near y",
        lambda x, y: x * log(x / y), forms.x_log_ratio, "x / y rounds near 1, overflows or underflows", GOLDBERG,
        ranges=((0, INF), (0, INF)),
    ),
    Identity(
        "x_log_y", CLOSED, "x log(y) -> 0 where x is 0",
        lambda x, y: x * log(y), forms.x_log_y, "0 times infinity", "scipy.special.xlogy", ranges=((-INF, INF), (0, INF)),
    ),
    Identity(
        "log1p_times", CLOSED, "(1 - x) log(1 - x) -> (1 - x) log1p(-x); 0 at 1",
        lambda x: (1.0 + x) * log1p(x), forms.log1p_times, "0 times infinity at 1", "scipy.special.xlog1py", ranges=((-1, INF),),
    ),
    # --- the error function, gamma
    Identity(
        "erfc", PEEPHOLE, "1 - erf(x) -> erfc(x)",
        lambda x: 1.0 - erf(x), erfc, "cancels from x = 5.9", CODY,
    ),
    Identity(
        "erfc_of_negative", PEEPHOLE, "1 + erf(x) -> erfc(-x)",
        lambda x: 1.0 + erf(x), lambda x: erfc(-x), "cancels from x = -5.9", CODY,
    ),
    Identity(
        "erf_of_erfc", PEEPHOLE, "1 - erfc(x) -> erf(x)",
        lambda x: 1.0 - erfc(x), erf, "cancels near 0", CODY,
    ),
    Identity(
        "difference_of_erf", REGIMES, "erf(x) - erf(y) -> erfc(y) - erfc(x) in the tail",
        lambda x, y: erf(x) - erf(y), forms.erf_difference, "both round to 1", CODY,
        rule=rules.difference_of_erf, heads=(SUM,),
    ),
    Identity(
        "tail_ratio", REGIMES, "exp(-x**2) / erfc(x) -> 1 / erfcx(x)",
        lambda x: exp(-x * x) / erfc(x), forms.tail_ratio, "0 / 0 from x = 27", CODY, rule=rules.tail, heads=(PRODUCT,),
    ),
    Identity(
        "scaled_tail", PEEPHOLE, "exp(x**2) erfc(x) -> erfcx(x)",
        lambda x: exp(x * x) * erfc(x), erfcx, "infinity times 0 from x = 27", CODY, rule=rules.tail, heads=(PRODUCT,),
    ),
    Identity(
        "gammaln_step", PEEPHOLE, "gammaln(x + 1) - gammaln(x) -> log(|x|)",
        lambda x: gammaln(x + 1.0) - gammaln(x), lambda x: log(absolute(x)), "cancels for large x", "DLMF 5.5",
        rule=rules.step_of(GammaLn), heads=(SUM,), ranges=((0, INF),),
    ),
    Identity(
        "digamma_step", PEEPHOLE, "digamma(x + 1) - digamma(x) -> 1 / x",
        lambda x: digamma(x + 1.0) - digamma(x), lambda x: 1.0 / x, "cancels for large x", "DLMF 5.5",
        rule=rules.step_of(Digamma), heads=(SUM,), ranges=((0, INF),),
    ),
    Identity(
        "betaln", PEEPHOLE, "gammaln(x) + gammaln(y) - gammaln(x + y) -> betaln(x, y)",
        lambda x, y: gammaln(x) + gammaln(y) - gammaln(x + y), betaln, "cancels for large x", "DLMF 5.12", ranges=((0, INF), (0, INF)),
    ),
)
"""All identities."""


def _larger_root(a: Any, b: Any, c: Any) -> Any:
    root = forms.scaled_root((1.0, -4.0), b, b, a, c)
    away = b > 0
    far = where(away, root + where(away, b, 0.0), 1.0)
    return where(away, -2.0 * c / far, 0.5 * (root - where(away, 0.0, b)) / a)


def rewriter() -> Rewriter:
    """Rewrites by every identity of the table."""
    made = Rewriter()
    for identity, rule, heads in _compiled():
        made.put(identity, rule, heads)
    return made


@lru_cache(maxsize=1)
def _compiled() -> tuple[tuple[Identity, Any, tuple[Any, ...]], ...]:
    before = Rewriter()
    compiled = []
    for identity in IDENTITIES:
        rule: Any = identity.rule
        heads = identity.heads
        if rule is None:
            rule = Pattern(identity, before)
            heads = heads_of(rule)
        before.put(identity, rule, heads)
        compiled.append((identity, rule, heads))
    return tuple(compiled)
