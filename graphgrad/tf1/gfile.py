"""Files: `tf.gfile`."""

from __future__ import annotations

import os
import shutil
from glob import glob
from typing import IO, Any

__all__ = [
    "Copy", "DeleteRecursively", "Exists", "FastGFile", "GFile", "Glob", "IsDirectory",
    "ListDirectory", "MakeDirs", "MkDir", "Open", "Remove", "Rename", "Walk",
]  # fmt: skip


def GFile(name: Any, mode: str = "r") -> IO[Any]:
    """Python's `open`."""
    return open(name, mode)


FastGFile = Open = GFile
Exists, IsDirectory, ListDirectory, MkDir = os.path.exists, os.path.isdir, os.listdir, os.mkdir
Remove, Glob, DeleteRecursively, Walk = os.remove, glob, shutil.rmtree, os.walk


def MakeDirs(dirname: Any) -> None:
    """Make a folder, and those around it."""
    os.makedirs(dirname, exist_ok=True)


def Copy(oldpath: Any, newpath: Any, overwrite: bool = False) -> None:
    """Copy a file."""
    if os.path.exists(newpath) and not overwrite:
        raise FileExistsError(newpath)
    shutil.copyfile(oldpath, newpath)


def Rename(oldname: Any, newname: Any, overwrite: bool = False) -> None:
    """Give a file another name."""
    if os.path.exists(newname) and not overwrite:
        raise FileExistsError(newname)
    os.replace(oldname, newname)
