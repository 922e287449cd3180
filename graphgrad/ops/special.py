"""Special functions, under SciPy's names.

erf and what is made of it work without SciPy (slower); the gamma functions need it. Ops that are a
SciPy function have its name as `scipy`, by which other backends find their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from . import reductions
from .arithmetic import abs, multiply, negative, sign
from .base import (
    NO_GRAD,
    Any,
    Gradients,
    Node,
    Onnx,
    Samples,
    Tensor,
    TensorLike,
    apply,
    np,
    promoted,
    wants,
    whole,
)
from .creation import zeros_like
from .exponential import Sigmoid, exp, log, log1p
from .families import RealBinary, RealUnary, floating_binary, floating_unary
from .logic import equal, isfinite, where
from .scipy_functions import need_scipy, scipy_special
from .shaping import squeeze
from .sources import stop_gradient

_scipy: Any = scipy_special

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "expit",
    "gammaln",
    "log_softmax",
    "logit",
    "logsumexp",
    "ndtr",
    "polygamma",
    "softmax",
    "xdivy",
    "xlogy",
]

_TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


def _elementwise(fn: Callable[[float], float], x: Any) -> Any:
    """A function of Python floats applied to every element: slow and right."""
    flat = [fn(float(v)) for v in np.ravel(x)]
    return np.reshape(np.asarray(flat, dtype=x.dtype), np.shape(x))


class Erf(RealUnary):
    """y = 2/sqrt(pi) * integral of exp(-t**2) from 0 to x, dx = dy * 2/sqrt(pi) * exp(-x**2)."""

    onnx = Onnx("Erf")
    scipy = "erf"
    value_range = (-1.0, 1.0)
    relevance = "passed"

    def kernel(self, xp: Any, x: Any) -> Any:
        y = _elementwise(math.erf, x) if _scipy is None else _scipy.erf(x)
        return xp.astype(xp.asarray(y), x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * (_TWO_OVER_SQRT_PI * apply(GAUSSIAN, *node.inputs)),)


class Erfc(RealUnary):
    """y = 1 - erf(x), exact where that would cancel; dx = -dy * 2/sqrt(pi) * exp(-x**2)."""

    scipy = "erfc"
    value_range = (0.0, 2.0)

    def kernel(self, xp: Any, x: Any) -> Any:
        y = _elementwise(math.erfc, x) if _scipy is None else _scipy.erfc(x)
        return xp.astype(xp.asarray(y), x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * (-_TWO_OVER_SQRT_PI * apply(GAUSSIAN, *node.inputs)),)


class Gaussian(RealUnary):
    """y = exp(-x**2), dx = -dy * 2 x y. The rounding of x**2 costs x**2 units in the last place, so
    what it leaves is made up for: of x = h + t, h a multiple of 1/16, h**2 is exact.
    """

    value_range = (0.0, 1.0)

    def kernel(self, xp: Any, x: Any) -> Any:
        a = xp.minimum(xp.abs(x), 40.0)
        h = xp.rint(16 * a) * 0.0625
        square = a * a
        e = xp.exp(-square)
        return e - e * ((h * h - square) + (a - h) * (a + h))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (dy * (y * (-2.0 * x)),)


GAUSSIAN = Gaussian()


class Logit(RealUnary):
    """y = log(x / (1 - x)), near 1/2 as 2 artanh(2x - 1); dx = dy / (x (1 - x))."""

    domain = (0.1, 0.9)
    singular = 0

    def kernel(self, xp: Any, x: Any) -> Any:
        t = 2 * x - 1
        near = xp.abs(t) < 0.5
        outside = xp.log(xp.where(near, 1, x)) - xp.log1p(-xp.where(near, 0, x))
        return xp.where(near, 2 * xp.arctanh(xp.where(near, t, 0)), outside)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(LogitSlope(), *node.inputs),)


class LogitSlope(RealUnary):
    """y = 1 / (x (1 - x)), dx = dy * (2x - 1) y**2."""

    domain = (0.1, 0.9)
    singular = 0

    def kernel(self, xp: Any, x: Any) -> Any:
        return 1 / (x * (1 - x))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (dy * ((2.0 * x - 1.0) * y * y),)


class XLogY(RealBinary):
    """z = x * log(y), and 0 where x is 0. dx = dz * log(y), dy = dz * x / y (0 where x is 0)."""

    domain = (0.5, 2.0)
    scipy = "xlogy"
    linear = (0,)
    singular = 1

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        none = (x == 0) & (y == y)
        return xp.where(none, xp.zeros_like(x), x * xp.log(xp.where(none, xp.ones_like(y), y)))

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return (
            dz * log(y) if wants(x) else NO_GRAD,
            dz * apply(XDivY(), x, y) if wants(y) else NO_GRAD,
        )


class XDivY(RealBinary):
    """z = x / y, and 0 where x is 0, whatever y. dx = dz / y, dy = -dz * z / y, 0 likewise."""

    domain = (0.5, 2.0)
    linear = (0,)
    singular = 1

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        none = (x == 0) & (y == y)
        return xp.where(none, xp.zeros_like(x), x / xp.where(none, xp.ones_like(y), y))

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        (z,) = node.outputs
        return (
            apply(XDivY(), dz, y) if wants(x) else NO_GRAD,
            negative(apply(XDivY(), dz * z, y)) if wants(y) else NO_GRAD,
        )


class GammaLn(RealUnary):
    """y = log |gamma(x)|, dx = dy * digamma(x). Needs SciPy."""

    domain = (0.5, 3.0)
    scipy = "gammaln"
    singular = 0

    def kernel(self, xp: Any, x: Any) -> Any:
        return need_scipy("gammaln").gammaln(x).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (multiply(dy, apply(Digamma(), node.inputs[0])),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        return super().samples(rng) if _scipy else iter(())


class Digamma(GammaLn):
    """y = the derivative of gammaln at x, dx = dy * polygamma(1, x). Needs SciPy."""

    scipy = "digamma"

    def kernel(self, xp: Any, x: Any) -> Any:
        return need_scipy("digamma").digamma(x).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (multiply(dy, apply(PolyGamma(1), node.inputs[0])),)


class PolyGamma(RealUnary):
    """y = the derivative of order `order` of digamma at x. Needs SciPy."""

    order: int
    domain = (0.5, 3.0)
    scipy = "polygamma"

    def kernel(self, xp: Any, x: Any) -> Any:
        return need_scipy("polygamma").polygamma(self.order, x).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (multiply(dy, apply(PolyGamma(self.order + 1), node.inputs[0])),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for order in (1, 2) if _scipy else ():
            yield cls(order), [rng.uniform(*cls.domain, size=(2, 3))]


def erf(x: TensorLike, /) -> Tensor:
    """The error function: y = 2/sqrt(pi) * integral of exp(-t**2) from 0 to x [DLMF 7.2.1].

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * 2/sqrt(pi) * exp(-x**2) [DLMF 7.10].

    >>> gg.evaluate(gg.special.erf([0.0, 1.0])).round(4)
    array([0.    , 0.8427])
    """
    return floating_unary(Erf(), x)


def erfc(x: TensorLike, /) -> Tensor:
    """The complementary error function: y = 1 - erf(x), exact where that would cancel [DLMF 7.2.2].

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = -dy * 2/sqrt(pi) * exp(-x**2) [DLMF 7.10].

    >>> gg.evaluate(gg.special.erfc([0.0, 1.0])).round(4)
    array([1.    , 0.1573])
    """
    return floating_unary(Erfc(), x)


def expit(x: TensorLike, /) -> Tensor:
    """The logistic function: y = 1 / (1 + exp(-x)), element by element, without overflow.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * y (1 - y).

    Source: scipy.special.expit.

    >>> gg.evaluate(gg.special.expit([0.0, -1000.0]))
    array([0.5, 0. ])
    """
    return floating_unary(Sigmoid(), x)


def logit(x: TensorLike, /) -> Tensor:
    """The inverse of expit: y = log(x / (1 - x)), element by element.

    Parameters: x: any shape; floating or complex, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = dy / x + dy / (1 - x), infinite at 0 and 1.

    Source: scipy.special.logit.

    >>> gg.evaluate(gg.special.logit([0.5, 0.75])).round(4)
    array([0.    , 1.0986])
    """
    (x,) = promoted(x, floating=True)
    return log(x) - log1p(negative(x)) if x.type.complex else apply(Logit(), x)


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


def logsumexp(
    a: TensorLike,
    axis: Any = None,
    b: TensorLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """y = log(sum(b * exp(a))) over axes, without overflow.

    Parameters:
        a: any shape; floating, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        b: factors, of a shape that broadcasts with that of a; None: 1. A term with 0 is 0.
        keepdims: whether the axes stay, with length 1.
        return_sign: whether the sum may be negative: y is then the logarithm of its modulus.

    Returns: y, a without the axes, or with length 1 there; -inf over nothing, NaN where the sum is
        negative. With return_sign, y and the sign of the sum.

    Raises: ShapeError if a has no such axis or b does not broadcast; DTypeError if a is complex.

    Gradient: da = dy * b * exp(a - y) * the sign, db = dy * exp(a - y) * the sign.

    Source: scipy.special.logsumexp.

    >>> gg.evaluate(gg.special.logsumexp([99.0, 99.0], b=[1.0, 2.0])).round(4)
    np.float64(100.0986)
    """
    if b is None and not return_sign:
        return reductions.logsumexp(a, axis, keepdims)
    a, b = promoted(a, 1.0 if b is None else b, floating=True)
    a = a + zeros_like(b)
    shown = where(equal(b, 0), -math.inf, a)
    most = reductions.max(stop_gradient(shown), axis, keepdims=True)
    most = where(isfinite(most), most, 0.0)
    total = reductions.sum(b * exp(where(equal(b, 0), 0.0, a - most)), axis, keepdims=True)
    found = sign(total)
    y = log(abs(total) if return_sign else total) + most
    if not keepdims:
        axes = reductions.normal_axes(axis, a.ndim)
        y, found = squeeze(y, axes), squeeze(found, axes)
    return (y, found) if return_sign else y


def log_softmax(x: TensorLike, axis: Any = None) -> Tensor:
    """y = log(softmax(x)) over axes, without overflow or log of zero.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.

    Returns: y, of the shape and dtype of x.

    Raises: ShapeError if x has no such axis; DTypeError if x is complex.

    Gradient: dx = dy - exp(y) * sum(dy), the sum over the axes.

    Source: scipy.special.log_softmax.

    >>> gg.evaluate(gg.special.log_softmax([0.0, 0.0])).round(4)
    array([-0.6931, -0.6931])
    """
    (x,) = promoted(x, floating=True)
    return x - reductions.logsumexp(x, axis, keepdims=True)


def softmax(x: TensorLike, axis: Any = None) -> Tensor:
    """y = exp(x) / sum(exp(x)) over axes, without overflow; nn.softmax is that over one.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.

    Returns: y, of the shape and dtype of x.

    Raises: ShapeError if x has no such axis; DTypeError if x is complex.

    Gradient: dx = y * (dy - sum(dy * y)), the sum over the axes.

    Source: scipy.special.softmax.

    >>> gg.evaluate(gg.special.softmax([0.0, 0.0]))
    array([0.5, 0.5])
    """
    return exp(log_softmax(x, axis))


def xlogy(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x * log(y), and 0 where x is 0 (unless y is NaN), element by element.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dx = dz * log(y), dy = dz * x / y, which is 0 where x is 0.

    Source: scipy.special.xlogy.

    >>> gg.evaluate(gg.special.xlogy([0.0, 2.0], [0.0, 1.0]))
    array([0., 0.])
    """
    return floating_binary(XLogY(), x, y)


