"""`tf.math`."""

from __future__ import annotations

from .ops import linalg as _linalg
from .ops import math as _math
from .ops.array import zeros_like
from .ops.linalg import *  # noqa: F403
from .ops.math import *  # noqa: F403
from .ops.nn import in_top_k, l2_normalize, log_softmax, softmax, softplus, softsign, top_k

__all__ = ["in_top_k", "l2_normalize", "log_softmax", "softmax", "softplus", "softsign", "top_k",
           "zeros_like"]  # fmt: skip
__all__ += _linalg.__all__
__all__ += _math.__all__
