"""What is added to a loss for large variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .create import convert_to_tensor, name_scope
from .graph import GraphKeys, Tensor, get_default_graph
from .ops import math as M
from .ops import nn

__all__ = ["apply_regularization", "l1_l2_regularizer", "l1_regularizer", "l2_regularizer",
           "sum_regularizer"]  # fmt: skip


def l1_regularizer(scale: float, scope: Any = None) -> Callable[[Any], Any]:
    """scale times the sum of absolute values."""
    if scale == 0.0:
        return lambda _: None

    def l1(weights: Any) -> Tensor:
        with name_scope(scope, "l1_regularizer", [weights]) as name:
            w = convert_to_tensor(weights)
            factor = convert_to_tensor(scale, w.dtype.base_dtype, name="scale")
            return M.multiply(factor, M.reduce_sum(M.abs(w)), name=name)

    return l1


def l2_regularizer(scale: float, scope: Any = None) -> Callable[[Any], Any]:
    """scale times half of the sum of squares."""
    if scale == 0.0:
        return lambda _: None

    def l2(weights: Any) -> Tensor:
        with name_scope(scope, "l2_regularizer", [weights]) as name:
            w = convert_to_tensor(weights)
            factor = convert_to_tensor(scale, w.dtype.base_dtype, name="scale")
            return M.multiply(factor, nn.l2_loss(w), name=name)

    return l2


def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: Any = None) -> Any:
    """Both."""
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def sum_regularizer(regularizer_list: Any, scope: Any = None) -> Callable[[Any], Any]:
    """The sum of several."""

    def summed(weights: Any) -> Any:
        found = [r(weights) for r in regularizer_list if r is not None]
        there = [t for t in found if t is not None]
        return M.add_n(there) if there else None

    return summed


def apply_regularization(regularizer: Any, weights_list: Any = None) -> Tensor:
    """The sum over variables, put into REGULARIZATION_LOSSES."""
    graph = get_default_graph()
    chosen = weights_list or graph.get_collection(GraphKeys.WEIGHTS)
    total = M.add_n([r for r in (regularizer(w) for w in chosen) if r is not None])
    graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, total)
    return total
