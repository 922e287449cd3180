"""A grid as ONNX has it: a scale and a zero, of a type of integers that holds all its numbers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...ir.onnx import NoOnnxForm
from ...ir.types import Array, DType
from ..package import onnx_helper

__all__ = ["OF_FLOAT8", "Codes", "NumberType", "number_type", "one_axis"]


class NumberType(NamedTuple):
    """An element type of ONNX, and its least and greatest number."""

    number: int
    low: int
    high: int

    @property
    def dtype(self) -> DType:
        """That of arrays of it."""
        dtype: DType = onnx_helper.tensor_dtype_to_np_dtype(self.number)
        return dtype

    def holds(self, low: int, high: int) -> bool:
        """Whether it has all numbers from low to high."""
        return self.low <= low and high <= self.high


UINT4, INT4 = NumberType(21, 0, 15), NumberType(22, -8, 7)
UINT8, INT8 = NumberType(2, 0, 255), NumberType(3, -128, 127)
UINT16, INT16 = NumberType(4, 0, 65535), NumberType(5, -32768, 32767)
INT32 = NumberType(6, -(2**31), 2**31 - 1)
OF_FLOAT8 = {"e4m3fn": NumberType(17, -448, 448), "e5m2": NumberType(19, -57344, 57344)}

OF_ACTIVATIONS = (UINT8, UINT16)
OF_WEIGHTS = (INT4, UINT4, INT8, INT16, INT32)
"""Kernels for integers take activations of uint8 with weights of int8 everywhere; int8 with int8
onnxruntime makes into these on x86, and fails where it is an output. A grid of other numbers is
stored shifted, and means the same."""


def number_type(low: int, high: int, weights: bool = False) -> tuple[NumberType, int]:
    """The first type that holds a grid, and what is taken off its numbers; NoOnnxForm."""
    for kind in OF_WEIGHTS if weights else OF_ACTIVATIONS:
        for shift in (0, low - kind.low):
            if kind.holds(low - shift, high - shift) and not (shift and kind in (INT4, UINT4)):
                return kind, shift
    most = "integers of a file have up to 32 bits" if weights else "QuantizeLinear has up to 16"
    raise NoOnnxForm(f"its grid has the numbers {low} to {high}, and {most}")


def one_axis(array: Array, rank: int) -> int | None:
    """The only axis along which an array that broadcasts to this rank has several elements; None
    where it has one element; NoOnnxForm where there are more axes."""
    if array.ndim > rank:
        raise NoOnnxForm(f"its step has {array.ndim} axes, more than the {rank} of its tensor")
    long = [rank - array.ndim + i for i, n in enumerate(array.shape) if n != 1]
    if len(long) > 1:
        raise NoOnnxForm(
            "its step differs along several axes; QuantizeLinear has one for each index along "
            "one axis, and DequantizeLinear of weights one for each group"
        )
    return long[0] if long else None


class Codes(NamedTuple):
    """Weights as integers: w = scale * (numbers - zero).

    name         of what they are
    scale, zero  of the rank of numbers, with which they broadcast; with block they have an element
                 for each block along the axis
    """

    name: str
    numbers: Array
    scale: Array
    zero: Array
    kind: NumberType
    axis: int = -1
    block: int = 0

    def attributes(self) -> tuple[Array, Array, dict[str, Any]]:
        """Scale, zero and attributes of DequantizeLinear; NoOnnxForm."""
        if self.block:
            return self.scale, self.zero, {"axis": self.axis, "block_size": self.block}
        axes = {one_axis(a, self.numbers.ndim) for a in (self.scale, self.zero)} - {None}
        if len(axes) > 1:
            raise NoOnnxForm("its step and its zero differ along different axes")
        for axis in axes:
            assert axis is not None
            count = self.numbers.shape[axis]
            rows = [np.broadcast_to(a.reshape(-1), (count,)) for a in (self.scale, self.zero)]
            return rows[0], rows[1], {"axis": axis}
        return self.scale.reshape(()), self.zero.reshape(()), {}

    def transposed(self, perm: tuple[int, ...]) -> Codes:
        """Under another order of axes."""
        numbers, scale, zero = [
            np.transpose(a, perm) for a in (self.numbers, self.scale, self.zero)
        ]
        axis = perm.index(self.axis) if self.block else -1
        return self._replace(numbers=numbers, scale=scale, zero=zero, axis=axis)

    def reshaped(self, shape: tuple[int, ...]) -> Codes | None:
        """Under another shape; None where the grid has none there."""
        numbers, old = self.numbers.reshape(shape), self.numbers.shape
        if self.block:
            return self if shape == old else None
        if self.scale.size == self.zero.size == 1:
            one = (1,) * len(shape)
            rows = [a.reshape(one) for a in (self.scale, self.zero)]
            return Codes(self.name, numbers, rows[0], rows[1], self.kind)
        along = [i for i in range(len(old)) if self.scale.shape[i] > 1 or self.zero.shape[i] > 1]
        if len(along) == 1 and (at := _same_axis(old, along[0], shape)) is not None:
            rows = [_at_axis(a, at, len(shape)) for a in (self.scale, self.zero)]
            return Codes(self.name, numbers, rows[0], rows[1], self.kind)
        return self._in_blocks(shape)

    def _in_blocks(self, shape: tuple[int, ...]) -> Codes | None:
        """With two axes made one, along the second of which there is one scale."""
        old = self.numbers.shape
        for i in range(len(old) - 1):
            merged = (*old[:i], old[i] * old[i + 1], *old[i + 2 :])
            if merged == shape and self.scale.shape[i + 1] == self.zero.shape[i + 1] == 1:
                wanted = (*old[: i + 1], 1, *old[i + 2 :])
                rows = [np.broadcast_to(a, wanted).squeeze(i + 1) for a in (self.scale, self.zero)]
                numbers = self.numbers.reshape(shape)
                return Codes(self.name, numbers, rows[0], rows[1], self.kind, i, old[i + 1])
        return None


def _same_axis(old: tuple[int, ...], axis: int, new: tuple[int, ...]) -> int | None:
    """The axis of a new shape that is this one of the old."""
    before = int(np.prod(old[:axis]))
    for i, n in enumerate(new):
        if n == old[axis] and int(np.prod(new[:i])) == before:
            return i
    return None


def _at_axis(a: Array, axis: int, rank: int) -> Array:
    """Its elements along one axis of several."""
    return a.reshape([-1 if i == axis else 1 for i in range(rank)])
