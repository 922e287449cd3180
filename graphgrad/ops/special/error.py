"""The error function, its inverses and related functions.

Erf and Erfc work without SciPy (slower); the others need it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

from ..base import (
    Any,
    Derivative,
    Gradients,
    Node,
    Onnx,
    Samples,
    Tensor,
    TensorLike,
    Traits,
    apply,
    cast,
    kind_of,
    np,
    promoted,
)
from ..documented import documented
from ..elementwise.exponential import exp
from ..elementwise.powers import square
from ..families import RealUnary, floating_unary
from . import elementary
from .scipy_functions import OfScipy, ScipyUnary, need_scipy, of_either, scipy_special

__all__ = [
    "dawsn",
    "erf",
    "erfc",
    "erfcinv",
    "erfcx",
    "erfinv",
    "wofz",
]

_TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


_ROOT_PI = math.sqrt(math.pi)


def _elementwise(fn: Callable[[float], float], x: Any) -> Any:
    """A function of Python floats applied to every element: slow and right."""
    flat = [fn(float(v)) for v in np.ravel(x)]
    return np.reshape(np.asarray(flat, dtype=x.dtype), np.shape(x))


class Erf(RealUnary):
    """y = 2/sqrt(pi) * integral of exp(-t**2) from 0 to x.

    Gradient: dx = dy * 2/sqrt(pi) * exp(-x**2) [DLMF 7.10].
    """

    onnx = Onnx("Erf")
    scipy = "erf"
    traits = Traits(value_range=(-1.0, 1.0))
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        y = _elementwise(math.erf, x) if scipy_special is None else scipy_special.erf(x)
        return xp.astype(xp.asarray(y), x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * (_TWO_OVER_SQRT_PI * apply(GAUSSIAN, *node.inputs)),)


class Erfc(RealUnary):
    """y = 1 - erf(x), exact where that would cancel.

    Gradient: dx = -dy * 2/sqrt(pi) * exp(-x**2) [DLMF 7.10].
    """

    scipy = "erfc"
    traits = Traits(value_range=(0.0, 2.0))

    def kernel(self, xp: Any, x: Any) -> Any:
        y = _elementwise(math.erfc, x) if scipy_special is None else scipy_special.erfc(x)
        return xp.astype(xp.asarray(y), x.dtype)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.traced(lambda xp, x: elementary.erfc(xp, x, GAUSSIAN.kernel), x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * (-_TWO_OVER_SQRT_PI * apply(GAUSSIAN, *node.inputs)),)


class Gaussian(RealUnary):
    """y = exp(-x**2). Gradient: dx = -dy * 2 x y.

    The rounding of x**2 costs x**2 units in the last place, so what it leaves is made up for: of x
    = h + t, h a multiple of 1/16, h**2 is exact.
    """

    traits = Traits(value_range=(0.0, 1.0))

    def kernel(self, xp: Any, x: Any) -> Any:
        a = xp.minimum(xp.abs(x), 40.0)
        h = xp.rint(16 * a) * 0.0625
        square = a * a
        e = xp.exp(-square)
        return e - e * ((h * h - square) + (a - h) * (a + h))

    def to_onnx(self, to: Any, x: Any) -> Any:
        """Below float64 as it is said: x**2 units in the last place are less than the rest."""
        return to.Exp(to.Neg(to.Mul(x, x))) if x.dtype.itemsize < 8 else None

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (dy * (y * (-2.0 * x)),)


GAUSSIAN = Gaussian()


_FARTHEST = 50.0
"""Beyond any finite inverse: at the ends, where y is infinite, y' is."""


