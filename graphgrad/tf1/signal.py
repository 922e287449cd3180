"""Fourier transforms: `tf.signal`, `tf.spectral`, `tf.fft`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .create import apply, constant, convert_to_tensor
from .graph import Tensor
from .ops import array as A
from .ops import signal_types as _signal_types  # noqa: F401

__all__ = [
    "fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d", "irfft", "irfft2d", "irfft3d", "rfft",
    "rfft2d", "rfft3d",
]  # fmt: skip


def _complex(type: str) -> Callable[..., Tensor]:
    def transform(input: Any, name: Any = None) -> Tensor:
        return apply(type, input, name=name)

    transform.__doc__ = f"An op of type {type}, along the last axes."
    return transform


def _real(type: str, axes: int) -> Callable[..., Tensor]:
    def transform(input: Any, fft_length: Any = None, name: Any = None) -> Tensor:
        x = convert_to_tensor(input)
        if fft_length is None:
            fft_length = _default(x, axes, type.startswith("I"))
        return apply(type, x, fft_length, name=name)

    transform.__doc__ = f"An op of type {type}, along the last axes."
    return transform


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


fft, fft2d, fft3d = map(_complex, ("FFT", "FFT2D", "FFT3D"))
ifft, ifft2d, ifft3d = map(_complex, ("IFFT", "IFFT2D", "IFFT3D"))
rfft, rfft2d, rfft3d = _real("RFFT", 1), _real("RFFT2D", 2), _real("RFFT3D", 3)
irfft, irfft2d, irfft3d = _real("IRFFT", 1), _real("IRFFT2D", 2), _real("IRFFT3D", 3)
