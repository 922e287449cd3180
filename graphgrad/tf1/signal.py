"""Fourier transforms: `tf.signal`, `tf.spectral`, `tf.fft`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphgrad as gg

from .create import apply, constant, convert_to_tensor
from .definition import define
from .graph import Tensor
from .ops import array as A
from .ops.elementwise import named
from .ops.math_types import complex_type, real_type

__all__ = [
    "fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d", "irfft", "irfft2d", "irfft3d", "rfft",
    "rfft2d", "rfft3d",
]  # fmt: skip


def _complex(type: str, function: Callable[..., Any], count: int) -> Callable[..., Tensor]:
    """Define a transform of complex numbers over so many axes; the function that makes such ops."""
    axes = tuple(range(-count, 0))
    define(type, "input", native=lambda x: function(x, axes=axes), kinds="c")

    def transform(input: Any, name: Any = None) -> Tensor:
        return apply(type, input, name=name)

    return named(transform, type, "along the last axes")


def _real(type: str, function: Callable[..., Any], count: int) -> Callable[..., Tensor]:
    """Define a transform from or to real numbers; the function that makes such ops."""
    inverse, axes = type.startswith("I"), tuple(range(-count, 0))

    def lower(trace: Any, op: Any, x: Any, lengths: Any) -> Any:
        return function(x, s=tuple([int(n) for n in trace.value(op.inputs[1])]), axes=axes)

    define(
        type,
        "input fft_length:int32",
        lower=lower,
        types=real_type if inverse else complex_type,
        kinds="c" if inverse else "f",
    )

    def transform(input: Any, fft_length: Any = None, name: Any = None) -> Tensor:
        x = convert_to_tensor(input)
        if fft_length is None:
            fft_length = _default(x, count, inverse)
        return apply(type, x, fft_length, name=name)

    return named(transform, type, "along the last axes")


def _default(x: Tensor, axes: int, inverse: bool) -> Any:
    """The lengths of the signal."""
    known = x.shape[-axes:].as_list()
    if None in known:
        lengths = A.unstack(A.shape(x)[-axes:], axes)
        if inverse:
            lengths[-1] = (lengths[-1] - 1) * 2
        return A.stack(lengths)
    if inverse:
        known[-1] = max(0, 2 * (known[-1] - 1))
    return constant(known, "int32")


_AXES = {"": 1, "2D": 2, "3D": 3}.items()
fft, fft2d, fft3d = (_complex(f"FFT{s}", gg.fft.fftn, n) for s, n in _AXES)
ifft, ifft2d, ifft3d = (_complex(f"IFFT{s}", gg.fft.ifftn, n) for s, n in _AXES)
rfft, rfft2d, rfft3d = (_real(f"RFFT{s}", gg.fft.rfftn, n) for s, n in _AXES)
irfft, irfft2d, irfft3d = (_real(f"IRFFT{s}", gg.fft.irfftn, n) for s, n in _AXES)
