"""Where in the user's program something was built: kept as (code, offset), resolved when shown.

What was copied or unpickled has (file name, line) instead.
"""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType, FrameType

Position = tuple[CodeType | str, int]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_OUR_OWN_PROGRAMS = _PACKAGE + "demo" + os.sep
_library: dict[str, bool] = {}
RULE_CALLERS: set[CodeType] = set()
"""Where rules are called: what is further out is not the line of what they build."""


def is_library(filename: str) -> bool:
    """Whether a code object's file belongs to graphgrad itself (its demo is a user).

    Names that are no absolute path, such as `<stdin>`, are the user's wherever the process stands.
    """
    in_library = _library.get(filename)
    if in_library is None:
        path = os.path.normpath(filename)
        in_library = path.startswith(_PACKAGE) and not path.startswith(_OUR_OWN_PROGRAMS)
        _library[filename] = in_library
    return in_library


def caller() -> Position | None:
    """The innermost frame outside graphgrad."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if not (_library[name] if name in _library else is_library(name)):
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def file_of(position: Position) -> str:
    """The file name of a position."""
    code = position[0]
    return code if isinstance(code, str) else code.co_filename


def line_of(position: Position) -> int:
    """The line number of a position."""
    code, offset = position
    if isinstance(code, str):
        return offset
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def show(position: Position | None) -> str:
    """`model.py:31`, or `<unknown>`."""
    if position is None:
        return "<unknown>"
    return f"{os.path.basename(file_of(position))}:{line_of(position)}"


def full(position: Position | None) -> tuple[str, int] | None:
    """(file, line) with the whole path."""
    return None if position is None else (file_of(position), line_of(position))


def source_line(position: Position | None) -> str:
    """The text of the user's line, stripped; '' where it cannot be read."""
    at = full(position)
    return linecache.getline(*at).strip() if at else ""


def of_function(fn: object) -> Position | None:
    """Where a function was defined."""
    code = getattr(getattr(fn, "__wrapped__", fn), "__code__", None)
    return (code, 0) if isinstance(code, CodeType) else None
