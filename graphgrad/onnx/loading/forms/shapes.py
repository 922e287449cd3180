"""Operators that make shapes, change them, or go by them."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from math import prod
from operator import mul
from typing import Any

import numpy as np

from ....base.bounds import at_least
from ....base.errors import FileError, ShapeError
from ....base.length import Length
from ....ir.build import apply
from ....ir.node import Tensor
from ....ir.types import Array, as_dtype
from ....ops.arrays.borders import pad
from ....ops.arrays.nonzero import compress, nonzero
from ....ops.arrays.sets import unique
from ....ops.arrays.taking import take
from ....ops.base import cast, constant, is_floating
from ....ops.create.creation import arange, counting, eye, ones_like, tril, triu
from ....ops.elementwise.logic import where
from ....ops.reduce.cumulative import cumsum
from ....ops.reduce.sorting import argsort, take_along_axis
from ....ops.shape.indexing import getitem
from ....ops.shape.joining import concat, split, stack
from ....ops.shape.padding import EnsureLength, tile
from ....ops.shape.reshaping import (
    broadcast_like,
    expand_dims,
    normal_axis,
    reshape,
    squeeze,
    transpose,
)
from ..call import OperatorCall
from ..lengths import (
    GIVE_SHAPES,
    Dimension,
    RunLength,
    entries,
    expanded,
    has_lengths,
    lengths_of,
    of_lengths,
    reshaped,
    told_by,
)
from ..tensors import dtype_of
from .common import FAR, FEW, few, flat_from
from .table import form


@form("Shape", folded=False)
def _shape(call: OperatorCall) -> Array:
    value = call.values[0]
    lengths = lengths_of(value) if isinstance(value, Tensor) else list(value.shape)
    start, end = call.attribute("start", 0), call.attribute("end")
    return of_lengths(lengths[start:end])


@form("Size", folded=False)
def _size(call: OperatorCall) -> Any:
    value = call.values[0]
    if not isinstance(value, Tensor):
        return np.array(value.size, np.int64)
    size: Any = reduce(mul, lengths_of(value), 1)
    if isinstance(size, int):
        return np.array(size, np.int64)
    made = np.empty((), object)
    made[()] = size
    return made


@form("Reshape")
def _reshape(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    if call.opset < 5:
        dims: list[Dimension] = [int(d) for d in call.needed("shape")]
    else:
        dims = call.dims(1, "shape")
    if not call.attribute("allowzero", 0):
        here = lengths_of(x)
        if any(d == 0 and i >= len(here) for i, d in enumerate(dims)):
            raise ShapeError(
                f"the shape {dims} copies a length of an axis that {x!r} does not have"
            )
        dims = [here[i] if isinstance(d, int) and d == 0 else d for i, d in enumerate(dims)]
    return reshaped(x, dims)


@form("Flatten")
def _flatten(call: OperatorCall) -> Tensor:
    x, axis = call.tensor(0), call.attribute("axis", 1)
    return flat_from(x, axis + x.ndim if axis < 0 else axis)


@form("Squeeze")
def _squeeze(call: OperatorCall) -> Tensor:
    x, axes = call.tensor(0), call.axes(1)
    if axes is None:
        axes = [i for i, d in enumerate(x.shape) if d == 1]
        for i, d in enumerate(x.shape):
            if not isinstance(d, int) and (d is None or not at_least(d, 2)):
                x = apply(EnsureLength(i, 2, "Squeeze, which would take a length of 1,"), x)
    return squeeze(x, tuple(axes))


@form("Unsqueeze")
def _unsqueeze(call: OperatorCall) -> Tensor:
    axes = call.axes(1)
    return expand_dims(call.tensor(0), tuple(axes or ()))


@form("Transpose")
def _transpose(call: OperatorCall) -> Tensor:
    x, axes = call.tensor(0), call.attribute("perm")
    return transpose(x, tuple(range(x.ndim))[::-1] if axes is None else tuple(axes))


@form("Expand")
def _expand(call: OperatorCall) -> Tensor:
    return expanded(call.tensor(0), call.dims(1, "shape"))


@form("Tile")
def _tile(call: OperatorCall) -> Tensor:
    return tile(call.tensor(0), tuple(_told(call, 1, "repeats")))


def _told(call: OperatorCall, i: int, what: str) -> list[int | Length]:
    """An input of numbers that are known, or that lengths of inputs tell."""
    dims = call.dims(i, what)
    if any(isinstance(d, RunLength) for d in dims):
        raise FileError(f"its {what}, {dims}, depend on data")
    return dims  # type: ignore[return-value]


@form("Concat")
def _concat(call: OperatorCall) -> Tensor:
    return concat(call.tensors, call.attribute("axis", 1))


@form("Split")
def _split(call: OperatorCall) -> tuple[Tensor, ...]:
    x, count = call.tensor(0), len(call.wanted)
    axis = normal_axis(call.attribute("axis", 0), x.ndim)
    call.attribute("num_outputs")
    sizes: Any = call.attribute("split")
    if sizes is None and call.given(1):
        sizes = _told(call, 1, "split")
    if sizes is None:
        length = x.shape[axis]
        if length is None:
            raise ShapeError(f"{x!r} is split along axis {axis}, whose length is not known")
        part = (length + count - 1) // count
        cuts = [Length.min(i * part, length) for i in range(1, count)]
    elif len(sizes) != count:
        raise ShapeError(f"it splits into {len(sizes)} parts, and has {count} outputs")
    else:
        *cuts, total = accumulate(sizes)
        x = _as_long(x, axis, total)
    return split(x, tuple(cuts), axis) if cuts else (x,)


def _as_long(x: Tensor, axis: int, total: int | Length) -> Tensor:
    """x, an axis of which has this length, which a run checks where it is not known."""
    have = x.shape[axis]
    if isinstance(have, int) and isinstance(total, int) and have != total:
        raise ShapeError(
            f"{x!r} is split along axis {axis} into parts of {total} elements in total"
        )
    if have == total:
        return x
    return reshaped(x, [total if i == axis else d for i, d in enumerate(lengths_of(x))])


@form("Slice")
def _slice(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    if call.opset < 10:
        starts, ends = list(call.needed("starts")), list(call.needed("ends"))
        axes, steps = call.attribute("axes"), None
    else:
        starts, ends = call.dims(1, "starts"), call.dims(2, "ends")
        axes = [int(a) for a in call.known(3, "axes")] if call.given(3) else None
        steps = [int(s) for s in call.known(4, "steps")] if call.given(4) else None
    axes = range(len(starts)) if axes is None else [normal_axis(a, x.ndim) for a in axes]
    steps = [1] * len(starts) if steps is None else steps
    key = [slice(None)] * x.ndim
    for axis, *row in zip(axes, starts, ends, steps, strict=True):
        key[axis] = _cut(x, axis, *row)
    return getitem(x, tuple(key))


def _cut(x: Tensor, axis: int, start: Any, end: Any, step: int) -> slice:
    """A slice of an axis; what begins or ends beyond it does so at its end."""
    length = lengths_of(x)[axis]
    if not isinstance(end, int) and end == length and step > 0:
        end = FAR
    if isinstance(start, int) and start < -1 and step < 0 and not isinstance(length, RunLength):
        start = Length.max(length + start, 0)  # one before the front is the front
    if not all(isinstance(d, int) or _from_front(d) for d in (start, end)):
        raise FileError(
            f"it slices {x!r} at a length that is only known at run time: {start}, {end}. "
            f"{GIVE_SHAPES}"
        )
    if isinstance(start, Length) or isinstance(end, Length):
        far = isinstance(end, int) and abs(end) >= FAR
        return slice(start, None if far else end, step)
    if step > 0:
        return slice(start or None, None if end >= FAR else end, step)
    return slice(None if start >= FAR else start, None if end <= -FAR else end, step)


def _from_front(d: Dimension) -> bool:
    """Whether a length is a place from the front, which negative numbers are not."""
    return isinstance(d, Length) and at_least(d, 0)


@form("ConstantOfShape", folded=False)
def _constant_of_shape(call: OperatorCall) -> Any:
    value = call.attribute("value", np.zeros(1, np.float32))
    dims = call.dims(0, "shape")
    if value.size != 1:
        raise FileError(f"its value has {value.size} elements, not one")
    known = [d for d in dims if isinstance(d, int)]
    if len(known) == len(dims) and prod(known) <= FEW:
        return np.full(known, value.reshape(()), value.dtype)
    return expanded(constant(value.reshape(()), value.dtype), dims)


@form("Constant", folded=False)
def _constant(call: OperatorCall) -> Array:
    kinds = {"value_int": "int64", "value_ints": "int64"}
    kinds |= {"value_float": "float32", "value_floats": "float32"}
    for name, dtype in kinds.items():
        literal = call.attribute(name)
        if literal is not None:
            return np.array(literal, dtype)
    value = call.attribute("value")
    if value is None:
        raise FileError("it does not hold an array of numbers")
    array: Array = value
    return array


@form("Range")
def _range(call: OperatorCall) -> Any:
    bounds = [_bound(v) for v in call.values]
    if any(has_lengths(v) for v in bounds):
        made = _up_to_length(*(_place(call, i, v) for i, v in enumerate(bounds)))
        return made if not call.given(0) else cast(made, call.tensor(0).dtype)
    start, end, step = (call.known(i, "bounds").reshape(()) for i in range(3))
    exact = "float64" if is_floating(start.dtype) else "int64"
    first, last, by = (row.astype(exact) for row in (start, end, step))
    if not by:
        raise FileError("its step is 0")
    count = few(max(0, int(np.ceil((last - first) / by))))
    return (first + np.arange(count) * by).astype(start.dtype)


def _bound(value: Any) -> Any:
    """A length where a tensor is no more than one of another dtype; an integer as an int."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value == np.rint(value):
        return value.astype("int64")
    length = told_by(value) if isinstance(value, Tensor) else None
    return value if length is None else of_lengths([length])


