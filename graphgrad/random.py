"""Random numbers, of explicit seeds or the graph's own: `gg.random.normal`, and so on.

A parameter that is one number is checked: a ValueError names it and its domain. The elements of
arrays and tensors are not, but for the p of `choice`. NaN gives NaN there, and so does a
concentration or a degree of freedom below 0 of what is made of gamma numbers (`gamma`, `loggamma`,
`beta`, `chisquare`, `f`, `student_t`, `dirichlet`, `generalized_normal`) and of `wald`. Whole
numbers are -1. Elsewhere the formula is taken as it stands: a scale below 0 turns the distribution
round.
"""

from typing import TYPE_CHECKING

from .base.first_tries import unknown_names
from .ops import random as _functions
from .ops.random import *  # noqa: F403

__all__ = _functions.__all__


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # a checker would take it for every name it does not know
    __getattr__ = unknown_names(__name__)
