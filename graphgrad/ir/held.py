"""Values of variables as a backend left them: NumPy's arrays, or those of a device.

A state keeps what a run made, so that training moves no variable from step to step. What is asked
for outside a run is NumPy's.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch
from typing import Any

import numpy as np

from .types import Array

__all__ = ["any_gone", "fetched", "is_gone"]


@singledispatch
def fetched(value: Any) -> Array:
    """A value as an array of NumPy's, which is not to be written; a copy where it lies elsewhere.

    A backend whose arrays need more than np.asarray registers it for their type.
    """
    return np.asarray(value)


def is_gone(value: Any) -> bool:
    """Whether a run was given the memory of a value, for its results."""
    if type(value) is np.ndarray:
        return False
    asked = getattr(value, "is_deleted", None)
    return asked is not None and bool(asked())


def any_gone(values: Iterable[Any]) -> bool:
    """Whether any of them is gone."""
    return any(map(is_gone, values))
