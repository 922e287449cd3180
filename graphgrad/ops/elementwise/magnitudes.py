"""Element-wise magnitudes and signs."""

from __future__ import annotations

from ...ir.op import OP_TYPES
from ..base import (
    NO_GRAD,
    ZERO,
    Any,
    Derivative,
    DType,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Samples,
    Tensor,
    TensorLike,
    Traits,
    Unary,
    apply,
    as_tensor,
    cast,
    is_floating,
    like,
    np,
    promoted,
    real_dtype,
    wants,
)
from ..documented import documented
from ..families import Kinds, RealBinary, float_ufunc
from .complex_parts import CONJ, IMAG
from .logic import equal, greater, isnan, where

__all__ = ["abs", "absolute", "copysign", "fabs", "heaviside", "hypot", "sign"]


class Abs(Unary):
    """y = |x|.

    Gradient: dx = dy * sign(x), of complex x dy * conj(sign(x)); 0 at 0, the subgradient of
        least norm.

    The modulus of a complex number is floating.
    """

    onnx = Onnx("Abs")
    traits = Traits(idempotent=True, value_range=(0.0, np.inf))
    derivative = Derivative(relevance="passed")

    def result(self, dtype: DType) -> DType:
        return real_dtype(dtype)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.abs(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        if x.type.complex:
            return (cast(dy, x.dtype) * apply(CONJ, apply(SIGN, x)),)
        return (dy * apply(SIGN, x),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield from super().samples(rng)
        yield cls(), [rng.normal(size=3) + 1j * rng.normal(size=3)]


class Sign(Kinds, Unary):
    """y = -1, 0 or 1 as x is; of a complex number x / |x|.

    Gradient: dx = 0, y is a step; of complex x it is i conj(y) im(dy * y) / |x|, and 0 at 0.
    """

    onnx = Onnx("Sign")
    traits = Traits(idempotent=True, stepwise=True)
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.sign(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        if not x.type.complex:
            return (ZERO,)
        size = apply(ABS, x)
        turn = apply(IMAG, dy * y) / where(equal(size, 0), 1, size)
        return (cast(turn, x.dtype) * (apply(CONJ, y) * 1j),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield from super().samples(rng)
        yield cls(), [rng.normal(size=3) + 1j * rng.normal(size=3)]


class CopySign(RealBinary):
    """z = |x| with the sign of y.

    Gradient: dx = dz * sign(x) * (the sign of y), 0 at x = 0; dy = 0.
    """

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.copysign(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        size = to.Abs(x)
        return to.Where(to.apply(OP_TYPES["SignBit"](), y), to.Neg(size), size)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return (
            dz * (apply(SIGN, x) * apply(COPYSIGN, like(1, y), y)) if wants(x) else NO_GRAD,
            ZERO,
        )


class Hypot(RealBinary):
    """z = sqrt(x**2 + y**2) without overflow.

    Gradient: dx = dz * x / z, dy = dz * y / z; 0 at the origin, the subgradient of least norm.
    """

    domain = (0.5, 2.0)
    traits = Traits(value_range=(0.0, np.inf))

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.hypot(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        a, b = to.Abs(x), to.Abs(y)
        most, endless = to.Max(a, b), to.Or(to.IsInf(a), to.IsInf(b))
        ratio = to.Div(to.Min(a, b), to.Where(to.Equal(most, 0.0), 1.0, most))
        length = to.Mul(most, to.Sqrt(to.Add(to.Mul(ratio, ratio), 1.0)))
        return to.Where(endless, np.inf, length)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return (
            dz * apply(COSINE, x, y) if wants(x) else NO_GRAD,
            dz * apply(COSINE, y, x) if wants(y) else NO_GRAD,
        )


class DirectionCosine(RealBinary):
    """c = x / r with r = hypot(x, y), and with s = y / r.

    Gradient: dx = dc * s**2 / r, dy = -dc * c * s / r.

    0 at the origin. The derivative of the quotient itself would be a difference of large numbers.
    """

    domain = (0.5, 2.0)
    traits = Traits(value_range=(-1.0, 1.0))

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        r = xp.hypot(x, y)
        return x / xp.where(r == 0, 1, r)

    def vjp(self, node: Node, dc: Tensor) -> Gradients:
        (x, y), (c,) = node.inputs, node.outputs
        r = apply(HYPOT, x, y)
        s = apply(COSINE, y, x)
        across = dc * s / where(equal(r, 0), 1, r)
        return across * s if wants(x) else NO_GRAD, -(across * c) if wants(y) else NO_GRAD


ABS = Abs()
SIGN = Sign()
COPYSIGN = CopySign()
HYPOT = Hypot()
COSINE = DirectionCosine()


@documented(Abs)
def abs(x: TensorLike, /) -> Tensor:
    """y = |x|, element by element.

    Returns: shape and dtype of x; of complex numbers the modulus, floating.

    >>> x = gg.constant([-2.0, 0.0, 3.0])
    >>> gg.evaluate(gg.gradients([gg.abs(x)], [x]))
    [array([-1.,  0.,  1.])]
    """
    return apply(ABS, as_tensor(x))


@documented(Abs)
def fabs(x: TensorLike, /) -> Tensor:
    """y = |x|, element by element, always floating.

    Parameters: x: any shape; floating or complex, ints and bools become floats.

    Returns: shape and dtype of x; of complex numbers the modulus, floating.

    >>> gg.evaluate(gg.fabs([-2, 0, 3]))
    array([2., 0., 3.])
    """
    return float_ufunc(ABS, x)


@documented(Sign)
def sign(x: TensorLike, /) -> Tensor:
    """y = -1, 0 or 1 as x is negative, zero or positive, element by element; NaN of NaN.

    Parameters: x: any shape and dtype but bool.

    Returns: shape and dtype of x; of complex numbers x / |x|.

    Raises: DTypeError if x is bool.

    >>> gg.evaluate(gg.sign([-2.0, 0.0, 3.0]))
    array([-1.,  0.,  1.])
    """
    return apply(SIGN, as_tensor(x))


@documented(CopySign)
def copysign(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = |x| with the sign of y, that of -0.0 too, element by element.

    Source: numpy.copysign.

    >>> gg.evaluate(gg.copysign([1.0, -2.0], [-0.0, 5.0]))
    array([-1.,  2.])
    """
    return float_ufunc(COPYSIGN, x, y)


@documented(Hypot)
def hypot(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = sqrt(x**2 + y**2) without overflow, element by element.

    Source: numpy.hypot.

    >>> gg.evaluate(gg.hypot([3.0, 3e200], [4.0, 4e200]))
    array([5.e+000, 5.e+200])
    """
    return float_ufunc(HYPOT, x, y)


def heaviside(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = 0 where x < 0, y where x == 0, 1 where x > 0, element by element; NaN of NaN.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become floats.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dy = dz where x == 0, else 0; dx = 0 (dz where x is NaN).

    Source: numpy.heaviside.

    >>> gg.evaluate(gg.heaviside([-2.0, 0.0, 3.0], 0.5))
    array([0. , 0.5, 1. ])
    """
    x, y = promoted(x, y, floating=True, small=True)
    if not is_floating(x.dtype):
        raise DTypeError(f"heaviside takes real numbers, got {x.type!r}; use gg.real")
    return where(equal(x, 0), y, where(isnan(x), x, where(greater(x, 0), like(1, x), 0)))


absolute = abs
