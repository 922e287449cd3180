"""Flags: what is True or False, and nothing that merely counts as one of them."""

from __future__ import annotations

from typing import Any

import numpy as np


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
