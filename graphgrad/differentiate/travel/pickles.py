"""Pickles of graphs: flat, with the traces of their rules."""

from __future__ import annotations

from typing import Any

from ...base.collector import collector_paused
from ...base.errors import GraphError, GraphFormatError
from ...ir.flat import flatten_graph, restore_graph
from ...ir.graph import Graph
from ...ops.control import BodyGraph
from ...regions.index import bodies_of
from .stored import StoredRule
from .storing import marks_of, stored_rules

FORMAT = "graphgrad pickle, format 4"
"""What a pickle begins with; one that begins otherwise is refused."""


class Header:
    """The format, read before anything that another version may keep elsewhere or not have."""

    def __reduce__(self) -> tuple[Any, ...]:
        return check_format, (FORMAT,)


def check_format(written: str) -> Header:
    """GraphFormatError for what another version of graphgrad has written."""
    if written != FORMAT:
        raise GraphFormatError(
            f"this is a {written!r}, and this version of graphgrad reads {FORMAT!r}.\n"
            "Rebuild the graph and pickle it, or read it with the version that wrote it."
        )
    return Header()


def reduce_graph(graph: Graph) -> tuple[Any, ...]:
    """How a graph is pickled: flat, with the traces of its rules, those that names mean too.

    A graph that is unpickled answers with the rules that were stored, whatever is registered under
    their names there. As with any pickle, unpickling runs code: take graphs from who you trust.
    """
    if isinstance(graph, BodyGraph):
        raise GraphError(f"{graph!r} is a body of control flow; pickle the graph around it")
    draws = graph.draws
    try:
        rules = stored_rules(graph)
    finally:
        graph.draws = draws  # what was drawn to trace a rule is drawn where it is called
    flat = flatten_graph(graph, lambda rule, owner: rules.get(owner, rule))
    return _unpickled, (Header(), side_by_side(flat))


@collector_paused
def _unpickled(header: Header, flats: Any) -> Graph:
    """The graph, whose format was checked."""
    graph = restore_graph(Graph(), nested(flats))
    at_home(graph)
    return graph


def at_home(graph: Graph) -> None:
    """Tell the stored rules of a graph, and of the bodies in it, that this is their home."""
    for each in bodies_of(graph):
        regions = {inner: tuple(inner.regions) for inner in bodies_of(each)}
        for _, mark in marks_of(each):
            for fn in (getattr(mark, "fn", None), getattr(mark, "jvp", None)):
                if isinstance(fn, StoredRule) and fn.at_home_only:
                    fn.regions = regions


def side_by_side(flat: Any) -> list[Any]:
    """A flat graph and those of the bodies in it, by place: pickle recurses over what nests."""
    flats = [dict(flat)]
    for each in flats:
        bodies = each["bodies"]
        each["bodies"] = [{**b, "graph": len(flats) + i} for i, b in enumerate(bodies)]
        flats += [dict(b["graph"]) for b in bodies]
    return flats


def nested(flats: list[Any]) -> Any:
    """What side_by_side took apart."""
    graphs = [dict(flat) for flat in flats]
    for each in graphs:
        each["bodies"] = [{**b, "graph": graphs[b["graph"]]} for b in each["bodies"]]
    return graphs[0]


Graph.__reduce__ = reduce_graph  # type: ignore[method-assign, assignment]
