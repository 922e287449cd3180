"""Linear algebra under the names of np.linalg and the array API: `gg.linalg.solve`, ..."""

from .ops import linalg as _functions
from .ops.linalg import *  # noqa: F403

__all__ = _functions.__all__


def __dir__() -> list[str]:
    return __all__
