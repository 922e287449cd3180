"""Functions of shapes and places, and the index operator of tensors."""

from __future__ import annotations

import builtins
from typing import Any, NamedTuple

import numpy as np

from ..create import (
    apply,
    build,
    constant,
    convert_n_to_tensor,
    convert_to_tensor,
    name_scope,
    numpy_value,
)
from ..dtypes import DType, as_dtype
from ..graph import Tensor, get_default_graph
from ..refused import refuses
from ..shapes import TensorShape, as_shape, broadcast
from .math import cast, reduce_max

__all__ = [
    "argsort", "batch_gather", "batch_to_space", "batch_to_space_nd", "boolean_mask",
    "broadcast_dynamic_shape", "broadcast_static_shape", "broadcast_to", "check_numerics", "concat",
    "depth_to_space", "diag", "diag_part", "dynamic_partition", "dynamic_stitch", "ensure_shape",
    "expand_dims", "eye", "fill", "gather", "gather_nd", "identity", "identity_n",
    "invert_permutation", "matrix_band_part", "matrix_diag", "matrix_diag_part", "matrix_set_diag",
    "matrix_transpose", "meshgrid", "newaxis", "one_hot", "ones", "ones_like", "pack", "pad",
    "parallel_stack", "placeholder", "placeholder_with_default", "prevent_gradient", "rank",
    "repeat", "reshape", "reverse", "reverse_sequence", "reverse_v2", "roll", "scatter_nd",
    "select", "sequence_mask", "shape", "shape_n", "size", "sort", "space_to_batch",
    "space_to_batch_nd", "space_to_depth", "split", "squeeze", "stack", "stop_gradient",
    "strided_slice", "tensor_scatter_add", "tensor_scatter_update", "tile", "trace", "transpose",
    "unique", "unique_with_counts", "unpack", "unstack", "verify_tensor_all_finite", "where",
    "where_v2", "zeros", "zeros_like",
]  # fmt: skip
Name = str | None


def placeholder(dtype: Any, shape: Any = None, name: Name = None) -> Tensor:
    """A tensor whose value is fed."""
    kind = as_dtype(dtype).base_dtype
    graph = get_default_graph()
    attrs = {"dtype": kind, "shape": as_shape(shape)}
    op = graph._make("Placeholder", (), [kind], [as_shape(shape)], attrs, name)
    return op.outputs[0]


def placeholder_with_default(input: Any, shape: Any, name: Name = None) -> Tensor:
    """A tensor whose value may be fed."""
    return apply("PlaceholderWithDefault", input, name=name, shapes=[as_shape(shape)])


def identity(input: Any, name: Name = None) -> Tensor:
    """The same value: an op of its own."""
    return apply("Identity", convert_to_tensor(input), name=name)


def identity_n(input: Any, name: Name = None) -> list[Tensor]:
    """The same values: one op."""
    op = build("IdentityN", *convert_n_to_tensor(input), name=name)
    return op.outputs


def stop_gradient(input: Any, name: Name = None) -> Tensor:
    """The same value, which has no gradient."""
    return apply("StopGradient", convert_to_tensor(input), name=name)


def prevent_gradient(input: Any, message: str = "", name: Name = None) -> Tensor:
    """The same value, whose gradient is an error."""
    return apply("PreventGradient", input, name=name, message=message.encode())


def check_numerics(tensor: Any, message: str, name: Name = None) -> Tensor:
    """The same value; InvalidArgumentError in a run where it holds NaN or infinities."""
    return apply("CheckNumerics", tensor, name=name, message=message.encode())


def verify_tensor_all_finite(t: Any, msg: str, name: Name = None, **_: Any) -> Tensor:
    """The same value; InvalidArgumentError in a run where it holds NaN or infinities."""
    t = convert_to_tensor(t)
    with t.graph.control_dependencies([check_numerics(t, msg)]):
        return identity(t, name=name)


def ensure_shape(x: Any, shape: Any, name: Name = None) -> Tensor:
    """The same value, which is known to have a shape."""
    x = convert_to_tensor(x)
    return apply("EnsureShape", x, name=name, shapes=[x.shape.merge_with(as_shape(shape))])


