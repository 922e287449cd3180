"""Kinds of dtypes: NumPy's letters, and what NumPy does not know of bfloat16.

NumPy gets bfloat16 from ml_dtypes (the extra `bfloat16`), says "V" (raw bytes) of it, and no to
`issubdtype(bfloat16, floating)`. So nothing asks a dtype for its `kind`; what a dtype is stands
here. bfloat16 is what the upper half of a float32 holds: its range, and 8 bits of its precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import DTypeError
from .lazy import lazy_module

DType = np.dtype[Any]
FLOAT32: DType = np.dtype(np.float32)
_ml_dtypes: Any = lazy_module("ml_dtypes")
_ORDER = "buifc"
_HELD = frozenset(map(np.dtype, ("bool", "int8", "uint8")))
"""Of other dtypes, those of which bfloat16 holds every number."""


def kind_of(dtype: DType) -> str:
    """NumPy's letter: b(ool), i(nteger), u(nsigned), f(loating), c(omplex), or of no number."""
    kind = dtype.kind
    return "f" if kind == "V" and is_bfloat16(dtype) else kind


def is_floating(dtype: DType) -> bool:
    """Whether it is of real floating numbers."""
    return dtype.kind == "f" or is_bfloat16(dtype)


def is_inexact(dtype: DType) -> bool:
    """Whether it is of floating or complex numbers: what can have a gradient."""
    return dtype.kind in "fc" or is_bfloat16(dtype)


def is_bfloat16(dtype: DType) -> bool:
    """Whether it is bfloat16."""
    return dtype.kind == "V" and dtype.type.__name__ == "bfloat16"


def is_half(dtype: DType) -> bool:
    """Whether it is float16 or bfloat16."""
    return dtype.itemsize == 2 and is_floating(dtype)


def accumulated_in(dtype: DType) -> DType:
    """The dtype that sums are accumulated in: float32 for 16 bits, else the dtype itself."""
    return FLOAT32 if is_half(dtype) else dtype


def bfloat16() -> DType:
    """The dtype; DTypeError without ml_dtypes."""
    if _ml_dtypes is None:
        raise DTypeError("bfloat16 needs the package ml_dtypes: pip install 'graphgrad[bfloat16]'")
    dtype: DType = np.dtype(_ml_dtypes.bfloat16)
    return dtype


def limits_of(dtype: DType) -> Any:
    """np.finfo of a floating or complex dtype."""
    return _ml_dtypes.finfo(dtype) if is_bfloat16(dtype) else np.finfo(dtype)


def common_dtype(dtypes: list[Any], numbers: list[Any]) -> DType:
    """The dtype that NumPy 2 gives dtypes and Python numbers, which are weak.

    bfloat16 stays itself beside bools, integers and Python's floats, and counts as float32 beside
    all else that is floating or complex. TypeError where there is none.
    """
    if not any(map(is_bfloat16, dtypes)):
        return np.result_type(*dtypes, *numbers)
    others = [d for d in dtypes if not is_bfloat16(d)]
    if any(map(is_inexact, others)) or any(isinstance(n, complex) for n in numbers):
        wide = [d for d in others if is_inexact(d)]
        return np.result_type(FLOAT32, *wide, *numbers)
    return bfloat16()


def can_cast(start: DType, end: DType, casting: Any = "safe") -> bool:
    """np.can_cast of two dtypes."""
    short, short_end = is_bfloat16(start), is_bfloat16(end)
    if short is short_end:
        return short or np.can_cast(start, end, casting)
    if casting == "unsafe":
        return True
    if casting == "same_kind":
        return -1 < _ORDER.find(kind_of(start)) <= _ORDER.find(kind_of(end))
    if casting != "safe":
        return False
    return np.can_cast(FLOAT32, end) if short else start in _HELD
