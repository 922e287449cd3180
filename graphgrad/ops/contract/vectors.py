"""The cross product."""

from __future__ import annotations

from ...base.errors import ShapeError
from ..base import Tensor, TensorLike, promoted
from ..elementwise.arithmetic import multiply, subtract
from ..shape.padding import roll
from ..shape.reshaping import moveaxis, normal_axis

__all__ = ["cross"]


def cross(
    x1: TensorLike,
    x2: TensorLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Tensor:
    """The vector product of vectors with three elements.

    Parameters:
        x1, x2: of length 3 along their axis; dtypes are promoted, the other axes broadcast.
        axisa, axisb, axisc: the axis of the vectors of x1, of x2, and of the result.
        axis: the axis of all three, in place of those.

    Returns: a tensor of the broadcast shape, with the vectors along their axis.

    Raises: ShapeError where a vector is not known to have three elements, or shapes do not
    broadcast.

    Gradient: dx1 = cross(x2, dy), dx2 = cross(dy, x1).

    Source: numpy.cross; the array API standard, linalg.cross.

    >>> gg.evaluate(gg.cross([1, 0, 0], [0, 1, 0]))
    array([0, 0, 1])
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = promoted(x1, x2)
    for x, place in ((x1, axisa), (x2, axisb)):
        if x.shape[normal_axis(place, x.ndim)] != 3:
            raise ShapeError(
                f"cross takes vectors of three elements, got {x.type!r} along axis {place}, built "
                f"at {x.where}"
            )
    a, b = moveaxis(x1, axisa, -1), moveaxis(x2, axisb, -1)
    z = subtract(multiply(a, roll(b, -1, -1)), multiply(roll(a, -1, -1), b))
    return moveaxis(roll(z, -1, -1), -1, axisc)
