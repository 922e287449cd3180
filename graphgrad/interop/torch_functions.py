"""`to_torch`: a compiled function for programs of PyTorch."""

from __future__ import annotations

from typing import Any

from ..base.lazy import lazy_module
from ..compiled import CompiledFunction
from ..functions import Function
from ..ops.base import whole
from ..ops.foreign.torch_arrays import need_torch

__all__ = ["to_torch"]

torch_modules: Any = lazy_module("graphgrad.interop.torch_modules")


def to_torch(f: CompiledFunction, gradients: int = 2) -> Any:
    """A compiled function, of any backend, as a module of PyTorch with its own gradients.

    Each order of gradient is built by `gg.gradients` with the rules of all overrides, and compiled
    when torch first asks for it, of what is asked alone. The variables that f reads are copied:
    the trainable ones become parameters of the module, the others buffers. Tensors are on the CPU,
    and cross without copies. Random numbers that f draws without a seed follow torch's generator.

    Beyond backward, `torch.autograd.functional` and `torch.func.grad`, `vmap`, `jvp` (where rules
    are linear in their dys, or have a jvp) and their compositions work. `torch.compile` runs it
    outside of what it compiles; `torch.export` and `torch.jit.trace` are errors.

    Parameters:
        f: what gg.compile returned.
        gradients: how many times it may be differentiated. Once more is an error.

    Returns: a torch.nn.Module. It takes tensors in the order of f's inputs, or by name, and returns
    tensors in the structure of f's outputs.

    Raises: GraphGradError without PyTorch; StateError for a function that writes variables;
    TypeError for input that is not a compiled function; ValueError for less than 0 gradients. A
    call raises ShapeError and DTypeError for tensors that do not fit, DeviceError for those that
    are not on the CPU, and a gradient GradientError beyond `gradients`.

    >>> import torch
    >>> x = gg.placeholder((2,), name="x")
    >>> with gg.override_gradient(gg.rules.ste()):
    ...     y = gg.round(x)
    >>> f = gg.interop.to_torch(gg.compile(x, gg.sum(y * y)))
    >>> x = torch.tensor([1.2, 2.7], dtype=torch.float64, requires_grad=True)
    >>> f(x).backward()
    >>> x.grad
    tensor([2., 6.], dtype=torch.float64)
    """
    need_torch("to_torch")
    if isinstance(f, Function):
        raise TypeError(
            f"to_torch() takes a function with one graph: pass f.build(*examples) of {f!r}"
        )
    if not isinstance(f, CompiledFunction):
        raise TypeError(f"to_torch() takes what gg.compile returns, got {f!r:.80}")
    if whole("gradients", gradients) < 0:
        raise ValueError(
            "gradients= is the number of times that the function may be differentiated, got "
            f"{gradients}"
        )
    return torch_modules.GraphModule(f, gradients)
