"""Fourier transforms. Complex numbers are pairs in the last axis, real ones have 1 there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....base.errors import ShapeError
from ....ir.node import Tensor
from ....ir.types import as_dtype
from ....ops.arrays.taking import take
from ....ops.base import cast, constant
from ....ops.elementwise.complex_parts import imag, real
from ....ops.shape.indexing import getitem
from ....ops.shape.joining import stack
from ....ops.shape.reshaping import expand_dims, normal_axis, reshape
from ....ops.signal import fft
from ..call import OperatorCall
from .common import few
from .table import form


@form("DFT")
def _dft(call: OperatorCall) -> Tensor:
    x, inverse = call.tensor(0), bool(call.attribute("inverse", 0))
    onesided = bool(call.attribute("onesided", 0))
    if call.opset < 20:
        axis = call.attribute("axis", 1)
    else:
        axis = call.whole(2, "axis") if call.given(2) else -2
    axis = normal_axis(axis, x.ndim)
    there = x.shape[axis]
    if not isinstance(there, int):
        raise ShapeError(f"{x!r} is transformed along axis {axis}, whose length is not known")
    if inverse and onesided:
        length = call.whole(1, "length") if call.given(1) else 2 * (there - 1)
        return expand_dims(cast(fft.irfft(_complex(x), length, axis), x.dtype), -1)
    length = call.whole(1, "length") if call.given(1) else there
    if onesided:
        return _pairs(fft.rfft(getitem(x, (..., 0)), length, axis), x)
    return _pairs((fft.ifft if inverse else fft.fft)(_complex(x), length, axis), x)


@form("STFT")
def _stft(call: OperatorCall) -> Tensor:
    x, step = call.tensor(0), call.whole(1, "frame step")
    window = call.optional(2)
    count = x.shape[1]
    length: Any = call.whole(3, "frame length") if call.given(3) else None
    length = window.shape[0] if length is None and window is not None else length
    if not isinstance(count, int) or not isinstance(length, int):
        raise ShapeError(f"{x!r} needs known lengths, also of its frames")
    few((count - length) // step + 1, length)
    starts = np.arange((count - length) // step + 1) * step
    frames = take(x, constant(starts[:, None] + np.arange(length), "int64"), 1)
    if window is not None:
        frames = frames * reshape(cast(window, x.dtype), (-1, 1))
    if call.attribute("onesided", 1):
        return _pairs(fft.rfft(getitem(frames, (..., 0)), length, 2), x)
    return _pairs(fft.fft(_complex(frames), length, 2), x)


def _complex(x: Tensor) -> Tensor:
    """Pairs, or real numbers with an axis of length 1, as complex numbers."""
    dtype = as_dtype("complex128" if x.dtype.itemsize == 8 else "complex64")
    real = cast(getitem(x, (..., 0)), dtype)
    return real if x.shape[-1] == 1 else real + cast(getitem(x, (..., 1)), dtype) * 1j


def _pairs(z: Tensor, x: Tensor) -> Tensor:
    return stack([cast(real(z), x.dtype), cast(imag(z), x.dtype)], -1)
