"""Element-wise powers, squares and reciprocals."""

from __future__ import annotations

from ..base import (
    NO_GRAD,
    ZERO,
    Any,
    Derivative,
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
    as_dtype,
    as_tensor,
    cast,
    is_floating,
    is_inexact,
    kind_of,
    like,
    np,
    promoted,
    result_dtype,
    wants,
)
from ..documented import documented
from ..families import FloatUnary, Kinds, known_number, numbers
from ..making import Making
from ..older_numpy import ROOTS
from .arithmetic import MULTIPLY, Arithmetic
from .exponential import LOG, SQRT
from .logic import equal, logical_and, where

__all__ = ["float_power", "pow", "power", "reciprocal", "square"]


class Power(Kinds, Arithmetic):
    """z = x**y; 0**0 is 1.

    Gradient: dx = dz * y * x**(y - 1), dy = dz * z * ln x [DLMF 4.7(ii)]; where x = 0, dx is 0
        for y = 0, and dy is 0 for every y >= 0; where x < 0, dy is NaN.
    """

    onnx = Onnx("Pow")
    domain = (0.5, 2.0)
    derivative = Derivative(singular=0)

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
        root = known == 0.5 and ROOTS and x.dtype.itemsize > 2  # as NumPy has it
        return make(SQRT, x) if root else None

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


class Square(Kinds, Unary):
    """y = x * x. Gradient: dx = dy * 2 x."""

    traits = Traits(value_range=(0.0, np.inf))
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.square(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Mul(x, x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy * (2.0 * x),)


class Reciprocal(FloatUnary):
    """y = 1 / x. Gradient: dx = -dy * y**2."""

    onnx = Onnx("Reciprocal")
    domain = (0.5, 2.0)
    derivative = Derivative(singular=0)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.reciprocal(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (-(dy * (y * y)),)


POWER = Power()
SQUARE = Square()
RECIPROCAL = Reciprocal()


@documented(Power)
def power(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x**y, element by element; 0**0 is 1.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does, bools count as int8.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for an integer to a constant
        negative power, which is not an integer (ValueError when run if the power is not a
        constant): cast x to a float, or use gg.float_power.

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


@documented(Power)
def float_power(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x**y computed in float64, or complex128, element by element; 0**0 is 1.

    Parameters:
        x, y: shapes that broadcast; any dtypes.

    Returns: z, of the broadcast shape; float64, complex128 if an operand is complex.

    Source: numpy.float_power.

    >>> gg.evaluate(gg.float_power([2, 4], -1))
    array([0.5 , 0.25])
    """
    x, y = promoted(x, y)
    dtype = result_dtype([x.dtype, as_dtype(np.float64)])
    return apply(POWER, cast(x, dtype), cast(y, dtype))


@documented(Square)
def square(x: TensorLike, /) -> Tensor:
    """y = x * x, element by element.

    Parameters: x: any shape and dtype; bools count as int8.

    >>> gg.evaluate(gg.square([2.0, -3.0]))
    array([4., 9.])
    """
    return apply(SQUARE, *numbers(x))


@documented(Reciprocal)
def reciprocal(x: TensorLike, /) -> Tensor:
    """y = 1 / x, element by element.

    Parameters: x: any shape; floating or complex.

    Raises: DTypeError for integers and bools, of which the reciprocal is not an integer.

    >>> gg.evaluate(gg.reciprocal([2.0, -4.0]))
    array([ 0.5 , -0.25])
    """
    x = as_tensor(x)
    if not is_inexact(x.dtype):
        raise DTypeError(
            f"the reciprocal of {x.type!r} would be rounded to 0 or 1; use gg.divide(1, x)"
        )
    return apply(RECIPROCAL, x)


pow = power
