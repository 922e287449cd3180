"""Element-wise maximum, minimum and clipping."""

from __future__ import annotations

import math

from ...base.flags import truth
from ...base.kinds import limits_of
from ..base import (
    NO_GRAD,
    Any,
    Binary,
    Comparison,
    Derivative,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Samples,
    Tensor,
    TensorLike,
    Traits,
    apply,
    as_tensor,
    build,
    cast,
    is_floating,
    kind_of,
    like,
    np,
    promoted,
    wants,
)
from ..documented import documented
from ..families import Kinds
from .complex_parts import imag, real
from .logic import (
    EQUAL,
    GREATER,
    LESS,
    WHERE,
    greater,
    greater_equal,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    logical_and,
    logical_or,
    where,
)

__all__ = ["clip", "fmax", "fmin", "maximum", "minimum", "nan_to_num"]


class Maximum(Kinds, Binary):
    """z = the greater of x and y, NaN if one is.

    Gradient: dz to the greater, half of it to each at a tie; of complex numbers all to x.
    """

    kinds = "biuf"
    onnx = Onnx("Max")
    traits = Traits(guards=True)
    derivative = Derivative(relevance="moved")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.maximum(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        return to("Or" if kind_of(x.dtype) == "b" else "Max", x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return _shared(dz, GREATER, *node.inputs)


class Minimum(Kinds, Binary):
    """z = the less of x and y, NaN if one is.

    Gradient: dz to the less, half of it to each at a tie; of complex numbers all to x.
    """

    kinds = "biuf"
    onnx = Onnx("Min")
    traits = Traits(guards=True)
    derivative = Derivative(relevance="moved")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.minimum(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        return to("And" if kind_of(x.dtype) == "b" else "Min", x, y)

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

    Gradient: dx = dy inside the closed bounds, else 0; dy goes to the bound beyond which x
        lies.
    """

    kinds = "iuf"
    traits = Traits(guards=True)
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any, low: Any, high: Any) -> Any:
        return xp.minimum(xp.maximum(x, low), high)

    def to_onnx(self, to: Any, x: Any, low: Any, high: Any) -> Any:
        """The operator takes one number for each bound."""
        scalars = low.shape == high.shape == ()
        return to.Clip(x, low, high, shape=x.shape) if scalars and is_floating(x.dtype) else None

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


MAXIMUM = Maximum()
MINIMUM = Minimum()
CLIP = Clip()


@documented(Maximum)
def maximum(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The greater of x and y, element by element; NaN where one is NaN.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does; complex numbers are compared
            by the real part, ties by the imaginary one.

    Source: numpy.maximum.

    >>> gg.evaluate(gg.maximum([1.0, np.nan, 3.0], 2.0))
    array([ 2., nan,  3.])
    """
    return _extremum(MAXIMUM, greater_equal, x, y)


@documented(Minimum)
def minimum(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The less of x and y, element by element; NaN where one is NaN.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does; complex numbers are compared
            by the real part, ties by the imaginary one.

    Source: numpy.minimum.

    >>> gg.evaluate(gg.minimum([1.0, np.nan, 3.0], 2.0))
    array([ 1., nan,  2.])
    """
    return _extremum(MINIMUM, less_equal, x, y)


def _extremum(op: Binary, ahead: Any, x: TensorLike, y: TensorLike) -> Tensor:
    """op of the operands; of complex numbers x where it is NaN or ahead(x, y), else y."""
    x, y = promoted(x, y)
    if kind_of(x.dtype) != "c":
        return build(op, (x, y)).outputs[0]
    return where(logical_or(isnan(x), ahead(x, y)), x, y)


def fmax(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The greater of x and y, element by element; the other where one is NaN.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does; complex numbers are compared
            by the real part, ties by the imaginary one.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for non-numeric
        input.

    Gradient: dz to the one that is taken, half of it to each at a tie; of complex numbers all to x.

    Source: numpy.fmax.

    >>> gg.evaluate(gg.fmax([1.0, np.nan, 3.0], 2.0))
    array([2., 2., 3.])
    """
    x, y = promoted(x, y)
    return where(isnan(x), y, where(isnan(y), x, maximum(x, y)))


def fmin(x: TensorLike, y: TensorLike, /) -> Tensor:
    """The less of x and y, element by element; the other where one is NaN.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does; complex numbers are compared
            by the real part, ties by the imaginary one.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for non-numeric
        input.

    Gradient: dz to the one that is taken, half of it to each at a tie; of complex numbers all to x.

    Source: numpy.fmin.

    >>> gg.evaluate(gg.fmin([1.0, np.nan, 3.0], 2.0))
    array([1., 2., 2.])
    """
    x, y = promoted(x, y)
    return where(isnan(x), y, where(isnan(y), x, minimum(x, y)))


@documented(Clip)
def clip(x: TensorLike, /, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """x held between two bounds, element by element; max where min > max.

    Parameters:
        x: integer, floating, or complex, compared by the real part, ties by the imaginary one.
        min, max: the bounds, which broadcast with x; None for no bound there.

    Returns: the broadcast shape, the promoted dtype; x itself without bounds.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for bools.

    Source: the array API standard, clip.

    >>> gg.evaluate(gg.clip([-2.0, 0.5, 2.0], -1.0, 1.0))
    array([-1. ,  0.5,  1. ])
    """
    if min is None and max is None:
        return as_tensor(x)
    x, *bounds = promoted(*[t for t in (x, min, max) if t is not None])
    if kind_of(x.dtype) == "c":
        x = x if min is None else maximum(x, bounds[0])
        return x if max is None else minimum(x, bounds[-1])
    if kind_of(x.dtype) not in "iuf":
        raise DTypeError(f"clip takes numbers, got {x.type!r}; cast it first")
    low = _lowest(x) if min is None else bounds[0]
    high = _highest(x) if max is None else bounds[-1]
    return apply(CLIP, x, low, high)


def _lowest(x: Tensor) -> Tensor:
    return like(-math.inf if is_floating(x.dtype) else int(np.iinfo(x.dtype).min), x)


def _highest(x: Tensor) -> Tensor:
    return like(math.inf if is_floating(x.dtype) else int(np.iinfo(x.dtype).max), x)


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

    Raises: DTypeError for non-numeric input; ValueError for replacements in a complex x
        that are not finite.

    Gradient: dx = dy where the number stayed, else 0.

    Source: numpy.nan_to_num.

    >>> gg.evaluate(gg.nan_to_num([1.0, np.nan, -np.inf], neginf=-9.0))
    array([ 1.,  0., -9.])
    """
    truth("copy", copy)
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
            f"nan_to_num of complex numbers takes finite replacements, got nan={nan}, "
            f"posinf={posinf}, neginf={neginf}"
        )
    parts = [nan_to_num(part(x), True, nan, posinf, neginf) for part in (real, imag)]
    first, second = (cast(part, x.dtype) for part in parts)
    return where(isfinite(x), x, first + second * 1j)
