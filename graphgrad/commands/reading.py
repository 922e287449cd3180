"""How far the reading of a large file has come, on the screen."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from ..files.container import CHECKED_BYTES

__all__ = ["shown_reading"]

LARGE = 100_000_000
"""Bytes of a file that takes long enough to be told."""
MEGABYTE = 1_000_000


@contextmanager
def shown_reading(path: Path, out: TextIO | None = None) -> Iterator[None]:
    """Say on stderr how much of a large file has been checked: in a terminal as one line that
    changes, elsewhere as a line for each quarter."""
    size = path.stat().st_size if path.is_file() else 0
    if size <= LARGE:
        yield
        return
    progress = _Progress(path.name, size, sys.stderr if out is None else out)
    before = CHECKED_BYTES.set(progress.more)
    try:
        yield
    finally:
        CHECKED_BYTES.reset(before)
        progress.end()


class _Progress:
    """Of how many bytes, how many are done, and the last percentage that was said."""

    def __init__(self, name: str, size: int, out: TextIO) -> None:
        self._name, self._size, self._out = name, size, out
        self._done, self._said = 0, 0
        self._live = out.isatty()
        self._step = 1 if self._live else 25

    def more(self, count: int) -> None:
        """So many bytes more were checked."""
        self._done += count
        percent = 100 * self._done // self._size // self._step * self._step
        if percent > self._said:
            self._said = percent
            megabytes = f"{self._done // MEGABYTE} of {self._size // MEGABYTE} MB"
            text = f"{self._name}: {percent:3} % checked, {megabytes}"
            self._out.write(f"\r{text}" if self._live else f"{text}\n")
            self._out.flush()

    def end(self) -> None:
        """Leave the line."""
        if self._live and self._said:
            self._out.write("\n")
