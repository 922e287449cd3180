"""Special functions, under SciPy's names.

erf and what is made of it work without SciPy (slower); the gamma functions need it. Ops that are a
SciPy function have its name as `scipy`, by which other backends find their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..ir.lazy import lazy_module
from .arithmetic import multiply, negative
from .base import (
    NO_GRAD,
    Any,
    Gradients,
    GraphGradError,
    Node,
    Onnx,
    Samples,
    Tensor,
    TensorLike,
    apply,
    np,
    promoted,
    wants,
)
from .exponential import Sigmoid, exp, log, log1p
from .families import RealBinary, RealUnary, floating_binary, floating_unary
from .reductions import logsumexp

_scipy: Any = lazy_module("scipy.special")

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "expit",
    "gammaln",
    "logit",
    "logsumexp",
    "ndtr",
    "polygamma",
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
        (x,) = node.inputs
        return (dy * (_TWO_OVER_SQRT_PI * exp(-(x * x))),)


class Erfc(RealUnary):
    """y = 1 - erf(x), exact where that would cancel; dx = -dy * 2/sqrt(pi) * exp(-x**2)."""

    scipy = "erfc"
    value_range = (0.0, 2.0)

    def kernel(self, xp: Any, x: Any) -> Any:
        y = _elementwise(math.erfc, x) if _scipy is None else _scipy.erfc(x)
        return xp.astype(xp.asarray(y), x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy * (-_TWO_OVER_SQRT_PI * exp(-(x * x))),)


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


def _need_scipy(what: str) -> Any:
    if _scipy is None:
        raise GraphGradError(f"{what} needs SciPy: pip install 'graphgrad[scipy]'")
    return _scipy


class GammaLn(RealUnary):
    """y = log |gamma(x)|, dx = dy * digamma(x). Needs SciPy."""

    domain = (0.5, 3.0)
    scipy = "gammaln"
    singular = 0

    def kernel(self, xp: Any, x: Any) -> Any:
        return _need_scipy("gammaln").gammaln(x).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (multiply(dy, apply(Digamma(), node.inputs[0])),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        return super().samples(rng) if _scipy else iter(())


class Digamma(GammaLn):
    """y = the derivative of gammaln at x, dx = dy * polygamma(1, x). Needs SciPy."""

    scipy = "digamma"

    def kernel(self, xp: Any, x: Any) -> Any:
        return _need_scipy("digamma").digamma(x).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (multiply(dy, apply(PolyGamma(1), node.inputs[0])),)


class PolyGamma(RealUnary):
    """y = the derivative of order `order` of digamma at x. Needs SciPy."""

    order: int
    domain = (0.5, 3.0)
    scipy = "polygamma"

    def kernel(self, xp: Any, x: Any) -> Any:
        return _need_scipy("polygamma").polygamma(self.order, x).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (multiply(dy, apply(PolyGamma(self.order + 1), node.inputs[0])),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for order in (1, 2) if _scipy else ():
            yield cls(order), [rng.uniform(*cls.domain, size=(2, 3))]


def erf(x: TensorLike, /) -> Tensor:
    """The error function, element by element. Ints become float64."""
    return floating_unary(Erf(), x)


def erfc(x: TensorLike, /) -> Tensor:
    """1 - erf(x), element by element, accurate for large x. Ints become float64."""
    return floating_unary(Erfc(), x)


def expit(x: TensorLike, /) -> Tensor:
    """1 / (1 + exp(-x)), element by element, without overflow. Ints become float64."""
    return floating_unary(Sigmoid(), x)


def logit(x: TensorLike, /) -> Tensor:
    """log(x / (1 - x)), element by element: the inverse of expit. Ints become float64."""
    (x,) = promoted(x, floating=True)
    return log(x) - log1p(negative(x))


def ndtr(x: TensorLike, /) -> Tensor:
    """The probability that a standard normal number is less than x, element by element."""
    (x,) = promoted(x, floating=True)
    return 0.5 * erfc(x * -math.sqrt(0.5))


def xlogy(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x * log(y), and 0 where x is 0 (unless y is NaN), element by element, broadcast."""
    return floating_binary(XLogY(), x, y)


def xdivy(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x / y, and 0 where x is 0 (unless y is NaN), element by element, broadcast."""
    return floating_binary(XDivY(), x, y)


def gammaln(x: TensorLike, /) -> Tensor:
    """log |gamma(x)|, element by element. Needs the extra `scipy`."""
    _need_scipy("gammaln")
    return floating_unary(GammaLn(), x)


def digamma(x: TensorLike, /) -> Tensor:
    """The derivative of gammaln, element by element. Needs the extra `scipy`."""
    _need_scipy("digamma")
    return floating_unary(Digamma(), x)


def polygamma(n: int, x: TensorLike, /) -> Tensor:
    """The derivative of order n of digamma, element by element. Needs the extra `scipy`."""
    _need_scipy("polygamma")
    return floating_unary(PolyGamma(int(n)), x) if n else digamma(x)
