"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from ..base.processes import write_once

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
    name = folder / f"{BEGINNING}{secrets.token_hex(8)}"
    try:
        with open(name, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):  # who may read it, as before
            os.chmod(name, path.stat().st_mode & 0o777)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
    _sync(folder)


def _sync(folder: Path) -> None:
    """Have the folder know the new name after a power cut; where a folder can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
