"""A graph as it was, where what builds in it fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .node import Graph, Region

__all__ = ["undone_on_error"]

LISTS = ("nodes", "regions", "maps", "assumptions", "scattered")
DICTS = ("residuals", "twins", "again", "sites", "_named", "_suffix")


@contextmanager
def undone_on_error(graphs: Sequence[Graph]) -> Iterator[None]:
    """A block whose nodes and regions leave these graphs again where it raises.

    It is for a block that is alone in them: what other threads build there meanwhile goes as well.
    """
    before = [_Before(graph) for graph in graphs]
    try:
        yield
    except BaseException:
        for each in before:
            each.restore()
        raise


class _Before:
    """What a graph holds."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.lengths = {name: len(getattr(graph, name)) for name in LISTS}
        self.tables: dict[str, dict[Any, Any]] = {n: dict(getattr(graph, n)) for n in DICTS}
        self.draws = graph.draws
        self.settled: list[tuple[Region, Any]] = [(r, r.settled) for r in graph.regions]

    def restore(self) -> None:
        """Have it hold that again; what is gone belongs to a graph of which nobody has more."""
        graph, gone = self.graph, Graph(f"{self.graph.name}, undone")
        for node in graph.nodes[self.lengths["nodes"] :]:
            node.graph = gone
        for name, length in self.lengths.items():
            del getattr(graph, name)[length:]
        for name, table in self.tables.items():
            here = getattr(graph, name)
            here.clear()
            here.update(table)
        for region, settled in self.settled:
            region.settled, region.boundary = settled, None
        graph.draws = self.draws
        graph.index = graph.boundaries = None