class InverseSlope(ScipyUnary, abstract=True):
    """Family: y' of an inverse y of x, with y' = c exp(a y**2) and so y'' = 2 a y y'**2.

    The rounding of y alone costs exp(a y**2) 2 a y**2 units in the last place. But it is
    erfcx(r) / erfc(r) with r = sqrt(a) |y|, and erfc(r) is a tail that x says to the last digit
    [DLMF 7.2.3]; erfcx hardly changes where r does.
    """

    scipy = "erfcx"
    inverse: ClassVar[type[ScipyUnary]]
    rate: ClassVar[float] = 1.0
    factor: ClassVar[float] = _ROOT_PI / 2
    derivative = Derivative(singular=0)

    def tail(self, xp: Any, x: Any) -> Any:
        """erfc(r)."""
        raise NotImplementedError

    def kernel(self, xp: Any, x: Any) -> Any:
        y = self.inverse().kernel(xp, x)
        r = np.minimum(np.abs(y), _FARTHEST) * y.dtype.type(math.sqrt(self.rate))
        with np.errstate(divide="ignore"):
            slope = self.factor * need_scipy("erfcx").erfcx(r) / self.tail(xp, x)
        return np.asarray(slope).astype(x.dtype)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(self.formula, x)

    def formula(self, xp: Any, x: Any) -> Any:
        """The same, of erfcx by elementary functions."""
        r = xp.minimum(xp.abs(self.inverse().formula(xp, x)), _FARTHEST) * math.sqrt(self.rate)
        return self.factor * elementary.erfcx(xp, r) / self.tail(xp, x)

    def rough(self, xp: Any, y: Any) -> Any:
        """The same of y, without erfcx, which not every backend has."""
        return self.factor * xp.exp(self.rate * y * y)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        y = apply(self.inverse(), *node.inputs)
        return (dy * (2.0 * self.rate * y * square(node.outputs[0])),)


class InverseFunction(ScipyUnary, abstract=True):
    """Family: inverses whose derivative is an InverseSlope."""

    slope: ClassVar[type[InverseSlope]]
    derivative = Derivative(singular=0)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(self.slope(), *node.inputs),)


class ErfInv(InverseFunction):
    """y = the number with erf(y) = x. Gradient: dx = dy * sqrt(pi)/2 * exp(y**2) [DLMF 7.17(i)]."""

    scipy = "erfinv"
    domain = (-0.9, 0.9)

    def formula(self, xp: Any, x: Any) -> Any:
        """The normal quantile of half of it."""
        half = 0.5 * x
        return math.sqrt(0.5) * elementary.normal_point(xp, half, 0.5 - xp.abs(half))


class ErfInvSlope(InverseSlope):
    """y = the derivative of erfinv at x. Gradient: dx = dy * 2 erfinv(x) y**2."""

    inverse = ErfInv
    domain = (-0.9, 0.9)

    def tail(self, xp: Any, x: Any) -> Any:
        return 1 - xp.abs(x)


class ErfcInv(InverseFunction):
    """y = the number with erfc(y) = x.

    Gradient: dx = -dy * sqrt(pi)/2 * exp(y**2) [DLMF 7.17(i)].
    """

    scipy = "erfcinv"
    domain = (0.1, 1.9)

    def formula(self, xp: Any, x: Any) -> Any:
        """The normal quantile of half of it, from the other end."""
        half = 0.5 * x
        return -math.sqrt(0.5) * elementary.normal_point(
            xp, half - 0.5, xp.minimum(half, 1.0 - half)
        )


class ErfcInvSlope(InverseSlope):
    """y = the derivative of erfcinv at x. Gradient: dx = dy * 2 erfcinv(x) y**2."""

    inverse = ErfcInv
    domain = (0.1, 1.9)
    factor = -_ROOT_PI / 2

    def tail(self, xp: Any, x: Any) -> Any:
        return xp.minimum(x, 2 - x)


ErfInv.slope, ErfcInv.slope = ErfInvSlope, ErfcInvSlope


