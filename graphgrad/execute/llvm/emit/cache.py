"""Compiled code on disk, by what it was made from. Whatever is wrong with it, it is made again.

What is loaded is run, so only what this user alone can have written is read: from a folder, and
files, that are the user's own, that nobody else may write to, and that are not links. This is asked
of what was opened, not of its name. Where a system cannot tell (Windows), nothing is kept.

Files are written under another name and renamed, so that readers in other processes see all of one
or nothing. Each starts with the hash of its name and the rest.

They are in a folder of their own, graphgrad/code, in GRAPHGRAD_CACHE ("off": nothing is kept), else
in XDG_CACHE_HOME, else in ~/.cache. Relative paths are not used: a warning says
of one in GRAPHGRAD_CACHE that nothing is kept; one in XDG_CACHE_HOME is passed over, as its
specification has it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from warnings import warn

LIMIT = 256 << 20  # bytes of all files; the oldest go first
_HASH = 32
_OURS = re.compile(r"[0-9a-f]{64}(\.o|-[0-9a-f]{16}\.part)")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def folder() -> Path | None:
    """Where the files are, None where nothing is kept."""
    base = _base() if hasattr(os, "geteuid") else None
    return None if base is None else base / "graphgrad" / "code"


def _base() -> Path | None:
    named = os.environ.get("GRAPHGRAD_CACHE")
    if named is not None:
        if named.lower() in ("", "off", "0"):
            return None
        if not os.path.isabs(named):
            message = f"GRAPHGRAD_CACHE={named!r} is not an absolute path: no compiled code is kept"
            warn(message, RuntimeWarning, stacklevel=2)
            return None
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return Path(base)
    try:
        home = Path.home()
    except RuntimeError:  # nobody's home
        return None
    return home / ".cache" if home.is_absolute() else None


def key_of(*parts: str) -> str:
    """The name of what is made from these."""
    digest = sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def read(key: str) -> bytes | None:
    """What was written under the key, None where there is nothing, or nothing to be trusted."""
    try:
        with _opened(make=False) as where:
            data = _content(where, f"{key}.o")
    except OSError:
        return None
    code = data[_HASH:]
    return code if _hash(key, code) == data[:_HASH] else None


def write(key: str, code: bytes) -> None:
    """Keep the code; where that cannot be, do without."""
    with suppress(OSError), _opened(make=True) as where:
        name = f"{key}-{token_hex(8)}.part"
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=where)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_hash(key, code) + code)
            os.replace(name, f"{key}.o", src_dir_fd=where, dst_dir_fd=where)
        except BaseException:
            with suppress(OSError):
                os.unlink(name, dir_fd=where)
            raise
        _trim(where)


def _hash(key: str, code: bytes) -> bytes:
    return sha256(key.encode() + code).digest()


@contextmanager
def _opened(make: bool) -> Iterator[int]:
    """The folder, opened; OSError where there is none, or none to be trusted."""
    path = folder()
    if path is None:
        raise FileNotFoundError("nothing is kept")
    if make:
        path.mkdir(0o700, parents=True, exist_ok=True)
    where = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        _check(where, stat.S_ISDIR)
        yield where
    finally:
        os.close(where)


def _content(where: int, name: str) -> bytes:
    """What is in a file of the folder; OSError where there is none, or none to be trusted."""
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=where)
    try:
        _check(handle, stat.S_ISREG)
        with suppress(OSError):
            os.utime(handle)  # used last, removed last
        with open(handle, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(handle)


def _check(handle: int, kind: Callable[[int], bool]) -> None:
    """PermissionError unless this is of the kind, and none but the user can have written it."""
    status = os.fstat(handle)
    own = status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE
    if not (own and kind(status.st_mode)):
        raise PermissionError("others may have written this")


def _trim(where: int) -> None:
    """Remove what was used longest ago, until the rest is within the limit.

    Files of processes that ended while they wrote are among them; what is not of a name of ours
    is not.
    """
    files = []
    for name in filter(_OURS.fullmatch, os.listdir(where)):
        with suppress(FileNotFoundError):  # another process was faster
            status = os.stat(name, dir_fd=where, follow_symlinks=False)
            files.append((status.st_mtime, status.st_size, name))
    total = sum(size for _, size, _ in files)
    for _, size, name in sorted(files):
        if total <= LIMIT:
            break
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=where)
        total -= size
