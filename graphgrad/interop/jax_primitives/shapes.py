"""Forms of what changes shapes, reduces and sorts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.node import Tensor
from ..opened import Form, gg

__all__ = ["FORMS"]


def _broadcast_in_dim(
    x: Tensor, *_dynamic: Any, shape: Sequence[Any], broadcast_dimensions: Sequence[int], **_: Any
) -> Any:
    ones: list[Any] = [1] * len(shape)
    for d, axis in zip(x.shape, broadcast_dimensions, strict=True):
        ones[axis] = d
    if list(x.shape) != ones:
        x = gg.reshape(x, tuple(ones))
    return x if tuple(ones) == tuple(shape) else gg.broadcast_to(x, tuple(shape))


def _reshape(
    x: Tensor, *_dynamic: Any, new_sizes: Sequence[Any], dimensions: Any = None, **_: Any
) -> Any:
    """In the order of the axes that dimensions names."""
    if dimensions is not None:
        x = gg.transpose(x, tuple(dimensions))
    return gg.reshape(x, tuple(new_sizes))


def _slice(
    x: Tensor, *, start_indices: Any, limit_indices: Any, strides: Any = None, **_: Any
) -> Any:
    rows = zip(start_indices, limit_indices, strides or [1] * x.ndim, strict=True)
    return x[tuple(slice(a, b, s) for a, b, s in rows)]


def _iota(*_dynamic: Any, dtype: Any, shape: Sequence[Any], dimension: int, **_: Any) -> Any:
    ones: list[Any] = [1] * len(shape)
    ones[dimension] = shape[dimension]
    row = gg.cast(gg.arange(shape[dimension]), np.dtype(dtype))
    return gg.broadcast_to(gg.reshape(row, tuple(ones)), tuple(shape))


def _split(x: Tensor, *, sizes: Sequence[int], axis: int, **_: Any) -> Any:
    cuts = np.cumsum(sizes)[:-1].tolist()
    return tuple(gg.split(x, cuts, axis)) if cuts else (x,)


def _dynamic_slice(x: Tensor, *starts: Tensor, slice_sizes: Sequence[Any], **_: Any) -> Any:
    return gg.dynamic_slice(x, list(starts), list(slice_sizes)) if starts else x


def _dynamic_update_slice(x: Tensor, update: Tensor, *starts: Tensor, **_: Any) -> Any:
    return gg.dynamic_update_slice(x, update, list(starts)) if starts else update


def _reduced(name: str) -> Form:
    def call(x: Tensor, *, axes: Sequence[int], **_: Any) -> Any:
        if not axes:
            return x
        if name in ("sum", "prod"):
            return getattr(gg, name)(x, axis=tuple(axes), dtype=x.dtype)
        return getattr(gg, name)(x, axis=tuple(axes))

    return call


def _reduced_bits(logical: str, bitwise: Any) -> Form:
    def call(x: Tensor, *, axes: Sequence[int], **_: Any) -> Any:
        if x.dtype.kind == "b" and logical:
            return getattr(gg, logical)(x, axis=tuple(axes))
        if x.dtype.kind == "b":
            return gg.sum(gg.cast(x, "int64"), axis=tuple(axes)) % 2 == 1
        raise NotImplementedError(f"of {x.dtype}")

    return call


def _arg(name: str) -> Form:
    def call(x: Tensor, *, axes: Sequence[int], index_dtype: Any, **_: Any) -> Any:
        (axis,) = axes
        return gg.cast(getattr(gg, name)(x, axis=axis), np.dtype(index_dtype))

    return call


def _running(name: str) -> Form:
    def call(x: Tensor, *, axis: int, reverse: bool, **_: Any) -> Any:
        turned = gg.flip(x, axis) if reverse else x
        kwargs = {"dtype": x.dtype} if name in ("cumsum", "cumprod") else {}
        made = getattr(gg, name)(turned, axis=axis, **kwargs)
        return gg.flip(made, axis) if reverse else made

    return call


def _approx_top_k(x: Tensor, *, k: int, reduction_dimension: int, is_max_k: bool, **_: Any) -> Any:
    """The exact ones."""
    values, places = gg.topk(x if is_max_k else -x, k, axis=reduction_dimension)
    return values if is_max_k else -values, gg.cast(places, "int32")


def _sort(*xs: Tensor, dimension: int, num_keys: int, **_: Any) -> Any:
    if len(xs) == 1:
        return (gg.sort(xs[0], axis=dimension),)
    if num_keys == 1:
        order = gg.argsort(xs[0], axis=dimension, stable=True)
    else:
        order = gg.lexsort(list(xs[:num_keys][::-1]), axis=dimension)
    return tuple(gg.take_along_axis(x, order, axis=dimension) for x in xs)


def _top_k(x: Tensor, *, k: int, axis: int = -1, **_: Any) -> Any:
    values, places = gg.topk(x, k, axis=axis)
    return values, gg.cast(places, "int32")


FORMS: dict[str, Form] = {
    "broadcast_in_dim": _broadcast_in_dim,
    "reshape": _reshape,
    "squeeze": lambda x, *, dimensions, **_: gg.squeeze(x, tuple(dimensions)),
    "expand_dims": lambda x, *, dimensions, **_: gg.expand_dims(x, tuple(dimensions)),
    "transpose": lambda x, *, permutation, **_: gg.transpose(x, tuple(permutation)),
    "rev": lambda x, *, dimensions, **_: gg.flip(x, tuple(dimensions)),
    "concatenate": lambda *xs, dimension, **_: gg.concat(list(xs), axis=dimension),
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "split": _split,
    "unstack": lambda x, *, axis, **_: tuple(gg.unstack(x, axis=axis)),
    "tile": lambda x, *, reps, **_: gg.tile(x, tuple(reps)),
    "stack": lambda *xs, axis, **_: gg.stack(list(xs), axis=axis),
    "iota": _iota,
    "reduce_sum": _reduced("sum"),
    "reduce_prod": _reduced("prod"),
    "reduce_max": _reduced("max"),
    "reduce_min": _reduced("min"),
    "reduce_and": _reduced_bits("all", None),
    "reduce_or": _reduced_bits("any", None),
    "reduce_xor": _reduced_bits("", None),
    "argmax": _arg("argmax"),
    "argmin": _arg("argmin"),
    "cumsum": _running("cumsum"),
    "cumprod": _running("cumprod"),
    "cummax": _running("cummax"),
    "cummin": _running("cummin"),
    "cumlogsumexp": _running("cumulative_logsumexp"),
    "sort": _sort,
    "top_k": _top_k,
    "approx_top_k": _approx_top_k,
}
