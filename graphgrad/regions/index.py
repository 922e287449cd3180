"""What selections and marks ask of a graph again and again, kept up as nodes are born.

A selection would look at every node each time it is used. The index takes in only what was built
since it was asked last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..ir.graph import Graph
from ..ir.node import Node, Region
from ..ir.residual import Residual
from .boundary import LOCK


class Index:
    """What is known of the nodes of one graph; of those in bodies of control flow, their own says.

    forward  the nodes that the user built and that have inputs, in order
    types    op type -> those of that type
    stamped  the nodes that had a stamp at some time
    runs     bodies of control flow, with the node that runs each
    readers  node -> the nodes that read it, for who asked for `readers_of`
    matches  key of a test -> how many of the forward nodes it saw, those that passed
    spans    the regions that were marked afterwards, with where they lie (differentiate.steps)
    named    groups that calls have named, by their nodes (regions.named)
    groups   the regions that stand for those

    What an exception interrupts is taken in again by the next look, so twice is as good as once.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.seen = 0
        self.forward: list[Node] = []
        self.types: dict[str, list[Node]] = {}
        self.stamped: dict[Node, None] = {}
        self.runs: dict[Graph, Node] = {}
        self.readers: dict[Node, list[Node]] = {}
        self.readers_seen = 0
        self.matches: dict[Any, tuple[int, list[Node]]] = {}
        self.named: dict[frozenset[Node], Any] = {}
        self.spans: tuple[list[Region], Any] | None = None
        self.groups: set[Region] = set()
        self.regions_seen = 0

    def take_in(self) -> None:
        """Look at the nodes built since the last time."""
        for node in self.graph.nodes[self.seen :]:
            if node.origin is None and has_gradient(node):
                append_once(self.forward, node)
                append_once(self.types.setdefault(node.op.type, []), node)
            if node.stamp is not None:
                self.stamped[node] = None
            for program in node.op.bodies:
                for t in program.outputs:
                    if t.graph is not None:
                        self.runs.setdefault(t.graph, node)
            self.seen += 1

    def forget_regions(self) -> None:
        """Have the regions looked at once more: some are taken out."""
        self.regions_seen = 0
        self.groups.clear()

    def readers_of(self, nodes: Iterable[Node]) -> list[Node]:
        """The nodes that read any of these."""
        with LOCK:
            for node in self.graph.nodes[self.readers_seen :]:
                for t in node.inputs:
                    append_once(self.readers.setdefault(t.node, []), node)
                self.readers_seen += 1
            return [reader for node in nodes for reader in self.readers.get(node, ())]

    def matching(self, key: Any, test: Callable[[Node], bool]) -> list[Node]:
        """The forward nodes that pass a test, which is one of the type or name alone."""
        with LOCK:
            seen, matches = self.matches.get(key, (0, []))
            fresh = self.forward[seen:]
            if fresh:
                matches = [*matches, *(n for n in fresh if test(n))]
                self.matches[key] = seen + len(fresh), matches
            return list(matches)


def index_of(graph: Graph) -> Index:
    """The index of a graph, up to date."""
    index: Index | None = graph.index
    if index is None or index.seen != len(graph.nodes):
        with LOCK:
            index = graph.index
            if index is None:
                index = graph.index = Index(graph)
            index.take_in()
    return index


def has_gradient(node: Node) -> bool:
    """Whether a rule could speak for it: it has inputs, and is no Residual."""
    return bool(node.inputs) and type(node.op) is not Residual


def bodies_of(graph: Graph) -> dict[Graph, Node | None]:
    """The graph and the bodies of control flow in it, at every depth, with the node that runs each.

    Bodies are graphs of their own; a loop or choice and its derivative share them.
    """
    bodies: dict[Graph, Node | None] = {graph: None}
    stack = [graph]
    while stack:
        for body, node in index_of(stack.pop()).runs.items():
            if body not in bodies:
                bodies[body] = node
                stack.append(body)
    return bodies


def is_marked(graph: Graph) -> bool:
    """Whether there are regions that count in every call."""
    index: Index | None = graph.index
    return len(graph.regions) > (0 if index is None else len(index.groups))


def marked_regions(graph: Graph) -> list[Region]:
    """The regions that count in every call: not the groups that calls have named."""
    return [r for r in graph.regions if r.group is None]


def append_once(nodes: list[Node], node: Node) -> None:
    """Append a node that may have been appended just before an exception interrupted."""
    if not nodes or nodes[-1] is not node:
        nodes.append(node)
