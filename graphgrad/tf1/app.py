"""`tf.app`."""

from __future__ import annotations

from . import flags
from .flags import run

__all__ = ["flags", "run"]
