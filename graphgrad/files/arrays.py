"""Arrays of a file: small ones as text, those of one value as that value, others as members.

A member is a .npy file, whose header NumPy writes and reads.
"""

from __future__ import annotations

import hashlib
import io
import sys
import zlib
from math import prod
from typing import Any

import numpy as np
from numpy.lib import format as npy

from ..base.errors import FileError
from ..base.kinds import is_bfloat16
from ..ir.types import Array, DType, as_dtype
from .container import ALIGNMENT, Buffer, NewMember, StoredMember, checked

INLINE = 32  # elements of an array that is written as text
MERGED = 1 << 20  # bytes of an array that is compared with others
BLOCK = 1 << 15  # elements that are looked at together
NUMBERS = frozenset(map(np.dtype, "?bhilqBHILQefd"))
"""Whose elements are numbers of JSON, where they are finite."""
FILLED = 1 << 24  # bytes of arrays of one value that are made as arrays; beyond, they are views
CHECKED = 1 << 26  # bytes of a member whose digest is always checked
_HEADER = 1 << 12
_UNSIGNED = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}


def member_name(index: int) -> str:
    """The name of the member of an array."""
    return f"arrays/{index}.npy"


# --- writing ------------------------------------------------------------------------------------


class ArrayPool:
    """The arrays that become members, each once."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._known: dict[Any, int] = {}
        self._single: dict[Any, dict[str, Any]] = {}
        self._kept: list[Array] = []  # what is known by its place in memory stays there

    def written(self, array: Array) -> dict[str, Any]:
        """What stands for an array in the text."""
        if array.size != 1:
            return self._written(array)
        key = array.dtype, array.shape, array.tobytes()
        if key not in self._single:
            self._single[key] = self._written(array)
        return self._single[key]

    def _written(self, array: Array) -> dict[str, Any]:
        value = uniform(array)
        shape = list(array.shape)
        if value is not None:
            return {"full": [array.dtype.name, shape, _number(value)]}
        if array.size <= INLINE:
            numbers = _numbers(array)
            kind = "hex" if isinstance(numbers, str) else "values"
            return {kind: [array.dtype.name, shape, numbers]}
        if is_bfloat16(array.dtype):  # which no .npy file knows
            return {"bits": [array.dtype.name, self._member(array.view("u2"))]}
        return {"array": self._member(array)}

    def _member(self, array: Array) -> int:
        place: Any = array.ctypes.data, array.strides, array.shape, array.dtype
        if place not in self._known:
            content = _content(array)
            member = self._known.get(content, len(self.arrays))
            if member == len(self.arrays):
                self.arrays.append(array)
            if content is not None:
                self._known[content] = member
            self._known[place] = member
            self._kept.append(array)
        return self._known[place]

    def parts(self) -> list[NewMember]:
        """The members."""
        numbered = enumerate(self.arrays)
        return [NewMember(member_name(i), (_header_of(a), _bytes_of(a))) for i, a in numbered]


def _content(array: Array) -> Any:
    """What arrays that are equal have in common; None for a large one, which is not compared."""
    if array.nbytes > MERGED:
        return None
    return hashlib.sha256(_bytes_of(array)).digest(), array.shape, array.dtype


def uniform(array: Array) -> Any:
    """The one value of an array, as a NumPy scalar, bit for bit; None if there are several."""
    if not array.size:
        return array.dtype.type(0)
    flat = array.reshape(-1) if array.flags.c_contiguous else array.ravel()
    first = flat[0]
    if array.size == 1:
        return first
    bits = _UNSIGNED.get(array.dtype.itemsize)
    words = flat.view(bits) if bits else flat.view("u1").reshape(flat.size, -1)
    for at in (0, *range(64, len(words), BLOCK)):
        if (words[at : at + (BLOCK if at else 64)] != words[0]).any():
            return None
    return first


def _number(value: Any) -> Any:
    """A NumPy scalar as a number of JSON, or its bytes as text."""
    numbers = _numbers(np.asarray(value).reshape(1))
    return numbers if isinstance(numbers, str) else numbers[0]


def _numbers(array: Array) -> list[Any] | str:
    """The elements in order as numbers of JSON; their bytes as text where these are none."""
    if array.dtype in NUMBERS and bool(np.isfinite(array).all()):
        return array.ravel().tolist()
    return _little(array).tobytes().hex()


def _little(array: Array) -> Array:
    """The elements with their lowest byte first, wherever this runs."""
    return array if sys.byteorder == "little" else array.byteswap()


def _header_of(array: Array) -> bytes:
    file = io.BytesIO()
    described = npy.header_data_from_array_1_0(array.reshape(-1)[:1])
    npy.write_array_header_1_0(file, {**described, "fortran_order": False, "shape": array.shape})
    return file.getvalue()


def _bytes_of(array: Array) -> memoryview:
    flat: Any = np.ascontiguousarray(array).reshape(-1).view("u1")
    return memoryview(flat)


def digests(part: NewMember) -> tuple[int, str]:
    """CRC-32 of a member, and its digest: the same of a large one, else SHA-256."""
    crc, sha = 0, hashlib.sha256() if part.size <= CHECKED else None
    for chunk in part.chunks():
        crc = zlib.crc32(chunk, crc)
        if sha is not None:
            sha.update(chunk)
    return crc, f"crc32:{crc:08x}" if sha is None else f"sha256:{sha.hexdigest()}"


def _digest(raw: Buffer, kind: str, crc: int) -> str:
    """The digest of this kind of what has this CRC-32."""
    return f"crc32:{crc:08x}" if kind == "crc32" else f"sha256:{hashlib.sha256(raw).hexdigest()}"


# --- reading ------------------------------------------------------------------------------------


class StoredArrays:
    """The arrays of a file that is read.

    mapped  whether arrays stay views of the file
    verify  whether digests are checked: of all members; None: of those that are not large
    any_size  whether an array of one value may have any shape: what it stands for is not made
    """

    def __init__(
        self,
        buffer: Buffer,
        members: dict[str, StoredMember],
        digests: list[str],
        *,
        mapped: bool,
        verify: bool | None,
    ) -> None:
        self._buffer = buffer
        self._members = [_taken(members, member_name(i)) for i in range(len(digests))]
        self._digests = digests
        self._mapped = mapped
        self._verify = verify
        self._read: dict[int, Array] = {}
        self._left = FILLED
        self.any_size = True

    def read(self, kind: str, said: Any) -> Array:
        """The array that was written so."""
        if kind == "array":
            return self._member(said)
        if kind == "bits":
            name, index = said
            return self._as_bits(as_dtype(_text(name)), self._member(index))
        name, lengths, numbers = said
        dtype, shape = as_dtype(_text(name)), _shape(lengths)
        if kind == "full":
            return self._filled(shape, dtype, _scalar(numbers, dtype))
        size = prod(shape)
        made = _array(numbers, dtype)
        if made.shape != (size,):
            raise FileError(f"an array of shape {shape} with {made.size} elements")
        return _frozen(made.reshape(shape))

    def _as_bits(self, dtype: DType, words: Array) -> Array:
        if not is_bfloat16(dtype) or words.dtype != np.uint16:
            raise FileError(f"{words.dtype} are not bits of {dtype}")
        return words.view(dtype)

    def _filled(self, shape: tuple[int, ...], dtype: DType, value: Array) -> Array:
        size = prod(shape) * dtype.itemsize
        if size > FILLED and not self.any_size:
            raise FileError(f"an array of shape {shape} is too large here")
        if size > self._left:
            return np.broadcast_to(value, shape)
        self._left -= size
        return _frozen(np.full(shape, value, dtype))

    def _member(self, index: int) -> Array:
        if type(index) is not int or not 0 <= index < len(self._members):
            raise FileError(f"there is no array {index!r}")
        if index not in self._read:
            self._read[index] = self._loaded(index)
        return self._read[index]

    def _loaded(self, index: int) -> Array:
        member, name = self._members[index], member_name(index)
        raw: Buffer = memoryview(self._buffer)[member.offset : member.offset + member.size]
        if self._verify or (self._verify is None and member.size <= CHECKED):
            raw = checked(self._buffer, member)
            said = str(self._digests[index])
            if _digest(raw, said.partition(":")[0], member.crc) != said:
                raise FileError(f"{name}: is not the array that was saved (its digest differs)")
        shape, dtype, start = _header(raw, name)
        if prod(shape) * dtype.itemsize != member.size - start:
            raise FileError(f"{name}: says shape {shape}, which does not match its size")
        array = np.frombuffer(raw, dtype, offset=start).reshape(shape)
        aligned = (member.offset + start) % ALIGNMENT == 0
        return array if self._mapped and aligned else _frozen(array.copy())


def _taken(members: dict[str, StoredMember], name: str) -> StoredMember:
    if name not in members:
        raise FileError(f"{name}: is missing")
    return members.pop(name)


def _header(raw: Buffer, name: str) -> tuple[tuple[int, ...], DType, int]:
    """Shape and dtype of a .npy file, and where its elements begin."""
    file = io.BytesIO(raw[:_HEADER])
    try:
        if npy.read_magic(file) != (1, 0):
            raise ValueError("another version of .npy")
        shape, fortran, dtype = npy.read_array_header_1_0(file)
        native = as_dtype(dtype)
    except Exception as error:
        raise FileError(f"{name}: is not a .npy file of numbers: {error}") from None
    if fortran or native != dtype or not all(type(d) is int and d >= 0 for d in shape):
        raise FileError(f"{name}: is not in C order, or has another byte order")
    return shape, native, file.tell()


def _shape(lengths: Any) -> tuple[int, ...]:
    if not isinstance(lengths, list) or not all(type(d) is int and d >= 0 for d in lengths):
        raise FileError(f"{lengths!r:.80} is not a shape of an array")
    if len(lengths) > 64 or prod(lengths) >= 1 << 48:
        raise FileError(f"an array of shape {lengths!r:.80} is too large")
    return tuple(lengths)


def _scalar(said: Any, dtype: DType) -> Array:
    array = _array(said if isinstance(said, str) else [said], dtype)
    if array.shape != (1,):
        raise FileError(f"{said!r:.80} is not a {dtype}")
    return _frozen(array.reshape(()))


def _array(said: Any, dtype: DType) -> Array:
    """Elements in order, of numbers or of the text of their bytes."""
    try:
        if isinstance(said, str):
            return _little(np.frombuffer(bytes.fromhex(said), dtype))
        if not all(type(n) in (bool, int, float) for n in said):
            raise TypeError("not numbers")
        return np.array(said, dtype).reshape(-1)
    except (ValueError, TypeError, OverflowError) as error:
        raise FileError(f"{said!r:.80} are not elements of {dtype}: {error}") from None


def _text(said: Any) -> str:
    if not isinstance(said, str):
        raise FileError(f"{said!r:.80} is not a dtype")
    return said


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array
