"""Op types of arithmetic: reductions, matrix products, sums along an axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphgrad as gg

from ..definition import define
from ..dtypes import as_dtype
from ..shapes import TensorShape, axis_in, broadcast, unknown_shape
from ..static import constant_value
from .elementwise import both, same

__all__ = ["reduced_shape"]


# reductions


def reduced_shape(inputs: Any, attrs: Any) -> TensorShape:
    """The shape of a reduction over the axes that the second input names."""
    shape, axes = inputs[0]._shape, constant_value(inputs[1])
    keep = attrs.get("keep_dims", False)
    if shape.lengths is None:
        return unknown_shape()
    rank = len(shape.lengths)
    if axes is None:
        return unknown_shape(rank) if keep else unknown_shape()
    chosen = set()
    for axis in np.atleast_1d(axes).reshape(-1):
        if not -rank <= axis < rank:
            raise ValueError(
                f"Invalid reduction dimension {axis} for input with {rank} dimensions."
            )
        chosen.add(int(axis) % rank)
    if keep:
        return TensorShape([1 if i in chosen else n for i, n in enumerate(shape.lengths)])
    return TensorShape([n for i, n in enumerate(shape.lengths) if i not in chosen])


def axes_of(trace: Any, t: Any) -> tuple[int, ...]:
    """The axes that a tensor names."""
    return tuple([int(a) for a in np.atleast_1d(trace.value(t)).reshape(-1)])


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def lower(trace: Any, op: Any, x: Any, axis: Any) -> Any:
        axes = axes_of(trace, op.inputs[1])
        return function(x, axis=axes, keepdims=bool(op.attrs.get("keep_dims", False)))

    return lower


def _mean(x: Any, axis: Any, keepdims: bool) -> Any:
    if x.dtype.kind in "iu":
        total = gg.sum(x, axis=axis, keepdims=keepdims)
        return gg.floor_divide(total, max(1, int(np.prod([x.shape[a] for a in axis]))))
    return gg.mean(x, axis=axis, keepdims=keepdims)


def _extreme(function: Callable[..., Any], sign: int) -> Callable[..., Any]:
    """The greatest or least element; of none, the one that every other beats."""

    def reduced(x: Any, axis: Any, keepdims: bool) -> Any:
        if all(x.shape[a] for a in axis):
            return function(x, axis=axis, keepdims=keepdims)
        kind = np.dtype(x.dtype)
        limits = None if kind.kind == "f" else np.iinfo(kind)
        none = sign * np.inf if limits is None else limits.max if sign > 0 else limits.min
        return gg.sum(x, axis=axis, keepdims=keepdims) + np.array(none, kind)

    return reduced


REDUCTIONS: dict[str, Callable[..., Any]] = {
    "Sum": gg.sum, "Mean": _mean, "Prod": gg.prod,
    "Max": _extreme(gg.max, -1), "Min": _extreme(gg.min, 1),
}  # fmt: skip
REDUCED = "input reduction_indices:int32"
for _type, _function in REDUCTIONS.items():
    define(_type, REDUCED, lower=_reduction(_function), infer=reduced_shape)
for _type, _function in {"All": gg.all, "Any": gg.any}.items():
    define(_type, REDUCED, lower=_reduction(_function), infer=reduced_shape, dtype="bool")


def _arg_shape(inputs: Any, attrs: Any) -> TensorShape:
    return reduced_shape(inputs, {})


def _output_type(inputs: Any, attrs: Any) -> Any:
    return [as_dtype(attrs.get("output_type", "int64"))]


def _arg(function: Callable[..., Any], last: float) -> Callable[..., Any]:
    def lower(trace: Any, op: Any, x: Any, axis: Any) -> Any:
        if x.dtype.kind == "f":  # no NaN is chosen
            x = gg.where(gg.isnan(x), np.array(last, x.dtype), x)
        return function(x, axis=int(trace.value(op.inputs[1])))

    return lower


for _type, _lower in {
    "ArgMax": _arg(gg.argmax, -np.inf),
    "ArgMin": _arg(gg.argmin, np.inf),
}.items():
    define(_type, "input dimension:int32", lower=_lower, infer=_arg_shape, types=_output_type)


# matrix products


def _turned(x: Any, turned: bool, conjugate: bool = False) -> Any:
    if not turned:
        return x
    x = gg.matrix_transpose(x)
    return gg.conj(x) if conjugate and x.dtype.kind == "c" else x


def _matmul_shape(inputs: Any, attrs: Any) -> TensorShape:
    a, b = (t._shape.lengths for t in inputs)
    first = a if a is not None else (None, None)
    second = b if b is not None else (None, None)
    if len(first) != 2 or len(second) != 2:
        rank = len(first) if len(first) != 2 else len(second)
        raise ValueError(f"Shape must be rank 2 but is rank {rank}")
    rows, inner = first[::-1] if attrs["transpose_a"] else first
    other, columns = second[::-1] if attrs["transpose_b"] else second
    if inner is not None and other is not None and inner != other:
        raise ValueError(f"Dimensions must be equal, but are {inner} and {other}")
    return TensorShape([rows, columns])


@define("MatMul", "a b", infer=_matmul_shape, kinds="fciu")
def _matmul(trace: Any, op: Any, a: Any, b: Any) -> Any:
    return gg.matmul(_turned(a, op.attrs["transpose_a"]), _turned(b, op.attrs["transpose_b"]))


def _batch_shape(inputs: Any, attrs: Any) -> TensorShape:
    a, b = (t._shape.lengths for t in inputs)
    if a is None or b is None:
        return unknown_shape()
    if len(a) < 2 or len(b) < 2:
        raise ValueError("Shape must be at least rank 2")
    rows, inner = a[-2:][::-1] if attrs["adj_x"] else a[-2:]
    other, columns = b[-2:][::-1] if attrs["adj_y"] else b[-2:]
    if inner is not None and other is not None and inner != other:
        raise ValueError(f"Dimensions must be equal, but are {inner} and {other}")
    stacks = broadcast(TensorShape(list(a[:-2])), TensorShape(list(b[:-2])))
    return stacks.concatenate([rows, columns])


def _batch_matmul(trace: Any, op: Any, x: Any, y: Any) -> Any:
    return gg.matmul(_turned(x, op.attrs["adj_x"], True), _turned(y, op.attrs["adj_y"], True))


define("BatchMatMulV2", "x y", lower=_batch_matmul, infer=_batch_shape)
define("BatchMatMul", "x y", lower=_batch_matmul, infer=_batch_shape)


@define("Cast", "x:A", infer=same, types=lambda inputs, attrs: [as_dtype(attrs["DstT"])])
def _cast(trace: Any, op: Any, x: Any) -> Any:
    wanted = as_dtype(op.attrs["DstT"]).numpy
    if x.dtype.kind == "c" and wanted.kind != "c":
        x = gg.real(x)
    return gg.cast(x, wanted)


def _added_shape(inputs: Any, attrs: Any) -> TensorShape:
    shape = unknown_shape()
    for t in inputs:
        shape = shape.merge_with(t._shape)
    return shape


@define("AddN", "inputs*", infer=_added_shape)
def _add_n(trace: Any, op: Any, *xs: Any) -> Any:
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    return total


define("L2Loss", "t", kinds="fc", infer=lambda inputs, attrs: TensorShape(()),
       native=lambda t: gg.sum(gg.square(t)) / 2)  # fmt: skip


def _cumulative(function: Any, start: float) -> Callable[..., Any]:
    def lower(trace: Any, op: Any, x: Any, axis: Any) -> Any:
        place = axis_in(trace.value(op.inputs[1]), len(x.shape))
        if op.attrs["reverse"]:
            x = gg.flip(x, place)
        y = function(x, axis=place)
        if op.attrs["exclusive"] and x.shape[place]:
            key = tuple([slice(None)] * place)
            first = gg.full_like(y[(*key, slice(0, 1))], start)
            y = gg.concat([first, y[(*key, slice(0, x.shape[place] - 1))]], axis=place)
        return gg.flip(y, place) if op.attrs["reverse"] else y

    return lower


def _cumulative_shape(inputs: Any, attrs: Any) -> TensorShape:
    axis, shape = constant_value(inputs[1]), inputs[0]._shape
    if axis is not None and shape.lengths is not None:
        axis_in(axis, len(shape.lengths))
    return shape


define("Cumsum", "x axis:int32", lower=_cumulative(gg.cumsum, 0), infer=_cumulative_shape)
define("Cumprod", "x axis:int32", lower=_cumulative(gg.cumprod, 1), infer=_cumulative_shape)


def _segments(trace: Any, op: Any, data: Any, ids: Any, count: int) -> Any:
    shape = (count, *data.shape[len(ids.shape) :])
    flat = gg.reshape(data, (-1, *data.shape[len(ids.shape) :])) if len(ids.shape) != 1 else data
    return gg.scatter_add(gg.zeros(shape, data.dtype), gg.reshape(ids, (-1,)), flat)


def _unsorted_shape(inputs: Any, attrs: Any) -> TensorShape:
    data, ids, count = inputs[0]._shape, inputs[1]._shape, constant_value(inputs[2])
    if data.lengths is None or ids.lengths is None:
        return unknown_shape()
    rest = list(data.lengths[len(ids.lengths) :])
    return TensorShape([None if count is None else int(count), *rest])


@define("UnsortedSegmentSum", "data segment_ids:A num_segments:A", infer=_unsorted_shape)
def _unsorted_segment_sum(trace: Any, op: Any, data: Any, ids: Any, count: Any) -> Any:
    """Rows whose number is negative are left out."""
    kept = gg.reshape(
        gg.greater_equal(ids, 0), (*ids.shape, *[1] * (len(data.shape) - len(ids.shape)))
    )
    rows = gg.where(kept, data, gg.zeros_like(data))
    return _segments(trace, op, rows, gg.maximum(ids, 0), int(trace.value(op.inputs[2])))


def _first_unknown(inputs: Any, attrs: Any) -> TensorShape:
    shape = inputs[0]._shape
    return TensorShape(None) if shape.lengths is None else TensorShape([None, *shape.lengths[1:]])


def _sorted_ids(trace: Any, op: Any, data: Any) -> Any:
    ids = trace.value(op.inputs[1])
    if ids.shape != data.shape[:1] or (np.diff(ids) < 0).any() or (ids < 0).any():
        raise ValueError(f"segment ids are sorted, one for each of {data.shape[0]} rows, got {ids}")
    return ids


@define("SegmentSum", "data segment_ids:A", infer=_first_unknown)
def _segment_sum(trace: Any, op: Any, data: Any, ids: Any) -> Any:
    where = _sorted_ids(trace, op, data)
    return _segments(trace, op, data, ids, int(where[-1]) + 1 if where.size else 0)


@define("SegmentMean", "data segment_ids:A", infer=_first_unknown)
def _segment_mean(trace: Any, op: Any, data: Any, ids: Any) -> Any:
    where = _sorted_ids(trace, op, data)
    counts = np.maximum(np.bincount(where), 1).astype(data.dtype)
    total = _segments(trace, op, data, ids, counts.size)
    return total / counts.reshape((-1,) + (1,) * (len(data.shape) - 1))


def real_type(inputs: Any, attrs: Any) -> Any:
    return [inputs[0].dtype.real_dtype]


define("Real", "input", native=gg.real, infer=same, types=real_type)
define("Imag", "input", native=gg.imag, infer=same, types=real_type)
define("ComplexAbs", "x", native=gg.abs, infer=same, types=real_type)


def complex_type(inputs: Any, attrs: Any) -> Any:
    return [as_dtype("complex64" if inputs[0].dtype.size == 4 else "complex128")]


@define("Complex", "real imag", infer=both, types=complex_type, kinds="f")
def _complex(trace: Any, op: Any, real: Any, imag: Any) -> Any:
    wanted = op.outputs[0].dtype.numpy if op.outputs[0] is not None else np.dtype("complex128")
    return gg.cast(real, wanted) + gg.cast(imag, wanted) * np.array(1j, wanted)


def _by_number(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a number and a tensor, for each of the numbers in a tensor."""

    def lower(trace: Any, op: Any, a: Any, x: Any) -> Any:
        numbers = trace.value(op.inputs[0])
        y = gg.zeros_like(a + x) * np.array(np.nan, x.dtype)
        for number in np.unique(numbers):
            y = gg.where(gg.equal(a, number), function(number, x), y)
        return y

    return lower


