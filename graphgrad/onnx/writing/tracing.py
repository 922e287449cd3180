"""A kernel run on tensors in place of arrays: what it computes, as a program of other ops."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ir.build import apply
from ...ir.errors import GraphGradError
from ...ir.graph import Graph
from ...ir.node import Tensor
from ...ir.onnx import NoOnnxForm
from ...ir.op import Op, Types
from ...ir.program import Program
from ...ir.types import TensorType, as_dtype
from ...ops.base import as_tensor, cast
from ...ops.numpy_protocol import UFUNCS
from ...ops.sources import Placeholder

__all__ = ["kernel_program", "program_of"]


class Namespace:
    """What a kernel calls as `xp`: the graph functions of NumPy's names.

    What is known without a tensor (shapes, places, tables) NumPy computes.
    """

    def __getattr__(self, name: str) -> Any:
        theirs = getattr(np, name, None)
        if isinstance(theirs, type) and issubclass(theirs, np.generic):
            return _Scalar(theirs)
        if isinstance(theirs, type) or (theirs is not None and not callable(theirs)):
            return theirs
        if name in _OWN:
            return _OWN[name]
        graph = sys.modules["graphgrad"]
        ours = getattr(graph, UFUNCS.get(theirs, name) if theirs is not None else name, None)
        return _Either(theirs, ours) if ours is not None else getattr(np, name)


class _Either:
    """A function of NumPy where there is no tensor among its arguments, else of the graph."""

    def __init__(self, theirs: Any, ours: Any) -> None:
        self._theirs = theirs
        self._ours = ours

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = self._theirs if self._theirs and not _of_tensors(args) else self._ours
        return found(*args, **kwargs)

    def __getattr__(self, method: str) -> Any:
        return getattr(self._theirs, method)


class _Scalar:
    """A dtype as it is called: of a tensor, a cast."""

    def __init__(self, scalar: Any) -> None:
        self._scalar = scalar
        self.dtype = np.dtype(scalar)

    def __call__(self, x: Any = 0, *args: Any) -> Any:
        return cast(x, as_dtype(self._scalar)) if isinstance(x, Tensor) else self._scalar(x, *args)


def _of_tensors(args: Any) -> bool:
    return any(
        isinstance(a, Tensor) or (isinstance(a, list | tuple) and _of_tensors(a)) for a in args
    )


def _asarray(x: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    """A tensor stays one."""
    dtype = dtype.dtype if isinstance(dtype, _Scalar) else dtype
    if not isinstance(x, Tensor):
        return np.asarray(x, dtype)
    return x if dtype is None else cast(x, as_dtype(dtype))


def _copy(x: Any) -> Any:
    """Tensors never change."""
    return x if isinstance(x, Tensor) else np.copy(x)


_OWN: dict[str, Callable[..., Any]] = {
    "asarray": _asarray,
    "array": _asarray,
    "ascontiguousarray": _asarray,
    "copy": _copy,
}


def program_of(function: Callable[..., Any], types: Sequence[TensorType]) -> Program:
    """The program that function(xp, *tensors) builds for inputs of these types."""
    with Graph():
        xs = [apply(Placeholder(t.shape, t.dtype)) for t in types]
        with np.errstate(all="ignore"):
            made = function(Namespace(), *xs)
        made = made if isinstance(made, tuple | list) else (made,)
        return Program(xs, [as_tensor(y) for y in made])


def kernel_program(op: Op, types: Types) -> Program:
    """The program that the kernel of an op is for inputs of these types; NoOnnxForm."""
    promised = op.infer(*types)
    try:
        program = program_of(op.kernel, types)
    except (GraphGradError, AttributeError, TypeError, ValueError, IndexError) as error:
        raise NoOnnxForm(f"{op.type} has no form in ONNX") from error
    if any(node.op is op for node in program.nodes):
        raise NoOnnxForm(f"{op.type} has no form in ONNX")
    made = [t.type for t in program.outputs]
    if [(t.dtype, len(t.shape)) for t in made] != [(t.dtype, len(t.shape)) for t in promised]:
        raise NoOnnxForm(f"{op.type} has no form in ONNX: its kernel makes {made} of tensors")
    return program
