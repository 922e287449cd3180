"""Gathers, scatters and windows of XLA, by the operations of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any

import numpy as np

from ..opened import Form, gg

__all__ = ["FORMS", "padded"]

CLIP, FILL, PROMISE = "CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS"


def _along(n: Any, axis: int, rank: int) -> Any:
    """0, 1, 2, ... along an axis, for broadcasting."""
    shape = [1] * rank
    shape[axis] = n
    return gg.reshape(gg.arange(n), tuple(shape))


def _spread(t: Any, axes: Sequence[int], rank: int) -> Any:
    """A tensor whose axes are these of a result of this rank, for broadcasting."""
    shape: list[Any] = [1] * rank
    for d, axis in zip(t.shape, axes, strict=True):
        shape[axis] = d
    return gg.reshape(t, tuple(shape))


def _places(
    lengths: Sequence[Any],
    indices: Any,
    into: Sequence[int],
    batching: Sequence[tuple[int, int]],
    windows: dict[int, tuple[int, Any]],
    batch_axes: Sequence[int],
    rank: int,
    mode: str,
) -> tuple[list[Any], Any]:
    """Of each axis of the operand the places that are read or written, broadcast over a result of
    this rank, and where they are inside; None: everywhere.

    lengths     of the operand
    indices     (..., k): where windows begin
    into        the axis of the operand that each of the k counts along
    batching    (axis of the operand, axis of the indices) that go together
    windows     {axis of the operand: (axis of the result, length)} of a window
    batch_axes  the axes of the result that the others of the indices are
    """
    places, inside = [], None
    starts = {axis: indices[..., k] for k, axis in enumerate(into)}
    rows = dict(batching)
    for axis, n in enumerate(lengths):
        at: Any = 0
        size: Any = windows[axis][1] if axis in windows else 1
        if axis in starts:
            start = gg.cast(starts[axis], "int64")
            last = n - size
            if mode == CLIP:
                start = gg.clip(start, 0, last)
            elif mode == FILL:
                fits = gg.logical_and(start >= 0, start <= last)
                inside = fits if inside is None else gg.logical_and(inside, fits)
                start = gg.clip(start, 0, last)
            at = at + _spread(start, batch_axes, rank)
        if axis in rows:
            at = at + _along(n, batch_axes[rows[axis]], rank)
        if axis in windows:
            at = at + _along(size, windows[axis][0], rank)
        places.append(gg.asarray(at))
    return places, None if inside is None else _spread(inside, batch_axes, rank)


def gather(
    x: Any,
    indices: Any,
    *,
    dimension_numbers: Any,
    slice_sizes: Sequence[Any],
    mode: Any,
    fill_value: Any,
    **_: Any,
) -> Any:
    """XLA's gather: windows of x that begin at indices."""
    d = dimension_numbers
    gone = {*d.collapsed_slice_dims, *d.operand_batching_dims}
    kept = [axis for axis in range(x.ndim) if axis not in gone]
    rank = indices.ndim - 1 + len(d.offset_dims)
    windows = {a: (o, slice_sizes[a]) for a, o in zip(kept, d.offset_dims, strict=True)}
    batch_axes = [a for a in range(rank) if a not in d.offset_dims]
    batching = list(zip(d.operand_batching_dims, d.start_indices_batching_dims, strict=True))
    whole = [a for a in kept if a not in d.start_index_map and slice_sizes[a] == x.shape[a]]
    picked = [a for a in range(x.ndim) if a not in whole]
    how = _mode(mode)
    if len(picked) == 1 and not batching and slice_sizes[picked[0]] == 1 and picked[0] in gone:
        return _taken(x, indices[..., 0], picked[0], windows, batch_axes, rank, how, fill_value)
    places, inside = _places(
        x.shape, indices, d.start_index_map, batching, windows, batch_axes, rank, how
    )
    y = gg.getitem(x, tuple(places))
    return y if inside is None else _filled(y, inside, fill_value)


def _taken(
    x: Any,
    indices: Any,
    axis: int,
    windows: dict[int, tuple[int, Any]],
    batch_axes: Sequence[int],
    rank: int,
    mode: str,
    fill_value: Any,
) -> Any:
    """A gather of whole rows: `take`, and its axes in order."""
    n = x.shape[axis]
    at = gg.cast(indices, "int64")
    inside = gg.logical_and(at >= 0, at < n) if mode == FILL else None
    y = gg.take(x, at if mode == PROMISE else gg.clip(at, 0, n - 1), axis)
    here = [windows[a][0] for a in range(axis) if a in windows]
    after = [windows[a][0] for a in range(axis + 1, x.ndim) if a in windows]
    axes = [*here, *batch_axes, *after]
    y = gg.transpose(y, tuple(axes.index(a) for a in range(rank)))
    return y if inside is None else _filled(y, _spread(inside, batch_axes, rank), fill_value)


