"""`tf.image`."""

from __future__ import annotations

from .ops.image import *  # noqa: F403
from .ops.image import __all__
