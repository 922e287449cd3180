"""Where in the user's program an op was made: kept as (code, offset), resolved when shown."""

from __future__ import annotations

import os
import sys
from inspect import getfile
from types import CodeType, FrameType

import graphgrad as gg

__all__ = ["Position", "caller", "show"]

Position = tuple[CodeType, int]
_LIBRARIES = tuple([os.path.dirname(os.path.abspath(f)) + os.sep for f in (getfile(gg), __file__)])
_library: dict[str, bool] = {}


def _is_library(file: str) -> bool:
    """Whether code is graphgrad's or this package's own, or passes calls of theirs on."""
    own = os.path.normpath(file).startswith(_LIBRARIES) or "contextlib.py" in file
    _library[file] = own
    return own


def caller() -> Position | None:
    """The innermost frame of the user's."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        if not (_library[file] if file in _library else _is_library(file)):
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def show(position: Position | None) -> str:
    """`model.py:31`, or `<unknown>`."""
    if position is None:
        return "<unknown>"
    code, offset = position
    lines = [n for start, end, n in code.co_lines() if start <= offset < end and n is not None]
    return f"{os.path.basename(code.co_filename)}:{lines[0] if lines else code.co_firstlineno}"
