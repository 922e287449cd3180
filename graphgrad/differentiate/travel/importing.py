"""Graphs within graphs: import one into the current graph, cut one out of another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...base.collector import collector_paused
from ...base.errors import GraphError, ShapeError
from ...base.length import Inequality, Length, as_length
from ...base.solving import Assumption
from ...base.tree import flatten
from ...ir.build import read_here, stamp_by_maps
from ...ir.context import CONTEXT, Within, bodies_around
from ...ir.graph import Graph, current, restored
from ...ir.node import Node, Region, Tensor, Twins, enclosing
from ...ir.program import needed
from ...ir.region_tree import sites_at
from ...ir.types import compatible
from ...ops.base import as_tensor
from ...ops.random.keys import numbers_for
from ...ops.sources import Placeholder, apart, identity, placeholder_of
from ...regions.boundary import boundary_of
from ...regions.index import bodies_of
from ..levels import Step
from .closures import held_by
from .transplant import Tensors, Transplant

__all__ = ["import_graph"]


@restored
@collector_paused
def import_graph(other: Graph, inputs: Mapping[Tensor, Any] | None = None) -> dict[Tensor, Tensor]:
    """Build the nodes of another graph in the current one.

    Marks are imported and take precedence over op-type maps that are open here; the maps apply to
    unmarked nodes. The nodes become members of the region that is open here. Variables are imported
    with their current values. Random draws without a seed are independent of those of this graph
    and of other imports.

    Parameters:
        other: the graph to import; it stays as it is.
        inputs: {tensor of other: tensor or value of this graph}, a replacement. One tensor may
            replace several; each then gets a separate Identity node.

    Returns: a dict {tensor of other: tensor of this graph}.

    Raises: GraphError if other is the current graph, or for an input that is not in other or
    differs from it in dtype or shape.

    >>> with gg.Graph() as library:
    ...     x = gg.placeholder(("N",))
    ...     y = gg.sum(x * x)
    >>> gg.evaluate(gg.import_graph(library, {x: [1.0, 2.0]})[y])
    array(5.)
    """
    context = current()
    if other is context.graph:
        raise GraphError(f"{other!r} cannot be imported into itself; use copy() for a second one")
    given: dict[Tensor, Tensor] = {}
    for old, new in (inputs or {}).items():
        (here,) = read_here((as_tensor(new),))
        fits = here.dtype is old.dtype and compatible(here.shape, old.shape)
        if old.graph is not other or not fits:
            raise GraphError(f"{new!r} cannot stand for {old!r} of {other!r}")
        given[old] = here
    given = dict(zip(given, apart([*given.values()]), strict=True))
    for old in filter(sites_at, given):  # a site counts for what is imported alone
        given[old] = identity(given[old])
    transplant = Importer(other, given)
    transplant.numbers = numbers_for(other)
    _assumed_here(transplant)
    with Within(context.copy()):
        transplant.run()
        _carry_twins(transplant)
        for stated in _assumed_here(transplant):
            for graph in bodies_around(current().graph):
                graph.assumptions.append(stated)
    return transplant.tensors


class Importer(Transplant):
    """A transplant that keeps names, lines, origins and the values of variables."""

    def place(self, node: Node, inputs: Tensors) -> Tensors:
        """The node built anew, as it was, under its name in the scope that is open here."""
        return kept_as(self, node, inputs)

    def copied(self, body: Graph, copy: Graph) -> None:
        """Open op-type maps act in the copy as on other nodes."""
        stamp_in(copy)


def kept_as(transplant: Transplant, node: Node, inputs: Tensors) -> Tensors:
    """The outputs of a node that is built anew with its name, line, origin and value."""
    context = CONTEXT.get()
    stamps = context.stamps
    if not _takes_stamps(node):
        context.stamps = None
    new = transplant.anew(node, inputs)
    context.stamps = stamps
    if not node.outputs:
        return ()
    keep_provenance(transplant, node, new)
    if node._name is not None:
        new._name = context.graph.claim_name(new.scope, node._name, new)
    if isinstance(new.op, Placeholder):
        _keep_apart(transplant, node, new)
    value = transplant.source.state.values().get(node)
    if value is not None:
        context.graph.state.commit({new: value.copy()})
    return new.outputs


def _keep_apart(transplant: Transplant, node: Node, new: Node) -> None:
    """Give lengths that have a placeholder's name that of the one here: they are not others'."""
    dims = enumerate(node.outputs[0].shape)
    own = {f"{node.name}.{i}": f"{new.name}.{i}" for i, d in dims if d == f"{node.name}.{i}"}
    renamed = {old: Length(name) for old, name in own.items() if old != name}
    if renamed:
        new.op = new.op.with_sizes(renamed)
        new.outputs[0].type = new.op.infer()[0]
        transplant.sizes.update(renamed)


def _assumed_here(transplant: Transplant) -> list[Assumption]:
    """What the source states of its lengths, of those of here; ShapeError where it is not so."""
    open_still = []
    for stated in transplant.source.assumptions:
        sides = [as_length(side) for side in (stated.left, stated.right)]
        left, right = (s.at(transplant.sizes) if isinstance(s, Length) else s for s in sides)
        holds = Inequality(left, stated.sign, right).decided()
        if holds is False:
            raise ShapeError(
                f"gg.assume({stated.text}), stated at {stated.where}, does not hold here: {left} "
                f"{stated.sign} {right}"
            )
        if holds is not True:
            open_still.append(Assumption(left, stated.sign, right, stated.where))
    return open_still


def keep_provenance(transplant: Transplant, node: Node, new: Node) -> None:
    """Keep line and origin, unless the new node is derived from something here."""
    if CONTEXT.get().origin is None:
        new.position = node.position
        new.origin = transplant.origin(node.origin)


def stamp_in(copy: Graph) -> None:
    """Let op-type maps that are open here act on a body that was copied."""
    context = CONTEXT.get()
    if context.stamps is not None:
        for body in bodies_of(copy):
            for node in body.nodes:
                if node.stamp is None and _takes_stamps(node):
                    stamp_by_maps(node, context, tuple([t.type for t in node.outputs]))


def subgraph(graph: Graph, xs: Any, ys: Any) -> Graph:
    """`graph.subgraph(xs, ys)`: a graph of its own of what computes ys from xs.

    xs become placeholders of their names. Regions come along whole, with the tensors that their
    rules close over; so do the placeholders and variables that are needed beyond xs.

    Parameters:
        graph: that of `graph.subgraph`.
        xs, ys: tensors of it, or any nesting of list, tuple and dict of them.

    Returns: a Graph.

    Raises: GraphError where xs would cut a region.

    >>> x = gg.placeholder((), name="x")
    >>> h = gg.exp(x)
    >>> [node.type for node in x.graph.subgraph(h, gg.sin(h)).nodes]
    ['Placeholder', 'Sin']
    """
    return cut_out(graph, flatten(xs), flatten(ys))[0]


def cut_out(
    graph: Graph, xs: Sequence[Tensor], ys: Sequence[Tensor]
) -> tuple[Graph, dict[Tensor, Tensor]]:
    """What `subgraph` gives, and what stands there for the tensors that came along."""
    new = Graph(graph.name, seed=graph.seed)
    new.draws = graph.draws
    new.assumptions = list(graph.assumptions)
    new.state.commit({}, graph.state.runs)
    nodes = _with_whole_regions(graph, xs, ys)
    with new:
        given = {x: placeholder_of(x.type, x.node._name) for x in xs}
        transplant = Importer(graph, given)
        taken = {region for n in nodes for region in enclosing(n.region)}
        taken |= _sites_on(graph, [*xs, *(t for n in nodes for t in n.outputs)])
        transplant.left_out = set(graph.regions) - taken
        transplant.run(nodes)
        _carry_twins(transplant)
    return new, transplant.tensors


def _carry_twins(transplant: Transplant) -> None:
    """What were copies of one step are so here, and not of those of another import.

    What was built once more from a step was built from what stands for it.
    """
    fresh: dict[Twins, Twins] = {}
    here = transplant.graph
    for step, twins in transplant.source.twins.items():
        new = _made_of(step, transplant, {})
        if new is not None:
            here.twins[new] = fresh.setdefault(twins, Twins(here))
    bodies = {
        body: made
        for source, copy in transplant.bodies.items()
        for body, made in zip(bodies_of(source), bodies_of(copy.graph), strict=True)
    }
    for source in (transplant.source, *bodies):
        for step, of in source.again.items():
            new, first = (_made_of(each, transplant, bodies) for each in (step, of))
            if new is not None and first is not None:
                new.graph.again[new] = first  # type: ignore[union-attr]
                _stamp_as(new, first)
    for body in bodies.values():
        for step, twins in body.twins.items():
            body.twins[step] = fresh.setdefault(twins, Twins(body))


def _stamp_as(new: Step, first: Step) -> None:
    """Open maps act on what the user built, so on what was built once more of that."""
    if isinstance(new, Node) and isinstance(first, Node) and new.stamp is None:
        new.stamp = first.stamp


def _takes_stamps(node: Node) -> bool:
    """Whether open maps act on it: not on what gradients() built, or a stamp marked in a batch."""
    within = node.region is not None and node.region.stamped is not None
    return node.origin is None and not within


def _made_of(step: Step, transplant: Transplant, bodies: Mapping[Any, Graph]) -> Step | None:
    """What stands for a step of the source, if it is in the graph itself, or of a body in it."""
    body = bodies.get(step.graph)
    if body is not None:
        return (body.nodes if isinstance(step, Node) else body.regions)[step.index]
    new: Any = transplant.regions.get(step) if isinstance(step, Region) else None
    if isinstance(step, Node) and step.outputs and step.outputs[0] in transplant.tensors:
        new = transplant.tensors[step.outputs[0]].node
    return new if new is not None and new.graph is transplant.graph else None


def _with_whole_regions(graph: Graph, xs: Sequence[Tensor], ys: Sequence[Tensor]) -> list[Node]:
    """What ys need beyond xs, and the regions that are touched: all members, what rules hold."""
    for t in (*xs, *ys):
        if t.graph is not graph:
            raise GraphError(f"{t.name} ({t.where}) is not in {graph!r}")
    wanted = list(ys)
    while True:
        nodes = needed(xs, wanted)
        regions = {r for n in nodes for r in enclosing(n.region)}
        regions |= _sites_on(graph, [*xs, *(t for n in nodes for t in n.outputs)])
        _check_uncut(xs, regions)
        among = {*nodes, *(x.node for x in xs)}
        rest = [n for n in _belonging(graph, nodes, regions) if n not in among]
        if not rest:
            return nodes
        wanted += [t for n in rest for t in n.outputs]


def _sites_on(graph: Graph, tensors: Iterable[Tensor]) -> set[Region]:
    """The sites of tensors that any of these stand in."""
    return {s for t in tensors for s in graph.sites.get(t, ())} if graph.sites else set()


def _check_uncut(xs: Sequence[Tensor], regions: set[Region]) -> None:
    """GraphError for an x inside a region that comes along."""
    for x in xs:
        cut = regions.intersection(enclosing(x.node.region))
        if cut:
            raise GraphError(f"{x.name} ({x.where}) is inside {cut.pop()!r}, which would be split")


def _belonging(graph: Graph, nodes: list[Node], regions: set[Region]) -> Iterator[Node]:
    """The members of regions, and what they and the rules of nodes, also in bodies, hold on to."""
    yield from (n for n in graph.nodes if regions.intersection(enclosing(n.region)))
    yield from (t.node for r in regions if not r.open for t in boundary_of(r).inputs)
    yield from (t.node for r in regions if r.on_tensors for t in r.pinned_inputs or ())
    bodies = _bodies_of_all(nodes)
    marked = (*regions, *(region for body in bodies for region in body.regions))
    stamped = (*nodes, *(node for body in bodies for node in body.nodes))
    rules: list[tuple[Any, Graph | None]] = [(r.rule, r.graph) for r in marked]
    rules += [(n.stamp, n.graph) for n in stamped if n.stamp is not None]
    for rule, home in rules:
        yield from (n for n in held_by(rule, home) if n.graph is graph)


def _bodies_of_all(nodes: Iterable[Node]) -> list[Graph]:
    """The bodies of nodes, and those in these."""
    own = dict.fromkeys(t.graph for n in nodes for p in n.op.bodies for t in p.outputs[:1])
    return [inner for body in own if body is not None for inner in bodies_of(body)]


Graph.subgraph = subgraph  # type: ignore
