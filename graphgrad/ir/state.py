"""The number of the run that is on, and the values of variables."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from .node import State

__all__ = ["RUN", "State"]

RUN: ContextVar[Any] = ContextVar("run", default=0)
"""The number of the run that is on, which what is random without a seed reads (ops.random.keys)."""
