"""Nodes built anew somewhere else, with their regions, stamps, bodies and rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..ir.build import build
from ..ir.collector import collector_paused
from ..ir.context import CONTEXT
from ..ir.errors import GraphError
from ..ir.flat import closes_over, flatten_graph, restore_graph
from ..ir.graph import Graph, current
from ..ir.node import Node, Region, Tensor
from ..ir.op import Op
from ..ir.program import Program
from ..ir.residual import Residual, residual_op
from ..ops.control import BodyGraph
from ..ops.sources import Placeholder
from ..regions.boundary import boundary_of, take_in_pins
from ..regions.named import stand_in
from .site import Site
from .trace import Carrier, TraceGraph, carried, enter


class Plain:
    """What carriers do that carry things as they are."""

    def transplant(self, source: Graph, given: dict[Tensor, Tensor]) -> Transplant:
        """A plain transplant."""
        return Transplant(source, given, self)  # type: ignore[arg-type]

    def note(self, d: Tensor, t: Tensor) -> None:
        """Nothing is to be learnt."""

    def fitted(self, d: Any, t: Tensor, site: Site, of: Sequence[Tensor]) -> Any:
        """An entry as it is."""
        return d


class Transplant(Plain):
    """Builds the nodes of one graph in the current graph, and remembers what stands for what.

    source   the graph they come from
    tensors  what stands for which tensor of it; given ones at first
    outer    where captures of a traced source come from; None for a source without captures
    """

    def __init__(
        self, source: Graph, tensors: dict[Tensor, Tensor], outer: Carrier | None = None
    ) -> None:
        self.source = source
        self.tensors = dict(tensors)
        self.regions: dict[Region, Region] = {}
        self.bodies: dict[Graph, ByIndex] = {}
        self.outer = outer
        self.graph = current().graph
        self.around = current().region

    def tensor(self, t: Tensor) -> Tensor:
        """What stands for a tensor of the source."""
        found = self.tensors.get(t)
        if found is None:
            home = self.source.home_of(t) if isinstance(self.source, TraceGraph) else None
            if home is None or self.outer is None:
                raise GraphError(
                    f"{t.name} ({t.type!r}, built at {t.where}) of {self.source!r} was not carried "
                    "along, and a rule or node that was needs it"
                )
            found = enter(home, self.outer)
            if found.graph is self.graph:  # else it was captured by a body inside, for that alone
                self.tensors[t] = found
        return found

    def entry(self, dx: Any) -> Any:
        """An entry of a rule, as it is here."""
        return self.tensor(dx) if isinstance(dx, Tensor) else dx

    def region(self, region: Region) -> Region:
        """What stands for a region of the source."""
        found = self.regions.get(region)
        if found is None:
            if region.graph is not self.source:
                assert self.outer is not None
                return self.outer.region(region)
            if region.group is None:
                found = self._new_region(region)
            else:
                around = None if region.parent is None else self.region(region.parent)
                found = stand_in(region, self.tensor, CONTEXT.get().graph, around)
            self.regions[region] = found
        return found

    def _new_region(self, region: Region) -> Region:
        context = CONTEXT.get()
        graph = context.graph
        new = Region(
            graph,
            None,
            parent=self.around if region.parent is None else self.region(region.parent),
            origin=context.origin,
            position=region.position,
            attrs=dict(region.attrs),
            escape=region.escape,
            order=region.order,
            late=region.late,
            allow_empty=region.allow_empty,
            kind=region.kind,
        )
        new.rule = self._rule(region.rule, region)
        graph.regions.append(new)
        if region in self.source.scattered:
            graph.scattered.append(new)
        return new

    def run(self, nodes: Iterable[Node] | None = None) -> None:
        """Build nodes of the source anew, in order; all of them, if it is not said which."""
        context = CONTEXT.get()
        try:
            for node in self.source.nodes if nodes is None else nodes:
                if any(t not in self.tensors for t in node.outputs) and not self._is_capture(node):
                    context.region = (
                        self.around if node.region is None else self.region(node.region)
                    )
                    self.place(node)
        finally:
            context.region = self.around
        for old, new in list(self.regions.items()):
            if new.open:
                self._pin(old, new)

    def _is_capture(self, node: Node) -> bool:
        """Whether it stands for something outside, which is entered when somebody needs it."""
        return isinstance(self.source, TraceGraph) and isinstance(node.op, Placeholder)

    def place(self, node: Node) -> None:
        """Build one node anew."""
        inputs = tuple(self.tensor(t) for t in node.inputs)
        new = build(self._op(node), inputs)
        new.controls = self.controls(node)
        if node.stamp is not None:
            new.stamp = self._rule(node.stamp, node)
        self.tensors.update(zip(node.outputs, new.outputs, strict=True))

    def controls(self, node: Node) -> tuple[Node, ...]:
        """What stands for the nodes that run before a node."""
        made = [self.tensors[t] for c in node.controls for t in c.outputs if t in self.tensors]
        return tuple(dict.fromkeys(t.node for t in made))

    def _rule(self, rule: Any, owner: Node | Region) -> Any:
        """The rule as it is used here: itself, unless it means something at home only."""
        return carried(rule, owner, self) if closes_over(rule, owner) else rule

    def _op(self, node: Node) -> Op:
        op = node.op
        if isinstance(op, Residual):
            return residual_op(self.region(op.region))
        programs = op.attrs.get("programs")
        if programs is None:
            return op
        moved = tuple(self._program(p) for p in programs)
        new: Op = type(op)(**{**op.attrs, "programs": moved})
        return new

    def _program(self, program: Program) -> Program:
        """The program of a body, in a copy of the body."""
        body: Any = program.outputs[0].graph
        by_index = self.bodies.get(body)
        if by_index is None:
            by_index = copy_into(body, type(body)(CONTEXT.get().graph, ""), self)
            self.bodies[body] = by_index
        for outer, inner in body.captures.items():
            if outer in self.tensors or self._is_capture(outer.node):
                by_index.graph.captures[self.tensor(outer)] = by_index.tensor(inner)
        return Program(
            [by_index.tensor(t) for t in program.inputs],
            [by_index.tensor(t) for t in program.outputs],
        )

    def _pin(self, old: Region, new: Region) -> None:
        """The boundary of a region, as it was declared and settled."""
        for name in ("pinned_inputs", "pinned_outputs"):
            tensors = getattr(old, name)
            if tensors is not None:
                setattr(new, name, tuple(self.tensor(t) for t in tensors))
        boundary = boundary_of(old)  # the rule that was carried along speaks for this one
        inputs, outputs = boundary.inputs, boundary.outputs
        new.settled = tuple(map(self.tensor, inputs)), tuple(map(self.tensor, outputs))
        take_in_pins(new)
        new.open = False


class ByIndex(Plain):
    """A copy of a graph: what stands for a node is the node of the same index."""

    def __init__(self, source: Graph) -> None:
        self.source = source
        self.nodes = len(source.nodes)
        self.graph: Any = None
        self.outer: Carrier | None = None

    def tensor(self, t: Tensor) -> Tensor:
        """The tensor of the same place in the copy."""
        if t.graph is self.source and t.node.index < self.nodes:
            made: Tensor = self.graph.nodes[t.node.index].outputs[t.index]
            return made
        home = self.source.home_of(t) if isinstance(self.source, BodyGraph) else None
        if home is None or self.outer is None:
            raise GraphError(
                f"{t.name} ({t.type!r}, built at {t.where}) is not in {self.graph!r}: it belongs "
                "to another graph, or was built after the copy was made"
            )
        captured: Tensor = self.graph.adopt(self.outer.tensor(home))
        return captured

    def region(self, region: Region) -> Region:
        """The region of the same index in the copy; of a group, what stands for it there."""
        if region.group is not None:
            around = None if region.parent is None else self.region(region.parent)
            return stand_in(region, self.tensor, self.graph, around)
        made: Region = self.graph.regions[region.index]
        return made


def copy_into(graph: Graph, new: Any, outer: Carrier | None = None) -> ByIndex:
    """Fill an empty graph with a copy; closures become rules that were carried away."""
    copies: dict[Graph, ByIndex] = {}

    def carry(rule: Any, owner: Node | Region) -> Any:
        home = owner.graph
        if home is None or not closes_over(rule, owner):
            return rule
        if home not in copies:
            copies[home] = ByIndex(home)
        return carried(rule, owner, copies[home])

    copies[graph] = ByIndex(graph)
    copies[graph].outer = outer
    for region in graph.regions:
        if not region.open:
            boundary_of(region)
    with collector_paused():
        restore_graph(new, flatten_graph(graph, carry))
        _pair(graph, new, copies)
    return copies[graph]


def _pair(graph: Graph, new: Graph, copies: dict[Graph, ByIndex]) -> None:
    """Tell the carriers of a graph, and of the bodies in it, which graph is the copy."""
    pairs: list[tuple[Graph, Any]] = [(graph, new)]
    for old, made in pairs:
        if old in copies:
            copies[old].graph = made
        for node, twin in zip(old.nodes, made.nodes, strict=True):
            programs = node.op.attrs.get("programs", ())
            for program, moved in zip(programs, twin.op.attrs.get("programs", ()), strict=True):
                body: Any = program.outputs[0].graph
                if body in copies and copies[body].outer is None:
                    copies[body].outer = copies.get(old)
                if all(body is not known for known, _ in pairs):
                    pairs.append((body, moved.outputs[0].graph))


def copy_graph(graph: Graph, memo: Any = None) -> Graph:
    """A graph of its own with equal nodes, regions, marks, names and variable values.

    Rules that close over tensors of the graph are traced at home when the copy is differentiated.
    """
    new = Graph()
    copy_into(graph, new)
    return new


Graph.copy = Graph.__copy__ = Graph.__deepcopy__ = copy_graph  # type: ignore
