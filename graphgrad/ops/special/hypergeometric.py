"""Hypergeometric functions; there is no gradient with respect to their parameters."""

from __future__ import annotations

from ..base import Any, Tensor, TensorLike
from ..documented import documented
from .scipy_functions import OfOrders, Ordered, need_scipy, with_orders

__all__ = [
    "hyp1f1",
    "hyp2f1",
]


class Hyp1F1(Ordered):
    """y = 1F1(a; b; x).

    Gradient: dx = dy * a / b * 1F1(a + 1; b + 1; x) [DLMF 13.3.15]; none by a and b.
    """

    a: float
    b: float
    scipy = "hyp1f1"

    @classmethod
    def slope(cls, a: Any, b: Any, x: Tensor) -> Tensor:
        y: Tensor = hyp1f1(a + 1, b + 1, x) * (a / b)
        return y

    @classmethod
    def examples(cls) -> Any:
        """Of two parameters."""
        return (cls(0.7, 1.8),)


class Hyp2F1(Ordered):
    """y = 2F1(a, b; c; x).

    Gradient: dx = dy * a b / c * 2F1(a + 1, b + 1; c + 1; x) [DLMF 15.5.1]; none by a, b and c.
    """

    a: float
    b: float
    c: float
    scipy = "hyp2f1"
    domain = (-0.5, 0.5)

    @classmethod
    def slope(cls, a: Any, b: Any, c: Any, x: Tensor) -> Tensor:
        y: Tensor = hyp2f1(a + 1, b + 1, c + 1, x) * (a * b / c)
        return y

    @classmethod
    def examples(cls) -> Any:
        """Of three parameters."""
        return (cls(0.7, 1.3, 2.1),)


class Hyp1F1OfOrders(OfOrders):
    """y = 1F1(a; b; x) of tensors. Gradient: as of Hyp1F1."""

    of = Hyp1F1


class Hyp2F1OfOrders(OfOrders):
    """y = 2F1(a, b; c; x) of tensors. Gradient: as of Hyp2F1."""

    of = Hyp2F1


@documented(Hyp1F1)
def hyp1f1(a: TensorLike, b: TensorLike, x: TensorLike, /) -> Tensor:
    """Kummer's confluent hypergeometric function 1F1(a; b; x) [DLMF 13.2.2], element by element.

    Parameters:
        a, b: numbers, or real numbers or integers that broadcast with x.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the broadcast shape, in the dtype of x; floating parameters are promoted with it.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for non-real input;
        GradientError where a gradient by a parameter is needed; GraphGradError without SciPy (the
        extra `scipy`).

    Source: scipy.special.hyp1f1.

    >>> gg.evaluate(gg.special.hyp1f1(1.0, 2.0, [0.5, 1.0])).round(4)
    array([1.2974, 1.7183])
    """
    need_scipy("hyp1f1")
    return with_orders("hyp1f1", Hyp1F1, Hyp1F1OfOrders, x, a=a, b=b)


@documented(Hyp2F1)
def hyp2f1(a: TensorLike, b: TensorLike, c: TensorLike, x: TensorLike, /) -> Tensor:
    """Gauss' hypergeometric function 2F1(a, b; c; x) [DLMF 15.2.1], element by element.

    Parameters:
        a, b, c: numbers, or real numbers or integers that broadcast with x.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the broadcast shape, in the dtype of x; floating parameters are promoted with it.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for non-real input;
        GradientError where a gradient by a parameter is needed; GraphGradError without SciPy (the
        extra `scipy`).

    Source: scipy.special.hyp2f1.

    >>> gg.evaluate(gg.special.hyp2f1(1.0, 1.0, 2.0, [0.25, 0.5])).round(4)
    array([1.1507, 1.3863])
    """
    need_scipy("hyp2f1")
    return with_orders("hyp2f1", Hyp2F1, Hyp2F1OfOrders, x, a=a, b=b, c=c)
