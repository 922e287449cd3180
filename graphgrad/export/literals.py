"""Values as Python expressions that make them again, bit for bit."""

from __future__ import annotations

import builtins
import functools
import itertools
import math
import operator
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ir.types import Array, as_dtype
from .known import is_local

__all__ = ["MODULES", "NotLiteral", "array_text", "dtype_name", "literal", "named", "place"]

MODULES = {m.__name__: m for m in (math, functools, itertools, operator, zlib)}
"""Modules of the standard library that kernels use."""

_NUMPY = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft, "np.random": np.random}
SHORT = 2000
"""Characters; longer sequences are computed where the file runs."""


class NotLiteral(Exception):
    """There is no expression for a value by itself."""


def literal(value: Any) -> str:
    """An expression for a plain value; NotLiteral."""
    if is_local(value):
        return str(value.name)
    if value is None or value is Ellipsis or isinstance(value, bool | str):
        return "..." if value is Ellipsis else repr(value)
    if isinstance(value, np.generic):
        return _number(value)
    if isinstance(value, int):
        return repr(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, complex):
        return f"complex({_float(value.real)}, {_float(value.imag)})"
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
        return f"slice({', '.join(map(literal, parts))})"
    if isinstance(value, range):
        return repr(value)
    if isinstance(value, np.dtype):
        return f'np.dtype("{value.name}")'
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return _sequence(value)
    if isinstance(value, Iterator):
        return _sequence(tuple(value))
    return named(value)


def _sequence(value: tuple[Any, ...] | list[Any]) -> str:
    if isinstance(value, tuple) and any(type(v) is slice for v in value):
        return f"np.s_[{', '.join(map(place, value))}{',' * (len(value) == 1)}]"
    text = ", ".join(map(literal, value))
    if len(text) > SHORT:
        raise NotLiteral
    if isinstance(value, list):
        return f"[{text}]"
    return f"({text},)" if len(value) == 1 else f"({text})"


def place(item: Any) -> str:
    """What stands between brackets: `0:4`."""
    if type(item) is not slice:
        return literal(item)
    ends = ["" if e is None else literal(e) for e in (item.start, item.stop)]
    return ":".join([*ends, *([] if item.step in (None, 1) else [literal(item.step)])])


def named(value: Any) -> str:
    """What NumPy, Python and its standard library call a value; NotLiteral."""
    name = getattr(value, "__name__", None)
    if value is as_dtype:
        return "np.dtype"
    if isinstance(name, str):
        if value is np:
            return "np"
        for module, namespace in {**_NUMPY, **MODULES}.items():
            if namespace is value or vars(namespace).get(name) is value:
                return module if namespace is value else f"{module}.{name}"
        if getattr(builtins, name, None) is value:
            return name
    raise NotLiteral


def _float(value: float) -> str:
    if math.isnan(value):
        return "np.nan"
    return repr(value) if math.isfinite(value) else ("-" * (value < 0) + "np.inf")


def dtype_name(dtype: np.dtype[Any]) -> str:
    """`np.float64`."""
    return f"np.{'bool_' if dtype.kind == 'b' else dtype.name}"


def _number(value: Any) -> str:
    return f"{dtype_name(value.dtype)}({_plain(value)})"


def _plain(value: Any) -> str:
    """A NumPy scalar as a Python number, as short as it is right."""
    if value.dtype.kind == "f" and value.dtype.itemsize < 8:
        short = _float(float(str(value)))
        return short if value.dtype.type(float(str(value))) == value else _float(float(value))
    return literal(value.item())


def array_text(array: Array, small: int) -> str | None:
    """An expression for an array; None where its bits cannot be had back from one, or it has more
    than `small` elements that are not all the same."""
    dtype = dtype_name(array.dtype)
    first = array.ravel()[:1]
    if array.ndim and array.tobytes() == first.tobytes() * array.size:
        if not array.size or not any(first.tobytes()):
            return f"np.zeros({literal(array.shape)}, {dtype})"
        text = f"np.full({literal(array.shape)}, {_plain(first[0])}, {dtype})"
    elif array.size > small:
        return None
    elif not array.ndim:
        text = f"np.array({_plain(array[()])}, {dtype})"
    else:
        text = f"np.array({_nested(array)}, {dtype})"
    made = eval(text, {"np": np})
    return text if made.tobytes() == array.tobytes() else None


def _nested(array: Array) -> str:
    if array.ndim == 1:
        return f"[{', '.join(map(_plain, array))}]"
    return f"[{', '.join(map(_nested, array))}]"
