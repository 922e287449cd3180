"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from ..ir.processes import write_once

BEGINNING = ".writing-"
"""What the names of files begin with that are not complete yet."""


def write_atomically(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    """Write beside the path and put it there when all of it is on the disk.

    Whoever is interrupted leaves what was there before; whoever reads has one or the other. Of
    processes that run one program together the first one writes, and the others wait for it.
    """
    write_once(partial(_write, path, write))


def _write(path: Path, write: Callable[[IO[bytes]], None]) -> None:
    folder = path.parent
    handle, name = tempfile.mkstemp(dir=folder, prefix=BEGINNING)
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(path))
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    _sync(folder)


def _mode(path: Path) -> int:
    """Who may read it: as before, or as a new file of this process."""
    with suppress(OSError):
        return os.stat(path).st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync(folder: Path) -> None:
    """Have the folder know the new name after a power cut; where a folder can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
