"""The loop IR: what fusion says of loops, and all that backends need to write them.

Fusion asks of every node how it would run as a loop (`Loop`), puts nodes together that can share
one (`Fusion`), and makes a `Fused` node of each. A backend reads that, or a node alone, as a
`LoopGroup`: ops that read values by number, over an iteration space.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..ir.node import Node, Tensor
from ..ir.op import Op, Types
from ..ir.program import Program
from ..ir.strided import Lengths, Strided, row_major
from ..ir.types import Array, DType, TensorType, lengths
from ..ops.base import Constant, Full
from ..ops.control import interpret


class Loop(NamedTuple):
    """How a node would run as a loop.

    shape    what it runs over; nodes share loops of equal shapes
    frame    the shape that its inputs are broadcast to: `shape`, perhaps with lengths of 1
    row      the axes of `shape` that it reduces to one number a row, in order; else ()
    ends     whether it is a reduction that may be complete in the end alone, whatever the rows
             of its loop are; one that is not has rows of its own
    gathers  whether it reads its inputs at any places, so that they must be there before the loop
    """

    shape: Lengths
    frame: Lengths
    row: tuple[int, ...] = ()
    ends: bool = False
    gathers: bool = False


LoopOf = Callable[[Node], Loop | None]
"""How a node would run as a loop; None where it cannot."""


class Space(NamedTuple):
    """What a loop runs over.

    shape  the lengths of its axes
    row    the axes of a row: what they are reduced to is carried on to other elements of the row,
           so that this is gone through again; () where no reduction is read in the loop
    """

    shape: Lengths
    row: tuple[int, ...] = ()

    @property
    def outer(self) -> Lengths:
        """The lengths of the axes over which rows run."""
        return tuple([d for a, d in enumerate(self.shape) if a not in self.row])

    @property
    def steps(self) -> Lengths:
        """How far apart what rows have lies, along each axis."""
        steps = iter(row_major(self.outer))
        return tuple([0 if a in self.row else next(steps) for a in range(len(self.shape))])


class Fusion(NamedTuple):
    """Nodes that run as one loop, in the order of their program, and what it runs over."""

    nodes: Sequence[Node]
    space: Space


class Fused(Op, interned=False):
    """A fusion as one node. Its kernel in any array namespace runs the nodes in order."""

    program: Program
    space: Space
    differentiable = False

    def infer(self, *types: TensorType) -> Types:
        """The types of what the group computes."""
        return tuple([t.type for t in self.program.outputs])

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        """The nodes one by one."""
        outputs = interpret(self.program, xp, arrays)
        return outputs if len(outputs) > 1 else outputs[0]

    def __repr__(self) -> str:
        return f"Fused({', '.join(n.type for n in self.program.nodes)})"


def nodes_within(node: Node) -> Sequence[Node]:
    """The nodes that a node stands for: those that were fused, or itself."""
    if not isinstance(node.op, Fused):
        return (node,)
    nodes: list[Node] = []
    stack = [*reversed(node.op.program.nodes)]
    while stack:
        inner = stack.pop()
        if isinstance(inner.op, Fused):
            stack.extend(reversed(inner.op.program.nodes))
        else:
            nodes.append(inner)
    return nodes


# --- groups: without names and places --------------------------------------------------------


class Number(NamedTuple):
    """One number that a node gives to all elements."""

    dtype: DType
    bytes: bytes

    @classmethod
    def of(cls, value: Any, dtype: DType) -> Number:
        """A number as this dtype; any array of one."""
        return cls(dtype, np.asarray(value, dtype).tobytes())

    def array(self) -> Array:
        """As a 0-d array, not to be written to."""
        return np.frombuffer(self.bytes, self.dtype).reshape(())

    @property
    def value(self) -> Any:
        """As a number of Python."""
        return self.array().item()


class Member(NamedTuple):
    """A node of a group. reads: values by number, the inputs of the group first, then its nodes."""

    op: Op | Number
    reads: tuple[int, ...]
    type: TensorType


class LoopGroup(NamedTuple):
    """What a loop computes, without names and places: equal groups are equal values.

    outputs: values by number.
    """

    space: Space
    inputs: tuple[TensorType, ...]
    members: tuple[Member, ...]
    outputs: tuple[int, ...]


def group_of_fused(op: Fused) -> LoopGroup:
    """The group that was fused."""
    program = op.program
    return _group(op.space, program.inputs, program.nodes, program.outputs)


def group_of_one(node: Node, shape: Lengths) -> LoopGroup:
    """A node as a group of its own, over this shape."""
    return _group(Space(shape), node.inputs, (node,), node.outputs)


def _group(
    space: Space, inputs: Sequence[Tensor], nodes: Sequence[Node], outputs: Sequence[Tensor]
) -> LoopGroup:
    number: dict[Tensor, int] = {}
    for i, t in enumerate(inputs):  # one that a node reads twice stands there twice
        number.setdefault(t, i)
    members = []
    for at, node in enumerate(nodes, len(inputs)):
        (y,) = node.outputs
        reads = tuple([number[t] for t in node.inputs])
        op: Any = node.op
        if is_number(op):
            op = Number.of(op.value, y.dtype)
        members.append(Member(op, reads, y.type))
        number[y] = at
    types = tuple([t.type for t in inputs])
    return LoopGroup(space, types, tuple(members), tuple([number[t] for t in outputs]))


def is_number(op: Op) -> bool:
    """Whether an op is a constant with one number for all elements."""
    return type(op) is Full or (type(op) is Constant and op.value.size == 1)


def viewed(op: Op, made: TensorType, view: Strided) -> Strided | None:
    """An op's view, of type `made`, of a view; None where it makes none, or would copy."""
    return op.strided(view, lengths(made)) if made.static else None


def axes_through(op: Op, before: Lengths, after: Lengths) -> tuple[int | None, ...] | None:
    """For each axis of a view of x, that of x; None for those of length 1 and repeated ones.

    None unless it has all of x in order: then a loop can look through it while it computes x.
    """
    numbered = Strided(before, tuple(range(1, len(before) + 1)), 0)
    view = op.strided(numbered, after)
    if view is None or view.offset:
        return None
    kept = [(d, s) for d, s in zip(after, view.strides, strict=True) if d != 1 and s]
    if kept != [(d, i) for i, d in enumerate(before, 1) if d != 1]:
        return None
    return tuple(
        [s - 1 if d != 1 and s else None for d, s in zip(after, view.strides, strict=True)]
    )
