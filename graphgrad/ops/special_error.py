"""Inverses and relatives of the error functions, exponential, sine and Fresnel integrals."""

from __future__ import annotations

import functools
import math
import operator
from typing import ClassVar

from .arithmetic import abs, square
from .base import (
    NO_GRAD,
    Any,
    Gradients,
    Node,
    Samples,
    Tensor,
    TensorLike,
    apply,
    np,
    promoted,
    wants,
    whole,
)
from .exponential import exp, log
from .families import floating_binary, floating_unary
from .logic import less, where
from .scipy_functions import (
    OfScipy,
    ScipyBinary,
    ScipyUnary,
    need_scipy,
    scipy_special,
)
from .special import erf
from .trigonometry import cos, sin

__all__ = [
    "dawsn",
    "erfcinv",
    "erfcx",
    "erfinv",
    "exp1",
    "expi",
    "expn",
    "fresnel",
    "log_ndtr",
    "ndtri",
    "owens_t",
    "sici",
    "spence",
]

_ROOT_PI = math.sqrt(math.pi)


class ErfInv(ScipyUnary):
    """y = the number with erf(y) = x, dx = dy * sqrt(pi)/2 * exp(y**2)."""

    scipy = "erfinv"
    domain = (-0.9, 0.9)
    singular = 0

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (dy * (_ROOT_PI / 2 * exp(square(y))),)


class ErfcInv(ScipyUnary):
    """y = the number with erfc(y) = x, dx = -dy * sqrt(pi)/2 * exp(y**2)."""

    scipy = "erfcinv"
    domain = (0.1, 1.9)
    singular = 0

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (dy * (-_ROOT_PI / 2 * exp(square(y))),)


class NdtrInv(ScipyUnary):
    """y = the number with ndtr(y) = x, dx = dy * sqrt(2 pi) * exp(y**2 / 2)."""

    scipy = "ndtri"
    domain = (0.1, 0.9)
    singular = 0

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (dy * (math.sqrt(2 * math.pi) * exp(0.5 * square(y))),)


class Scaled(OfScipy, abstract=True):
    """Family: the derivative of this order of a function f with f' = s (2 x f - c), s = 1 or -1.

    The next ones are f(n) = 2 s (x f(n-1) + (n-1) f(n-2)), a difference of large numbers where x is
    large; there it is by the series in 1/x, each term of which is a power with derivatives of its
    own: f = c/2 * (the sum over k of (2k - 1)!! (-s)**k / (2**k x**(2k+1))) [DLMF 7.12].
    """

    order: int = 0
    form: ClassVar[tuple[float, complex]] = (1.0, 1.0)

    def kernel(self, xp: Any, x: Any) -> Any:
        s, c = self.form
        previous, y = 0.0, getattr(need_scipy(self.scipy), self.scipy)(x)
        for n in range(1, self.order + 1):
            more = -c if n == 1 else 2 * (n - 1) * previous
            previous, y = y, s * (2 * x * y + more)
        far = x > 12 if s == 1 else np.abs(x) > 12
        if self.order and np.any(far):
            y = np.where(far, self._series(np.where(far, x, 1.0)), y)
        return np.asarray(y).astype(x.dtype)

    def _series(self, x: Any) -> Any:
        s, c = self.form
        n = self.order
        term = c / 2 * (-1) ** n * math.factorial(n) / x ** (n + 1)
        total = term
        for k in range(1, 24):
            power = 2 * k - 1  # of 1/x in the term before
            grown = (power + n) * (power + n + 1) / (power * (power + 1))
            term = term * (-s * power / 2 * grown) / (x * x)
            total = total + np.where(np.abs(term) < np.abs(total), term, 0)
        return total

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(type(self)(self.order + 1), *node.inputs),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for order in (0, 1) if scipy_special else ():
            yield cls(order), [rng.uniform(*cls.domain, size=(2, 3))]
        if scipy_special:
            yield cls(0), [rng.uniform(*cls.domain, size=(2,)).astype("float32")]


class Erfcx(Scaled):
    """y = exp(x**2) erfc(x), or the derivative of this order; dx = dy * the next one."""

    scipy = "erfcx"
    form = (1.0, 2 / _ROOT_PI)


class Dawson(Scaled):
    """y = exp(-x**2) * integral of exp(t**2) from 0 to x, or the derivative of this order."""

    scipy = "dawsn"
    form = (-1.0, 1.0)


class LogNdtr(ScipyUnary):
    """y = log(ndtr(x)), dx = dy * sqrt(2 / pi) / erfcx(-x / sqrt(2))."""

    scipy = "log_ndtr"

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy * (math.sqrt(2 / math.pi) / apply(Erfcx(0), x * -math.sqrt(0.5))),)


class Exp1(ScipyUnary):
    """y = integral of exp(-t) / t from x on, dx = -dy * exp(-x) / x."""

    scipy = "exp1"
    domain = (0.5, 2.0)
    singular = 0

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (-(dy * (exp(-x) / x)),)


