"""Programs that are interrupted, once, wherever Python lets an interrupt come through.

Signals are served after a call, at the start of a function and where a loop goes back: in between
the interpreter does not look. So these are the places, as (code, offset of the next instruction).
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

import graphgrad as gg

LIBRARY = os.path.dirname(gg.__file__) + os.sep
Key = tuple[str, str, int]


@dataclass(frozen=True)
class Place:
    """The n-th time that a function comes to an offset."""

    code: Key
    line: int
    offset: int
    time: int

    def __str__(self) -> str:
        file, name, _ = self.code
        return f"{file.removeprefix(LIBRARY)}:{self.line} {name}+{self.offset} ({self.time})"


def places(action: Callable[[], Any]) -> list[Place]:
    """Each place in graphgrad at which the action could be interrupted, the first time it can."""
    found: dict[tuple[Key, int], Place] = {}
    times: dict[tuple[Key, int], int] = {}
    returned = False  # from a function of Python: the interpreter does not look then

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal returned
        if event == "opcode":
            offset, here = frame.f_lasti, _key(frame.f_code)
            if offset in _looks(frame.f_code):
                seen = times[here, offset] = times.get((here, offset), 0) + 1
                if not returned and (here, offset) not in found:
                    found[here, offset] = Place(here, frame.f_lineno, offset, seen)
            returned = False
        elif event == "return":
            returned = True
        return local

    def start(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal returned
        if not frame.f_code.co_filename.startswith(LIBRARY):
            return None
        returned = False
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return local

    _traced(start, action)
    return [*found.values()]


def interrupted(action: Callable[[], Any], place: Place) -> bool:
    """Run the action, with a KeyboardInterrupt at a place; whether it came there."""
    times = 0

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal times
        if event == "opcode" and frame.f_lasti == place.offset:
            times += 1
            if times == place.time:
                sys.settrace(None)
                raise KeyboardInterrupt(str(place))
        return local

    def start(frame: FrameType, event: str, arg: Any) -> Any:
        if _key(frame.f_code) != place.code:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return local

    try:
        _traced(start, action)
    except KeyboardInterrupt:
        return True
    return False


def _traced(trace: Callable[..., Any], action: Callable[[], Any]) -> None:
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)


def _key(code: CodeType) -> Key:
    return code.co_filename, code.co_qualname, code.co_firstlineno


@cache
def _looks(code: CodeType) -> frozenset[int]:
    """The offsets before which the interpreter looks for signals."""
    return frozenset(_offsets(dis.Bytecode(code)))


def _offsets(code: dis.Bytecode) -> Iterator[int]:
    for one, following in pairwise([*code]):
        if one.opname.startswith(("CALL", "RESUME")):
            handled = [_handlers(code, i.offset) for i in (one, following)]
            yield following.offset if handled[0] == handled[1] else one.offset
        elif one.opname.startswith("JUMP_BACKWARD"):
            yield one.offset


def _handlers(code: dis.Bytecode, offset: int) -> list[int]:
    """Where an exception at an offset goes. One that comes after a call belongs to the call."""
    entries: Any = code.exception_entries  # type: ignore[attr-defined]
    return [e.target for e in entries if e.start <= offset < e.end]
