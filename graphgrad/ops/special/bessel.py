"""Element-wise Bessel functions of real order and argument."""

from __future__ import annotations

from typing import ClassVar

from ..base import Any, Derivative, Gradients, Node, Tensor, TensorLike, apply, as_tensor, np, whole
from ..documented import documented
from ..families import floating_unary
from ..shape.joining import stack
from .scaled_bessel import scaled_i, scaled_k
from .scipy_functions import OfOrders, Ordered, need_scipy, with_orders

__all__ = [
    "bessel_jn",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "ive",
    "j0",
    "j1",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kv",
    "kve",
    "y0",
    "y1",
    "yv",
]


class BesselJ(Ordered):
    """y = J_v(x).

    Gradient: dx = dy * (J_(v-1)(x) - J_(v+1)(x)) / 2 [DLMF 10.6.1], v the order; none by v.
    """

    v: float
    scipy = "jv"
    whole = "j{:.0f}"
    domain = (0.5, 3.0)

    @classmethod
    def function(cls, v: Any, x: Any) -> Any:
        """Those of orders 0 and 1 are quicker, and right at inf."""
        y = None if np.ndim(v) == 0 and v in (0, 1) else super().function(v, x)
        for n in (0, 1):
            if np.any(v == n):
                of_whole = getattr(need_scipy(cls.scipy), cls.whole.format(n))(x)
                y = of_whole if y is None else np.where(v == n, of_whole, y)
        return y

    @classmethod
    def slope(cls, v: Any, x: Tensor) -> Tensor:
        return 0.5 * (jv(v - 1, x) - jv(v + 1, x))

    @classmethod
    def examples(cls) -> Any:
        """Of whole and other orders."""
        return cls(0.0), cls(1.5)


class BesselY(BesselJ):
    """y = Y_v(x).

    Gradient: dx = dy * (Y_(v-1)(x) - Y_(v+1)(x)) / 2 [DLMF 10.6.1], v the order; none by v.
    """

    scipy = "yv"
    whole = "y{:.0f}"
    derivative = Derivative(singular=0)

    @classmethod
    def slope(cls, v: Any, x: Tensor) -> Tensor:
        return 0.5 * (yv(v - 1, x) - yv(v + 1, x))


class BesselI(BesselJ):
    """y = I_v(x).

    Gradient: dx = dy * (I_(v-1)(x) + I_(v+1)(x)) / 2 [DLMF 10.29.1], v the order; none by v.
    """

    scipy = "iv"
    whole = "i{:.0f}"

    @classmethod
    def function(cls, v: Any, x: Any) -> Any:
        """Also near 0, where SciPy's is 0 far too soon, but not its scaled one."""
        y = super().function(v, x)
        lost = (y == 0) & (x != 0)
        return np.where(lost, need_scipy("ive").ive(v, x), y) if np.any(lost) else y

    @classmethod
    def slope(cls, v: Any, x: Tensor) -> Tensor:
        return 0.5 * (iv(v - 1, x) + iv(v + 1, x))


class BesselK(BesselJ):
    """y = K_v(x).

    Gradient: dx = -dy * (K_(v-1)(x) + K_(v+1)(x)) / 2 [DLMF 10.29.1], v the order; none by v.
    """

    scipy = "kv"
    whole = "k{:.0f}"
    derivative = Derivative(singular=0)

    @classmethod
    def slope(cls, v: Any, x: Tensor) -> Tensor:
        return -0.5 * (kv(v - 1, x) + kv(v + 1, x))


class BesselIScaled(Ordered):
    """y = exp(-|x|) I_v(x), or the derivative of this order, whose gradient is the next one.

    Gradient: dx = dy * ((y_(v-1) + y_(v+1)) / 2 - sign(x) y), y_v = ive(v, x), v the order,
        by series where that would cancel [DLMF 10.40.2, 10.40.6]; 0 at 0 of even v. None by v.
    """

    v: float
    order: int = 0
    scipy = "ive"
    whole = "i{:.0f}e"
    domain = (0.5, 3.0)
    derived: ClassVar[Any] = staticmethod(scaled_i)

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        (x,) = arrays
        return self.derived(self.v, x, self.order).astype(x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(self.replace(order=self.order + 1), *node.inputs),)

    @classmethod
    def examples(cls) -> Any:
        """Of whole and other orders."""
        return cls(0.0, 0), cls(1.5, 1)


