"""IEEE rules without warnings, for a tenth of what `np.errstate` costs.

NumPy keeps its settings in a context variable: what `np.errstate(all="ignore")` sets it to is found
once, and `token = SETTING.set(IGNORE)`, `SETTING.reset(token)` do the same again.
"""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

import numpy as np


class _Errstate:
    """For a NumPy that keeps its settings elsewhere."""

    def set(self, value: None) -> Any:
        state = np.errstate(all="ignore")
        state.__enter__()
        return state

    def reset(self, state: Any) -> None:
        state.__exit__(None, None, None)


def _what_ignoring_sets() -> tuple[Any, Any]:
    before = copy_context()
    with np.errstate(all="ignore"):
        after = copy_context()
    changed = [(v, value) for v, value in after.items() if before.get(v) is not value]
    return changed[0] if len(changed) == 1 else (_Errstate(), None)


SETTING, IGNORE = _what_ignoring_sets()
