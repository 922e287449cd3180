"""Special functions under SciPy's names: `gg.special.erf`, `gg.special.logsumexp`, ..."""

from .ops import special as _functions
from .ops.special import *  # noqa: F403

__all__ = _functions.__all__


def __dir__() -> list[str]:
    return __all__
