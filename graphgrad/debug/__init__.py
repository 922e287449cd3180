"""Looking at values: `gg.debug.values`, `nan_guard`, `blame`, `compare`, `print`."""

from typing import TYPE_CHECKING

from ..base.first_tries import unknown_names
from .comparison import Divergence, compare
from .finite import NotFiniteError, nan_guard
from .printing import print as print
from .running import Values, values
from .suspects import Blame, Suspect, blame

__all__ = [
    "Blame",
    "Divergence",
    "NotFiniteError",
    "Suspect",
    "Values",
    "blame",
    "compare",
    "nan_guard",
    "values",
]


def __dir__() -> list[str]:
    return [*__all__, "print"]


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)