def _place(call: OperatorCall, i: int, bound: Any) -> Dimension:
    """A bound as an int or a length."""
    if isinstance(bound, Tensor):
        bound = call.known(i, "bounds")
    if bound.dtype.kind == "f":
        raise FileError(
            f"its step is not an integer, and its end is only known at run time. {GIVE_SHAPES}"
        )
    return entries(bound)[0]


def _up_to_length(start: Dimension, end: Dimension, step: Dimension) -> Tensor:
    """0, 1, 2, ... up to a length that is known only at run time."""
    if isinstance(step, int) and not any(isinstance(d, RunLength) for d in (start, end)):
        return arange(start, end, step)
    if start != 0 or step != 1 or not isinstance(end, RunLength):
        raise FileError(
            f"it counts from {start} to {end} by {step}, which is only known at run time"
        )
    return cumsum(expanded(constant([1], "int64"), [end]), 0) - 1


@form("EyeLike", folded=False)
def _eye_like(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    number = call.attribute("dtype")
    dtype = x.dtype if number is None else dtype_of(number, "the result")
    sides: Any = x.shape
    rows, columns = sides
    if rows is None or columns is None:
        raise ShapeError(f"EyeLike of {x!r} needs known lengths")
    return eye(rows, columns, k=call.attribute("k", 0), dtype=dtype)


@form("Trilu")
def _trilu(call: OperatorCall) -> Tensor:
    k = call.whole(1, "diagonal") if call.given(1) else 0
    return (triu if call.attribute("upper", 1) else tril)(call.tensor(0), k)


@form("Pad")
def _pad(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    mode = call.attribute("mode", "constant")
    if call.opset < 11:
        widths = list(call.attribute("pads", call.attribute("paddings", [])))
        value: Any = call.attribute("value", 0.0)
    else:
        widths = _told(call, 1, "widths")
        value = call.values[2] if call.given(2) else 0
        value = value if isinstance(value, Tensor) else np.reshape(value, ()).item()
    axes = [normal_axis(a, x.ndim) for a in call.axes(3) or range(x.ndim)]
    if len(widths) != 2 * len(axes):
        raise ShapeError(f"it has {len(widths)} pad widths for {len(axes)} axes of {x!r}")
    pairs = [(0, 0)] * x.ndim
    for i, axis in enumerate(axes):
        pairs[axis] = widths[i], widths[i + len(axes)]
    for n in widths:
        if isinstance(n, Length) and not at_least(n, 0):
            raise FileError(f"it pads {x!r} by {n}, which may be negative. {GIVE_SHAPES}")
    cut = tuple(slice(-_below(a) or None, _below(b) or None) for a, b in pairs)
    if any(key != slice(None) for key in cut):
        x = getitem(x, cut)
    borders = [(a - _below(a), b - _below(b)) for a, b in pairs]
    if all(n == 0 for pair in borders for n in pair):
        return x
    if isinstance(value, Tensor):
        inside = pad(ones_like(x).astype("bool"), borders)
        return where(inside, pad(x, borders), reshape(value, ()))
    return pad(x, borders, constant_values=value) if mode == "constant" else pad(x, borders, mode)


def _below(width: int | Length) -> int:
    """How far a width is below 0, as a length never is."""
    return min(width, 0) if isinstance(width, int) else 0


@form("DepthToSpace")
def _depth_to_space(call: OperatorCall) -> Tensor:
    x, b = call.tensor(0), call.needed("blocksize")
    n, c, h, w = _image(x)
    if call.attribute("mode", "DCR") == "DCR":
        parts = reshaped(x, [n, b, b, c // (b * b), h, w])
        moved = transpose(parts, (0, 3, 4, 1, 5, 2))
    else:
        parts = reshaped(x, [n, c // (b * b), b, b, h, w])
        moved = transpose(parts, (0, 1, 4, 2, 5, 3))
    return reshaped(moved, [n, c // (b * b), h * b, w * b])


@form("SpaceToDepth")
def _space_to_depth(call: OperatorCall) -> Tensor:
    x, b = call.tensor(0), call.needed("blocksize")
    n, c, h, w = _image(x)
    parts = reshaped(x, [n, c, h // b, b, w // b, b])
    order = (0, 3, 5, 1, 2, 4) if call.attribute("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    return reshaped(transpose(parts, order), [n, c * b * b, h // b, w // b])


def _image(x: Tensor) -> tuple[Any, int, Any, Any]:
    n, *rest = lengths_of(x)
    if len(rest) != 3 or not isinstance(rest[0], int) or RunLength in map(type, rest):
        raise ShapeError(f"{x!r} is not an image of known channels (N, C, H, W)")
    c, h, w = rest
    return n, c, h, w  # type: ignore[return-value]


@form("CenterCropPad")
def _center_crop_pad(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    wanted = [int(n) for n in call.known(1, "shape")]
    axes = [normal_axis(a, x.ndim) for a in call.attribute("axes") or range(x.ndim)]
    for axis, length in zip(axes, wanted, strict=True):
        have = x.shape[axis]
        if not isinstance(have, int):
            raise ShapeError(f"{x!r} is cropped along axis {axis}, whose length is not known")
        if length < have:
            start = (have - length) // 2
            x = getitem(x, (slice(None),) * axis + (slice(start, start + length),))
        elif length > have:
            before = (length - have) // 2
            widths = [(0, 0)] * x.ndim
            widths[axis] = before, length - have - before
            x = pad(x, widths)
    return x


@form("Compress")
def _compress(call: OperatorCall) -> Tensor:
    return compress(call.tensor(1), call.tensor(0), call.attribute("axis"))


@form("NonZero")
def _nonzero(call: OperatorCall) -> Tensor:
    return stack(nonzero(call.tensor(0)))


@form("Unique")
def _unique(call: OperatorCall) -> tuple[Tensor, ...]:
    x, axis = call.tensor(0), call.attribute("axis")
    axis = None if axis is None else normal_axis(axis, x.ndim)
    y, first, inverse, counts = unique(x, True, True, True, axis)
    inverse = reshape(inverse, (-1,))
    if not call.attribute("sorted", 1):
        order = argsort(first)
        y = take(y, order, axis or 0)
        first, counts, inverse = (
            take(first, order),
            take(counts, order),
            take(argsort(order), inverse),
        )
    return y, first, inverse, counts


@form("ReverseSequence")
def _reverse_sequence(call: OperatorCall) -> Tensor:
    x, lengths = call.tensor(0), call.tensor(1)
    time, batch = call.attribute("time_axis", 0), call.attribute("batch_axis", 1)
    count = x.shape[time]
    if count is None:
        raise ShapeError(f"{x!r} is reversed along axis {time}, whose length is not known")
    steps = counting(count).reshape((-1, 1))
    ends = cast(lengths, as_dtype("int64")).reshape((1, -1))
    places = where(steps < ends, ends - 1 - steps, steps)  # (time, batch)
    places = transpose(places) if batch < time else places
    shape = [d if i in (time, batch) else 1 for i, d in enumerate(lengths_of(x))]
    return take_along_axis(x, broadcast_like(reshaped(places, shape), x), axis=time)
