"""Forms of what reads and writes at places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.node import Tensor
from ..opened import Form, gg
from .numbers import to

__all__ = ["FORMS"]


def _key(indices: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(slice(None) if i is None else i for i in indices)


def _index(x: Tensor, indices: Sequence[Any], **_: Any) -> Any:
    _no_masks(indices)
    return gg.getitem(x, _key(indices))


def _no_masks(indices: Sequence[Any]) -> None:
    if any(i is not None and i.dtype.kind == "b" for i in indices):
        raise NotImplementedError("a computed mask, whose count is only known at run time")


def _index_put(
    x: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False, **_: Any
) -> Any:
    values = to(values, x.dtype)
    if len(indices) == 1 and indices[0].dtype.kind == "b" and not accumulate and not values.ndim:
        mask = gg.reshape(indices[0], (*indices[0].shape, *(1,) * (x.ndim - indices[0].ndim)))
        return gg.where(mask, values, x)
    _no_masks(indices)
    place = gg.at(x)[_key(indices)]
    return place.add(values) if accumulate else place.set(values)


def _along(x: Tensor, dim: int, index: Tensor) -> tuple[Any, ...]:
    """The places that an index of a gather means."""
    rank = index.ndim
    places: list[Any] = []
    for axis in range(rank):
        row: list[Any] = [1] * rank
        row[axis] = index.shape[axis]
        places.append(gg.reshape(gg.arange(index.shape[axis]), tuple(row)))
    places[dim] = index
    return tuple(gg.broadcast_to(p, index.shape) for p in places)


def _gather(x: Tensor, dim: int, index: Tensor, **_: Any) -> Any:
    if not x.ndim:
        return x if not index.ndim else gg.broadcast_to(x, index.shape)
    axis = dim % x.ndim
    if all(n == m for a, (n, m) in enumerate(zip(x.shape, index.shape, strict=True)) if a != axis):
        return gg.take_along_axis(x, index, axis=axis)
    return gg.getitem(x, _along(x, axis, index))


def _scattered(how: str) -> Form:
    def call(x: Tensor, dim: int, index: Tensor, src: Any, **_: Any) -> Any:
        rank = x.ndim
        if not rank:
            x, index = gg.reshape(x, (1,)), gg.reshape(index, (-1,))
            src = gg.reshape(src, (-1,)) if isinstance(src, Tensor) else src
        values = to(src, x.dtype)
        if isinstance(src, Tensor):
            values = values[tuple(slice(0, n) for n in index.shape)]
        y = getattr(gg.at(x)[_along(x, dim % x.ndim, index)], how)(values)
        return y if rank else gg.reshape(y, ())

    return call


_REDUCTIONS = {"sum": "add", "add": "add", "prod": "multiply", "multiply": "multiply"}
_REDUCTIONS |= {"amax": "max", "amin": "min", "mean": "mean"}


def _neutral(how: str, dtype: Any) -> Any:
    if how in ("add", "mean"):
        return 0
    if how == "multiply":
        return 1
    if dtype.kind == "f":
        return -np.inf if how == "max" else np.inf
    return np.iinfo(dtype).min if how == "max" else np.iinfo(dtype).max


def _scatter_reduce(
    x: Tensor,
    dim: int,
    index: Tensor,
    src: Any,
    reduce: str,
    *,
    include_self: bool = True,
    **_: Any,
) -> Any:
    if not x.ndim:
        raise NotImplementedError("a tensor of no axes")
    how = _REDUCTIONS[reduce]
    places = gg.at(x)[_along(x, dim % x.ndim, index)]
    values = to(src, x.dtype)
    if isinstance(src, Tensor):
        values = values[tuple(slice(0, n) for n in index.shape)]
    start = x
    if not include_self:
        start = places.set(gg.constant(_neutral(how, x.dtype), x.dtype))
    at = gg.at(start)[_along(x, dim % x.ndim, index)]
    if how != "mean":
        return getattr(at, how)(values)
    ones = gg.ones(x.shape, x.dtype)
    ones = ones if include_self else places_of(ones, dim, index).set(gg.constant(0, x.dtype))
    count = places_of(ones, dim, index).add(gg.ones(index.shape, x.dtype))
    total, count = at.add(values), gg.maximum(count, gg.constant(1, x.dtype))
    return total / count if x.dtype.kind == "f" else gg.floor_divide(total, count)


def places_of(x: Tensor, dim: int, index: Tensor) -> Any:
    """x at the places that an index of a gather means."""
    return gg.at(x)[_along(x, dim % x.ndim, index)]


def _scatter_value_reduce(
    x: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str, **_: Any
) -> Any:
    return _scatter_reduce(x, dim, index, src, reduce)


def _rows(x: Tensor, dim: int, index: Tensor) -> Any:
    key: list[Any] = [slice(None)] * x.ndim
    key[dim] = gg.reshape(index, (-1,))
    return gg.at(x)[tuple(key)]


def _index_select(x: Tensor, dim: int, index: Tensor, **_: Any) -> Any:
    return gg.take(x, gg.reshape(index, (-1,)), dim) if x.ndim else x


def _index_add(x: Tensor, dim: int, index: Tensor, src: Tensor, *, alpha: Any = 1, **_: Any) -> Any:
    src = to(src, x.dtype)
    return _rows(x, dim, index).add(src if alpha == 1 else src * alpha)


def _index_copy(x: Tensor, dim: int, index: Tensor, src: Tensor, **_: Any) -> Any:
    return _rows(x, dim, index).set(src)


def _index_fill(x: Tensor, dim: int, index: Tensor, value: Any, **_: Any) -> Any:
    return _rows(x, dim, index).set(gg.asarray(to(value, x.dtype), dtype=x.dtype))


def _index_reduce(
    x: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    **_: Any,
) -> Any:
    row: list[Any] = [1] * x.ndim
    row[dim] = index.shape[0]
    index = gg.broadcast_to(gg.reshape(index, tuple(row)), src.shape)
    return _scatter_reduce(x, dim, index, src, reduce, include_self=include_self)


def _masked_scatter(x: Tensor, mask: Tensor, source: Tensor, **_: Any) -> Any:
    """The n-th place of the mask takes the n-th number of the source."""
    mask = gg.broadcast_to(mask, x.shape)
    order = gg.cumsum(gg.cast(gg.reshape(mask, (-1,)), "int64"), axis=0) - 1
    order = gg.maximum(order, 0)
    picked = gg.take(gg.reshape(to(source, x.dtype), (-1,)), order, 0, mode="clip")
    return gg.where(mask, gg.reshape(picked, x.shape), x)


def _take(x: Tensor, index: Tensor, **_: Any) -> Any:
    return gg.take(gg.reshape(x, (-1,)), index, 0)


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False, **_: Any) -> Any:
    place = gg.at(gg.reshape(x, (-1,)))[gg.reshape(index, (-1,))]
    values = gg.reshape(source, (-1,))
    return gg.reshape(place.add(values) if accumulate else place.set(values), x.shape)


def _searchsorted(
    rows: Tensor,
    x: Any,
    *,
    out: Any,
    right: bool = False,
    side: Any = None,
    sorter: Any = None,
    **_: Any,
) -> Any:
    if rows.ndim != 1:
        raise NotImplementedError("rows of more than one axis")
    side = side or ("right" if right else "left")
    found = gg.searchsorted(rows, gg.asarray(x), side=side, sorter=sorter)
    return to(found, out)


def _bucketize(x: Any, bounds: Tensor, *, out: Any, right: bool = False, **_: Any) -> Any:
    return _searchsorted(bounds, x, out=out, right=right)


FORMS: dict[str, Form] = {
    "index": _index,
    "_unsafe_index": _index,
    "index_put": _index_put,
    "_unsafe_index_put": _index_put,
    "gather": _gather,
    "scatter.src": _scattered("set"),
    "scatter.value": _scattered("set"),
    "scatter.reduce": _scatter_value_reduce,
    "scatter.value_reduce": _scatter_value_reduce,
    "scatter_add": _scattered("add"),
    "scatter_reduce": _scatter_reduce,
    "index_select": _index_select,
    "index_add": _index_add,
    "index_copy": _index_copy,
    "index_fill": _index_fill,
    "index_reduce": _index_reduce,
    "masked_scatter": _masked_scatter,
    "take": _take,
    "put": _put,
    "searchsorted": _searchsorted,
    "bucketize": _bucketize,
}
