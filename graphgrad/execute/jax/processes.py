"""The processes of jax.distributed."""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread, Timer
from types import TracebackType
from typing import Any

import jax
import numpy as np
from jax._src import distributed
from jax.experimental import multihost_utils

__all__ = ["JaxProcesses", "gather_lengths", "start", "waiting_for_others"]


class JaxProcesses:
    """Those that jax.distributed connected, as `base.processes` wants them."""

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


def gather_lengths(lengths: Sequence[int]) -> np.ndarray:
    """The same number of lengths from every process, one row for each process."""
    return np.asarray(_all(np.array(lengths, np.int64))).reshape(jax.process_count(), -1)


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


POLL = 1.0
"""Seconds between two looks at whether another process has failed."""

_FAILURE = "graphgrad/failure"


class FailureWatch:
    """Ends all processes when one of them ends with an exception that nobody caught.

    Without it the process that failed waits for the others at the end of JAX, and they wait for it
    in the next collective operation: for minutes. So the process that fails writes its traceback
    to the store that the processes of JAX share, and leaves at once; the others read it there.
    """

    def __init__(self, processes: JaxProcesses) -> None:
        self._processes = processes
        self._store: Any = distributed.global_state.client  # JAX has no public name for it
        self._ended = Event()
        self._excepthook = sys.excepthook
        sys.excepthook = self._fail
        atexit.register(self._ended.set)  # before JAX's own, which was registered earlier
        Thread(target=self._watch, name="graphgrad failure watch", daemon=True).start()

    def _fail(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """Report the exception here, then to the other processes, and leave.

        The others learn of it before this process is gone: they may wait for it in a collective
        operation, whose own error says nothing of the cause.
        """
        self._ended.set()
        self._excepthook(kind, error, trace)
        text = "".join(traceback.format_exception(kind, error, trace))
        me = f"process {self._processes.index} of {self._processes.count}"
        try:
            self._store.key_value_set(_FAILURE, f"{me} raised\n{text}")
            time.sleep(2 * POLL)
        except jax.errors.JaxRuntimeError:  # another process failed before
            self._say_first_failure()
        self._leave()

    def _watch(self) -> None:
        while not self._ended.wait(POLL):
            if self._say_first_failure():
                self._leave()

    def _say_first_failure(self) -> bool:
        """Print what another process reported; False where there is nothing."""
        try:
            text = self._store.key_value_try_get(_FAILURE)
        except jax.errors.JaxRuntimeError:  # nothing, or no store any more, which JAX reports
            return False
        print(f"graphgrad: this process ends, because {text}", file=sys.stderr)
        return True

    def _leave(self) -> None:
        """End this process with status 1, without the barrier at which JAX waits for the others.

        Process 0 leaves last: it keeps the store in which the others read the traceback.
        """
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if self._processes.index == 0:
            time.sleep(4 * POLL)
        os._exit(1)


def start(**options: Any) -> JaxProcesses:
    """Connect this process with the others."""
    initialize: Any = jax.distributed.initialize
    initialize(**options)
    processes = JaxProcesses()
    FailureWatch(processes)
    return processes