define("Polygamma", "a x", infer=both, kinds="f",
       lower=_by_number(lambda n, x: gg.special.polygamma(int(n), x)))  # fmt: skip
define("Zeta", "x q", infer=both, kinds="f",
       lower=_by_number(lambda n, q: gg.special.zeta(float(n), q)))  # fmt: skip


define("Cross", "a b", native=gg.cross, infer=same)


@define("Bincount", "arr:int32 size:int32 weights:A", like=2,
        infer=lambda i, a: TensorShape([None]))  # fmt: skip
def _bincount(trace: Any, op: Any, arr: Any, size: Any, weights: Any) -> Any:
    given = gg.reshape(weights, (-1,)) if weights.size else None
    return gg.bincount(gg.reshape(arr, (-1,)), given, length=int(trace.value(op.inputs[1])))


# what gradients are made of


@define("SpreadLike", "dy like reduction_indices:A", no_gradient=[1],
        infer=lambda i, a: i[1]._shape)  # fmt: skip
def _spread_like(trace: Any, op: Any, dy: Any, like: Any, axis: Any) -> Any:
    """What was added up over some axes, put back along them."""
    shape = tuple(like.shape)
    axes = {a % len(shape) for a in axes_of(trace, op.inputs[2])} if shape else set()
    kept = tuple([1 if i in axes else n for i, n in enumerate(shape)])
    return gg.broadcast_to(gg.reshape(dy, kept), shape)


@define("Einsum", "inputs*")
def _einsum(trace: Any, op: Any, *xs: Any) -> Any:
    return gg.einsum(op.attrs["equation"], *xs)
