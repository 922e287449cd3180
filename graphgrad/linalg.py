"""Linear algebra under the names of np.linalg and the array API: `gg.linalg.solve`, ..."""

from typing import TYPE_CHECKING

from .base.first_tries import unknown_names
from .differentiate import matrix_functions as _of_matrices
from .differentiate.matrix_functions import *  # noqa: F403
from .ops import linalg as _functions
from .ops.linalg import *  # noqa: F403

__all__ = sorted([*_functions.__all__, *_of_matrices.__all__])


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)
