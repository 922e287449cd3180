"""Special functions under SciPy's names: `gg.special.erf`, `gg.special.logsumexp`, ..."""

from typing import TYPE_CHECKING

from .base.first_tries import unknown_names
from .ops import special as _functions
from .ops.special import *  # noqa: F403

__all__ = _functions.__all__


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)
