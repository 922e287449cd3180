"""Memory that a thread uses again and again: small enough to stay in its processor's cache."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.types import DType

Place = tuple[DType, tuple[int, ...]]
LINE = 64  # bytes of a cache line

_memory = threading.local()


def scratch(places: Sequence[Place]) -> list[Any]:
    """Arrays of these dtypes and shapes with anything in them, in the running thread's own memory.

    They are good until the thread asks again.
    """
    starts = [0]
    for dtype, shape in places:
        size = math.prod(shape) * dtype.itemsize
        starts.append(starts[-1] + -(-size // LINE) * LINE)
    memory = getattr(_memory, "bytes", None)
    if memory is None or memory.size < starts[-1]:
        memory = np.empty(starts[-1] + LINE, np.uint8)
        memory = _memory.bytes = memory[-memory.ctypes.data % LINE :]
    return [
        np.ndarray(shape, dtype, memory, start)
        for (dtype, shape), start in zip(places, starts, strict=False)
    ]
