"""`tf.math`."""

from __future__ import annotations

from .ops import linalg as _linalg
from .ops import math as _math
from .ops.array import zeros_like
from .ops.elementwise import bessel_i0e, bessel_i1e, left_shift, nextafter, right_shift
from .ops.linalg import *
from .ops.math import *
from .ops.nn import in_top_k, l2_normalize, log_softmax, softmax, softplus, softsign, top_k

__all__ = [
    "bessel_i0e", "bessel_i1e", "in_top_k", "l2_normalize", "left_shift", "log_softmax",
    "nextafter", "right_shift", "softmax", "softplus", "softsign", "top_k", "zeros_like",
]  # fmt: skip
__all__ += _linalg.__all__
__all__ += _math.__all__
