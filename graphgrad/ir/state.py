"""The number of the run that is on, and the values of variables."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from .node import State

__all__ = ["RUN", "RunNumber", "State"]

RUN: ContextVar[Any] = ContextVar("run", default=0)
"""The number of the run that is on, which what is random without a seed reads (ops.random.keys)."""


class RunNumber:
    """`with RunNumber(number):` what runs is the run of this number of a state.

    A Python int; where a program is traced, what stands for it.
    """

    __slots__ = ("_before", "number")

    def __init__(self, number: Any) -> None:
        self.number = number

    def __enter__(self) -> None:
        self._before = RUN.set(self.number)

    def __exit__(self, *exc: object) -> None:
        RUN.reset(self._before)
