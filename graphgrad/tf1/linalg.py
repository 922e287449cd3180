"""`tf.linalg`."""

from __future__ import annotations

from .ops.linalg import *
