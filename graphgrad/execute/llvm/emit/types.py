"""What code is made for: LLVM's names of types, and the machine."""

from __future__ import annotations

import struct
from typing import NamedTuple

from ....base.kinds import is_bfloat16
from ....ir.types import DType

INTEGERS = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
FLOATS = {4: "float", 8: "double"}
INTEGER_OF = {"float": "i32", "double": "i64"}
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "float": 32, "double": 64}


class Target(NamedTuple):
    """The machine that code is made for.

    cpu, features  LLVM's names
    width          bytes of a vector register
    fma            whether a * b + c is one instruction with one rounding
    scalef         whether a * 2**n is one instruction (AVX-512)
    """

    cpu: str
    features: str
    width: int
    fma: bool
    scalef: bool

    def lanes(self, element: str) -> int:
        """How many numbers a vector register holds."""
        return self.width * 8 // max(BITS[element], 8)


def element_of(dtype: DType) -> str | None:
    """LLVM's type of a number while it is computed with, None where there is none."""
    if dtype.kind == "b":
        return "i1"
    if is_bfloat16(dtype):
        return "i16"  # its bits, which casts alone look into
    names = FLOATS if dtype.kind == "f" else INTEGERS if dtype.kind in "iu" else {}
    return names.get(dtype.itemsize)


def stored(element: str) -> str:
    """The type in memory: a bool is a byte there."""
    return "i8" if element == "i1" else element


def vector(element: str, lanes: int) -> str:
    """A vector type; the scalar type for one lane."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


def suffix(element: str, lanes: int) -> str:
    """The type in the name of an intrinsic: `v16f32`."""
    kind = f"f{BITS[element]}" if element in ("float", "double") else element
    return kind if lanes == 1 else f"v{lanes}{kind}"


def literal(element: str, value: float) -> str:
    """A number as IR text, exactly: floats are written by their bits, as a double's."""
    if element == "i1":
        return "true" if value else "false"
    if element == "float":
        value = struct.unpack("f", struct.pack("f", value))[0]
    if element in ("float", "double"):
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    return str(int(value))
