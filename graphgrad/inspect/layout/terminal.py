"""How wide a terminal is, and rows that fit into it."""

from __future__ import annotations

import os
from textwrap import wrap
from typing import TextIO

__all__: list[str] = []

LEAST = 40
"""Columns below which rows are not made narrower: nothing could be read then."""


def width_of(stream: TextIO) -> int | None:
    """The columns of a terminal, or what $COLUMNS says; None for a file or pipe, which has any."""
    said = os.environ.get("COLUMNS", "")
    if said.isdigit() and int(said):
        return max(LEAST, int(said))
    try:
        return max(LEAST, os.get_terminal_size(stream.fileno()).columns)
    except (OSError, ValueError, AttributeError):  # no terminal, or no file at all
        return None


def fitted(row: str, width: int | None, hang: str = "    ") -> list[str]:
    """A row as one or more that are not wider; what follows the first hangs in."""
    if width is None or len(row) <= width:
        return [row]
    start = row[: len(row) - len(row.lstrip(" "))][: width // 2]
    return wrap(
        row.strip(),
        width,
        initial_indent=start,
        subsequent_indent=start + hang,
        break_on_hyphens=False,
    )
