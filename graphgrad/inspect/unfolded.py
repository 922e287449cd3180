"""Bodies of control flow as nodes of the picture, in a box each before the node that chooses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..ir.node import Node, Tensor
from .boxes import BodyMark

__all__: list[str] = []


class Unfolded(NamedTuple):
    """Nodes with those of the bodies in them.

    nodes   those of a body stand before the node that has it
    bodies  node of a body -> the body. What the gradient of a choice runs again stands where it
            was built
    reads   what is read in place of a node's inputs: a body's placeholder reads the tensor that it
            stands for, and a choice reads what it goes by and the results of its bodies
    """

    nodes: list[Node]
    bodies: dict[Node, BodyMark]
    reads: dict[Node, list[Tensor]]


def unfold(nodes: Sequence[Node]) -> Unfolded:
    """The nodes, and in bodies of bodies all there are."""
    found: dict[Node, None] = {}
    bodies: dict[Node, BodyMark] = {}
    reads: dict[Node, list[Tensor]] = {}
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        if node in found:
            continue
        programs = node.op.bodies
        if not programs or node in reads:
            found[node] = None
            continue
        stack.append(node)
        reads[node] = [*node.inputs[:1], *(t for p in programs for t in p.outputs)]
        numbered = list(enumerate(zip(programs, node.attrs["reads"], strict=True)))
        for number, (program, taken) in reversed(numbered):
            body = BodyMark(node, number)
            inside = [*(t.node for t in program.inputs), *program.nodes]
            for n in inside:
                bodies.setdefault(n, body)
            for t, place in zip(program.inputs, taken, strict=True):
                reads.setdefault(t.node, [node.inputs[1 + place]])
            stack += reversed(inside)
    return Unfolded(list(found), bodies, reads)
