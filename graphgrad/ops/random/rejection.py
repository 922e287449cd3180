"""Rejection sampling: gamma, Poisson and binomial numbers."""

from __future__ import annotations

import math
from typing import ClassVar

from ...base.errors import GradientError
from ...ir.types import alike
from ..base import (
    NO_GRAD,
    Any,
    DTypeError,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorType,
    Types,
    apply,
    kind_of,
    np,
    tensor_type,
)
from ..special.gammas import digamma
from ..special.quantile import quantile
from .draws import Rejecting

__all__ = ["LogGammaSlope", "RandomBinomial", "RandomLogGamma", "RandomPoisson"]

INVERTED = 10.0
"""Means below are drawn by inversion: one uniform number, from which probabilities are taken."""
MOST = 72
"""A number of a mean below INVERTED is larger with a probability of less than 2**-100."""


class ByParameters(Rejecting, abstract=True):
    """Family: the inputs behind the key are float64 parameters of the shape that is drawn."""

    differentiable = False
    shape_only: ClassVar[tuple[int, ...]] = ()

    def infer(self, seed: TensorType, *parameters: TensorType) -> Types:  # type: ignore[override]
        if kind_of(seed.dtype) not in "iu":
            raise DTypeError(f"a seed is a scalar integer, got {seed!r}")
        made = alike(*parameters)
        if made is None or made.dtype.name != "float64":
            raise DTypeError(f"{self.type} takes float64 of one shape, got {parameters}")
        return (tensor_type(made.shape, self.dtype),)


class RandomLogGamma(ByParameters):
    """Logarithms of gamma numbers of concentration a and scale 1; by Marsaglia and Tsang's squeeze
    [2000, "A simple method for generating gamma variables"], those below 1 from a + 1.

    Gradient: da = dy * LogGammaSlope: implicit differentiation [Figurnov et al. 2018].

    name  of the stream
    """

    name: str
    differentiable = True
    per_trial = 3

    def trial(self, xp: Any, drawn: tuple[Any, ...], *parameters: Any) -> tuple[Any, Any]:
        (a,) = parameters
        z, u, boost = _normal(xp, drawn[0]), _open(drawn[1]), _open(drawn[2])
        small = a < 1
        usable = (a > 0) & (a < np.inf)
        d = xp.where(usable, a + small, 1.0) - 1 / 3
        root = 1 + z / xp.sqrt(9 * d)
        positive = root > 0
        log_v = 3 * xp.log(xp.where(positive, root, 1.0))
        good = positive & (xp.log(u) < 0.5 * z * z + d - d * root * root * root + d * log_v)
        y = xp.log(d) + log_v + xp.where(small, xp.log(boost) / xp.where(small & usable, a, 1.0), 0)
        y = xp.where(usable, y, xp.where(a == 0, -np.inf, xp.where(a > 0, np.inf, np.nan)))
        return y, good | ~usable

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (_, a), (y,) = node.inputs, node.outputs
        return NO_GRAD, dy * apply(LogGammaSlope(), a, y, digamma(a))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        return iter(())


