"""Arguments that are checked where they are given: flags and functions."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


def truth(what: str, b: Any) -> bool:
    """b as a bool; TypeError, which says what it is, for all that is none: "no" is not False."""
    if b is True or b is False:
        return b
    if not isinstance(b, np.bool_):
        raise TypeError(f"{what} is True or False, got {b!r}")
    return bool(b)


def truth_if_given(what: str, b: Any) -> bool | None:
    """`truth`, of what may be None too."""
    return None if b is None else truth(what, b)


def function(what: str, f: T) -> T:
    """f, if it can be called; else a TypeError, which says what it is."""
    if not callable(f):
        raise TypeError(f"{what} is a function, got {f!r}")
    return f
