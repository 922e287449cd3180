"""Nodes built for a batch of examples, with their regions, rules and choices."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...base.errors import GradientError, PerformanceWarning
from ...ir.build import apply, build
from ...ir.context import CONTEXT
from ...ir.graph import Graph
from ...ir.node import STAMP, Node, Region, RuleCall, Tensor
from ...ir.program import Program
from ...ir.residual import Residual
from ...ops.base import Marker, as_tensor
from ...ops.control import BodyGraph, Cond, Scan, While, around
from ...ops.per_example import PerExample
from ...ops.random.keys import FoldIn, RandomKey, call_key, drawn_anew
from ...ops.reduce.reductions import sum
from ...ops.shape.reshaping import broadcast_like
from ...regions.index import bodies_of
from ...regions.opening import region_around
from ...regions.rules import is_own
from ..additive import at_home, copied_steps, note_twin
from ..call import outer_reads
from ..levels import Step
from ..site import Site
from ..travel.importing import Importer
from ..travel.trace import Trace, TraceGraph
from ..travel.transplant import Transplant
from ..travel.travelled import Carrier, carried
from .batch import Batched, batched_outputs, repeated
from .batched_choice import batched_choice
from .batched_loop import batched_scan, batched_while
from .bodies import unknown
from .sharing import Sharing, is_marked_inside, why_for_each


class Batcher(Importer):
    """A transplant into a batch: what depends on a batched tensor has the batch axis first.

    batched   the new tensors that have it; shared with the batchers of the rules inside
    examples  a tensor whose first axis counts the examples, and through which nothing flows
    for_each  tensors of the source that are made for every example although they are the same
    enter     where the source is a body of control flow: how it reads a tensor of the batch around
    inside    body of the source -> what built it, for the choices that share it, and what it was
              given (batched_choice)
    first     step -> the first that was made of it
    """

    batches = True

    def __init__(
        self,
        source: Graph,
        given: dict[Tensor, Tensor],
        outer: Carrier,
        batched: set[Tensor],
        examples: Tensor,
        enter: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__(source, given, outer)
        self.batched = batched
        self.examples = examples
        self.for_each: set[Tensor] = set()
        self.enter = enter
        self.inside: dict[Graph, tuple[Batcher, dict[Tensor, Tensor]]] = {}
        self.first: dict[Step, Step] = {}

    def within(self, body: BodyGraph, enter: Callable[[Tensor], Tensor]) -> Batcher:
        """What builds a body for the batch, in the current graph."""
        return Batcher(body, {}, self, self.batched, self.examples, enter)

    def run(self, nodes: Iterable[Node] | None = None) -> None:
        """Build nodes of the source for the batch."""
        self.for_each = self._made_for_each()
        super().run(nodes)

    # --- as a carrier of rules ---------------------------------------------------------------

    def transplant(self, source: Graph, given: dict[Tensor, Tensor]) -> Transplant:
        """What a rule built for one example, built for the batch."""
        return Batcher(source, given, self, self.batched, self.examples)

    def note(self, d: Tensor, t: Tensor) -> None:
        """The gradient or tangent of a batched tensor is batched."""
        if t in self.batched:
            self.batched.add(d)

    def fitted(self, d: Any, t: Tensor, site: Site) -> Any:
        """The entry of a rule for t: of a site that all examples share as it is, else of each."""
        if self.batched.isdisjoint((t, *site.inputs, *site.outputs)):
            return d
        return self.summed(d, t)

    def defers(self, site: Site) -> bool:
        """Not where inputs are shared, of which the site here gives the sum over the examples.

        Nor where one is there twice: a node gives each its part, its region the first all of it.
        """
        apart = len(set(site.inputs)) == len(site.inputs)
        return apart and all(x in self.batched for x in site.inputs if x.type.differentiable)

    def default_for(self, given: Mapping[int, Tensor]) -> dict[int, Any]:
        """The default of the site here, for a batch."""
        self.for_each = self._made_for_each()
        return super().default_for(given)

    def summed(self, d: Any, t: Tensor) -> Any:
        """A gradient of t from every example: added up where t is shared, one for each else."""
        if d is None or isinstance(d, Marker):
            return d
        number = not isinstance(d, Tensor) and not np.ndim(d)
        if t in self.batched:
            return d if number else self.repeated(_at(d, t))
        total = sum(self.repeated(_at(d, t)), axis=0)
        return broadcast_like(total, t) if number else total

    def tensor(self, t: Tensor) -> Tensor:
        """What stands for a tensor; a read of a batched one is batched."""
        if self.enter is not None and t not in self.tensors:
            assert isinstance(self.source, BodyGraph)
            assert self.outer is not None
            home = self.source.home_of(t)
            if home is not None:
                counterpart = self.enter(self.outer.tensor(home))
                if counterpart.graph is not self.graph:  # a body inside captured it, for that alone
                    return counterpart
                self.tensors[t] = counterpart
        counterpart = super().tensor(t)
        if counterpart not in self.batched and self._is_batched(counterpart):
            self.batched.add(counterpart)
        return counterpart

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
        return rule if is_own(rule) else carried(rule, owner, self)

    # --- what is the same for all examples ---------------------------------------------------

    def check(self, trace: Trace, site: Site) -> None:
        """GradientError where a rule that is to be called once for all has to be for each."""
        if not self.batched.isdisjoint((*site.inputs, *site.outputs)):
            return
        why = why_for_each(trace, self._differs)
        if why is not None:
            raise GradientError(
                f"{site!r} was put once for all examples by vmap, since its rule could be called "
                f"once for the sum of what arrives. Its gradient rule is {trace.rule.name!r} "
                f"(defined at {trace.rule.where}) now, which has to be called for each: {why}.\n"
                "Call vmap after the rule is registered, or declare linear=False before."
            )

    def _differs(self, t: Tensor) -> bool:
        """Whether a tensor of the source differs between examples."""
        while isinstance(t.node.op, Residual):
            t = t.node.inputs[0]
        return self._is_batched(self.tensor(t))

    def _captures_varying(self, t: Tensor) -> bool:
        """Whether t stands in the source for a tensor outside that differs between examples."""
        home = self.source.home_of(t) if isinstance(self.source, BodyGraph) else None
        if home is None or unknown(self, t):
            return False
        while isinstance(home.node.op, Residual):
            home = home.node.inputs[0]
        assert self.outer is not None
        return self._is_batched(self.outer.tensor(home))

    def _made_for_each(self) -> set[Tensor]:
        """The tensors of the source that are made for every example though they are the same."""
        varying = {t for t, here in self.tensors.items() if self._is_batched(here)}
        varying |= {t for n in self.source.nodes if drawn_anew(n.op) for t in n.outputs}
        if isinstance(self.source, TraceGraph):
            varying |= set(filter(self._captures_varying, self.source.captures))
        return Sharing(self.source, varying, self._captures_varying).for_each()

    # --- steps that are made more than once --------------------------------------------------

    def _note(self, step: Step, new: Step) -> None:
        """Note what was made of a step, of which there may be several.

        A choice that was differentiated in another graph has a copy of its bodies there, and a
        checkpoint that was differentiated built its inside once more: each of the two is batched. A
        trace is built anew for each call of its rule: those are apart.
        """
        home = at_home(step)
        root = next((g for g in around(home.graph) if isinstance(g, TraceGraph)), None)
        owner: Any = self
        while isinstance(owner, Batcher) and owner.source is not root:
            owner = owner.outer
        known = getattr(home, "first", None) or home  # it was batched before it had copies, maybe
        first = owner.first.setdefault(known, new) if isinstance(owner, Batcher) else step
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
        copied = super()._program(program)
        if not known:
            copy = self.bodies[body].graph
            for old, new in zip(bodies_of(body), bodies_of(copy), strict=True):
                new.twins.clear()
                for step, made in copied_steps(old, new):
                    self._note(step, made)
        return copied

    # --- nodes -----------------------------------------------------------------------------------

    def _origin(self, origin: Node | RuleCall | None) -> Node | RuleCall | None:
        """The call of a rule of a stamped node is one of the region that stands for the node."""
        counterpart = super()._origin(origin)
        if isinstance(counterpart, RuleCall) and isinstance(origin, RuleCall):
            region = self._region_of(origin.site, counterpart.site)
            if region is not None:
                outer = outer_reads(region, region.pinned_outputs or ())
                return RuleCall(region, counterpart.rule, outer)
        return counterpart

    def _region_of(self, site: Node | Region, there: Node | Region) -> Region | None:
        """The region that stands for a stamped node, which took one node or several."""
        if not isinstance(site, Node) or site.stamp is None:
            return None
        return there.region if isinstance(there, Node) and there.stamp is None else None

    def place(self, node: Node) -> None:
        """Build one node for the batch."""
        inputs = tuple(self.tensor(t) for t in node.inputs)
        flags = tuple(t in self.batched for t in inputs)
        for_each = drawn_anew(node.op) or not self.for_each.isdisjoint(node.outputs)
        if any(flags) or for_each or is_marked_inside(node.op):
            make = self._outputs if node.stamp is None else self._stamped
            outputs = make(node, inputs, flags)
            self.tensors.update(zip(node.outputs, outputs, strict=True))
        else:
            super().place(node)
        self._note_node(node)

    def _note_node(self, node: Node) -> None:
        if node.outputs:
            new = self.tensors[node.outputs[0]].node
            self._note(node, self._region_of(node, new) or new)

    def _outputs(
        self, node: Node, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]
    ) -> tuple[Tensor, ...]:
        for_each = any(flags) or not self.for_each.isdisjoint(node.outputs) or drawn_anew(node.op)
        if isinstance(node.op, Cond):
            return batched_choice(self, node, node.op, inputs, flags, for_each)
        if isinstance(node.op, Scan):
            return batched_scan(self, node, node.op, inputs, flags, for_each)
        if isinstance(node.op, While):
            return batched_while(self, node, node.op, inputs, flags, for_each)
        with self.standing_for(node):
            if isinstance(node.op, RandomKey):
                outputs = self._keys(node.op)
            elif not any(flags):
                outputs = build(self._op(node), inputs).outputs
                return tuple(map(self.repeated, outputs)) if for_each else outputs
            else:
                outputs = batched_outputs(self._op(node), inputs, flags)
        if any(isinstance(t.node.op, PerExample) for t in outputs):
            _warn_of_loop(node)
        self.batched.update(outputs)
        return outputs

    def _keys(self, op: RandomKey) -> tuple[Tensor, ...]:
        """A key of its own for every example: that of all with the example's number folded in."""
        key = call_key(self.number_of(op)) if self._drawn_here(op) else apply(op)
        return (apply(FoldIn(), key, Batched((), (), self.examples).numbers()),)

    def repeated(self, t: Tensor) -> Tensor:
        """t for every example: itself where it is so already."""
        if t in self.batched:
            return t
        tiled = repeated(t, self.examples)
        self.batched.add(tiled)
        return tiled

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
        region = region_around(
            lambda _: (inputs, self._outputs(node, inputs, flags)),
            carried(node.stamp, node, self),
            position=node.position,
            allow_empty=True,
            kind=STAMP + node.op.type,
        )
        return region.pinned_outputs or ()


_LOOPED: set[str] = set()
"""The op types that the user was told of."""


def _warn_of_loop(node: Node) -> None:
    op = node.op
    while isinstance(op, PerExample):
        op = op.op
    if op.type not in _LOOPED:
        _LOOPED.add(op.type)
        message = (
            f"{op.type} has no batched form for what it is given here: under vmap, {node.name} "
            f"({node.where}) is run for one example after the other"
        )
        warnings.warn(message, PerformanceWarning, stacklevel=2)


def _at(d: Any, t: Tensor) -> Tensor:
    """What a rule gave for t, as a tensor."""
    return d if isinstance(d, Tensor) else as_tensor(d, t.dtype)
