"""Angles, moments, matrices, x log x, the error function, gamma functions."""

from __future__ import annotations

from ...ops.special.gammas import Digamma, GammaLn
from ..forms import digamma_step, gammaln_step
from ..identity import closed, peephole, regimes, scaling
from ..rules.differences import difference_of_erf
from ..rules.lengths import arccos_of_cosine
from ..rules.logarithms import power_times_log
from ..rules.moments import central_moment, step_of, tail
from .sources import ABOVE, CODY, DLMF_4, GOLDBERG, HIGHAM, INF, POSITIVE, VV, V

OTHERS = (
    scaling(
        "angle",
        "arccos(sum(x y) / (|x| |y|)) -> 2 arctan2(|u - v|, |u + v|)",
        "loses half the digits near 0",
        'Kahan 2006, "How futile are mindless assessments of roundoff"',
        naive="arccos(sum(x * y) / (sqrt(sum(x * x)) * sqrt(sum(y * y))))",
        stable="angle(0, False, x, y)",
        shapes=VV,
        rule=arccos_of_cosine,
    ),
    regimes(
        "csch",
        "1 / sinh(x) -> 2 sign(x) exp(-|x|) / (1 - exp(-2 |x|))",
        "its gradient is infinity over infinity",
        DLMF_4,
        stable="csch(x)",
    ),
    regimes(
        "sech",
        "1 / cosh(x) -> 2 exp(-|x|) sigmoid(2 |x|)",
        "its gradient is infinity over infinity",
        DLMF_4,
        stable="sech(x)",
    ),
    peephole(
        "coth_less_csch",
        "1 / tanh(x) - 1 / sinh(x) -> tanh(x / 2)",
        "infinity minus infinity at 0",
        DLMF_4,
    ),
    peephole(
        "variance",
        "mean(x**2) - mean(x)**2 -> mean((x - mean(x))**2)",
        "cancels for a large mean",
        HIGHAM,
        stable="variance(0, False, x)",
        shapes=V,
        rule=central_moment,
    ),
    peephole(
        "covariance",
        "mean(x y) - mean(x) mean(y) -> mean((x - mean(x)) (y - mean(y)))",
        "cancels for large means",
        HIGHAM,
        stable="covariance(0, False, x, y)",
        shapes=VV,
        rule=central_moment,
    ),
    peephole(
        "solve",
        "inv(a) @ b -> solve(a, b)",
        "the inverse overflows or rounds",
        HIGHAM,
        shapes=((3, 3), (3, 2)),
    ),
    closed(
        "power_times_log",
        "x**n log(x) -> x**(n-1) (x log(x))",
        "the slope x**n / x underflows",
        "DLMF 4.4",
        naive="x**2 * log(x)",
        stable="x * x_log_x(x)",
        ranges=POSITIVE,
        rule=power_times_log,
    ),
    closed(
        "x_log_x",
        "x log(x) -> 0 at 0",
        "0 times infinity at 0",
        "DLMF 4.4",
        stable="x_log_x(x)",
        ranges=POSITIVE,
    ),
    regimes(
        "x_log_ratio",
        "x log(x / y) -> x log1p((x - y) / y) for x near y",
        "x / y rounds near 1, overflows or underflows",
        GOLDBERG,
        stable="x_log_ratio(x, y)",
        ranges=2 * POSITIVE,
    ),
    closed(
        "x_log_y",
        "x log(y) -> 0 where x is 0",
        "0 times infinity",
        "scipy.special.xlogy",
        stable="x_log_y(x, y)",
        ranges=((-INF, INF), (0, INF)),
    ),
    closed(
        "log1p_times",
        "(1 - x) log(1 - x) -> (1 - x) log1p(-x); 0 at 1",
        "0 times infinity at 1",
        "scipy.special.xlog1py",
        naive="(1 + x) * log1p(x)",
        stable="log1p_times(x)",
        ranges=ABOVE,
    ),
    peephole("erfc", "1 - erf(x) -> erfc(x)", "cancels from x = 5.9", CODY),
    peephole("erfc_of_negative", "1 + erf(x) -> erfc(-x)", "cancels from x = -5.9", CODY),
    peephole("erf_of_erfc", "1 - erfc(x) -> erf(x)", "cancels near 0", CODY),
    regimes(
        "difference_of_erf",
        "erf(x) - erf(y) -> erfc(y) - erfc(x) in the tail",
        "both round to 1",
        CODY,
        stable="erf_difference(x, y)",
        rule=difference_of_erf,
    ),
    regimes(
        "tail_ratio",
        "exp(-x**2) / erfc(x) -> 1 / erfcx(x)",
        "0 / 0 from x = 27",
        CODY,
        naive="exp(-x * x) / erfc(x)",
        stable="tail_ratio(x)",
        rule=tail,
    ),
    peephole(
        "scaled_tail",
        "exp(x**2) erfc(x) -> erfcx(x)",
        "infinity times 0 from x = 27",
        CODY,
        rule=tail,
    ),
    peephole(
        "gammaln_step",
        "gammaln(x + 1) - gammaln(x) -> log(|x|)",
        "cancels for large x",
        "DLMF 5.5",
        ranges=POSITIVE,
        rule=step_of(GammaLn, gammaln_step),
    ),
    peephole(
        "digamma_step",
        "digamma(x + 1) - digamma(x) -> 1 / x",
        "cancels for large x",
        "DLMF 5.5",
        ranges=POSITIVE,
        rule=step_of(Digamma, digamma_step),
    ),
    peephole(
        "betaln",
        "gammaln(x) + gammaln(y) - gammaln(x + y) -> betaln(x, y)",
        "cancels for large x",
        "DLMF 5.12",
        ranges=2 * POSITIVE,
    ),
)
