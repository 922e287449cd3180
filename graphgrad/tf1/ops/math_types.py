"""Op types of arithmetic: element by element, reductions, matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphgrad as gg

from ..definition import define
from ..dtypes import as_dtype
from ..shapes import TensorShape, axis_in, broadcast, unknown_shape
from ..static import constant_value

__all__ = ["reduced_shape"]


def same(inputs: Any, attrs: Any) -> TensorShape:
    """The shape of the first input."""
    return inputs[0]._shape


def both(inputs: Any, attrs: Any) -> TensorShape:
    """The shape of two inputs broadcast against each other."""
    return broadcast(inputs[0]._shape, inputs[1]._shape)


def _rsqrt(x: Any) -> Any:
    return 1.0 / gg.sqrt(x)


UNARY: dict[str, Callable[..., Any]] = {
    "Abs": gg.abs, "Neg": gg.negative, "Sign": gg.sign, "Round": gg.rint, "Rint": gg.rint,
    "Floor": gg.floor, "Ceil": gg.ceil, "Square": gg.square, "Sqrt": gg.sqrt, "Rsqrt": _rsqrt,
    "Exp": gg.exp, "Expm1": gg.expm1, "Log": gg.log, "Log1p": gg.log1p, "Sin": gg.sin,
    "Cos": gg.cos, "Tan": gg.tan, "Asin": gg.arcsin, "Acos": gg.arccos, "Atan": gg.arctan,
    "Sinh": gg.sinh, "Cosh": gg.cosh, "Tanh": gg.tanh, "Asinh": gg.arcsinh, "Acosh": gg.arccosh,
    "Atanh": gg.arctanh, "Sigmoid": gg.nn.sigmoid, "Erf": gg.special.erf, "Erfc": gg.special.erfc,
    "Lgamma": gg.special.gammaln, "Digamma": gg.special.digamma, "Reciprocal": gg.reciprocal,
    "Inv": gg.reciprocal, "Conj": gg.conj, "Erfinv": gg.special.erfinv, "Ndtri": gg.special.ndtri,
    "Invert": gg.bitwise_invert, "BesselI0e": gg.special.i0e, "BesselI1e": gg.special.i1e,
}  # fmt: skip
TRUTHS: dict[str, Callable[..., Any]] = {
    "LogicalNot": gg.logical_not, "IsNan": gg.isnan, "IsInf": gg.isinf, "IsFinite": gg.isfinite,
}  # fmt: skip


def _divide(x: Any, y: Any) -> Any:
    return _toward_zero(x, y) if x.dtype.kind in "iu" else x / y


def _floor_divide(x: Any, y: Any) -> Any:
    return gg.floor_divide(x, y) if x.dtype.kind in "iu" else gg.floor(x / y)


def _toward_zero(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return gg.trunc(x / y)
    quotient = gg.floor_divide(x, y)
    inexact = gg.not_equal(quotient * y, x)
    negative = gg.not_equal(gg.less(x, 0), gg.less(y, 0))
    return quotient + gg.cast(gg.logical_and(inexact, negative), x.dtype)


def _no_nan(x: Any, y: Any) -> Any:
    zero = gg.equal(y, 0)
    return gg.where(zero, gg.zeros_like(x * y), x / gg.where(zero, gg.ones_like(y), y))


def _or_zero(x: Any, y: Any) -> Any:
    """y; zero where x is, even where y is no number."""
    return gg.where(gg.equal(x, 0), gg.zeros_like(y), y)


BINARY: dict[str, Callable[..., Any]] = {
    "Add": gg.add, "AddV2": gg.add, "Sub": gg.subtract, "Mul": gg.multiply, "RealDiv": gg.divide,
    "Div": _divide, "FloorDiv": _floor_divide, "TruncateDiv": _toward_zero,
    "FloorMod": gg.remainder, "Mod": gg.fmod, "TruncateMod": gg.fmod, "Pow": gg.power,
    "Maximum": gg.maximum, "Minimum": gg.minimum, "Atan2": gg.arctan2, "DivNoNan": _no_nan,
    "MulNoNan": lambda x, y: gg.where(gg.equal(y, 0), gg.zeros_like(x * y), x * y),
    "SquaredDifference": lambda x, y: gg.square(x - y),
    "Xlogy": lambda x, y: _or_zero(x, x * gg.log(y)), "Xdivy": lambda x, y: _or_zero(x, x / y),
    "Igamma": gg.special.gammainc, "Igammac": gg.special.gammaincc,
    "NextAfter": gg.nextafter,
    "BitwiseAnd": gg.bitwise_and, "BitwiseOr": gg.bitwise_or, "BitwiseXor": gg.bitwise_xor,
    "LeftShift": gg.bitwise_left_shift, "RightShift": gg.bitwise_right_shift,
}  # fmt: skip
COMPARISONS: dict[str, Callable[..., Any]] = {
    "Equal": gg.equal, "NotEqual": gg.not_equal, "Less": gg.less, "LessEqual": gg.less_equal,
    "Greater": gg.greater, "GreaterEqual": gg.greater_equal, "LogicalAnd": gg.logical_and,
    "LogicalOr": gg.logical_or, "LogicalXor": gg.logical_xor,
}  # fmt: skip


def _element_wise(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda trace, op, *args: function(*args)


def _by_no_zero(function: Callable[..., Any]) -> Callable[..., Any]:
    """A division; an error where whole numbers are divided by a constant that holds a zero."""

    def lower(trace: Any, op: Any, x: Any, y: Any) -> Any:
        divisor = trace.constant(op.inputs[1]) if y.dtype.kind in "iu" else None
        if divisor is not None and x.size and not np.all(divisor):
            raise ValueError("Integer division by zero")
        return function(x, y)

    return lower


KINDS = dict.fromkeys(("Abs", "Neg", "Sign", "Round", "Square", "Invert", "Conj"), "")
KINDS |= dict.fromkeys(("Rint", "Floor", "Ceil", "IsNan", "IsInf", "IsFinite"), "f")
KINDS |= dict.fromkeys(("Atan2", "Xlogy", "Xdivy", "MulNoNan", "DivNoNan", "NextAfter"), "fc")
KINDS |= {"LogicalNot": "b", "Igamma": "f", "Igammac": "f"}
KINDS |= dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"), "iu")
"""Kinds of elements that op types take, where they are not the usual ones."""

for _type, _function in UNARY.items():
    _kinds = KINDS.get(_type, "fc")
    define(_type, "x", lower=_element_wise(_function), infer=same, kinds=_kinds)
for _type, _function in TRUTHS.items():
    define(_type, "x", lower=_element_wise(_function), infer=same, dtype="bool", kinds=KINDS[_type])
for _type, _function in BINARY.items():
    _kinds = KINDS.get(_type, "fciuO")
    define(_type, "x y", lower=_element_wise(_function), infer=both, kinds=_kinds)
for _type in ("FloorDiv", "TruncateDiv", "Div", "FloorMod", "Mod", "TruncateMod"):
    define(_type, "x y", lower=_by_no_zero(BINARY[_type]), infer=both, kinds="fciu")
for _type, _function in COMPARISONS.items():
    _kinds = "b" if _type.startswith("Logical") else "" if _type[-5:] == "Equal" else "fiu"
    define(_type, "x y", lower=_element_wise(_function), infer=both, dtype="bool", kinds=_kinds)


# reductions


def reduced_shape(inputs: Any, attrs: Any) -> TensorShape:
    """The shape of a reduction over the axes that the second input names."""
    shape, axes = inputs[0]._shape, constant_value(inputs[1])
    keep = attrs.get("keep_dims", False)
    if shape.lengths is None:
        if axes is None or keep:
            return unknown_shape()
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
for _type, _function in REDUCTIONS.items():
    define(_type, "input reduction_indices:int32", lower=_reduction(_function), infer=reduced_shape)
for _type, _function in {"All": gg.all, "Any": gg.any}.items():
    define(
        _type,
        "input reduction_indices:int32",
        lower=_reduction(_function),
        infer=reduced_shape,
        dtype="bool",
    )


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


define(
    "ArgMax",
    "input dimension:int32",
    lower=_arg(gg.argmax, -np.inf),
    infer=_arg_shape,
    types=_output_type,
)
define(
    "ArgMin",
    "input dimension:int32",
    lower=_arg(gg.argmin, np.inf),
    infer=_arg_shape,
    types=_output_type,
)


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


@define("L2Loss", "t", kinds="fc", infer=lambda inputs, attrs: TensorShape(()))
def _l2_loss(trace: Any, op: Any, t: Any) -> Any:
    return gg.sum(gg.square(t)) / 2


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


define("Real", "input", infer=same, types=lambda i, a: [i[0].dtype.real_dtype],
       lower=lambda trace, op, x: gg.real(x))  # fmt: skip
define("Imag", "input", infer=same, types=lambda i, a: [i[0].dtype.real_dtype],
       lower=lambda trace, op, x: gg.imag(x))  # fmt: skip
define("ComplexAbs", "x", infer=same, types=lambda i, a: [i[0].dtype.real_dtype],
       lower=lambda trace, op, x: gg.abs(x))  # fmt: skip


def _complex_type(inputs: Any, attrs: Any) -> Any:
    return [as_dtype("complex64" if inputs[0].dtype.size == 4 else "complex128")]


@define("Complex", "real imag", infer=both, types=_complex_type, kinds="f")
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


@define("Cross", "a b", infer=same)
def _cross(trace: Any, op: Any, a: Any, b: Any) -> Any:
    return gg.cross(a, b)


@define("Bincount", "arr:int32 size:int32 weights:A", types=lambda i, a: [i[2].dtype.base_dtype],
        infer=lambda i, a: TensorShape([None]))  # fmt: skip
def _bincount(trace: Any, op: Any, arr: Any, size: Any, weights: Any) -> Any:
    given = gg.reshape(weights, (-1,)) if weights.size else None
    return gg.bincount(gg.reshape(arr, (-1,)), given, length=int(trace.value(op.inputs[1])))


# what gradients are made of


@define("SqrtGrad", "y dy", infer=same)
def _sqrt_grad(trace: Any, op: Any, y: Any, dy: Any) -> Any:
    return gg.where(gg.equal(dy, 0), gg.zeros_like(dy), dy * 0.5 / y)


@define("SigmoidGrad", "y dy", infer=same)
def _sigmoid_grad(trace: Any, op: Any, y: Any, dy: Any) -> Any:
    return dy * y * (1.0 - y)


@define("TanhGrad", "y dy", infer=same)
def _tanh_grad(trace: Any, op: Any, y: Any, dy: Any) -> Any:
    return dy * (1.0 - y * y)


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
