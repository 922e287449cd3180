"""Sums, products, powers, rounding and bounds, element by element."""

from __future__ import annotations

import math

from ..ir.kinds import limits_of
from .base import (
    NO_GRAD,
    ZERO,
    Any,
    Binary,
    Comparison,
    DType,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Real,
    Samples,
    Tensor,
    TensorLike,
    Unary,
    ZerosLike,
    apply,
    as_dtype,
    as_tensor,
    build,
    cast,
    is_floating,
    is_inexact,
    kind_of,
    like,
    np,
    promoted,
    real_dtype,
    result_dtype,
    wants,
)
from .exponential import LOG, SQRT
from .families import (
    FloatUnary,
    Kinds,
    NumberBinary,
    RealBinary,
    RealUnary,
    binary,
    float_ufunc,
    known_number,
    numbers,
)
from .logic import (
    EQUAL,
    GREATER,
    LESS,
    WHERE,
    equal,
    greater,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_or,
    where,
)
from .making import Making

__all__ = [
    "abs",
    "absolute",
    "add",
    "ceil",
    "clip",
    "conj",
    "conjugate",
    "copysign",
    "deg2rad",
    "degrees",
    "divide",
    "divmod",
    "fabs",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "heaviside",
    "hypot",
    "imag",
    "isclose",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "nan_to_num",
    "negative",
    "nextafter",
    "positive",
    "pow",
    "power",
    "rad2deg",
    "radians",
    "real",
    "reciprocal",
    "remainder",
    "rint",
    "round",
    "sign",
    "square",
    "subtract",
    "true_divide",
    "trunc",
]


class Arithmetic(Binary, abstract=True):
    """Family: two operands of any number, complex too."""

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield from super().samples(rng)
        parts = rng.uniform(*cls.domain, size=(2, 5))
        z = parts[0] + 1j * parts[1]
        yield cls(), [z[:2], z[2:].reshape(3, 1)]


class Add(Arithmetic):
    """z = x + y, dx = dz, dy = dz."""

    onnx = Onnx("Add")
    linear = "joint"
    commutes = True

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.add(x, y)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return dy, dy