class LogGammaSlope(Op):
    """How y = log of a gamma number moves with its concentration a, while its rank stays.

    Gradient: none; asking for it is an error.

    s = -(dP/da) / (dP/dy), where P(a, e**y) is the regularised incomplete gamma function and p =
    digamma(a), an input of its own. It is the integral of (p - log t) e**-t t**(a - 1) over t from
    0 to x = e**y, or of its negative from there on, whichever cancels less, divided by e**-x x**a:
    by the exp-sinh rule [Takahasi and Mori 1974, "Double exponential formulas"].
    With dP/dy = e**-x x**a / gamma(a): ds/dy = p - y - s * (a - x).
    """

    def infer(self, a: TensorType, y: TensorType, p: TensorType) -> Types:
        made = alike(a, y, p)
        if made is None or made.dtype.name != "float64":
            raise DTypeError(f"LogGammaSlope takes float64 of one shape, got {a!r}, {y!r}, {p!r}")
        return (made,)

    def kernel(self, xp: Any, a: Any, y: Any, p: Any) -> Any:
        x = xp.exp(y)
        below = (y < p) | (x < 1)
        left = xp.where(x < a, 1 / (xp.abs(1 - x / a) + xp.sqrt(x) / a), 1.0)
        above = xp.maximum(a - 1, 0)
        right = 1 / (xp.abs(1 - (a - 1) / x) + xp.sqrt(above) / x)
        scale = xp.where(below, left, right)
        total = xp.zeros_like(y)
        for node, weight in _NODES:
            v = scale * node
            lower = (p - y + v / a) / a * xp.exp(x * -xp.expm1(-v / a) - v)
            grown = xp.log1p(v / x)
            upper = (y + grown - p) / x * xp.exp((a - 1) * grown - v)
            total = total + weight * xp.where(below, lower, upper)
        return total * scale

    def vjp(self, node: Node, ds: Tensor) -> Gradients:
        raise GradientError(
            "the gradient of gamma, beta, Dirichlet and Student numbers with respect to their "
            f"concentration has no further derivative here (built at {node.where}).\n"
            "Use gg.stop_gradient on the concentration where it is not to be differentiated twice."
        )

    def batch(self, batch: Any) -> Any:
        """Element by element."""
        return batch.build(self, *batch.every())

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One step for each node of the rule."""
        count = math.prod(d for d in outputs[0].shape if isinstance(d, int))
        return 20.0 * len(_NODES) * count


def _exp_sinh(step: float = 1 / 16, end: float = 3.6) -> list[tuple[float, float]]:
    """Nodes and weights of the double exponential rule from 0 to infinity."""
    pairs = []
    for k in range(-round(end / step), round(end / step) + 1):
        t = k * step
        node = math.exp(math.pi / 2 * math.sinh(t))
        weight = node * math.pi / 2 * math.cosh(t) * step
        if node < 750:  # farther out, e**-v is 0
            pairs.append((node, weight))
    return pairs


_NODES = _exp_sinh()


class RandomPoisson(ByParameters):
    """Poisson numbers of a mean: by inversion, or by transformed rejection [Hörmann 1993, "The
    transformed rejection method for generating Poisson random variables"].

    Gradient: none, the result is integer.
    """

    per_trial = 2

    def trial(self, xp: Any, drawn: tuple[Any, ...], *parameters: Any) -> tuple[Any, Any]:
        (mean,) = parameters
        u, v = _open(drawn[0]), _open(drawn[1])
        small = mean < INVERTED
        low = xp.where(small & (mean > 0), mean, 1.0)
        few = _inverted(xp, u, xp.exp(-low), lambda k: low / (k + 1))
        m = xp.where(small | ~(mean < 2.0**62), INVERTED, mean)
        b = 0.931 + 2.53 * xp.sqrt(m)
        a = -0.059 + 0.02483 * b
        k, us = _hat(xp, u, a, b, m + 0.43)
        bound = xp.log(v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b))
        safe = xp.where(k < 0, 0.0, k)
        good = bound <= safe * xp.log(m) - m - _log_factorial(xp, safe)
        at_once = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
        good = (k >= 0) & (at_once | (good & ((us >= 0.013) | (v <= us))))
        none = ~((mean >= 0) & (mean < 2.0**62))
        counts = xp.where(none, -1.0, xp.where(mean == 0, 0.0, xp.where(small, few, safe)))
        return counts, good | small | none

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(None, np.dtype("int64")), [np.array(7), np.array([0.0, 0.5, 3.0, 40.0, 1e6])]
        yield cls(None, np.dtype("int64")), [np.array(7), np.array(3.0)]


class RandomBinomial(ByParameters):
    """How many of n have a chance p: by inversion, or by transformed rejection [Hörmann 1993, "The
    generation of binomial random variates"].

    Gradient: none, the result is integer.
    """

    per_trial = 2

    def trial(self, xp: Any, drawn: tuple[Any, ...], *parameters: Any) -> tuple[Any, Any]:
        n, chance = parameters
        u, v = _open(drawn[0]), _open(drawn[1])
        none = ~((n >= 0) & (n < 2.0**53) & (chance >= 0) & (chance <= 1))
        n, chance = xp.where(none, 1.0, n), xp.where(none, 0.5, chance)
        p = xp.minimum(chance, 1 - chance)
        small = n * p < INVERTED
        odds = p / (1 - p)
        start = xp.exp(xp.where(small, n, 0.0) * xp.log1p(-p))
        few = _inverted(xp, u, start, lambda k: odds * xp.maximum(n - k, 0.0) / (k + 1))
        m, q = xp.where(small, 4 * INVERTED, n), xp.where(small, 0.5, p)
        spread = xp.sqrt(m * q * (1 - q))
        b = 1.15 + 2.53 * spread
        a = -0.0873 + 0.0248 * b + 0.01 * q
        k, us = _hat(xp, u, a, b, m * q + 0.5)
        inside = (k >= 0) & (k <= m)
        safe = xp.where(inside, k, 0.0)
        mode = xp.floor((m + 1) * q)
        alpha = (2.83 + 5.1 / b) * spread
        bound = xp.log(v * alpha / (a / (us * us) + b))
        fact = _log_factorial
        most = fact(xp, mode) + fact(xp, m - mode) - fact(xp, safe) - fact(xp, m - safe)
        good = bound <= most + (safe - mode) * xp.log(q / (1 - q))
        good = inside & (((us >= 0.07) & (v <= 0.92 - 4.2 / b)) | good)
        successes = xp.where(small, xp.minimum(few, n), safe)
        successes = xp.where(chance > 0.5, n - successes, successes)
        return xp.where(none, -1.0, successes), good | small | none

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        n, p = np.array([0.0, 3.0, 10.0, 1e6, 100.0]), np.array([0.5, 0.0, 1.0, 0.3, 0.9])
        yield cls(None, np.dtype("int64")), [np.array(7), n, p]


def _open(word: Any) -> Any:
    """A number between 0 and 1, neither of them, from a word."""
    return ((word >> np.uint64(11)).astype(np.int64).astype(np.float64) + 0.5) * 2.0**-53


def _normal(xp: Any, word: Any) -> Any:
    k = (word >> np.uint64(11)).astype(np.int64).astype(np.float64)
    q = k * 2.0**-53 - (0.5 - 2.0**-54)
    return quantile(xp, q, 0.5 - xp.abs(q))


def _hat(xp: Any, u: Any, a: Any, b: Any, centre: Any) -> tuple[Any, Any]:
    """The integer that a uniform one is transformed to, and its distance from the ends."""
    u = u - 0.5
    us = 0.5 - xp.abs(u)
    return xp.floor((2 * a / us + b) * u + centre), us


def _inverted(xp: Any, u: Any, start: Any, ratio: Any) -> Any:
    """The least k with u < the sum of the probabilities up to k, each `ratio(k)` of the last."""
    p, total, least = start, start, xp.zeros_like(u)
    for k in range(MOST):
        more = u >= total
        if xp is np and not more.any():
            break
        least = xp.where(more, k + 1.0, least)
        p = p * ratio(float(k))
        total = total + p
    return least


def _log_factorial(xp: Any, k: Any) -> Any:
    """log k! by Stirling's series of k + 9, less what that has too many."""
    product = k + 1
    for i in range(2, 9):
        product = product * (k + i)
    x = k + 9
    inverse = 1 / (x * x)
    series = (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse / 1680))) / x
    stirling = (x - 0.5) * xp.log(x) - x + 0.5 * math.log(2 * math.pi) + series
    return stirling - xp.log(product)
