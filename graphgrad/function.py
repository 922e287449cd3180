"""`function`: from a Python function of tensors and example arrays to a function of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import numpy as np

from .compile import CompiledFunction, compile
from .ir.errors import DTypeError
from .ir.graph import Graph
from .ir.node import Tensor
from .ir.tree import flatten, paths, unflatten
from .ir.types import as_dtype
from .ops.base import as_tensor
from .ops.sources import placeholder

__all__ = ["Function", "function"]


def function(fn: Callable[..., Any] | None = None, *examples: Any, **options: Any) -> Any:
    """A function of arrays, compiled from a function of tensors.

    function(fn, *examples)  builds the graph now, on placeholders of the examples' shapes and
                             dtypes (arrays, numbers, or any nesting of list, tuple and dict)
    @function                builds on the first call for each new set of shapes and dtypes, and
                             keeps what it built

    options are those of gg.compile: backend=, optimize=, ... What fn returns, any nesting of
    tensors, comes back as arrays. fn runs once for each graph: what it does besides building nodes
    (printing, reading a clock) happens only then. With `gg.value_and_grad`:

        step = gg.function(gg.value_and_grad(loss), weights, batch)
    """
    if fn is None:
        return lambda given: function(given, **options)
    if not callable(fn):
        raise TypeError(f"function() takes a function and example arrays, got {fn!r}")
    made = Function(fn, options)
    if examples:
        made.build(*examples)
    return made


class Function:
    """What `function` returns: call it with arrays in the structure of the examples.

    compiled  the compiled functions by what they were built for
    """

    def __init__(self, fn: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, fn)
        self.fn = fn
        self.options = options
        self.compiled: dict[Any, CompiledFunction] = {}

    def __call__(self, *args: Any) -> Any:
        """Run on arrays; builds first where shapes, dtypes or structure are new."""
        key, leaves = _signature(args)
        found = self.compiled.get(key)
        if found is None:
            found = self.compiled[key] = self._built(args, leaves)
        return found(*leaves)

    def build(self, *examples: Any) -> CompiledFunction:
        """The compiled function for arrays like these; it takes the leaves, flat."""
        key, leaves = _signature(examples)
        if key not in self.compiled:
            self.compiled[key] = self._built(examples, leaves)
        return self.compiled[key]

    def _built(self, args: tuple[Any, ...], leaves: list[Any]) -> CompiledFunction:
        with Graph(getattr(self.fn, "__name__", "function")):
            inputs = [placeholder(a.shape, a.dtype) for a in leaves]
            outputs = self.fn(*unflatten(args, inputs))
            found = [t if t is None else as_tensor(t) for t in flatten(outputs)]
            single = not isinstance(outputs, list | tuple | dict)
            wanted = found[0] if single and found else unflatten(outputs, found)
            return compile(inputs, wanted, **self.options)

    def __repr__(self) -> str:
        return f"<function {getattr(self.fn, '__name__', self.fn)}, {len(self.compiled)} graphs>"


def _signature(args: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """What a graph is built for, and the leaves as arrays."""
    leaves = flatten(args)
    arrays = []
    for leaf, path in zip(leaves, paths(args, "argument"), strict=True):
        if isinstance(leaf, Tensor):
            raise DTypeError(f"{path} is {leaf!r}; a compiled function takes arrays")
        arrays.append(np.asarray(leaf))
        as_dtype(arrays[-1].dtype)
    shape = repr(unflatten(args, range(len(leaves))))
    return (shape, *((a.shape, a.dtype) for a in arrays)), arrays