class ExpIntegral(ScipyUnary):
    """y = principal value of the integral of exp(t) / t up to x, dx = dy * exp(x) / x."""

    scipy = "expi"
    domain = (0.5, 2.0)
    singular = 0

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy * (exp(x) / x),)


class ExpN(ScipyUnary):
    """y = integral of exp(-x t) / t**n from 1 on, dx = -dy * expn(n - 1, x)."""

    order: int
    scipy = "expn"
    domain = (0.5, 2.0)
    singular = 0

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (-(dy * expn(self.order - 1, *node.inputs)),)

    @classmethod
    def examples(cls) -> Any:
        """Of the first and a later order."""
        return cls(1), cls(3)


class Spence(ScipyUnary):
    """y = integral of log(t) / (1 - t) from 1 to x, dx = dy * log(x) / (1 - x)."""

    scipy = "spence"
    domain = (0.2, 0.8)
    singular = 0

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        t = x - 1.0
        near = less(abs(t), 1e-5)
        series = t * (0.5 - t * (1 / 3 - 0.25 * t)) - 1.0
        return (dy * where(near, series, -log(where(near, 2.0, x)) / where(near, 1.0, t)),)


class SineIntegral(ScipyUnary):
    """y = integral of sin(t) / t from 0 to x, dx = dy * sin(x) / x."""

    scipy = "sici"
    part: int = 0

    def kernel(self, xp: Any, x: Any) -> Any:
        return np.asarray(getattr(need_scipy(self.scipy), self.scipy)(x)[self.part]).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        if self.part:
            return (dy * (cos(x) / x),)
        near = less(abs(x), 1e-2)
        q = square(x)
        series = 1.0 - q * (1 / 6 - q * (1 / 120 - q * (1 / 5040)))
        return (dy * where(near, series, sin(x) / where(near, 1.0, x)),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for part in (0, 1) if scipy_special else ():
            yield cls(part), [rng.uniform(0.5, 3.0, size=(2, 3))]


class Fresnel(SineIntegral):
    """y = integral of sin or cos of pi t**2 / 2 from 0 to x, dx = dy * that of x."""

    scipy = "fresnel"

    def kernel(self, xp: Any, x: Any) -> Any:
        return np.asarray(getattr(need_scipy(self.scipy), self.scipy)(x)[self.part]).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        angle = math.pi / 2 * square(node.inputs[0])
        return (dy * (cos(angle) if self.part else sin(angle)),)


class OwensT(ScipyBinary):
    """z = T(h, a); dh = -dz * exp(-h**2 / 2) erf(a h / sqrt(2)) / sqrt(8 pi) and
    da = dz * exp(-h**2 (1 + a**2) / 2) / (2 pi (1 + a**2)).
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


def erfinv(x: TensorLike, /) -> Tensor:
    """The inverse of erf: erf(y) = x, element by element; infinite at -1 and 1.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * sqrt(pi)/2 * exp(y**2) [DLMF 7.17(i)].

    Source: scipy.special.erfinv.

    >>> gg.evaluate(gg.special.erfinv([0.0, 0.5])).round(4)
    array([0.    , 0.4769])
    """
    need_scipy("erfinv")
    return floating_unary(ErfInv(), x)


def erfcinv(x: TensorLike, /) -> Tensor:
    """The inverse of erfc: erfc(y) = x, element by element; infinite at 0 and 2.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = -dy * sqrt(pi)/2 * exp(y**2) [DLMF 7.17(i)].

    Source: scipy.special.erfcinv.

    >>> gg.evaluate(gg.special.erfcinv([0.5, 1.5])).round(4)
    array([ 0.4769, -0.4769])
    """
    need_scipy("erfcinv")
    return floating_unary(ErfcInv(), x)


def erfcx(x: TensorLike, /) -> Tensor:
    """Scaled complementary error function: y = exp(x**2) erfc(x) [DLMF 7.2.3], without underflow.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * (2 x y - 2 / sqrt(pi)), by its series where that would cancel [DLMF 7.12].

    Source: scipy.special.erfcx.

    >>> gg.evaluate(gg.special.erfcx([0.0, 1.0, 99.0])).round(4)
    array([1.    , 0.4276, 0.0057])
    """
    need_scipy("erfcx")
    return floating_unary(Erfcx(0), x)


def dawsn(x: TensorLike, /) -> Tensor:
    """Dawson's integral: y = exp(-x**2) * integral of exp(t**2) from 0 to x [DLMF 7.2.5].

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * (1 - 2 x y), by its series where that would cancel [DLMF 7.12].

    Source: scipy.special.dawsn.

    >>> gg.evaluate(gg.special.dawsn([0.0, 1.0])).round(4)
    array([0.    , 0.5381])
    """
    need_scipy("dawsn")
    return floating_unary(Dawson(0), x)


def ndtri(x: TensorLike, /) -> Tensor:
    """The inverse of ndtr: a standard normal number is less than y with probability x.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * sqrt(2 pi) * exp(y**2 / 2).

    Source: scipy.special.ndtri.

    >>> gg.evaluate(gg.special.ndtri([0.5, 0.975])).round(4)
    array([0.  , 1.96])
    """
    need_scipy("ndtri")
    return floating_unary(NdtrInv(), x)


def log_ndtr(x: TensorLike, /) -> Tensor:
    """y = log(ndtr(x)), of very negative numbers too, element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * sqrt(2 / pi) / erfcx(-x / sqrt(2)).

    Source: scipy.special.log_ndtr.

    >>> gg.evaluate(gg.special.log_ndtr([0.0, -40.0])).round(4)
    array([-6.931000e-01, -8.046084e+02])
    """
    need_scipy("log_ndtr")
    return floating_unary(LogNdtr(), x)


def exp1(x: TensorLike, /) -> Tensor:
    """The exponential integral: y = integral of exp(-t) / t from x on [DLMF 6.2.1]; NaN for x < 0.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = -dy * exp(-x) / x.

    Source: scipy.special.exp1.

    >>> gg.evaluate(gg.special.exp1([0.5, 1.0])).round(4)
    array([0.5598, 0.2194])
    """
    need_scipy("exp1")
    return floating_unary(Exp1(), x)


def expi(x: TensorLike, /) -> Tensor:
    """The exponential integral: y = integral of exp(t) / t from -inf to x [DLMF 6.2.5].

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * exp(x) / x.

    Source: scipy.special.expi.

    >>> gg.evaluate(gg.special.expi([-1.0, 1.0])).round(4)
    array([-0.2194,  1.8951])
    """
    need_scipy("expi")
    return floating_unary(ExpIntegral(), x)


def expn(n: int, x: TensorLike, /) -> Tensor:
    """The generalised exponential integral: y = integral of exp(-x t) / t**n from 1 on [DLMF 8.19].

    Parameters:
        n: an int.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; TypeError if n is no int; GraphGradError without SciPy (the
        extra `scipy`).

    Gradient: dx = -dy * expn(n - 1, x) [DLMF 8.19.13].

    Source: scipy.special.expn.

    >>> gg.evaluate(gg.special.expn(2, [0.5, 1.0])).round(4)
    array([0.3266, 0.1485])
    """
    need_scipy("expn")
    n = whole("the order of expn", n)
    if n > 0:
        return floating_unary(ExpN(n), x)
    (x,) = promoted(x, floating=True)
    terms = [math.factorial(-n) // math.factorial(k) * x ** (k + n - 1) for k in range(1 - n)]
    return exp(-x) * functools.reduce(operator.add, terms)


def spence(x: TensorLike, /) -> Tensor:
    """The dilogarithm of 1 - x: y = integral of log(t) / (1 - t) from 1 to x [DLMF 25.12.1].

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * log(x) / (1 - x).

    Source: scipy.special.spence.

    >>> gg.evaluate(gg.special.spence([0.5, 1.0])).round(4)
    array([0.5822, 0.    ])
    """
    need_scipy("spence")
    return floating_unary(Spence(), x)


def sici(x: TensorLike, /) -> tuple[Tensor, Tensor]:
    """The sine and the cosine integral [DLMF 6.2(ii)], element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: the pair of them, each of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: that of the first is sin(x) / x, that of the second cos(x) / x.

    Source: scipy.special.sici.

    >>> [gg.evaluate(y).round(4) for y in gg.special.sici([1.0])]
    [array([0.9461]), array([0.3374])]
    """
    need_scipy("sici")
    return floating_unary(SineIntegral(0), x), floating_unary(SineIntegral(1), x)


def fresnel(x: TensorLike, /) -> tuple[Tensor, Tensor]:
    """The Fresnel integrals of sin and cos of pi t**2 / 2 [DLMF 7.2(iii)], element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: the pair of them, each of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: that of the first is sin(pi x**2 / 2), that of the second cos(pi x**2 / 2).

    Source: scipy.special.fresnel.

    >>> [gg.evaluate(y).round(4) for y in gg.special.fresnel([1.0])]
    [array([0.4383]), array([0.7799])]
    """
    need_scipy("fresnel")
    return floating_unary(Fresnel(0), x), floating_unary(Fresnel(1), x)


def owens_t(h: TensorLike, a: TensorLike, /) -> Tensor:
    """Owen's T function: the probability that X > h and 0 < Y < a X, for standard normal X, Y.

    Parameters:
        h, a: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands;
        GraphGradError without SciPy (the extra `scipy`).

    Gradient: dh = -dz * exp(-h**2 / 2) erf(a h / sqrt(2)) / sqrt(8 pi), da = dz * exp(-h**2 (1 +
        a**2) / 2) / (2 pi (1 + a**2)).

    Source: scipy.special.owens_t.

    >>> gg.evaluate(gg.special.owens_t(1.0, [0.0, 1.0])).round(4)
    array([0.    , 0.0667])
    """
    need_scipy("owens_t")
    return floating_binary(OwensT(), h, a)
