"""The graphs that control flow keeps inside a node."""

from __future__ import annotations

from ..ir.graph import Graph
from ..ir.node import Node
from ..ir.program import Program


def bodies(node: Node) -> list[Graph]:
    """The graphs of the bodies of a node of control flow; none for other nodes."""
    graphs: dict[Graph, None] = {}
    for value in node.attrs.values():
        for program in value if isinstance(value, tuple) else (value,):
            if isinstance(program, Program):
                for t in program.outputs:
                    if t.node.graph is not None:
                        graphs[t.node.graph] = None
    return list(graphs)


def all_graphs(graph: Graph) -> list[Graph]:
    """The graph and the bodies in it, and the bodies in those."""
    graphs: dict[Graph, None] = {graph: None}
    queue = [graph]
    while queue:
        for node in queue.pop(0).nodes:
            for body in bodies(node):
                if body not in graphs:
                    graphs[body] = None
                    queue.append(body)
    return list(graphs)