class BesselKScaled(BesselIScaled):
    """y = exp(x) K_v(x), or the derivative of this order, whose gradient is the next one.

    Gradient: dx = dy * (y - (y_(v-1) + y_(v+1)) / 2), y_v = kve(v, x), v the order, by its series
        where that would cancel [DLMF 10.40.2]; none by v.
    """

    scipy = "kve"
    whole = "k{:.0f}e"
    derivative = Derivative(singular=0)
    derived: ClassVar[Any] = staticmethod(scaled_k)


class BesselJOfOrders(OfOrders):
    """y = J_v(x) of tensors. Gradient: as of BesselJ."""

    of = BesselJ


class BesselYOfOrders(OfOrders):
    """y = Y_v(x) of tensors. Gradient: as of BesselY."""

    of = BesselY


class BesselIOfOrders(OfOrders):
    """y = I_v(x) of tensors. Gradient: as of BesselI."""

    of = BesselI


class BesselKOfOrders(OfOrders):
    """y = K_v(x) of tensors. Gradient: as of BesselK."""

    of = BesselK


class BesselIScaledOfOrders(OfOrders):
    """y = exp(-|x|) I_v(x), or the derivative of this order, of tensors.

    Gradient: as of BesselIScaled.
    """

    order: int = 0
    of = BesselIScaled

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        v, x = arrays
        return self.of.derived(v, x, self.order).astype(x.dtype)

    def slope(self, *inputs: Tensor) -> Tensor:
        return apply(self.replace(order=self.order + 1), *inputs)


class BesselKScaledOfOrders(BesselIScaledOfOrders):
    """y = exp(x) K_v(x), or the derivative of this order, of tensors.

    Gradient: as of BesselKScaled.
    """

    of = BesselKScaled


@documented(BesselJ)
def jv(v: TensorLike, x: TensorLike, /) -> Tensor:
    """The Bessel function of the first kind J_v(x), element by element.

    Parameters:
        v: the order: a number, or real numbers or integers that broadcast with x.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the broadcast shape, in the dtype of x; floating orders are promoted with it.

    Raises: ShapeError if the shapes do not broadcast; DTypeError if x or v is not real;
        GradientError where a gradient by v is needed; GraphGradError without SciPy (the extra
        `scipy`).

    Source: scipy.special.jv, where about log10(abs(x)) digits of 16 are lost.

    >>> gg.evaluate(gg.special.jv(1.5, [0.5, 1.0])).round(4)
    array([0.0917, 0.2403])
    """
    need_scipy("jv")
    return with_orders("jv", BesselJ, BesselJOfOrders, x, v=v)


@documented(BesselY)
def yv(v: TensorLike, x: TensorLike, /) -> Tensor:
    """The Bessel function of the second kind Y_v(x), element by element.

    Parameters:
        v: the order: a number, or real numbers or integers that broadcast with x.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the broadcast shape, in the dtype of x; floating orders are promoted with it.

    Raises: ShapeError if the shapes do not broadcast; DTypeError if x or v is not real;
        GradientError where a gradient by v is needed; GraphGradError without SciPy (the extra
        `scipy`).

    Source: scipy.special.yv, where about log10(x) digits of 16 are lost.

    >>> gg.evaluate(gg.special.yv(1.5, [0.5, 1.0])).round(4)
    array([-2.5215, -1.1025])
    """
    need_scipy("yv")
    return with_orders("yv", BesselY, BesselYOfOrders, x, v=v)


@documented(BesselI)
def iv(v: TensorLike, x: TensorLike, /) -> Tensor:
    """The modified Bessel function of the first kind I_v(x), element by element.

    Parameters:
        v: the order: a number, or real numbers or integers that broadcast with x.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the broadcast shape, in the dtype of x; floating orders are promoted with it.

    Raises: ShapeError if the shapes do not broadcast; DTypeError if x or v is not real;
        GradientError where a gradient by v is needed; GraphGradError without SciPy (the extra
        `scipy`).

    Source: scipy.special.iv.

    >>> gg.evaluate(gg.special.iv(1.5, [0.5, 1.0])).round(4)
    array([0.0964, 0.2935])
    """
    need_scipy("iv")
    return with_orders("iv", BesselI, BesselIOfOrders, x, v=v)


