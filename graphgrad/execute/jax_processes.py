"""The processes of jax.distributed."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

__all__ = ["JaxProcesses", "start"]


class JaxProcesses:
    """Those that jax.distributed connected, as `ir.processes` wants them."""

    def __init__(self) -> None:
        self.index = jax.process_index()
        self.count = jax.process_count()

    def gather(self, said: bytes) -> list[bytes]:
        """What every process says, in order. All of them have to call it."""
        sizes = _all(np.array([len(said)], np.int32)).reshape(-1)
        padded = np.zeros(max(1, sizes.max()), np.uint8)
        padded[: len(said)] = np.frombuffer(said, np.uint8)
        rows = _all(padded).reshape(self.count, -1)
        return [row[:size].tobytes() for row, size in zip(rows, sizes, strict=True)]


def _all(array: Any) -> Any:
    return np.asarray(multihost_utils.process_allgather(array))


def start(**options: Any) -> JaxProcesses:
    """Connect this process with the others."""
    initialize: Any = jax.distributed.initialize
    initialize(**options)
    return JaxProcesses()
