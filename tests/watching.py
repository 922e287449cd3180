"""Each instruction of chosen functions, told as it comes.

Python 3.11 has `sys.settrace` for it. From 3.12 on that is built upon `sys.monitoring` and leaves
instructions out: in 3.12 all of the first time, in 3.13 those of a function's first call.
"""

from __future__ import annotations

import enum
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

Told = Callable[["Event", CodeType, int], None]


class Event(enum.Enum):
    """A function starts or goes on; comes to the instruction at an offset; returns or yields."""

    START = "call"
    AT = "opcode"
    RETURN = "return"


def watched(action: Callable[[], Any], told: Told, chosen: Callable[[CodeType], bool]) -> None:
    """Run the action; each event of a chosen function on this thread is told before it happens.

    What `told` raises, the function raises there, and no more is told.
    """
    (_traced if sys.version_info < (3, 12) else _monitored)(action, told, chosen)


def _traced(action: Callable[[], Any], told: Told, chosen: Callable[[CodeType], bool]) -> None:
    def local(frame: FrameType, event: str, arg: Any) -> Any:
        if event != "exception":
            told(Event(event), frame.f_code, frame.f_lasti)
        return local

    def start(frame: FrameType, event: str, arg: Any) -> Any:
        if not chosen(frame.f_code):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return local(frame, event, arg)

    before = sys.gettrace()
    sys.settrace(start)
    try:
        action()
    finally:
        sys.settrace(before)


def _monitored(action: Callable[[], Any], told: Told, chosen: Callable[[CodeType], bool]) -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined]
    events = monitoring.events
    kinds = {
        events.PY_START: Event.START,
        events.PY_RESUME: Event.START,
        events.INSTRUCTION: Event.AT,
        events.PY_RETURN: Event.RETURN,
        events.PY_YIELD: Event.RETURN,
    }
    own, tool, over = threading.get_ident(), 4, False

    def teller(kind: Event) -> Callable[..., Any]:
        def tell(code: CodeType, offset: int, *value: Any) -> Any:
            nonlocal over
            if not chosen(code):
                return monitoring.DISABLE
            if threading.get_ident() == own and not over:
                over = True
                told(kind, code, offset)
                over = False
            return None

        return tell

    monitoring.use_tool_id(tool, "watched")
    try:
        for event, kind in kinds.items():
            monitoring.register_callback(tool, event, teller(kind))
        monitoring.set_events(tool, sum(kinds))
        monitoring.restart_events()
        action()
    finally:
        monitoring.set_events(tool, 0)
        for event in kinds:
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