@documented(BesselK)
def kv(v: TensorLike, x: TensorLike, /) -> Tensor:
    """The modified Bessel function of the second kind K_v(x), element by element.

    Parameters:
        v: the order: a number, or real numbers or integers that broadcast with x.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the broadcast shape, in the dtype of x; floating orders are promoted with it.

    Raises: ShapeError if the shapes do not broadcast; DTypeError if x or v is not real;
        GradientError where a gradient by v is needed; GraphGradError without SciPy (the extra
        `scipy`).

    Source: scipy.special.kv.

    >>> gg.evaluate(gg.special.kv(1.5, [0.5, 1.0])).round(4)
    array([3.2251, 0.9221])
    """
    need_scipy("kv")
    return with_orders("kv", BesselK, BesselKOfOrders, x, v=v)


@documented(BesselIScaled)
def ive(v: TensorLike, x: TensorLike, /) -> Tensor:
    """y = exp(-|x|) I_v(x), which does not overflow, element by element.

    Parameters:
        v: the order: a number, or real numbers or integers that broadcast with x.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the broadcast shape, in the dtype of x; floating orders are promoted with it.

    Raises: ShapeError if the shapes do not broadcast; DTypeError if x or v is not real;
        GradientError where a gradient by v is needed; GraphGradError without SciPy (the extra
        `scipy`).

    Source: scipy.special.ive.

    >>> gg.evaluate(gg.special.ive(1.5, [0.5, 1.0])).round(4)
    array([0.0585, 0.108 ])
    """
    need_scipy("ive")
    return with_orders("ive", BesselIScaled, BesselIScaledOfOrders, x, v=v)


@documented(BesselKScaled)
def kve(v: TensorLike, x: TensorLike, /) -> Tensor:
    """y = exp(x) K_v(x), which does not underflow, element by element.

    Parameters:
        v: the order: a number, or real numbers or integers that broadcast with x.
        x: any shape; floating, ints and bools become float64.

    Returns: y, of the broadcast shape, in the dtype of x; floating orders are promoted with it.

    Raises: ShapeError if the shapes do not broadcast; DTypeError if x or v is not real;
        GradientError where a gradient by v is needed; GraphGradError without SciPy (the extra
        `scipy`).

    Source: scipy.special.kve.

    >>> gg.evaluate(gg.special.kve(1.5, [0.5, 1.0])).round(4)
    array([5.3174, 2.5066])
    """
    need_scipy("kve")
    return with_orders("kve", BesselKScaled, BesselKScaledOfOrders, x, v=v)


@documented(BesselJ)
def j0(x: TensorLike, /) -> Tensor:
    """The Bessel function of the first kind J_v(x), of order 0, element by element.

    Source: scipy.special.j0.

    >>> gg.evaluate(gg.special.j0([0.5, 1.0])).round(4)
    array([0.9385, 0.7652])
    """
    need_scipy("j0")
    return floating_unary(BesselJ(0.0), x)


@documented(BesselJ)
def j1(x: TensorLike, /) -> Tensor:
    """The Bessel function of the first kind J_v(x), of order 1, element by element.

    Source: scipy.special.j1.

    >>> gg.evaluate(gg.special.j1([0.5, 1.0])).round(4)
    array([0.2423, 0.4401])
    """
    need_scipy("j1")
    return floating_unary(BesselJ(1.0), x)


@documented(BesselY)
def y0(x: TensorLike, /) -> Tensor:
    """The Bessel function of the second kind Y_v(x), of order 0, element by element.

    Source: scipy.special.y0.

    >>> gg.evaluate(gg.special.y0([0.5, 1.0])).round(4)
    array([-0.4445,  0.0883])
    """
    need_scipy("y0")
    return floating_unary(BesselY(0.0), x)


@documented(BesselY)
def y1(x: TensorLike, /) -> Tensor:
    """The Bessel function of the second kind Y_v(x), of order 1, element by element.

    Source: scipy.special.y1.

    >>> gg.evaluate(gg.special.y1([0.5, 1.0])).round(4)
    array([-1.4715, -0.7812])
    """
    need_scipy("y1")
    return floating_unary(BesselY(1.0), x)


