"""Files of events, as TensorBoard reads them: records with checksums, each a small message.

Format: a record is its length (8 bytes), the masked CRC-32C of those, the data, and that of the
data. An Event holds wall_time (field 1), step (2), file_version (3) or a Summary (5), whose values
(1) hold a tag (1) and a simple_value (2).
"""

from __future__ import annotations

import os
import socket
import struct
import time
from functools import cache
from pathlib import Path
from typing import IO

__all__ = ["EventFile"]


@cache
def _table() -> list[int]:
    """The remainders of all bytes, by Castagnoli's polynomial."""
    rows = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        rows.append(byte)
    return rows


def masked_crc(data: bytes) -> int:
    """The checksum of a record: CRC-32C, rotated and moved."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _varint(n: int) -> bytes:
    n &= (1 << 64) - 1
    parts = bytearray()
    while n > 0x7F:
        parts.append(n & 0x7F | 0x80)
        n >>= 7
    parts.append(n)
    return bytes(parts)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


class EventFile:
    """One file of events in a folder, which is made."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}"
        path = Path(folder, name)
        number = 0
        while path.exists():
            number += 1
            path = Path(folder, f"{name}.{number}")
        self._file: IO[bytes] = path.open("wb")
        self._write(_field(3, b"brain.Event:2"))

    def scalar(self, tag: str, value: float, step: int | None) -> None:
        """Write a number of a step."""
        one = _field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)
        event = _field(5, _field(1, one))
        if step is not None:
            event = b"\x10" + _varint(int(step)) + event
        self._write(event)

    def _write(self, event: bytes) -> None:
        data = b"\x09" + struct.pack("<d", time.time()) + event
        length = struct.pack("<Q", len(data))
        crcs = [struct.pack("<I", masked_crc(part)) for part in (length, data)]
        self._file.write(length + crcs[0] + data + crcs[1])

    def flush(self) -> None:
        """Write what waits."""
        self._file.flush()

    def close(self) -> None:
        """Write what waits, and end."""
        self._file.close()
