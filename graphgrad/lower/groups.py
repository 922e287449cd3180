"""Which nodes can run as one loop over their elements.

Every node gets a stage, counted from the end: the most borders between loops on any way from it to
an output. Nodes of one stage that loop over one shape can be one group: a way that leaves the group
crosses a border, so it cannot come back. Counting from the end computes a value as late as it can
be: what only the backward pass reads is computed there, from what is kept anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ir.types import Shape

Test = Callable[[Node], bool]


def grouped(program: Program, fusible: Test, reducible: Test) -> list[list[Node]]:
    """Groups of nodes, each in the order of the program; single nodes may be groups too.

    fusible: nodes whose one output is computed element by element from inputs that broadcast to
    its shape. reducible: nodes that reduce one input; they end a group, and its members may not
    read them.
    """
    loops = {n: shape for n in program.nodes if (shape := _loop(n, fusible, reducible)) is not None}
    stages = _stages(program, loops, reducible)
    given = set(program.inputs)
    together = _Together()
    first_reader: dict[tuple[Tensor, int, Shape], Node] = {}
    for node, loop in loops.items():
        stage = stages[node]
        for t in node.inputs:
            if t.shape != loop:
                continue
            maker = None if t in given else t.node
            if maker in loops and stages[maker] == stage and _joins(maker, node, loops, reducible):
                together.unite(maker, node)
            else:
                together.unite(first_reader.setdefault((t, stage, loop), node), node)
    return together.sets(loops)


def _loop(node: Node, fusible: Test, reducible: Test) -> Shape | None:
    """The shape that a node loops over, None where it is no loop or a length is unknown."""
    if len(node.outputs) != 1 or node.controls:
        return None
    if fusible(node):
        (y,) = node.outputs
    elif reducible(node):
        (y,) = node.inputs
    else:
        return None
    return y.shape if y.type.static and node.outputs[0].type.static else None


def _joins(maker: Node, reader: Node, loops: dict[Node, Shape], reducible: Test) -> bool:
    return maker in loops and loops[maker] == loops.get(reader) and not reducible(maker)


def _stages(program: Program, loops: dict[Node, Shape], reducible: Test) -> dict[Node, int]:
    stages: dict[Node, int] = dict.fromkeys(program.nodes, 0)
    given = set(program.inputs)
    for node in reversed(program.nodes):
        stage = stages[node]
        sources = {t.node for t in node.inputs if t not in given}
        for maker in sources.union(node.controls):
            border = 0 if _joins(maker, node, loops, reducible) else 1
            stages[maker] = max(stages[maker], stage + border)
    for node in loops:
        if reducible(node) and _joins(node.inputs[0].node, node, loops, reducible):
            stages[node] = stages[node.inputs[0].node]  # its readers all come later anyway
    return stages


class _Together:
    """Sets of nodes that grow together (union-find with path halving)."""

    def __init__(self) -> None:
        self._parent: dict[Node, Node] = {}

    def _root(self, node: Node) -> Node:
        parent = self._parent
        while (up := parent.setdefault(node, node)) is not node:
            parent[node] = node = parent.setdefault(up, up)
        return node

    def unite(self, a: Node, b: Node) -> None:
        self._parent[self._root(b)] = self._root(a)

    def sets(self, nodes: Iterable[Node]) -> list[list[Node]]:
        found: dict[Node, list[Node]] = {}
        for node in nodes:
            found.setdefault(self._root(node), []).append(node)
        return list(found.values())
