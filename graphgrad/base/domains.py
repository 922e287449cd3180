"""Domains: the numbers that a parameter may be, as checked where it is given.

    limit = POSITIVE("limit", limit)

A function that takes a number has such a line for it: `tests/test_domains.py` looks for them.
"""

from __future__ import annotations

from math import inf
from numbers import Real
from operator import index
from typing import Any, TypeVar

import numpy as np

from .kinds import kind_of

T = TypeVar("T")


class Domain:
    """An interval of numbers; a call checks a parameter and returns it.

    low, high   its ends
    ends        which of them belong to it: "[]", "[)", "(]" or "()"
    whole       whether its numbers are ints
    infinite    whether an infinite end belongs to it; NaN does where both are
    kinds       NumPy's letters for the dtypes of arrays of such numbers
    """

    def __init__(
        self,
        low: float = -inf,
        high: float = inf,
        ends: str = "[]",
        *,
        whole: bool = False,
        infinite: bool = False,
        kinds: str = "iuf",
    ) -> None:
        self.low = low
        self.high = high
        self.whole = whole
        self.kinds = "iu" if whole else kinds
        self.open_low = ends[0] == "(" or (low == -inf and not infinite)
        self.open_high = ends[1] == ")" or (high == inf and not infinite)
        self.unbounded = (low, high) == (-inf, inf) and (infinite or whole)

    def __call__(self, what: str, value: T) -> T:
        """The value as it is; TypeError for input that is not a number, ValueError for one
        outside."""
        if not self.takes(value):
            raise TypeError(f"{what} is {self}, got {value!r}")
        if not self.holds(value):
            raise ValueError(f"{what} is {self}, got {value}")
        return value

    def if_given(self, what: str, value: T | None) -> T | None:
        """The same of a parameter that may be None."""
        return None if value is None else self(what, value)

    def takes(self, value: Any) -> bool:
        """Whether a value is one number of the kind, whatever its size."""
        if isinstance(value, np.ndarray | np.generic):
            return not value.ndim and kind_of(value.dtype) in self.kinds
        if isinstance(value, bool):
            return False
        return _is_index(value) if self.whole else isinstance(value, Real)

    def holds(self, x: Any) -> Any:
        """Whether a number lies in it; of an array or a tensor, for each element."""
        if self.unbounded:
            return True
        above = x > self.low if self.open_low else x >= self.low
        if self.high == inf and (self.whole or not self.open_high):
            return above
        return above & (x < self.high if self.open_high else x <= self.high)

    def __str__(self) -> str:
        kind = "an int" if self.whole else "a number"
        if not self.whole and self.high == inf and self.open_high:
            kind = "a finite number"
        ends = []
        if self.low != -inf:
            ends.append(f"{'more than' if self.open_low else 'at least'} {self.low}")
        if self.high != inf:
            ends.append(f"{'below' if self.open_high else 'at most'} {self.high}")
        return f"{kind}, {' and '.join(ends)}" if ends else kind

    def __repr__(self) -> str:
        return f"<Domain: {self}>"


def _is_index(value: Any) -> bool:
    """Whether it is an int: tensors and arrays of all libraries have `__index__`, whatever they
    hold."""
    try:
        index(value)
    except TypeError:
        return False
    return True


NUMBER = Domain(infinite=True)
ANY = Domain(infinite=True, kinds="biufc")
FINITE = Domain()
POSITIVE = Domain(0, ends="(]")
NON_NEGATIVE = Domain(0)
POSITIVE_OR_INFINITE = Domain(0, ends="(]", infinite=True)
NON_NEGATIVE_OR_INFINITE = Domain(0, infinite=True)
PROBABILITY = Domain(0, 1)
POSITIVE_PROBABILITY = Domain(0, 1, "(]")
BELOW_ONE = Domain(0, 1, "[)")
INTEGER = Domain(whole=True)
BITS = Domain(1, 64, whole=True)
FROM_ZERO = Domain(0, whole=True)
FROM_ONE = Domain(1, whole=True)
