"""Looking at values: `gg.debug.values`, `nan_guard`, `blame`, `compare`, `print`."""

from .blame import Blame as Blame
from .blame import Suspect as Suspect
from .blame import blame as blame
from .compare import Difference as Difference
from .compare import compare as compare
from .finite import NotFiniteError as NotFiniteError
from .finite import nan_guard as nan_guard
from .printing import print_tensor as print
from .running import Values as Values
from .running import values as values

__all__ = [
    "Blame",
    "Difference",
    "NotFiniteError",
    "Suspect",
    "Values",
    "blame",
    "compare",
    "nan_guard",
    "print",
    "values",
]