class Scaled(OfScipy, abstract=True):
    """Family: the derivative of this order of a function f with f' = s (2 x f - c), s = 1 or -1.

    The next ones are f(n) = 2 s (x f(n-1) + (n-1) f(n-2)), a difference of large numbers where x is
    large; there it is by the series in 1/x, each term of which is a power with derivatives of its
    own: f = c/2 * (the sum over k of (2k - 1)!! (-s)**k / (2**k x**(2k+1))) [DLMF 7.12].
    """

    order: int = 0
    form: ClassVar[tuple[float, complex]] = (1.0, 1.0)

    def kernel(self, xp: Any, x: Any) -> Any:
        y = self._derived(x, getattr(need_scipy(self.scipy), self.scipy)(x))
        far = self._far(x)
        if self.order and np.any(far):
            y = np.where(far, self._series(np, np.where(far, x, 1.0)), y)
        return np.asarray(y).astype(x.dtype)

    def to_onnx(self, to: Any, *xs: Any) -> Any:
        return to.in_double(self._formula, *xs)

    def _formula(self, xp: Any, x: Any) -> Any:
        far, y = self._far(x), self._derived(x, self.formula(xp, x))
        return xp.where(far, self._series(xp, xp.where(far, x, 1.0)), y) if self.order else y

    def _far(self, x: Any) -> Any:
        """Where the series in 1 / x is to be taken."""
        return x > 12 if self.form[0] == 1 else abs(x) > 12

    def _derived(self, x: Any, y: Any) -> Any:
        """The derivative, from the function."""
        s, c = self.form
        previous: Any = 0.0
        for n in range(1, self.order + 1):
            more = -c if n == 1 else 2 * (n - 1) * previous
            previous, y = y, s * (2 * x * y + more)
        return y

    def _series(self, xp: Any, x: Any) -> Any:
        s, c = self.form
        n = self.order
        term = c / 2 * (-1) ** n * math.factorial(n) / x ** (n + 1)
        total = term
        for k in range(1, 24):
            power = 2 * k - 1  # of 1/x in the term before
            grown = (power + n) * (power + n + 1) / (power * (power + 1))
            term = term * (-s * power / 2 * grown) / (x * x)
            total = total + xp.where(xp.abs(term) < xp.abs(total), term, 0.0)
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
    """y = exp(x**2) erfc(x), or the derivative of this order, whose gradient is the next one.

    Gradient: dx = dy * (2 x y - 2 / sqrt(pi)), by its series where that would cancel [DLMF
        7.12].
    """

    scipy = "erfcx"
    form = (1.0, 2 / _ROOT_PI)

    def formula(self, xp: Any, x: Any) -> Any:
        """By an interpolation of its logarithm."""
        return elementary.erfcx(xp, x)


class Dawson(Scaled):
    """y = exp(-x**2) * integral of exp(t**2) from 0 to x, or the derivative of this order, whose
    gradient is the next one.

    Gradient: dx = dy * (1 - 2 x y), by its series where that would cancel [DLMF 7.12].
    """

    scipy = "dawsn"
    form = (-1.0, 1.0)

    def formula(self, xp: Any, x: Any) -> Any:
        """A sum of bells."""
        return elementary.dawson(xp, x)


class Faddeeva(Scaled):
    """y = exp(-z**2) erfc(-i z), or the derivative of this order, whose gradient is the next
    one; of complex z, and holomorphic.

    Gradient: dz = dw * (2 i / sqrt(pi) - 2 z w) [DLMF 7.10.2].
    """

    scipy = "wofz"
    kinds = "c"
    form = (-1.0, 2j / _ROOT_PI)

    def kernel(self, xp: Any, x: Any) -> Any:
        """In the lower half plane, where w grows, by w(z) = 2 exp(-z**2) - w(-z)."""
        below = x.imag < 0
        w = super().kernel(xp, np.where(below, -x, x) if self.order else x)
        if not self.order or not np.any(below):
            return w
        previous, grown = 0.0, 2 * np.exp(-x * x)
        for n in range(1, self.order + 1):
            previous, grown = grown, -2 * (x * grown + (n - 1) * previous)
        return np.where(below, grown - (-1) ** self.order * w, w).astype(x.dtype)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        z = rng.uniform(-2, 2, size=(2, 3)) + 1j * rng.uniform(-1, 1, size=(2, 3))
        for order in (0, 1) if scipy_special else ():
            yield cls(order), [z]
            yield cls(order), [z[0].astype("complex64")]


