"""Stable forms: functions of tensors that keep their digits, and their derivatives theirs.

A quotient that is 0 / 0 somewhere is a series there, with terms enough for two derivatives, under a
double `where`. A scale is a constant for differentiation: f(x) = s**k f(x / s) holds for every s,
so the derivative with s held fixed is the whole one.
"""

from __future__ import annotations

from .differences import *  # noqa: F403
from .exponentials import *  # noqa: F403
from .logarithms import *  # noqa: F403
from .norms import *  # noqa: F403
from .others import *  # noqa: F403
from .quotients import *  # noqa: F403
from .stable import *  # noqa: F403