# shapes as tensors


def shape(input: Any, name: Name = None, out_type: Any = "int32", optimize: bool = True) -> Tensor:
    """The shape as a tensor."""
    kind = as_dtype(out_type)
    with name_scope(name, "Shape", [input]) as scope:
        x = convert_to_tensor(input)
        if optimize and x.shape.is_fully_defined():
            return constant(np.array(x.shape.as_list(), kind.numpy), name=scope)
        return apply("Shape", x, name=scope, out_type=kind)


def shape_n(input: Any, out_type: Any = "int32", name: Name = None) -> list[Tensor]:
    """The shapes of several tensors."""
    return [shape(t, name, out_type) for t in input]


def size(input: Any, name: Name = None, out_type: Any = "int32") -> Tensor:
    """How many elements there are, as a tensor."""
    kind = as_dtype(out_type)
    with name_scope(name, "Size", [input]) as scope:
        x = convert_to_tensor(input)
        n = x.shape.num_elements()
        if n is not None:
            return constant(np.array(n, kind.numpy), name=scope)
        return apply("Size", x, name=scope, out_type=kind)


def rank(input: Any, name: Name = None) -> Tensor:
    """How many axes there are, as a tensor."""
    with name_scope(name, "Rank", [input]) as scope:
        x = convert_to_tensor(input)
        if x.shape.ndims is not None:
            return constant(x.shape.ndims, "int32", name=scope)
        return apply("Rank", x, name=scope)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape of both broadcast against each other."""
    return broadcast(as_shape(shape_x), as_shape(shape_y))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape of both broadcast against each other, as a tensor."""
    return apply("BroadcastArgs", shape_x, shape_y)


def reshape(tensor: Any, shape: Any, name: Name = None) -> Tensor:
    """The elements in another shape; one length may be -1."""
    return apply("Reshape", tensor, _shape_value(shape), name=name)


def _shape_value(shape: Any) -> Any:
    """A shape as what converts to a tensor of int32."""
    if isinstance(shape, TensorShape):
        return np.array([-1 if n is None else n for n in shape.as_list()], "int32")
    if isinstance(shape, list | tuple) and not shape:
        return np.zeros(0, "int32")
    if isinstance(shape, list | tuple) and all(
        isinstance(n, int | np.integer) or (hasattr(n, "value") and not isinstance(n, Tensor))
        for n in shape
    ):
        return np.array([getattr(n, "value", n) for n in shape], "int32")
    return shape


def expand_dims(input: Any, axis: Any = None, name: Name = None, dim: Any = None) -> Tensor:
    """With an axis of length 1 put in."""
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return apply("ExpandDims", input, axis, name=name)


def squeeze(input: Any, axis: Any = None, name: Name = None, squeeze_dims: Any = None) -> Tensor:
    """Without axes of length 1."""
    axis = squeeze_dims if axis is None else axis
    axes = [] if axis is None else [int(a) for a in np.atleast_1d(axis)]
    return apply("Squeeze", input, name=name, squeeze_dims=axes)


def transpose(a: Any, perm: Any = None, name: str = "transpose", conjugate: bool = False) -> Tensor:
    """With axes in another order: reversed by default."""
    with name_scope(name, "transpose", [a]) as scope:
        a = convert_to_tensor(a, name="a")
        if perm is None:
            if a.shape.ndims is not None:
                perm = constant(np.arange(a.shape.ndims, dtype="int32")[::-1], name="perm")
            else:
                count = apply("Rank", a)
                perm = apply("Range", count - 1, -1, -1, name="Range")
        made: Tensor = apply("Transpose", a, perm, name=scope)
        return apply("Conj", made) if conjugate and made.dtype.is_complex else made


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """With the last two axes exchanged."""
    a = convert_to_tensor(a)
    n = len(a.shape)
    return transpose(a, [*builtins.range(n - 2), n - 1, n - 2], name, conjugate)


