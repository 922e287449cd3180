"""Operators that work element by element, but for those that an op says itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from ....ir.node import Tensor
from ....ops.base import cast, is_floating, kind_of
from ....ops.create.creation import zeros_like
from ....ops.elementwise.arithmetic import add, divide
from ....ops.elementwise.bounds import clip, maximum, minimum
from ....ops.elementwise.logic import (
    bitwise_left_shift,
    bitwise_right_shift,
    equal,
    isinf,
    less,
    where,
)
from ....ops.elementwise.magnitudes import absolute, sign
from ....ops.elementwise.powers import power
from ....ops.elementwise.remainders import floor_divide, fmod, remainder
from ....ops.protocols.queries import isneginf, isposinf
from ..call import OperatorCall
from ..tensors import dtype_of
from .common import like
from .table import form


def _each(call: OperatorCall, fn: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    return reduce(fn, call.tensors)


@form("Max")
def _max(call: OperatorCall) -> Tensor:
    return _each(call, maximum)


@form("Min")
def _min(call: OperatorCall) -> Tensor:
    return _each(call, minimum)


@form("Sum")
def _sum(call: OperatorCall) -> Tensor:
    return _each(call, add)


@form("Mean")
def _mean(call: OperatorCall) -> Tensor:
    return _each(call, add) / float(len(call.values))


@form("Div")
def _div(call: OperatorCall) -> Tensor:
    x, y = call.tensors
    if kind_of(x.dtype) == "i":  # towards zero
        return cast(floor_divide(absolute(x), absolute(y)) * (sign(x) * sign(y)), x.dtype)
    return floor_divide(x, y) if kind_of(x.dtype) == "u" else divide(x, y)


@form("Mod")
def _mod(call: OperatorCall) -> Tensor:
    x, y = call.tensors
    return fmod(x, y) if call.attribute("fmod", 0) else remainder(x, y)


@form("Pow")
def _pow(call: OperatorCall) -> Tensor:
    x, y = call.tensors
    if is_floating(x.dtype):
        return power(x, cast(y, x.dtype))
    return cast(power(x, y), x.dtype)


@form("BitShift")
def _bit_shift(call: OperatorCall) -> Tensor:
    x, y = call.tensors
    left = call.needed("direction") == "LEFT"
    width = x.dtype.itemsize * 8
    if kind_of(x.dtype) == "u":
        shifted = bitwise_left_shift(x, y) if left else bitwise_right_shift(x, y)
        return where(less(y, width), shifted, zeros_like(x))
    at_most = clip(y, 0, width - 1)
    if left:
        return where(equal(at_most, y), bitwise_left_shift(x, at_most), zeros_like(x))
    return bitwise_right_shift(x, where(less(y, 0), width - 1, at_most).astype(y.dtype))


@form("Cast")
def _cast(call: OperatorCall) -> Tensor:
    call.attribute("saturate")
    call.attribute("round_mode")
    return cast(call.tensor(0), dtype_of(call.needed("to"), "the result"))


@form("CastLike")
def _cast_like(call: OperatorCall) -> Any:
    call.attribute("saturate")
    call.attribute("round_mode")
    x, dtype = call.values[0], call.tensor(1).dtype
    return cast(x, dtype) if isinstance(x, Tensor) else x.astype(dtype)


@form("Clip")
def _clip(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    low, high = (
        call.attribute(name) if call.opset < 11 else call.optional(i)
        for i, name in ((1, "min"), (2, "max"))
    )
    low, high = (like(b, x) if isinstance(b, float) else b for b in (low, high))
    if low is None or high is None:
        bound = low if high is None else high
        return x if bound is None else (minimum if low is None else maximum)(x, bound)
    return clip(x, low, high)


@form("IsInf")
def _is_inf(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    high, low = call.attribute("detect_positive", 1), call.attribute("detect_negative", 1)
    if high and low:
        return isinf(x)
    return isposinf(x) if high else isneginf(x) if low else zeros_like(x).astype("bool")


@form("Where")
def _where(call: OperatorCall) -> Tensor:
    return where(*call.tensors)


@form("Identity")
def _identity(call: OperatorCall) -> Any:
    return call.values[0]
