"""Targets of a selection: a node, a region, or a group of nodes that is to become one region."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...base.errors import RegionError
from ...ir.graph import Graph
from ...ir.node import Node, Region, Tensor
from ...ir.residual import Residual
from ..boundary import boundaries_of
from ..index import bodies_of, has_gradient, index_of


class Group:
    """Nodes that are meant as one region, in order of creation, and what says so.

    >>> x = gg.placeholder(())
    >>> y = gg.cos(gg.sin(x))
    >>> (group,) = gg.select.between(x, y).together().find(x.graph)
    >>> type(group) is gg.Group, [node.type for node in group.nodes]
    (True, ['Sin', 'Cos'])
    """

    __slots__ = ("nodes", "of")

    def __init__(self, nodes: Iterable[Node], of: object) -> None:
        self.nodes = tuple(sorted(set(nodes), key=lambda n: n.index))
        self.of = of

    @property
    def graph(self) -> Graph:
        """The graph that all of them are in."""
        graph = self.nodes[0].graph
        assert graph is not None
        return graph

    @property
    def key(self) -> frozenset[Node]:
        """What tells it from other groups: its nodes that have a gradient."""
        return frozenset(n for n in self.nodes if has_gradient(n))

    def __repr__(self) -> str:
        shown = ", ".join(f"{n.name} ({n.where})" for n in self.nodes[:3])
        more = f" and {len(self.nodes) - 3} more" if len(self.nodes) > 3 else ""
        return f"{self.of!r} ({shown}{more})"


Target = Node | Region | Group


class Kind:
    """One way to select: what it finds in a graph, and what to say where that is nothing.

    parts  the kinds that it is made of
    names  the nodes, regions and tensors that it names as objects
    """

    parts: tuple[Kind, ...] = ()
    names: tuple[Node | Region | Tensor, ...] = ()

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        """What it selects; with derived=False among the nodes that the user built."""
        raise NotImplementedError

    def _hint(self, graph: Graph) -> str:
        """What to say where it selects nothing: a near miss."""
        return ""


def covered(targets: Iterable[Target]) -> set[Node]:
    """The nodes of targets, regions' members included."""
    nodes: set[Node] = set()
    for target in targets:
        nodes.update(nodes_of(target))
    return nodes


def nodes_of(target: Target) -> Sequence[Node]:
    """The nodes of one target."""
    if isinstance(target, Node):
        return (target,)
    return members_of(target) if isinstance(target, Region) else target.nodes


def members_of(region: Region) -> list[Node]:
    """The nodes inside a region, as far as they were built."""
    boundaries = boundaries_of(region.graph)
    boundaries.take_in()
    return boundaries.of(region).members


def is_in(what: Node | Region | Tensor, graph: Graph) -> bool:
    """Whether it is in the graph or in a body of control flow there."""
    return what.graph is graph or what.graph in bodies_of(graph)


def pool(graph: Graph, derived: bool) -> list[Node]:
    """The nodes that may be matched: with derived=False those that the user built."""
    graphs = bodies_of(graph)
    if derived:
        return [n for each in graphs for n in each.nodes if has_gradient(n)]
    return [n for each in graphs for n in index_of(each).forward]


def of_types(graph: Graph, types: Sequence[str], derived: bool) -> list[Node]:
    """Those of the pool that are of one of these types."""
    if derived:
        return [n for n in pool(graph, True) if n.type in types]
    matches: list[Node] = []
    for each in bodies_of(graph):
        index = index_of(each)
        nodes = [n for t in types for n in index.types.get(t, ())]
        matches += nodes if len(types) == 1 else sorted(nodes, key=lambda n: n.index)
    return matches


def as_group(nodes: Iterable[Node], of: object, graph: Graph) -> list[Target]:
    """The nodes as one group, without those in a body that a node of the group runs."""
    among = {n for n in nodes if type(n.op) is not Residual}
    runs = bodies_of(graph) if len({n.graph for n in among}) > 1 else {}
    kept = [n for n in among if not any(r in among for r in _runners(n, runs))]
    if len({n.graph for n in kept}) > 1:
        shown = ", ".join(f"{n.name} ({n.where}) of {n.graph!r}" for n in kept[:4])
        raise RegionError(
            f"{of!r} is meant as one region, but its nodes lie in several graphs, as bodies of "
            f"control flow do: {shown}.\nSay `.each()`, or select the node that runs the body."
        )
    return [Group(kept, of)] if kept else []


def _runners(node: Node, runs: dict[Graph, Node | None]) -> Iterable[Node]:
    """The nodes that run the bodies around a node, innermost first."""
    runner = runs.get(node.graph) if node.graph is not None else None
    while runner is not None:
        yield runner
        runner = runs.get(runner.graph) if runner.graph is not None else None
