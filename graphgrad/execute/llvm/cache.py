"""Compiled code on disk, by what it was made from. Whatever is wrong with it, it is made again.

Files are written under another name and renamed, so that readers in other processes see all of one
or nothing. Each starts with the hash of the rest. GRAPHGRAD_CACHE names another folder, or is
"off".
"""

from __future__ import annotations

import os
import tempfile
from hashlib import sha256
from pathlib import Path

LIMIT = 256 << 20  # bytes of all files; the oldest go first
_HASH = 32


def folder() -> Path | None:
    """Where the files are, None where nothing is kept."""
    named = os.environ.get("GRAPHGRAD_CACHE")
    if named is not None:
        return None if named.lower() in ("", "off", "0") else Path(named)
    base = os.environ.get("XDG_CACHE_HOME")
    if base:
        return Path(base) / "graphgrad"
    try:
        return Path.home() / ".cache" / "graphgrad"
    except RuntimeError:  # nobody's home
        return None


def key_of(*parts: str) -> str:
    """The name of what is made from these."""
    found = sha256()
    for part in parts:
        data = part.encode()
        found.update(len(data).to_bytes(8, "little"))
        found.update(data)
    return found.hexdigest()


def read(key: str) -> bytes | None:
    """What was written under the key, None where it is not there or not whole."""
    where = folder()
    if where is None:
        return None
    path = where / f"{key}.o"
    try:
        data = path.read_bytes()
        os.utime(path)  # used last, removed last
    except OSError:
        return None
    code = data[_HASH:]
    return code if sha256(code).digest() == data[:_HASH] else None


def write(key: str, code: bytes) -> None:
    """Keep the code; where that cannot be, do without."""
    where = folder()
    if where is None:
        return
    try:
        where.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=where, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(sha256(code).digest() + code)
            os.replace(name, where / f"{key}.o")
        except BaseException:
            os.unlink(name)
            raise
        _trim(where)
    except OSError:
        return


def _trim(where: Path) -> None:
    """Remove what was used longest ago, until the rest is within the limit.

    Files of processes that ended while they wrote are among them.
    """
    files = []
    for path in (*where.glob("*.o"), *where.glob("*.part")):
        try:
            found = path.stat()
        except OSError:  # another process was faster
            continue
        files.append((found.st_mtime, found.st_size, path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= LIMIT:
            break
        path.unlink(missing_ok=True)
        total -= size
