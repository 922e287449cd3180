"""Rules away from home: traced once at their own site, and transplanted to where they are needed.

A closure is never called with another graph's tensors. Where a marked node or region was carried to
(a copy, another graph), its rule is `Travelled`: it is called once at home, with placeholders for
dys, in a scratch graph that captures what the rule reads of its home (site tensors, residuals, and
whatever it closes over). That trace is built anew, node by node, at the site in question, with what
was captured replaced by what stands for it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from ..ir.build import adopted, build, read_here
from ..ir.collector import collector_paused
from ..ir.context import CONTEXT, Context
from ..ir.errors import GraphError
from ..ir.flat import flatten_graph, restore_graph
from ..ir.graph import Graph, current
from ..ir.node import Node, Region, RuleCall, Tensor, enclosing
from ..ir.op import Op
from ..ir.program import Program, needed
from ..ir.residual import Residual, read_from, residual_of, residual_op
from ..ir.tree import flatten
from ..ir.types import compatible
from ..ops.base import ZERO, as_tensor, is_zero
from ..ops.control import BodyGraph, BodyScope
from ..ops.sources import Placeholder, placeholder
from ..regions.boundary import boundary_of, take_in_pins
from ..regions.rules import Rule, as_rule
from .call import answer, running, seen_outside
from .site import NodeSite, RegionSite, Site
from .sweep import Sweep


class Carrier(Protocol):
    """Knows what stands for a tensor or region of one graph in another."""

    def tensor(self, t: Tensor) -> Tensor:
        """What stands for t; GraphError where nothing does."""

    def region(self, region: Region) -> Region:
        """What stands for a region."""


class TraceGraph(BodyGraph):
    """The scratch graph of a trace. What is read of the home is captured as the rule reads it."""

    def adopt(self, tensor: Tensor) -> Tensor:
        """The placeholder that stands for a tensor of the home, or of a graph around it."""
        if tensor.graph is self.outer:
            here = current()
            at_home = Context(self.outer)
            at_home.origin, at_home.running, at_home.scope = here.origin, here.running, "gradients/"
            tensor = residual_of(tensor, at_home)
        return super().adopt(tensor)


class Trace:
    """What one rule builds for one site: a scratch graph from dys and captures to gradients.

    dys      the placeholders of the outputs' gradients; None for outputs that have none
    entries  (input of the site, what the rule returns for it): a tensor of the scratch graph, or
             anything else that a rule may return
    """

    def __init__(self, target: Node | Region, reference: Any) -> None:
        home = target.graph
        assert home is not None
        rule = as_rule(reference)
        self.graph = TraceGraph(home, f"trace of {rule.name}")
        with BodyScope(self.graph):
            context = CONTEXT.get()
            context.stamps, context.scope, context.origin = None, "", None
            context.running, context.live = (), None
            sweep = Sweep(context, frozenset(), frozenset(), {})
            make: Any = RegionSite if isinstance(target, Region) else NodeSite
            site: Site = make(target, reference, sweep)
            self.dys = [
                build(Placeholder(y.shape, y.dtype), ()).outputs[0]
                if y.type.differentiable
                else None
                for y in site.outputs
            ]
            with running(rule, site):
                entries = answer(rule, site, list(self.dys))
                self.entries = [(x, self._entry(dx)) for x, dx in entries]

    def _entry(self, dx: Any) -> Any:
        if is_zero(dx):
            return ZERO
        return seen_outside(adopted((dx,))[0]) if isinstance(dx, Tensor) else dx


class Travelled:
    """The rule of a site that was carried away from its home."""

    def __init__(self, home: Node | Region, rule: Any, carrier: Carrier) -> None:
        self.home = home
        self.rule = rule
        self.carrier = carrier
        self._trace: Trace | None = None

    @property
    def __name__(self) -> str:
        return as_rule(self.rule).name

    def __call__(self, site: Site, *dys: Any) -> Any:
        """The trace, built anew for this site."""
        if self._trace is None:
            self._trace = Trace(self.home, self.rule)
        trace = self._trace
        given = {p: dy for p, dy in zip(trace.dys, dys, strict=True) if p is not None}
        transplant = Transplant(trace.graph, given, self.carrier)
        transplant.run()
        count = len(site.inputs)
        found = [transplant.entry(dx) for _, dx in trace.entries]
        if len(found) == count:
            return found
        extra = {
            self.carrier.tensor(x): dx
            for (x, _), dx in zip(trace.entries[count:], found[count:], strict=True)
        }
        return {**dict(zip(site.inputs, found[:count], strict=True)), **extra}


def carried(rule: Any, home: Node | Region, carrier: Carrier) -> Rule:
    """The rule of a marked node or region of one graph, for what stands for it in another."""
    known = as_rule(rule)
    fn = Travelled(home, rule, carrier)
    return Rule(
        fn,
        known.name,
        contract=known.contract,
        linear=known.linear,
        position=known.position,
    )


# --- building nodes anew ------------------------------------------------------------------------


class Transplant:
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
            found = self.tensors[t] = enter(home, self.outer)
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
            found = self.regions[region] = self._new_region(region)
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
            kind=region.kind,
        )
        new.rule = (
            region.rule if isinstance(region.rule, str) else carried(region.rule, region, self)
        )
        new.open = False
        graph.regions.append(new)
        return new

    def run(self, nodes: Iterable[Node] | None = None) -> None:
        """Build nodes of the source anew, in order; all of them, if it is not said which."""
        context = CONTEXT.get()
        try:
            for node in self.source.nodes if nodes is None else nodes:
                if any(t not in self.tensors for t in node.outputs) and not self._is_capture(node):
                    context.region = self.around if node.region is None else self.region(node.region)
                    self.place(node)
        finally:
            context.region = self.around
        for old, new in list(self.regions.items()):
            self._pin(old, new)

    def _is_capture(self, node: Node) -> bool:
        """Whether it stands for something outside, which is entered when somebody needs it."""
        return isinstance(self.source, TraceGraph) and isinstance(node.op, Placeholder)

    def place(self, node: Node) -> None:
        """Build one node anew."""
        inputs = tuple(self.tensor(t) for t in node.inputs)
        new = build(self._op(node), inputs)
        if node.stamp is not None:
            new.stamp = self._rule(node.stamp, node)
        self.tensors.update(zip(node.outputs, new.outputs, strict=True))

    def _rule(self, rule: Any, owner: Node | Region) -> Any:
        return rule if isinstance(rule, str) else carried(rule, owner, self)

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
            if outer in self.tensors:
                by_index.graph.captures[self.tensors[outer]] = by_index.tensor(inner)
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


def enter(t: Tensor, carrier: Carrier) -> Tensor:
    """What stands here for a tensor that was captured at home, read as it was read there."""
    op = t.node.op
    if isinstance(op, Residual):
        at, context = carrier.region(op.region), CONTEXT.get()
        found = carrier.tensor(t.node.inputs[0])
        if not at.contains(context.region):
            found = read_from(at, found, context)
    else:
        found = carrier.tensor(t)
    return read_here((found,))[0]


class ByIndex:
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
        """The region of the same index in the copy."""
        made: Region = self.graph.regions[region.index]
        return made


# --- graphs that travel whole ----------------------------------------------------------------


def copy_into(graph: Graph, new: Any, outer: Carrier | None = None) -> ByIndex:
    """Fill an empty graph with a copy; closures become rules that were carried away."""
    copies: dict[Graph, ByIndex] = {}

    def carry(rule: Any, owner: Node | Region) -> Rule:
        home = owner.graph
        assert home is not None
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


def import_graph(other: Graph, inputs: Mapping[Tensor, Any] | None = None) -> dict[Tensor, Tensor]:
    """Build the nodes of another graph in the current one; what stands for which tensor of it.

    inputs  {tensor of other: tensor or value here}: used instead; types must agree

    Marks come along and win over op-type maps that are open here; those stamp what is unmarked. The
    nodes become members of the region that is open here. Variables come with their present values.
    """
    context = current()
    if other is context.graph:
        raise GraphError(f"{other!r} is imported into itself; use copy() for a second one")
    given: dict[Tensor, Tensor] = {}
    for old, new in (inputs or {}).items():
        here = as_tensor(new)
        fits = here.dtype is old.dtype and compatible(here.shape, old.shape)
        if old.graph is not other or not fits:
            raise GraphError(f"{new!r} cannot stand for {old!r} of {other!r}")
        given[old] = here
    transplant = Importer(other, given)
    token = CONTEXT.set(context.copy())
    try:
        with collector_paused():
            transplant.run()
    finally:
        CONTEXT.reset(token)
    return transplant.tensors


class Importer(Transplant):
    """A transplant that keeps names, lines, origins and the values of variables."""

    def place(self, node: Node) -> None:
        """Build one node anew, under its name in the scope that is open here."""
        super().place(node)
        new = self.tensors[node.outputs[0]].node if node.outputs else None
        if new is None:
            return
        new.position = node.position
        new.origin = self._origin(node.origin)
        if node._name is not None:
            graph = CONTEXT.get().graph
            new._name = graph.claim_name(new.scope, node._name, new)
        value = self.source.state.values().get(node)
        if value is not None:
            CONTEXT.get().graph.state.commit({new: value.copy()})

    def _origin(self, origin: Node | RuleCall | None) -> Node | RuleCall | None:
        if isinstance(origin, Node):
            outputs = [self.tensors[t] for t in origin.outputs if t in self.tensors]
            return outputs[0].node if outputs else None
        if origin is None:
            return None
        site = origin.site
        there: Any = self.region(site) if isinstance(site, Region) else self._origin(site)
        outer = frozenset(self.tensors[t] for t in origin.outer if t in self.tensors)
        return None if there is None else RuleCall(there, origin.rule, outer)


def subgraph(graph: Graph, xs: Any, ys: Any) -> Graph:
    """A graph of its own of what computes ys from xs; xs become placeholders of their names.

    xs, ys  tensors, or any nesting of them

    Regions come along whole. GraphError where xs would cut a region, or where ys need more than xs
    and the graph's own placeholders and variables.
    """
    new = Graph(graph.name)
    nodes = _with_whole_regions(graph, flatten(xs), flatten(ys))
    with new:
        given = {x: placeholder(x.shape, x.dtype, x.node._name) for x in flatten(xs)}
        Importer(graph, given).run(nodes)
    return new


def _with_whole_regions(graph: Graph, xs: list[Tensor], ys: list[Tensor]) -> list[Node]:
    """What ys need beyond xs, and all the members of the regions that are touched."""
    for t in (*xs, *ys):
        if t.graph is not graph:
            raise GraphError(f"{t.name} ({t.where}) is not in {graph!r}")
    wanted = list(ys)
    while True:
        nodes = needed(xs, wanted)
        regions = {r for n in nodes for r in enclosing(n.region)}
        for x in xs:
            cut = regions.intersection(enclosing(x.node.region))
            if cut:
                raise GraphError(
                    f"{x.name} ({x.where}) lies inside {cut.pop()!r}, which it would cut"
                )
        among = set(nodes)
        rest = [
            n for n in graph.nodes if n not in among and regions.intersection(enclosing(n.region))
        ]
        if not rest:
            return nodes
        wanted += [t for n in rest for t in n.outputs]


Graph.copy = Graph.__copy__ = Graph.__deepcopy__ = copy_graph  # type: ignore[attr-defined]
Graph.subgraph = subgraph  # type: ignore[attr-defined]
