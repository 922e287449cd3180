"""Queries on tensors: shape, and whether elements are infinite, real or complex."""

from __future__ import annotations

from ...ir.types import Shape, size_of
from ..base import (
    DTypeError,
    Tensor,
    TensorLike,
    apply,
    as_dtype,
    as_tensor,
    kind_of,
    np,
    type_of,
)
from ..documented import documented
from ..elementwise.complex_parts import imag
from ..elementwise.logic import equal, not_equal
from ..reduce.reductions import SizeOf
from ..shape.reshaping import normal_axis

__all__ = [
    "iscomplex",
    "iscomplexobj",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "ndim",
    "shape",
    "size",
]


def shape(x: TensorLike) -> Shape:
    """The lengths of the axes of x.

    Parameters: x: any shape and dtype.

    Returns: a tuple: of ints, lengths (`gg.Length`), and None where nothing is known.

    Raises: DTypeError for non-numeric input.

    Gradient: none.

    Source: numpy.shape.

    >>> gg.shape(gg.placeholder(("N", 3)))
    (N, 3)
    """
    return type_of(x).shape


def ndim(x: TensorLike) -> int:
    """The number of axes of x.

    Parameters: x: any shape and dtype.

    Returns: an int.

    Raises: DTypeError for non-numeric input.

    Gradient: none.

    Source: numpy.ndim.

    >>> gg.ndim([[1, 2, 3]])
    2
    """
    return len(type_of(x).shape)


@documented(SizeOf)
def size(x: TensorLike, axis: int | None = None) -> int | Tensor:
    """The number of elements of x, or its length along an axis.

    Parameters:
        x: any shape and dtype.
        axis: an axis; None: all elements.

    Returns: an int, or a 0-d int64 tensor where that is known only at run time.

    Raises: ShapeError if x has no such axis.

    Source: numpy.size.

    >>> gg.size([[1, 2, 3]]), gg.size([[1, 2, 3]], 1)
    (3, 3)
    >>> gg.size(gg.placeholder(("N", 3)), 1), gg.size(gg.placeholder(("N", 3))).type
    (3, int64[])
    """
    shape = type_of(x).shape
    axes = tuple(range(len(shape))) if axis is None else (normal_axis(axis, len(shape)),)
    known = size_of([shape[a] for a in axes])
    return apply(SizeOf(axes, as_dtype("int64")), as_tensor(x)) if known is None else known


def iscomplexobj(x: TensorLike) -> bool:
    """Whether the dtype of x is complex.

    Parameters: x: any shape and dtype.

    Returns: a bool.

    Raises: DTypeError for non-numeric input.

    Gradient: none.

    Source: numpy.iscomplexobj.

    >>> gg.iscomplexobj([1.0, 2.0])
    False
    """
    return kind_of(type_of(x).dtype) == "c"


def isrealobj(x: TensorLike) -> bool:
    """Whether the dtype of x is not complex.

    Parameters: x: any shape and dtype.

    Returns: a bool.

    Raises: DTypeError for non-numeric input.

    Gradient: none.

    Source: numpy.isrealobj.

    >>> gg.isrealobj([1.0, 2.0])
    True
    """
    return not iscomplexobj(x)


def iscomplex(x: TensorLike) -> Tensor:
    """Where the imaginary part of x is not zero.

    Parameters: x: any shape and dtype.

    Returns: bool, of the shape of x.

    Raises: DTypeError for non-numeric input.

    Gradient: none.

    Source: numpy.iscomplex.

    >>> gg.evaluate(gg.iscomplex([1.0, 1j]))
    array([False,  True])
    """
    return not_equal(imag(x), 0)


def isreal(x: TensorLike) -> Tensor:
    """Where the imaginary part of x is zero.

    Parameters: x: any shape and dtype.

    Returns: bool, of the shape of x.

    Raises: DTypeError for non-numeric input.

    Gradient: none.

    Source: numpy.isreal.

    >>> gg.evaluate(gg.isreal([1.0, 1j]))
    array([ True, False])
    """
    return equal(imag(x), 0)


def isposinf(x: TensorLike) -> Tensor:
    """Where x is positive infinity.

    Parameters: x: any shape; real.

    Returns: bool, of the shape of x.

    Raises: DTypeError for complex numbers.

    Gradient: none.

    Source: numpy.isposinf.

    >>> gg.evaluate(gg.isposinf([np.inf, -np.inf]))
    array([ True, False])
    """
    return equal(_real("isposinf", x), np.inf)


def isneginf(x: TensorLike) -> Tensor:
    """Where x is negative infinity.

    Parameters: x: any shape; real.

    Returns: bool, of the shape of x.

    Raises: DTypeError for complex numbers.

    Gradient: none.

    Source: numpy.isneginf.

    >>> gg.evaluate(gg.isneginf([np.inf, -np.inf]))
    array([False,  True])
    """
    return equal(_real("isneginf", x), -np.inf)


def _real(what: str, x: TensorLike) -> Tensor:
    x = as_tensor(x)
    if kind_of(x.dtype) == "c":
        raise DTypeError(f"{what} takes real numbers, got {x.type!r}, built at {x.where}")
    return x
