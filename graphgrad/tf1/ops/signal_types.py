"""Op types of Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphgrad as gg

from ..definition import define
from ..dtypes import as_dtype

__all__: list[str] = []


def _axes(count: int) -> tuple[int, ...]:
    return tuple(range(-count, 0))


def _complex(inverse: bool, count: int) -> Callable[..., Any]:
    function = gg.fft.ifftn if inverse else gg.fft.fftn
    return lambda trace, op, x: function(x, axes=_axes(count))


def _to_complex(inputs: Any, attrs: Any) -> Any:
    return [as_dtype("complex64" if inputs[0].dtype.size == 4 else "complex128")]


def _to_real(inputs: Any, attrs: Any) -> Any:
    return [inputs[0].dtype.real_dtype]


def _lengths(trace: Any, op: Any) -> tuple[int, ...]:
    return tuple([int(n) for n in trace.value(op.inputs[1])])


def _real(inverse: bool, count: int) -> Callable[..., Any]:
    function = gg.fft.irfftn if inverse else gg.fft.rfftn
    return lambda trace, op, x, n: function(x, s=_lengths(trace, op), axes=_axes(count))


for _count, _suffix in ((1, ""), (2, "2D"), (3, "3D")):
    define(f"FFT{_suffix}", "input", lower=_complex(False, _count), kinds="c")
    define(f"IFFT{_suffix}", "input", lower=_complex(True, _count), kinds="c")
    define(f"RFFT{_suffix}", "input fft_length:int32", lower=_real(False, _count),
           types=_to_complex, kinds="f")  # fmt: skip
    define(f"IRFFT{_suffix}", "input fft_length:int32", lower=_real(True, _count),
           types=_to_real, kinds="c")  # fmt: skip
