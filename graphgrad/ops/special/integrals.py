"""Exponential, sine and Fresnel integrals, and the dilogarithm."""

from __future__ import annotations

import functools
import math
import operator

from ..base import (
    Any,
    Derivative,
    Gradients,
    Node,
    Samples,
    Tensor,
    TensorLike,
    apply,
    np,
    promoted,
    whole,
)
from ..documented import documented
from ..elementwise.exponential import exp, log
from ..elementwise.logic import less, where
from ..elementwise.magnitudes import abs
from ..elementwise.rounding import rint
from ..elementwise.sinc import SphericalBessel
from ..elementwise.trigonometry import cos, sin
from ..families import floating_unary
from . import elementary
from .scipy_functions import (
    OfOrders,
    Ordered,
    ScipyUnary,
    is_order,
    need_scipy,
    of_integers,
    scipy_special,
)

__all__ = [
    "exp1",
    "expi",
    "expn",
    "fresnel",
    "sici",
    "spence",
]


class Exp1(ScipyUnary):
    """y = integral of exp(-t) / t from x on. Gradient: dx = -dy * exp(-x) / x."""

    scipy = "exp1"
    domain = (0.5, 2.0)
    derivative = Derivative(singular=0)

    def formula(self, xp: Any, x: Any) -> Any:
        """A series, and a continued fraction."""
        return xp.where(x == 0, np.inf, elementary.exponential_integral(xp, 1, x))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (-(dy * (exp(-x) / x)),)


class ExpIntegral(ScipyUnary):
    """y = principal value of the integral of exp(t) / t up to x. Gradient: dx = dy * exp(x) / x."""

    scipy = "expi"
    domain = (0.5, 2.0)
    derivative = Derivative(singular=0)

    def formula(self, xp: Any, x: Any) -> Any:
        """Two series."""
        return xp.where(x == 0, -np.inf, elementary.principal_value(xp, x))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy * (exp(x) / x),)


class ExpN(Ordered):
    """y = integral of exp(-x t) / t**n from 1 on.

    Gradient: dx = -dy * expn(n - 1, x) [DLMF 8.19.13].
    """

    order: int
    scipy = "expn"
    domain = (0.5, 2.0)
    derivative = Derivative(singular=0)

    def formula(self, xp: Any, x: Any) -> Any:
        """A series, and a continued fraction."""
        if not self.order:
            return xp.exp(-x) / x
        return elementary.exponential_integral(xp, self.order, x)

    @classmethod
    def function(cls, n: Any, x: Any) -> Any:
        """Of n < 1 by the incomplete gamma function [DLMF 8.19.1], which SciPy does not."""
        scipy = need_scipy("expn")
        more = np.maximum(1.0 - n, 1.0)
        low = x ** (1.0 * np.minimum(n, 1) - 1.0) * scipy.gamma(more) * scipy.gammaincc(more, x)
        return np.where(n < 1, low, scipy.expn(np.maximum(n, 1), x))

    @classmethod
    def slope(cls, n: Any, x: Tensor) -> Tensor:
        return -expn(n - 1, x)

    @classmethod
    def examples(cls) -> Any:
        """Of the first and a later order."""
        return cls(1), cls(3)


class ExpNOfOrders(OfOrders):
    """y = integral of exp(-x t) / t**n from 1 on, of tensors. Gradient: as of ExpN, none by n."""

    of = ExpN


