"""Angles of complex numbers, and degrees and radians."""

from __future__ import annotations

import math

from ...base.flags import truth
from ..base import Tensor, TensorLike, as_tensor, cast, kind_of, promoted
from .arithmetic import multiply
from .complex_parts import imag, real
from .trigonometry import arctan2

__all__ = ["angle", "deg2rad", "degrees", "rad2deg", "radians"]


def angle(z: TensorLike, deg: bool = False) -> Tensor:
    """The angle of z in the complex plane, counted from the positive real axis.

    Parameters:
        z: any shape and dtype.
        deg: whether in degrees, not in radians.

    Returns: same shape as z; real, from -pi to pi.

    Raises: DTypeError for non-numeric input.

    Gradient: of z = x + i y, that of arctan2(y, x).

    Source: numpy.angle.

    >>> gg.evaluate(gg.angle([1.0, 1j], deg=True))
    array([ 0., 90.])
    """
    truth("deg", deg)
    z = as_tensor(z)
    (z,) = promoted(cast(z, "int64") if kind_of(z.dtype) == "b" else z, floating=True, small=True)
    theta = arctan2(imag(z), real(z))
    return theta * (180 / math.pi) if deg else theta


def deg2rad(x: TensorLike, /) -> Tensor:
    """Degrees as radians: y = x * pi / 180, element by element.

    Parameters: x: any shape; floating or complex, ints and bools become floats.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError for non-numeric input.

    Gradient: dx = dy * pi / 180.

    >>> gg.evaluate(gg.deg2rad([0, 180])).round(4)
    array([0.    , 3.1416])
    """
    return multiply(_floating(x), math.pi / 180.0)


def rad2deg(x: TensorLike, /) -> Tensor:
    """Radians as degrees: y = x * 180 / pi, element by element.

    Parameters: x: any shape; floating or complex, ints and bools become floats.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError for non-numeric input.

    Gradient: dx = dy * 180 / pi.

    >>> gg.evaluate(gg.rad2deg([0.0, np.pi])).round(4)
    array([  0., 180.])
    """
    return multiply(_floating(x), 180.0 / math.pi)


def _floating(x: TensorLike) -> Tensor:
    return promoted(x, floating=True, small=True)[0]


degrees = rad2deg
radians = deg2rad