def _filled(y: Any, inside: Any, fill_value: Any) -> Any:
    if fill_value is None:
        kind = y.dtype.kind
        fill_value = gg.nan if kind in "fc" else gg.iinfo(y.dtype).min if kind == "i" else 0
        if kind == "u":
            fill_value = gg.iinfo(y.dtype).max
        if kind == "b":
            fill_value = True
    return gg.where(inside, y, gg.constant(fill_value, y.dtype))


def _mode(mode: Any) -> str:
    return getattr(mode, "name", str(mode))


def scatter(how: str) -> Any:
    """XLA's scatter, whose updates are put in by a method of `gg.at`."""

    def scattered(
        x: Any, indices: Any, updates: Any, *, dimension_numbers: Any, mode: Any, **_: Any
    ) -> Any:
        d = dimension_numbers
        gone = {*d.inserted_window_dims, *d.operand_batching_dims}
        kept = [axis for axis in range(x.ndim) if axis not in gone]
        windows = {
            a: (u, updates.shape[u]) for a, u in zip(kept, d.update_window_dims, strict=True)
        }
        batch_axes = [a for a in range(updates.ndim) if a not in d.update_window_dims]
        batching = list(zip(d.operand_batching_dims, d.scatter_indices_batching_dims, strict=True))
        places, inside = _places(
            x.shape,
            indices,
            d.scatter_dims_to_operand_dims,
            batching,
            windows,
            batch_axes,
            updates.ndim,
            _mode(mode),
        )
        places = [gg.broadcast_to(at, updates.shape) for at in places]
        if inside is None:
            return getattr(gg.at(x)[tuple(places)], how)(updates)
        total = reduce(lambda a, b: a * b, x.shape, 1)
        flat = reduce(lambda a, b: a * b[1] + b[0], zip(places, x.shape, strict=True), 0)
        flat = gg.reshape(gg.where(inside, flat, total), (-1,))  # one place more takes the rest
        room = gg.concat([gg.reshape(x, (-1,)), gg.zeros((1,), x.dtype)])
        made = getattr(gg.at(room)[flat], how)(gg.reshape(updates, (-1,)))
        return gg.reshape(made[:total], x.shape)

    return scattered


def _scatter_set(*xs: Any, update_jaxpr: Any = None, **params: Any) -> Any:
    """Numbers that are put in; a program that makes them is that of `x.at[i].apply(f)`."""
    if update_jaxpr is not None:
        raise NotImplementedError("a function of the numbers there, as of x.at[i].apply()")
    return scatter("set")(*xs, **params)


def _scatter_sub(x: Any, indices: Any, updates: Any, **params: Any) -> Any:
    return scatter("add")(x, indices, -updates, **params)


# --- windows -----------------------------------------------------------------------------------


def spread_out(x: Any, axis: int, interior: int, value: Any) -> Any:
    """x with so many numbers between neighbours along an axis."""
    if not interior:
        return x
    n = x.shape[axis]
    wide = gg.expand_dims(x, axis + 1)
    widths = [(0, 0)] * wide.ndim
    widths[axis + 1] = (0, interior)
    wide = gg.pad(wide, widths, constant_values=value)
    shape = [*x.shape]
    shape[axis] = n * (interior + 1)
    whole = gg.reshape(wide, tuple(shape))
    key: list[Any] = [slice(None)] * x.ndim
    key[axis] = slice(0, n * (interior + 1) - interior if n != 0 else 0)
    return whole[tuple(key)]


