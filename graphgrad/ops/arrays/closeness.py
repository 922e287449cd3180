"""Equality and closeness of whole tensors, and set membership."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...base.flags import truth
from ...ir.types import broadcast, compatible
from ..base import Tensor, TensorLike, as_dtype, as_tensor, constant, promoted, type_of
from ..elementwise.logic import equal, isfinite, isnan, less_equal, logical_and, logical_or
from ..elementwise.magnitudes import abs
from ..reduce.reductions import all, size_over

__all__ = ["allclose", "array_equal", "array_equiv", "isclose"]


def allclose(
    a: TensorLike,
    b: TensorLike,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> Tensor:
    """Whether |a - b| <= atol + rtol * |b| everywhere.

    Parameters:
        a, b: shapes that broadcast; any dtypes.
        rtol, atol: how much a may differ, relative to b and as such.
        equal_nan: whether NaN is close to NaN.

    Returns: bool, 0-d.

    Raises: ShapeError if the shapes do not broadcast.

    Gradient: none, the result is bool.

    Source: numpy.allclose.

    >>> gg.evaluate(gg.allclose([1.0, 2.0], [1.0, 2.0 + 1e-9]))
    array(True)
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: TensorLike, a2: TensorLike, equal_nan: bool = False) -> Tensor:
    """Whether two tensors have the same shape and elements.

    Parameters:
        a1, a2: any shapes and dtypes; a run raises an error where lengths that were unknown do not
            even broadcast.
        equal_nan: whether NaN equals NaN.

    Returns: bool, 0-d.

    Raises: DTypeError for non-numeric input.

    Gradient: none, the result is bool.

    Source: numpy.array_equal.

    >>> gg.evaluate([gg.array_equal([1, 2], [1, 2]), gg.array_equal([1, 1], 1)])
    [array(True), array(False)]
    """
    truth("equal_nan", equal_nan)
    if not compatible(type_of(a1).shape, type_of(a2).shape):
        return constant(False)
    x, y = as_tensor(a1), as_tensor(a2)
    same = equal(x, y)
    whole = all(logical_or(same, logical_and(isnan(x), isnan(y))) if equal_nan else same)
    for axis, (m, n) in enumerate(zip(x.shape, y.shape, strict=True)):
        if m is None or m != n:  # known when run
            lengths = [size_over(t, (axis,), as_dtype("int64")) for t in (x, y)]
            whole = logical_and(whole, equal(*lengths))
    return whole


def array_equiv(a1: TensorLike, a2: TensorLike) -> Tensor:
    """Whether two tensors broadcast, and are equal then.

    Parameters:
        a1, a2: any shapes and dtypes; a run raises an error where lengths that were unknown do not
            broadcast.

    Returns: bool, 0-d.

    Raises: DTypeError for non-numeric input.

    Gradient: none, the result is bool.

    Source: numpy.array_equiv.

    >>> gg.evaluate(gg.array_equiv([1, 1], 1))
    array(True)
    """
    x, y = as_tensor(a1), as_tensor(a2)
    try:
        broadcast([x.shape, y.shape])
    except ShapeError:
        return constant(False)
    return all(equal(x, y))


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

    Raises: ShapeError if the shapes do not broadcast; DTypeError for non-numeric input.

    Gradient: none, the result is bool.

    Source: numpy.isclose.

    >>> gg.evaluate(gg.isclose([1.0, 1.1, np.inf], [1.0 + 1e-9, 1.0, np.inf]))
    array([ True, False,  True])
    """
    truth("equal_nan", equal_nan)
    x, y = promoted(x, y, floating=True)
    near = less_equal(abs(x - y), atol + rtol * abs(y))
    close = logical_or(equal(x, y), logical_and(near, isfinite(y)))
    return logical_or(close, logical_and(isnan(x), isnan(y))) if equal_nan else close
