"""What older NumPys lack of the newest: told by what this one does, not by its version.

One thing stays theirs. Of a computed index that is out of bounds, where the result has no elements,
newer NumPys raise IndexError; NumPy 2.2 gives a DeprecationWarning, which Python shows to few.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Signature, signature
from typing import Any

import numpy as np

__all__ = ["ROOTS", "numpy_signature"]

with np.errstate(invalid="ignore"):
    ROOTS = bool(np.isnan(np.power(-np.inf, 0.5)))
"""Whether np.power(x, 0.5) is sqrt(x). NumPy 2.2 gives 0.0 at -0.0, and inf at -inf."""

_IN_C: dict[Any, Callable[..., None]] = {
    np.bincount: lambda x, /, weights=None, minlength=0: None,
    np.concatenate: lambda arrays, /, axis=0, out=None, *, dtype=None, casting="same_kind": None,
    np.dot: lambda a, b, out=None: None,
    np.empty_like: lambda a, /, dtype=None, order="K", subok=True, shape=None, *, device=None: None,
    np.inner: lambda a, b, /: None,
    np.lexsort: lambda keys, axis=-1: None,
    np.packbits: lambda a, /, axis=None, bitorder="big": None,
    np.ravel_multi_index: lambda multi_index, dims, mode="raise", order="C": None,
    np.unpackbits: lambda a, /, axis=None, count=None, bitorder="big": None,
    np.unravel_index: lambda indices, shape, order="C": None,
    np.vdot: lambda a, b, /: None,
    np.where: lambda condition, x=None, y=None, /: None,
}
"""Parameters of functions in C, which tell them since NumPy 2.4."""


@cache
def numpy_signature(fn: Callable[..., Any]) -> Signature:
    """The parameters of a function of NumPy."""
    try:
        return signature(fn)
    except ValueError:
        return signature(_IN_C[fn])
