"""Scopes that a generator opens: they stay open at its `yield`, while others go on building.

Such a scope counts only while the generator runs. What is built at a `yield` is built by whoever
steps the generator, who does not see the scope: that is an error, not a member. A generator under
`@contextlib.contextmanager` is another thing: it holds its scopes open on purpose.
"""

from __future__ import annotations

import sys
from inspect import CO_ASYNC_GENERATOR, CO_GENERATOR
from types import FrameType
from typing import Any

from .errors import ScopeError
from .position import caller, is_library, show

GENERATOR = CO_GENERATOR | CO_ASYNC_GENERATOR


class WhileRunning:
    """Stands for "open" in a scope that a generator opened."""

    __slots__ = ("frame", "scope")

    def __init__(self, frame: FrameType, scope: Any) -> None:
        self.frame = frame
        self.scope = scope

    def check(self) -> None:
        """ScopeError unless the generator is running: it, or what it called, is building."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            if frame is self.frame:
                return
            frame = frame.f_back
        code = self.frame.f_code
        raise ScopeError(
            f"a node is built at {show(caller())} while {self.scope!r} is held open by the "
            f"generator {code.co_name!r} ({show((code, 0))}), which stopped at a `yield`.\n"
            "End the block before the yield. Decorate a generator that holds a scope open for "
            "its caller with @contextlib.contextmanager."
        )


def opened_by(scope: Any) -> WhileRunning | None:
    """For the caller's caller, which opens a scope: None unless that is in a generator."""
    frame: FrameType | None = sys._getframe(2)
    if frame is None or is_library(frame.f_code.co_filename):
        return None
    while frame is not None:
        if not _of_contextlib(frame):
            if not frame.f_code.co_flags & GENERATOR:
                return None
            if not _of_contextlib(frame.f_back):
                return WhileRunning(frame, scope)
        frame = frame.f_back
    return None


def _of_contextlib(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_globals.get("__name__") == "contextlib"