def padded(x: Any, value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Any:
    """XLA's pad: before, after and between, where negative widths cut."""
    fill = gg.asarray(value)
    if any(max(lo, hi, inside) > 0 for lo, hi, inside in padding_config):
        mask = gg.ones(x.shape, "bool")
        inner = x
        for axis, (_lo, _hi, inside) in enumerate(padding_config):
            inner, mask = (spread_out(t, axis, inside, 0) for t in (inner, mask))
        widths = [(max(lo, 0), max(hi, 0)) for lo, hi, _ in padding_config]
        inner, mask = gg.pad(inner, widths), gg.pad(mask, widths)
        x = inner if is_zero(fill) else gg.where(mask, inner, fill)
    cut = [slice(-lo if lo < 0 else None, hi if hi < 0 else None) for lo, hi, _ in padding_config]
    return x[tuple(cut)] if any(c != slice(None) for c in cut) else x


def is_zero(t: Any) -> bool:
    """Whether a number is a constant 0."""
    value = getattr(t.node.op, "value", None)
    return value is not None and value.size == 1 and value.reshape(-1)[0] == 0


def windowed(combine: str, neutral: Any) -> Any:
    """XLA's reduce_window by a binary function."""

    def reduced(
        x: Any,
        *,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int],
        padding: Sequence[tuple[int, int]],
        base_dilation: Sequence[int],
        window_dilation: Sequence[int],
        **_: Any,
    ) -> Any:
        for axis, step in enumerate(base_dilation):
            x = spread_out(x, axis, step - 1, neutral(x.dtype))
        pooled = _pooled(combine, x, window_dimensions, window_strides, padding, window_dilation)
        if pooled is not None:
            return pooled
        x = padded(x, neutral(x.dtype), [(lo, hi, 0) for lo, hi in padding])
        spans = [(k - 1) * d + 1 for k, d in zip(window_dimensions, window_dilation, strict=True)]
        counts = [(n - s) // t + 1 for n, s, t in zip(x.shape, spans, window_strides, strict=True)]
        parts = []
        for offsets in product(*map(range, window_dimensions)):
            rows = zip(offsets, window_dilation, counts, window_strides, strict=True)
            parts.append(x[tuple(slice(o * d, o * d + (c - 1) * s + 1, s) for o, d, c, s in rows)])
        if combine == "add":
            return reduce(gg.add, parts)
        rows = gg.stack(parts)  # the first of equal numbers has all of the gradient
        places = (gg.argmax if combine == "maximum" else gg.argmin)(rows, axis=0, keepdims=True)
        return gg.squeeze(gg.take_along_axis(rows, places, axis=0), 0)

    return reduced


def _pooled(combine: str, x: Any, window: Any, strides: Any, padding: Any, dilation: Any) -> Any:
    """The pool of an image that a window is, where it is one of (N, ..., C)."""
    rank = x.ndim - 2
    ends = [0, x.ndim - 1]
    if combine != "maximum" or x.dtype.kind != "f" or not 1 <= rank <= 3:
        return None
    if any(window[a] != 1 or strides[a] != 1 or tuple(padding[a]) != (0, 0) for a in ends):
        return None
    pads = tuple(tuple(p) for p in padding[1:-1])
    if any(min(p) < 0 or max(p) * 2 > k for p, k in zip(pads, window[1:-1], strict=True)):
        return None
    return gg.nn.max_pool(
        x,
        tuple(window[1:-1]),
        tuple(strides[1:-1]),
        pads,
        "NHWC",
        dilation=tuple(dilation[1:-1]),
    )


def _pooled_of(select_prim: Any, operand: Any, options: dict[str, Any]) -> Any:
    """The largest or least number of each window."""
    names = ("window_dimensions", "window_strides", "padding")
    given = {name: options[name] for name in names}
    ones = dict.fromkeys(("base_dilation", "window_dilation"), (1,) * operand.ndim)
    given |= {name: options.get(name, one) for name, one in ones.items()}
    return FORMS[_BY_SELECTION[select_prim.name]](operand, **given)


_BY_SELECTION = {"ge": "reduce_window_max", "le": "reduce_window_min"}


def _select_and_scatter_add(source: Any, operand: Any, *, select_prim: Any, **params: Any) -> Any:
    """The gradient of a pool by its largest or least numbers."""
    pooled = _pooled_of(select_prim, operand, params)
    return gg.gradients([pooled], [operand], [source], unconnected="zero")[0]


def _select_and_gather_add(tangents: Any, operand: Any, *, select_prim: Any, **params: Any) -> Any:
    """The derivative of such a pool, forwards."""
    return gg.jvp(_pooled_of(select_prim, operand, params), operand, tangents)


def _lowest(dtype: Any) -> Any:
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max


FORMS: dict[str, Form] = {
    "pad": padded,
    "gather": gather,
    "scatter": _scatter_set,
    "scatter-sub": _scatter_sub,
    "scatter_sub": _scatter_sub,
    "scatter_add": scatter("add"),
    "scatter-add": scatter("add"),
    "scatter_mul": scatter("multiply"),
    "scatter_min": scatter("min"),
    "scatter_max": scatter("max"),
    "scatter-mul": scatter("multiply"),
    "scatter-min": scatter("min"),
    "scatter-max": scatter("max"),
    "reduce_window_sum": windowed("add", lambda dtype: 0),
    "reduce_window_max": windowed("maximum", _lowest),
    "reduce_window_min": windowed("minimum", _highest),
    "select_and_scatter_add": _select_and_scatter_add,
    "select_and_gather_add": _select_and_gather_add,
}
