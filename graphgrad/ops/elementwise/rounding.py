"""Element-wise rounding, and the adjacent floating-point number."""

from __future__ import annotations

import math

from ...base.kinds import limits_of
from ...ir.op import OP_TYPES
from ..base import (
    ZERO,
    Any,
    Derivative,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Tensor,
    TensorLike,
    Traits,
    apply,
    as_tensor,
    cast,
    is_floating,
    kind_of,
)
from ..documented import documented
from ..families import RealBinary, RealUnary, float_ufunc
from .arithmetic import divide, multiply
from .complex_parts import imag, real
from .logic import isfinite, where

__all__ = ["ceil", "floor", "nextafter", "rint", "round", "trunc"]


class Rounding(RealUnary, abstract=True):
    """Family: a floating integer near x.

    Parameters: x: any shape; floating; integers and bools are returned as they are.

    Gradient: dx = 0, a step.
    """

    traits = Traits(idempotent=True, rounds=True)
    derivative = Derivative(relevance="passed")

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (ZERO,)


class Round(Rounding):
    """y = the integer nearest to x, the even one where two are."""

    onnx = Onnx("Round")
    traits = Traits(stepwise=True)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.rint(x)


class Floor(Rounding):
    """y = the greatest integer <= x."""

    onnx = Onnx("Floor")
    traits = Traits(stepwise=True)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.floor(x)


class Ceil(Rounding):
    """y = the least integer >= x."""

    onnx = Onnx("Ceil")
    traits = Traits(stepwise=True)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.ceil(x)


class Trunc(Rounding):
    """y = x without its fraction."""

    traits = Traits(stepwise=True)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.trunc(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Where(to.Less(x, 0.0), to.Ceil(x), to.Floor(x))


class NextAfter(RealBinary):
    """z = the number after x towards y. Gradient: dx = dz, dy = 0."""

    traits = Traits(of_format=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.nextafter(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        """x and its spacing; towards 0 half of that, where it is no less than what is there."""
        limits, size = limits_of(x.dtype), to.Abs(x)
        outwards = to.Equal(to.Greater(y, x), to.Greater(x, 0.0))
        spacing = to.apply(OP_TYPES["Spacing"](), size)
        half = to.Sub(size, to.Mul(spacing, 0.5))
        inwards = to.Where(to.Less(half, size), half, to.Sub(size, spacing))
        neighbour = to.Where(outwards, to.Add(size, spacing), inwards)
        neighbour = to.apply(OP_TYPES["CopySign"](), neighbour, x)
        least = to.apply(OP_TYPES["CopySign"](), float(limits.smallest_subnormal), y)
        neighbour = to.Where(to.Equal(x, 0.0), least, neighbour)
        most = to.apply(OP_TYPES["CopySign"](), float(limits.max), x)
        neighbour = to.Where(to.IsInf(x), most, neighbour)
        lost = to.Or(to.IsNaN(x), to.IsNaN(y))
        return to.Where(lost, to.Add(x, y), to.Where(to.Equal(x, y), y, neighbour))

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return dz, ZERO


ROUND = Round()
FLOOR = Floor()
CEIL = Ceil()
TRUNC = Trunc()


@documented(NextAfter)
def nextafter(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The floating number after x towards y, element by element.

    Source: numpy.nextafter.

    >>> gg.evaluate(gg.nextafter(1.0, 2.0) - 1.0)
    array(2.22044605e-16)
    """
    return float_ufunc(NextAfter(), x, y)


@documented(Round)
def round(x: TensorLike, /, decimals: int = 0) -> Tensor:
    """x rounded to this many decimals, halves to even, element by element.

    Parameters:
        x: any shape and dtype; integers and bools are returned as they are; complex part by part,
            but as it is where the imaginary part is infinite or NaN.
        decimals: an int; below 0, tens, hundreds and so on.

    Raises: DTypeError for integers and bools if decimals < 0.

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


@documented(Round)
def rint(x: TensorLike, /) -> Tensor:
    """The integer nearest to x, the even one where two are, element by element; always floating.

    Parameters: x: any shape; floating or complex, of which it takes both parts; ints and bools
        become floats.

    Raises: DTypeError for non-numeric input.

    >>> gg.evaluate(gg.rint([0.5, 1.5, -2.6]))
    array([ 0.,  2., -3.])
    """
    x = as_tensor(x)
    return round(x) if x.type.complex else float_ufunc(ROUND, x)


@documented(Floor)
def floor(x: TensorLike, /) -> Tensor:
    """The greatest integer <= x, element by element.

    >>> gg.evaluate(gg.floor([1.5, -1.5]))
    array([ 1., -2.])
    """
    return _stepped(FLOOR, x)


@documented(Ceil)
def ceil(x: TensorLike, /) -> Tensor:
    """The least integer >= x, element by element.

    >>> gg.evaluate(gg.ceil([1.5, -2.5]))
    array([ 2., -2.])
    """
    return _stepped(CEIL, x)


@documented(Trunc)
def trunc(x: TensorLike, /) -> Tensor:
    """x without its fraction, element by element.

    >>> gg.evaluate(gg.trunc([1.5, -1.5]))
    array([ 1., -1.])
    """
    return _stepped(TRUNC, x)


def _stepped(op: Rounding, x: TensorLike) -> Tensor:
    x = as_tensor(x)
    return x if kind_of(x.dtype) in "biu" else apply(op, x)
