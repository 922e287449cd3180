"""Types of elements by TensorFlow's names: `tf.float32`, what it is in NumPy, what counts as it."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphgrad as gg
from graphgrad.extend import as_dtype as native_dtype

__all__ = [
    "DType", "as_dtype", "bfloat16", "complex64", "complex128", "double", "float16", "float32",
    "float64", "half", "int8", "int16", "int32", "int64", "string", "uint8", "uint16", "uint32",
    "uint64",
]  # fmt: skip


class DType:
    """A type of elements. Types of variables are references (`float32_ref`); `base_dtype` is not.

    >>> float32.name, float32.as_numpy_dtype is np.float32, float32 == np.float32
    ('float32', True, True)
    """

    __slots__ = ("_numpy", "_reference", "kind", "name")

    def __init__(self, name: str, numpy: Any, reference: bool = False) -> None:
        self.name = name + "_ref" if reference else name
        self._numpy = np.dtype(numpy)
        self._reference = reference
        self.kind = "f" if name == "bfloat16" else self._numpy.kind

    @property
    def numpy(self) -> np.dtype[Any]:
        """NumPy's dtype object."""
        return self._numpy

    @property
    def as_numpy_dtype(self) -> Any:
        """NumPy's scalar type."""
        return self._numpy.type

    @property
    def base_dtype(self) -> DType:
        """The type itself, where this is a reference to it."""
        return BASES[self._numpy.name] if self._reference else self

    @property
    def _ref(self) -> DType:
        return REFERENCES[self._numpy.name]

    @property
    def _is_ref_dtype(self) -> bool:
        return self._reference

    @property
    def real_dtype(self) -> DType:
        """Of a complex type the type of its parts, else the type itself."""
        return {"complex64": float32, "complex128": float64}.get(self._numpy.name, self.base_dtype)

    @property
    def is_floating(self) -> bool:
        """Whether these are real floating numbers."""
        return self.kind == "f"

    @property
    def is_complex(self) -> bool:
        """Whether these are complex numbers."""
        return self._numpy.kind == "c"

    @property
    def is_integer(self) -> bool:
        """Whether these are integers."""
        return self._numpy.kind in "iu"

    @property
    def is_bool(self) -> bool:
        """Whether these are truth values."""
        return self._numpy.kind == "b"

    @property
    def is_unsigned(self) -> bool:
        """Whether these are integers without a sign."""
        return self._numpy.kind == "u"

    @property
    def is_trainable(self) -> bool:
        """Whether gradients flow through tensors of this type."""
        return self.kind in "fc"

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return self._numpy.itemsize

    @property
    def min(self) -> Any:
        """The least value."""
        kind = np.finfo if self._numpy.kind == "f" else np.iinfo
        return kind(self._numpy).min

    @property
    def max(self) -> Any:
        """The greatest value."""
        kind = np.finfo if self._numpy.kind == "f" else np.iinfo
        return kind(self._numpy).max

    @property
    def limits(self) -> tuple[Any, Any]:
        """The least and the greatest value."""
        return (self.min, self.max)

    @property
    def as_datatype_enum(self) -> int:
        """TensorFlow's number of the type."""
        return ENUMS.get(self._numpy.name, 7) + (100 if self._reference else 0)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a tensor of that type may stand where one of this is expected."""
        return as_dtype(other).base_dtype is self.base_dtype

    def __eq__(self, other: object) -> bool:
        if other is self:
            return True
        try:
            found = as_dtype(other)
        except (TypeError, ValueError):
            return False
        return self.name == found.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __reduce__(self) -> Any:
        return as_dtype, (self.name,)


NAMES = [
    "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
    "uint64", "complex64", "complex128", "bool",
]  # fmt: skip
BASES = {name: DType(name, name) for name in NAMES}
BASES["object"] = DType("string", object)
try:
    BASES["bfloat16"] = DType("bfloat16", native_dtype("bfloat16"))
except gg.DTypeError:  # without ml_dtypes there is the name, and nothing can be made of it
    BASES["bfloat16"] = DType("bfloat16", np.dtype("V2"))
REFERENCES = {key: DType(base.name, base.numpy, True) for key, base in BASES.items()}
ENUMS = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "object": 7}
ENUMS |= {"complex64": 8, "int64": 9, "bool": 10, "uint16": 17, "complex128": 18, "float16": 19}

float16, float32, float64 = BASES["float16"], BASES["float32"], BASES["float64"]
int8, int16, int32, int64 = (BASES[n] for n in ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = (BASES[n] for n in ("uint8", "uint16", "uint32", "uint64"))
complex64, complex128, bool_ = BASES["complex64"], BASES["complex128"], BASES["bool"]
string = BASES["object"]
half, double, bfloat16 = float16, float64, BASES["bfloat16"]

ALIASES: dict[str, str] = {"float": "float32", "double": "float64", "half": "float16"}
ALIASES |= {"string": "object", "bool_": "bool", "int": "int32"}
_TYPES: dict[Any, DType] = {
    float: float32, int: int32, bool: bool_, complex: complex128, str: string, bytes: string,
    object: string,
}  # fmt: skip


def as_dtype(value: Any) -> DType:
    """The type of elements that a DType, a name, a NumPy type or a Python type stands for."""
    if isinstance(value, DType):
        return value
    found = _TYPES.get(value) if isinstance(value, type) else None
    if found is not None:
        return found
    if isinstance(value, str):
        reference = value.endswith("_ref")
        name = value.removesuffix("_ref")
        name = ALIASES.get(name, name)
        if name in BASES:
            return REFERENCES[name] if reference else BASES[name]
        if name == "a":  # of bytes, once, in NumPy
            raise TypeError(f"Cannot convert value {value!r} to a TensorFlow DType.")
    try:
        kind = np.dtype(value)
    except TypeError:
        raise TypeError(f"Cannot convert value {value!r} to a TensorFlow DType.") from None
    if kind.kind in "SU":
        return string
    if value is None or kind.name not in BASES:
        raise TypeError(f"Cannot convert value {value!r} to a TensorFlow DType.")
    return BASES[kind.name]
