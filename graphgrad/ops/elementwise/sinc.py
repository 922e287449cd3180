"""sin(pi x) / (pi x), with derivatives that are accurate at 0."""

from __future__ import annotations

import math

from ..base import Any, Gradients, Node, Samples, Tensor, TensorLike, apply, as_tensor, np
from ..families import FloatUnary, floating_unary

__all__ = ["sinc"]

TERMS = 14
"""Of the series, for |x| up to 2 and orders from 0 on: the last is below 1e-17 of the sum."""


class SphericalBessel(FloatUnary):
    """The spherical Bessel function j_n, of which j_0 is sin(x) / x.

    Gradient: dx = dy * (n j_{n-1} - (n+1) j_{n+1}) / (2n + 1), which has no quotient that fails
        at 0 [DLMF 10.51.2].

    By the series of DLMF 10.53.1 near 0, by recurrence from j_0 and j_1 elsewhere [10.51.1].
    """

    order: int

    def kernel(self, xp: Any, x: Any) -> Any:
        near = xp.abs(x) < max(2.0, self.order)
        return xp.where(
            near,
            _series(xp, xp.where(near, x, xp.zeros_like(x)), self.order),
            _recurrence(xp, xp.where(near, xp.ones_like(x), x), self.order),
        )

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        n = self.order
        above = apply(SphericalBessel(n + 1), x)
        if n == 0:
            return (dy * -above,)
        return (dy * ((n * apply(SphericalBessel(n - 1), x) - (n + 1) * above) / (2 * n + 1)),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for order in (0, 1, 2):
            yield cls(order), [np.array([0.0, 0.3, -1.9, 2.1, 7.0])]
        yield cls(0), [np.array([[0.5, -3.0]], "float32")]
        yield cls(0), [np.array([0.0, 0.5 - 0.7j, 3.0 + 1.0j])]


def _series(xp: Any, x: Any, n: int) -> Any:
    """x**n / (2n+1)!! times the sum of (-x**2 / 2)**k / (k! (2n+3)(2n+5) ... (2n+2k+1))."""
    half = -0.5 * x * x
    total = xp.ones_like(x)
    for k in range(TERMS + n, 0, -1):
        total = 1 + total * half / (k * (2 * n + 2 * k + 1))
    return total * x**n / math.prod(range(1, 2 * n + 2, 2))


def _recurrence(xp: Any, x: Any, n: int) -> Any:
    """j_{k+1} = (2k + 1) / x j_k - j_{k-1}, which is stable while k is less than |x|."""
    below, bessel = xp.cos(x) / x, xp.sin(x) / x
    for k in range(n):
        below, bessel = bessel, (2 * k + 1) / x * bessel - below
    return bessel


def sinc(x: TensorLike) -> Tensor:
    """y = sin(pi x) / (pi x), and 1 at 0.

    Parameters:
        x: any shape; ints and bools become float64.

    Returns: y, of the shape of x.

    Gradient: dx = dy * (cos(pi x) - y) / x, 0 at 0, without cancellation.

    Source: numpy.sinc; DLMF 10.51, 10.53.

    >>> gg.evaluate(gg.sinc([0.0, 0.5, 1.0])).round(4)
    array([1.    , 0.6366, 0.    ])
    """
    return floating_unary(SphericalBessel(0), math.pi * as_tensor(x))
