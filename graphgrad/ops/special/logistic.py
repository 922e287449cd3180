"""The logistic function and its inverse."""

from __future__ import annotations

from ..base import Any, Derivative, Gradients, Node, Tensor, TensorLike, apply, promoted
from ..documented import documented
from ..elementwise.arithmetic import negative
from ..elementwise.exponential import Sigmoid, log, log1p
from ..families import RealUnary, floating_unary

__all__ = [
    "expit",
    "logit",
]


class Logit(RealUnary):
    """y = log(x / (1 - x)), near 1/2 as 2 artanh(2x - 1).

    Gradient: dx = dy / x + dy / (1 - x), infinite at 0 and 1.
    """

    domain = (0.1, 0.9)
    derivative = Derivative(singular=0)

    def kernel(self, xp: Any, x: Any) -> Any:
        t = 2 * x - 1
        near = xp.abs(t) < 0.5
        outside = xp.log(xp.where(near, 1, x)) - xp.log1p(-xp.where(near, 0, x))
        return xp.where(near, 2 * xp.arctanh(xp.where(near, t, 0)), outside)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(LogitSlope(), *node.inputs),)


class LogitSlope(RealUnary):
    """y = 1 / (x (1 - x)). Gradient: dx = dy * (2x - 1) y**2."""

    domain = (0.1, 0.9)
    derivative = Derivative(singular=0)

    def kernel(self, xp: Any, x: Any) -> Any:
        return 1 / (x * (1 - x))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (dy * ((2.0 * x - 1.0) * y * y),)


@documented(Sigmoid)
def expit(x: TensorLike, /) -> Tensor:
    """The logistic function: y = 1 / (1 + exp(-x)), element by element, without overflow.

    Source: scipy.special.expit.

    >>> gg.evaluate(gg.special.expit([0.0, -1000.0]))
    array([0.5, 0. ])
    """
    return floating_unary(Sigmoid(), x)


@documented(Logit)
def logit(x: TensorLike, /) -> Tensor:
    """The inverse of expit: y = log(x / (1 - x)), element by element.

    Parameters: x: any shape; floating or complex, ints and bools become float64.

    Raises: DTypeError for non-numeric input.

    Source: scipy.special.logit.

    >>> gg.evaluate(gg.special.logit([0.5, 0.75])).round(4)
    array([0.    , 1.0986])
    """
    (x,) = promoted(x, floating=True)
    return log(x) - log1p(negative(x)) if x.type.complex else apply(Logit(), x)