class ComplexErf(OfScipy):
    """y = erf(z) of complex z. Gradient: dz = dy * 2/sqrt(pi) * exp(-z**2)."""

    scipy = "erf"
    kinds = "c"
    slope: ClassVar[float] = 2 / _ROOT_PI

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (z,) = node.inputs
        return (dy * (self.slope * exp(-z * z)),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        z = rng.uniform(-1, 1, size=(2, 3)) + 1j * rng.uniform(-1, 1, size=(2, 3))
        if scipy_special:
            yield cls(), [z]
            yield cls(), [z[0].astype("complex64")]


class ComplexErfc(ComplexErf):
    """y = erfc(z) of complex z. Gradient: dz = -dy * 2/sqrt(pi) * exp(-z**2)."""

    scipy = "erfc"
    slope = -2 / _ROOT_PI


@documented(Erf)
def erf(x: TensorLike, /) -> Tensor:
    """The error function: y = 2/sqrt(pi) * integral of exp(-t**2) from 0 to x [DLMF 7.2.1].

    Parameters: x: any shape; floating or complex, ints and bools become float64.

    Raises: GraphGradError for complex x without SciPy (the extra `scipy`).

    >>> gg.evaluate(gg.special.erf([0.0, 1.0])).round(4)
    array([0.    , 0.8427])
    """
    return of_either(Erf(), ComplexErf(), x)


@documented(Erfc)
def erfc(x: TensorLike, /) -> Tensor:
    """The complementary error function: y = 1 - erf(x), exact where that would cancel [DLMF 7.2.2].

    Parameters: x: any shape; floating or complex, ints and bools become float64.

    Raises: GraphGradError for complex x without SciPy (the extra `scipy`).

    >>> gg.evaluate(gg.special.erfc([0.0, 1.0])).round(4)
    array([1.    , 0.1573])
    """
    return of_either(Erfc(), ComplexErfc(), x)


@documented(ErfInv)
def erfinv(x: TensorLike, /) -> Tensor:
    """The inverse of erf: erf(y) = x, element by element; infinite at -1 and 1.

    Source: scipy.special.erfinv.

    >>> gg.evaluate(gg.special.erfinv([0.0, 0.5])).round(4)
    array([0.    , 0.4769])
    """
    need_scipy("erfinv")
    return floating_unary(ErfInv(), x)


@documented(ErfcInv)
def erfcinv(x: TensorLike, /) -> Tensor:
    """The inverse of erfc: erfc(y) = x, element by element; infinite at 0 and 2.

    Source: scipy.special.erfcinv.

    >>> gg.evaluate(gg.special.erfcinv([0.5, 1.5])).round(4)
    array([ 0.4769, -0.4769])
    """
    need_scipy("erfcinv")
    return floating_unary(ErfcInv(), x)


@documented(Erfcx)
def erfcx(x: TensorLike, /) -> Tensor:
    """Scaled complementary error function: y = exp(x**2) erfc(x) [DLMF 7.2.3], without underflow.

    Source: scipy.special.erfcx.

    >>> gg.evaluate(gg.special.erfcx([0.0, 1.0, 99.0])).round(4)
    array([1.    , 0.4276, 0.0057])
    """
    need_scipy("erfcx")
    return floating_unary(Erfcx(0), x)


@documented(Dawson)
def dawsn(x: TensorLike, /) -> Tensor:
    """Dawson's integral: y = exp(-x**2) * integral of exp(t**2) from 0 to x [DLMF 7.2.5].

    Source: scipy.special.dawsn.

    >>> gg.evaluate(gg.special.dawsn([0.0, 1.0])).round(4)
    array([0.    , 0.5381])
    """
    need_scipy("dawsn")
    return floating_unary(Dawson(0), x)


@documented(Faddeeva)
def wofz(z: TensorLike, /) -> Tensor:
    """The Faddeeva function w(z) = exp(-z**2) erfc(-i z), element by element.

    Parameters: z: any shape; complex, what is real becomes complex.

    Returns: w, complex, shape of z.

    Raises: GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.wofz; DLMF 7.10.2.

    >>> gg.evaluate(gg.special.wofz(0.0))
    array(1.+0.j)
    """
    need_scipy("wofz")
    (z,) = promoted(z, floating=True)
    if kind_of(z.dtype) != "c":
        z = cast(z, "complex64" if z.dtype.itemsize < 8 else "complex128")
    return apply(Faddeeva(0), z)
