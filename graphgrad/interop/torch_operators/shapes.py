"""Forms of what makes, reshapes, reduces and sorts tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.node import Tensor
from ..opened import Form, gg, plain
from .numbers import to

__all__ = ["FORMS", "axes_of"]


def axes_of(x: Tensor, dim: Any, empty_is_all: bool = True) -> Any:
    """Axes of x as a tuple; none named are all."""
    if dim is None or (empty_is_all and isinstance(dim, tuple | list) and not dim):
        return tuple(range(x.ndim))
    dims = dim if isinstance(dim, tuple | list) else (dim,)
    return tuple(d % x.ndim for d in dims) if x.ndim else ()


def _expand(x: Tensor, sizes: Sequence[Any], **_: Any) -> Any:
    front = len(sizes) - x.ndim
    shape = tuple(
        x.shape[i - front] if isinstance(n, int) and n == -1 else n for i, n in enumerate(sizes)
    )
    return x if shape == tuple(x.shape) else gg.broadcast_to(x, shape)


def _squeeze(x: Tensor, dim: Any = None, **_: Any) -> Any:
    axes = tuple(a for a in axes_of(x, dim, dim is None) if x.shape[a] == 1)
    return gg.squeeze(x, axes) if axes else x


def _slice(
    x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: int = 1, **_: Any
) -> Any:
    key: list[Any] = [slice(None)] * x.ndim
    key[dim] = _range(start, end, step)
    return x if key[dim] == slice(None) else x[tuple(key)]


def _range(start: Any, end: Any, step: int) -> slice:
    end = None if isinstance(end, int) and end >= 2**62 else end
    start = None if isinstance(start, int) and start == 0 else start
    return slice(start, end, None if step == 1 else step)


def _key(x: Tensor, dim: int, at: Any) -> tuple[Any, ...]:
    key: list[Any] = [slice(None)] * x.ndim
    key[dim] = at
    return tuple(key)


def _select(x: Tensor, dim: int, index: Any, **_: Any) -> Any:
    return x[_key(x, dim, index)]


def _select_scatter(x: Tensor, src: Tensor, dim: int, index: Any, **_: Any) -> Any:
    return gg.at(x)[_key(x, dim, index)].set(to(src, x.dtype))


def _slice_scatter(
    x: Tensor,
    src: Tensor,
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: int = 1,
    **_: Any,
) -> Any:
    key = _key(x, dim, _range(start, end, step))
    if all(k == slice(None) for k in key):
        return to(src, x.dtype)
    return gg.at(x)[key].set(to(src, x.dtype))


def _diagonal_scatter(
    x: Any, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1, **_: Any
) -> Any:
    where = gg.diagonal(gg.reshape(gg.arange(int(np.prod(x.shape))), x.shape), offset, dim1, dim2)
    flat = gg.at(gg.reshape(x, (-1,)))[gg.reshape(where, (-1,))].set(gg.reshape(src, (-1,)))
    return gg.reshape(flat, x.shape)


def _split_with_sizes(x: Tensor, sizes: Sequence[Any], dim: int = 0, **_: Any) -> Any:
    start: Any = 0
    parts = []
    for n in sizes:
        parts.append(_slice(x, dim, start, start + n))
        start = start + n
    return tuple(parts)


def _split(x: Any, size: Any, dim: int = 0, **_: Any) -> Any:
    n = x.shape[dim]
    sizes = [min(size, n - i) for i in range(0, n, size)] if size else [0]
    return _split_with_sizes(x, sizes or [0], dim)


def _unbind(x: Tensor, dim: int = 0, **_: Any) -> Any:
    return tuple(gg.unstack(x, axis=dim))


def _cat(xs: Sequence[Tensor], dim: int = 0, *, out: Any, **_: Any) -> Any:
    """Empty vectors are left out, as torch has it."""
    rank = max(x.ndim for x in xs)
    kept = [to(x, out) for x in xs if x.ndim == rank]
    return gg.concat(kept, axis=dim) if len(kept) > 1 else kept[0]


def _stack(xs: Sequence[Tensor], dim: int = 0, *, out: Any, **_: Any) -> Any:
    return gg.stack([to(x, out) for x in xs], axis=dim)


def _repeat(x: Tensor, repeats: Sequence[Any], **_: Any) -> Any:
    front = (1,) * (len(repeats) - x.ndim)
    return gg.tile(gg.reshape(x, (*front, *x.shape)), tuple(repeats))


def _repeat_interleave(x: Tensor, repeats: Any, dim: Any = None, **_: Any) -> Any:
    if isinstance(repeats, Tensor):
        raise NotImplementedError("counts that are computed")
    return gg.repeat(x, repeats, axis=dim)


def _pad(x: Tensor, pad: Sequence[Any], value: Any = 0, **_: Any) -> Any:
    """Pairs from the last axis on; negative ones cut."""
    widths: list[Any] = [(0, 0)] * x.ndim
    for i in range(len(pad) // 2):
        widths[-1 - i] = (pad[2 * i], pad[2 * i + 1])
    grown = [tuple(0 if _negative(n) else n for n in pair) for pair in widths]
    if any(pair != (0, 0) for pair in grown):
        value = bool(value) if x.dtype.kind == "b" else value or 0
        x = gg.pad(x, grown, constant_values=value)
    key = [
        slice(-lo if _negative(lo) else None, hi if _negative(hi) else None) for lo, hi in widths
    ]
    return x if all(k == slice(None) for k in key) else x[tuple(key)]


def _negative(n: Any) -> bool:
    return isinstance(n, int) and n < 0


def _padded(mode: str) -> Form:
    def call(x: Tensor, pad: Sequence[Any], **_: Any) -> Any:
        widths: list[Any] = [(0, 0)] * x.ndim
        for i in range(len(pad) // 2):
            widths[-1 - i] = (pad[2 * i], pad[2 * i + 1])
        if any(_negative(n) for pair in widths for n in pair):
            raise NotImplementedError("a negative width")
        return gg.pad(x, widths, mode=mode)

    return call


def _as_strided(x: Any, size: Any, stride: Any, offset: Any = None, *, node: Any, **_: Any) -> Any:
    """Numbers by their places in memory, where those of x are known and x fills it."""
    known = node.args[0].meta["val"]
    shape = tuple(x.shape)
    if not all(isinstance(n, int) for n in (*shape, *size, *stride, offset or 0)):
        raise NotImplementedError("lengths that are open")
    steps = [int(s) for s in known.stride()]
    begin = int(known.storage_offset())
    memory = np.full(begin + int(np.prod(shape)), -1)
    where = _offsets(shape, steps, begin)
    if where.size and (where.max() >= memory.size or len(np.unique(where)) != where.size):
        raise NotImplementedError("a tensor that does not fill its memory")
    memory[where] = np.arange(where.size).reshape(shape)
    places = _offsets(tuple(size), stride, begin if offset is None else offset)
    found = memory[places] if places.size == 0 or places.max() < memory.size else np.array(-1)
    if (found < 0).any():
        raise NotImplementedError("places outside of the tensor")
    return gg.take(gg.reshape(x, (-1,)), found, 0)


def _offsets(shape: Sequence[int], steps: Sequence[int], begin: int) -> Any:
    """Of each element of a shape the place in memory."""
    made = np.full(tuple(shape), begin)
    for axis, (n, step) in enumerate(zip(shape, steps, strict=True)):
        row = [1] * len(shape)
        row[axis] = n
        made = made + np.arange(n).reshape(row) * step
    return made


def _unfold(x: Any, dim: int, size: int, step: int, **_: Any) -> Any:
    """Windows along an axis, last."""
    n = x.shape[dim]
    rows = np.arange(0, n - size + 1, step)[:, None] + np.arange(size)
    dim = dim % max(x.ndim, 1)
    y = gg.take(x, rows, dim)
    return gg.moveaxis(y, dim + 1, -1)


# --- made ---------------------------------------------------------------------------------------


def _full(size: Any, value: Any, *, out: Any, **_: Any) -> Any:
    return gg.full(tuple(size), to(value, out), dtype=out)


def _filled(value: Any) -> Form:
    return lambda size, *_, out, **__: gg.full(tuple(size), value, dtype=out)


def _like(value: Any) -> Form:
    return lambda x, *_, out, **__: gg.full(tuple(x.shape), value, dtype=out)


def _full_like(x: Tensor, value: Any, *, out: Any, **_: Any) -> Any:
    return gg.full(tuple(x.shape), to(value, out), dtype=out)


def _arange(start: Any, end: Any = None, step: Any = 1, *, out: Any, **_: Any) -> Any:
    if end is None:
        start, end = 0, start
    return gg.arange(start, end, step, dtype=out)


def _linspace(start: Any, end: Any, steps: int, *, out: Any, **_: Any) -> Any:
    return to(gg.linspace(to(start, "float64"), to(end, "float64"), steps), out)


def _eye(n: Any, m: Any = None, *, out: Any, **_: Any) -> Any:
    return gg.eye(n, n if m is None else m, dtype=out)


def _triangle(name: str) -> Form:
    def call(rows: int, columns: int, offset: int = 0, *, out: Any, **_: Any) -> Any:
        return gg.constant(np.stack(getattr(np, name)(rows, offset, columns)), out)

    return call


def _copy(x: Tensor, src: Tensor, *_: Any, **__: Any) -> Any:
    return _expand(to(src, x.dtype), x.shape)


def _fill(x: Tensor, value: Any, **_: Any) -> Any:
    return gg.broadcast_to(gg.asarray(to(value, x.dtype), dtype=x.dtype), x.shape)


# --- reduced ------------------------------------------------------------------------------------


def _reduced(name: str) -> Form:
    def call(x: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any, **_: Any) -> Any:
        x = to(x, out)
        axes = axes_of(x, dim)
        more = {"dtype": out} if name in ("sum", "prod") else {}
        return getattr(gg, name)(x, axis=axes, keepdims=keepdim, **more) if x.ndim else x

    return call


def _truths(name: str) -> Form:
    def call(x: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any, **_: Any) -> Any:
        x = x if x.dtype.kind == "b" else gg.not_equal(x, 0)
        y = getattr(gg, name)(x, axis=axes_of(x, dim), keepdims=keepdim) if x.ndim else x
        return to(y, out)

    return call


def _arg(name: str) -> Form:
    def call(x: Tensor, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
        if dim is None or not x.ndim:
            y = getattr(gg, name)(gg.reshape(x, (-1,)), axis=0)
            return gg.reshape(y, (1,) * x.ndim) if keepdim else y
        return getattr(gg, name)(x, axis=dim, keepdims=keepdim)

    return call


def _extreme(name: str) -> Form:
    """Of all equal shares of the gradient; along an axis all of it to the one that is told."""

    def call(x: Tensor, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
        if dim is None:
            return getattr(gg, name)(x)
        return _picked(x, getattr(gg, f"arg{name}"), dim, keepdim)

    return call


def _picked(x: Tensor, arg: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    if not x.ndim:
        return x, gg.constant(0, "int64")
    places = arg(x, axis=dim, keepdims=True)
    values = gg.take_along_axis(x, places, axis=dim)
    return (values, places) if keepdim else (gg.squeeze(values, dim), gg.squeeze(places, dim))


def _moments(root: bool, mean_too: bool) -> Form:
    def call(x: Tensor, dim: Any = None, *more: Any, out: Any, **kwargs: Any) -> Any:
        correction, keepdim = kwargs.get("correction", 1), kwargs.get("keepdim", False)
        if isinstance(dim, bool):  # (x, unbiased)
            dim, correction = None, int(dim)
        elif more:
            correction, keepdim = int(more[0]), more[1]
        axes = axes_of(x, dim)
        correction = 1 if correction is None else correction
        y = gg.var(x, axis=axes, correction=correction, keepdims=keepdim)
        y = gg.sqrt(y) if root else y
        return (y, gg.mean(x, axis=axes, keepdims=keepdim)) if mean_too else y

    return call


def _running(name: str) -> Form:
    def call(x: Tensor, dim: int, *, out: Any, **_: Any) -> Any:
        more = {"dtype": out} if name in ("cumsum", "cumprod") else {}
        return getattr(gg, name)(to(x, out), axis=dim, **more) if x.ndim else to(x, out)

    return call


def _running_extreme(name: str) -> Form:
    """Values and places: of equal numbers the last one."""

    def call(x: Tensor, dim: int, **_: Any) -> Any:
        if not x.ndim:
            return x, gg.constant(0, "int64")
        axis = dim % x.ndim
        y = gg.stop_gradient(getattr(gg, name)(x, axis=axis))
        row: list[Any] = [1] * x.ndim
        row[axis] = x.shape[axis]
        here = gg.reshape(gg.arange(x.shape[axis]), tuple(row))
        same = gg.logical_or(gg.equal(x, y), gg.isnan(x)) if x.dtype.kind == "f" else gg.equal(x, y)
        places = gg.cummax(gg.where(same, here, 0), axis=axis)
        return gg.take_along_axis(x, places, axis=axis), places

    return call


def _sort(x: Tensor, dim: int = -1, descending: bool = False, **_: Any) -> Any:
    if not x.ndim:
        return x, gg.constant(0, "int64")
    order = gg.argsort(x, axis=dim, descending=descending, stable=True)
    return gg.take_along_axis(x, order, axis=dim), order


def _stable_sort(
    x: Tensor, *, stable: Any = None, dim: int = -1, descending: bool = False, **_: Any
) -> Any:
    return _sort(x, dim, descending)


def _topk(x: Tensor, k: Any, dim: int = -1, largest: bool = True, *_: Any, **__: Any) -> Any:
    if not x.ndim:
        return x, gg.constant(0, "int64")
    return gg.topk(x, k, axis=dim, largest=largest)


def _kth(x: Any, k: int, dim: int = -1, keepdim: bool = False, **_: Any) -> Any:
    values, order = _sort(x, dim, False)
    if not x.ndim:
        return values, order
    at = slice(k - 1, k) if keepdim else k - 1
    return values[_key(x, dim, at)], order[_key(x, dim, at)]


def _median(x: Any, dim: Any = None, keepdim: bool = False, **_: Any) -> Any:
    """The lower of two in the middle; NaN where there is one. Of all of x: equal numbers share."""
    flat = gg.reshape(x, (-1,)) if dim is None else x
    axis = 0 if dim is None else dim
    values, places = _kth(flat, (flat.shape[axis] + 1) // 2 if flat.ndim else 1, axis, keepdim)
    if dim is None and x.dtype.kind == "f":
        shared = gg.max(gg.where(flat == gg.stop_gradient(values), flat, -np.inf))
        return gg.where(gg.any(gg.isnan(flat)), gg.nan, shared)
    if flat.dtype.kind == "f" and flat.ndim:
        bad = gg.isnan(flat)
        first = gg.argmax(bad, axis=axis, keepdims=keepdim)
        some = gg.any(bad, axis=axis, keepdims=keepdim)
        values, places = gg.where(some, gg.nan, values), gg.where(some, first, places)
    return values if dim is None else (values, places)


FORMS: dict[str, Form] = {
    "view": lambda x, size, **_: gg.reshape(x, tuple(size)),
    "_unsafe_view": lambda x, size, **_: gg.reshape(x, tuple(size)),
    "reshape": lambda x, size, **_: gg.reshape(x, tuple(size)),
    "alias": plain(lambda x: x),
    "clone": plain(lambda x: x),
    "contiguous": plain(lambda x: x),
    "lift_fresh_copy": plain(lambda x: x),
    "copy": _copy,
    "expand": _expand,
    "unsqueeze": lambda x, dim, **_: gg.expand_dims(x, dim),
    "squeeze": _squeeze,
    "permute": lambda x, dims, **_: gg.transpose(x, axes_of(x, dims, False)),
    "transpose": lambda x, a, b, **_: gg.swapaxes(x, a, b) if x.ndim else x,
    "t": lambda x, **_: gg.transpose(x),
    "slice": _slice,
    "select": _select,
    "select_scatter": _select_scatter,
    "slice_scatter": _slice_scatter,
    "diagonal_scatter": _diagonal_scatter,
    "diagonal": lambda x, offset=0, a=0, b=1, **_: gg.diagonal(x, offset, a, b),
    "split_with_sizes": _split_with_sizes,
    "split": _split,
    "unbind": _unbind,
    "cat": _cat,
    "stack": _stack,
    "repeat": _repeat,
    "repeat_interleave.self_int": _repeat_interleave,
    "flip": lambda x, dims, **_: gg.flip(x, tuple(dims)) if dims else x,
    "roll": lambda x, shifts, dims=(), **_: gg.roll(x, tuple(shifts), tuple(dims) or None),
    "tril": lambda x, k=0, **_: gg.tril(x, k),
    "triu": lambda x, k=0, **_: gg.triu(x, k),
    "constant_pad_nd": _pad,
    **{f"reflection_pad{n}d": _padded("reflect") for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _padded("edge") for n in (1, 2, 3)},
    "as_strided": _as_strided,
    "unfold": _unfold,
    "full": _full,
    "full_like": _full_like,
    "zeros": _filled(0),
    "ones": _filled(1),
    "empty.memory_format": _filled(0),
    "empty_strided": _filled(0),
    "empty_permuted": _filled(0),
    "zeros_like": _like(0),
    "ones_like": _like(1),
    "empty_like": _like(0),
    "new_zeros": lambda x, size, *, out, **_: gg.zeros(tuple(size), out),
    "new_empty": lambda x, size, *, out, **_: gg.zeros(tuple(size), out),
    "new_ones": lambda x, size, *, out, **_: gg.ones(tuple(size), out),
    "new_full": lambda x, size, value, *, out, **_: _full(size, value, out=out),
    "scalar_tensor": lambda value, *, out, **_: gg.asarray(to(value, out), dtype=out),
    "arange": _arange,
    "linspace": _linspace,
    "eye": _eye,
    "tril_indices": _triangle("tril_indices"),
    "triu_indices": _triangle("triu_indices"),
    "fill": _fill,
    "sum": _reduced("sum"),
    "mean": _reduced("mean"),
    "prod": _reduced("prod"),
    "amax": _reduced("max"),
    "amin": _reduced("min"),
    "nansum": _reduced("nansum"),
    "logsumexp": _reduced("logsumexp"),
    "any": _truths("any"),
    "all": _truths("all"),
    "argmax": _arg("argmax"),
    "argmin": _arg("argmin"),
    "max": _extreme("max"),
    "min": _extreme("min"),
    "var": _moments(False, False),
    "std": _moments(True, False),
    "var_mean": _moments(False, True),
    "std_mean": _moments(True, True),
    "cumsum": _running("cumsum"),
    "cumprod": _running("cumprod"),
    "logcumsumexp": _running("cumulative_logsumexp"),
    "cummax": _running_extreme("cummax"),
    "cummin": _running_extreme("cummin"),
    "sort": _sort,
    "sort.stable": _stable_sort,
    "topk": _topk,
    "kthvalue": _kth,
    "median": _median,
}