# joining and splitting


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Tensors behind each other along an axis; the old order (axis, values) is taken too."""
    if isinstance(axis, list | tuple) and not isinstance(values, list | tuple):
        values, axis = axis, values
    if not isinstance(values, list | tuple):
        values = [values]
    if len(values) == 1:
        with name_scope(name, values=values):
            return identity(values[0], name=name)
    return apply_many("ConcatV2", values, axis, name=name)


def apply_many(type: str, values: Any, *rest: Any, name: Name = None, **attrs: Any) -> Any:
    """An op of a list of tensors, and of others behind it."""
    kind = next((v.dtype.base_dtype for v in values if (hasattr(v, "dtype") and isinstance(
        v, Tensor)) or hasattr(v, "_tensor_of")), None)  # fmt: skip
    with name_scope(name or type, values=values) as scope:
        tensors = []
        for i, v in enumerate(values):
            t = convert_to_tensor(v, None if isinstance(v, Tensor) else kind, f"values_{i}")
            kind = kind or t.dtype.base_dtype
            tensors.append(t)
        last = [convert_to_tensor(v, name="axis", preferred_dtype="int32") for v in rest]
        return apply(type, *tensors, *last, name=scope, **attrs)


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Tensors next to each other along a new axis."""
    if isinstance(values, Tensor):
        values = unstack(values)
    if axis == 0 and not any(isinstance(v, Tensor) or hasattr(v, "_tensor_of") for v in values):
        try:
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass
    return apply_many("Pack", values, name=name, axis=int(axis), N=len(values))


def pack(values: Any, axis: int = 0, name: str = "pack") -> Tensor:
    """Tensors next to each other along a new axis."""
    return stack(values, axis, name)


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """Tensors next to each other along a new first axis."""
    return stack(values, 0, name)


def unstack(value: Any, num: Any = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """The parts along an axis."""
    value = convert_to_tensor(value)
    if num is None:
        num = value.shape[axis].value
        if num is None:
            raise ValueError(f"Cannot infer num from shape {value.shape}")
    return build("Unpack", value, name=name, axis=int(axis), num=int(num)).outputs


unpack = unstack


def split(
    value: Any,
    num_or_size_splits: Any = None,
    axis: Any = 0,
    num: Any = None,
    name: str = "split",
    num_split: Any = None,
    split_dim: Any = None,
) -> list[Tensor]:
    """Parts along an axis: so many equal ones, or of these lengths."""
    if num_split is not None:
        num_or_size_splits = num_split
    axis = axis if split_dim is None else split_dim
    if isinstance(value, int) and isinstance(axis, Tensor):  # split(axis, n, value) of 0.x
        value, axis = axis, value
    parts = num_or_size_splits
    if isinstance(parts, int | np.integer) or (
        hasattr(parts, "value") and not isinstance(parts, Tensor)
    ):
        n = int(getattr(parts, "value", parts))
        return build("Split", axis, value, name=name, num=n, num_split=n).outputs
    sizes = convert_to_tensor(_shape_value(parts), preferred_dtype="int32")
    if num is None:
        num = sizes.shape[0].value
        if num is None:
            raise ValueError(f"Cannot infer argument `num` from shape {sizes.shape}")
    return build("SplitV", value, sizes, axis, name=name, num=int(num)).outputs


# slices and places


def _slice_helper(tensor: Any, key: Any, var: Any = None) -> Tensor:
    """x[...]: an op StridedSlice."""
    if isinstance(key, Tensor) and key.dtype.is_bool:
        return boolean_mask(tensor, key)
    keys = list(key) if isinstance(key, list | tuple) else [key]
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    for i, k in enumerate(keys):
        bit = 1 << i
        if isinstance(k, slice):
            for value, parts, mask in ((k.start, begin, "begin_mask"), (k.stop, end, "end_mask")):
                parts.append(0 if value is None else _index(value))
                masks[mask] |= bit if value is None else 0
            strides.append(1 if k.step is None else _index(k.step))
        elif k is Ellipsis:
            _put(begin, end, strides, 0, 0)
            masks["ellipsis_mask"] |= bit
        elif k is None:
            _put(begin, end, strides, 0, 0)
            masks["new_axis_mask"] |= bit
        else:
            k = _index(k)
            _put(begin, end, strides, k, k + 1)
            masks["shrink_axis_mask"] |= bit
    with name_scope("strided_slice", values=[tensor, *begin, *end, *strides]) as scope:
        packed = [
            _packed_index(p, n)
            for p, n in zip((begin, end, strides), ("stack", "stack_1", "stack_2"), strict=True)
        ]
        return apply("StridedSlice", convert_to_tensor(tensor), *packed, name=scope, **masks)


def _put(begin: Any, end: Any, strides: Any, first: Any, last: Any) -> None:
    begin.append(first)
    end.append(last)
    strides.append(1)


def _index(value: Any) -> Any:
    if isinstance(value, Tensor) or hasattr(value, "_tensor_of"):
        return convert_to_tensor(value)
    if hasattr(value, "value") and not isinstance(value, np.ndarray):
        value = value.value
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise TypeError(
            "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
            f"tf.int32/tf.int64 tensors are valid indices, got {value!r}"
        ) from None


def _packed_index(parts: list[Any], name: str) -> Tensor:
    if not any(isinstance(p, Tensor) for p in parts):
        return constant(np.array(parts, "int32"), name=name)
    kind = next(p.dtype.base_dtype for p in parts if isinstance(p, Tensor))
    return stack([cast(p, kind) if isinstance(p, Tensor) else constant(p, kind) for p in parts],
                 name=name)  # fmt: skip


Tensor.__getitem__ = _slice_helper


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: Name = None,
) -> Tensor:
    """x from begin to end in steps, each for the first axes."""
    begin = convert_to_tensor(begin, preferred_dtype="int32")
    strides = apply("OnesLike", begin, name="ones_like") if strides is None else strides
    return apply(
        "StridedSlice", input_, begin, end, strides, name=name, begin_mask=begin_mask,
        end_mask=end_mask, ellipsis_mask=ellipsis_mask, new_axis_mask=new_axis_mask,
        shrink_axis_mask=shrink_axis_mask,
    )  # fmt: skip


