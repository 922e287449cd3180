"""What can be shown, as nodes in an order in which they can run, and results among them."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...base.errors import GraphError
from ...base.tree import flatten
from ...ir.graph import Graph
from ...ir.node import Node, Region, RuleCall, Tensor
from ...ir.program import Program, needed
from ...ir.residual import Residual
from ...regions.boundary import boundary_of
from .boxes import Owner
from .wording import region_title

Twins = dict[Node, Node]
Status = dict[Node, str]


class Subject(NamedTuple):
    """What is shown.

    title    of the picture, unless another one is asked for
    nodes    in an order in which they can run
    results  the tensors asked for, in order; empty where a whole graph is shown
    twins    in a comparison: node of the one side -> the same node of the other, which is shown
    before   in a comparison: node that is shown -> the same node before
    status   in a comparison: "added", "removed", "changed" or "" of every node
    marks    in a comparison: region or rule call before -> the same after
    """

    title: str
    nodes: list[Node]
    results: tuple[Tensor, ...] = ()
    twins: Twins = {}
    before: Twins = {}
    status: Status = {}
    marks: dict[Owner, Owner] = {}


def subject_of(shown: Any) -> Subject:
    """The subject that was meant.

    shown: a graph, a program, what has a program (a compiled function), a loaded model, tensors
    (any nesting of them) with their ancestors, a node or region with what is around it, or a
    comparison. None among tensors (what `gradients` gives for the unconnected) is left out. As any
    look at a region, this settles the boundaries of the closed regions shown. TypeError for what
    cannot be shown, GraphError for tensors of different graphs.
    """
    shown = getattr(shown, "_shown", shown)
    if isinstance(shown, Subject):
        return shown
    if isinstance(shown, Graph):
        return Subject(_title(shown), list(shown.nodes))
    if isinstance(shown, Region):
        return Subject(region_title(shown), _around_region(shown))
    if isinstance(shown, Node):
        return Subject(shown.name, _around_node(shown))
    subject = getattr(shown, "_subject", None)
    if isinstance(subject, Subject):
        return subject
    program = getattr(shown, "program", shown)
    if isinstance(program, Program):
        return _of_program(program)
    results = tensors_of(shown)
    graph = results[0].graph if results else None
    return Subject(_title(graph), needed((), results), tuple(results))


def tensors_of(shown: Any) -> list[Tensor]:
    """The tensors among any nesting of them; TypeError and GraphError as in subject_of."""
    results = [t for t in flatten(shown) if t is not None]
    for t in results:
        if not isinstance(t, Tensor):
            raise TypeError(
                "a graph, a program, a compiled function, tensors, a node or a region can be "
                f"shown, got {t!r}"
            )
        if t.graph is not results[0].graph:
            raise GraphError(
                f"{t.name} ({t.where}) of {t.graph!r} and {results[0].name} ({results[0].where}) "
                f"of {results[0].graph!r} are in different graphs, and a picture shows one graph"
            )
    return results


def _title(graph: Graph | None) -> str:
    return "" if graph is None or graph.name == "graph" else graph.name


def _of_program(program: Program) -> Subject:
    """What makes the inputs, and the nodes. What a pass made stands for the node it was made of."""
    tensors = (*program.inputs, *program.outputs)
    home = next((t.graph for t in tensors if t.graph is not None), None)
    shown = list(dict.fromkeys([*(t.node for t in program.inputs), *program.nodes]))
    there, twins = set(shown), {}
    for node in program.nodes:
        if home is not None and node.graph is None and node.index < len(home.nodes):
            original = home.nodes[node.index]
            if original not in there:
                twins[original] = node
    return Subject(_title(home), shown, program.outputs, twins)


def _around_region(region: Region) -> list[Node]:
    """The nodes inside, what they read, what reads them, and what the region's rules built."""
    inside = _inside(region)
    around = set(inside)
    for node in region.graph.nodes:
        calls = isinstance(node.origin, RuleCall) and node.origin.site is region
        reads = any(t.node in inside for t in node.inputs)
        if calls or reads:
            around.add(node)
    read = {t.node for node in around for t in node.inputs}
    return sorted(around | read, key=_index)


def _inside(region: Region) -> set[Node]:
    if region.on_tensors:
        return {t.node for t in region.pinned_inputs or ()}
    if not region.open:
        return set(boundary_of(region).members)
    return {n for n in region.graph.nodes if region.contains(n.region)}


def _around_node(node: Node) -> list[Node]:
    """A node, what it reads, what reads it, and its gradient."""
    around = {node, *(t.node for t in node.inputs)}
    for other in node.graph.nodes if node.graph is not None else ():
        if any(t.node is node for t in other.inputs) or _derives(other, node):
            around.add(other)
    behind = {t.node for n in around if type(n.op) is Residual for t in n.inputs}
    return sorted(around | behind, key=_index)


def _derives(other: Node, node: Node) -> bool:
    origin = other.origin
    return origin is node or (isinstance(origin, RuleCall) and origin.site is node)


def _index(node: Node) -> int:
    return node.index
