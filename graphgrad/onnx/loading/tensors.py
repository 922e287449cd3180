"""Stored tensors as arrays. What is not in the file itself is mapped, and lies in its folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import FileError
from ...base.kinds import bfloat16
from ...ir.types import Array, DType
from ..package import onnx
from .narrow import Narrow, narrow_array, narrow_of

MOST_AXES = 64
NAMES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
}
"""ONNX's numbers for the dtypes that tensors of a graph have."""


def dtype_of(number: int, what: str) -> DType:
    """The dtype for ONNX's number; FileError where no tensor of a graph has it."""
    name = NAMES.get(number)
    if name is None:
        raise FileError(f"{what} is of {type_name(number)}, which tensors do not support")
    return bfloat16() if name == "bfloat16" else np.dtype(name)


def length_of(dim: Any) -> int | str | None:
    """A length that a file says: an int, a name, or None where nothing is said."""
    kind = dim.WhichOneof("value")
    if kind == "dim_value":
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return None if dim.dim_param in ("", "?") else str(dim.dim_param)


def type_name(number: int) -> str:
    """ONNX's name of an element type."""
    names = {v: k for k, v in onnx.TensorProto.DataType.items()}
    return str(names.get(number, f"the unknown type {number}")).lower()


def array_of_tensor(stored: Any, folder: Path | None) -> Array:
    """The array of a TensorProto, read-only; its data are counted before anything is made.

    folder: where files of external data may lie; None: nowhere.
    """
    what = f"the tensor {stored.name!r:.80}"
    shape = _shape(stored.dims, what)
    narrow = narrow_of(stored.data_type)
    if narrow is not None:
        return narrow_array(_bytes_of(stored, folder, shape, narrow, what), narrow, shape, what)
    dtype = dtype_of(stored.data_type, what)
    size = prod(shape)
    if stored.data_location == onnx.TensorProto.EXTERNAL:
        return _mapped(stored, folder, shape, dtype, what)
    if stored.HasField("raw_data"):
        raw = stored.raw_data
        if len(raw) != size * dtype.itemsize:
            raise FileError(
                f"{what} of {size} elements of {dtype} has {len(raw)} bytes, not "
                f"{size * dtype.itemsize}"
            )
        little = dtype.newbyteorder("<") if dtype.kind != "V" else dtype
        array: Array = np.frombuffer(raw, little).reshape(shape)
        return array
    return _listed(stored, shape, size, dtype, what)


def _bytes_of(
    stored: Any, folder: Path | None, shape: tuple[int, ...], kind: Narrow, what: str
) -> Array:
    """The bytes of elements that no tensor has."""
    uint8 = np.dtype("uint8")
    if stored.data_location == onnx.TensorProto.EXTERNAL:
        count = -(-prod(shape) * kind.bits // 8)
        return _mapped(stored, folder, (count,), uint8, what)
    if stored.HasField("raw_data"):
        return np.frombuffer(stored.raw_data, uint8)
    return np.array(stored.int32_data, "int64").astype(uint8)


def _shape(dims: Sequence[int], what: str) -> tuple[int, ...]:
    if len(dims) > MOST_AXES or any(d < 0 for d in dims):
        raise FileError(f"{what} has the shape {list(dims)[:8]}, which is not a shape")
    return tuple(int(d) for d in dims)


def _listed(stored: Any, shape: tuple[int, ...], size: int, dtype: DType, what: str) -> Array:
    """Of numbers that stand one by one."""
    fields = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")
    count = sum(len(getattr(stored, field)) for field in fields)
    if count != size * (2 if dtype.kind == "c" else 1):
        raise FileError(f"{what} has {size} elements by its shape, and {count} numbers")
    try:
        numbers = onnx.numpy_helper.to_array(stored)
    except Exception as error:
        raise FileError(f"{what} cannot be read: {error!s:.200}") from None
    array: Array = np.array(numbers.reshape(shape), dtype)
    array.flags.writeable = False
    return array


def _mapped(
    stored: Any, folder: Path | None, shape: tuple[int, ...], dtype: DType, what: str
) -> Array:
    """Of a file beside the model."""
    said = {pair.key: pair.value for pair in stored.external_data}
    path = file_inside(folder, said.get("location", ""), what)
    size = prod(shape) * dtype.itemsize
    try:
        offset, length = int(said.get("offset", 0)), int(said.get("length", size))
    except ValueError:
        raise FileError(f"{what} has an offset that is not a number") from None
    there = os.stat(path).st_size
    if length != size or offset < 0 or offset + size > there:
        raise FileError(
            f"{what} needs {size} bytes, but is declared to have {length} at {offset} of "
            f"{path.name!r}, which has {there}"
        )
    if not size:
        return np.zeros(shape, dtype)
    flat = np.memmap(path, dtype=np.uint8, mode="r", offset=offset, shape=(size,))
    array: Array = np.asarray(flat).view(dtype).reshape(shape)
    return array


def file_inside(folder: Path | None, location: str, what: str) -> Path:
    """The file that a location names; FileError unless it lies in the folder, links followed."""
    if folder is None:
        raise FileError(f"{what} is in another file, {location!r:.80}; load it from its folder")
    given = Path(location)
    if not location or given.is_absolute() or ".." in given.parts or "\0" in location:
        raise FileError(f"{what} is at {location!r:.80}, which is not in the model's folder")
    try:
        path = (folder / given).resolve(strict=True)
    except (OSError, RuntimeError):
        raise FileError(f"{what} is in {location!r:.80}, which does not exist") from None
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise FileError(f"{what} is at {location!r:.80}, which leads out of the model's folder")
    return path
