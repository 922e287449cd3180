"""Arrays as tensors of PyTorch, and tensors as arrays, in one memory.

torch has no read-only tensors. What is made of a read-only array here is for code that was seen not
to write into it (torch_trace).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.errors import DeviceError, DTypeError, GraphGradError
from ...base.kinds import DType, bfloat16, is_bfloat16, kind_of
from ...base.lazy import lazy_module
from ...ir.types import Array, TensorType, as_dtype, tensor_type

__all__ = [
    "array_of",
    "check_tensor",
    "dtype_of",
    "need_torch",
    "tensor_of",
    "torch",
    "torch_dtype",
    "type_of",
]

torch: Any = lazy_module("torch")
_dtypes: dict[Any, DType] = {}


def need_torch(what: str) -> None:
    """GraphGradError without PyTorch."""
    if torch is None:
        raise GraphGradError(f"{what} needs PyTorch: pip install 'graphgrad[torch]'")


def torch_dtype(dtype: DType) -> Any:
    """The dtype of torch; DTypeError where it has none."""
    kind = getattr(torch, dtype.name, None)
    if kind is None:
        raise DTypeError(f"torch has no dtype {dtype.name}: cast with .astype(...)")
    return kind


def dtype_of(t: Any) -> DType:
    """The dtype of a tensor of torch; DTypeError for what no tensor of a graph has."""
    dtype = _dtypes.get(t.dtype)
    if dtype is None:
        dtype = _dtypes[t.dtype] = as_dtype(str(t.dtype).removeprefix("torch."))
    return dtype


def type_of(t: Any) -> TensorType:
    """The type of a tensor of torch, of known lengths."""
    return tensor_type(tuple([int(n) for n in t.shape]), dtype_of(t))


class _Writable:
    """An array without its mark that it is not to be written into."""

    def __init__(self, array: Array) -> None:
        self.array = array  # which owns the memory
        said = dict(array.__array_interface__)
        said["data"] = (said["data"][0], False)
        self.__array_interface__ = said


def tensor_of(array: Array) -> Any:
    """A tensor in the memory of an array, read-only or not; copied where strides are negative."""
    if is_bfloat16(array.dtype):
        return tensor_of(array.view(np.int16)).view(torch.bfloat16)
    if any(step < 0 for step in array.strides):
        array = array.copy()
    if not array.flags.writeable and array.size:
        array = np.asarray(_Writable(array))
    elif not array.size:
        array = np.empty(array.shape, array.dtype)
    return torch.from_numpy(array)


def array_of(t: Any) -> Array:
    """An array in the memory of a tensor; a copy of one that stands for its conjugate."""
    t = t.detach().resolve_conj().resolve_neg()
    if t.dtype is torch.bfloat16:
        short: Array = t.view(torch.int16).numpy()
        return short.view(bfloat16())
    array: Array = t.numpy()
    return array


def check_tensor(t: Any, who: str) -> None:
    """Raise unless t is an ordinary tensor in the memory of the CPU: there is an array of it."""
    if type(t) is torch.Tensor and t.is_cpu and t.layout is torch.strided and t.dtype in _dtypes:
        return
    if not isinstance(t, torch.Tensor):
        raise DTypeError(f"{who} must be a tensor of torch, got {type(t).__name__} {t!r:.80}")
    if t.device.type != "cpu":
        raise DeviceError(
            f"{who} is on the device {t.device}; graphgrad computes on the CPU: move it there "
            "with .cpu(), through which gradients flow"
        )
    if t.layout is not torch.strided or t.is_quantized or t.is_nested:
        raise DTypeError(f"{who} is {t.layout}, not dense: use .to_dense()")
    if type(t) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        raise DTypeError(
            f"{who} is a {type(t).__name__}, which has no array of its own: graphgrad cannot be "
            "traced into a program of torch (torch.export, make_fx); call it outside of that"
        )
    if kind_of(dtype_of(t)) not in "biufc":
        raise DTypeError(f"{who} is of {t.dtype}, a dtype that graphs do not support")


def dense(tensors: Sequence[Any], who: str) -> None:
    """Check tensors by place."""
    for i, t in enumerate(tensors):
        check_tensor(t, f"{who} {i}")
