"""`tf.contrib.metrics`."""

from __future__ import annotations

from typing import Any

from ..create import convert_to_tensor
from ..graph import Tensor
from ..ops import math as M

__all__ = ["accuracy"]


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: Any = None) -> Tensor:
    """The share of predictions that are right."""
    right = M.cast(M.equal(convert_to_tensor(predictions), labels), "float32")
    if weights is None:
        return M.reduce_mean(right)
    return M.truediv(M.reduce_sum(right * weights), M.reduce_sum(weights))
