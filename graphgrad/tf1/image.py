"""`tf.image`."""

from __future__ import annotations

from .ops.image import *