def slice_(input_: Any, begin: Any, size: Any, name: Name = None) -> Tensor:
    """x from begin, of a size; -1 is all the rest."""
    return apply("Slice", input_, _shape_value(begin), _shape_value(size), name=name)


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: Name = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """Parts of params along an axis, by number."""
    return apply(
        "GatherV2", params, indices, batch_dims if axis is None else axis, name=name,
        batch_dims=int(batch_dims),
    )  # fmt: skip


def batch_gather(params: Any, indices: Any, name: Name = None) -> Tensor:
    """Parts of each row of a batch, by number."""
    indices = convert_to_tensor(indices)
    n = len(indices.shape) - 1
    return gather(params, indices, name=name, axis=n, batch_dims=n)


def gather_nd(params: Any, indices: Any, name: Name = None, batch_dims: int = 0) -> Tensor:
    """Parts of params by places, which stand in the last axis of indices."""
    if batch_dims:
        raise NotImplementedError("gather_nd with batch_dims: put the numbers of the batch into "
                                  "the indices, by tf.range and tf.stack")  # fmt: skip
    return apply("GatherNd", params, indices, name=name)


def scatter_nd(indices: Any, updates: Any, shape: Any, name: Name = None) -> Tensor:
    """Zeros, with updates added at places."""
    return apply("ScatterNd", indices, updates, _shape_value(shape), name=name)


def tensor_scatter_add(tensor: Any, indices: Any, updates: Any, name: Name = None) -> Tensor:
    """A tensor, with updates added at places."""
    return apply("TensorScatterAdd", tensor, indices, updates, name=name)


