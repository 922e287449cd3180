"""Kinds of dtypes: NumPy's letters, and those of the floats that NumPy gets from ml_dtypes.

NumPy says "V" (raw bytes) of bfloat16, and no to `issubdtype(bfloat16, floating)`. So nothing asks
a dtype for its `kind`; what a dtype is stands here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

DType = np.dtype[Any]


def kind_of(dtype: DType) -> str:
    """NumPy's letter: b(ool), i(nteger), u(nsigned), f(loating), c(omplex), or of no number."""
    return dtype.kind


def is_floating(dtype: DType) -> bool:
    """Whether it is of real floating numbers."""
    return dtype.kind == "f"


def is_inexact(dtype: DType) -> bool:
    """Whether it is of floating or complex numbers: what can have a gradient."""
    return dtype.kind in "fc"
