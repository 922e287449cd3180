"""What is known of values while the graph is built: constants, and shapes made of shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph import Tensor
from .shapes import TensorShape

__all__ = ["constant_shape", "constant_value"]

LARGEST = 4096  # elements of a value that is worked out


def constant_value(t: Any, partial: bool = False) -> Any:
    """The value of a tensor as an array where it depends on constants and known shapes, or None."""
    if not isinstance(t, Tensor):
        return np.asarray(t)
    op = t.op
    if op.type == "Const":
        return op.attrs["value"]
    compute = _KNOWN.get(op.type)
    return None if compute is None else compute(op)


def _shape(op: Any) -> Any:
    shape = op.inputs[0].shape
    if not shape.is_fully_defined():
        return None
    return np.array(shape.as_list(), op.outputs[0].dtype.numpy)


def _rank(op: Any) -> Any:
    rank = op.inputs[0].shape.ndims
    return None if rank is None else np.array(rank, "int32")


def _size(op: Any) -> Any:
    n = op.inputs[0].shape.num_elements()
    return None if n is None else np.array(n, op.outputs[0].dtype.numpy)


def _values(op: Any, tensors: Any) -> Any:
    found = [constant_value(t) for t in tensors]
    return None if any(v is None for v in found) else found


def _of(compute: Any, floating: bool = False) -> Any:
    def known(op: Any) -> Any:
        if op.outputs[0].dtype.is_floating and not floating:
            return None
        found = _values(op, op.inputs)
        if found is None or any(v.size > LARGEST for v in found):
            return None
        with np.errstate(all="ignore"):
            return np.asarray(compute(op, *found)).astype(op.outputs[0].dtype.numpy)

    return known


def _strided(op: Any) -> Any:
    source, begin, end, strides = op.inputs
    found = _values(op, (begin, end, strides))
    if found is None:
        return None
    key = key_of(op.attrs, *found)
    if source.op.type == "Shape" and len(key) == 1:
        shape = source.op.inputs[0].shape.lengths
        if shape is None:
            return None
        part = shape[key[0]]
        if part is None or (isinstance(part, tuple) and None in part):
            return None
        return np.array(part, source.dtype.numpy)
    value = constant_value(source)
    return None if value is None else value[key]


def key_of(attrs: Any, begin: Any, end: Any, strides: Any) -> tuple[Any, ...]:
    """The NumPy index that a strided slice stands for."""
    key: list[Any] = []
    for i, (b, e, s) in enumerate(zip(begin, end, strides, strict=True)):
        if attrs["ellipsis_mask"] >> i & 1:
            key.append(Ellipsis)
        elif attrs["new_axis_mask"] >> i & 1:
            key.append(None)
        elif attrs["shrink_axis_mask"] >> i & 1:
            key.append(int(b))
        else:
            start = None if attrs["begin_mask"] >> i & 1 else int(b)
            stop = None if attrs["end_mask"] >> i & 1 else int(e)
            key.append(slice(start, stop, int(s)))
    return tuple(key)


_KNOWN: dict[str, Any] = {
    "Shape": _shape,
    "Rank": _rank,
    "Size": _size,
    "StridedSlice": _strided,
    "Identity": lambda op: constant_value(op.inputs[0]),
    "Cast": _of(lambda op, x: x, floating=True),
    "Pack": _of(lambda op, *xs: np.stack(xs, op.attrs["axis"])),
    "ConcatV2": _of(lambda op, *xs: np.concatenate(xs[:-1], int(xs[-1]))),
    "Range": _of(lambda op, a, b, s: np.arange(a, b, s), floating=True),
    "AddV2": _of(lambda op, x, y: x + y),
    "Sub": _of(lambda op, x, y: x - y),
    "Mul": _of(lambda op, x, y: x * y),
    "FloorDiv": _of(lambda op, x, y: x // y if np.all(y) else x),
    "FloorMod": _of(lambda op, x, y: x % y if np.all(y) else x),
    "Neg": _of(lambda op, x: -x),
    "Maximum": _of(lambda op, x, y: np.maximum(x, y)),
    "Minimum": _of(lambda op, x, y: np.minimum(x, y)),
    "Prod": _of(lambda op, x, axis: np.prod(x, tuple(np.atleast_1d(axis)))),
    "Sum": _of(lambda op, x, axis: np.sum(x, tuple(np.atleast_1d(axis)))),
    "GatherV2": _of(lambda op, x, i, axis: np.take(x, i, int(axis))),
    "ExpandDims": _of(lambda op, x, axis: np.expand_dims(x, int(np.reshape(axis, ())))),
    "Reshape": _of(lambda op, x, shape: x.reshape(shape)),
    "Fill": _of(lambda op, shape, x: np.full(shape, x)),
    "Equal": _of(lambda op, x, y: x == y),
    "Less": _of(lambda op, x, y: x < y),
    "Greater": _of(lambda op, x, y: x > y),
    "ReverseV2": _of(lambda op, x, axis: np.flip(x, tuple(np.atleast_1d(axis)))),
}


def constant_shape(t: Any) -> TensorShape:
    """What is known of the shape that a tensor of lengths says."""
    value = constant_value(t)
    if value is not None:
        return TensorShape([None if n < 0 else int(n) for n in np.atleast_1d(value)])
    op = t.op
    if op.type == "Shape":
        return op.inputs[0].shape
    if op.type in ("Cast", "Identity"):
        return constant_shape(op.inputs[0])
    if op.type == "Pack":
        known = [_length(x) for x in op.inputs]
        return TensorShape(known)
    if op.type == "ConcatV2":
        total = TensorShape([])
        for x in op.inputs[:-1]:
            total = total.concatenate(constant_shape(x))
        return total
    if op.type == "StridedSlice" and not op.attrs["shrink_axis_mask"]:
        found_key = _values(op, op.inputs[1:])
        if found_key is not None:
            whole = constant_shape(op.inputs[0])
            key = key_of(op.attrs, *found_key)
            if whole.lengths is not None and len(key) == 1 and isinstance(key[0], slice):
                return TensorShape(list(whole.lengths[key[0]]))
    rank = t.shape.lengths
    return TensorShape(None if not rank or rank[0] is None else [None] * rank[0])


def _length(t: Any) -> int | None:
    value = constant_value(t)
    return None if value is None or value < 0 else int(value)
