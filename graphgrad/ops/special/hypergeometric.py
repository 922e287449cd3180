"""Hypergeometric functions of real parameters."""

from __future__ import annotations

from ..base import Any, Gradients, Node, Tensor, TensorLike, apply
from ..families import floating_unary
from .scipy_functions import ScipyUnary, need_scipy, without_gradient

__all__ = [
    "hyp1f1",
    "hyp2f1",
]


class Hyp1F1(ScipyUnary):
    """y = 1F1(a; b; x), dx = dy * a / b * 1F1(a + 1; b + 1; x) [DLMF 13.3.15]."""

    a: float
    b: float
    scipy = "hyp1f1"

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        slope = apply(Hyp1F1(self.a + 1.0, self.b + 1.0), *node.inputs)
        return (dy * (self.a / self.b * slope),)

    @classmethod
    def examples(cls) -> Any:
        """Of two parameters."""
        return (cls(0.7, 1.8),)


class Hyp2F1(ScipyUnary):
    """y = 2F1(a, b; c; x), dx = dy * a b / c * 2F1(a + 1, b + 1; c + 1; x) [DLMF 15.5.1]."""

    a: float
    b: float
    c: float
    scipy = "hyp2f1"
    domain = (-0.5, 0.5)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        a, b, c = self.a, self.b, self.c
        slope = apply(Hyp2F1(a + 1.0, b + 1.0, c + 1.0), *node.inputs)
        return (dy * (a * b / c * slope),)

    @classmethod
    def examples(cls) -> Any:
        """Of three parameters."""
        return (cls(0.7, 1.3, 2.1),)


def hyp1f1(a: float, b: float, x: TensorLike, /) -> Tensor:
    """Kummer's confluent hypergeometric function 1F1(a; b; x) [DLMF 13.2.2], element by element.

    Parameters:
        a, b: numbers.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex, or a or b is no number; GraphGradError without SciPy (the
        extra `scipy`).

    Gradient: dx = dy * a / b * 1F1(a + 1; b + 1; x) [DLMF 13.3.15]; none by a and b.

    Source: scipy.special.hyp1f1.

    >>> gg.evaluate(gg.special.hyp1f1(1.0, 2.0, [0.5, 1.0])).round(4)
    array([1.2974, 1.7183])
    """
    need_scipy("hyp1f1")
    return floating_unary(Hyp1F1(*without_gradient("hyp1f1", a=a, b=b)), x)


def hyp2f1(a: float, b: float, c: float, x: TensorLike, /) -> Tensor:
    """Gauss' hypergeometric function 2F1(a, b; c; x) [DLMF 15.2.1], element by element.

    Parameters:
        a, b, c: numbers.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex, or a, b or c is no number; GraphGradError without SciPy (the
        extra `scipy`).

    Gradient: dx = dy * a b / c * 2F1(a + 1, b + 1; c + 1; x) [DLMF 15.5.1]; none by a, b and c.

    Source: scipy.special.hyp2f1.

    >>> gg.evaluate(gg.special.hyp2f1(1.0, 1.0, 2.0, [0.25, 0.5])).round(4)
    array([1.1507, 1.3863])
    """
    need_scipy("hyp2f1")
    return floating_unary(Hyp2F1(*without_gradient("hyp2f1", a=a, b=b, c=c)), x)
