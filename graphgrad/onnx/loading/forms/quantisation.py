"""Numbers on grids: quantised, back again, and products of them."""

from __future__ import annotations

import numpy as np

from ....base.errors import DTypeError, FileError
from ....ir.build import apply
from ....ir.node import Tensor
from ....ir.types import as_dtype
from ....ops.arrays.nonzero import repeat
from ....ops.base import DType, cast, kind_of, like
from ....ops.contract.products import matmul
from ....ops.elementwise.bounds import clip, maximum, minimum
from ....ops.elementwise.grids import FakeFloat8
from ....ops.elementwise.rounding import round as round_
from ....ops.reduce import reductions
from ....ops.shape.indexing import getitem
from ....ops.shape.reshaping import normal_axis, reshape
from ..call import OperatorCall
from ..narrow import narrow_of, narrow_of_dtype
from ..tensors import dtype_of
from .convolutions import by_channel, convolved
from .table import form

FLOATS = {"float8_e4m3fn": "e4m3fn", "float8_e5m2": "e5m2"}


@form("QuantizeLinear")
def _quantize(call: OperatorCall) -> Tensor:
    x, scale, zero = call.tensor(0), call.tensor(1), call.optional(2)
    number = call.attribute("output_dtype", 0)
    narrow = narrow_of_dtype(call.values[2].dtype) if zero is not None else narrow_of(number)
    saturate = call.attribute("saturate", 1)
    call.attribute("precision")
    scale, zero = _spread(call, x, scale, zero)
    if narrow is not None and narrow.name in FLOATS:
        return _as_float8(x, scale, narrow.name, saturate)
    if narrow is not None:
        return on_grid(x, scale, zero, as_dtype(narrow.wide), (narrow.low, narrow.high))
    dtype = dtype_of(number, "the result") if number else as_dtype("uint8")
    return on_grid(x, scale, zero, dtype if zero is None else zero.dtype)


def _as_float8(x: Tensor, scale: Tensor, name: str, saturate: int) -> Tensor:
    """x / scale as a floating number of eight bits, in float32."""
    if not saturate:
        raise FileError(
            "with saturate=0 values that do not fit into eight bits become NaN, which is not "
            "supported"
        )
    v = cast(x, as_dtype("float32")) / cast(scale, as_dtype("float32"))
    return apply(FakeFloat8(FLOATS[name]), v, like(1, v))


def on_grid(
    x: Tensor,
    scale: Tensor,
    zero: Tensor | None,
    dtype: DType,
    ends: tuple[float, float] | None = None,
) -> Tensor:
    """x / scale, rounded, shifted and held within an integer dtype, or ends that are less."""
    if kind_of(dtype) not in "iu":
        raise DTypeError(f"numbers are put on a grid of integers, not of {dtype}")
    wide = as_dtype("float32") if x.dtype.itemsize < 8 else x.dtype
    low, high = ends or (float(np.iinfo(dtype).min), float(np.iinfo(dtype).max))
    steps = round_(cast(x, wide) / cast(scale, wide))
    moved = steps if zero is None else steps + cast(zero, wide)
    return cast(clip(moved, low, high), dtype)


@form("DequantizeLinear")
def _dequantize(call: OperatorCall) -> Tensor:
    x, scale, zero = call.tensor(0), call.tensor(1), call.optional(2)
    number = call.attribute("output_dtype", 0)
    dtype = dtype_of(number, "the result") if number else scale.dtype
    scale, zero = _spread(call, x, scale, zero)
    return cast(from_grid(x, scale, zero), dtype)


def from_grid(x: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    """What numbers of a grid stand for."""
    if kind_of(x.dtype) == "f":  # of eight bits: their zero is 0
        return cast(x, scale.dtype) * scale
    exact = cast(x, as_dtype("int32"))
    exact = exact if zero is None else exact - cast(zero, as_dtype("int32"))
    return cast(exact, scale.dtype) * scale


def _spread(
    call: OperatorCall, x: Tensor, scale: Tensor, zero: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Scale and zero of each channel or block, ready to be broadcast with x."""
    axis, block = call.attribute("axis", 1), call.attribute("block_size", 0)
    if scale.ndim == 0 or (scale.ndim == 1 and scale.shape[0] == 1 and not block):
        rows = [reshape(row, ()) if row is not None else None for row in (scale, zero)]
    elif block:
        axis = normal_axis(axis, x.ndim)
        length = x.shape[axis]
        key = (slice(None),) * axis + (slice(length),)
        rows = [
            None if row is None else getitem(repeat(row, block, axis), key) for row in (scale, zero)
        ]
    else:
        shape = [1] * x.ndim
        shape[normal_axis(axis, x.ndim)] = -1
        rows = [reshape(row, tuple(shape)) if row is not None else None for row in (scale, zero)]
    at_scale, at_zero = rows
    assert at_scale is not None
    return at_scale, at_zero


@form("DynamicQuantizeLinear")
def _dynamic(call: OperatorCall) -> tuple[Tensor, Tensor, Tensor]:
    x = call.tensor(0)
    high = maximum(reductions.max(x), 0.0)
    low = minimum(reductions.min(x), 0.0)
    scale = cast((high - low) / 255.0, x.dtype)
    zero = cast(clip(round_(-low / scale), 0.0, 255.0), as_dtype("uint8"))
    return on_grid(x, scale, zero, as_dtype("uint8")), scale, zero


def _without_zero(call: OperatorCall, i: int, zero: int, axis: int) -> Tensor:
    """Integers of a grid less their zero, exact as float64."""
    x, offset = call.tensor(i), call.optional(zero)
    x = cast(x, as_dtype("float64"))
    if offset is None:
        return x
    if offset.ndim == 1 and offset.shape[0] != 1:
        shape = [1] * x.ndim
        shape[axis] = -1
        offset = reshape(offset, tuple(shape))
    elif offset.ndim == 1:
        offset = reshape(offset, ())
    return x - cast(offset, x.dtype)


@form("MatMulInteger")
def _matmul_integer(call: OperatorCall) -> Tensor:
    x = _without_zero(call, 0, 2, call.tensor(0).ndim - 2)
    y = _without_zero(call, 1, 3, call.tensor(1).ndim - 1)
    return cast(matmul(x, y), as_dtype("int32"))


@form("ConvInteger")
def _conv_integer(call: OperatorCall) -> Tensor:
    x, filters = _without_zero(call, 0, 2, 1), _without_zero(call, 1, 3, 0)
    return cast(convolved(call, x, filters, None), as_dtype("int32"))


@form("QLinearMatMul")
def _qlinear_matmul(call: OperatorCall) -> Tensor:
    x = _without_zero(call, 0, 2, call.tensor(0).ndim - 2)
    y = _without_zero(call, 3, 5, call.tensor(3).ndim - 1)
    scale = cast(call.tensor(1), x.dtype) * cast(call.tensor(4), x.dtype)
    z = matmul(x, y) * scale
    return on_grid(z, call.tensor(6), call.tensor(7), call.tensor(7).dtype)


@form("QLinearConv")
def _qlinear_conv(call: OperatorCall) -> Tensor:
    x, filters = _without_zero(call, 0, 2, 1), _without_zero(call, 3, 5, 0)
    bias = call.optional(8)
    z = convolved(call, x, filters, None if bias is None else cast(bias, x.dtype))
    weights = call.tensor(4)
    scale = weights if weights.ndim == 0 else by_channel(weights, z)
    z = z * cast(reshape(call.tensor(1), ()), z.dtype) * cast(scale, z.dtype)
    return on_grid(z, call.tensor(6), call.tensor(7), call.tensor(7).dtype)
