"""The angles of complex numbers."""

from __future__ import annotations

import math

from .arithmetic import imag, real
from .base import Tensor, TensorLike, promoted
from .trigonometry import arctan2

__all__ = ["angle"]


def angle(z: TensorLike, deg: bool = False) -> Tensor:
    """The angle of z in the complex plane, counted from the positive real axis.

    Parameters:
        z: any shape and dtype.
        deg: whether in degrees, not in radians.

    Returns: same shape as z; real, from -pi to pi.

    Raises: DTypeError for what is no array of numbers.

    Gradient: of z = x + i y, that of arctan2(y, x).

    Source: numpy.angle.

    >>> gg.evaluate(gg.angle([1.0, 1j], deg=True))
    array([ 0., 90.])
    """
    (z,) = promoted(z, floating=True, small=True)
    found = arctan2(imag(z), real(z))
    return found * (180 / math.pi) if deg else found
