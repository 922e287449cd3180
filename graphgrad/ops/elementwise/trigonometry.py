"""Element-wise trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from ...ir.op import OP_TYPES
from ..base import (
    NO_GRAD,
    Any,
    Derivative,
    Gradients,
    Node,
    Onnx,
    Samples,
    Tensor,
    TensorLike,
    Traits,
    apply,
    np,
    wants,
)
from ..documented import documented
from ..families import FloatUnary, RealBinary, float_ufunc
from .exponential import TANH, Tanh, sqrt
from .magnitudes import COPYSIGN, hypot

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "sin",
    "sinh",
    "tan",
    "tanh",
]


class Sin(FloatUnary):
    """y = sin x. Gradient: dx = dy * cos x [DLMF 4.20]."""

    onnx = Onnx("Sin")
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.sin(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(COS, *node.inputs),)


class Cos(FloatUnary):
    """y = cos x. Gradient: dx = -dy * sin x [DLMF 4.20]."""

    onnx = Onnx("Cos")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.cos(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (-(dy * apply(SIN, *node.inputs)),)


class Tan(FloatUnary):
    """y = tan x. Gradient: dx = dy * (1 + y**2) [DLMF 4.20]."""

    onnx = Onnx("Tan")
    domain = (-1.2, 1.2)
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.tan(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (dy * (1.0 + y * y),)


class SquareComplement(FloatUnary):
    """y = 1 - x**2 = (1 - x) (1 + x), which keeps its digits near 1. Gradient: dx = -dy * 2x."""

    def kernel(self, xp: Any, x: Any) -> Any:
        return (1 - x) * (1 + x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy * (-2.0 * x),)


class Asin(FloatUnary):
    """y = arcsin x.

    Gradient: dx = dy / sqrt((1 - x) (1 + x)) [DLMF 4.24(ii)], infinite at -1 and 1.
    """

    onnx = Onnx("Asin")
    domain = (-0.9, 0.9)
    derivative = Derivative(singular=0, relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.arcsin(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy / _one_less_square(x),)


def _one_less_square(x: Tensor) -> Tensor:
    """sqrt(1 - x**2); of complex x on the side of the cut on which x is."""
    if x.type.complex:
        return sqrt(-(x - 1.0)) * sqrt(x - -1.0)  # 1 - x would lose the sign of a zero
    return sqrt(apply(SQUARE_COMPLEMENT, x))


class Acos(FloatUnary):
    """y = arccos x.

    Gradient: dx = -dy / sqrt((1 - x) (1 + x)) [DLMF 4.24(ii)], infinite at -1 and 1.
    """

    onnx = Onnx("Acos")
    domain = (-0.9, 0.9)
    derivative = Derivative(singular=0)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.arccos(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (-(dy / _one_less_square(x)),)


class Atan(FloatUnary):
    """y = arctan x. Gradient: dx = dy / (1 + x**2) [DLMF 4.24(ii)]."""

    onnx = Onnx("Atan")
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.arctan(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(ATAN_SLOPE, *node.inputs),)


class AtanSlope(FloatUnary):
    """y = 1 / (1 + x**2). Gradient: dx = -dy * 2 x y**2, which does not overflow on the way."""

    def kernel(self, xp: Any, x: Any) -> Any:
        return 1 / (1 + x * x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (dy * (y * (-2.0 * (x * y))),)


class Atan2(RealBinary):
    """z = the angle of the point (y, x), first input first.

    Gradient: dy = dz * x / r**2, dx = -dz * y / r**2 with r = hypot(x, y); NaN at the origin.
    """

    domain = (0.5, 2.0)

    def kernel(self, xp: Any, y: Any, x: Any) -> Any:
        return xp.arctan2(y, x)

    def to_onnx(self, to: Any, y: Any, x: Any) -> Any:
        """By the lesser over the greater, in the first half quadrant, and turned from there."""
        wide, high = to.Abs(x), to.Abs(y)
        steep = to.Greater(high, wide)
        most = to.Max(wide, high)
        plain = to.Or(to.Equal(most, 0.0), to.IsInf(to.Min(wide, high)))
        ratio = to.Div(to.Min(wide, high), to.Where(to.Equal(most, 0.0), 1.0, most))
        ratio = to.Where(to.And(plain, to.IsInf(most)), 1.0, ratio)
        angle = to.Atan(ratio)
        angle = to.Where(steep, to.Sub(np.pi / 2, angle), angle)
        angle = to.Where(to.apply(OP_TYPES["SignBit"](), x), to.Sub(np.pi, angle), angle)
        return to.apply(COPYSIGN, angle, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        y, x = node.inputs
        r = hypot(y, x)
        scaled = dz / r
        return (
            scaled * (x / r) if wants(y) else NO_GRAD,
            -(scaled * (y / r)) if wants(x) else NO_GRAD,
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield from super().samples(rng)
        yield cls(), [np.array([1.0, 1.0, -1.0, -1.0]), np.array([2.0, -2.0, 2.0, -2.0])]


class Sinh(FloatUnary):
    """y = sinh x. Gradient: dx = dy * cosh x [DLMF 4.34]."""

    onnx = Onnx("Sinh")
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.sinh(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(COSH, *node.inputs),)


class Cosh(FloatUnary):
    """y = cosh x. Gradient: dx = dy * sinh x [DLMF 4.34]."""

    onnx = Onnx("Cosh")
    traits = Traits(value_range=(1.0, np.inf), guards=True)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.cosh(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(SINH, *node.inputs),)


class Asinh(FloatUnary):
    """y = arsinh x. Gradient: dx = dy / sqrt(1 + x**2) [DLMF 4.38(ii)]."""

    onnx = Onnx("Asinh")
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.arcsinh(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy / (apply(COSH, apply(ASINH, x)) if x.type.complex else hypot(x, 1.0)),)


class Acosh(FloatUnary):
    """y = arcosh x.

    Gradient: dx = dy / (sqrt(x - 1) sqrt(x + 1)) [DLMF 4.38(ii)], infinite at 1.
    """

    onnx = Onnx("Acosh")
    domain = (1.5, 3.0)
    derivative = Derivative(singular=0)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.arccosh(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy / (sqrt(x - 1.0) * sqrt(x - -1.0)),)  # x + 1.0 can lose the side of the cut


class Atanh(FloatUnary):
    """y = artanh x. Gradient: dx = dy / ((1 - x) (1 + x)) [DLMF 4.38(ii)], infinite at -1 and 1."""

    onnx = Onnx("Atanh")
    domain = (-0.9, 0.9)
    derivative = Derivative(singular=0, relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.arctanh(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy / apply(SQUARE_COMPLEMENT, x),)


SIN = Sin()
COS = Cos()
TAN = Tan()
ASIN = Asin()
ACOS = Acos()
ATAN = Atan()
ATAN_SLOPE = AtanSlope()
SQUARE_COMPLEMENT = SquareComplement()
ATAN2 = Atan2()
SINH = Sinh()
COSH = Cosh()
ASINH = Asinh()
ACOSH = Acosh()
ATANH = Atanh()


@documented(Sin)
def sin(x: TensorLike, /) -> Tensor:
    """Sine: y = sin x, element by element.

    >>> gg.evaluate(gg.sin([0.0, 0.5])).round(4)
    array([0.    , 0.4794])
    """
    return float_ufunc(SIN, x)


@documented(Cos)
def cos(x: TensorLike, /) -> Tensor:
    """Cosine: y = cos x, element by element.

    >>> gg.evaluate(gg.cos([0.0, 0.5])).round(4)
    array([1.    , 0.8776])
    """
    return float_ufunc(COS, x)


@documented(Tan)
def tan(x: TensorLike, /) -> Tensor:
    """Tangent: y = tan x, element by element.

    >>> gg.evaluate(gg.tan([0.0, 0.5])).round(4)
    array([0.    , 0.5463])
    """
    return float_ufunc(TAN, x)


@documented(Asin)
def asin(x: TensorLike, /) -> Tensor:
    """Arc sine: y = arcsin x, in [-pi/2, pi/2], element by element; NaN for |x| > 1.

    >>> gg.evaluate(gg.asin([0.0, 0.5])).round(4)
    array([0.    , 0.5236])
    """
    return float_ufunc(ASIN, x)


@documented(Acos)
def acos(x: TensorLike, /) -> Tensor:
    """Arc cosine: y = arccos x, in [0, pi], element by element; NaN for |x| > 1.

    >>> gg.evaluate(gg.acos([1.0, 0.5])).round(4)
    array([0.    , 1.0472])
    """
    return float_ufunc(ACOS, x)


@documented(Atan)
def atan(x: TensorLike, /) -> Tensor:
    """Arc tangent: y = arctan x, in [-pi/2, pi/2], element by element.

    >>> gg.evaluate(gg.atan([0.0, 1.0, np.inf])).round(4)
    array([0.    , 0.7854, 1.5708])
    """
    return float_ufunc(ATAN, x)


@documented(Atan2)
def atan2(y: TensorLike, x: TensorLike, /) -> Tensor:
    """The angle z of the point (x, y), in [-pi, pi], element by element; note the order: y first.

    Parameters:
        y, x: shapes that broadcast; floating, dtypes promoted, ints and bools become floats.

    Source: the array API standard, atan2 (signs, zeros and infinities).

    >>> gg.evaluate(gg.atan2([1.0, 1.0], [1.0, -1.0])).round(4)
    array([0.7854, 2.3562])
    """
    return float_ufunc(ATAN2, y, x)


@documented(Sinh)
def sinh(x: TensorLike, /) -> Tensor:
    """Hyperbolic sine: y = sinh x, element by element.

    >>> gg.evaluate(gg.sinh([0.0, 0.5])).round(4)
    array([0.    , 0.5211])
    """
    return float_ufunc(SINH, x)


@documented(Cosh)
def cosh(x: TensorLike, /) -> Tensor:
    """Hyperbolic cosine: y = cosh x, element by element.

    >>> gg.evaluate(gg.cosh([0.0, 0.5])).round(4)
    array([1.    , 1.1276])
    """
    return float_ufunc(COSH, x)


@documented(Tanh)
def tanh(x: TensorLike, /) -> Tensor:
    """Hyperbolic tangent: y = tanh x, element by element.

    >>> gg.evaluate(gg.tanh([0.0, 0.5])).round(4)
    array([0.    , 0.4621])
    """
    return float_ufunc(TANH, x)


@documented(Asinh)
def asinh(x: TensorLike, /) -> Tensor:
    """Inverse hyperbolic sine: y = arsinh x, element by element.

    >>> gg.evaluate(gg.asinh([0.0, 0.5])).round(4)
    array([0.    , 0.4812])
    """
    return float_ufunc(ASINH, x)


@documented(Acosh)
def acosh(x: TensorLike, /) -> Tensor:
    """Inverse hyperbolic cosine: y = arcosh x >= 0, element by element; NaN for x < 1.

    >>> gg.evaluate(gg.acosh([1.0, 2.0])).round(4)
    array([0.   , 1.317])
    """
    return float_ufunc(ACOSH, x)


@documented(Atanh)
def atanh(x: TensorLike, /) -> Tensor:
    """Inverse hyperbolic tangent: y = artanh x, element by element; NaN for |x| > 1.

    >>> gg.evaluate(gg.atanh([0.0, 0.5])).round(4)
    array([0.    , 0.5493])
    """
    return float_ufunc(ATANH, x)


arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
