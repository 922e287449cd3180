"""Operators that read and write at indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....base.errors import FileError, ShapeError
from ....ir.node import Tensor
from ....ir.types import as_dtype
from ....ops.arrays.at import at
from ....ops.arrays.taking import take
from ....ops.base import cast, constant
from ....ops.create.creation import arange
from ....ops.elementwise.logic import where
from ....ops.nn.classes import one_hot
from ....ops.reduce.sorting import take_along_axis
from ....ops.shape.indexing import getitem
from ....ops.shape.reshaping import normal_axis, reshape
from ..call import OperatorCall
from .common import few
from .table import form


@form("Gather")
def _gather(call: OperatorCall) -> Tensor:
    x, axis = call.tensor(0), call.attribute("axis", 0)
    return take(x, call.tensor(1), axis)


@form("GatherElements")
def _gather_elements(call: OperatorCall) -> Tensor:
    x, indices = call.tensors
    axis = normal_axis(call.attribute("axis", 0), x.ndim)
    beside = [i for i in range(x.ndim) if i != axis]
    if x.ndim == indices.ndim and all(x.shape[i] == indices.shape[i] is not None for i in beside):
        return take_along_axis(x, indices, axis)
    return getitem(x, _along(x, indices, axis))


@form("GatherND")
def _gather_nd(call: OperatorCall) -> Tensor:
    x, indices = call.tensors
    return getitem(x, _places(x, indices, call.attribute("batch_dims", 0)))


@form("ScatterElements", "Scatter")
def _scatter_elements(call: OperatorCall) -> Tensor:
    x, indices, updates = call.tensors
    axis = normal_axis(call.attribute("axis", 0), x.ndim)
    return _written(x, _along(x, indices, axis), updates, call.attribute("reduction", "none"))


@form("ScatterND")
def _scatter_nd(call: OperatorCall) -> Tensor:
    x, indices, updates = call.tensors
    return _written(x, _places(x, indices, 0), updates, call.attribute("reduction", "none"))


def _along(x: Tensor, indices: Tensor, axis: int) -> tuple[Tensor, ...]:
    """The key of x whose indices differ from place to place along one axis."""
    key = [_counted(indices, i, i) for i in range(indices.ndim)]
    key[axis] = indices
    return tuple(key)


def _places(x: Tensor, indices: Tensor, batch: int) -> tuple[Tensor, ...]:
    """The key of x that stands in the last axis of indices, behind `batch` axes of both."""
    count = indices.shape[-1]
    if not isinstance(count, int):
        raise ShapeError(f"the indices are {indices!r}, whose last length must be known")
    rows = [getitem(indices, (..., j)) for j in range(count)]
    if not rows:
        return ()
    return (*[_counted(rows[0], i, i) for i in range(batch)], *rows)


def _counted(like: Tensor, axis: int, place: int) -> Tensor:
    """0, 1, 2, ... along an axis, of the rank of another tensor."""
    length = like.shape[axis]
    if length is None:
        raise ShapeError(f"the indices are {like!r}, one of whose lengths depends on data")
    shape: list[Any] = [1] * like.ndim
    shape[place] = length
    if not isinstance(length, int):
        return reshape(arange(length), shape)
    return constant(np.arange(few(length)).reshape(shape), "int64")


def _written(x: Tensor, key: tuple[Tensor, ...], updates: Tensor, how: str) -> Tensor:
    methods = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}
    if how not in methods:
        raise FileError(f"its reduction {how!r:.40} is unknown")
    return getattr(at(x)[key], methods[how])(updates)  # type: ignore[no-any-return]


@form("OneHot")
def _one_hot(call: OperatorCall) -> Tensor:
    indices, values = call.tensor(0), call.tensor(2)
    depth, axis = call.whole(1, "depth"), call.attribute("axis", -1)
    whole = cast(indices, as_dtype("int64"))
    hot = one_hot(where(whole < 0, whole + depth, whole), depth, "bool", axis)
    return where(hot, getitem(values, 1), getitem(values, 0))
