"""Programs that are interrupted, once, wherever Python lets an interrupt come through.

Signals are served after a call, at the start of a function and where a loop goes back: in between
the interpreter does not look. So these are the places, as (code, offset of the next instruction).

Where a debugger or a coverage tool traces a program, its trace function serves them: at every line.
"""

from __future__ import annotations

import dis
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from types import CodeType, FrameType
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


@dataclass(frozen=True)
class Line:
    """The n-th time that a function comes to a line, or starts at it."""

    program: CodeType
    event: str
    line: int
    time: int

    def __str__(self) -> str:
        file, name = self.program.co_filename, self.program.co_qualname
        return f"{file.removeprefix(LIBRARY)}:{self.line} {name} ({self.event}, {self.time})"


def lines(action: Callable[[], Any]) -> list[Line]:
    """Each line of graphgrad that the action comes to, the first time that one can be interrupted.

    Without the second visit of the line of a `with`, which is there to leave its block: the
    interpreter serves no signal between a block and its `__exit__`, and no program could answer.
    """
    found: dict[tuple[CodeType, str, int], Line] = {}
    times: dict[tuple[CodeType, str, int], int] = {}

    def told(frame: FrameType, event: str) -> None:
        here = frame.f_code, event, frame.f_lineno
        seen = times[here] = times.get(here, 0) + 1
        if here not in found and frame.f_lasti not in _leaves(frame.f_code):
            found[here] = Line(*here, seen)

    _by_line(action, told, lambda code: code.co_filename.startswith(LIBRARY))
    return [*found.values()]


def signalled(action: Callable[[], Any], line: Line) -> bool:
    """Run the action, with a signal of Ctrl-C at a line; whether it came there."""
    times = 0

    def told(frame: FrameType, event: str) -> None:
        nonlocal times
        if (event, frame.f_lineno) == (line.event, line.line):
            times += 1
            if times == line.time:
                signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _by_line(action, told, lambda code: code is line.program)
    except KeyboardInterrupt:
        return True
    finally:
        signal.signal(signal.SIGINT, before)
    return False


def _by_line(
    action: Callable[[], Any],
    told: Callable[[FrameType, str], None],
    chosen: Callable[[CodeType], bool],
) -> None:
    def local(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            told(frame, event)
        return local

    def start(frame: FrameType, event: str, arg: Any) -> Any:
        if not chosen(frame.f_code):
            return None
        told(frame, event)
        return local

    before = sys.gettrace()
    sys.settrace(start)
    try:
        action()
    finally:
        sys.settrace(before)


@cache
def _leaves(code: CodeType) -> frozenset[int]:
    """The offsets at which Python is about to call the `__exit__` of a block that is left."""
    steps = [i for i in dis.Bytecode(code) if i.opname not in ("NOP", "PRECALL", "CACHE")]
    found = set()
    for at, step in enumerate(steps):
        after = steps[at + (step.opname == "SWAP") :]
        nones = [i.opname == "LOAD_CONST" and i.argval is None for i in after[:3]]
        names = [i.opname for i in after[:4]]
        if (nones == [True] * 3 and names[3:] == ["CALL"]) or "WITH_EXCEPT_START" in names[:2]:
            found.add(step.offset)
    return frozenset(found)
