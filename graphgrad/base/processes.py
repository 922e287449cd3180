"""The processes that run one program together, and what this one knows of the others.

A process is alone until a backend that spans several says otherwise (`join`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .errors import ExecutionError

__all__ = ["Alone", "Processes", "agreed", "current", "join", "write_once"]


class Processes(Protocol):
    """What runs one program together.

    index  the number of this process
    count  how many there are
    """

    index: int
    count: int

    def gather(self, said: bytes) -> list[bytes]:
        """What every process says, in order. All of them have to call it."""
        ...


class Alone:
    """One process."""

    index, count = 0, 1

    def gather(self, said: bytes) -> list[bytes]:
        """What it said."""
        return [said]


_processes: list[Processes] = [Alone()]


def current() -> Processes:
    """The processes that this one is among."""
    return _processes[0]


def join(processes: Processes) -> None:
    """From now on this process is among these."""
    _processes[0] = processes


def agreed(said: object) -> list[str] | None:
    """What each process says, where that is not the same; None where they agree."""
    rows = [row.decode() for row in current().gather(repr(said).encode())]
    return rows if len(set(rows)) > 1 else None


def write_once(work: Callable[[], object]) -> None:
    """Run what writes a file in process 0 alone; the others go on when it is done.

    ExecutionError in the others where it failed.
    """
    among = current()
    if among.count == 1:
        work()
        return
    failed = b""
    try:
        if among.index == 0:
            work()
    except BaseException as error:
        failed = repr(error).encode()
        raise
    finally:
        told = among.gather(failed)[0]
    if told:
        raise ExecutionError(f"process 0 could not write the file: {told.decode()}")
