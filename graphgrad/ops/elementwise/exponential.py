"""Element-wise exponentials, sigmoidal functions, logarithms and roots."""

from __future__ import annotations

import math

from ..base import (
    NO_GRAD,
    Any,
    Derivative,
    Gradients,
    Node,
    Onnx,
    Tensor,
    TensorLike,
    Traits,
    apply,
    like,
    np,
    promoted,
    wants,
)
from ..documented import documented
from ..families import FloatUnary, RealBinary, RealUnary, float_ufunc
from .logic import equal, isinf, logical_and, where

__all__ = [
    "cbrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "sqrt",
]

LN2 = math.log(2.0)
LN10 = math.log(10.0)


class Exp(FloatUnary):
    """y = e**x. Gradient: dx = dy * y [DLMF 4.7(ii)]."""

    onnx = Onnx("Exp")
    traits = Traits(value_range=(0.0, np.inf), guards=True)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.exp(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (dy * y,)


class Exp2(FloatUnary):
    """y = 2**x. Gradient: dx = dy * y * ln 2 [DLMF 4.7(ii)]."""

    traits = Traits(value_range=(0.0, np.inf))

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.exp2(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Pow(2.0, x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (dy * (y * LN2),)


class Expm1(FloatUnary):
    """y = e**x - 1, accurate near 0.

    Gradient: dx = dy * e**x [DLMF 4.7(ii)], all of whose digits y + 1 lacks.
    """

    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.expm1(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """tanh(x / 2) (e**x + 1), which keeps the digits near 0."""
        return to.Mul(to.Tanh(to.Mul(x, 0.5)), to.Add(to.Exp(x), 1.0))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(EXP, *node.inputs),)


class Log(FloatUnary):
    """y = ln x. Gradient: dx = dy / x [DLMF 4.7(i)]."""

    onnx = Onnx("Log")
    domain = (0.5, 3.0)
    derivative = Derivative(singular=0)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.log(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy / x,)


class Log1p(FloatUnary):
    """y = ln(1 + x), accurate near 0. Gradient: dx = dy / (1 + x) [DLMF 4.7(i)]."""

    domain = (-0.5, 3.0)
    derivative = Derivative(singular=0, relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.log1p(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """log(u) x / (u - 1) with u = 1 + x, in which the rounding of u cancels [Goldberg 1991]."""
        u = to.Add(x, 1.0)
        same = to.Or(to.Equal(u, 1.0), to.IsInf(u, detect_negative=0))
        steps = to.Where(same, 1.0, to.Sub(u, 1.0))
        return to.Where(same, x, to.Mul(to.Log(u), to.Div(x, steps)))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy / (1.0 + x),)


class Log2(FloatUnary):
    """y = log2 x. Gradient: dx = dy / (x ln 2) [DLMF 4.7(i)]."""

    domain = (0.5, 3.0)
    derivative = Derivative(singular=0)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.log2(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Mul(to.Log(x), 1 / LN2)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy / (x * LN2),)


class Log10(FloatUnary):
    """y = log10 x. Gradient: dx = dy / (x ln 10) [DLMF 4.7(i)]."""

    domain = (0.5, 3.0)
    derivative = Derivative(singular=0)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.log10(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Mul(to.Log(x), 1 / LN10)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy / (x * LN10),)


class Sqrt(FloatUnary):
    """y = x**(1/2). Gradient: dx = dy / (2 y), infinite at 0."""

    onnx = Onnx("Sqrt")
    domain = (0.5, 3.0)
    derivative = Derivative(singular=0, relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.sqrt(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (dy * 0.5 / y,)


class Cbrt(RealUnary):
    """y = x**(1/3), of negative numbers too. Gradient: dx = dy / (3 y**2), infinite at 0."""

    domain = (0.5, 3.0)
    derivative = Derivative(singular=0, relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.cbrt(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """A power, and a step of Newton's for the last digits."""
        size = to.Abs(x)
        y = to.Pow(size, 1 / 3)
        plain = to.Or(to.Equal(x, 0.0), to.IsInf(x))
        safe = to.Where(plain, 1.0, y)
        step = to.Div(to.Sub(safe, to.Div(to.Where(plain, 1.0, size), to.Mul(safe, safe))), 3.0)
        return to.Where(plain, x, to.Mul(to.Sign(x), to.Sub(safe, step)))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (dy / (3.0 * y * y),)


class Tanh(FloatUnary):
    """y = tanh x.

    Gradient: dx = dy / cosh(x)**2 [DLMF 4.34]; of complex numbers dy * (1 - y**2).
    """

    onnx = Onnx("Tanh")
    traits = Traits(value_range=(-1.0, 1.0))
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.tanh(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        if not x.type.complex:
            return (dy * apply(TANH_SLOPE, x),)
        y = apply(TANH, x)  # of x, as for real numbers: a rule on y counts once in both
        return (dy * (like(1, y) - y * y),)


class TanhSlope(RealUnary):
    """y = 1 / cosh(x)**2; 1 - tanh(x)**2 would lose digits. Gradient: dx = -dy * 2 y tanh x."""

    traits = Traits(value_range=(0.0, 1.0))

    def kernel(self, xp: Any, x: Any) -> Any:
        e = xp.exp(-2 * xp.abs(x))
        return 4 * (e / ((1 + e) * (1 + e)))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (dy * (y * (-2.0 * apply(TANH, x))),)


class Sigmoid(RealUnary):
    """y = 1 / (1 + exp(-x)) without overflow. Gradient: dx = dy * y * (1 - y)."""

    onnx = Onnx("Sigmoid")
    traits = Traits(value_range=(0.0, 1.0), guards=True)
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        e = xp.exp(-xp.abs(x))
        return xp.where(x >= 0, 1, e) / (1 + e)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(SIGMOID_SLOPE, *node.inputs),)


class SigmoidSlope(RealUnary):
    """y = sigmoid(x) sigmoid(-x); s (1 - s) would lose digits.

    Gradient: dx = -dy * y tanh(x / 2).
    """

    traits = Traits(value_range=(0.0, 0.25))

    def kernel(self, xp: Any, x: Any) -> Any:
        e = xp.exp(-xp.abs(x))
        return e / ((1 + e) * (1 + e))

    def to_onnx(self, to: Any, x: Any) -> Any:
        """By the operator, which below float64 has the digits of both sides."""
        return to.Mul(to.Sigmoid(x), to.Sigmoid(to.Neg(x))) if x.dtype.itemsize < 8 else None

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        return (-(dy * (y * apply(TANH, 0.5 * x))),)


class LogAddExp(RealBinary):
    """z = ln(e**x + e**y) without overflow.

    Gradient: dx = dz * sigmoid(x - y), dy = dz * sigmoid(y - x); half each if infinite and
        equal.
    """

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.logaddexp(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        same = to.Equal(x, y)
        gap = to.Where(same, 0.0, to.Neg(to.Abs(to.Sub(x, y))))
        return to.Add(to.Max(x, y), to.apply(LOG1P, to.Exp(gap)))

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        gap = where(logical_and(equal(x, y), isinf(x)), 0, x - y)
        return (
            dz * apply(Sigmoid(), gap) if wants(x) else NO_GRAD,
            dz * apply(Sigmoid(), -gap) if wants(y) else NO_GRAD,
        )


EXP = Exp()
EXP2 = Exp2()
EXPM1 = Expm1()
LOG = Log()
LOG1P = Log1p()
LOG2 = Log2()
LOG10 = Log10()
SQRT = Sqrt()
CBRT = Cbrt()
TANH = Tanh()
TANH_SLOPE = TanhSlope()
SIGMOID_SLOPE = SigmoidSlope()
LOGADDEXP = LogAddExp()


@documented(Exp)
def exp(x: TensorLike, /) -> Tensor:
    """Exponential: y = e**x, element by element.

    >>> gg.evaluate(gg.exp([0.0, 1.0])).round(4)
    array([1.    , 2.7183])
    """
    return float_ufunc(EXP, x)


@documented(Exp2)
def exp2(x: TensorLike, /) -> Tensor:
    """Power of two: y = 2**x, element by element.

    >>> gg.evaluate(gg.exp2([0.0, 3.0]))
    array([1., 8.])
    """
    return float_ufunc(EXP2, x)


@documented(Expm1)
def expm1(x: TensorLike, /) -> Tensor:
    """y = e**x - 1, accurate near 0, element by element.

    >>> gg.evaluate(gg.expm1([0.0, 1e-20]))
    array([0.e+00, 1.e-20])
    """
    return float_ufunc(EXPM1, x)


@documented(Log)
def log(x: TensorLike, /) -> Tensor:
    """Natural logarithm: y = ln x, element by element; -inf at 0, NaN for x < 0.

    >>> gg.evaluate(gg.log([1.0, 2.0])).round(4)
    array([0.    , 0.6931])
    """
    return float_ufunc(LOG, x)


@documented(Log1p)
def log1p(x: TensorLike, /) -> Tensor:
    """y = ln(1 + x), accurate near 0, element by element; -inf at -1, NaN for x < -1.

    >>> gg.evaluate(gg.log1p([0.0, 1e-20]))
    array([0.e+00, 1.e-20])
    """
    return float_ufunc(LOG1P, x)


@documented(Log2)
def log2(x: TensorLike, /) -> Tensor:
    """Logarithm to base 2: y = ln x / ln 2, element by element; -inf at 0, NaN for x < 0.

    >>> gg.evaluate(gg.log2([1.0, 8.0]))
    array([0., 3.])
    """
    return float_ufunc(LOG2, x)


@documented(Log10)
def log10(x: TensorLike, /) -> Tensor:
    """Logarithm to base 10: y = ln x / ln 10, element by element; -inf at 0, NaN for x < 0.

    >>> gg.evaluate(gg.log10([1.0, 1000.0]))
    array([0., 3.])
    """
    return float_ufunc(LOG10, x)


@documented(Sqrt)
def sqrt(x: TensorLike, /) -> Tensor:
    """Square root: y = x**(1/2), element by element; NaN for x < 0.

    >>> gg.evaluate(gg.sqrt([0.0, 4.0]))
    array([0., 2.])
    """
    return float_ufunc(SQRT, x)


@documented(Cbrt)
def cbrt(x: TensorLike, /) -> Tensor:
    """Cube root: y = x**(1/3), element by element, of negative numbers too.

    Parameters: x: any shape; floating, ints and bools become floats.

    >>> gg.evaluate(gg.cbrt([8.0, -27.0]))
    array([ 2., -3.])
    """
    return float_ufunc(CBRT, x)


@documented(LogAddExp)
def logaddexp(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = ln(e**x + e**y) without overflow, element by element.

    Source: numpy.logaddexp.

    >>> gg.evaluate(gg.logaddexp([0.0, 99.0], [0.0, 99.0])).round(4)
    array([ 0.6931, 99.6931])
    """
    return float_ufunc(LOGADDEXP, x, y)


def logaddexp2(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = log2(2**x + 2**y) without overflow, element by element.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become floats.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dx = dz * s, dy = dz * (1 - s) with s = sigmoid((x - y) ln 2).

    Source: numpy.logaddexp2.

    >>> gg.evaluate(gg.logaddexp2([0.0, 9999.0], [0.0, 9999.0]))
    array([1.e+00, 1.e+04])
    """
    x, y = promoted(x, y, floating=True, small=True)
    return logaddexp(x * LN2, y * LN2) * (1.0 / LN2)
