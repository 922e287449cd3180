"""Window functions that taper towards both ends."""

from __future__ import annotations

from collections.abc import Callable

from ...base.length import Length
from ..base import Any, Tensor, TensorLike, cast, constant, count, np, promoted
from ..create.creation import arange
from ..elementwise.exponential import sqrt
from ..elementwise.magnitudes import abs
from ..elementwise.trigonometry import cos
from ..special.bessel import i0

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def _window(made: Any, M: Any, of: Callable[[Tensor], Tensor]) -> Tensor:
    """A window by NumPy; where M is open, that function of places from -1 to 1."""
    number = count("M", M)
    return of(_places(number)) if isinstance(number, Length) else constant(made(number))


def _places(M: Any) -> Tensor:
    """So many places from -1 to 1; of one, 0."""
    places: Tensor = arange(1 - M, M, 2) / Length.max(M - 1, 1)
    return places


def bartlett(M: Any) -> Tensor:
    """The triangle: w[n] = 1 - abs(2 n / (M - 1) - 1).

    Parameters:
        M: how many points, an int or a length; less than 1: none.

    Returns: float64, (M,).

    Raises: TypeError for an M that is neither.

    Source: numpy.bartlett.

    >>> gg.evaluate(gg.bartlett(5))
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _window(np.bartlett, M, lambda t: 1.0 - abs(t))


def blackman(M: Any) -> Tensor:
    """w[n] = 0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1)).

    Parameters:
        M: how many points, an int or a length; less than 1: none.

    Returns: float64, (M,).

    Raises: TypeError for an M that is neither.

    Source: numpy.blackman.

    >>> gg.evaluate(gg.blackman(5)).round(2)
    array([-0.  ,  0.34,  1.  ,  0.34, -0.  ])
    """
    return _window(np.blackman, M, _blackman)


def _blackman(t: Tensor) -> Tensor:
    return 0.42 + 0.5 * cos(np.pi * t) + 0.08 * cos(2.0 * np.pi * t)


def hamming(M: Any) -> Tensor:
    """w[n] = 0.54 - 0.46 cos(2 pi n / (M - 1)).

    Parameters:
        M: how many points, an int or a length; less than 1: none.

    Returns: float64, (M,).

    Raises: TypeError for an M that is neither.

    Source: numpy.hamming.

    >>> gg.evaluate(gg.hamming(5)).round(2)
    array([0.08, 0.54, 1.  , 0.54, 0.08])
    """
    return _window(np.hamming, M, lambda t: 0.54 + 0.46 * cos(np.pi * t))


def hanning(M: Any) -> Tensor:
    """w[n] = 0.5 - 0.5 cos(2 pi n / (M - 1)).

    Parameters:
        M: how many points, an int or a length; less than 1: none.

    Returns: float64, (M,).

    Raises: TypeError for an M that is neither.

    Source: numpy.hanning.

    >>> gg.evaluate(gg.hanning(5)).round(2)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _window(np.hanning, M, lambda t: 0.5 + 0.5 * cos(np.pi * t))


def kaiser(M: Any, beta: TensorLike) -> Tensor:
    """w[n] = i0(beta sqrt(1 - (2 n / (M - 1) - 1)**2)) / i0(beta).

    Parameters:
        M: how many points, an int or a length; less than 1: none.
        beta: how fast it falls off; any shape, floating, ints and bools become float64.

    Returns: the shape of beta and one more axis (M,), its dtype.

    Raises: TypeError for an M that is neither; for a beta that is not a number GraphGradError
        without SciPy (the extra `scipy`).

    Gradient: that of i0.

    Source: numpy.kaiser.

    >>> gg.evaluate(gg.kaiser(5, 14.0)).round(4)
    array([0.    , 0.1649, 1.    , 0.1649, 0.    ])
    """
    number = count("M", M)
    fixed = not isinstance(number, Length)
    if isinstance(beta, int | float) and fixed:
        return constant(np.kaiser(number, beta))
    (beta,) = promoted(beta, floating=True)
    if fixed:
        places = np.linspace(-1.0, 1.0, max(number, 0)) if number != 1 else np.zeros(1)
        under = constant(np.sqrt((1.0 - places) * (1.0 + places)), beta.dtype)
    else:
        t = _places(number)
        under = cast(sqrt((1.0 - t) * (1.0 + t)), beta.dtype)
    beta = beta[..., None]
    return i0(beta * under) / i0(beta)
