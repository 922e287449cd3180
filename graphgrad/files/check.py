"""What a graph that was read has to be: of the types that its ops infer, and without circles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base.errors import FileError
from ..ir.flat import Flat
from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ir.op import Op, Types


def check_graph(graph: Graph) -> None:
    """FileError where a graph, or a body in it, has other types than its ops infer."""
    known: dict[tuple[Op, Types], Types] = {}
    seen, graphs = {graph}, [graph]
    for each in graphs:
        for node in each.nodes:
            _check_types(node, known)
            _check_bodies(node)
            for program in node.op.bodies:
                body: Any = program.outputs[0].graph
                if body not in seen:
                    seen.add(body)
                    graphs.append(body)


def _check_types(node: Node, known: dict[tuple[Op, Types], Types]) -> None:
    """FileError unless a node's types are what its op infers now, as when it was saved."""
    op, inputs = node.op, tuple([t.type for t in node.inputs])
    inferred = known.get((op, inputs))
    if inferred is None:
        try:
            inferred = known[op, inputs] = op.infer(*inputs)
        except Exception as error:
            raise FileError(f"node {node.index}, {op!r:.80}, is invalid: {error}") from error
    said = [t.type for t in node.outputs]
    if list(inferred) != said:
        raise FileError(
            f"node {node.index}, {op!r:.80}, is {_shown(node.outputs)} in the file, but its op "
            f"returns {list(inferred)!r:.120} here: the op has changed, or the file was tampered "
            "with"
        )


def _check_bodies(node: Node) -> None:
    """FileError unless the bodies of control flow take what the node is given."""
    try:
        node.op.check_bodies(*[t.type for t in node.inputs])
    except Exception as error:
        raise FileError(f"node {node.index}, {node.op!r:.80}, is invalid: {error}") from error


def _shown(tensors: Iterable[Tensor]) -> str:
    return f"{[t.type for t in tensors]!r:.120}"


def check_tree(flats: Iterable[Flat]) -> None:
    """FileError where regions lie in a circle, or steps are derived from each other."""
    for flat in flats:
        regions, calls = flat["regions"], flat["calls"]
        parents = {i: r["parent"] for i, r in enumerate(regions)}
        _check_circle(parents, "regions contain each other")
        links = {("node", i): _cause(origin, calls) for i, origin in flat["origin"].items()}
        links |= {("region", i): _cause(r["origin"], calls) for i, r in enumerate(regions)}
        _check_circle(links, "steps are derived from each other")


def _cause(origin: tuple[str, int] | None, calls: list[Any]) -> tuple[str, int] | None:
    """The step that an origin speaks of."""
    if origin is not None and origin[0] == "call":
        step: tuple[str, int] = calls[origin[1]][1]
        return step
    return origin


def _check_circle(links: dict[Any, Any], what: str) -> None:
    """Follow every link once."""
    done: set[Any] = set()
    for start in links:
        path: dict[Any, None] = {}
        at = start
        while at is not None and at not in done:
            if at in path:
                raise FileError(f"{what}: {at}")
            path[at] = None
            at = links.get(at)
        done.update(path)
