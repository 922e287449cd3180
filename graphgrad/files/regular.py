"""What is read is a file: no directory, device, pipe or socket, which may never end."""

from __future__ import annotations

import os
import stat

from ..base.errors import FileError

KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def check_regular(path: str | os.PathLike[str]) -> None:
    """FileError, before anything is opened, unless a path leads to a regular file.

    Raises OSError where it leads to nothing.
    """
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode):
        raise FileError(f"it is {KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file")
