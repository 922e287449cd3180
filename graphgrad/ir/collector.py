"""The cyclic collector, paused: while many nodes are made, and while context variables are set."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import TypeVar

IN_THE_MIDST = sys.version_info < (3, 12)
"""Whether the collector may come while a built-in function runs that makes objects."""

T = TypeVar("T")
R = TypeVar("R")


class collector_paused:
    """Pause the collector for a block: it would walk many new nodes again and again.

    It is put back as it was on every exit.
    """

    def __enter__(self) -> None:
        self.collecting = gc.isenabled()
        try:
            gc.disable()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        if self.collecting:
            gc.enable()


def pause() -> bool:
    """Whether the collector was on and might come in the midst of a call; then it is off now."""
    collecting = IN_THE_MIDST and gc.isenabled()
    if collecting:
        try:
            gc.disable()
        except BaseException:
            gc.enable()
            raise
    return collecting


def undisturbed(put: Callable[[T], R], value: T) -> R:
    """put(value), which sets or resets a context variable.

    Python before 3.12 may collect garbage in the midst of that. If what a finalizer calls then, or
    a signal handler, sets a variable too, the memory is freed that is being read.
    """
    collecting = pause()
    try:
        return put(value)
    finally:
        if collecting:
            gc.enable()