def tensor_scatter_update(tensor: Any, indices: Any, updates: Any, name: Name = None) -> Tensor:
    """A tensor, with updates put at places."""
    return apply("TensorScatterUpdate", tensor, indices, updates, name=name)


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: Name = None,
) -> Tensor:
    """Ones at the numbers along a new axis, zeros elsewhere."""
    with name_scope(name, "one_hot", [indices, depth, on_value, off_value]) as scope:
        kinds = [as_dtype(v.dtype) for v in (on_value, off_value) if hasattr(v, "dtype")]
        kind = as_dtype(dtype) if dtype is not None else (
            kinds[0] if kinds else as_dtype(numpy_value(
                1.0 if on_value is None and off_value is None else
                (on_value if on_value is not None else off_value), None).dtype)
        )  # fmt: skip
        on = convert_to_tensor(1 if on_value is None else on_value, kind, "on_value")
        off = convert_to_tensor(0 if off_value is None else off_value, kind, "off_value")
        indices = convert_to_tensor(indices)
        return apply(
            "OneHot", indices, depth, on, off, name=scope, axis=-1 if axis is None else int(axis)
        )


def tile(input: Any, multiples: Any, name: Name = None) -> Tensor:
    """Repeated along each axis."""
    return apply("Tile", input, _shape_value(multiples), name=name)


def repeat(input: Any, repeats: int, axis: Any = None, name: Name = None) -> Tensor:
    """Each element so many times, along an axis; of all elements in a row by default."""
    with name_scope(name, "Repeat"):
        x = convert_to_tensor(input)
        if axis is None:
            x, axis = reshape(x, [-1]), 0
        axis %= len(x.shape)
        wide = expand_dims(x, axis + 1)
        times = [1] * (len(x.shape) + 1)
        times[axis + 1] = repeats
        lengths = [-1 if i == axis else n for i, n in enumerate(x.shape.as_list())]
        if None in lengths:
            raise NotImplementedError("tf.repeat of a tensor with unknown lengths: use tf.tile")
        return reshape(tile(wide, times), lengths)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", name: Name = None, constant_values: Any = 0
) -> Tensor:
    """With more elements at both ends of each axis."""
    mode = mode.upper()
    if mode == "CONSTANT":
        plain = not isinstance(constant_values, Tensor) and constant_values == 0
        if plain:
            return apply("Pad", tensor, paddings, name=name)
        return apply("PadV2", tensor, paddings, constant_values, name=name)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(f"Value of argument `mode` expected to be one of CONSTANT, REFLECT, or "
                         f"SYMMETRIC. Received `mode` = {mode}")  # fmt: skip
    return apply("MirrorPad", tensor, paddings, name=name, mode=mode.encode())


def reverse(tensor: Any, axis: Any = None, name: Name = None, dims: Any = None) -> Tensor:
    """In reverse order along axes."""
    axis = dims if axis is None else axis
    flags = np.asarray(axis) if not isinstance(axis, Tensor) else None
    if flags is not None and flags.dtype == bool:
        axis = np.flatnonzero(flags).astype("int32")
    return apply("ReverseV2", tensor, np.atleast_1d(axis) if flags is not None else axis,
                         name=name)  # fmt: skip


reverse_v2 = reverse


def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: Any = None,
    batch_axis: Any = None,
    name: Name = None,
    seq_dim: Any = None,
    batch_dim: Any = None,
) -> Tensor:
    """Each row of a batch in reverse order, up to its length."""
    time = seq_dim if seq_axis is None else seq_axis
    batch = batch_dim if batch_axis is None else batch_axis
    return apply("ReverseSequence", input, seq_lengths, name=name, seq_dim=int(time),
                         batch_dim=int(batch or 0))  # fmt: skip


def roll(input: Any, shift: Any, axis: Any, name: Name = None) -> Tensor:
    """With elements moved along axes, and put in again at the other end."""
    return apply("Roll", input, np.atleast_1d(shift), np.atleast_1d(axis), name=name)


# new tensors


def zeros(shape: Any, dtype: Any = "float32", name: Name = None) -> Tensor:
    """Zeros."""
    return _full(shape, 0, dtype, name, "zeros")


def ones(shape: Any, dtype: Any = "float32", name: Name = None) -> Tensor:
    """Ones."""
    return _full(shape, 1, dtype, name, "ones")


