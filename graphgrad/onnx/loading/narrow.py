"""Elements that no tensor of a graph has: of four bits, and floats of eight.

Arrays hold them while a model is loaded; as tensors they are int8, uint8 and float32, of the same
numbers.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import FileError
from ...base.lazy import lazy_module
from ...ir.types import Array, DType

__all__ = ["NARROW", "Narrow", "narrow_array", "narrow_of", "narrow_of_dtype", "widened"]

ml_dtypes: Any = lazy_module("ml_dtypes")


class Narrow(NamedTuple):
    """An element type of ONNX.

    name   that of ml_dtypes
    wide   that of tensors
    low, high  its least and greatest number
    bits   of one element
    """

    name: str
    wide: str
    low: float
    high: float
    bits: int

    @property
    def dtype(self) -> DType:
        """That of arrays of it."""
        dtype: DType = np.dtype(getattr(ml_dtypes, self.name))
        return dtype


NARROW = {
    17: Narrow("float8_e4m3fn", "float32", -448.0, 448.0, 8),
    19: Narrow("float8_e5m2", "float32", -57344.0, 57344.0, 8),
    21: Narrow("uint4", "uint8", 0, 15, 4),
    22: Narrow("int4", "int8", -8, 7, 4),
}
"""{ONNX's number: element type}."""

_BY_NAME = {kind.name: kind for kind in NARROW.values()}


def narrow_of(number: int) -> Narrow | None:
    """The type of ONNX's number; None for one that tensors have."""
    return NARROW.get(number)


def narrow_of_dtype(dtype: DType) -> Narrow | None:
    """The type of an array's elements; None for one that tensors have."""
    return _BY_NAME.get(dtype.name)


def narrow_array(raw: Array, kind: Narrow, shape: tuple[int, ...], what: str) -> Array:
    """The elements that bytes hold; two of four bits are in one, the first in its lower half."""
    size = prod(shape)
    wanted = -(-size * kind.bits // 8)
    if raw.size != wanted:
        raise FileError(
            f"{what} of {size} elements of {kind.name} has {raw.size} bytes, not {wanted}"
        )
    if kind.bits == 4:
        halves = np.stack([raw & 15, raw >> 4], axis=-1).reshape(-1)[:size].astype("int8")
        numbers = np.where(halves > kind.high, halves - 16, halves)
        array = numbers.astype(kind.dtype)
    else:
        array = raw.view(kind.dtype)
    array = array.reshape(shape)
    array.flags.writeable = False
    return array


def widened(array: Array) -> Array:
    """The array as a tensor holds it."""
    kind = narrow_of_dtype(array.dtype)
    return array if kind is None else array.astype(kind.wide)
