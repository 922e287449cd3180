"""Sums and other reductions, running ones, and the places of extrema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ....ir.build import apply
from ....ir.node import Tensor
from ....ops.base import DType, cast, constant, is_floating, kind_of
from ....ops.create.creation import zeros_like
from ....ops.elementwise.arithmetic import subtract
from ....ops.elementwise.exponential import log
from ....ops.elementwise.magnitudes import absolute
from ....ops.linalg.norms import vector_norm
from ....ops.reduce import reductions
from ....ops.reduce.cumulative import CumProd, CumSum
from ....ops.reduce.reductions import argmax, argmin, logsumexp
from ....ops.reduce.sorting import topk
from ....ops.shape.padding import flip
from ....ops.shape.reshaping import normal_axis
from ..call import OperatorCall
from .common import as_size
from .table import form

Reduction: TypeAlias = Callable[[Tensor, tuple[int, ...], bool], Tensor]


def _reduced(call: OperatorCall, fn: Reduction) -> Tensor:
    """fn over the axes of the call; what comes out has the dtype of what goes in."""
    x, axes = call.tensor(0), call.axes(1)
    keep = bool(call.attribute("keepdims", 1))
    if call.attribute("noop_with_empty_axes", 0) and not axes:
        return fn(x, (), keep)
    over = tuple(sorted(normal_axis(a, x.ndim) for a in axes)) if axes else tuple(range(x.ndim))
    return cast(fn(x, over, keep), x.dtype)


@form("ReduceSum")
def _sum(call: OperatorCall) -> Tensor:
    return _reduced(call, reductions.sum)


@form("ReduceMean")
def _mean(call: OperatorCall) -> Tensor:
    return _reduced(call, reductions.mean)


@form("ReduceProd")
def _prod(call: OperatorCall) -> Tensor:
    return _reduced(call, reductions.prod)


@form("ReduceL1")
def _l1(call: OperatorCall) -> Tensor:
    return _reduced(call, lambda x, axes, keep: reductions.sum(absolute(x), axes, keepdims=keep))


@form("ReduceL2")
def _l2(call: OperatorCall) -> Tensor:
    return _reduced(call, lambda x, axes, keep: vector_norm(x, axis=axes, keepdims=keep))


@form("ReduceSumSquare")
def _sum_square(call: OperatorCall) -> Tensor:
    return _reduced(call, lambda x, axes, keep: reductions.sum(x * x, axes, keepdims=keep))


@form("ReduceLogSum")
def _log_sum(call: OperatorCall) -> Tensor:
    return _reduced(call, lambda x, axes, keep: log(reductions.sum(x, axes, keepdims=keep)))


@form("ReduceLogSumExp")
def _log_sum_exp(call: OperatorCall) -> Tensor:
    return _reduced(call, logsumexp)


@form("ReduceMax", "ReduceMin")
def _extremum(call: OperatorCall) -> Tensor:
    largest = call.type == "ReduceMax"

    def reduce(x: Tensor, axes: tuple[int, ...], keep: bool) -> Tensor:
        if kind_of(x.dtype) == "b":
            return (reductions.any if largest else reductions.all)(x, axes, keepdims=keep)
        if any(x.shape[a] == 0 for a in axes):  # of nothing: the bound that never wins
            low, high = _bounds(x.dtype)
            empty = reductions.sum(x, axes, keepdims=keep)
            return zeros_like(empty).astype(x.dtype) + constant(low if largest else high, x.dtype)
        return (reductions.max if largest else reductions.min)(x, axes, keepdims=keep)

    return _reduced(call, reduce)


def _bounds(dtype: DType) -> tuple[Any, Any]:
    if is_floating(dtype):
        return -np.inf, np.inf
    info = np.iinfo(dtype)
    return info.min, info.max


@form("ArgMax", "ArgMin")
def _arg(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    axis, keep = normal_axis(call.attribute("axis", 0), x.ndim), call.attribute("keepdims", 1)
    fn = argmax if call.type == "ArgMax" else argmin
    if not call.attribute("select_last_index", 0):
        return fn(x, axis, bool(keep))
    from_behind = fn(flip(x, axis), axis, bool(keep))
    return subtract(as_size(x, axis) - 1, from_behind)


@form("CumSum", "CumProd")
def _running(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    axis = normal_axis(call.whole(1, "axis"), x.ndim)
    exclusive, reverse = call.attribute("exclusive", 0), call.attribute("reverse", 0)
    op = CumSum if call.type == "CumSum" else CumProd
    return apply(op(axis, bool(reverse), bool(exclusive)), x)


@form("TopK")
def _topk(call: OperatorCall) -> tuple[Tensor, Tensor]:
    x = call.tensor(0)
    count = call.needed("k") if call.opset < 10 else call.one(1, "number of elements")
    call.attribute("sorted")  # in order is one of the orders that may be
    return topk(x, count, call.attribute("axis", -1), largest=bool(call.attribute("largest", 1)))
