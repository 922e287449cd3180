"""What goes in and out of a run: promises kept, memory that belongs to the caller, notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.errors import ExecutionError
from ..ir.node import Node, Tensor
from ..ir.types import Array, TensorType


def own(
    results: Sequence[Any], given: Sequence[Any], wanted: Sequence[Tensor]
) -> tuple[Array, ...]:
    """Results as arrays of the promised types that share memory with nothing, copied if need be.

    What may be seen by others is read-only (constants, values of variables), or has the same
    owner as an input or as another result.
    """
    taken: set[int] = set()
    for a in given:
        taken.add(id(a))
        base = getattr(a, "base", None)
        if base is not None:
            taken.add(id(base))
    done = []
    for a, t in zip(results, wanted, strict=True):
        if type(a) is not np.ndarray:
            a = np.array(a)
        else:
            base = a.base
            if base is None:
                shared = id(a) in taken
            else:
                shared = type(base) is not np.ndarray or id(base) in taken or id(a) in taken
            if shared or not a.flags.writeable:
                a = a.copy()
        taken.add(id(a))
        if a.base is not None:
            taken.add(id(a.base))
        type_ = t.type
        if a.dtype is not type_.dtype or a.shape != type_.shape:
            check_promise(t.node, t.index, a)
        done.append(a)
    return tuple(done)


def fits(array: Any, promise: TensorType) -> bool:
    """Whether an array is of a type, as far as its lengths are known."""
    shape = array.shape
    return (
        array.dtype == promise.dtype
        and len(shape) == len(promise.shape)
        and all(type(d) is not int or d == n for d, n in zip(promise.shape, shape, strict=True))
    )


def check_promise(node: Node, index: int, array: Any) -> None:
    """ExecutionError where a kernel's result is not of the type its op inferred."""
    promise = node.outputs[index].type
    if not isinstance(array, np.ndarray | np.generic):
        raise ExecutionError(
            f"{node.name} ({node.op!r}, {node.where}) promised {promise!r}, "
            f"its kernel returned {array!r}"
        )
    if not fits(array, promise):
        raise ExecutionError(
            f"{node.name} ({node.op!r}, {node.where}) promised {promise!r}, "
            f"its kernel returned {shown(array)}"
        )


def shown(array: Any) -> str:
    """`float64[3, 4]`."""
    dims = ", ".join(map(str, getattr(array, "shape", ())))
    return f"{getattr(array, 'dtype', type(array).__name__)}[{dims}]"


def add_note(error: Exception, node: Node, arrays: Sequence[Any]) -> None:
    """A note on what a kernel raised: which node, which line, which arrays."""
    rows = "".join(
        f"\n  {i}: {t.name}: {shown(a)}, built at {t.where}"
        for i, (t, a) in enumerate(zip(node.inputs, arrays, strict=True))
    )
    error.add_note(
        f"while running {node.name} = {node.op!r}, built at {node.where}"
        + (f", on{rows}" if rows else "")
    )
