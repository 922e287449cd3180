"""Programs that are interrupted, once, wherever Python lets an interrupt come through.

Signals are served after a call, at the start of a function and where a loop goes back: in between
the interpreter does not look. So these are the places, as (code, offset of the next instruction).
"""

from __future__ import annotations

import dis
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import CodeType
from typing import Any

import graphgrad as gg

from .watching import Event, watched

LIBRARY = os.path.dirname(gg.__file__) + os.sep
LOOKS_BEHIND = {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "RESUME"}  # and behind no CALL_INTRINSIC_1


@dataclass(frozen=True)
class Place:
    """The n-th time that a function comes to an offset."""

    program: CodeType
    offset: int
    time: int

    @property
    def code(self) -> tuple[str, str, int]:
        """The function: file, name and first line."""
        return self.program.co_filename, self.program.co_qualname, self.program.co_firstlineno

    @property
    def line(self) -> int | None:
        return next(n for start, end, n in self.program.co_lines() if start <= self.offset < end)

    def __str__(self) -> str:
        file, name, _ = self.code
        return f"{file.removeprefix(LIBRARY)}:{self.line} {name}+{self.offset} ({self.time})"


def places(action: Callable[[], Any]) -> list[Place]:
    """Each place in graphgrad at which the action could be interrupted, the first time it can."""
    found: dict[tuple[CodeType, int], Place] = {}
    times: dict[tuple[CodeType, int], int] = {}
    returned = False  # from a function of Python: the interpreter does not look then

    def told(event: Event, code: CodeType, offset: int) -> None:
        nonlocal returned
        if event is Event.AT and offset in _looks(code):
            here = code, offset
            seen = times[here] = times.get(here, 0) + 1
            if not returned and here not in found:
                found[here] = Place(code, offset, seen)
        returned = event is Event.RETURN

    watched(action, told, lambda code: code.co_filename.startswith(LIBRARY))
    return [*found.values()]


def interrupted(action: Callable[[], Any], place: Place) -> bool:
    """Run the action, with a KeyboardInterrupt at a place; whether it came there."""
    times = 0

    def told(event: Event, code: CodeType, offset: int) -> None:
        nonlocal times
        if event is Event.AT and offset == place.offset:
            times += 1
            if times == place.time:
                raise KeyboardInterrupt(str(place))

    try:
        watched(action, told, lambda code: code is place.program)
    except KeyboardInterrupt:
        return True
    return False


@cache
def _looks(code: CodeType) -> frozenset[int]:
    """The offsets before which the interpreter looks for signals."""
    return frozenset(_offsets(dis.Bytecode(code)))


def _offsets(code: dis.Bytecode) -> Iterator[int]:
    for one, following in pairwise([*code]):
        if one.opname in LOOKS_BEHIND:
            handled = [_handlers(code, i.offset) for i in (one, following)]
            yield following.offset if handled[0] == handled[1] else one.offset
        elif one.opname == "JUMP_BACKWARD":
            yield one.offset


def _handlers(code: dis.Bytecode, offset: int) -> list[int]:
    """Where an exception at an offset goes. One that comes after a call belongs to the call."""
    entries: Any = code.exception_entries  # type: ignore[attr-defined]
    return [e.target for e in entries if e.start <= offset < e.end]
