"""Plain values as JSON and back: what attributes of ops, of regions and metadata are made of.

None, bools, ints, finite floats and strings are themselves and a tuple is a list. All else is an
object of one entry, whose key says what it is.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, Protocol

import numpy as np

from ..base.errors import DTypeError, FileError
from ..base.length import Length
from ..ir.types import Array, TensorType, as_dtype
from ..ops.base import DEFAULT, NO_GRAD, ZERO, Marker

LARGEST = 1 << 63
_MARKERS = {repr(m): m for m in (NO_GRAD, ZERO, DEFAULT)}


class ValueWriter(Protocol):
    """Knows where in the file a thing stands, or puts it there."""

    def array(self, array: Array) -> Any:
        """What stands for an array."""

    def type_place(self, type: TensorType) -> int:
        """The place of a type."""

    def op(self, op: Any) -> int:
        """The place of an op."""

    def function(self, fn: Any) -> str | None:
        """The name that a function is registered under."""


class ValueReader(Protocol):
    """Knows what stands where in the file."""

    def array(self, kind: str, said: Any) -> Array:
        """The array that is written so."""

    def type_at(self, at: Any) -> TensorType:
        """The type at a place."""

    def op(self, at: Any) -> Any:
        """The op at a place."""

    def function(self, name: Any) -> Any:
        """The function of a name."""


class Unwritten(Exception):
    """A value that has no form in a file; the message says which."""


DEEPEST = 100
"""Values inside one another: as many as can be read wherever a file is loaded."""


def written(value: Any, to: ValueWriter, depth: int = 0) -> Any:
    """A value as JSON; Unwritten for one that has no form, or lies too deep in others."""
    if depth > DEEPEST:
        raise Unwritten(f"more than {DEEPEST} values inside one another")
    deeper = depth + 1
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        return value if -LARGEST <= value < LARGEST else {"int": hex(value)}
    if type(value) is float:
        return value if isfinite(value) else {"float": repr(value)}
    if type(value) is tuple:
        return [written(v, to, deeper) for v in value]
    if type(value) is complex:
        return {"complex": [written(value.real, to), written(value.imag, to)]}
    if type(value) is list:
        return {"list": [written(v, to, deeper) for v in value]}
    if type(value) is dict:
        pairs = value.items()
        return {"dict": [[written(k, to, deeper), written(v, to, deeper)] for k, v in pairs]}
    if type(value) is bytes:
        return {"bytes": value.hex()}
    return _other(value, to)


def _other(value: Any, to: ValueWriter) -> Any:
    if isinstance(value, np.dtype):
        return {"dtype": as_dtype(value).name}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"scalar type": as_dtype(value).name}
    if isinstance(value, np.ndarray):
        return to.array(_of_numbers(value))
    if isinstance(value, np.generic):
        return {"scalar": to.array(_of_numbers(np.asarray(value)))}
    if isinstance(value, TensorType):
        return {"type": to.type_place(value)}
    if isinstance(value, Marker):
        return {"marker": repr(value)}
    if isinstance(value, Length):
        return {"length": str(value)}
    if hasattr(type(value), "infer") and hasattr(value, "attrs"):
        return {"op": to.op(value)}
    if callable(value):
        name = to.function(value)
        if name is None:
            said = getattr(value, "__name__", type(value).__name__)
            raise Unwritten(
                f"the function {said!r}, and a file carries no code. Give it a name with "
                "@gg.register_function, also where the file is loaded"
            )
        return {"function": name}
    raise Unwritten(f"{value!r:.80}, a {type(value).__name__}, which cannot be stored in a file")


def _of_numbers(array: Array) -> Array:
    """The array, in the byte order of this machine; Unwritten for what is more than numbers."""
    if type(array) not in (np.ndarray, np.memmap):
        raise Unwritten(
            f"a {type(array).__name__}, which holds more than its numbers: convert it with "
            "np.asarray"
        )
    try:
        return array.astype(as_dtype(array.dtype), copy=False)
    except DTypeError:
        raise Unwritten(f"an array of dtype {array.dtype}, which holds no numbers") from None


def read(said: Any, by: ValueReader) -> Any:
    """The value that was written so; FileError for what nothing is written as."""
    if said is None or type(said) in (bool, int, float, str):
        return said
    if type(said) is list:
        return tuple([read(v, by) for v in said])
    if type(said) is not dict or len(said) != 1:
        raise FileError(f"{said!r:.80} is not a value")
    ((kind, inside),) = said.items()
    if kind in ("array", "bits", "full", "values", "hex"):
        return by.array(kind, inside)
    reader = _READERS.get(kind)
    if reader is None:
        raise FileError(f"{said!r:.80} is not a value")
    return reader(inside, by)


def _scalar(said: Any, by: ValueReader) -> Any:
    array = read(said, by)
    if not isinstance(array, np.ndarray) or array.shape != ():
        raise FileError(f"{said!r:.80} is not a scalar")
    return array[()]


def _marker(said: Any, by: ValueReader) -> Any:
    if said not in _MARKERS:
        raise FileError(f"{said!r:.80} is not a marker")
    return _MARKERS[said]


_READERS: dict[str, Any] = {
    "int": lambda said, by: int(said, 16),
    "float": lambda said, by: {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}[said] + 0.0,
    "complex": lambda said, by: complex(*[read(v, by) for v in said]),
    "list": lambda said, by: [read(v, by) for v in said],
    "dict": lambda said, by: {read(k, by): read(v, by) for k, v in said},
    "bytes": lambda said, by: bytes.fromhex(said),
    "dtype": lambda said, by: as_dtype(str(said)),
    "scalar type": lambda said, by: as_dtype(str(said)).type,
    "scalar": _scalar,
    "type": lambda said, by: by.type_at(said),
    "marker": _marker,
    "length": lambda said, by: Length(str(said)),
    "op": lambda said, by: by.op(said),
    "function": lambda said, by: by.function(said),
}
