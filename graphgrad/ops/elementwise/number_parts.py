"""Integer and fractional parts, exponents, spacings, bits and divisors of numbers."""

from __future__ import annotations

from ...base.kinds import limits_of
from ...ir.types import broadcast
from ..base import (
    NO_GRAD,
    ZERO,
    Any,
    Binary,
    DType,
    DTypeError,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Traits,
    Types,
    Unary,
    apply,
    as_dtype,
    as_tensor,
    cast,
    is_floating,
    kind_of,
    like,
    np,
    promoted,
    tensor_type,
)
from ..documented import documented
from ..families import Kinds, RealUnary, binary, float_ufunc
from .exponential import LN2
from .logic import IsFinite, isinf, where
from .magnitudes import COPYSIGN, copysign
from .rounding import trunc

__all__ = ["bitwise_count", "frexp", "gcd", "lcm", "ldexp", "modf", "spacing"]


# --- powers of two -----------------------------------------------------------------------------


class Ldexp(Op):
    """z = x1 * 2**x2, without a detour over 2**x2. Gradient: dx1 = dz * 2**x2.

    x1 is floating, x2 integer; they broadcast.
    """

    elementwise = True
    broadcasts = True
    linear = (0,)

    def infer(self, x: TensorType, n: TensorType) -> Types:
        if not is_floating(x.dtype) or kind_of(n.dtype) != "i":
            raise DTypeError(f"ldexp takes a floating and an integer tensor, got {x!r} and {n!r}")
        return (tensor_type(broadcast([x.shape, n.shape]), x.dtype),)

    def kernel(self, xp: Any, x: Any, n: Any) -> Any:
        return xp.ldexp(x, n)

    def to_onnx(self, to: Any, x: Any, n: Any) -> Any:
        """In three steps, so that no power leaves the range before the product does."""
        most = 3 * ((2 * limits_of(x.dtype).maxexp) // 3 + limits_of(x.dtype).nmant)
        places = to.Clip(to.wide(n), -most, most)
        third = to.Div(places, 3)
        for part in (third, third, to.Sub(places, to.Mul(third, 2))):
            x = to.Mul(x, to.Pow(np.asarray(2, x.dtype), to.cast(part, x.dtype)))
        return x

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return apply(LDEXP, dz, node.inputs[1]), NO_GRAD

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3)), np.array([-2, 0, 3])]
        yield cls(), [rng.normal(size=(3,)).astype("float32"), np.array([[1], [-1]], "int32")]
        yield cls(), [rng.normal(size=()), np.array(4)]


LDEXP = Ldexp()


