"""Nodes built anew somewhere else, with their regions, stamps, bodies and rules."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any

from ...base.errors import GradientError, GraphError
from ...base.solving import solved
from ...ir.build import build
from ...ir.context import CONTEXT
from ...ir.flat import closes_over, closes_over_lengths, flatten_graph, restore_graph
from ...ir.graph import Graph, current
from ...ir.node import Node, Region, RuleCall, Tensor
from ...ir.op import Op
from ...ir.program import Program
from ...ir.region_tree import sites_at
from ...ir.residual import Residual, residual_op
from ...ir.tensor_sites import note_site
from ...ir.types import sized, tensor_type
from ...ops.base import NO_GRAD, is_zero
from ...ops.control import BodyGraph, around
from ...ops.random.keys import (
    RandomKey,
    call_key,
    call_number,
    loops_around,
    renumbered,
    root_of,
    trace_around,
)
from ...ops.sources import Placeholder
from ...regions.boundary import boundary_of, take_in_pins
from ...regions.index import bodies_of
from ...regions.named import stand_in
from ..call import outer_reads
from ..levels import Step
from ..site import Site
from .carrier import Carrier, Convention, as_one
from .deferred import Default, check_same
from .trace import Trace, TraceGraph
from .travelled import carried

Tensors = tuple[Tensor, ...]
Origin = Node | RuleCall | None


class Transplant(Carrier):
    """Builds the nodes of one graph in the current graph, and remembers what stands for what.

    It is an interpreter of the source, node by node: `place` says what stands for a node's outputs,
    of what stands for its inputs. Another transformation is another `place`.

    source   the graph they come from
    tensors  what stands for which tensor of it; given ones at first
    outer    where captures of a traced source come from; None for a source without captures
    convention  how rules are called whose sites it carries
    site     the site here whose rule the source is a trace of
    left_out  regions of which nothing comes along: what was derived from them is as built here
    numbers  what is added to those of draws without a seed
    """

    source: Graph
    site: Site
    left_out: Collection[Region] = ()
    numbers = 0

    def __init__(
        self,
        source: Graph,
        tensors: dict[Tensor, Tensor],
        outer: Carrier | None = None,
        convention: Convention | None = None,
    ) -> None:
        self.source = source
        self.tensors = dict(tensors)
        self._given = tensors
        self.regions: dict[Region, Region] = {}
        self.bodies: dict[Graph, ByIndex] = {}
        self.outer = outer
        self.convention = convention or PLAIN
        self.graph = current().graph
        self.around = current().region
        self._placed = 0
        self._drawn: dict[int, int] = {}

    # --- what a transformation says ----------------------------------------------------------

    def place(self, node: Node, inputs: Tensors) -> Tensors:
        """What stands for the outputs of a node: those of the node, built anew."""
        return self.anew(node, inputs).outputs

    def outside(self, t: Tensor) -> Tensor:
        """What stands for a tensor that no node of the source makes: a trace captured it."""
        home = self.source.home_of(t) if isinstance(self.source, TraceGraph) else None
        if home is None or self.outer is None:
            raise self.not_carried(t)
        return self.outer.captured(home)

    def owns(self, region: Region) -> bool:
        """Whether a region is built anew; of others `outside_region` knows what stands for them."""
        return region.graph is self.source

    def outside_region(self, region: Region) -> Region:
        """What stands for a region around the source."""
        if self.outer is None:
            raise GraphError(f"{region!r} of {self.source!r} was not copied")
        return self.outer.region(region)

    def origin(self, origin: Origin) -> Origin:
        """What stands for why a node was built; None where nothing does."""
        if not isinstance(origin, RuleCall):
            return None if origin is None else self._node(origin)
        site = origin.site
        there = None if site in self.left_out else self._site(site)
        if there is None:
            return None
        if isinstance(there, Region) and isinstance(site, Node):
            return RuleCall(there, origin.rule, outer_reads(there, there.pinned_outputs or ()))
        outer = frozenset([self.tensors[t] for t in origin.outer if t in self.tensors])
        return RuleCall(there, origin.rule, outer)

    def begin(self) -> None:
        """Called before nodes are built, with what is known of their inputs by then."""

    def opened(self, region: Region, new: Region) -> None:
        """Called with each region that is opened."""

    def copied(self, body: Graph, copy: Graph) -> None:
        """Called with the copy of a body of control flow."""

    # --- what stands for what ----------------------------------------------------------------

    def tensor(self, t: Tensor) -> Tensor:
        """What stands for a tensor of the source."""
        counterpart = self.tensors.get(t)
        if counterpart is None:
            if t.graph in self.bodies:
                return self.bodies[t.graph].tensor(t)
            counterpart = self.outside(t)
            if counterpart.graph is self.graph:  # else a body inside captured it, for that alone
                self.tensors[t] = counterpart
        return counterpart

    def not_carried(self, t: Tensor) -> GraphError:
        """The error for a tensor for which nothing stands."""
        return GraphError(
            f"{t.name} ({t.type!r}, built at {t.where}) of {self.source!r} was not copied, and a "
            "copied rule or node needs it"
        )

    def entry(self, dx: Any) -> Any:
        """An entry of a rule, as it is here."""
        return self.tensor(dx) if isinstance(dx, Tensor) else dx

    def region(self, region: Region) -> Region:
        """What stands for a region of the source; GraphError where nothing was built of it."""
        if region.graph in self.bodies:
            return self.bodies[region.graph].region(region)
        if self.owns(region) and region.group is None and region not in self.regions:
            raise GraphError(f"{region!r} of {self.source!r} was not copied")
        return self._open_region(region)

    def of_body(self, body: Graph) -> list[Carrier]:
        """What copied a body."""
        return [self.bodies[body]] if body in self.bodies else []

    def _open_region(self, region: Region) -> Region:
        """What stands for a region, opened for the first of its nodes."""
        counterpart = self.regions.get(region)
        if counterpart is None:
            if region.graph in self.bodies:
                return self.bodies[region.graph].region(region)
            if not self.owns(region):
                return self.outside_region(region)
            if region.group is None:
                counterpart = self._new_region(region)
            else:
                around = None if region.parent is None else self._open_region(region.parent)
                counterpart = stand_in(region, self.tensor, CONTEXT.get().graph, around)
            self.regions[region] = counterpart
        return counterpart

    def _node(self, node: Node) -> Node | None:
        """What stands for a node, of which some outputs may have come along."""
        outputs = [self.tensors[t] for t in node.outputs if t in self.tensors]
        return outputs[0].node if outputs else None

    def _site(self, site: Step) -> Step | None:
        """What stands for a site: a region for a stamped node that took several."""
        if isinstance(site, Region):
            return self._open_region(site)
        there = self._node(site)
        return None if there is None else as_one(site, there)

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
        new.rule = self.rule(region.rule, region)
        graph.regions.append(new)
        if region in self.source.scattered:
            graph.scattered.append(new)
        self.opened(region, new)
        return new

    def _region_origin(self, region: Region) -> Origin:
        """Why a region is there, where that is for the sake of something of the source."""
        origin = region.origin
        site = origin.site if isinstance(origin, RuleCall) else origin
        return None if site is None or site.graph is not self.source else self.origin(origin)

    def around_of(self, region: Region | None) -> Region | None:
        """What stands for a region; for none, the one in which all of it was built."""
        return self.around if region is None else self.region(region)

    def _around(self, region: Region | None) -> Region | None:
        return self.around if region is None else self._open_region(region)

    def run(self, nodes: Iterable[Node] | None = None) -> None:
        """Build nodes of the source anew, in order; all of them, if it is not said which."""
        regions = CONTEXT.get().graph.regions
        first = len(regions)
        try:
            self._build(self.source.nodes[self._placed :] if nodes is None else nodes)
            self._carry_sites()
            for old, new in list(self.regions.items()):
                if new.open:
                    self._pin(old, new)
        except BaseException:
            for region in [*self.regions.values(), *regions[first:]]:
                region.open = False
            raise

    def _carry_sites(self) -> None:
        """Open the sites of tensors, which no node lies in, of what was built anew."""
        anew = [t for t in self.source.sites if self.tensors.get(t, t) is not t]
        sites = dict.fromkeys(site for t in anew for site in sites_at(t))
        for site in sorted(filter(self.owns, sites), key=lambda s: s.index):
            self._open_region(site)

    def _build(self, nodes: Iterable[Node]) -> None:
        context, tensors = CONTEXT.get(), self.tensors
        self.begin()
        try:
            for node in nodes:
                if any(t not in tensors for t in node.outputs) and not self._is_capture(node):
                    context.region = self._around(node.region)
                    inputs = tuple([self.tensor(t) for t in node.inputs])
                    outputs = self._default_here if isinstance(node.op, Default) else self.place
                    tensors.update(zip(node.outputs, outputs(node, inputs), strict=True))
        finally:
            context.region = self.around

    def default_for(self, given: Mapping[int, Tensor]) -> dict[int, Any]:
        """The default of the site here, asked for in a trace that is not complete, by place."""
        end = len(self.source.nodes)
        self._build(self.source.nodes[self._placed : end])
        self._placed = end
        return self._default({i: self.tensor(dy) for i, dy in given.items()})

    def _default(self, given: Mapping[int, Tensor]) -> dict[int, Any]:
        site, convention = self.site, self.convention
        dys: list[Any] = [None] * len(site.outputs)
        for i, dy in given.items():
            dys[i] = convention.fitted(dy, site.outputs[i], site)
        partials = enumerate(site.default(*dys))
        flows = {i: dx for i, dx in partials if dx is not NO_GRAD and not is_zero(dx)}
        for i, dx in flows.items():
            convention.note(dx, site.inputs[i])
        return flows

    def _default_here(self, node: Node, inputs: Tensors) -> Tensors:
        """What a complete trace asks of the site here."""
        op: Any = node.op
        dxs = self._default(dict(zip(op.given, inputs, strict=True)))
        check_same(op, dxs, self.site)
        return tuple(dxs.values())

    def _is_capture(self, node: Node) -> bool:
        """Whether it stands for something outside, which is entered when somebody needs it."""
        return isinstance(self.source, TraceGraph) and isinstance(node.op, Placeholder)

    # --- a node, its op and its rule ---------------------------------------------------------

    def anew(self, node: Node, inputs: Tensors) -> Node:
        """A node of the source built anew, with its stamp and what runs before it."""
        if self.drawn_here(node.op):
            return call_key(self.number_of(node.op)).node
        new = build(self.op(node), inputs)
        new.controls = self.controls(node)
        if node.stamp is not None:
            new.stamp = self.rule(node.stamp, node)
        return new

    def op(self, node: Node) -> Op:
        """The op of a node as it is here, with the copies of its bodies."""
        op = node.op
        if isinstance(op, Residual):
            return residual_op(self._open_region(op.region))
        if op.open_lengths:
            op = op.with_sizes(self.sizes)
        if op.bodies:
            op = op.replace_bodies([self._program(p) for p in op.bodies])
        return renumbered(op, self.numbers)

    @cached_property
    def sizes(self) -> dict[str, Any]:
        """What named lengths of the source are here: those of the tensors that were given."""
        pairs = [(t, here) for t, here in self._given.items() if t.ndim == here.ndim]
        axes = [(d, n, f"in {here.name}") for t, here in pairs for d, n in zip(t.shape, here.shape)]
        return {**({} if self.outer is None else self.outer.sizes), **solved(axes)}

    def rule(self, rule: Any, owner: Node | Region) -> Any:
        """The rule as it is used here: itself, unless it means something at home only."""
        convention = self.convention
        carries = convention.carries(rule, owner)
        return carried(rule, owner, self, convention) if carries else rule

    def drawn_here(self, op: Op) -> bool:
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

    def _program(self, program: Program) -> Program:
        """The program of a body, in a copy of the body."""
        body: Any = program.outputs[0].graph
        by_index = self.bodies.get(body)
        if by_index is None:
            by_index = copy_into(body, type(body)(CONTEXT.get().graph, ""), self)
            self._draw_in(by_index.graph)
            self.bodies[body] = by_index
            self.copied(body, by_index.graph)
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
                if self.sizes:
                    _give_sizes(node, self.sizes)
                if self.drawn_here(node.op):
                    if loops_around(self.graph):
                        raise GradientError(
                            f"{node.name} (drawn without a seed at {node.where}, in the rule of "
                            f"{self.site!r}) is in a body of control flow and would be the same "
                            "in every iteration of the loop: draw it outside of that body, or "
                            "with seed=gg.random.fold_in(site.random_key(), 1)"
                        )
                    node.op = node.op.replace(
                        seed=root_of(copy).seed, number=self.number_of(node.op)
                    )
                node.op = renumbered(node.op, self.numbers)

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
        if new.on_tensors:
            note_site(new)
        new.open = False


def _give_sizes(node: Node, sizes: Mapping[str, Any]) -> None:
    """Give named lengths these values, in what a node of a copy computes and in what it makes."""
    if node.op.open_lengths:
        node.op = node.op.with_sizes(sizes)
    for t in node.outputs:
        if not t.type.static:
            t.type = tensor_type(sized(t.shape, sizes), t.dtype)


class Plain:
    """A rule is called as at home: a trace of it is built anew as it is."""

    batches = False

    def carries(self, rule: Any, owner: Node | Region) -> bool:
        """A rule that holds on to tensors or lengths means something at home only."""
        return closes_over(rule, owner) or closes_over_lengths(rule)

    def transplant(
        self, carrier: Carrier, source: Graph, given: dict[Tensor, Tensor]
    ) -> Transplant:
        """A plain transplant."""
        return Transplant(source, given, carrier)

    def note(self, d: Tensor, t: Tensor) -> None:
        """Nothing is to be learnt."""

    def check(self, trace: Trace, site: Site, carrier: Carrier) -> None:
        """Any trace serves."""

    def fitted(self, d: Any, t: Tensor, site: Site) -> Any:
        """An entry as it is."""
        return d

    def defers(self, site: Site) -> bool:
        """The site here is as the one at home."""
        return True


PLAIN = Plain()


class ByIndex(Carrier):
    """A copy of a graph: what stands for a node is the node of the same index.

    regions  what stands for each: their places in the graphs change as marks are taken off
    copies   the graph that was copied as a whole, and the bodies in it -> what carries each
    """

    source: Graph

    def __init__(self, source: Graph, copies: dict[Graph, ByIndex]) -> None:
        self.source = source
        self.copies = copies
        self.nodes = len(source.nodes)
        self.graph: Any = None
        self.outer: Carrier | None = None
        self.regions: dict[Region, Region] = {}

    def pair(self, graph: Graph) -> None:
        """Learn which graph is the copy."""
        self.graph = graph
        self.regions = dict(zip(self.source.regions, graph.regions, strict=True))

    def tensor(self, t: Tensor) -> Tensor:
        """The tensor of the same place in the copy."""
        if t.graph is self.source and t.node.index < self.nodes:
            counterpart: Tensor = self.graph.nodes[t.node.index].outputs[t.index]
            return counterpart
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

    def of_body(self, body: Graph) -> list[Carrier]:
        """What copied a body, with the rest."""
        return [self.copies[body]] if body in self.copies else []


def copy_into(graph: Graph, new: Any, outer: Carrier | None = None) -> ByIndex:
    """Fill an empty graph with a copy; closures become rules that were carried away."""
    copies: dict[Graph, ByIndex] = {}

    def carry(rule: Any, owner: Node | Region) -> Any:
        home = owner.graph
        stays = outer is None or not closes_over_lengths(rule)  # a mere copy has the same names
        if home is None or (stays and not closes_over(rule, owner)):
            return rule
        return carried(rule, owner, copies.setdefault(home, ByIndex(home, copies)), PLAIN)

    copies[graph] = ByIndex(graph, copies)
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
    copies[graph].pair(new)
    for old, copy in pairs:
        for node, twin in zip(old.nodes, copy.nodes, strict=True):
            for program, moved in zip(node.op.bodies, twin.op.bodies, strict=True):
                body, moved_body = (p.outputs[0].graph for p in (program, moved))
                if body not in known:
                    known.add(body)
                    carrier = copies.setdefault(body, ByIndex(body, copies))
                    carrier.outer = copies[old]
                    carrier.pair(moved_body)
                    pairs.append((body, moved_body))


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
