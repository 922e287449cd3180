"""Memory that a thread uses again and again: small enough to stay in its processor's cache."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...ir.types import DType

Place = tuple[DType, tuple[int, ...]]
LINE = 64  # bytes of a cache line

_memory = threading.local()


@contextmanager
def scratch(places: Sequence[Place]) -> Iterator[list[Any]]:
    """Arrays of these dtypes and shapes with anything in them, for a block.

    They are in the running thread's own memory, which nobody else finds until the block ends: what
    runs on the thread meanwhile (a signal handler, `__del__`) gets memory of its own.
    """
    starts = [0]
    for dtype, shape in places:
        size = math.prod(shape) * dtype.itemsize
        starts.append(starts[-1] + -(-size // LINE) * LINE)
    memory, _memory.idle = getattr(_memory, "idle", None), None
    if memory is None or memory.size < starts[-1]:
        memory = np.empty(starts[-1] + LINE, np.uint8)
        memory = memory[-memory.ctypes.data % LINE :]
    try:
        yield [
            np.ndarray(shape, dtype, memory, start)
            for (dtype, shape), start in zip(places, starts, strict=False)
        ]
    finally:
        _memory.idle = memory
