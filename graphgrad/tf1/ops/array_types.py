"""Op types of shapes and places: reshapes, slices, gathers, joins, choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import graphgrad as gg

from ..definition import define
from ..dtypes import as_dtype
from ..errors import InvalidArgumentError
from ..shapes import TensorShape, axis_in, broadcast, unknown_shape
from ..static import constant_shape, constant_value, key_of
from .elementwise import both, same
from .math_types import axes_of

__all__ = ["sized"]


def sized(trace: Any, t: Any) -> list[int]:
    """The lengths that a tensor says."""
    return [int(n) for n in np.atleast_1d(trace.value(t))]


def _reshaped(inputs: Any, attrs: Any) -> TensorShape:
    wanted = constant_shape(inputs[1])
    given = inputs[0]._shape
    value = constant_value(inputs[1])
    if wanted.lengths is None:
        return wanted
    count = given.num_elements()
    if wanted.is_fully_defined():
        if count is not None and count != wanted.num_elements():
            raise ValueError(
                f"Cannot reshape a tensor with {count} elements to shape {wanted} "
                f"({wanted.num_elements()} elements)"
            )
        return wanted
    free = [i for i, n in enumerate(wanted.lengths) if n is None]
    if len(free) == 1 and count is not None and (value is not None):
        known = int(np.prod([n for n in wanted.lengths if n is not None]))
        if known == 0 or count % known:
            raise ValueError(f"Cannot reshape a tensor with {count} elements to shape {wanted}")
        return TensorShape([count // known if n is None else n for n in wanted.lengths])
    return wanted


@define("Reshape", "tensor shape:int32", infer=_reshaped)
def _reshape(trace: Any, op: Any, x: Any, shape: Any) -> Any:
    return gg.reshape(x, tuple(sized(trace, op.inputs[1])))


def _transposed(inputs: Any, attrs: Any) -> TensorShape:
    shape, perm = inputs[0]._shape, constant_value(inputs[1])
    if perm is None:
        return unknown_shape(shape.ndims)
    if shape.lengths is None:
        return unknown_shape(perm.size)
    if perm.size != len(shape.lengths):
        raise ValueError(f"Dimension must be {perm.size} but is {len(shape.lengths)}")
    rank = perm.size
    if sorted(axis_in(p, rank) for p in perm) != list(range(rank)):
        raise ValueError(f"a permutation of {rank} axes names each once, got {perm.tolist()}")
    return TensorShape([shape.lengths[p] for p in perm])


@define("Transpose", "x perm:int32", infer=_transposed)
def _transpose(trace: Any, op: Any, x: Any, perm: Any) -> Any:
    return gg.transpose(x, tuple(sized(trace, op.inputs[1])))


def _expanded(inputs: Any, attrs: Any) -> TensorShape:
    shape, axis = inputs[0]._shape, constant_value(inputs[1])
    if shape.lengths is None:
        return unknown_shape()
    if axis is None:
        return unknown_shape(len(shape.lengths) + 1)
    rank = len(shape.lengths)
    place = int(axis.reshape(-1)[0])
    if not -rank - 1 <= place <= rank:
        raise ValueError(f"dim {place} not in the interval [{-rank - 1}, {rank}]")
    lengths = list(shape.lengths)
    lengths.insert(place if place >= 0 else place + rank + 1, 1)
    return TensorShape(lengths)


@define("ExpandDims", "input dim:int32", infer=_expanded)
def _expand_dims(trace: Any, op: Any, x: Any, axis: Any) -> Any:
    return gg.expand_dims(x, int(trace.value(op.inputs[1]).reshape(-1)[0]))


def _squeezed(inputs: Any, attrs: Any) -> TensorShape:
    shape, axes = inputs[0]._shape, attrs["squeeze_dims"]
    if shape.lengths is None or (not axes and None in shape.lengths):
        return unknown_shape()
    rank = len(shape.lengths)
    chosen = {axis_in(a, rank) for a in axes} or {i for i, n in enumerate(shape.lengths) if n == 1}
    for a in chosen:
        if shape.lengths[a] not in (1, None):
            raise ValueError(f"Can not squeeze dim[{a}], expected a dimension of 1, got "
                             f"{shape.lengths[a]}")  # fmt: skip
    return TensorShape([n for i, n in enumerate(shape.lengths) if i not in chosen])


@define("Squeeze", "input", infer=_squeezed)
def _squeeze(trace: Any, op: Any, x: Any) -> Any:
    axes = tuple(op.attrs["squeeze_dims"]) or tuple([i for i, n in enumerate(x.shape) if n == 1])
    return gg.squeeze(x, axes)


# joining and splitting


def _joined(inputs: Any, attrs: Any) -> TensorShape:
    axis = constant_value(inputs[-1])
    shapes = [t._shape for t in inputs[:-1]]
    rank = next((s.ndims for s in shapes if s.ndims is not None), None)
    if axis is None or rank is None:
        return unknown_shape(rank)
    place = axis_in(axis, rank)
    merged = unknown_shape(rank)
    total: int | None = 0
    for s in shapes:
        lengths = list(s.lengths if s.lengths is not None else [None] * rank)
        if len(lengths) != rank:
            raise ValueError(f"Shape must be rank {rank} but is rank {len(lengths)}")
        length, lengths[place] = lengths[place], None
        total = None if total is None or length is None else total + length
        merged = merged.merge_with(lengths)
    return TensorShape([total if i == place else n for i, n in enumerate(merged.lengths or ())])


@define("ConcatV2", "values* axis:int32", infer=_joined)
def _concat(trace: Any, op: Any, *xs: Any) -> Any:
    return gg.concat(list(xs[:-1]), axis=int(trace.value(op.inputs[-1])))


def _packed_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape = unknown_shape()
    for t in inputs:
        shape = shape.merge_with(t._shape)
    if shape.lengths is None:
        return shape
    lengths = list(shape.lengths)
    lengths.insert(axis_in(attrs["axis"], len(lengths) + 1), len(inputs))
    return TensorShape(lengths)


@define("Pack", "values*", infer=_packed_shape)
def _pack(trace: Any, op: Any, *xs: Any) -> Any:
    return gg.stack(list(xs), axis=op.attrs["axis"])


def _unpacked_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape = inputs[0]._shape
    if shape.lengths is None:
        return unknown_shape()
    place = axis_in(attrs["axis"], len(shape.lengths))
    if shape.lengths[place] not in (None, attrs["num"]):
        raise ValueError(f"{shape.lengths[place]} parts along axis {place}, not {attrs['num']}")
    return TensorShape([n for i, n in enumerate(shape.lengths) if i != place])


def _each_alike(inputs: Any, attrs: Any) -> Sequence[Any]:
    return [inputs[-1].dtype.base_dtype] * attrs["num"]


@define("Unpack", "value", infer=_unpacked_shape, types=_each_alike)
def _unpack(trace: Any, op: Any, x: Any) -> Any:
    return list(gg.unstack(x, axis=op.attrs["axis"]))


def _split_shape(inputs: Any, attrs: Any) -> TensorShape:
    axis, shape = constant_value(inputs[0]), inputs[1]._shape
    if shape.lengths is None or axis is None:
        return unknown_shape(shape.ndims)
    place, n = axis_in(axis, len(shape.lengths)), attrs["num"]
    length = shape.lengths[place]
    if length is not None and length % n:
        raise ValueError(
            f"Dimension size must be evenly divisible by {n} but is {length}: number of ways to "
            f"split should evenly divide the split dimension"
        )
    part = None if length is None else length // n
    return TensorShape([part if i == place else m for i, m in enumerate(shape.lengths)])


@define("Split", "split_dim:int32 value:A", infer=_split_shape, types=_each_alike)
def _split(trace: Any, op: Any, axis: Any, x: Any) -> Any:
    return list(gg.split(x, op.attrs["num"], axis=int(trace.value(op.inputs[0]))))


def _parts(sizes: Any, length: int) -> list[int]:
    """The lengths of the parts of an axis; one of them may be -1, all the rest."""
    rest = length - int(sizes[sizes >= 0].sum())
    if (sizes < 0).sum() > 1 or rest < 0 or (rest and (sizes >= 0).all()):
        raise ValueError(f"parts of {sizes.tolist()} do not make up an axis of length {length}")
    return [rest if n < 0 else int(n) for n in sizes]


def _split_v_shape(inputs: Any, attrs: Any) -> list[TensorShape]:
    shape, sizes, axis = inputs[0]._shape, constant_value(inputs[1]), constant_value(inputs[2])
    if shape.lengths is None or sizes is None or axis is None:
        return [unknown_shape(shape.ndims)] * attrs["num"]
    place = axis_in(axis, len(shape.lengths))
    length = shape.lengths[place]
    parts = [None if n < 0 else int(n) for n in sizes] if length is None else _parts(sizes, length)
    found = []
    for part in parts:
        found.append(TensorShape([part if i == place else m for i, m in enumerate(shape.lengths)]))
    return found


def _each_first(inputs: Any, attrs: Any) -> Sequence[Any]:
    return [inputs[0].dtype.base_dtype] * attrs["num"]


@define(
    "SplitV", "value size_splits:int32 split_dim:int32", infer=_split_v_shape, types=_each_first
)
def _split_v(trace: Any, op: Any, x: Any, sizes: Any, axis: Any) -> Any:
    place = axis_in(trace.value(op.inputs[2]), len(x.shape))
    found, start = [], 0
    for size in _parts(np.array(sized(trace, op.inputs[1])), x.shape[place]):
        key = (*[slice(None)] * place, slice(start, start + size))
        found.append(x[key])
        start += size
    return found


# slices and places


def _strided_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape = inputs[0]._shape
    values = [constant_value(t) for t in inputs[1:]]
    if shape.lengths is None:
        return unknown_shape()
    if any(v is None for v in values):
        return _partly_strided(inputs, attrs, shape)
    key = key_of(attrs, *values)
    lengths: list[Any] = []
    source = list(shape.lengths)
    rest = sum(k is not None and k is not Ellipsis for k in key)
    if rest > len(source):
        raise ValueError(f"Index out of range using input dim {len(source)}; input has only "
                         f"{len(source)} dims")  # fmt: skip
    at = 0
    if Ellipsis not in key:
        key = (*key, Ellipsis)
    for k in key:
        if k is None:
            lengths.append(1)
        elif k is Ellipsis:
            skipped = len(source) - rest
            lengths += source[at : at + skipped]
            at += skipped
        else:
            n = source[at]
            at += 1
            if isinstance(k, slice):
                lengths.append(None if n is None else len(range(*k.indices(n))))
            elif n is not None and not -n <= k < n:
                raise ValueError(f"slice index {k} of dimension {at - 1} out of bounds.")
    return TensorShape(lengths)


def _partly_strided(inputs: Any, attrs: Any, shape: TensorShape) -> TensorShape:
    """The shape of a slice whose bounds are not known: rank, and lengths that are taken whole."""
    spec = inputs[1]._shape.lengths
    if not spec or spec[0] is None or attrs["ellipsis_mask"] or attrs["new_axis_mask"]:
        return unknown_shape()
    lengths: list[Any] = []
    for i, n in enumerate(shape.lengths or ()):
        if i >= spec[0] or (attrs["begin_mask"] >> i & 1 and attrs["end_mask"] >> i & 1):
            lengths.append(n)
        elif not attrs["shrink_axis_mask"] >> i & 1:
            lengths.append(None)
    return TensorShape(lengths)


@define("StridedSlice", "input begin:A end:A strides:A", infer=_strided_shape)
def _strided_slice(trace: Any, op: Any, x: Any, begin: Any, end: Any, strides: Any) -> Any:
    known = [trace.constant(t) for t in op.inputs[1:]]
    if any(v is None for v in known) and _only_indices(op, len(begin.shape) and begin.shape[0]):
        return _indexed(op, x, begin)
    values = [trace.value(t) for t in op.inputs[1:]]
    return x[key_of(op.attrs, *values)]


def _only_indices(op: Any, count: int) -> bool:
    """Whether each axis is either taken whole or at one place."""
    attrs = op.attrs
    if attrs["ellipsis_mask"] or attrs["new_axis_mask"]:
        return False
    whole = attrs["begin_mask"] & attrs["end_mask"]
    return all((whole | attrs["shrink_axis_mask"]) >> i & 1 for i in range(count))


def _indexed(op: Any, x: Any, begin: Any) -> Any:
    """x at places that are known only in a run."""
    axis = 0
    for i in range(begin.shape[0]):
        if op.attrs["shrink_axis_mask"] >> i & 1:
            x = gg.take(x, begin[i], axis=axis)
        else:
            axis += 1
    return x


def _slice_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape, size = inputs[0]._shape, constant_shape(inputs[2])
    begin = constant_value(inputs[1])
    if shape.lengths is None:
        return size
    if size.lengths is None:
        return unknown_shape(len(shape.lengths))
    given = constant_value(inputs[2])
    found: list[Any] = []
    for i, n in enumerate(size.lengths):
        if n is None and given is not None and begin is not None:
            whole = shape.lengths[i]
            found.append(None if whole is None else whole - int(begin[i]))
        else:
            found.append(n)
        if found[-1] is not None and shape.lengths[i] is not None and found[-1] > shape.lengths[i]:
            raise ValueError(f"Slice of {found[-1]} of dimension {i}, which is {shape.lengths[i]}")
    return TensorShape(found)


@define("Slice", "input begin:int32 size:int32", infer=_slice_shape)
def _slice(trace: Any, op: Any, x: Any, begin: Any, size: Any) -> Any:
    sizes = sized(trace, op.inputs[2])
    starts = trace.constant(op.inputs[1])
    if starts is None and -1 not in sizes:
        return gg.dynamic_slice(x, begin, sizes)
    starts = trace.value(op.inputs[1])
    for b, s, n in zip(starts, sizes, x.shape, strict=True):
        if b < 0 or (s != -1 and b + s > n):
            raise InvalidArgumentError(
                None, None, f"Expected begin {b} and size {s} within dimension of length {n}"
            )
    return x[tuple([slice(int(b), n if s == -1 else int(b) + s)
                    for b, s, n in zip(starts, sizes, x.shape, strict=True)])]  # fmt: skip


def _gather_places(axis: Any, attrs: Any, rank: int, count: int) -> tuple[int, int]:
    """The axis of a gather, and of how many axes in front there is one gather each."""
    at, batch = axis_in(axis, rank), attrs.get("batch_dims", 0)
    batch += count if batch < 0 else 0
    if not 0 <= batch <= min(at, count):
        raise ValueError(
            f"batch_dims is at most the axis, {at}, and the rank of the indices, {count}; got "
            f"{attrs['batch_dims']}"
        )
    return at, batch


def _from_start(trace: Any, t: Any, indices: Any, length: int) -> Any:
    """Indices that do not count from the end: one below zero is beyond it."""
    constant = trace.constant(t)
    if constant is not None and not (constant < 0).any():
        return indices
    return gg.where(gg.less(indices, 0), np.array(length, indices.dtype), indices)


def _columns(trace: Any, t: Any, indices: Any, shape: Any) -> tuple[Any, ...]:
    """The indices for each axis, which stand in the last axis."""
    if indices.shape[-1] > len(shape):
        raise ValueError(f"{indices.shape[-1]} indices for each of the elements of {tuple(shape)}")
    places = zip(range(indices.shape[-1]), shape)
    return tuple([_from_start(trace, t, indices[..., i], n) for i, n in places])


def _gathered(inputs: Any, attrs: Any) -> TensorShape:
    shape, places = inputs[0]._shape, inputs[1]._shape
    axis = constant_value(inputs[2])
    if shape.lengths is None or places.lengths is None or axis is None:
        return unknown_shape()
    at, batch = _gather_places(axis, attrs, len(shape.lengths), len(places.lengths))
    lengths = [*shape.lengths[:at], *places.lengths[batch:], *shape.lengths[at + 1 :]]
    return TensorShape(lengths)


def _gathered_rows(inputs: Any, attrs: Any) -> TensorShape:
    shape, places = inputs[0]._shape, inputs[1]._shape
    if shape.lengths is None or places.lengths is None:
        return unknown_shape()
    return TensorShape([*places.lengths, *shape.lengths[1:]])


@define("Gather", "params indices:A", infer=_gathered_rows)
def _gather_rows(trace: Any, op: Any, x: Any, indices: Any) -> Any:
    return gg.take(x, _from_start(trace, op.inputs[1], indices, x.shape[0]), axis=0)


@define("Concat", "concat_dim:A values*", like=1)
def _old_concat(trace: Any, op: Any, *xs: Any) -> Any:
    return gg.concat(list(xs[1:]), axis=int(trace.value(op.inputs[0])))


@define("GatherV2", "params indices:A axis:int32", infer=_gathered)
def _gather(trace: Any, op: Any, x: Any, indices: Any, axis: Any) -> Any:
    rank, count = len(x.shape), len(indices.shape)
    at, batch = _gather_places(trace.value(op.inputs[2]), op.attrs, rank, count)
    indices = _from_start(trace, op.inputs[1], indices, x.shape[at])
    if not batch:
        return gg.take(x, indices, axis=at)
    lead = [
        gg.reshape(gg.arange(n, dtype="int32"), (*[1] * i, n, *[1] * (count - 1 - i)))
        for i, n in enumerate(x.shape[:batch])
    ]
    y = gg.getitem(gg.moveaxis(x, at, batch), (*lead, indices))
    places = range(batch, count)
    return gg.moveaxis(y, tuple(places), tuple([at - batch + i for i in places]))


def _gather_nd_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape, places = inputs[0]._shape, inputs[1]._shape
    if shape.lengths is None or places.lengths is None or places.lengths[-1] is None:
        return unknown_shape()
    return TensorShape([*places.lengths[:-1], *shape.lengths[places.lengths[-1] :]])


@define("GatherNd", "params indices:A", infer=_gather_nd_shape)
def _gather_nd(trace: Any, op: Any, x: Any, indices: Any) -> Any:
    if indices.shape[-1] == 0:
        return gg.broadcast_to(x, (*indices.shape[:-1], *x.shape))
    return gg.getitem(x, _columns(trace, op.inputs[1], indices, x.shape))


def _nd_shape(inputs: Any, attrs: Any) -> TensorShape:
    return constant_shape(inputs[2])


@define("ScatterNd", "indices:A updates shape:A", infer=_nd_shape, like=1)
def _scatter_nd(trace: Any, op: Any, indices: Any, updates: Any, shape: Any) -> Any:
    base = gg.zeros(tuple(sized(trace, op.inputs[2])), updates.dtype)
    return gg.add_at(base, _columns(trace, op.inputs[0], indices, base.shape), updates)


@define("TensorScatterAdd", "tensor indices:A updates", infer=same)
def _tensor_scatter_add(trace: Any, op: Any, x: Any, indices: Any, updates: Any) -> Any:
    return gg.add_at(x, _columns(trace, op.inputs[1], indices, x.shape), updates)


@define("TensorScatterUpdate", "tensor indices:A updates", infer=same)
def _tensor_scatter_update(trace: Any, op: Any, x: Any, indices: Any, updates: Any) -> Any:
    return gg.at(x)[_columns(trace, op.inputs[1], indices, x.shape)].set(updates)


def _one_hot_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape, depth = inputs[0]._shape, constant_value(inputs[1])
    if shape.lengths is None:
        return unknown_shape()
    lengths, axis = list(shape.lengths), attrs["axis"]
    lengths.insert(axis if axis >= 0 else len(lengths), None if depth is None else int(depth))
    return TensorShape(lengths)


@define("OneHot", "indices:A depth:int32 on_value off_value", infer=_one_hot_shape, like=2)
def _one_hot(trace: Any, op: Any, indices: Any, depth: Any, on: Any, off: Any) -> Any:
    n = int(trace.value(op.inputs[1]))
    axis = op.attrs["axis"]
    at = axis if axis >= 0 else len(indices.shape)
    places = np.arange(n).reshape((n,) + (1,) * (len(indices.shape) - at))
    return gg.where(gg.equal(gg.expand_dims(gg.cast(indices, "int64"), at), places), on, off)


def _tiled(inputs: Any, attrs: Any) -> TensorShape:
    shape, times = inputs[0]._shape, constant_shape(inputs[1])
    if shape.lengths is None or times.lengths is None:
        return unknown_shape(shape.ndims)
    both_ = zip(shape.lengths, times.lengths, strict=True)
    return TensorShape([None if m is None or n is None else m * n for m, n in both_])


@define("Tile", "input multiples:int32", infer=_tiled)
def _tile(trace: Any, op: Any, x: Any, multiples: Any) -> Any:
    times = sized(trace, op.inputs[1])
    if all(n == 1 for n in times):
        return gg.identity(x)
    return gg.tile(x, tuple(times))


def _padded(inputs: Any, attrs: Any) -> TensorShape:
    shape, widths = inputs[0]._shape, constant_value(inputs[1])
    if shape.lengths is None or widths is None:
        return unknown_shape(shape.ndims)
    lengths = zip(shape.lengths, widths, strict=True)
    return TensorShape([None if n is None else n + int(w.sum()) for n, w in lengths])


def _widths(trace: Any, op: Any) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in trace.value(op.inputs[1])]


@define("Pad", "input paddings:int32", infer=_padded)
def _pad(trace: Any, op: Any, x: Any, paddings: Any) -> Any:
    return gg.pad(x, _widths(trace, op))


@define("PadV2", "input paddings:int32 constant_values", infer=_padded)
def _pad_v2(trace: Any, op: Any, x: Any, paddings: Any, fill: Any) -> Any:
    widths = _widths(trace, op)
    inside = gg.pad(gg.ones(x.shape, "bool"), widths, constant_values=False)
    return gg.where(inside, gg.pad(x, widths), fill)


@define("MirrorPad", "input paddings:int32", infer=_padded)
def _mirror_pad(trace: Any, op: Any, x: Any, paddings: Any) -> Any:
    mode, widths = op.attrs["mode"].decode().lower(), _widths(trace, op)
    if any(max(w) > n - (mode == "reflect") for w, n in zip(widths, x.shape, strict=True)):
        raise ValueError(f"paddings {widths} are more than there is to mirror in {x.shape}")
    return gg.pad(x, widths, mode=mode)


@define("ReverseV2", "tensor axis:int32", infer=same)
def _reverse(trace: Any, op: Any, x: Any, axis: Any) -> Any:
    axes = axes_of(trace, op.inputs[1])
    return gg.flip(x, axes) if axes else gg.identity(x)


@define("Roll", "input shift:int32 axis:int32", infer=same)
def _roll(trace: Any, op: Any, x: Any, shift: Any, axis: Any) -> Any:
    return gg.roll(x, tuple(sized(trace, op.inputs[1])), axes_of(trace, op.inputs[2]))


# shapes as tensors


def _out_type(inputs: Any, attrs: Any) -> Sequence[Any]:
    return [as_dtype(attrs.get("out_type", "int32"))]


def _rank_shape(inputs: Any, attrs: Any) -> TensorShape:
    return TensorShape([inputs[0]._shape.ndims])


def _scalar(inputs: Any, attrs: Any) -> TensorShape:
    return TensorShape(())


define("Shape", "input:A", infer=_rank_shape, types=_out_type,
       native=lambda x: np.array(x.shape, "int64"))  # fmt: skip
define("Size", "input:A", infer=_scalar, types=_out_type,
       native=lambda x: np.array(int(np.prod(x.shape)), "int64"))  # fmt: skip
define("Rank", "input:A", infer=_scalar, dtype="int32",
       native=lambda x: np.array(len(x.shape), "int64"))  # fmt: skip


def _range_shape(inputs: Any, attrs: Any) -> TensorShape:
    values = [constant_value(t) for t in inputs]
    if any(v is None for v in values):
        return unknown_shape(1)
    start, limit, delta = values
    if delta == 0 or (limit - start) * delta < 0:
        raise ValueError(f"no range from {start} to {limit} in steps of {delta}")
    return TensorShape([np.arange(*values).size])


@define("Range", "start limit delta", infer=_range_shape)
def _range(trace: Any, op: Any, *_: Any) -> Any:
    return np.arange(*[trace.value(t) for t in op.inputs])


@define("LinSpace", "start stop num:int32")
def _linspace(trace: Any, op: Any, start: Any, stop: Any, num: Any) -> Any:
    count = int(trace.value(op.inputs[2]))
    if count < 1:
        raise ValueError(f"Requires num > 0: {count}")
    return gg.linspace(start, stop, count)


def _filled(inputs: Any, attrs: Any) -> TensorShape:
    inputs[1]._shape.merge_with([])
    return constant_shape(inputs[0])


@define("Fill", "dims:int32 value:A", infer=_filled, like=1)
def _fill(trace: Any, op: Any, dims: Any, value: Any) -> Any:
    return gg.broadcast_to(value, tuple(sized(trace, op.inputs[0])))


@define("BroadcastTo", "input shape:int32", infer=lambda i, a: constant_shape(i[1]))
def _broadcast_to(trace: Any, op: Any, x: Any, shape: Any) -> Any:
    return gg.broadcast_to(x, tuple(sized(trace, op.inputs[1])))


define("SumLike", "x like", infer=lambda i, a: i[1]._shape, no_gradient=[1],
       native=lambda x, like: gg.sum_to(x, like=like))  # fmt: skip


@define("GradientOf", "x like", infer=same, no_gradient=[1])
def _gradient_of(trace: Any, op: Any, x: Any, like: Any) -> Any:
    """What a rule returned, which has to have the shape of the input that it is for."""
    if x.shape != like.shape:
        of, place = op.attrs["_of"]
        raise ValueError(
            f"the gradient of {of.type} {of.name!r} (built at {of.where}) for input {place} has "
            f"shape {tuple(x.shape)}, the input {tuple(like.shape)}"
        )
    return x


define("ZerosLike", "x", infer=same, native=lambda x: gg.zeros(x.shape, x.dtype))
define("OnesLike", "x", infer=same, native=lambda x: gg.ones(x.shape, x.dtype))
define("Identity", "input:A", infer=same, native=lambda x: x, host=lambda r, op, x: [x])
for _type in ("Snapshot", "RefIdentity", "PlaceholderWithDefault"):
    define(_type, "input:A", infer=same, native=lambda x: x)
for _type in ("StopGradient", "PreventGradient"):
    define(_type, "input", infer=same, native=lambda x: x)


@define("EnsureShape", "input:A", infer=same)
def _ensure_shape(trace: Any, op: Any, x: Any) -> Any:
    wanted = op.outputs[0].shape
    if not wanted.is_compatible_with(x.shape):
        raise ValueError(
            f"Shape of tensor {x.shape} is not compatible with expected shape {wanted}"
        )
    return x


define("IdentityN", "input*:A", native=lambda *xs: xs, infer=lambda i, a: [t._shape for t in i],
       types=lambda i, a: [t.dtype.base_dtype for t in i])  # fmt: skip


def _check_numerics(run: Any, op: Any, x: Any) -> Any:
    found = [w for w, bad in (("Inf", np.isinf(x)), ("NaN", np.isnan(x))) if bad.any()]
    if found:
        message = op.attrs["message"].decode()
        raise InvalidArgumentError(
            op.node_def, op, f"{message} : Tensor had {' and '.join(found)} values"
        )
    return [x]


define("CheckNumerics", "tensor", infer=same, host=_check_numerics)


# choices


def _select_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape = inputs[1]._shape.merge_with(inputs[2]._shape)
    if inputs[0]._shape.ndims == 1 and shape.ndims:
        inputs[0]._shape.merge_with(list(shape.lengths[:1]))
    elif inputs[0]._shape.ndims:
        inputs[0]._shape.merge_with(shape)
    return shape


@define("Select", "condition:bool t e", infer=_select_shape, like=1)
def _select(trace: Any, op: Any, condition: Any, x: Any, y: Any) -> Any:
    if len(condition.shape) == 1 and len(x.shape) > 1:
        condition = gg.reshape(condition, (-1,) + (1,) * (len(x.shape) - 1))
    return gg.where(condition, x, y)


def _chosen(inputs: Any, attrs: Any) -> TensorShape:
    return broadcast(inputs[0]._shape, broadcast(inputs[1]._shape, inputs[2]._shape))


define("SelectV2", "condition:bool t e", native=gg.where, infer=_chosen, like=1)


def _places(run: Any, op: Any, condition: Any) -> Any:
    return [np.argwhere(condition)]


define("Where", "condition:A", host=_places, dtype="int64",
       infer=lambda i, a: TensorShape([None, i[0]._shape.ndims]))  # fmt: skip


def _unique(run: Any, op: Any, x: Any) -> Any:
    values, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    rank = np.argsort(order)
    found = [values[order], rank[inverse.reshape(-1)], counts[order]]
    return found[: len(op.outputs)]


def _unique_shapes(inputs: Any, attrs: Any) -> list[TensorShape]:
    shape = inputs[0]._shape.merge_with([None])
    return [TensorShape([None]), shape, TensorShape([None])]


define("Unique", "x", host=_unique, infer=lambda i, a: _unique_shapes(i, a)[:2],
       types=lambda i, a: [i[0].dtype.base_dtype, a["out_idx"]])  # fmt: skip
define("UniqueWithCounts", "x", host=_unique,
       infer=_unique_shapes,
       types=lambda i, a: [i[0].dtype.base_dtype, a["out_idx"], a["out_idx"]])  # fmt: skip


def _top_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape, k = inputs[0]._shape, constant_value(inputs[1])
    if shape.lengths is None:
        return unknown_shape()
    return TensorShape([*shape.lengths[:-1], None if k is None else int(k)])


@define("TopKV2", "input k:int32", infer=_top_shape,
        types=lambda i, a: [i[0].dtype.base_dtype, as_dtype("int32")])  # fmt: skip
def _top_k(trace: Any, op: Any, x: Any, k: Any) -> Any:
    return gg.topk(x, int(trace.value(op.inputs[1])))


# matrices


def _diag_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape = inputs[0]._shape
    if shape.ndims == 0:
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    return unknown_shape() if shape.lengths is None else shape.concatenate([shape.lengths[-1]])


@define("MatrixDiag", "diagonal", infer=_diag_shape)
@define("MatrixDiagV3", "diagonal k:A num_rows:A num_cols:A padding_value:A", infer=_diag_shape)
def _matrix_diag(trace: Any, op: Any, x: Any, *_: Any) -> Any:
    return gg.expand_dims(x, -1) * gg.eye(x.shape[-1], dtype=x.dtype)


def _part_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape = inputs[0]._shape
    if shape.lengths is None:
        return unknown_shape()
    *lead, rows, columns = shape.lengths
    return TensorShape([*lead, None if None in (rows, columns) else min(rows, columns)])


define("MatrixDiagPart", "input", native=gg.linalg.diagonal, infer=_part_shape)
define("MatrixDiagPartV3", "input k:A padding_value:A", infer=_part_shape,
       native=lambda x, *_: gg.linalg.diagonal(x))  # fmt: skip


@define("MatrixSetDiagV3", "input diagonal k:A", infer=same)
def _set_diag(trace: Any, op: Any, x: Any, diagonal: Any, k: Any) -> Any:
    rows, columns = x.shape[-2:]
    n = min(rows, columns)
    mask = np.eye(rows, columns, dtype=bool)
    wide = gg.expand_dims(diagonal, -1) * gg.eye(n, dtype=x.dtype)
    pads = [(0, 0)] * (len(x.shape) - 2) + [(0, rows - n), (0, columns - n)]
    return gg.where(mask, gg.pad(wide, pads), x)


@define("Diag", "diagonal")
def _diag(trace: Any, op: Any, x: Any) -> Any:
    flat = gg.reshape(x, (-1,))
    return gg.reshape(gg.diag(flat), (*x.shape, *x.shape))


@define("DiagPart", "input")
def _tensor_diag_part(trace: Any, op: Any, x: Any) -> Any:
    half = x.shape[: len(x.shape) // 2]
    n = int(np.prod(half))
    return gg.reshape(gg.diagonal(gg.reshape(x, (n, n))), half)


@define("MatrixBandPart", "input num_lower:A num_upper:A", infer=same)
def _band(trace: Any, op: Any, x: Any, *_: Any) -> Any:
    lower, upper = (int(trace.value(t)) for t in op.inputs[1:])
    if lower > x.shape[-2] or upper > x.shape[-1]:
        raise ValueError(
            f"{lower} diagonals below and {upper} above, in matrices of {x.shape[-2:]}"
        )
    i, j = np.indices(x.shape[-2:])
    keep = ((lower < 0) | (i - j <= lower)) & ((upper < 0) | (j - i <= upper))
    return gg.where(keep, x, gg.zeros_like(x))


@define("InvertPermutation", "x", infer=same)
def _invert_permutation(trace: Any, op: Any, x: Any) -> Any:
    order = trace.constant(op.inputs[0])
    if order is not None and sorted(order) != list(range(order.size)):
        raise ValueError(f"{order.tolist()} is no permutation of {order.size} places")
    return gg.cast(gg.argsort(x), x.dtype)


@define("ReverseSequence", "input seq_lengths:A", infer=same)
def _reverse_sequence(trace: Any, op: Any, x: Any, lengths: Any) -> Any:
    time, batch = op.attrs["seq_dim"], op.attrs["batch_dim"]
    steps = np.arange(x.shape[time])
    counts = gg.reshape(gg.cast(lengths, "int64"), (-1, 1))
    places = gg.where(gg.less(steps, counts), counts - 1 - steps, steps)
    if time < batch:
        places = gg.transpose(places, (1, 0))
    shape = [1] * len(x.shape)
    shape[time], shape[batch] = x.shape[time], x.shape[batch]
    return gg.take_along_axis(x, gg.broadcast_to(gg.reshape(places, tuple(shape)), x.shape), time)


# blocks of images


@define("SpaceToDepth", "input")
def _space_to_depth(trace: Any, op: Any, x: Any) -> Any:
    b, (n, h, w, c) = op.attrs["block_size"], x.shape
    y = gg.reshape(x, (n, h // b, b, w // b, b, c))
    return gg.reshape(gg.transpose(y, (0, 1, 3, 2, 4, 5)), (n, h // b, w // b, b * b * c))


@define("DepthToSpace", "input")
def _depth_to_space(trace: Any, op: Any, x: Any) -> Any:
    b, (n, h, w, c) = op.attrs["block_size"], x.shape
    y = gg.reshape(x, (n, h, w, b, b, c // (b * b)))
    return gg.reshape(gg.transpose(y, (0, 1, 3, 2, 4, 5)), (n, h * b, w * b, c // (b * b)))


@define("DynamicPartition", "data partitions:A", infer=lambda i, a: unknown_shape(),
        types=lambda i, a: [i[0].dtype.base_dtype] * a["num"])  # fmt: skip
def _partition(trace: Any, op: Any, data: Any, partitions: Any) -> Any:
    parts, n = trace.value(op.inputs[1]), op.attrs["num"]
    if parts.shape != data.shape[: parts.ndim]:
        raise ValueError(f"partitions of shape {parts.shape} for data of shape {data.shape}")
    if ((parts < 0) | (parts >= n)).any():
        raise ValueError(f"partitions are in [0, {n}), got {parts.tolist()}")
    return [data[np.nonzero(parts == i)] for i in range(op.attrs["num"])]


@define("DynamicStitch", "indices*:A data*:A", infer=lambda i, a: unknown_shape(), like=-1)
def _stitch(trace: Any, op: Any, *args: Any) -> Any:
    half = len(args) // 2
    places = [trace.value(t) for t in op.inputs[:half]]
    if any((p < 0).any() for p in places):
        raise ValueError(f"indices are at least 0, got {[p.tolist() for p in places]}")
    data = args[half:]
    rest = data[0].shape[len(places[0].shape) :]
    n = max((int(p.max()) + 1 for p in places if p.size), default=0)
    made = gg.zeros((n, *rest), data[0].dtype)
    for where, values in zip(places, data, strict=True):
        flat = gg.reshape(values, (where.size, *rest))
        made = gg.at(made)[where.reshape(-1)].set(flat)
    return made


define("BroadcastGradientArgs", "s0 s1", infer=lambda i, a: [TensorShape([None])] * 2, like=(0, 0))


@define("BroadcastArgs", "s0 s1", infer=lambda i, a: TensorShape([None]))
def _broadcast_args(trace: Any, op: Any, *_: Any) -> Any:
    return np.array(np.broadcast_shapes(*[tuple(sized(trace, t)) for t in op.inputs]), "int64")


__all__ += ["both"]
