"""All rules in the order in which they are tried."""

from __future__ import annotations

from ..rule import RewriteRule
from .broadcasts import BROADCASTING
from .casts import CASTS
from .comparisons import COMPARISONS
from .contractions import CONTRACTIONS
from .fast_forms import FAST_FORMS
from .fast_numbers import FAST_NUMBERS
from .fast_sums import FAST_SUMS
from .joins import JOINS
from .known import KNOWN_SHAPES
from .neutral import NEUTRAL
from .powers import POWERS
from .reshapes import RESHAPING
from .signs import SIGNS
from .slices import SLICES
from .stable import STABLE
from .sums import SUMS
from .twice import TWICE
from .unslices import UNSLICES

ALGEBRA: tuple[RewriteRule, ...] = (*NEUTRAL, *SIGNS, *TWICE, *COMPARISONS, *POWERS, *CASTS)
"""Algebra that keeps every value: NaN, infinities and the sign of zero included.

What is missing here is missing on purpose: 0 * x is NaN for x = inf, x + 0.0 turns -0.0 into 0.0,
x - x is NaN for x = inf, max(x, y) and max(y, x) may differ in the sign of a zero, and complex
products mix their parts.
"""

RULES: tuple[RewriteRule, ...] = (
    *KNOWN_SHAPES,
    *ALGEBRA,
    *RESHAPING,
    *BROADCASTING,
    *SLICES,
    *JOINS,
    *UNSLICES,
    *SUMS,
    *CONTRACTIONS,
    *STABLE,
)
"""The rules of the default level: exact ones, and those that change no more than last bits."""

FASTER: tuple[RewriteRule, ...] = (*FAST_NUMBERS, *FAST_FORMS, *FAST_SUMS)
"""Algebra of real numbers, for fast_math=True: NaN, infinities, signs of zero and last bits may
change, and what overflowed may become a number.
"""
