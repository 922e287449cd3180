"""Element-wise nodes and sums behind a reshape that joins axes, in front of it: in the same loop.

    f(reshape(w), z)  ->  reshape(f(w, reshape(z)))

The gradient of a pool has the places of its windows as axes (N, H', k, W', m, C), and is reshaped
to an image. What reads that, such as the gradient of an activation, would be a loop over (N, H, W,
C), which cannot be the one that spreads over the windows.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..ir.build import without_graph
from ..ir.node import Node, Tensor
from ..ir.program import WRITE, Program
from ..ir.strided import Lengths
from ..ir.types import lengths
from ..ops.making import Making
from ..ops.reduce.reductions import ReduceSum
from ..ops.shape.reshaping import Reshape

LONG = 16  # elements of the last axis: those of a vector
DEPTH = 8  # element-wise nodes one behind the other that move with what reads them
Parts = tuple[Lengths, ...]
"""For each axis, the lengths of those that were joined to it."""


def split_axes(program: Program) -> Program:
    """The program with such nodes so; the very same one without any."""
    splitting = _Splitting(program)
    if not any(splitting.parts(t) for n in program.nodes for t in n.inputs):
        return program
    return without_graph(WRITE, program.rebuild, splitting.visit)


class _Splitting:
    """reads: how often the tensors of the program are read."""

    def __init__(self, program: Program) -> None:
        self.given = frozenset(program.inputs)
        self.reads = Counter([*program.outputs, *(t for n in program.nodes for t in n.inputs)])

    def parts(self, t: Tensor) -> Parts | None:
        """For a reshape of what is element-wise that joins axes before the last, all of them."""
        if t in self.given or type(t.node.op) is not Reshape or not t.type.static:
            return None
        (of,) = t.node.inputs
        if of in self.given or not of.type.static or not of.node.op.elementwise:
            return None
        parts = _joined(lengths(of.type), lengths(t.type))
        if parts is None or all(len(part) == 1 for part in parts):
            return None
        return parts if len(parts[-1]) == 1 and parts[-1][0] >= LONG else None

    def visit(self, node: Node) -> tuple[Tensor, ...] | None:
        """What stands for a node, if it moves."""
        op: Any = node.op
        if node.controls or not (op.elementwise or type(op) is ReduceSum):
            return None
        known = {parts: t for t in node.inputs if (parts := self.parts(t))}
        if len(known) != 1 or not all(t.type.static for t in (*node.inputs, *node.outputs)):
            return None
        ((parts, t),) = known.items()
        make, (y,) = Making(node), node.outputs
        if op.elementwise:
            if y.shape != t.shape:
                return None
            made = make(op, *[self._split(make, x, t, parts, DEPTH) for x in node.inputs])
        else:
            starts = [sum(map(len, parts[:a])) for a in range(len(parts))]
            axes = [starts[a] + i for a in op.axes for i in range(len(parts[a]))]
            made = make(op.replace(axes=tuple(axes)), *t.node.inputs)
        return (make(Reshape(lengths(y.type)), made) if made.shape != y.shape else made,)

    def _split(self, make: Making, x: Tensor, like: Tensor, parts: Parts, depth: int) -> Tensor:
        """An operand that broadcasts to what has these axes; what it alone reads moves with it."""
        if self.parts(x) == parts:
            return x.node.inputs[0]
        alone = x not in self.given and self.reads[x] == 1 and x.node.op.elementwise
        if depth and alone and x.shape == like.shape and not x.node.controls:
            again = Making(x.node)
            inputs = [self._split(again, t, like, parts, depth - 1) for t in x.node.inputs]
            return again(x.node.op, *inputs)
        shape = lengths(x.type)
        pairs = zip(shape, parts[len(parts) - len(shape) :], strict=True)
        split = [d for length, part in pairs for d in (part if length != 1 else [1] * len(part))]
        return x if tuple(split) == shape else make(Reshape(tuple(split)), x)


def _joined(lengths: Lengths, joined: Lengths) -> Parts | None:
    """For each length of the joined axes, those of which it is the product."""
    left, parts = [*lengths], list[Lengths]()
    for length in joined:
        part, product = list[int](), 1
        while left and (product < length or not part):
            part.append(left.pop(0))
            product *= part[-1]
        if product != length:
            return None
        parts.append(tuple(part))
    return None if left else tuple(parts)