class Subtract(Arithmetic):
    """z = x - y, dx = dz, dy = -dz."""

    onnx = Onnx("Sub")
    linear = "joint"

    def check(self, dtype: DType) -> None:
        if kind_of(dtype) == "b":
            raise DTypeError("bools cannot be subtracted; use gg.logical_xor")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.subtract(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return dz, apply(NEGATIVE, dz) if wants(node.inputs[1]) else NO_GRAD


class Multiply(Arithmetic):
    """z = x * y, dx = dz * y, dy = dz * x."""

    onnx = Onnx("Mul")
    linear = "each"
    commutes = True

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.multiply(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return (
            apply(MULTIPLY, dz, y) if wants(x) else NO_GRAD,
            apply(MULTIPLY, dz, x) if wants(y) else NO_GRAD,
        )


class Divide(Arithmetic):
    """z = x / y, dx = dz / y, dy = -dz * z / y."""

    onnx = Onnx("Div")
    domain = (0.5, 2.0)
    linear = (0,)
    singular = 1

    def check(self, dtype: DType) -> None:
        if not is_inexact(dtype):
            raise DTypeError(f"Divide takes floating operands, got {dtype}; use gg.divide to cast")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.divide(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        (z,) = node.outputs
        return (
            dz / y if wants(x) else NO_GRAD,
            -(dz * z) / y if wants(y) else NO_GRAD,
        )


class Negative(Unary):
    """y = -x, dx = -dy."""

    onnx = Onnx("Neg")
    linear = "joint"
    relevance = "passed"

    def check(self, dtype: DType) -> None:
        if kind_of(dtype) == "b":
            raise DTypeError("bools cannot be negated; use gg.logical_not")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.negative(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(NEGATIVE, dy),)


class FloorDivide(NumberBinary):
    """z = floor(x / y): a step, the gradient is zero."""

    domain = (0.5, 2.0)
    stepwise = True

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.floor_divide(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return ZERO, ZERO

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield from super().samples(rng)
        yield cls(), [np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])]


class Remainder(FloorDivide):
    """z = x - floor(x / y) * y, with the sign of y; dx = dz, dy = -dz * floor(x / y)."""

    onnx = Onnx("Mod")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.remainder(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return dz, -(dz * apply(FLOOR_DIVIDE, x, y)) if wants(y) else NO_GRAD


class Fmod(FloorDivide):
    """z = x - trunc(x / y) * y, with the sign of x; dx = dz, dy = -dz * trunc(x / y)."""

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.fmod(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return dz, -(dz * trunc(x / y)) if wants(y) else NO_GRAD


class Power(Kinds, Arithmetic):
    """z = x**y, dx = dz * y * x**(y - 1), dy = dz * z * ln x.

    0**0 is 1: there dx and dy are 0. At x = 0, dy is 0 for every y >= 0. For x < 0, dy is NaN.
    """

    onnx = Onnx("Pow")
    domain = (0.5, 2.0)
    singular = 0

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.power(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        (z,) = node.outputs
        return (
            _of_base(x, y, dz) if wants(x) else NO_GRAD,
            dz * (z * apply(LOG, where(equal(x, 0), 1, x))) if wants(y) else NO_GRAD,
        )

    def decompose(self, make: Making) -> Tensor | None:
        """Where the power is known, and small."""
        x, y = make.inputs
        known = known_number(y)
        if known is None or y.shape:
            return None
        if known == 2:
            return make(SQUARE, x)
        if known == 3:
            return make(MULTIPLY, make(SQUARE, x), x)
        if known == 4:
            return make(SQUARE, make(SQUARE, x))
        if not is_floating(x.dtype):
            return None
        if known == -1:
            return make(RECIPROCAL, x)
        if known == -2:
            return make(SQUARE, make(RECIPROCAL, x))
        return make(SQRT, x) if known == 0.5 and x.dtype.itemsize > 2 else None  # as NumPy has it

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield from super().samples(rng)
        yield cls(), [np.array([2, -3, 0]), np.array([3, 2, 0])]


def _of_base(x: Tensor, y: Tensor, dz: Tensor) -> Any:
    """dx of Power; simpler where the exponent is a known number."""
    known = known_number(y)
    if known is None:
        unit = where(logical_and(equal(x, 0), equal(y, 0)), 1, y)
        return dz * (y * apply(POWER, x, unit - 1))
    if known == 0:
        return ZERO
    if known == 1:
        return dz
    return dz * (y * (x if known == 2 else apply(POWER, x, like(known - 1, y))))


class Abs(Unary):
    """y = |x|, dx = dy * sign(x), of complex x dy * conj(sign(x)): 0 at 0.

    The modulus of a complex number is floating.
    """

    onnx = Onnx("Abs")
    idempotent = True
    value_range = (0.0, np.inf)
    relevance = "passed"

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
    """y = -1, 0 or 1 as x is: a step, the gradient is zero.

    Of a complex number y = x / |x|, dx = i conj(y) im(dy * y) / |x|: 0 at 0.
    """

    onnx = Onnx("Sign")
    idempotent = True
    stepwise = True
    relevance = "passed"

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


class Rounding(RealUnary, abstract=True):
    """Family: a floating integer near x; a step, the gradient is zero."""

    idempotent = rounds = True
    relevance = "passed"

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (ZERO,)


class Round(Rounding):
    """y = the integer nearest to x, the even one where two are; the gradient is zero."""

    onnx = Onnx("Round")
    stepwise = True

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.rint(x)


class Floor(Rounding):
    """y = the greatest integer <= x; the gradient is zero."""

    onnx = Onnx("Floor")
    stepwise = True

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.floor(x)


class Ceil(Rounding):
    """y = the least integer >= x; the gradient is zero."""

    onnx = Onnx("Ceil")
    stepwise = True

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.ceil(x)


class Trunc(Rounding):
    """y = x without its fraction; the gradient is zero."""

    stepwise = True

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.trunc(x)


class Square(Kinds, Unary):
    """y = x * x, dx = dy * 2x."""

    value_range = (0.0, np.inf)
    relevance = "passed"

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.square(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy * (2.0 * x),)


class Reciprocal(FloatUnary):
    """y = 1 / x, dx = -dy * y**2."""

    onnx = Onnx("Reciprocal")
    domain = (0.5, 2.0)
    singular = 0

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.reciprocal(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (-(dy * (y * y)),)


class Maximum(Kinds, Binary):
    """z = the greater of x and y, NaN if one is; dz goes to it, half of dz to each at a tie."""

    kinds = "biuf"
    onnx = Onnx("Max")
    guards = True
    relevance = "moved"

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.maximum(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return _shared(dz, GREATER, *node.inputs)


class Minimum(Kinds, Binary):
    """z = the less of x and y, NaN if one is; dz goes to it, half of dz to each at a tie."""

    kinds = "biuf"
    onnx = Onnx("Min")
    guards = True
    relevance = "moved"

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.minimum(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return _shared(dz, LESS, *node.inputs)


def _shared(dz: Tensor, more: Comparison, x: Tensor, y: Tensor) -> Gradients:
    """dz for the operand that is `more` than the other, half of it each at a tie."""
    zero, tie, half = like(0, dz), apply(EQUAL, x, y), dz * 0.5
    return (
        where(tie, half, apply(WHERE, apply(more, x, y), dz, zero)) if wants(x) else NO_GRAD,
        where(tie, half, apply(WHERE, apply(more, y, x), dz, zero)) if wants(y) else NO_GRAD,
    )


class Clip(Kinds):
    """y = the number nearest to x between low and high (high, where low > high).

    dx = dy inside the closed bounds, else 0; a bound has dy where x lies beyond it.
    """

    kinds = "iuf"
    guards = True
    relevance = "passed"

    def kernel(self, xp: Any, x: Any, low: Any, high: Any) -> Any:
        return xp.minimum(xp.maximum(x, low), high)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, low, high = node.inputs
        zero = like(0, dy)
        inside = logical_and(less_equal(low, x), less_equal(x, high))
        below = logical_and(less(x, low), less_equal(low, high)) if wants(low) else inside
        above = logical_or(greater(x, high), greater(low, high)) if wants(high) else inside
        return (
            apply(WHERE, inside, dy, zero) if wants(x) else NO_GRAD,
            apply(WHERE, below, dy, zero) if wants(low) else NO_GRAD,
            apply(WHERE, above, dy, zero) if wants(high) else NO_GRAD,
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shapes in [
            ((2, 3), (), ()),
            ((2, 3), (3,), (2, 1)),
            ((), (2,), ()),
            ((0, 2), (), (2,)),
        ]:
            x, low, high = (rng.uniform(-1, 1, size=s) for s in shapes)
            yield cls(), [2 * x, low - 1, high + 1]
        yield cls(), [np.array(v, np.float32) for v in ([-2, 0, 2], -1, 1)]
        yield cls(), [np.array(v) for v in ([-2, 0, 2], -1, 1)]


class CopySign(RealBinary):
    """z = |x| with the sign of y; dx = dz * sign(x) * (the sign of y), 0 at 0; dy = 0."""

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.copysign(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return (
            dz * (apply(SIGN, x) * apply(COPYSIGN, like(1, y), y)) if wants(x) else NO_GRAD,
            ZERO,
        )


class NextAfter(RealBinary):
    """z = the number after x towards y; dx = dz, dy = 0."""

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.nextafter(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return dz, ZERO


class Hypot(RealBinary):
    """z = sqrt(x**2 + y**2) without overflow; dx = dz * x / z, dy = dz * y / z, 0 at the origin."""

    domain = (0.5, 2.0)
    value_range = (0.0, np.inf)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.hypot(x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return (
            dz * apply(COSINE, x, y) if wants(x) else NO_GRAD,
            dz * apply(COSINE, y, x) if wants(y) else NO_GRAD,
        )


class DirectionCosine(RealBinary):
    """c = x / r with r = hypot(x, y), and with s = y / r: dx = dc * s**2 / r, dy = -dc * c * s / r.

    0 at the origin. The derivative of the quotient itself would be a difference of large numbers.
    """

    domain = (0.5, 2.0)
    value_range = (-1.0, 1.0)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        r = xp.hypot(x, y)
        return x / xp.where(r == 0, 1, r)

    def vjp(self, node: Node, dc: Tensor) -> Gradients:
        (x, y), (c,) = node.inputs, node.outputs
        r = apply(HYPOT, x, y)
        s = apply(COSINE, y, x)
        across = dc * s / where(equal(r, 0), 1, r)
        return across * s if wants(x) else NO_GRAD, -(across * c) if wants(y) else NO_GRAD


class Imag(Real):
    """The imaginary part of a complex number: z = x + iy, dz = -i dy."""

    view = True
    alias = True

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.imag(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (cast(dy, node.inputs[0].dtype) * -1j,)


class Conj(Real):
    """The complex conjugate, dx = conj(dy)."""

    involution = True

    def result(self, dtype: DType) -> DType:
        return dtype

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.conj(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(CONJ, dy),)


ADD = Add()
SUBTRACT = Subtract()
MULTIPLY = Multiply()
DIVIDE = Divide()
NEGATIVE = Negative()
FLOOR_DIVIDE = FloorDivide()
REMAINDER = Remainder()
FMOD = Fmod()
POWER = Power()
ABS = Abs()
SIGN = Sign()
ROUND = Round()
FLOOR = Floor()
CEIL = Ceil()
TRUNC = Trunc()
SQUARE = Square()
RECIPROCAL = Reciprocal()
MAXIMUM = Maximum()
MINIMUM = Minimum()
CLIP = Clip()
COPYSIGN = CopySign()
HYPOT = Hypot()
REAL = Real()
IMAG = Imag()
CONJ = Conj()
COSINE = DirectionCosine()


# --- the four operations -----------------------------------------------------------------------


def add(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Sum: z = x + y, element by element.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does.

    Returns: z, of the broadcast shape and the promoted dtype; of bools whether either holds.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for what is no array of numbers.

    Gradient: dx = dz, dy = dz, each summed over the axes along which its operand was broadcast.

    >>> gg.evaluate(gg.add([1.0, 2.0], 3))
    array([4., 5.])
    """
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.type.dtype is y.type.dtype:
        return build(ADD, (x, y)).outputs[0]
    return apply(ADD, *promoted(x, y))


def subtract(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Difference: z = x - y, element by element.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for two bools.

    Gradient: dx = dz, dy = -dz.

    >>> gg.evaluate(gg.subtract([1.0, 2.0], 3))
    array([-2., -1.])
    """
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.type.dtype is y.type.dtype:
        return build(SUBTRACT, (x, y)).outputs[0]
    return apply(SUBTRACT, *promoted(x, y))


def multiply(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Product: z = x * y, element by element.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does.

    Returns: z, of the broadcast shape and the promoted dtype; of bools whether both hold.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for what is no array of numbers.

    Gradient: dx = dz * y, dy = dz * x.

    >>> gg.evaluate(gg.multiply([1.0, 2.0], 3))
    array([3., 6.])
    """
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.type.dtype is y.type.dtype:
        return build(MULTIPLY, (x, y)).outputs[0]
    return apply(MULTIPLY, *promoted(x, y))


def divide(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Quotient: z = x / y, element by element.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does, ints and bools become float64.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for what is no array of numbers.

    Gradient: dx = dz / y, dy = -dz * z / y.

    >>> gg.evaluate(gg.divide([1, 2], 4))
    array([0.25, 0.5 ])
    """
    return apply(DIVIDE, *promoted(x, y, floating=True))


def negative(x: TensorLike, /) -> Tensor:
    """y = -x, element by element.

    Parameters: x: any shape and dtype but bool.

    Returns: shape and dtype of x.

    Raises: DTypeError if x is bool.

    Gradient: dx = -dy.

    >>> gg.evaluate(gg.negative([1.0, -2.0]))
    array([-1.,  2.])
    """
    return apply(NEGATIVE, as_tensor(x))


def positive(x: TensorLike, /) -> Tensor:
    """+x, which is x itself.

    Parameters: x: any shape and dtype but bool.

    Returns: x as a tensor; no node is built for one that is a tensor.

    Raises: DTypeError if x is bool.

    Gradient: dx = dy.

    >>> gg.evaluate(gg.positive([1.0, -2.0]))
    array([ 1., -2.])
    """
    x = as_tensor(x)
    if kind_of(x.dtype) == "b":
        raise DTypeError("bools have no sign; use gg.cast to make numbers of them")
    return x


# --- division with remainder, powers -----------------------------------------------------------


def floor_divide(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = floor(x / y), element by element.

    Parameters:
        x, y: shapes that broadcast; integer or floating, dtypes promoted, bools count as int8.

    Returns: z, of the broadcast shape and the promoted dtype: integers stay integers.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dx = dy = 0, z is a step.

    Source: numpy.floor_divide.

    >>> gg.evaluate(gg.floor_divide([7, -7], 2))
    array([ 3, -4])
    """
    return apply(FLOOR_DIVIDE, *numbers(x, y))


def remainder(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x - floor(x / y) * y, with the sign of y as in Python, element by element.

    Parameters:
        x, y: shapes that broadcast; integer or floating, dtypes promoted, bools count as int8.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dx = dz, dy = -dz * floor(x / y).

    Source: numpy.remainder.

    >>> gg.evaluate(gg.remainder([7, -7], 3))
    array([1, 2])
    """
    return apply(REMAINDER, *numbers(x, y))


def fmod(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x - trunc(x / y) * y, with the sign of x as in C, element by element.

    Parameters:
        x, y: shapes that broadcast; integer or floating, dtypes promoted, bools count as int8.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dx = dz, dy = -dz * trunc(x / y).

    Source: numpy.fmod.

    >>> gg.evaluate(gg.fmod([7, -7], 3))
    array([ 1, -1])
    """
    return apply(FMOD, *numbers(x, y))


def divmod(x: TensorLike, y: TensorLike, /) -> tuple[Tensor, Tensor]:
    """The pair of floor_divide(x, y) and remainder(x, y), element by element.

    Parameters:
        x, y: shapes that broadcast; integer or floating, dtypes promoted, bools count as int8.

    Returns: quotient and remainder, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: of the quotient 0; of the remainder z, dx = dz and dy = -dz * floor(x / y).

    Source: numpy.divmod.

    >>> gg.evaluate(gg.divmod([7, -7], 3))
    (array([ 2, -3]), array([1, 2]))
    """
    x, y = numbers(x, y)
    return apply(FLOOR_DIVIDE, x, y), apply(REMAINDER, x, y)


def power(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x**y, element by element; 0**0 is 1.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does, bools count as int8.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for an integer to a constant
        negative power, which is no integer (ValueError when run if the power is no constant): cast
        x to a float, or use gg.float_power.

    Gradient: dx = dz * y * x**(y - 1), dy = dz * z * ln x [DLMF 4.7(ii)]; where x = 0, dx is 0 for
        y = 0, and dy is 0 for every y >= 0; where x < 0, dy is NaN.

    >>> gg.evaluate(gg.power([2.0, 3.0, 0.0], [3, 2, 0]))
    array([8., 9., 1.])
    """
    x, y = numbers(x, y)
    known = known_number(y) if kind_of(x.dtype) in "iu" else None
    if known is not None and known < 0:
        raise DTypeError(
            f"{x.type!r} to the power {known}: integers have no negative integer powers; "
            "cast the base to a float, or use gg.float_power"
        )
    return apply(POWER, x, y)


def float_power(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x**y computed in float64, or complex128, element by element; 0**0 is 1.

    Parameters:
        x, y: shapes that broadcast; any dtypes.

    Returns: z, of the broadcast shape; float64, complex128 if an operand is complex.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for what is no array of numbers.

    Gradient: as of power: dx = dz * y * x**(y - 1), dy = dz * z * ln x.

    Source: numpy.float_power.

    >>> gg.evaluate(gg.float_power([2, 4], -1))
    array([0.5 , 0.25])
    """
    x, y = promoted(x, y)
    dtype = result_dtype([x.dtype, as_dtype(np.float64)])
    return apply(POWER, cast(x, dtype), cast(y, dtype))


def square(x: TensorLike, /) -> Tensor:
    """y = x * x, element by element.

    Parameters: x: any shape and dtype; bools count as int8.

    Returns: shape and dtype of x.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = dy * 2 x.

    >>> gg.evaluate(gg.square([2.0, -3.0]))
    array([4., 9.])
    """
    return apply(SQUARE, *numbers(x))


def reciprocal(x: TensorLike, /) -> Tensor:
    """y = 1 / x, element by element.

    Parameters: x: any shape; floating or complex.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError for integers and bools, of which the reciprocal is no integer.

    Gradient: dx = -dy * y**2.

    >>> gg.evaluate(gg.reciprocal([2.0, -4.0]))
    array([ 0.5 , -0.25])
    """
    x = as_tensor(x)
    if not is_inexact(x.dtype):
        raise DTypeError(
            f"the reciprocal of {x.type!r} would be rounded to 0 or 1; use gg.divide(1, x)"
        )
    return apply(RECIPROCAL, x)


# --- sign and size, rounding -------------------------------------------------------------------


def abs(x: TensorLike, /) -> Tensor:
    """y = |x|, element by element.

    Parameters: x: any shape and dtype.

    Returns: shape and dtype of x; of complex numbers the modulus, floating.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = dy * sign(x), of complex x dy * conj(sign(x)); 0 at 0, the subgradient of least
        norm.

    >>> x = gg.constant([-2.0, 0.0, 3.0])
    >>> gg.evaluate(gg.gradients([gg.abs(x)], [x]))
    [array([-1.,  0.,  1.])]
    """
    return apply(ABS, as_tensor(x))


def fabs(x: TensorLike, /) -> Tensor:
    """y = |x|, element by element, always floating.

    Parameters: x: any shape; floating or complex, ints and bools become floats.

    Returns: shape and dtype of x; of complex numbers the modulus, floating.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = dy * sign(x), 0 at 0.

    >>> gg.evaluate(gg.fabs([-2, 0, 3]))
    array([2., 0., 3.])
    """
    return float_ufunc(ABS, x)


def sign(x: TensorLike, /) -> Tensor:
    """y = -1, 0 or 1 as x is negative, zero or positive, element by element; NaN of NaN.

    Parameters: x: any shape and dtype but bool.

    Returns: shape and dtype of x; of complex numbers x / |x|.

    Raises: DTypeError if x is bool.

    Gradient: dx = 0, y is a step; of complex x it is i conj(y) im(dy * y) / |x|, and 0 at 0.

    >>> gg.evaluate(gg.sign([-2.0, 0.0, 3.0]))
    array([-1.,  0.,  1.])
    """
    return apply(SIGN, as_tensor(x))


def copysign(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = |x| with the sign of y, that of -0.0 too, element by element.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become floats.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dx = dz * sign(x) * (the sign of y), 0 at x = 0; dy = 0.

    Source: numpy.copysign.

    >>> gg.evaluate(gg.copysign([1.0, -2.0], [-0.0, 5.0]))
    array([-1.,  2.])
    """
    return float_ufunc(COPYSIGN, x, y)


def nextafter(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The floating number after x towards y, element by element.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become floats.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dx = dz, dy = 0.

    Source: numpy.nextafter.

    >>> gg.evaluate(gg.nextafter(1.0, 2.0) - 1.0)
    array(2.22044605e-16)
    """
    return float_ufunc(NextAfter(), x, y)


def round(x: TensorLike, /, decimals: int = 0) -> Tensor:
    """x rounded to this many decimals, halves to even, element by element.

    Parameters:
        x: any shape and dtype; integers and bools are returned as they are; complex part by part,
            but as it is where the imaginary part is infinite or NaN.
        decimals: an int; below 0, tens, hundreds and so on.

    Returns: shape and dtype of x.

    Raises: DTypeError for integers and bools if decimals < 0.

    Gradient: dx = 0, a step.

    Source: numpy.round.

    >>> gg.evaluate(gg.round([0.5, 1.5, 2.51])), gg.evaluate(gg.round(17.0, -1))
    (array([0., 2., 3.]), array(20.))
    """
    x = as_tensor(x)
    if x.type.complex:
        first, second = (cast(round(part(x), decimals), x.dtype) for part in (real, imag))
        return where(isfinite(imag(x)), first + second * 1j, x)  # 1j * infinity would be NaN
    if decimals == 0 or not is_floating(x.dtype):
        if decimals < 0:
            raise DTypeError(f"rounding {x.type!r} to {decimals} decimals: cast it to a float")
        return _stepped(ROUND, x)
    scale = 10.0 ** math.fabs(decimals)
    if decimals > 0:
        return divide(apply(ROUND, multiply(x, scale)), scale)
    return multiply(apply(ROUND, divide(x, scale)), scale)


def rint(x: TensorLike, /) -> Tensor:
    """The integer nearest to x, the even one where two are, element by element; always floating.

    Parameters: x: any shape; floating or complex, of which it takes both parts; ints and bools
        become floats.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = 0, a step.

    >>> gg.evaluate(gg.rint([0.5, 1.5, -2.6]))
    array([ 0.,  2., -3.])
    """
    x = as_tensor(x)
    return round(x) if x.type.complex else float_ufunc(ROUND, x)


def floor(x: TensorLike, /) -> Tensor:
    """The greatest integer <= x, element by element.

    Parameters: x: any shape; floating; integers and bools are returned as they are.

    Returns: shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = 0, a step.

    >>> gg.evaluate(gg.floor([1.5, -1.5]))
    array([ 1., -2.])
    """
    return _stepped(FLOOR, x)


def ceil(x: TensorLike, /) -> Tensor:
    """The least integer >= x, element by element.

    Parameters: x: any shape; floating; integers and bools are returned as they are.

    Returns: shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = 0, a step.

    >>> gg.evaluate(gg.ceil([1.5, -2.5]))
    array([ 2., -2.])
    """
    return _stepped(CEIL, x)


def trunc(x: TensorLike, /) -> Tensor:
    """x without its fraction, element by element.

    Parameters: x: any shape; floating; integers and bools are returned as they are.

    Returns: shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = 0, a step.

    >>> gg.evaluate(gg.trunc([1.5, -1.5]))
    array([ 1., -1.])
    """
    return _stepped(TRUNC, x)


def _stepped(op: Rounding, x: TensorLike) -> Tensor:
    x = as_tensor(x)
    return x if kind_of(x.dtype) in "biu" else apply(op, x)


# --- bounds ------------------------------------------------------------------------------------


def maximum(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The greater of x and y, element by element; NaN where one is NaN.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dz to the greater, half of it to each at a tie.

    Source: numpy.maximum.

    >>> gg.evaluate(gg.maximum([1.0, np.nan, 3.0], 2.0))
    array([ 2., nan,  3.])
    """
    return binary(MAXIMUM, x, y)


def minimum(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The less of x and y, element by element; NaN where one is NaN.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dz to the less, half of it to each at a tie.

    Source: numpy.minimum.

    >>> gg.evaluate(gg.minimum([1.0, np.nan, 3.0], 2.0))
    array([ 1., nan,  2.])
    """
    return binary(MINIMUM, x, y)


def fmax(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The greater of x and y, element by element; the other where one is NaN.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dz to the one that is taken, half of it to each at a tie.

    Source: numpy.fmax.

    >>> gg.evaluate(gg.fmax([1.0, np.nan, 3.0], 2.0))
    array([2., 2., 3.])
    """
    x, y = promoted(x, y)
    return where(isnan(x), y, where(isnan(y), x, maximum(x, y)))


def fmin(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The less of x and y, element by element; the other where one is NaN.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dz to the one that is taken, half of it to each at a tie.

    Source: numpy.fmin.

    >>> gg.evaluate(gg.fmin([1.0, np.nan, 3.0], 2.0))
    array([1., 2., 2.])
    """
    x, y = promoted(x, y)
    return where(isnan(x), y, where(isnan(y), x, minimum(x, y)))


def clip(x: TensorLike, /, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """x held between two bounds, element by element; max where min > max.

    Parameters:
        x: integer or floating.
        min, max: the bounds, which broadcast with x; None for no bound there.

    Returns: the broadcast shape, the promoted dtype; x itself without bounds.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dx = dy inside the closed bounds, else 0; dy goes to the bound beyond which x lies.

    Source: the array API standard, clip.

    >>> gg.evaluate(gg.clip([-2.0, 0.5, 2.0], -1.0, 1.0))
    array([-1. ,  0.5,  1. ])
    """
    if min is None and max is None:
        return as_tensor(x)
    x, *bounds = promoted(*[t for t in (x, min, max) if t is not None])
    if kind_of(x.dtype) not in "iuf":
        raise DTypeError(f"clip takes integers and floating numbers, got {x.type!r}")
    low = _lowest(x) if min is None else bounds[0]
    high = _highest(x) if max is None else bounds[-1]
    return apply(CLIP, x, low, high)


def _lowest(x: Tensor) -> Tensor:
    return like(-math.inf if is_floating(x.dtype) else int(np.iinfo(x.dtype).min), x)


def _highest(x: Tensor) -> Tensor:
    return like(math.inf if is_floating(x.dtype) else int(np.iinfo(x.dtype).max), x)


# --- complex numbers, lengths, angles ----------------------------------------------------------


def real(x: TensorLike, /) -> Tensor:
    """The real part, element by element; x itself where it is not complex.

    Parameters: x: any shape and dtype.

    Returns: shape of x; complex128 gives float64, complex64 float32.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = dy, as a complex number of complex x.

    >>> gg.evaluate(gg.real([1 + 2j]))
    array([1.])
    """
    x = as_tensor(x)
    return apply(REAL, x) if kind_of(x.dtype) == "c" else x


def imag(x: TensorLike, /) -> Tensor:
    """The imaginary part, element by element; zeros where x is not complex.

    Parameters: x: any shape and dtype.

    Returns: shape of x; complex128 gives float64, complex64 float32.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = -i dy of complex x; dx = 0 of any other.

    >>> gg.evaluate(gg.imag([1 + 2j]))
    array([2.])
    """
    x = as_tensor(x)
    return apply(IMAG, x) if kind_of(x.dtype) == "c" else apply(ZerosLike(), x)


def conj(x: TensorLike, /) -> Tensor:
    """The complex conjugate, element by element; x itself where it is not complex.

    Parameters: x: any shape and dtype.

    Returns: shape and dtype of x.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = conj(dy).

    >>> gg.evaluate(gg.conj([1 + 2j]))
    array([1.-2.j])
    """
    x = as_tensor(x)
    return apply(CONJ, x) if kind_of(x.dtype) == "c" else x


def hypot(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = sqrt(x**2 + y**2) without overflow, element by element.

    Parameters:
        x, y: shapes that broadcast; floating, dtypes promoted, ints and bools become floats.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for complex operands.

    Gradient: dx = dz * x / z, dy = dz * y / z; 0 at the origin, the subgradient of least norm.

    Source: numpy.hypot.

    >>> gg.evaluate(gg.hypot([3.0, 3e200], [4.0, 4e200]))
    array([5.e+000, 5.e+200])
    """
    return float_ufunc(HYPOT, x, y)


def deg2rad(x: TensorLike, /) -> Tensor:
    """Degrees as radians: y = x * pi / 180, element by element.

    Parameters: x: any shape; floating or complex, ints and bools become floats.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = dy * pi / 180.

    >>> gg.evaluate(gg.deg2rad([0, 180])).round(4)
    array([0.    , 3.1416])
    """
    return multiply(_floating(x), math.pi / 180.0)


def rad2deg(x: TensorLike, /) -> Tensor:
    """Radians as degrees: y = x * 180 / pi, element by element.

    Parameters: x: any shape; floating or complex, ints and bools become floats.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError for what is no array of numbers.

    Gradient: dx = dy * 180 / pi.

    >>> gg.evaluate(gg.rad2deg([0.0, np.pi])).round(4)
    array([  0., 180.])
    """
    return multiply(_floating(x), 180.0 / math.pi)


def _floating(x: TensorLike) -> Tensor:
    return promoted(x, floating=True, small=True)[0]


# --- made of the above -------------------------------------------------------------------------


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
    return where(equal(x, 0), y, where(isnan(x), x, where(greater(x, 0), like(1, x), 0)))


def isclose(
    x: TensorLike,
    y: TensorLike,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Whether |x - y| <= atol + rtol * |y|, element by element.

    Infinities are close to themselves; NaN is close to nothing, or to NaN if equal_nan.

    Parameters:
        x, y: shapes that broadcast; any dtypes.
        rtol, atol: how much x may differ, relative to y and as such.
        equal_nan: whether NaN is close to NaN.

    Returns: bool, of the broadcast shape.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for what is no array of numbers.

    Gradient: none, the result is bool.

    Source: numpy.isclose.

    >>> gg.evaluate(gg.isclose([1.0, 1.1, np.inf], [1.0 + 1e-9, 1.0, np.inf]))
    array([ True, False,  True])
    """
    x, y = promoted(x, y, floating=True)
    near = less_equal(abs(x - y), atol + rtol * abs(y))
    close = logical_or(equal(x, y), logical_and(near, isfinite(y)))
    return logical_or(close, logical_and(isnan(x), isnan(y))) if equal_nan else close


def nan_to_num(
    x: TensorLike,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """x with NaN and infinities replaced, element by element.

    Parameters:
        x: any shape; floating, or complex (part by part); of other dtypes x itself.
        copy: as in NumPy; it means nothing, tensors never change.
        nan: in place of NaN.
        posinf, neginf: in place of the infinities; None for the greatest and least finite number.

    Returns: shape and dtype of x.

    Raises: DTypeError for what is no array of numbers; ValueError for replacements in a complex x
        that are not finite.

    Gradient: dx = dy where the number stayed, else 0.

    Source: numpy.nan_to_num.

    >>> gg.evaluate(gg.nan_to_num([1.0, np.nan, -np.inf], neginf=-9.0))
    array([ 1.,  0., -9.])
    """
    x = as_tensor(x)
    if x.type.complex:
        return _complex_nan_to_num(x, nan, posinf, neginf)
    if not is_floating(x.dtype):
        return x
    high = float(limits_of(x.dtype).max) if posinf is None else posinf
    low = float(limits_of(x.dtype).min) if neginf is None else neginf
    bounded = where(isinf(x), where(greater(x, 0), like(high, x), like(low, x)), x)
    return where(isnan(x), like(nan, x), bounded)


def _complex_nan_to_num(
    x: Tensor, nan: float, posinf: float | None, neginf: float | None
) -> Tensor:
    """nan_to_num of both parts; 1j * infinity would be NaN again."""
    if not all(v is None or math.isfinite(v) for v in (nan, posinf, neginf)):
        raise ValueError(
            "nan_to_num of complex numbers puts finite numbers in, "
            f"got nan={nan}, posinf={posinf}, neginf={neginf}"
        )
    parts = [nan_to_num(part(x), True, nan, posinf, neginf) for part in (real, imag)]
    first, second = (cast(part, x.dtype) for part in parts)
    return where(isfinite(x), x, first + second * 1j)


absolute = abs
conjugate = conj
degrees = rad2deg
mod = remainder
pow = power
radians = deg2rad
true_divide = divide
