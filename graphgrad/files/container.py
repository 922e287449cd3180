"""The container: a zip file of uncompressed members whose data begin at multiples of 64 bytes.

What is written depends on nothing but the members: no time, no machine. What is read is checked
before anything is allocated for it. Sizes and places beyond 4 GiB stand in zip64 fields.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from struct import Struct
from struct import error as StructError
from typing import IO, Any, NamedTuple

from ..base.errors import FileError

Buffer = bytes | memoryview

ALIGNMENT = 64
MOST_MEMBERS = 1_000_000
LONGEST_NAME = 40
CHUNK = 1 << 20
CHECKED_BYTES: ContextVar[Callable[[int], None] | None] = ContextVar("checked", default=None)
"""Who is told how many bytes were checked, as they are."""

_LOCAL = Struct("<4sHHHHHIIIHH")
_CENTRAL = Struct("<4sHHHHHHIIIHHHHHII")
_END = Struct("<4sHHHHIIH")
_END_64 = Struct("<4sQHHIIQQQQ")
_LOCATOR = Struct("<4sIQI")
_SIZES_64 = Struct("<HHQQ")
_PLACE_64 = Struct("<HHQQQ")
_PADDING = Struct("<HH")
_MARKS = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
_MANY, _LARGE = 0xFFFF, 0xFFFFFFFF  # what stands where a number is in a zip64 field
FROM_64 = _LARGE  # sizes and places from here on are in zip64 fields
_FIRST_DAY = 33  # 1980-01-01, the first that a zip file knows
_MODE = 0o100644 << 16
_PADDED = 0xD935  # the extra field of padding, as zipalign calls it


class NewMember(NamedTuple):
    """A member to be written: its name and its bytes, in pieces."""

    name: str
    pieces: Sequence[Buffer]

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return sum(len(p) for p in self.pieces)

    def chunks(self) -> Iterator[Buffer]:
        """Its bytes, a few at a time."""
        for piece in self.pieces:
            for at in range(0, len(piece), CHUNK):
                yield piece[at : at + CHUNK]


class StoredMember(NamedTuple):
    """A member of a file: where its bytes begin, how many there are, and their check sum."""

    name: str
    offset: int
    size: int
    crc: int


# --- writing ------------------------------------------------------------------------------------


def write(file: IO[bytes], parts: Iterable[tuple[NewMember, int]]) -> None:
    """Write parts, each with the CRC-32 of its bytes."""
    place, central = 0, []
    for part, crc in parts:
        header = _local_header(part, crc, place)
        central.append(_central_header(part, crc, place))
        file.write(header)
        for chunk in part.chunks():
            file.write(chunk)
        place += len(header) + part.size
    directory = b"".join(central)
    file.write(directory)
    file.write(_end(len(central), len(directory), place))


def crc_of(part: NewMember) -> int:
    """The CRC-32 of its bytes."""
    crc = 0
    for chunk in part.chunks():
        crc = zlib.crc32(chunk, crc)
    return crc


def _local_header(part: NewMember, crc: int, place: int) -> bytes:
    """With as much padding as lets the data begin at a multiple of 64."""
    name, size = part.name.encode("ascii"), part.size
    large = size >= FROM_64
    extra = _SIZES_64.pack(1, 16, size, size) if large else b""
    short = -(place + _LOCAL.size + len(name) + len(extra)) % ALIGNMENT
    if short:
        short += ALIGNMENT if short < _PADDING.size else 0
        zeros = bytes(short - _PADDING.size)
        extra += _PADDING.pack(_PADDED, len(zeros)) + zeros
    said = _LARGE if large else size
    row = (45 if large else 20, 0, 0, 0, _FIRST_DAY, crc, said, said, len(name), len(extra))
    return _LOCAL.pack(_MARKS[0], *row) + name + extra


def _central_header(part: NewMember, crc: int, place: int) -> bytes:
    name, size = part.name.encode("ascii"), part.size
    large = size >= FROM_64 or place >= FROM_64
    extra = _PLACE_64.pack(1, 24, size, size, place) if large else b""
    said, at = (_LARGE, _LARGE) if large else (size, place)
    version = 45 if large else 20
    row = (3 << 8 | version, version, 0, 0, 0, _FIRST_DAY, crc, said, said, len(name), len(extra))
    return _CENTRAL.pack(_MARKS[1], *row, 0, 0, 0, _MODE, at) + name + extra


def _end(count: int, size: int, place: int) -> bytes:
    if count < _MANY and place < FROM_64 and size < FROM_64:
        return _END.pack(_MARKS[2], 0, 0, count, count, size, place, 0)
    end = _END_64.pack(
        _MARKS[3], _END_64.size - 12, 3 << 8 | 45, 45, 0, 0, count, count, size, place
    )
    locator = _LOCATOR.pack(_MARKS[4], 0, place + size, 1)
    return end + locator + _END.pack(_MARKS[2], 0, 0, _MANY, _MANY, _LARGE, _LARGE, 0)


# --- reading ------------------------------------------------------------------------------------


def members_of(buffer: Buffer) -> dict[str, StoredMember]:
    """The members of a file, by name, in order; FileError where it is no such container."""
    try:
        return _members(buffer)
    except StructError:
        raise FileError("the file ends inside a header") from None


def _members(buffer: Buffer) -> dict[str, StoredMember]:
    count, size, place, end = _directory(buffer)
    if count > MOST_MEMBERS:
        raise FileError(f"it says that it has {count} members; at most {MOST_MEMBERS} are read")
    most = count * (_CENTRAL.size + LONGEST_NAME + _PLACE_64.size)
    if place + size != end or not count * _CENTRAL.size <= size <= most:
        raise FileError("its directory is not where the end of the file says, or too large")
    members: dict[str, StoredMember] = {}
    free, at = 0, place
    for _ in range(count):
        member, start, at = _central_entry(buffer, at, end)
        if member.name in members:
            raise FileError(f"{member.name}: there are two members of that name")
        if start < free:
            raise FileError(f"{member.name}: overlaps the member before it")
        offset = _data_of(buffer, member, start)
        free = offset + member.size
        if free > place:
            raise FileError(
                f"{member.name}: of {member.size} bytes, extends beyond the end of the file"
            )
        members[member.name] = member._replace(offset=offset)
    if at != end:
        raise FileError("its directory has more than its entries")
    return members


def _directory(buffer: Buffer) -> tuple[int, int, int, int]:
    """How many members there are, size and place of the directory, and where it has to end."""
    end = len(buffer) - _END.size
    if end < 0 or bytes(buffer[end : end + 4]) != _MARKS[2]:
        raise FileError("it does not end like a zip file: it is not one, or was truncated")
    _, disk, other, count, total, size, place, comment = _END.unpack_from(buffer, end)
    if disk or other or count != total or comment:
        raise FileError("its end is not one that graphgrad writes")
    if count != _MANY and size != _LARGE and place != _LARGE:
        return count, size, place, end
    at = end - _LOCATOR.size
    mark, _, last, _ = _LOCATOR.unpack_from(buffer, max(at, 0))
    if mark != _MARKS[4]:
        return count, size, place, end
    if last != at - _END_64.size:
        raise FileError("its end is not one that graphgrad writes")
    mark, *_, count, total, size, place = _END_64.unpack_from(buffer, last)
    if mark != _MARKS[3] or count != total:
        raise FileError("its end is not one that graphgrad writes")
    return count, size, place, last


def _central_entry(buffer: Buffer, at: int, end: int) -> tuple[StoredMember, int, int]:
    """A member without its place, where its local header begins, and where the next entry does."""
    row = _CENTRAL.unpack_from(buffer, at)
    mark, _, _, flags, method, _, _, crc, packed, size, named, extra, comment, *_, start = row
    after = at + _CENTRAL.size
    if mark != _MARKS[1] or after + named + extra > end or comment or named > LONGEST_NAME:
        raise FileError("its directory is broken")
    name = _name(buffer, after, named)
    if flags or method or packed != size:
        raise FileError(f"{name}: is compressed or encrypted; members are stored as they are")
    if _LARGE in (size, start):
        size, start = _large(buffer, after + named, extra, name, _PLACE_64)[1:]
    return StoredMember(name, 0, size, crc), start, after + named + extra


def _data_of(buffer: Buffer, member: StoredMember, start: int) -> int:
    """Where the bytes of a member begin; its local header has to say what the directory does."""
    if start + _LOCAL.size > len(buffer):
        raise FileError(f"{member.name}: begins beyond the end of the file")
    mark, _, flags, method, _, _, crc, packed, size, named, extra = _LOCAL.unpack_from(
        buffer, start
    )
    name = start + _LOCAL.size
    if size == _LARGE:
        packed, size = _large(buffer, name + named, extra, member.name, _SIZES_64)
    same = (flags, method, crc, packed, size) == (0, 0, member.crc, member.size, member.size)
    if mark != _MARKS[0] or not same or named > LONGEST_NAME:
        raise FileError(f"{member.name}: its header does not match the directory")
    if _name(buffer, name, named) != member.name:
        raise FileError(f"{member.name}: has another name in its own header")
    return name + named + extra  # type: ignore[no-any-return]


def _name(buffer: Buffer, at: int, length: int) -> str:
    raw = bytes(buffer[at : at + length])
    if len(raw) != length or not raw.isascii() or not raw.decode("ascii").isprintable():
        raise FileError(f"a member is called {raw!r}")
    return raw.decode("ascii")


def _large(buffer: Buffer, at: int, length: int, name: str, layout: Struct) -> Sequence[Any]:
    """The fields of a zip64 extra, which stands first."""
    tag, size, *fields = layout.unpack_from(buffer, at)
    if length < layout.size or (tag, size) != (1, layout.size - 4):
        raise FileError(f"{name}: is larger than 4 GiB, and its size is not recorded")
    return fields


def checked(buffer: Buffer, member: StoredMember) -> Buffer:
    """The bytes of a member; FileError if they are not those that were written."""
    content = memoryview(buffer)[member.offset : member.offset + member.size]
    crc, tell = 0, CHECKED_BYTES.get()
    for at in range(0, len(content), CHUNK):
        part = content[at : at + CHUNK]
        crc = zlib.crc32(part, crc)
        if tell is not None:
            tell(len(part))
    if crc != member.crc:
        raise FileError(f"{member.name}: is damaged (its checksum differs)")
    return content
