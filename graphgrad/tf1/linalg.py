"""`tf.linalg`."""

from __future__ import annotations

from .ops.linalg import *  # noqa: F403
from .ops.linalg import __all__
