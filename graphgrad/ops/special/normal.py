"""The normal distribution: its distribution function, the inverse, the logarithm, and Owen's T."""

from __future__ import annotations

import math

from ..base import NO_GRAD, Any, Gradients, Node, Tensor, TensorLike, apply, promoted, wants
from ..documented import documented
from ..elementwise.exponential import exp
from ..elementwise.powers import square
from ..families import floating_binary, floating_unary
from . import elementary
from .error import Erfcx, InverseFunction, InverseSlope, erf, erfc
from .scipy_functions import ScipyBinary, ScipyUnary, need_scipy

__all__ = [
    "log_ndtr",
    "ndtr",
    "ndtri",
    "owens_t",
]


class NdtrInv(InverseFunction):
    """y = the number with ndtr(y) = x. Gradient: dx = dy * sqrt(2 pi) * exp(y**2 / 2)."""

    scipy = "ndtri"
    domain = (0.1, 0.9)

    def formula(self, xp: Any, p: Any) -> Any:
        """The normal quantile."""
        return elementary.normal_point(xp, p - 0.5, xp.minimum(p, 1.0 - p))


class NdtrInvSlope(InverseSlope):
    """y = the derivative of ndtri at x. Gradient: dx = dy * ndtri(x) y**2."""

    inverse = NdtrInv
    domain = (0.1, 0.9)
    rate = 0.5
    factor = math.sqrt(2 * math.pi)

    def tail(self, xp: Any, x: Any) -> Any:
        return 2 * xp.minimum(x, 1 - x)


NdtrInv.slope = NdtrInvSlope


class LogNdtr(ScipyUnary):
    """y = log(ndtr(x)). Gradient: dx = dy * sqrt(2 / pi) / erfcx(-x / sqrt(2))."""

    scipy = "log_ndtr"

    def formula(self, xp: Any, x: Any) -> Any:
        """By erfcx on the left, by erfc on the right."""
        return elementary.log_ndtr(xp, x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy * (math.sqrt(2 / math.pi) / apply(Erfcx(0), x * -math.sqrt(0.5))),)


class OwensT(ScipyBinary):
    """z = T(h, a).

    Gradient: dh = -dz * exp(-h**2 / 2) erf(a h / sqrt(2)) / sqrt(8 pi), da = dz * exp(-h**2 (1
        + a**2) / 2) / (2 pi (1 + a**2)).
    """

    scipy = "owens_t"

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        h, a = node.inputs
        q = 1.0 + square(a)
        by_h = exp(-0.5 * square(h)) * erf(a * h * math.sqrt(0.5)) * (-1 / math.sqrt(8 * math.pi))
        return (
            dz * by_h if wants(h) else NO_GRAD,
            dz * (exp(-0.5 * square(h) * q) / (2 * math.pi * q)) if wants(a) else NO_GRAD,
        )


def ndtr(x: TensorLike, /) -> Tensor:
    """The probability y that a standard normal number is less than x: y = erfc(-x / sqrt(2)) / 2.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * exp(-x**2 / 2) / sqrt(2 pi), the density.

    Source: scipy.special.ndtr.

    >>> gg.evaluate(gg.special.ndtr([0.0, 1.0])).round(4)
    array([0.5   , 0.8413])
    """
    (x,) = promoted(x, floating=True)
    return 0.5 * erfc(x * -math.sqrt(0.5))


@documented(NdtrInv)
def ndtri(x: TensorLike, /) -> Tensor:
    """The inverse of ndtr: a standard normal number is less than y with probability x.

    Source: scipy.special.ndtri.

    >>> gg.evaluate(gg.special.ndtri([0.5, 0.975])).round(4)
    array([0.  , 1.96])
    """
    need_scipy("ndtri")
    return floating_unary(NdtrInv(), x)


@documented(LogNdtr)
def log_ndtr(x: TensorLike, /) -> Tensor:
    """y = log(ndtr(x)), of very negative numbers too, element by element.

    Source: scipy.special.log_ndtr.

    >>> gg.evaluate(gg.special.log_ndtr([0.0, -40.0])).round(4)
    array([-6.931000e-01, -8.046084e+02])
    """
    need_scipy("log_ndtr")
    return floating_unary(LogNdtr(), x)


@documented(OwensT)
def owens_t(h: TensorLike, a: TensorLike, /) -> Tensor:
    """Owen's T function: the probability that X > h and 0 < Y < a X, for standard normal X, Y.

    Parameters:
        h, a: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Source: scipy.special.owens_t.

    >>> gg.evaluate(gg.special.owens_t(1.0, [0.0, 1.0])).round(4)
    array([0.    , 0.0667])
    """
    need_scipy("owens_t")
    return floating_binary(OwensT(), h, a)