def _full(shape: Any, number: Any, dtype: Any, name: Name, default: str) -> Tensor:
    kind = as_dtype(dtype).base_dtype
    value = np.array({0: False, 1: True}[number] if kind.is_bool else number, kind.numpy)
    with name_scope(name, default, [shape] if isinstance(shape, Tensor) else None) as scope:
        if not isinstance(shape, Tensor):
            known = _known_lengths(shape)
            if known is not None and np.prod(known) < 1000:
                return constant(np.full(known, value), name=scope)
        dims = convert_to_tensor(_shape_value(shape), preferred_dtype="int32", name="shape")
        if dims.shape.ndims == 0:
            dims = reshape(dims, [-1])
        return apply("Fill", dims, constant(value), name=scope)


def _known_lengths(shape: Any) -> Any:
    value = _shape_value(shape if not isinstance(shape, int | np.integer) else [shape])
    if isinstance(value, list | tuple) and any(
        isinstance(v, Tensor) or hasattr(v, "_tensor_of") for v in value
    ):
        return None
    return [int(n) for n in np.atleast_1d(value)] if not isinstance(value, Tensor) else None


def fill(dims: Any, value: Any, name: Name = None) -> Tensor:
    """The value, everywhere."""
    return apply("Fill", _shape_value(dims), value, name=name)


def zeros_like(tensor: Any, dtype: Any = None, name: Name = None, optimize: bool = True) -> Tensor:
    """Zeros of the shape and type of a tensor."""
    return _like(tensor, 0, dtype, name, optimize)


def ones_like(tensor: Any, dtype: Any = None, name: Name = None, optimize: bool = True) -> Tensor:
    """Ones of the shape and type of a tensor."""
    return _like(tensor, 1, dtype, name, optimize)


def _like(tensor: Any, number: int, dtype: Any, name: Name, optimize: bool) -> Tensor:
    word = "zeros_like" if number == 0 else "ones_like"
    with name_scope(name, word, [tensor]) as scope:
        x = convert_to_tensor(tensor, name="tensor")
        kind = x.dtype.base_dtype if dtype is None else as_dtype(dtype).base_dtype
        if number == 0 and optimize and x.shape.is_fully_defined():
            return _full(x.shape, 0, kind, scope, "zeros")
        if number == 0 and kind is x.dtype.base_dtype:
            return apply("ZerosLike", x, name=scope)
        made = _full(shape(x, optimize=optimize), number, kind, scope, word)
        made.set_shape(x.shape)
        return made


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = "float32",
    name: Name = None,
) -> Tensor:
    """Matrices with ones on the diagonal."""
    with name_scope(name, "eye"):
        columns = num_rows if num_columns is None else num_columns
        known = [num_rows, columns]
        if not any(isinstance(n, Tensor) for n in known):
            made = constant(np.eye(int(num_rows), int(columns)), dtype)
            if batch_shape is None:
                square = num_columns is None
                return matrix_diag(ones([int(num_rows)], dtype)) if square else made
            lead = [1] * len(list(batch_shape))
            return tile(reshape(made, [*lead, *made.shape.as_list()]), [*batch_shape, 1, 1])
        square = apply("MatrixDiag", ones([num_rows], dtype))
        if num_columns is not None:
            raise NotImplementedError("tf.eye of lengths that are tensors is square")
        return square


def meshgrid(*args: Any, indexing: str = "xy", name: str = "meshgrid") -> list[Tensor]:
    """Grids of coordinates."""
    with name_scope(name, "meshgrid", args):
        xs = [reshape(convert_to_tensor(a), [-1]) for a in args]
        n = len(xs)
        order = list(builtins.range(n))
        if indexing == "xy" and n > 1:
            order[0], order[1] = 1, 0
        lengths = [shape(x)[0] for x in (xs[i] for i in np.argsort(order))]
        found = []
        for i, x in enumerate(xs):
            wide = [1] * n
            wide[order[i]] = -1
            times = [1 if order[i] == j else m for j, m in enumerate(lengths)]
            found.append(tile(reshape(x, wide), stack(times)))
        return found


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = "bool", name: Name = None
) -> Tensor:
    """Which places are before each length."""
    with name_scope(name, "SequenceMask", [lengths, maxlen]):
        lengths = convert_to_tensor(lengths)
        if maxlen is None:
            maxlen = reduce_max(lengths)
        places = apply("Range", constant(0, lengths.dtype), cast(maxlen, lengths.dtype),
                       constant(1, lengths.dtype))  # fmt: skip
        mask: Tensor = apply("Less", places, expand_dims(lengths, -1))
        return cast(mask, dtype)


