"""Bodies of control flow as nodes of the picture, in a box each before the node that has them.

The body of a loop is there once, however often it runs: what it carries on from run to run is an
edge back to what stands for the carry. The test of a loop stands in the box of its body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...ir.node import Node, Tensor
from ...ir.program import Program
from ...ops.control import Scan, While
from .boxes import BodyMark

__all__: list[str] = []


class Unfolded(NamedTuple):
    """Nodes with those of the bodies in them.

    nodes   those of a body stand before the node that has it
    bodies  node of a body -> the body. What the gradient of a choice or loop runs again stands
            where it was built
    reads   what is read in place of a node's inputs: a body's placeholder reads the tensor that it
            stands for, and a choice or loop what it goes by and the results of its bodies
    nexts   placeholder of a loop's carry -> what a run carries on, where that is another
    rows    placeholders that stand for one row after the other of what they read
    """

    nodes: list[Node]
    bodies: dict[Node, BodyMark]
    reads: dict[Node, list[Tensor]]
    nexts: dict[Node, Tensor]
    rows: set[Node]


def unfold(nodes: Sequence[Node]) -> Unfolded:
    """The nodes, and in bodies of bodies all there are."""
    ordered: dict[Node, None] = {}
    made = Unfolded([], {}, {}, {}, set())
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        if node in ordered:
            continue
        if not node.op.bodies or node in made.reads:
            ordered[node] = None
            continue
        stack += [node, *reversed(_open(node, made))]
    made.nodes.extend(ordered)
    return made


def _open(node: Node, made: Unfolded) -> list[Node]:
    """Note the bodies of a node; the nodes in them, those of the first body first."""
    op: Any = node.op
    results = [t for program in op.bodies for t in program.outputs]
    if isinstance(op, Scan | While):
        made.reads[node] = results
        return _loop(node, op, made)
    made.reads[node] = [*node.inputs[:1], *results]
    inside = []
    for number, (program, taken) in enumerate(zip(op.bodies, op.reads, strict=True)):
        for t, place in zip(program.inputs, taken, strict=True):
            made.reads.setdefault(t.node, [node.inputs[1 + place]])
        inside += _members(program, BodyMark(node, number), made)
    return inside


def _loop(node: Node, op: Scan | While, made: Unfolded) -> list[Node]:
    body = BodyMark(node, 0)
    sliced = op.carries + (op.slices if isinstance(op, Scan) else 0)
    after, inside = op.bodies[-1].outputs, []
    for program in op.bodies:
        for place, (t, outer) in enumerate(zip(program.inputs, node.inputs, strict=True)):
            if t.node in made.reads:
                continue
            made.reads[t.node] = [outer]
            if place < op.carries and after[place] is not t:
                made.nexts[t.node] = after[place]
            elif op.carries <= place < sliced:
                made.rows.add(t.node)
        inside += _members(program, body, made)
    return inside


def _members(program: Program, body: BodyMark, made: Unfolded) -> list[Node]:
    """What is in a body, and not in one before it."""
    inside = [*(t.node for t in program.inputs), *program.nodes]
    for n in inside:
        made.bodies.setdefault(n, body)
    return inside