@documented(BesselI)
def i0(x: TensorLike, /) -> Tensor:
    """The modified Bessel function of the first kind I_v(x), of order 0, element by element.

    Source: scipy.special.i0.

    >>> gg.evaluate(gg.special.i0([0.5, 1.0])).round(4)
    array([1.0635, 1.2661])
    """
    need_scipy("i0")
    return floating_unary(BesselI(0.0), x)


@documented(BesselI)
def i1(x: TensorLike, /) -> Tensor:
    """The modified Bessel function of the first kind I_v(x), of order 1, element by element.

    Source: scipy.special.i1.

    >>> gg.evaluate(gg.special.i1([0.5, 1.0])).round(4)
    array([0.2579, 0.5652])
    """
    need_scipy("i1")
    return floating_unary(BesselI(1.0), x)


@documented(BesselK)
def k0(x: TensorLike, /) -> Tensor:
    """The modified Bessel function of the second kind K_v(x), of order 0, element by element.

    Source: scipy.special.k0.

    >>> gg.evaluate(gg.special.k0([0.5, 1.0])).round(4)
    array([0.9244, 0.421 ])
    """
    need_scipy("k0")
    return floating_unary(BesselK(0.0), x)


@documented(BesselK)
def k1(x: TensorLike, /) -> Tensor:
    """The modified Bessel function of the second kind K_v(x), of order 1, element by element.

    Source: scipy.special.k1.

    >>> gg.evaluate(gg.special.k1([0.5, 1.0])).round(4)
    array([1.6564, 0.6019])
    """
    need_scipy("k1")
    return floating_unary(BesselK(1.0), x)


@documented(BesselIScaled)
def i0e(x: TensorLike, /) -> Tensor:
    """y = exp(-|x|) I_v(x), which does not overflow, of order 0, element by element.

    Source: scipy.special.i0e.

    >>> gg.evaluate(gg.special.i0e([0.5, 1.0])).round(4)
    array([0.645 , 0.4658])
    """
    need_scipy("i0e")
    return floating_unary(BesselIScaled(0.0, 0), x)


@documented(BesselIScaled)
def i1e(x: TensorLike, /) -> Tensor:
    """y = exp(-|x|) I_v(x), which does not overflow, of order 1, element by element.

    Source: scipy.special.i1e.

    >>> gg.evaluate(gg.special.i1e([0.5, 1.0])).round(4)
    array([0.1564, 0.2079])
    """
    need_scipy("i1e")
    return floating_unary(BesselIScaled(1.0, 0), x)


@documented(BesselKScaled)
def k0e(x: TensorLike, /) -> Tensor:
    """y = exp(x) K_v(x), which does not underflow, of order 0, element by element.

    Source: scipy.special.k0e.

    >>> gg.evaluate(gg.special.k0e([0.5, 1.0])).round(4)
    array([1.5241, 1.1445])
    """
    need_scipy("k0e")
    return floating_unary(BesselKScaled(0.0, 0), x)


@documented(BesselKScaled)
def k1e(x: TensorLike, /) -> Tensor:
    """y = exp(x) K_v(x), which does not underflow, of order 1, element by element.

    Source: scipy.special.k1e.

    >>> gg.evaluate(gg.special.k1e([0.5, 1.0])).round(4)
    array([2.731 , 1.6362])
    """
    need_scipy("k1e")
    return floating_unary(BesselKScaled(1.0, 0), x)


def bessel_jn(z: TensorLike, /, *, v: int) -> Tensor:
    """The Bessel functions J_0(z) to J_v(z), along a new first axis.

    Parameters:
        z: any shape; floating, ints and bools become float64.
        v: a known integer >= 0.

    Returns: (v + 1, ...), dtype of z.

    Raises: ValueError for v < 0; DTypeError for complex z; GraphGradError without SciPy (the extra
        `scipy`).

    Gradient: dz = the sum of dy[n] * (J_(n-1)(z) - J_(n+1)(z)) / 2.

    Source: jax.scipy.special.bessel_jn; DLMF 10.6.1.

    >>> gg.evaluate(gg.special.bessel_jn(1.0, v=2)).round(4)
    array([0.7652, 0.4401, 0.1149])
    """
    if whole("v", v) < 0:
        raise ValueError(f"bessel_jn counts orders from 0, got v={v}")
    z = as_tensor(z)
    return stack([jv(float(n), z) for n in range(v + 1)])