# choices


def where(condition: Any, x: Any = None, y: Any = None, name: Name = None) -> Tensor:
    """x where the condition holds and y elsewhere; the places where it holds without x and y."""
    if x is None and y is None:
        return apply("Where", convert_to_tensor(condition), name=name)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply("Select", condition, x, y, name=name)


select = where


def where_v2(condition: Any, x: Any = None, y: Any = None, name: Name = None) -> Tensor:
    """`where`, with shapes broadcast."""
    if x is None and y is None:
        return where(condition, name=name)
    return apply("SelectV2", condition, x, y, name=name)


def boolean_mask(tensor: Any, mask: Any, name: str = "boolean_mask", axis: Any = None) -> Tensor:
    """The parts of a tensor where a mask holds."""
    with name_scope(name, values=[tensor, mask]):
        x = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        n, at = mask.shape.ndims, 0 if axis is None else int(axis)
        if n is None or n == 0:
            raise ValueError("Number of mask dimensions must be specified and not 0")
        x.shape[at : at + n].assert_is_compatible_with(mask.shape)
        lengths = shape(x)
        rest = x.shape.lengths
        if n > 1:
            x = reshape(x, concat([lengths[:at], [-1], lengths[at + n :]], 0))
        if rest is not None:
            x.set_shape([*rest[:at], None if n > 1 else rest[at], *rest[at + n :]])
        places = squeeze(where(reshape(mask, [-1])), axis=[1])
        return gather(x, places, axis=at)


class Unique(NamedTuple):
    """What `unique` gives."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """What `unique_with_counts` gives."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]


def unique(x: Any, out_idx: Any = "int32", name: Name = None) -> Unique:
    """The different values in the order in which they come, and which each element is."""
    return Unique(*apply("Unique", x, name=name, out_idx=_places(out_idx)))


def unique_with_counts(x: Any, out_idx: Any = "int32", name: Name = None) -> UniqueWithCounts:
    """The different values, which each element is, and how often each comes."""
    return UniqueWithCounts(*apply("UniqueWithCounts", x, name=name, out_idx=_places(out_idx)))


def _places(kind: Any) -> DType:
    """The type of what counts elements."""
    found = as_dtype("int32" if kind is None else kind)
    if found.name not in ("int32", "int64"):
        raise TypeError(f"out_idx is int32 or int64, got {found.name}")
    return found


@refuses()
def matrix_diag(diagonal: Any, name: str = "diag", **kwargs: Any) -> Tensor:
    """Matrices with these diagonals."""
    return apply("MatrixDiagV3", diagonal, 0, -1, -1, 0, name=name)


@refuses()
def matrix_diag_part(input: Any, name: str = "diag_part", **kwargs: Any) -> Tensor:
    """The diagonals of matrices."""
    return apply("MatrixDiagPartV3", input, 0, 0, name=name)


@refuses()
def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", **kwargs: Any) -> Tensor:
    """Matrices with other diagonals."""
    return apply("MatrixSetDiagV3", input, diagonal, 0, name=name)


def diag(diagonal: Any, name: Name = None) -> Tensor:
    """A tensor with this diagonal."""
    return apply("Diag", diagonal, name=name)


def diag_part(input: Any, name: Name = None) -> Tensor:
    """The diagonal of a tensor."""
    return apply("DiagPart", input, name=name)


def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: Name = None) -> Tensor:
    """Matrices with zeros outside so many diagonals."""
    return apply("MatrixBandPart", input, num_lower, num_upper, name=name)


def trace(x: Any, name: Name = None) -> Tensor:
    """The sums of the diagonals of matrices."""
    with name_scope(name, "Trace", [x]) as scope:
        return apply("Sum", matrix_diag_part(x), [-1], name=scope, keep_dims=False)


def invert_permutation(x: Any, name: Name = None) -> Tensor:
    """The permutation that undoes another."""
    return apply("InvertPermutation", x, name=name)


