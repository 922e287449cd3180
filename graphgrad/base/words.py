"""Names as they can be shown: on one line, of printable characters, not too long."""

from __future__ import annotations

import re

_unsafe = re.compile(r"[^ -~]")


def shortened(text: str, limit: int) -> str:
    """The text with its middle left out where it is longer than limit."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]}...{text[head + 3 - limit :]}"


def visible(text: str) -> str:
    """One line of printable characters; what is not printable is spelled out.

    Letters of any script stay; control characters, line ends, combining and bidi marks become
    `\\n`, `\\u202e`.
    """
    return text if text.isascii() and text.isprintable() else _unsafe.sub(_spelled, text)


def visible_lines(text: str) -> str:
    """The text, each of its lines as visible() makes it."""
    return "\n".join(map(visible, text.split("\n")))


def _spelled(match: re.Match[str]) -> str:
    return spelled(match[0])


def spelled(c: str) -> str:
    """A letter as it is, any other character as in a Python string."""
    return c if c.isalnum() else c.encode("unicode_escape").decode("ascii")
