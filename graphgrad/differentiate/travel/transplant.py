"""Nodes built anew somewhere else, with their regions, stamps, bodies and rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ...base.errors import GradientError, GraphError
from ...ir.build import build
from ...ir.context import CONTEXT
from ...ir.flat import closes_over, flatten_graph, restore_graph
from ...ir.graph import Graph, current
from ...ir.node import Node, Region, RuleCall, Tensor
from ...ir.op import Op
from ...ir.program import Program
from ...ir.residual import Residual, residual_op
from ...ops.base import NO_GRAD, is_zero
from ...ops.control import BodyGraph, around
from ...ops.random.keys import RandomKey, call_key, call_number, loops_around, root_of, trace_around
from ...ops.sources import Placeholder
from ...regions.boundary import boundary_of, take_in_pins
from ...regions.index import bodies_of
from ...regions.named import stand_in
from ..site import Site
from .deferred import Default, check_same
from .trace import Trace, TraceGraph
from .travelled import Carrier, carried, enter


class Plain:
    """What carriers do that carry things as they are."""

    source: Graph | None = None
    outer: Carrier | None = None
    batches = False

    def transplant(self, source: Graph, given: dict[Tensor, Tensor]) -> Transplant:
        """A plain transplant."""
        return Transplant(source, given, self)  # type: ignore[arg-type]

    def captured(self, t: Tensor) -> Tensor:
        """What stands here for a tensor that was captured at home, read as it was read there."""
        return enter(t, self)  # type: ignore[arg-type]

    def note(self, d: Tensor, t: Tensor) -> None:
        """Nothing is to be learnt."""

    def check(self, trace: Trace, site: Site) -> None:
        """Any trace serves."""

    def fitted(self, d: Any, t: Tensor, site: Site) -> Any:
        """An entry as it is."""
        return d

    def defers(self, site: Site) -> bool:
        """The site here is as the one at home."""
        return True

    def around_of(self, region: Region | None) -> Region | None:
        """What stands for the region."""
        return None if region is None else self.region(region)  # type: ignore[attr-defined]


class Transplant(Plain):
    """Builds the nodes of one graph in the current graph, and remembers what stands for what.

    source   the graph they come from
    tensors  what stands for which tensor of it; given ones at first
    outer    where captures of a traced source come from; None for a source without captures
    site     the site here whose rule the source is a trace of
    left_out  regions of which nothing comes along: what was derived from them is as built here
    """

    source: Graph
    site: Site
    left_out: Collection[Region] = ()

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
        self._placed = 0
        self._drawn: dict[int, int] = {}

    def tensor(self, t: Tensor) -> Tensor:
        """What stands for a tensor of the source."""
        counterpart = self.tensors.get(t)
        if counterpart is None:
            home = self.source.home_of(t) if isinstance(self.source, TraceGraph) else None
            if t.graph in self.bodies:
                return self.bodies[t.graph].tensor(t)
            if home is None or self.outer is None:
                raise GraphError(
                    f"{t.name} ({t.type!r}, built at {t.where}) of {self.source!r} was not carried "
                    "along, and a rule or node that was needs it"
                )
            counterpart = self.outer.captured(home)
            if (
                counterpart.graph is self.graph
            ):  # else it was captured by a body inside, for that alone
                self.tensors[t] = counterpart
        return counterpart

    def entry(self, dx: Any) -> Any:
        """An entry of a rule, as it is here."""
        return self.tensor(dx) if isinstance(dx, Tensor) else dx

    def region(self, region: Region) -> Region:
        """What stands for a region of the source; GraphError where nothing was built of it."""
        if region.graph in self.bodies:
            return self.bodies[region.graph].region(region)
        if region.graph is not self.source and self.outer is not None:
            return self.outer.region(region)
        if region.group is None and region not in self.regions:
            raise GraphError(f"{region!r} of {self.source!r} was not carried along")
        return self._made_region(region)

    def _made_region(self, region: Region) -> Region:
        """What stands for a region, made for the first of its nodes."""
        counterpart = self.regions.get(region)
        if counterpart is None:
            if region.graph is not self.source:
                return self.region(region)
            if region.group is None:
                counterpart = self._new_region(region)
            else:
                around = None if region.parent is None else self._made_region(region.parent)
                counterpart = stand_in(region, self.tensor, CONTEXT.get().graph, around)
            self.regions[region] = counterpart
        return counterpart

    def _new_region(self, region: Region) -> Region:
        context = CONTEXT.get()
        graph = context.graph
        new = Region(
            graph,
            None,
            parent=self._around(region.parent),
            origin=self._region_origin(region) or context.origin,
            position=region.position,
            **region.options,
        )
        new.rule = self._rule(region.rule, region)
        graph.regions.append(new)
        if region in self.source.scattered:
            graph.scattered.append(new)
        return new

    def _region_origin(self, region: Region) -> Node | RuleCall | None:
        """Why a region is there, where that is for the sake of something of the source."""
        origin = region.origin
        site = origin.site if isinstance(origin, RuleCall) else origin
        return None if site is None or site.graph is not self.source else self._origin(origin)

    def _origin(self, origin: Node | RuleCall | None) -> Node | RuleCall | None:
        if isinstance(origin, Node):
            outputs = [self.tensors[t] for t in origin.outputs if t in self.tensors]
            return outputs[0].node if outputs else None
        if origin is None:
            return None
        site = origin.site
        if site in self.left_out:
            return None
        there: Any = self._made_region(site) if isinstance(site, Region) else self._origin(site)
        outer = frozenset(self.tensors[t] for t in origin.outer if t in self.tensors)
        return None if there is None else RuleCall(there, origin.rule, outer)

    def around_of(self, region: Region | None) -> Region | None:
        """What stands for a region; for none, the one in which all of it was built."""
        return self.around if region is None else self.region(region)

    def _around(self, region: Region | None) -> Region | None:
        return self.around if region is None else self._made_region(region)

    def run(self, nodes: Iterable[Node] | None = None) -> None:
        """Build nodes of the source anew, in order; all of them, if it is not said which."""
        regions = CONTEXT.get().graph.regions
        first = len(regions)
        try:
            self._build(self.source.nodes[self._placed :] if nodes is None else nodes)
            for old, new in list(self.regions.items()):
                if new.open:
                    self._pin(old, new)
        except BaseException:
            for region in [*self.regions.values(), *regions[first:]]:
                region.open = False
            raise

    def _build(self, nodes: Iterable[Node]) -> None:
        context = CONTEXT.get()
        try:
            for node in nodes:
                if any(t not in self.tensors for t in node.outputs) and not self._is_capture(node):
                    context.region = self._around(node.region)
                    if isinstance(node.op, Default):
                        self._place_default(node.op, node)
                    else:
                        self.place(node)
        finally:
            context.region = self.around

    def default_for(self, given: Mapping[int, Tensor]) -> dict[int, Any]:
        """The default of the site here, asked for in a trace that is not complete, by place."""
        end = len(self.source.nodes)
        self._build(self.source.nodes[self._placed : end])
        self._placed = end
        return self._default(given)

    def _default(self, given: Mapping[int, Tensor]) -> dict[int, Any]:
        site, carrier = self.site, self.outer or self
        dys: list[Any] = [None] * len(site.outputs)
        for i, dy in given.items():
            dys[i] = carrier.fitted(self.tensor(dy), site.outputs[i], site)
        partials = enumerate(site.default(*dys))
        flows = {i: dx for i, dx in partials if dx is not NO_GRAD and not is_zero(dx)}
        for i, dx in flows.items():
            carrier.note(dx, site.inputs[i])
        return flows

    def _place_default(self, op: Default, node: Node) -> None:
        """What a complete trace asks of the site here."""
        dxs = self._default(dict(zip(op.given, node.inputs, strict=True)))
        check_same(op, dxs, self.site)
        self.tensors.update(zip(node.outputs, dxs.values(), strict=True))

    def _is_capture(self, node: Node) -> bool:
        """Whether it stands for something outside, which is entered when somebody needs it."""
        return isinstance(self.source, TraceGraph) and isinstance(node.op, Placeholder)

    def place(self, node: Node) -> None:
        """Build one node anew."""
        if self._drawn_here(node.op):
            self.tensors[node.outputs[0]] = call_key(self.number_of(node.op))
            return
        inputs = tuple(self.tensor(t) for t in node.inputs)
        new = build(self._op(node), inputs)
        new.controls = self.controls(node)
        if node.stamp is not None:
            new.stamp = self._rule(node.stamp, node)
        self.tensors.update(zip(node.outputs, new.outputs, strict=True))

    def _drawn_here(self, op: Op) -> bool:
        """Whether an op is the key of a draw of a trace that is built anew outside of that."""
        if not isinstance(op, RandomKey) or op.number >= 0:
            return False
        trace = trace_around(self.source)
        return trace is None or trace not in around(self.graph)

    def number_of(self, op: Any) -> int:
        """The number here of a draw of the call that a trace holds."""
        holders: list[Transplant] = [self]
        while isinstance(holders[-1].outer, Transplant):
            holders.append(holders[-1].outer)
        for holder in holders:
            if op.number in holder._drawn:
                return holder._drawn[op.number]
        holder = next((h for h in holders if h.source.of_call), holders[-1])
        return holder._drawn.setdefault(op.number, call_number())

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
            return residual_op(self._made_region(op.region))
        return op.replace_bodies([self._program(p) for p in op.bodies]) if op.bodies else op

    def _program(self, program: Program) -> Program:
        """The program of a body, in a copy of the body."""
        body: Any = program.outputs[0].graph
        by_index = self.bodies.get(body)
        if by_index is None:
            by_index = copy_into(body, type(body)(CONTEXT.get().graph, ""), self)
            self._draw_in(by_index.graph)
            self.bodies[body] = by_index
        for inner, outer in body.captures.items():
            if outer in self.tensors or self._is_capture(outer.node):
                by_index.graph.capture(by_index.tensor(inner), self.tensor(outer))
        return Program(
            [by_index.tensor(t) for t in program.inputs],
            [by_index.tensor(t) for t in program.outputs],
        )

    def _draw_in(self, copy: Graph) -> None:
        """Let what the bodies of a trace draw be drawn by the call here."""
        for body in bodies_of(copy):
            for node in body.nodes:
                if self._drawn_here(node.op):
                    if loops_around(self.graph):
                        raise GradientError(
                            f"{node.name} (drawn without a seed at {node.where}, in the rule of "
                            f"{self.site!r}) is in a body of control flow and would be the same in "
                            "every run of the loop around: draw it outside of that body, or with "
                            "seed=gg.random.fold_in(site.random_key(), 1)"
                        )
                    node.op = node.op.replace(
                        seed=root_of(copy).seed, number=self.number_of(node.op)
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
    """A copy of a graph: what stands for a node is the node of the same index.

    regions  what stands for each: their places in the graphs change as marks are taken off
    """

    source: Graph

    def __init__(self, source: Graph) -> None:
        self.source = source
        self.nodes = len(source.nodes)
        self.graph: Any = None
        self.outer: Carrier | None = None
        self.regions: dict[Region, Region] = {}

    def made(self, graph: Graph) -> None:
        """Learn which graph is the copy."""
        self.graph = graph
        self.regions = dict(zip(self.source.regions, graph.regions, strict=True))

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
        counterpart = self.regions.get(region)
        if counterpart is None:
            raise GraphError(f"{region!r} is not in {self.graph!r}, which was copied before")
        return counterpart


def copy_into(graph: Graph, new: Any, outer: Carrier | None = None) -> ByIndex:
    """Fill an empty graph with a copy; closures become rules that were carried away."""
    copies: dict[Graph, ByIndex] = {}

    def carry(rule: Any, owner: Node | Region) -> Any:
        home = owner.graph
        if home is None or not closes_over(rule, owner):
            return rule
        for body in around(home):  # what it reads of the graphs around is found through them
            copies.setdefault(body, ByIndex(body))
        return carried(rule, owner, copies[home])

    copies[graph] = ByIndex(graph)
    copies[graph].outer = outer
    for region in graph.regions:
        if not region.open:
            boundary_of(region)
    restore_graph(new, flatten_graph(graph, carry))
    _pair(graph, new, copies)
    return copies[graph]


def _pair(graph: Graph, new: Graph, copies: dict[Graph, ByIndex]) -> None:
    """Tell the carriers of a graph, and of the bodies in it, which graph is the copy."""
    pairs: list[tuple[Graph, Any]] = [(graph, new)]
    known = {graph}
    for old, made in pairs:
        if old in copies:
            copies[old].made(made)
        for node, twin in zip(old.nodes, made.nodes, strict=True):
            for program, moved in zip(node.op.bodies, twin.op.bodies, strict=True):
                body: Any = program.outputs[0].graph
                if body in copies:
                    copies[body].outer = copies.get(old)
                if body not in known:
                    known.add(body)
                    pairs.append((body, moved.outputs[0].graph))


def copy_graph(graph: Graph, memo: Any = None) -> Graph:
    """`graph.copy()`: a graph with equal nodes, regions, marks, names and variable values.

    Rules that close over tensors of the graph are traced at home when the copy is differentiated.

    Parameters:
        graph: that of `graph.copy`.
        memo: what copy.deepcopy gives; not read.

    Returns: a Graph.

    >>> x = gg.placeholder((), name="x")
    >>> copy = x.graph.copy()
    >>> copy.tensor("x:0") is x, len(copy)
    (False, 1)
    """
    new = Graph()
    copy_into(graph, new)
    return new


Graph.copy = Graph.__copy__ = Graph.__deepcopy__ = copy_graph  # type: ignore