@refuses()
def space_to_depth(input: Any, block_size: int, name: Name = None, **kwargs: Any) -> Tensor:
    """Blocks of an image as channels."""
    return apply("SpaceToDepth", input, name=name, block_size=int(block_size))


def space_to_batch_nd(input: Any, block_shape: Any, paddings: Any, name: Name = None) -> Tensor:
    """Blocks of the first axes of space as more examples."""
    with name_scope(name, "SpaceToBatchND", [input]):
        count = len(block_shape)
        rest = [[0, 0]] * (len(convert_to_tensor(input).shape) - 1 - count)
        x = pad(input, [[0, 0], *[list(p) for p in paddings], *rest])
        n, *lengths = x.shape.as_list()
        parts = [-1 if n is None else n]
        for m, b in zip(lengths[:count], block_shape, strict=True):
            parts += [m // b, b]
        y = reshape(x, [*parts, *lengths[count:]])
        inner = [2 * i + 2 for i in builtins.range(count)]
        outer = [2 * i + 1 for i in builtins.range(count)]
        y = transpose(y, [*inner, 0, *outer, *builtins.range(2 * count + 1, len(y.shape))])
        short = [m // b for m, b in zip(lengths[:count], block_shape, strict=True)]
        return reshape(y, [-1, *short, *lengths[count:]])


def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: Name = None) -> Tensor:
    """The other way round than `space_to_batch_nd`."""
    with name_scope(name, "BatchToSpaceND", [input]):
        x = convert_to_tensor(input)
        count = len(block_shape)
        lengths = x.shape.as_list()[1:]
        y = reshape(x, [*block_shape, -1, *lengths])
        perm = [count]
        for i in builtins.range(count):
            perm += [count + 1 + i, i]
        y = transpose(y, [*perm, *builtins.range(2 * count + 1, len(y.shape))])
        wide = [m * b for m, b in zip(lengths[:count], block_shape, strict=True)]
        y = reshape(y, [-1, *wide, *lengths[count:]])
        keys = [builtins.slice(a, m - b) for (a, b), m in zip(crops, wide, strict=True)]
        return _slice_helper(y, (builtins.slice(None), *keys))


def space_to_batch(input: Any, paddings: Any, block_size: int, name: Name = None) -> Tensor:
    """Blocks of images as more examples."""
    return space_to_batch_nd(input, [block_size] * 2, paddings, name)


def batch_to_space(input: Any, crops: Any, block_size: int, name: Name = None) -> Tensor:
    """The other way round than `space_to_batch`."""
    return batch_to_space_nd(input, [block_size] * 2, crops, name)


@refuses()
def depth_to_space(input: Any, block_size: int, name: Name = None, **kwargs: Any) -> Tensor:
    """Channels as blocks of an image."""
    return apply("DepthToSpace", input, name=name, block_size=int(block_size))


def broadcast_to(input: Any, shape: Any, name: Name = None) -> Tensor:
    """In another shape, repeated along axes of length 1."""
    return apply("BroadcastTo", input, _shape_value(shape), name=name)


def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: Name = None) -> Any:
    """The rows of each part."""
    return build("DynamicPartition", data, partitions, name=name, num=num_partitions).outputs


def dynamic_stitch(indices: Any, data: Any, name: Name = None) -> Tensor:
    """Rows put at places."""
    return apply(
        "DynamicStitch", *convert_n_to_tensor(indices), *convert_n_to_tensor(data), name=name
    )


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: Name = None) -> Tensor:
    """In order, along the last axis."""
    found = _topmost(values, axis, direction, name)[0]
    return found if direction == "DESCENDING" else -found


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False,
    name: Name = None,
) -> Tensor:  # fmt: skip
    """Where the elements are in order, along the last axis."""
    return _topmost(values, axis, direction, name)[1]


def _topmost(values: Any, axis: int, direction: str, name: Name) -> Any:
    x = convert_to_tensor(values)
    n = x.shape[axis].value if x.shape[axis].value is not None else shape(x)[axis]
    return apply("TopKV2", x if direction == "DESCENDING" else -x, n, name=name)


newaxis = None
