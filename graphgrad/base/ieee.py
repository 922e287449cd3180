"""IEEE rules without warnings, for a tenth of what `np.errstate` costs.

NumPy keeps its settings in a context variable: what `np.errstate(all="ignore")` sets it to is found
once, and `before = SETTING.get()`, `SETTING.set(IGNORE)`, `SETTING.set(before)` do the same again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from types import MappingProxyType
from typing import Any

import numpy as np


class _Errstate:
    """For a NumPy that keeps its settings elsewhere."""

    IGNORE = MappingProxyType(dict.fromkeys(np.geterr(), "ignore"))

    def get(self) -> Any:
        return np.geterr()

    def set(self, value: Any) -> None:
        np.seterr(**value)


def _what_ignoring_sets() -> tuple[Any, Any]:
    before = copy_context()
    with np.errstate(all="ignore"):
        after = copy_context()
    changed = [(v, value) for v, value in after.items() if before.get(v) is not value]
    return changed[0] if len(changed) == 1 else (_Errstate(), _Errstate.IGNORE)


SETTING, IGNORE = _what_ignoring_sets()


def quietly() -> Callable[..., Any] | None:
    """What calls f(*args) by these rules in a context of its own, one call at a time.

    It costs a tenth of setting the variable for each call; other context variables have their
    defaults in f. None for a NumPy that keeps its settings elsewhere.
    """
    if not isinstance(SETTING, ContextVar):
        return None
    context = Context()
    context.run(SETTING.set, IGNORE)
    return context.run
