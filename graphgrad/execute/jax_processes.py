"""The processes of jax.distributed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils

__all__ = ["JaxProcesses", "start", "waiting_for_others"]


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
    with waiting_for_others():
        return np.asarray(multihost_utils.process_allgather(array))


PATIENCE = 60.0
"""Seconds after which a process says that it waits."""


@contextmanager
def waiting_for_others() -> Iterator[None]:
    """What all processes do together; says so where the others do not come. XLA waits for ever."""

    def say() -> None:
        print(
            f"graphgrad: process {jax.process_index()} of {jax.process_count()} has waited for "
            f"{PATIENCE:g} s for the others. All processes have to call gg.save, Checkpoints.save, "
            "export_weights, what reads a divided variable and what compiles for a mesh of several "
            "processes, in the same order; process 0 alone writes the files.",
            file=sys.stderr,
            flush=True,
        )

    timer = Timer(PATIENCE, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def start(**options: Any) -> JaxProcesses:
    """Connect this process with the others."""
    initialize: Any = jax.distributed.initialize
    initialize(**options)
    return JaxProcesses()
