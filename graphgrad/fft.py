"""Discrete Fourier transforms under the names of np.fft and the array API: `gg.fft.fft`, ..."""

from .ops.signal import fft as _functions
from .ops.signal.fft import *  # noqa: F403

__all__ = _functions.__all__


def __dir__() -> list[str]:
    return __all__
