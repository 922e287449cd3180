"""What goes in and out of a run: promises kept, memory that belongs to the caller, notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.errors import ExecutionError, ShapeError
from ..base.solving import LengthSolver
from ..base.words import visible_lines
from ..ir.node import Node, Tensor
from ..ir.types import Array, TensorType
from ..lower.loop_ir import Fused

GREATEST = np.iinfo("int64").max


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


def taken(t: Tensor, copied: bool) -> Callable[[Any], Array]:
    """What makes the caller's own array of a kernel's result for t: copied if it is another's too.

    ExecutionError where the result is not of t's type.
    """
    dtype, shape, node, index = t.type.dtype, t.type.shape, t.node, t.index

    def take(made: Any) -> Array:
        if copied or _is_foreign(made):
            made = np.array(made)
        if made.dtype is not dtype or made.shape != shape:
            check_promise(node, index, made)
        array: Array = made
        return array

    return take


def sealed(made: Any) -> Array:
    """The array, which is read-only from now on."""
    made.setflags(False)  # write; by keyword it takes twice as long
    array: Array = made
    return array


def sealing(run: Callable[..., tuple[Array, ...]], kept: int) -> Callable[..., tuple[Array, ...]]:
    """run, whose results are read-only but for those kept first, which are the caller's."""

    def sealed_run(*arrays: Any) -> tuple[Array, ...]:
        results = run(*arrays)
        for made in results[kept:]:
            sealed(made)
        return results

    return sealed_run


def _is_foreign(made: Any) -> bool:
    """Whether this is not an array, or one whose memory is not NumPy's, or not to be written."""
    if type(made) is not np.ndarray or not made.flags.writeable:
        return True
    return made.base is not None and type(made.base) is not np.ndarray


def owning(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """kernel, whose results are copied where they may share memory with what it reads, or with each
    other."""

    def run(*arrays: Any) -> Any:
        made = kernel(*arrays)
        if not isinstance(made, tuple | list):
            return _own(made, arrays)
        parts: list[Any] = []
        for part in made:
            parts.append(_own(part, (*arrays, *parts)))
        return tuple(parts)

    return run


def _own(made: Any, arrays: tuple[Any, ...]) -> Any:
    return made.copy() if any(share(made, a) for a in arrays) else made


def share(a: Any, b: Any) -> bool:
    """Whether two results of kernels are arrays that may have elements in one memory."""
    return isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.may_share_memory(a, b)


def as_arrays(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """kernel, whose results are 0-d arrays where NumPy gives numbers."""

    def run(*arrays: Any) -> Any:
        made = kernel(*arrays)
        if isinstance(made, tuple | list):
            return tuple([_as_array(part) for part in made])
        return _as_array(made)

    return run


def _as_array(made: Any) -> Any:
    return np.asarray(made) if isinstance(made, np.generic) else made


def promised(kernel: Callable[..., Any], node: Node) -> Callable[..., Any]:
    """kernel, whose results are checked against the types that were promised for them."""

    def run(*arrays: Any) -> Any:
        made = kernel(*arrays)
        for i, one in enumerate(parts_of(made, node)):
            check_promise(node, i, one)
        return made

    return run


def parts_of(made: Any, node: Node) -> Sequence[Any]:
    """What a kernel returned, one for each output; ExecutionError where it is not as many."""
    n = len(node.outputs)
    if n == 1:
        return (made,)
    if not isinstance(made, tuple | list) or len(made) != n:
        got = f"{len(made)}" if isinstance(made, tuple | list) else shown(made)
        raise ExecutionError(
            f"{node.name} ({node.op!r}, {node.where}) has {n} outputs, its kernel returned {got}"
        )
    return made


def reading(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """kernel, which cannot write into what it reads: a ValueError of NumPy's says so."""

    def run(*arrays: Any) -> Any:
        return kernel(*map(_read_only, arrays))

    return run


def _read_only(array: Any) -> Any:
    seen = np.asarray(array).view()
    seen.flags.writeable = False
    return seen


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
    if not hasattr(array, "dtype"):
        raise ExecutionError(
            f"{node.name} ({node.op!r}, {node.where}) promised {promise!r}, "
            f"its kernel returned {array!r}"
        )
    if not fits(array, promise):
        raise ExecutionError(
            f"{node.name} ({node.op!r}, {node.where}) promised {promise!r}, "
            f"its kernel returned {shown(array)}"
        )


def check_lengths(t: Tensor, shape: Sequence[int], known: LengthSolver) -> None:
    """ExecutionError where a named length has two values. known: those of the axes so far."""
    if not t.type.static:
        try:
            known.learn((d, n, f"in {t.name}") for d, n in zip(t.type.shape, shape, strict=True))
        except ShapeError as error:
            raise ExecutionError(str(error)) from None


def shown(array: Any) -> str:
    """`float64[3, 4]`."""
    dims = ", ".join(map(str, getattr(array, "shape", ())))
    return f"{getattr(array, 'dtype', type(array).__name__)}[{dims}]"


def add_note(error: Exception, node: Node, arrays: Sequence[Any]) -> None:
    """A note on what a kernel raised: which node, which line, which arrays."""
    node, arrays = _raising(error, node, arrays)
    rows = "".join(
        f"\n  {i}: {t.name}: {shown(a)}, built at {t.where}"
        for i, (t, a) in enumerate(zip(node.inputs, arrays, strict=False))
    )
    error.__dict__["failed"] = node  # for pictures that ring it
    note = f"while running {node.name} = {node.op!r}, built at {node.where}"
    error.add_note(visible_lines(note + (f", on{rows}" if rows else "")))
    if isinstance(error, IndexError) and f"index {GREATEST} " in str(error):
        error.add_note(f"An index of uint64 that is greater than {GREATEST} counts as that number.")


def _raising(error: Exception, node: Node, arrays: Sequence[Any]) -> tuple[Node, Sequence[Any]]:
    """Of nodes that run as one, the first that raises the like if run alone, and what it reads."""
    if not isinstance(node.op, Fused):
        return node, arrays
    program = node.op.program
    values = dict(zip(program.inputs, arrays, strict=False))
    for inner in program.nodes:
        read = [values[t] for t in inner.inputs]
        try:
            with np.errstate(all="ignore"):
                values[inner.outputs[0]] = inner.op.kernel(np, *read)
        except Exception as other:
            return (inner, read) if type(other) is type(error) else (node, arrays)
    return node, arrays
