"""The gamma function and its relatives for complex numbers, holomorphic except at their poles."""

from __future__ import annotations

import math
from itertools import zip_longest

from ..base import Any, Gradients, Node, Samples, Tensor, apply, np
from .elementary import BERNOULLI, SHIFT
from .scipy_functions import OfScipy, need_scipy, scipy_special

__all__ = ["ComplexGamma", "ComplexLogGamma", "ComplexPolyGamma"]


class OfComplex(OfScipy, abstract=True):
    """Family: of one complex operand."""

    kinds = "c"

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        z = rng.uniform(-2, 2, size=(2, 3)) + 1j * rng.uniform(0.3, 1, size=(2, 3))
        if scipy_special:
            yield cls(*cls._defaults.values()), [z]
            yield cls(*cls._defaults.values()), [z[0].astype("complex64")]


class ComplexGamma(OfComplex):
    """y = gamma(z). Gradient: dz = dy * y * digamma(z)."""

    scipy = "gamma"

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (z,), (y,) = node.inputs, node.outputs
        return (dy * (y * apply(ComplexPolyGamma(0), z)),)


class ComplexLogGamma(OfComplex):
    """y = the logarithm of gamma(z), with a cut along the negative axis.

    Gradient: dz = dy * digamma(z).
    """

    scipy = "loggamma"

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(ComplexPolyGamma(0), *node.inputs),)


class ComplexPolyGamma(OfComplex):
    """y = the derivative of this order of digamma at z. Gradient: dz = dy * the next one."""

    order: int = 0
    scipy = "digamma"

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        (z,) = arrays
        if not self.order:
            return need_scipy("digamma").digamma(z).astype(z.dtype)
        with np.errstate(all="ignore"):
            return _polygamma(self.order, z.astype(np.complex128)).astype(z.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(ComplexPolyGamma(self.order + 1), *node.inputs),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for order in (0, 1) if scipy_special else ():
            z = rng.uniform(-2, 2, size=(2, 3)) + 1j * rng.uniform(0.3, 1, size=(2, 3))
            yield cls(order), [z]


def _polygamma(n: int, z: Any) -> Any:
    """By reflection from the left half plane [DLMF 5.15.6], else as on the right."""
    low = z.real < 0
    y = _on_the_right(n, np.where(low, 1 - z, z))
    return np.where(low, (-1.0) ** n * y - math.pi * _cotangent(n, np.where(low, z, 0.5)), y)


def _on_the_right(n: int, z: Any) -> Any:
    """Moved by as many steps as the series in 1 / z needs [DLMF 5.15.5, 5.15.8]."""
    shift = SHIFT + n
    far = z + shift
    y = math.factorial(n - 1) * far**-n + 0.5 * math.factorial(n) * far ** -(n + 1)
    for k, b in enumerate(BERNOULLI, 1):
        factor = b * math.factorial(2 * k + n - 1) / math.factorial(2 * k)
        y = y + factor * far ** -(2 * k + n)
    for k in range(shift):
        y = y + math.factorial(n) * (z + k) ** -(n + 1)
    return (-1.0) ** (n + 1) * y


def _cotangent(n: int, z: Any) -> Any:
    """The derivative of order n > 0 of cot(pi z): csc(pi z)**2 times a polynomial in cot(pi z)."""
    angle = math.pi * (z - np.rint(z.real))
    factors = [-1.0]  # of the powers, from the lowest
    for _ in range(1, n):
        above = [0.0, *(-(k + 2) * p for k, p in enumerate(factors))]
        below = [-k * p for k, p in enumerate(factors)][1:]
        factors = [a + b for a, b in zip_longest(above, below, fillvalue=0.0)]
    sign = np.where(angle.imag < 0, -1, 1)
    turns, less = np.exp(2j * sign * angle), np.expm1(2j * sign * angle)  # of at most 1
    cotangent = sign * 1j * (turns + 1) / less
    return math.pi**n * (-4 * turns / less**2) * np.polyval(factors[::-1], cotangent)
