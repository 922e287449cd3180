"""Entropies, and products x log(y) that are 0 where x is 0."""

from __future__ import annotations

import math

from ..base import NO_GRAD, Any, Derivative, Gradients, Node, Tensor, TensorLike, apply, np, wants
from ..documented import documented
from ..elementwise.arithmetic import negative
from ..elementwise.exponential import log, log1p
from ..elementwise.logic import less, where
from ..elementwise.magnitudes import abs
from ..families import RealBinary, floating_binary, floating_unary
from .scipy_functions import ScipyBinary, ScipyUnary, need_scipy

__all__ = [
    "entr",
    "kl_div",
    "rel_entr",
    "xdivy",
    "xlog1py",
    "xlogy",
]


ONE_OVER_E = (0.36787944117144233, -1.2428753672788363e-17)
"""1 / e, in two parts."""


class Entropy(ScipyUnary):
    """y = -x log x, 0 at 0 and -inf for x < 0. Gradient: dx = -dy * (log x + 1), infinite at 0."""

    scipy = "entr"
    domain = (0.5, 3.0)
    derivative = Derivative(singular=0)

    def formula(self, xp: Any, x: Any) -> Any:
        """With its limit at 0."""
        entropy = -x * xp.log(xp.where(x > 0, x, 1.0))
        return xp.where(x > 0, entropy, xp.where(x == 0, 0.0, xp.where(x < 0, -np.inf, x)))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        zero = x.dtype.type(ONE_OVER_E[0])  # around which log x + 1 would keep few digits
        past = (x - zero) - (ONE_OVER_E[0] - float(zero) + ONE_OVER_E[1])
        near = less(abs(past), 0.1)
        slope = where(near, log1p(math.e * where(near, past, 0.0)), log(x) + 1.0)
        return (-(dy * slope),)


class RelativeEntropy(ScipyBinary):
    """z = x log(x / y). Gradient: dx = dz * (log(x / y) + 1), dy = -dz * x / y."""

    scipy = "rel_entr"
    derivative = Derivative(singular=1)

    def formula(self, xp: Any, x: Any, y: Any) -> Any:
        """With its limits at 0."""
        inside = (x > 0) & (y > 0)
        entropy = x * xp.log(xp.where(inside, x, 1.0) / xp.where(inside, y, 1.0))
        edge = xp.where((x == 0) & (y >= 0), 0.0, np.inf)
        return xp.where(inside, entropy, xp.where((x != x) | (y != y), np.nan, edge))

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return (
            dz * (log(x / y) + 1.0) if wants(x) else NO_GRAD,
            -(dz * (x / y)) if wants(y) else NO_GRAD,
        )


class KlDivergence(ScipyBinary):
    """z = x log(x / y) - x + y. Gradient: dx = dz * log(x / y), dy = dz * (1 - x / y)."""

    scipy = "kl_div"
    derivative = Derivative(singular=1)

    def formula(self, xp: Any, x: Any, y: Any) -> Any:
        """With its limits at 0."""
        inside = (x > 0) & (y > 0)
        divergence = x * xp.log(xp.where(inside, x, 1.0) / xp.where(inside, y, 1.0)) - x + y
        edge = xp.where((x == 0) & (y >= 0), y, np.inf)
        return xp.where(inside, divergence, xp.where((x != x) | (y != y), np.nan, edge))

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        share = where(less(2.0 * x, y), 1.0 - x / y, (y - x) / y)  # nor does x / y**2 cancel
        return (
            dz * log(x / y) if wants(x) else NO_GRAD,
            dz * share if wants(y) else NO_GRAD,
        )


class XLogY(RealBinary):
    """z = x * log(y), and 0 where x is 0.

    Gradient: dx = dz * log(y), dy = dz * x / y, which is 0 where x is 0.
    """

    domain = (0.5, 2.0)
    scipy = "xlogy"
    linear = (0,)
    derivative = Derivative(singular=1)

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
    """z = x / y, and 0 where x is 0, whatever y.

    Gradient: dx = dz / y, dy = -dz * z / y; 0 where the numerator is 0.
    """

    domain = (0.5, 2.0)
    linear = (0,)
    derivative = Derivative(singular=1)

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


class XLog1pY(RealBinary):
    """z = x * log(1 + y), and 0 where x is 0.

    Gradient: dx = dz * log(1 + y), dy = dz * x / (1 + y), which is 0 where x is 0.
    """

    domain = (0.5, 2.0)
    scipy = "xlog1py"
    linear = (0,)
    derivative = Derivative(singular=1)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        none = (x == 0) & (y == y)
        return xp.where(none, xp.zeros_like(x), x * xp.log1p(xp.where(none, xp.zeros_like(y), y)))

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return (
            dz * log1p(y) if wants(x) else NO_GRAD,
            dz * xdivy(x, 1.0 + y) if wants(y) else NO_GRAD,
        )


@documented(Entropy)
def entr(x: TensorLike, /) -> Tensor:
    """The entropy y = -x log x, element by element: 0 at 0, -inf for x < 0.

    Source: scipy.special.entr.

    >>> gg.evaluate(gg.special.entr([0.0, 0.5])).round(4)
    array([0.    , 0.3466])
    """
    need_scipy("entr")
    return floating_unary(Entropy(), x)


@documented(RelativeEntropy)
def rel_entr(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The relative entropy z = x log(x / y), element by element; inf where that is not defined.

    Source: scipy.special.rel_entr.

    >>> gg.evaluate(gg.special.rel_entr([0.5], [0.25])).round(4)
    array([0.3466])
    """
    need_scipy("rel_entr")
    return floating_binary(RelativeEntropy(), x, y)


@documented(KlDivergence)
def kl_div(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The Kullback-Leibler divergence z = x log(x / y) - x + y, element by element.

    Source: scipy.special.kl_div.

    >>> gg.evaluate(gg.special.kl_div([0.5], [0.25])).round(4)
    array([0.0966])
    """
    need_scipy("kl_div")
    return floating_binary(KlDivergence(), x, y)


@documented(XLogY)
def xlogy(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x * log(y), and 0 where x is 0 (unless y is NaN), element by element.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Source: scipy.special.xlogy.

    >>> gg.evaluate(gg.special.xlogy([0.0, 2.0], [0.0, 1.0]))
    array([0., 0.])
    """
    return floating_binary(XLogY(), x, y)


@documented(XDivY)
def xdivy(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x / y, and 0 where x is 0 (unless y is NaN), element by element.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    >>> gg.evaluate(gg.special.xdivy([0.0, 2.0], [0.0, 4.0]))
    array([0. , 0.5])
    """
    return floating_binary(XDivY(), x, y)


@documented(XLog1pY)
def xlog1py(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x * log(1 + y), and 0 where x is 0 (unless y is NaN), element by element.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become float64.

    Source: scipy.special.xlog1py.

    >>> gg.evaluate(gg.special.xlog1py([0.0, 2.0], [-1.0, 0.0]))
    array([0., 0.])
    """
    return floating_binary(XLog1pY(), x, y)
