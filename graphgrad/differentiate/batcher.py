"""Nodes built for a batch of examples, with their regions, rules and choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..ir.collector import collector_paused
from ..ir.context import CONTEXT
from ..ir.errors import GradientError, GraphError
from ..ir.graph import Graph, current
from ..ir.node import Node, Region, Tensor
from ..ir.program import Program
from ..ir.residual import Residual
from ..ops.base import Marker, as_tensor, cast
from ..ops.control import BodyGraph, Cond, around
from ..ops.reductions import sum
from ..regions.boundary import boundary_of, take_in_pins
from ..regions.index import bodies_of, marked_regions
from .additive import at_home, copied_steps, note_twin
from .batched import batched_outputs, repeated
from .batched_choice import batched_choice
from .importing import Importer
from .levels import Step
from .site import Site
from .trace import Carrier, TraceGraph, carried
from .transplant import Transplant


class Batcher(Importer):
    """A transplant into a batch: what depends on a batched tensor has the batch axis first.

    batched   the new tensors that have it; shared with the batchers of the rules inside
    repeated  what is made for every example although it is the same for all: see _same_for_all
    enter     where the source is a body of control flow: how it reads a tensor of the batch around
    inside    body of the source -> what built it, for the choices that share it, and what it was
              given (batched_choice)
    first     step in a body -> the first that was made of it
    """

    def __init__(
        self,
        source: Graph,
        given: dict[Tensor, Tensor],
        outer: Carrier,
        batched: set[Tensor],
        enter: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__(source, given, outer)
        self.batched = batched
        self.repeated: dict[Tensor, Region] = {}
        self.enter = enter
        self.inside: dict[Graph, tuple[Batcher, dict[Tensor, Tensor]]] = {}
        self.first: dict[Step, Step] = {}

    def within(self, body: BodyGraph, enter: Callable[[Tensor], Tensor]) -> Batcher:
        """What builds a body for the batch, in the current graph."""
        return Batcher(body, {}, self, self.batched, enter)

    def build_all(self) -> None:
        """Build everything, in the current graph. What op-type maps stamp is stamped already."""
        context = current().copy()
        context.without_maps()
        token = CONTEXT.set(context)
        try:
            with collector_paused():
                self.run()
        finally:
            CONTEXT.reset(token)

    def run(self, nodes: Iterable[Node] | None = None) -> None:
        """Build nodes of the source for the batch."""
        self.repeated = self._same_for_all()
        super().run(nodes)

    # --- as a carrier of rules ---------------------------------------------------------------

    def transplant(self, source: Graph, given: dict[Tensor, Tensor]) -> Transplant:
        """What a rule built for one example, built for the batch."""
        return Batcher(source, given, self, self.batched)

    def note(self, d: Tensor, t: Tensor) -> None:
        """The gradient or tangent of a batched tensor is batched."""
        if t in self.batched:
            self.batched.add(d)

    def fitted(self, d: Any, t: Tensor, site: Site, of: Sequence[Tensor]) -> Any:
        """The entry of a rule for t, made of what is given for the tensors `of`."""
        shared = t not in self.batched and not any(x in self.batched for x in of)
        if shared and isinstance(d, Tensor) and d in self.batched:
            raise GradientError(
                f"under vmap, {site!r} reads nothing that differs between examples, so it is one "
                "site for all of them, but its rule does read what differs.\nLet the site read it "
                "too, or take the site out of vmap."
            )
        return self.summed(d, t)

    def summed(self, d: Any, t: Tensor) -> Any:
        """A gradient of t: summed over the examples where t is shared, one for each else."""
        if d is None or isinstance(d, Marker):
            return d
        if isinstance(d, Tensor) and d in self.batched:
            return d if t in self.batched else sum(d, axis=0)
        if t not in self.batched or isinstance(d, int | float):
            return d  # a number is broadcast anyway
        return repeated(cast(as_tensor(d), t.dtype), t)

    def tensor(self, t: Tensor) -> Tensor:
        """What stands for a tensor; a read of a batched one is batched."""
        if self.enter is not None and t not in self.tensors:
            assert isinstance(self.source, BodyGraph)
            assert self.outer is not None
            home = self.source.home_of(t)
            if home is not None:
                found = self.enter(self.outer.tensor(home))
                if found.graph is not self.graph:  # a body inside captured it, for that alone
                    return found
                self.tensors[t] = found
        found = super().tensor(t)
        if found not in self.batched and self._is_batched(found):
            self.batched.add(found)
        return found

    def _is_batched(self, t: Tensor) -> bool:
        while t not in self.batched:
            if isinstance(t.node.op, Residual):
                t = t.node.inputs[0]
            elif isinstance(t.graph, BodyGraph) and (home := t.graph.home_of(t)) is not None:
                t = home
            else:
                return False
        return True

    def _rule(self, rule: Any, owner: Node | Region) -> Any:
        return carried(rule, owner, self)

    # --- outputs that are the same for all examples ------------------------------------------

    def _same_for_all(self) -> dict[Tensor, Region]:
        """Outputs that are the same for all examples, of regions that read what differs.

        Such a region's rule is called for every example, so it has to be given the gradient of
        each, not their sum.
        """
        found: dict[Tensor, Region] = {}
        regions = list(marked_regions(self.source))
        while regions:
            varying = self._varying(found)
            more = {
                t: region
                for region in regions
                if not varying.isdisjoint(boundary_of(region).inputs)
                for t in boundary_of(region).outputs
                if t not in varying
            }
            if not more:
                break
            found |= more
        return found

    def _varying(self, start: Iterable[Tensor]) -> set[Tensor]:
        """The tensors of the source that differ between examples, as what they depend on does."""
        found = {t for t, here in self.tensors.items() if self._is_batched(here)}
        found.update(start)
        if isinstance(self.source, TraceGraph):
            assert self.outer is not None
            for home, t in self.source.captures.items():
                read = home.node.inputs[0] if isinstance(home.node.op, Residual) else home
                if self._is_batched(self.outer.tensor(read)):
                    found.add(t)
        for node in self.source.nodes:
            if not found.isdisjoint(node.inputs):
                found.update(node.outputs)
        return found

    def _repeat(self, t: Tensor) -> None:
        """Make an output for every example."""
        read = [self.tensors.get(x) for x in boundary_of(self.repeated[t]).inputs]
        like = next((x for x in read if x in self.batched), None)
        if like is None and t.type.static:  # only the count of examples is needed then
            like = next((x for x in self.batched if isinstance(x.shape[0], int)), None)
        if like is None:
            raise GraphError(
                f"under vmap, {t.name} ({t.where}) is built before anything that differs between "
                f"examples is read in {self.repeated[t]!r}; read that first"
            )
        self.tensors[t] = repeated(self.tensors[t], like)
        self.batched.add(self.tensors[t])

    # --- steps that are made more than once --------------------------------------------------

    def _note(self, step: Step, new: Step) -> None:
        """Note what was made of a step that stands in a body, or is one of several itself.

        A choice that was differentiated in another graph has a copy of its bodies there, and each
        of the two is batched. A trace is built anew for each call of its rule: those are apart.
        """
        home = at_home(step)
        graph = home.graph
        if home is step and isinstance(graph, TraceGraph):
            return
        above = [] if graph is None else around(graph)
        root = next((g for g in above if isinstance(g, TraceGraph)), None)
        owner: Any = self
        while isinstance(owner, Batcher) and owner.source is not root:
            owner = owner.outer
        first = owner.first.setdefault(home, new) if isinstance(owner, Batcher) else step
        if first is not new:
            note_twin(new, first)

    def _new_region(self, region: Region) -> Region:
        new = super()._new_region(region)
        self._note(region, new)
        return new

    def _program(self, program: Program) -> Program:
        """The program of a body that is the same for all examples, in a copy of the body."""
        body: Any = program.outputs[0].graph
        known = body in self.bodies
        found = super()._program(program)
        if not known:
            copy = self.bodies[body].graph
            for old, new in zip(bodies_of(body), bodies_of(copy), strict=True):
                new.twins.clear()
                for step, made in copied_steps(old, new):
                    self._note(step, made)
        return found

    # --- nodes -----------------------------------------------------------------------------------

    def place(self, node: Node) -> None:
        """Build one node for the batch."""
        inputs = tuple(self.tensor(t) for t in node.inputs)
        flags = tuple(t in self.batched for t in inputs)
        if any(flags):
            outputs = (
                self._outputs(node, inputs, flags)
                if node.stamp is None
                else self._stamped(node, inputs, flags)
            )
            self.batched.update(outputs)
            self.tensors.update(zip(node.outputs, outputs, strict=True))
            self._note_node(node)
            return
        super().place(node)
        self._note_node(node)
        for t in node.outputs:
            if t in self.repeated:
                with self.standing_for(node):
                    self._repeat(t)

    def _note_node(self, node: Node) -> None:
        if node.outputs:
            new = self.tensors[node.outputs[0]].node
            stamped = node.stamp is not None and new.stamp is None
            self._note(node, new.region if stamped and new.region is not None else new)

    def _outputs(
        self, node: Node, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]
    ) -> tuple[Tensor, ...]:
        if isinstance(node.op, Cond):
            return batched_choice(self, node, node.op, inputs, flags)
        with self.standing_for(node):
            return batched_outputs(self._op(node), inputs, flags)

    @contextmanager
    def standing_for(self, node: Node) -> Iterator[None]:
        """What is built in this block has the line, origin and controls of a node of the source."""
        graph = CONTEXT.get().graph
        start = len(graph.nodes)
        yield
        for new in graph.nodes[start:]:
            self._settle_provenance(node, new)
            new.controls = self.controls(node)

    def _stamped(
        self, node: Node, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]
    ) -> tuple[Tensor, ...]:
        """A stamped node as a region, since it may take several nodes to batch it."""
        context = CONTEXT.get()
        region = Region(
            context.graph,
            carried(node.stamp, node, self),
            parent=context.region,
            origin=context.origin,
            position=node.position,
            allow_empty=True,
        )
        context.graph.regions.append(region)
        context.region = region
        outputs = self._outputs(node, inputs, flags)
        context.region = region.parent
        region.pinned_inputs, region.pinned_outputs = inputs, outputs
        take_in_pins(region)
        region.open = False
        return outputs
