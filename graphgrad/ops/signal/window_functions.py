"""Windows of signals: vectors that fall off towards both ends."""

from __future__ import annotations

from ..base import Any, Tensor, TensorLike, constant, np, promoted, whole
from ..special.bessel import i0

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


def _window(made: Any, M: int) -> Tensor:
    return constant(made(whole("M", M)))


def bartlett(M: int) -> Tensor:
    """The triangle: w[n] = 1 - abs(2 n / (M - 1) - 1).

    Parameters:
        M: how many points; less than 1: none.

    Returns: float64, (M,).

    Raises: TypeError for an M that is no int.

    Source: numpy.bartlett.

    >>> gg.evaluate(gg.bartlett(5))
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _window(np.bartlett, M)


def blackman(M: int) -> Tensor:
    """w[n] = 0.42 - 0.5 cos(2 pi n / (M - 1)) + 0.08 cos(4 pi n / (M - 1)).

    Parameters:
        M: how many points; less than 1: none.

    Returns: float64, (M,).

    Raises: TypeError for an M that is no int.

    Source: numpy.blackman.

    >>> gg.evaluate(gg.blackman(5)).round(2)
    array([-0.  ,  0.34,  1.  ,  0.34, -0.  ])
    """
    return _window(np.blackman, M)


def hamming(M: int) -> Tensor:
    """w[n] = 0.54 - 0.46 cos(2 pi n / (M - 1)).

    Parameters:
        M: how many points; less than 1: none.

    Returns: float64, (M,).

    Raises: TypeError for an M that is no int.

    Source: numpy.hamming.

    >>> gg.evaluate(gg.hamming(5)).round(2)
    array([0.08, 0.54, 1.  , 0.54, 0.08])
    """
    return _window(np.hamming, M)


def hanning(M: int) -> Tensor:
    """w[n] = 0.5 - 0.5 cos(2 pi n / (M - 1)).

    Parameters:
        M: how many points; less than 1: none.

    Returns: float64, (M,).

    Raises: TypeError for an M that is no int.

    Source: numpy.hanning.

    >>> gg.evaluate(gg.hanning(5)).round(2)
    array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _window(np.hanning, M)


def kaiser(M: int, beta: TensorLike) -> Tensor:
    """w[n] = i0(beta sqrt(1 - (2 n / (M - 1) - 1)**2)) / i0(beta).

    Parameters:
        M: how many points; less than 1: none.
        beta: how fast it falls off; any shape, floating, ints and bools become float64.

    Returns: the shape of beta and one more axis (M,), its dtype.

    Raises: TypeError for an M that is no int; for a beta that is no number GraphGradError without
        SciPy (the extra `scipy`).

    Gradient: that of i0.

    Source: numpy.kaiser.

    >>> gg.evaluate(gg.kaiser(5, 14.0)).round(4)
    array([0.    , 0.1649, 1.    , 0.1649, 0.    ])
    """
    if isinstance(beta, int | float):
        return constant(np.kaiser(whole("M", M), beta))
    (beta,) = promoted(beta, floating=True)
    count = max(whole("M", M), 0)
    places = np.linspace(-1.0, 1.0, count) if count != 1 else np.zeros(1)
    under = np.sqrt((1.0 - places) * (1.0 + places))
    beta = beta[..., None]
    return i0(beta * constant(under, beta.dtype)) / i0(beta)