@documented(Ldexp)
def ldexp(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """z = x1 * 2**x2, right where 2**x2 alone would overflow.

    Parameters:
        x1: any shape; floating, ints and bools become floats.
        x2: integer; the shapes broadcast.

    Returns: z, of the broadcast shape and the dtype of x1.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for an x1 that is complex and an
        x2 that is not integer.

    Source: numpy.ldexp.

    >>> gg.evaluate(gg.ldexp([1.0, 3.0], [2, -1]))
    array([4. , 1.5])
    """
    x, n = as_tensor(x1), as_tensor(x2)
    if kind_of(n.dtype) in "bu":
        n = cast(n, "int64")
    return apply(LDEXP, *promoted(x, floating=True, small=True), n)


class Exponent(RealUnary):
    """The n (int32) of x = m * 2**n with |m| from 0.5 to 1; 0 of zero and what is not finite."""

    differentiable = False

    def result(self, dtype: DType) -> DType:
        return as_dtype("int32")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.where(xp.isfinite(x), xp.frexp(x)[1], 0).astype("int32")

    def to_onnx(self, to: Any, x: Any) -> Any:
        """The whole part of the logarithm, one more or less where that was rounded."""
        size = to.Abs(x)
        plain = to.Or(to.Equal(size, 0.0), to.Not(to.apply(IsFinite(), x)))
        size = to.Where(plain, 1.0, size)
        n = to.Add(to.cast(to.Floor(to.Div(to.Log(size), LN2)), "int32"), 1)
        mantissa = to.apply(Ldexp(), size, to.Neg(n))
        n = to.Add(n, to.cast(to.GreaterOrEqual(mantissa, 1.0), "int32"))
        n = to.Sub(n, to.cast(to.Less(mantissa, 0.5), "int32"))
        return to.Where(plain, 0, n)


def frexp(x: TensorLike, /) -> tuple[Tensor, Tensor]:
    """Mantissa and exponent: x = m * 2**n with |m| from 0.5 to 1.

    Parameters:
        x: any shape; floating, ints and bools become floats.

    Returns: (m, n), of the shape of x; n is int32. Of 0, NaN and infinities m is x and n 0.

    Raises: DTypeError if x is complex.

    Gradient: dx = dm * 2**-n.

    Source: numpy.frexp.

    >>> gg.evaluate(gg.frexp([6.0, -0.25]))
    (array([ 0.75, -0.5 ]), array([ 3, -1], dtype=int32))
    """
    (x,) = promoted(x, floating=True, small=True)
    n = apply(Exponent(), x)
    return apply(LDEXP, x, -n), n


def modf(x: TensorLike, /) -> tuple[Tensor, Tensor]:
    """Fractional and whole part, both with the sign of x.

    Parameters:
        x: any shape; floating, ints and bools become floats.

    Returns: (fractional, whole), of the shape of x; of an infinity (0, x).

    Raises: DTypeError if x is complex.

    Gradient: dx = that of the fractional part.

    Source: numpy.modf.

    >>> gg.evaluate(gg.modf([2.5, -1.25]))
    (array([ 0.5 , -0.25]), array([ 2., -1.]))
    """
    (x,) = promoted(x, floating=True, small=True)
    whole = trunc(x)
    return copysign(where(isinf(x), like(0, x), x - whole), x), whole


class Spacing(RealUnary):
    """y = the distance to the next number away from 0, with the sign of x. Gradient: zero."""

    traits = Traits(stepwise=True, of_format=True)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.spacing(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        numbers = limits_of(x.dtype)
        least = numbers.minexp - numbers.nmant
        n = to.Max(to.Sub(to.apply(Exponent(), x), numbers.nmant + 1), least)
        n = to.Where(to.Equal(x, 0.0), least, n)
        one = to.Add(to.Mul(x, 0.0), 1.0)  # NaN of what is not finite
        step = to.apply(Ldexp(), one, n)
        return to.Where(to.Equal(x, 0.0), step, to.apply(COPYSIGN, step, x))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (ZERO,)


@documented(Spacing)
def spacing(x: TensorLike, /) -> Tensor:
    """The distance to the next number away from 0, with the sign of x.

    Parameters:
        x: any shape; floating, ints and bools become floats.

    Source: numpy.spacing.

    >>> bool(gg.evaluate(gg.spacing(1.0)) == np.finfo(float).eps)
    True
    """
    return float_ufunc(Spacing(), x)


# --- integers ----------------------------------------------------------------------------------


def _divisor(xp: Any, x: Any, y: Any) -> Any:
    """The greatest common divisor, by Euclid."""

    def step(state: Any) -> Any:
        a, b = state
        return xp.where(b == 0, a, b), xp.where(b == 0, b, a % xp.where(b == 0, 1, b))

    start = xp.abs(x) + 0 * y, xp.abs(y) + 0 * x
    return xp.while_loop(lambda state: xp.any(state[1] != 0), step, start)[0]


class Gcd(Kinds, Binary):
    """The greatest common divisor. Gradient: none, the result is integer."""

    kinds = "iu"
    differentiable = False
    traits = Traits(commutes=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.gcd(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        return to.traced(_divisor, x, y)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [np.array([[12, -18, 0], [7, 5, 1]]), np.array([8, 27, 0])]
        yield cls(), [np.array([4, 6], "uint8"), np.array(6, "uint8")]


class Lcm(Gcd):
    """The lowest common multiple. Gradient: none, the result is integer."""

    traits = Traits(commutes=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.lcm(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        def multiple(xp: Any, x: Any, y: Any) -> Any:
            divisor = _divisor(xp, x, y)
            return xp.abs(x // xp.where(divisor == 0, 1, divisor) * y)

        return to.traced(multiple, x, y)


def _counted_bits(xp: Any, x: Any) -> Any:
    """How many bits of each word of 64 are 1: in pairs, fours, bytes, and these by a product."""
    ones = [np.uint64(n) for n in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F)]
    x = x - ((x >> np.uint64(1)) & ones[0])
    x = (x & ones[1]) + ((x >> np.uint64(2)) & ones[1])
    x = (x + (x >> np.uint64(4))) & ones[2]
    return (x * np.uint64(0x0101010101010101)) >> np.uint64(56)


class BitwiseCount(Kinds, Unary):
    """How many bits of |x| are 1 (uint8). Gradient: none, the result is integer."""

    kinds = "iu"
    differentiable = False

    def result(self, dtype: DType) -> DType:
        return as_dtype("uint8")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.bitwise_count(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """Bits added up in pairs, fours and bytes, and the bytes by a product."""
        size = to.cast(to.Abs(x) if x.dtype.kind == "i" else x, "uint64")
        return to.cast(to.traced(_counted_bits, size), "uint8")

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [np.array([[0, 1, 7], [-8, 255, -1]])]
        yield cls(), [np.array(200, "uint8")]


@documented(Gcd)
def gcd(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """The greatest common divisor of |x1| and |x2|, element by element.

    Parameters:
        x1, x2: integers; the shapes broadcast.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for non-integer input.

    Source: numpy.gcd.

    >>> gg.evaluate(gg.gcd([12, 18], 8))
    array([4, 2])
    """
    return binary(Gcd(), x1, x2)


@documented(Lcm)
def lcm(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """The lowest common multiple of |x1| and |x2|, element by element.

    Parameters:
        x1, x2: integers; the shapes broadcast.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for non-integer input.

    Source: numpy.lcm.

    >>> gg.evaluate(gg.lcm([4, 3], 6))
    array([12,  6])
    """
    return binary(Lcm(), x1, x2)


@documented(BitwiseCount)
def bitwise_count(x: TensorLike, /) -> Tensor:
    """How many bits of |x| are 1, element by element.

    Parameters:
        x: integer or bool.

    Returns: shape of x, uint8.

    Raises: DTypeError for floating and complex numbers.

    Source: numpy.bitwise_count.

    >>> gg.evaluate(gg.bitwise_count([0, 7, -8]))
    array([0, 3, 1], dtype=uint8)
    """
    x = as_tensor(x)
    return apply(BitwiseCount(), cast(x, "uint8") if kind_of(x.dtype) == "b" else x)
