"""What is known of tensors without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np

from ..base.kinds import is_floating, kind_of
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.types import Dim, Shape, TensorType
from ..ops.base import Constant, Full
from ..ops.shape.joining import Concat
from ..ops.shape.reshaping import BroadcastLike, BroadcastTo, ExpandDims, Reshape
from .rule import NodeOf

REAL = "iuf"
WHOLE = "biu"
BROADCASTS = BroadcastTo, BroadcastLike
KNOWN: tuple[type[Op], ...] = (Constant, *BROADCASTS)
"""Op classes behind which there may be a uniform value, once the nodes before are settled."""

_DEPTH = 8  # how far constants are looked for behind broadcasts


# --- numbers -----------------------------------------------------------------------------------


def uniform_value(t: Tensor) -> Any:
    """The number that every element of t is; None where that is not known."""
    for _ in range(_DEPTH):
        op = t.node.op
        if type(op) is Constant:
            value = op.value.reshape(-1)
            one = value[:1]
            same = value.size == 1 or (
                value.size > 1 and value.tobytes() == one.tobytes() * value.size
            )
            return one[0] if same else None
        if type(op) is Full:
            return np.full((), op.value, dtype=op.dtype)[()]
        if type(op) not in (BroadcastTo, BroadcastLike, ExpandDims, Reshape):
            return None
        (t, *_) = t.node.inputs
    return None


def is_number(value: Any, number: float) -> bool:
    """Equal, and for floats of equal sign: 0.0 is not -0.0."""
    if value is None or value != number:
        return False
    return not is_floating(value.dtype) or bool(np.signbit(value) == np.signbit(number))


def with_number(node: Node) -> Iterator[tuple[Tensor, Any]]:
    """For each operand of two that is one number everywhere: the other operand, and the number.

    Only where the number surely does not change the shape, which is the other's.
    """
    x, y = node.inputs
    if adds_no_length(y.shape, x.shape) and (value := uniform_value(y)) is not None:
        yield x, value
    if adds_no_length(x.shape, y.shape) and (value := uniform_value(x)) is not None:
        yield y, value


def without(node: Node, number: float) -> Tensor | None:
    """The other operand of two real ones, where one is this number everywhere."""
    for x, value in with_number(node):
        if kind_of(x.dtype) in REAL and is_number(value, number):
            return x
    return None


def second_number(node: Node) -> Any:
    """The number that the second operand of two is; None if unknown or if it changes the shape."""
    x, y = node.inputs
    return uniform_value(y) if adds_no_length(y.shape, x.shape) else None


def first_number(node: Node) -> Any:
    """The number that the first operand of two is; None if unknown or if it changes the shape."""
    x, y = node.inputs
    return uniform_value(x) if adds_no_length(x.shape, y.shape) else None


def at_least_zero(t: Tensor) -> bool:
    """Whether no element of t is negative or -0.0; NaN may be."""
    for _ in range(_DEPTH):
        op = t.node.op
        if op.traits.value_range[0] >= 0 and is_floating(t.dtype):
            return True
        if type(op) is Constant:
            return kind_of(t.dtype) in REAL and not np.signbit(op.value.astype(np.float64)).any()
        if type(op) not in (BroadcastTo, BroadcastLike, ExpandDims, Reshape):
            return False
        (t, *_) = t.node.inputs
    return False


# --- shapes ------------------------------------------------------------------------------------


def adds_no_length(small: Shape, big: Shape) -> bool:
    """Whether broadcasting `small` against `big` surely leaves big's lengths."""
    if len(small) > len(big):
        return False
    tail = big[len(big) - len(small) :]
    return all(_same(a, b) for a, b in zip(small, tail, strict=True))


def _same(a: Dim, b: Dim) -> bool:
    return (a == 1 and isinstance(a, int)) or (a is not None and a == b)


def settled_shape(t: Tensor) -> bool:
    """Whether equal types mean equal shapes: every length is known or has a name."""
    return None not in t.type.shape


def ints(shape: Shape) -> tuple[int, ...]:
    """A static shape as ints."""
    return tuple([d for d in shape if isinstance(d, int)])


@lru_cache(maxsize=1 << 12)
def elements(shape: Shape) -> int:
    """Number of elements of a static shape."""
    n = 1
    for d in ints(shape):
        n *= d
    return n


_ENDS: dict[Node, list[int] | None] = {}


def ends_of_parts(node: NodeOf[Concat]) -> list[int] | None:
    """Where the parts of what is joined end along its axis; None where a length is unknown.

    Counted once a walk, however many read of it: see `forget`.
    """
    if node not in _ENDS:
        known = all(t.type.static for t in node.inputs)
        lengths = [ints(t.shape)[node.op.axis] for t in node.inputs] if known else ()
        _ENDS[node] = [*accumulate(lengths)] if known else None
    return _ENDS[node]


def forget() -> None:
    """A walk is over: nothing is kept of its nodes."""
    _ENDS.clear()


def nbytes(type: TensorType) -> int:
    """Bytes of a value of a static type."""
    return elements(type.shape) * type.dtype.itemsize


def aligned(shape: Shape, ndim: int) -> tuple[int, ...]:
    """The static shape with axes of length 1 in front, of this rank."""
    return (*(1,) * (ndim - len(shape)), *ints(shape))
