"""Element-wise floor division and remainders."""

from __future__ import annotations

from ..base import (
    NO_GRAD,
    ZERO,
    Any,
    Gradients,
    Node,
    Onnx,
    Samples,
    Tensor,
    TensorLike,
    Traits,
    apply,
    is_floating,
    np,
    wants,
)
from ..documented import documented
from ..families import NumberBinary, numbers
from .rounding import trunc

__all__ = ["divmod", "floor_divide", "fmod", "mod", "remainder"]


def _rest(to: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """What is left of x with its own sign, and where that is not the one of y, in ONNX."""
    rest = to.Mod(x, y, fmod=1)
    other = to.Xor(to.Less(rest, 0.0), to.Less(y, 0.0))
    return rest, to.And(to.Not(to.Equal(rest, 0.0)), other)


class FloorDivide(NumberBinary):
    """z = floor(x / y). Gradient: dx = dy = 0, z is a step."""

    domain = (0.5, 2.0)
    traits = Traits(stepwise=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.floor_divide(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        """Of integers 0 where y is 0; of floats (x - rest) / y, whole but for rounding."""
        if is_floating(x.dtype):
            rest, turned = _rest(to, x, y)
            quotient = to.Round(to.Div(to.Sub(x, rest), y))
            quotient = to.Sub(quotient, to.cast(turned, x.dtype))
            return to.Where(to.Equal(y, 0.0), to.Div(x, y), quotient)
        nothing = to.Equal(y, 0)
        safe = to.Where(nothing, 1, y)
        whole = to.Div(to.Sub(x, to.Mod(x, safe)), safe)
        return to.Where(nothing, 0, whole)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return ZERO, ZERO

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield from super().samples(rng)
        yield cls(), [np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])]


class Remainder(FloorDivide):
    """z = x - floor(x / y) * y, with the sign of y. Gradient: dx = dz, dy = -dz * floor(x / y)."""

    onnx = Onnx("Mod")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.remainder(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        if not is_floating(x.dtype):
            nothing = to.Equal(y, 0)
            return to.Where(nothing, 0, to.Mod(x, to.Where(nothing, 1, y)))
        rest, turned = _rest(to, x, y)
        return to.Where(turned, to.Add(rest, y), rest)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return dz, -(dz * apply(FLOOR_DIVIDE, x, y)) if wants(y) else NO_GRAD


class Fmod(FloorDivide):
    """z = x - trunc(x / y) * y, with the sign of x. Gradient: dx = dz, dy = -dz * trunc(x / y)."""

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.fmod(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        if is_floating(x.dtype):
            return to.Mod(x, y, fmod=1)
        nothing = to.Equal(y, 0)
        return to.Where(nothing, 0, to.Mod(x, to.Where(nothing, 1, y), fmod=1))

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        x, y = node.inputs
        return dz, -(dz * trunc(x / y)) if wants(y) else NO_GRAD


FLOOR_DIVIDE = FloorDivide()
REMAINDER = Remainder()
FMOD = Fmod()


@documented(FloorDivide)
def floor_divide(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = floor(x / y), element by element.

    Returns: z, of the broadcast shape and the promoted dtype: integers stay integers.

    Source: numpy.floor_divide.

    >>> gg.evaluate(gg.floor_divide([7, -7], 2))
    array([ 3, -4])
    """
    return apply(FLOOR_DIVIDE, *numbers(x, y))


@documented(Remainder)
def remainder(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x - floor(x / y) * y, with the sign of y as in Python, element by element.

    Source: numpy.remainder.

    >>> gg.evaluate(gg.remainder([7, -7], 3))
    array([1, 2])
    """
    return apply(REMAINDER, *numbers(x, y))


@documented(Fmod)
def fmod(x: TensorLike, y: TensorLike, /) -> Tensor:
    """z = x - trunc(x / y) * y, with the sign of x as in C, element by element.

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


mod = remainder