def xdivy(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x / y, and 0 where x is 0 (unless y is NaN), element by element.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dx = dz / y, dy = -dz * z / y; 0 where the numerator is 0.

    >>> gg.evaluate(gg.special.xdivy([0.0, 2.0], [0.0, 4.0]))
    array([0. , 0.5])
    """
    return floating_binary(XDivY(), x, y)


def gammaln(x: TensorLike, /) -> Tensor:
    """y = log |gamma(x)|, element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * digamma(x) [DLMF 5.2.2].

    Source: scipy.special.gammaln.

    >>> gg.evaluate(gg.special.gammaln([1.0, 5.0])).round(4)
    array([0.    , 3.1781])
    """
    need_scipy("gammaln")
    return floating_unary(GammaLn(), x)


def digamma(x: TensorLike, /) -> Tensor:
    """The derivative of gammaln: y = gamma'(x) / gamma(x) [DLMF 5.2.2], element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * polygamma(1, x) [DLMF 5.15].

    Source: scipy.special.digamma.

    >>> gg.evaluate(gg.special.digamma([1.0, 2.0])).round(4)
    array([-0.5772,  0.4228])
    """
    need_scipy("digamma")
    return floating_unary(Digamma(), x)


def polygamma(n: int, x: TensorLike, /) -> Tensor:
    """The derivative of order n of digamma [DLMF 5.15], element by element.

    Parameters:
        n: an int >= 0.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; TypeError if n is no int, ValueError if n < 0;
        GraphGradError without SciPy (the extra `scipy`).

    Gradient: dx = dy * polygamma(n + 1, x).

    Source: scipy.special.polygamma.

    >>> gg.evaluate(gg.special.polygamma(1, [1.0, 2.0])).round(4)
    array([1.6449, 0.6449])
    """
    need_scipy("polygamma")
    n = whole("the order of polygamma", n)
    if n < 0:
        raise ValueError(f"polygamma takes an order n >= 0, got {n}")
    return floating_unary(PolyGamma(n), x) if n else digamma(x)
