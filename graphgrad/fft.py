"""Discrete Fourier transforms under the names of np.fft and the array API: `gg.fft.fft`, ..."""

from typing import TYPE_CHECKING

from .base.first_tries import unknown_names
from .ops.signal import fft as _functions
from .ops.signal.fft import *  # noqa: F403

__all__ = _functions.__all__


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)
