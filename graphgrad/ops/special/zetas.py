"""The zeta function and Bernoulli's numbers."""

from __future__ import annotations

from ..base import Any, Gradients, Node, Tensor, TensorLike, apply, constant, whole
from ..families import floating_unary
from . import elementary
from .scipy_functions import ScipyUnary, need_scipy, without_gradient

__all__ = [
    "bernoulli",
    "zeta",
]


class Zeta(ScipyUnary):
    """y = the sum of (q + k)**-x over k >= 0, dq = -dy * x * zeta(x + 1, q) [DLMF 25.11.17]."""

    x: float
    scipy = "zeta"
    domain = (0.5, 3.0)
    singular = 0

    def formula(self, xp: Any, q: Any) -> Any:
        """A few terms, and the rest by Euler and Maclaurin."""
        return elementary.hurwitz(xp, self.x, q)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * (-self.x * apply(Zeta(self.x + 1.0), *node.inputs)),)

    @classmethod
    def examples(cls) -> Any:
        """Of one power."""
        return (cls(2.5),)


def zeta(x: float, q: TensorLike = 1.0, /) -> Tensor:
    """Hurwitz' zeta function, the sum of (q + k)**-x over k >= 0 [DLMF 25.11.1]; Riemann's at 1.

    Parameters:
        x: a number.
        q: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of q.

    Raises: DTypeError if q is complex or x is no number; GraphGradError without SciPy (the extra
        `scipy`).

    Gradient: dq = -dy * x * zeta(x + 1, q) [DLMF 25.11.17]; none by x.

    Source: scipy.special.zeta.

    >>> gg.evaluate(gg.special.zeta(2.0, [1.0, 2.0])).round(4)
    array([1.6449, 0.6449])
    """
    need_scipy("zeta")
    return floating_unary(Zeta(*without_gradient("zeta", x=x)), q)


def bernoulli(n: int, /) -> Tensor:
    """The Bernoulli numbers B_0 to B_n, B_1 = -1/2.

    Parameters: n: a known integer >= 0.

    Returns: float64, (n + 1,).

    Raises: ValueError for n < 0; GraphGradError without SciPy (the extra `scipy`).

    Source: scipy.special.bernoulli.

    >>> gg.evaluate(gg.special.bernoulli(4)).round(4)
    array([ 1.    , -0.5   ,  0.1667,  0.    , -0.0333])
    """
    if whole("n", n) < 0:
        raise ValueError(f"Bernoulli numbers count from 0, got {n}")
    numbers = need_scipy("bernoulli").bernoulli(max(n, 2))
    return constant(numbers[: n + 1])
