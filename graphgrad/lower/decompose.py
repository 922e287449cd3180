"""Ops that go over a row several times, as element-wise nodes and reductions that share loops."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.build import without_graph
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program
from ..ops.making import Making

WRITE = (
    "In decompose() write make(op, *inputs) for a node, and make.number(value, dtype) for a number."
)


def decompose(program: Program, whole: Callable[[Node], bool] = lambda node: False) -> Program:
    """The program with ops taken apart, as they say, where lengths are known and not 0.

    whole: nodes that stay, since what runs the program has something better for them.
    """

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        if type(node.op).decompose is Op.decompose or node.controls:
            return None
        if any(not t.type.static or 0 in t.shape for t in (*node.inputs, *node.outputs)):
            return None
        if whole(node):
            return None
        made = node.op.decompose(Making(node))
        return None if made is None else (made,)

    return without_graph(WRITE, program.rebuild, visit)