class Spence(ScipyUnary):
    """y = integral of log(t) / (1 - t) from 1 to x. Gradient: dx = dy * log(x) / (1 - x)."""

    scipy = "spence"
    domain = (0.2, 0.8)
    derivative = Derivative(singular=0)

    def formula(self, xp: Any, x: Any) -> Any:
        """A series around 1."""
        return elementary.spence(xp, x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        t = x - 1.0
        near = less(abs(t), 1e-5)
        series = t * (0.5 - t * (1 / 3 - 0.25 * t)) - 1.0
        return (dy * where(near, series, -log(where(near, 2.0, x)) / where(near, 1.0, t)),)


class SineIntegral(ScipyUnary):
    """y = integral of sin(t) / t from 0 to x, or the cosine integral.

    Gradient: that of the first is sin(x) / x, that of the second cos(x) / x.
    """

    scipy = "sici"
    part: int = 0

    def kernel(self, xp: Any, x: Any) -> Any:
        return np.asarray(getattr(need_scipy(self.scipy), self.scipy)(x)[self.part]).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        if self.part:
            return (dy * (cos(x) / x),)
        return (dy * apply(SphericalBessel(0), x),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for part in (0, 1) if scipy_special else ():
            yield cls(part), [rng.uniform(0.5, 3.0, size=(2, 3))]


class Fresnel(SineIntegral):
    """y = integral of sin or cos of pi t**2 / 2 from 0 to x.

    Gradient: that of the first is sin(pi x**2 / 2), that of the second cos(pi x**2 / 2).
    """

    scipy = "fresnel"

    def kernel(self, xp: Any, x: Any) -> Any:
        return np.asarray(getattr(need_scipy(self.scipy), self.scipy)(x)[self.part]).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        angle = math.pi / 2 * _square_modulo_4(*node.inputs)
        return (dy * (cos(angle) if self.part else sin(angle)),)


def _square_modulo_4(x: Tensor) -> Tensor:
    """x**2 without as many fours as fit, to digits that count: x = h + t, with h of few bits."""
    h = rint(16.0 * x) * 0.0625
    t = x - h
    whole = h * h
    return (whole - 4.0 * rint(0.25 * whole)) + t * (x + h)


@documented(Exp1)
def exp1(x: TensorLike, /) -> Tensor:
    """The exponential integral: y = integral of exp(-t) / t from x on [DLMF 6.2.1]; NaN for x < 0.

    Source: scipy.special.exp1.

    >>> gg.evaluate(gg.special.exp1([0.5, 1.0])).round(4)
    array([0.5598, 0.2194])
    """
    need_scipy("exp1")
    return floating_unary(Exp1(), x)


@documented(ExpIntegral)
def expi(x: TensorLike, /) -> Tensor:
    """The exponential integral: y = integral of exp(t) / t from -inf to x [DLMF 6.2.5].

    Source: scipy.special.expi.

    >>> gg.evaluate(gg.special.expi([-1.0, 1.0])).round(4)
    array([-0.2194,  1.8951])
    """
    need_scipy("expi")
    return floating_unary(ExpIntegral(), x)


@documented(ExpN)
def expn(n: TensorLike, x: TensorLike, /) -> Tensor:
    """The generalised exponential integral: y = integral of exp(-x t) / t**n from 1 on [DLMF 8.19].

    Parameters:
        n: an int, or ints that broadcast with x.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the broadcast shape, in the dtype of x.

    Raises: ShapeError if the shapes do not broadcast; DTypeError if x is complex, or n a tensor of
        other numbers than integers; TypeError for another n that is not an int; GraphGradError
        without SciPy (the extra `scipy`).

    Source: scipy.special.expn.

    >>> gg.evaluate(gg.special.expn(2, [0.5, 1.0])).round(4)
    array([0.3266, 0.1485])
    """
    need_scipy("expn")
    if is_order(n):
        return of_integers("expn", ExpNOfOrders(), n, x)
    n = whole("the order of expn", n)
    if n > 0:
        return floating_unary(ExpN(n), x)
    (x,) = promoted(x, floating=True)
    terms = [math.factorial(-n) // math.factorial(k) * x ** (k + n - 1) for k in range(1 - n)]
    return exp(-x) * functools.reduce(operator.add, terms)


@documented(Spence)
def spence(x: TensorLike, /) -> Tensor:
    """The dilogarithm of 1 - x: y = integral of log(t) / (1 - t) from 1 to x [DLMF 25.12.1].

    Source: scipy.special.spence.

    >>> gg.evaluate(gg.special.spence([0.5, 1.0])).round(4)
    array([0.5822, 0.    ])
    """
    need_scipy("spence")
    return floating_unary(Spence(), x)


@documented(SineIntegral)
def sici(x: TensorLike, /) -> tuple[Tensor, Tensor]:
    """The sine and the cosine integral [DLMF 6.2(ii)], element by element.

    Returns: the pair of them, each of the shape and dtype of x.

    Source: scipy.special.sici.

    >>> [gg.evaluate(y).round(4) for y in gg.special.sici([1.0])]
    [array([0.9461]), array([0.3374])]
    """
    need_scipy("sici")
    return floating_unary(SineIntegral(0), x), floating_unary(SineIntegral(1), x)


@documented(Fresnel)
def fresnel(x: TensorLike, /) -> tuple[Tensor, Tensor]:
    """The Fresnel integrals of sin and cos of pi t**2 / 2 [DLMF 7.2(iii)], element by element.

    Returns: the pair of them, each of the shape and dtype of x.

    Source: scipy.special.fresnel.

    >>> [gg.evaluate(y).round(4) for y in gg.special.fresnel([1.0])]
    [array([0.4383]), array([0.7799])]
    """
    need_scipy("fresnel")
    return floating_unary(Fresnel(0), x), floating_unary(Fresnel(1), x)
