"""Rotated and flipped axes, Kronecker products, and diagonal matrices."""

from __future__ import annotations

from operator import mul

from ...base.errors import ShapeError
from ...ir.types import computed
from ..base import Any, Tensor, TensorLike, as_tensor, promoted, whole
from ..create.creation import diag
from ..elementwise.arithmetic import multiply
from ..shape.padding import flip
from ..shape.reshaping import (
    distinct_axes,
    expand_dims,
    flatten,
    moveaxis,
    normal_axis,
    reshape,
    swapaxes,
)

__all__ = ["diagflat", "fliplr", "flipud", "kron", "rollaxis", "rot90"]


def fliplr(x: TensorLike) -> Tensor:
    """x with the elements along axis 1 in reverse order.

    Parameters: x: at least two axes, any dtype.

    Returns: same shape and dtype as x.

    Raises: ShapeError if x has fewer axes.

    Gradient: dx = fliplr(dy).

    Source: numpy.fliplr.

    >>> gg.evaluate(gg.fliplr([[1, 2], [3, 4]]))
    array([[2, 1],
           [4, 3]])
    """
    return flip(x, 1)


def flipud(x: TensorLike) -> Tensor:
    """x with the elements along axis 0 in reverse order.

    Parameters: x: at least one axis, any dtype.

    Returns: same shape and dtype as x.

    Raises: ShapeError if x has no axis.

    Gradient: dx = flipud(dy).

    Source: numpy.flipud.

    >>> gg.evaluate(gg.flipud([[1, 2], [3, 4]]))
    array([[3, 4],
           [1, 2]])
    """
    return flip(x, 0)


def rot90(x: TensorLike, k: int = 1, axes: Any = (0, 1)) -> Tensor:
    """x turned by k right angles in the plane of two axes, from the first towards the second.

    Parameters:
        x: at least two axes, any dtype.
        k: how often it is turned.
        axes: the two axes.

    Returns: x so, of its dtype.

    Raises: ShapeError unless axes are two different ones of x; TypeError if k is not an int.

    Gradient: dx = rot90(dy, -k, axes).

    Source: numpy.rot90.

    >>> gg.evaluate(gg.rot90([[1, 2], [3, 4]]))
    array([[2, 4],
           [1, 3]])
    """
    x = as_tensor(x)
    plane = distinct_axes(axes, x.ndim)
    if len(plane) != 2:
        raise ShapeError(f"rot90 of {x.type!r} turns a plane of two axes, got {axes!r}")
    turns = whole("k", k) % 4
    if turns == 0:
        return x
    if turns == 2:
        return flip(x, plane)
    if turns == 1:
        return swapaxes(flip(x, plane[1]), *plane)
    return flip(swapaxes(x, *plane), plane[1])


def rollaxis(x: TensorLike, axis: int, start: int = 0) -> Tensor:
    """x with an axis moved to where it stands before the axis `start`; see moveaxis.

    Parameters:
        x: any shape and dtype.
        axis: the axis to move.
        start: the axis that it comes before; the number of axes puts it last.

    Returns: x so, of its dtype.

    Raises: ShapeError if x has no such axis or place.

    Gradient: dx = dy with the axis moved back.

    Source: numpy.rollaxis.

    >>> gg.rollaxis(gg.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_tensor(x)
    at, before = normal_axis(axis, x.ndim), whole("start", start)
    if not -x.ndim <= before <= x.ndim:
        raise ShapeError(f"rollaxis of {x.type!r} to a place before axis {start}")
    before += x.ndim if before < 0 else 0
    return moveaxis(x, at, before - (at < before))


def kron(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Kronecker's product: blocks of x2, each times an element of x1.

    Parameters: x1, x2: any shapes; what has fewer axes gets some of length 1 in front. Dtypes are
        promoted.

    Returns: a tensor whose lengths are the products of theirs.

    Raises: ShapeError where more than one length of the result depends on values.

    Gradient: dx1 = the sums of dy * x2 over blocks, dx2 = the sum of the blocks of dy, each times
    its element of x1.

    Source: numpy.kron.

    >>> gg.evaluate(gg.kron([1, 10], [1, 2]))
    array([ 1,  2, 10, 20])
    """
    x1, x2 = promoted(x1, x2)
    ndim = max(x1.ndim, x2.ndim)
    x1, x2 = (expand_dims(x, tuple(range(ndim - x.ndim))) for x in (x1, x2))
    pairs = list(zip(x1.shape, x2.shape))
    made = [computed(mul, *pair) for pair in pairs]
    if made.count(None) > 1:
        raise ShapeError(
            f"kron of {x1.type!r} and {x2.type!r}: at most one length can depend on values"
        )
    dims = [-1 if d is None else d for d in made]
    left = expand_dims(x1, tuple(range(1, 2 * ndim, 2)))
    right = expand_dims(x2, tuple(range(0, 2 * ndim, 2)))
    return reshape(multiply(left, right), tuple(dims))


def diagflat(x: TensorLike, k: int = 0) -> Tensor:
    """The elements of x on a diagonal of a matrix of zeros.

    Parameters:
        x: any shape and dtype; flattened first.
        k: how far the diagonal is above the main one (below for k < 0).

    Returns: a square matrix, of the dtype of x.

    Raises: TypeError if k is not an int.

    Gradient: dx = that diagonal of dy, in the shape of x.

    Source: numpy.diagflat.

    >>> gg.evaluate(gg.diagflat([[1, 2]], 1))
    array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]])
    """
    return diag(flatten(x), k)
