"""The zeta function and Bernoulli's numbers."""

from __future__ import annotations

import math

from ..base import Any, Derivative, Tensor, TensorLike, constant, whole
from ..documented import documented
from . import elementary
from .scipy_functions import OfOrders, Ordered, need_scipy, with_orders

__all__ = [
    "bernoulli",
    "zeta",
]


class Zeta(Ordered):
    """y = the sum of (q + k)**-x over k >= 0.

    Gradient: dq = -dy * x * zeta(x + 1, q) [DLMF 25.11.17]; none by x.
    """

    x: float
    scipy = "zeta"
    domain = (0.5, 3.0)
    derivative = Derivative(singular=0)

    def formula(self, xp: Any, q: Any) -> Any:
        """A few terms, and the rest by Euler and Maclaurin."""
        return elementary.hurwitz(xp, self.x, q)

    @classmethod
    def slope(cls, x: Any, q: Tensor) -> Tensor:
        y: Tensor = zeta(x + 1, q) * -x
        return y

    @classmethod
    def examples(cls) -> Any:
        """Of one power."""
        return (cls(2.5),)


class ZetaOfOrders(OfOrders):
    """y = the sum of (q + k)**-x over k >= 0, of tensors. Gradient: as of Zeta."""

    of = Zeta

    def formula(self, xp: Any, x: Any, q: Any) -> Any:
        """As of Zeta; SciPy has infinity at 1."""
        pole = x == 1
        return xp.where(pole, math.inf, elementary.hurwitz(xp, xp.where(pole, 2.0, x), q))


@documented(Zeta)
def zeta(x: TensorLike, q: TensorLike = 1.0, /) -> Tensor:
    """Hurwitz' zeta function, the sum of (q + k)**-x over k >= 0 [DLMF 25.11.1]; Riemann's at 1.

    Parameters:
        x: a number, or real numbers or integers that broadcast with q.
        q: any shape; floating, ints and bools become float64.

    Returns: y, of the broadcast shape, in the dtype of q; a floating x is promoted with it.

    Raises: ShapeError if the shapes do not broadcast; DTypeError if q or x is not real;
        GradientError where a gradient by x is needed; GraphGradError without SciPy (the extra
        `scipy`).

    Source: scipy.special.zeta.

    >>> gg.evaluate(gg.special.zeta(2.0, [1.0, 2.0])).round(4)
    array([1.6449, 0.6449])
    """
    need_scipy("zeta")
    return with_orders("zeta", Zeta, ZetaOfOrders, q, x=x)


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
