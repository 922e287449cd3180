"""Looking at values: `gg.debug.values`, `nan_guard`, `blame`, `compare`, `print`."""

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
