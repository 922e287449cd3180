"""Special functions under SciPy's names: `gg.special.erf`, `gg.special.logsumexp`, ..."""

from .ops import special as _functions
from .ops import special_bessel as _bessel
from .ops import special_error as _error
from .ops import special_gamma as _gamma
from .ops import special_information as _information
from .ops import special_transforms as _transforms
from .ops.special import *  # noqa: F403
from .ops.special_bessel import *  # noqa: F403
from .ops.special_error import *  # noqa: F403
from .ops.special_gamma import *  # noqa: F403
from .ops.special_information import *  # noqa: F403
from .ops.special_transforms import *  # noqa: F403

_FILES = (_functions, _bessel, _error, _gamma, _information, _transforms)

__all__ = sorted([name for file in _FILES for name in file.__all__])


def __dir__() -> list[str]:
    return __all__
