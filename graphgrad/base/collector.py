"""The cyclic collector, paused: while many nodes are made, and while context variables are set.

The state of the process is put back in the `finally` of the frame that changed it, twice: Python
serves an interrupt before `__exit__` of a context manager begins, and nothing puts back then what
the context manager has changed.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

IN_THE_MIDST = sys.version_info < (3, 12)
"""Whether the collector may come while a built-in function runs that makes objects."""

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


def collector_paused(f: Callable[P, R]) -> Callable[P, R]:
    """Pause the collector while a function runs: it would walk many new nodes again and again."""

    @wraps(f)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not gc.isenabled():
            return f(*args, **kwargs)
        try:
            try:
                gc.disable()
                return f(*args, **kwargs)
            finally:
                gc.enable()
        except BaseException:
            gc.enable()
            raise

    return run


def undisturbed(put: Callable[[T], R], value: T) -> R:
    """put(value), which sets or resets a context variable.

    Python before 3.12 may collect garbage in the midst of that. If what a finalizer calls then, or
    a signal handler, sets a variable too, the memory is freed that is being read.
    """
    if not (IN_THE_MIDST and gc.isenabled()):
        return put(value)
    try:
        try:
            gc.disable()
            return put(value)
        finally:
            gc.enable()
    except BaseException:  # an interrupt of the line above, maybe
        gc.enable()
        raise


def having(variable: ContextVar[T], value: T, f: Callable[..., R], *args: Any) -> R:
    """f(*args) while a context variable has a value; then it has the one from before."""
    before = variable.get()
    try:
        try:
            undisturbed(variable.set, value)
            return f(*args)
        finally:
            undisturbed(variable.set, before)
    except BaseException:
        if variable.get() is not before:
            undisturbed(variable.set, before)
        raise
