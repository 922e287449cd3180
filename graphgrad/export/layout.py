"""Lines that are not too long."""

from __future__ import annotations

import textwrap
from itertools import pairwise

__all__ = ["WIDTH", "docstring", "wrapped"]

WIDTH = 100
_OPEN, _CLOSE = "([{", ")]}"


def docstring(text: str) -> str:
    """A docstring of a function, its paragraph filled."""
    safe = " ".join(text.split()).replace("\\", "\\\\").replace('"""', "'''")
    lines = textwrap.wrap(safe, WIDTH - 10)
    return "\n    ".join(lines) + ("\n    " if len(lines) > 1 else "")


def wrapped(text: str) -> str:
    """The text of a module, each of its long lines on several, broken between brackets."""
    return "\n".join(part for line in text.split("\n") for part in _lines(line))


def _lines(line: str) -> list[str]:
    if len(line) <= WIDTH or line.lstrip().startswith("#"):
        return [line]
    group = _widest(line)
    if group is None:
        return [line]
    start, commas, end = group
    indent = " " * (len(line) - len(line.lstrip()))
    cuts = [start, *commas, end]
    items = [line[a + 1 : b].strip() for a, b in pairwise(cuts)]
    if not items[-1]:
        items.pop()
    comma = "," * bool(commas)
    inner = [part for item in items for part in _lines(f"{indent}    {item}{comma}")]
    return [*_lines(line[: start + 1]), *inner, *_lines(indent + line[end:])]


def _widest(line: str) -> tuple[int, list[int], int] | None:
    """Where the longest outermost brackets are, and the commas between them."""
    groups: list[tuple[int, list[int], int]] = []
    depth, quote, start, skip = int(line.lstrip()[:1] in _CLOSE), "", len(line), False
    commas: list[int] = []
    text = ""  # between the brackets, without what is in brackets there
    for i, c in enumerate(line):
        text += c * (depth == 1 and not quote)
        if skip or c == "\\":
            skip = not skip
        elif quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in _OPEN:
            depth += 1
            if depth == 1:
                start, commas, text = i, [], ""
        elif c in _CLOSE:
            depth -= 1
            if depth == 0 and i > start + 1:
                whole = " for " in text or "lambda" in text
                groups.append((start, [] if whole else commas, i))
        elif c == "," and depth == 1:
            commas.append(i)
    return max(groups, key=lambda group: group[2] - group[0], default=None)
