"""Nodes built for a batch of examples, with their regions, rules and choices."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...base.errors import GradientError, PerformanceWarning
from ...ir.build import apply, build
from ...ir.context import CONTEXT
from ...ir.graph import Graph
from ...ir.node import STAMP, Node, Region, Tensor
from ...ir.region_tree import sites_at
from ...ir.residual import Residual
from ...ops.base import Marker, as_tensor
from ...ops.control import BodyGraph, around
from ...ops.per_example import PerExample
from ...ops.random.keys import FoldIn, RandomKey, call_key, drawn_anew
from ...ops.reduce.reductions import sum
from ...ops.shape.reshaping import broadcast_like
from ...ops.sources import identity
from ...regions.index import bodies_of
from ...regions.opening import region_around
from ...regions.rules import is_own
from ..additive import at_home, copied_steps, note_twin
from ..levels import Step
from ..site import Site
from ..travel.carrier import Carrier, as_one
from ..travel.importing import keep_provenance, kept_as, stamp_in
from ..travel.trace import Trace, TraceGraph
from ..travel.transplant import Tensors, Transplant
from ..travel.travelled import carried
from .batch import Batched, Flags, batched_outputs, repeated
from .sharing import Sharing, is_marked_inside, why_for_each

Rule = Callable[["Batcher", Node, Any, Tensors, Flags, bool], Tensors]
"""What an op with bodies is for a batch: its outputs, all for each example if it says so."""


class Examples:
    """A batch of examples: which tensors differ between them, and how rules are called for it.

    batched  the tensors that have the batch axis first, beside those that are reads of one
    like     a tensor whose first axis counts the examples, and through which nothing flows
    rules    what ops with bodies are for a batch
    """

    batches = True

    def __init__(
        self, batched: Iterable[Tensor], like: Tensor, rules: Mapping[type[Any], Rule]
    ) -> None:
        self.batched = set(batched)
        self.like = like
        self.rules = rules

    def __contains__(self, t: Tensor) -> bool:
        """Whether a tensor differs between examples; so does a read of one that does."""
        while t not in self.batched:
            if isinstance(t.node.op, Residual):
                t = t.node.inputs[0]
            elif isinstance(t.graph, BodyGraph) and (home := t.graph.home_of(t)) is not None:
                t = home
            else:
                return False
        return True

    def repeated(self, t: Tensor) -> Tensor:
        """t for every example: itself where it is so already."""
        if t in self:
            return t
        tiled = repeated(t, self.like)
        self.batched.add(tiled)
        return tiled

    def each(self, ts: Sequence[Tensor], flags: Iterable[bool]) -> list[Tensor]:
        """Tensors, those with a flag for every example."""
        return [self.repeated(t) if flag else t for t, flag in zip(ts, flags, strict=True)]

    def summed(self, d: Any, t: Tensor) -> Any:
        """A gradient of t from every example: added up where t is shared, one for each else."""
        if d is None or isinstance(d, Marker):
            return d
        number = not isinstance(d, Tensor) and not np.ndim(d)
        if t in self:
            return d if number else self.repeated(_at(d, t))
        total = sum(self.repeated(_at(d, t)), axis=0)
        return broadcast_like(total, t) if number else total

    # --- how rules are called ----------------------------------------------------------------

    def carries(self, rule: Any, owner: Node | Region) -> bool:
        """Any rule but one of the library, which works for a batch as it is."""
        return not is_own(rule)

    def transplant(self, carrier: Carrier, source: Graph, given: dict[Tensor, Tensor]) -> Batcher:
        """What a rule built for one example, built for the batch."""
        return Batcher(source, given, carrier, self)

    def note(self, d: Tensor, t: Tensor) -> None:
        """The gradient or tangent of a batched tensor is batched."""
        if t in self:
            self.batched.add(d)

    def check(self, trace: Trace, site: Site, carrier: Carrier) -> None:
        """GradientError where a rule that is to be called once for all has to be for each."""
        if not self._shared(site.inputs, site.outputs):
            return

        def differs(t: Tensor) -> bool:
            while isinstance(t.node.op, Residual):
                t = t.node.inputs[0]
            return carrier.tensor(t) in self

        why = why_for_each(trace, differs)
        if why is not None:
            raise GradientError(
                f"vmap kept {site!r} as one site for all examples, since its rule could be called "
                "once for the sum of their gradients. Its gradient rule is now "
                f"{trace.rule.name!r} (defined at {trace.rule.where}), which must be called for "
                f"each example: {why}.\n"
                "Call vmap after the rule is registered, or declare linear=False before."
            )

    def fitted(self, d: Any, t: Tensor, site: Site) -> Any:
        """The entry of a rule for t: of a site that all examples share as it is, else of each."""
        return d if self._shared((t,), site.inputs, site.outputs) else self.summed(d, t)

    def defers(self, site: Site) -> bool:
        """Not where inputs are shared, of which the site here gives the sum over the examples.

        Nor where one is there twice: a node gives each its part, its region the first all of it.
        """
        apart = len(set(site.inputs)) == len(site.inputs)
        return apart and all(x in self for x in site.inputs if x.type.differentiable)

    def _shared(self, *tensors: Tensors) -> bool:
        """Whether all these are the same for all examples."""
        return not any(t in self for ts in tensors for t in ts)


class Batcher(Transplant):
    """A transplant into a batch: what depends on a batched tensor has the batch axis first.

    examples  the batch
    for_each  tensors of the source that are made for every example although they are the same
    enter     where the source is a body of control flow: how it reads a tensor of the batch around
    inside    body of the source -> what built it, for the choices that share it, and what it was
              given (batched_choice)
    first     step -> the first that was made of it
    builders  body of the source -> all that built it
    """

    outer: Carrier

    def __init__(
        self,
        source: Graph,
        given: dict[Tensor, Tensor],
        outer: Carrier,
        examples: Examples,
        enter: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__(source, given, outer, examples)
        self.examples = examples
        self.for_each: set[Tensor] = set()
        self.enter = enter
        self.inside: dict[Graph, tuple[Batcher, dict[Tensor, Tensor]]] = {}
        self.first: dict[Step, Step] = {}
        self.builders: dict[Graph, list[Carrier]] = {}

    def within(self, body: BodyGraph, enter: Callable[[Tensor], Tensor]) -> Batcher:
        """What builds a body for the batch, in the current graph."""
        inner = Batcher(body, {}, self, self.examples, enter)
        self.builders.setdefault(body, []).append(inner)
        return inner

    # --- a node ------------------------------------------------------------------------------

    def place(self, node: Node, inputs: Tensors) -> Tensors:
        """The outputs of a node for the batch; of one that is the same for all, as they were."""
        flags = tuple([t in self.examples for t in inputs])
        for_each = any(flags) or drawn_anew(node.op) or not self.for_each.isdisjoint(node.outputs)
        if not for_each and not is_marked_inside(node.op):
            outputs = kept_as(self, node, inputs)
        elif node.stamp is None:
            outputs = self._batched(node, inputs, flags, for_each)
        else:
            outputs = self._stamped(node, inputs, flags, for_each)
        if outputs:
            self._note(node, as_one(node, outputs[0].node))
        return outputs

    def _batched(self, node: Node, inputs: Tensors, flags: Flags, for_each: bool) -> Tensors:
        rule = self.examples.rules.get(type(node.op))
        if rule is not None:
            return rule(self, node, node.op, inputs, flags, for_each)
        with self.standing_for(node):
            if isinstance(node.op, RandomKey):
                outputs = self._keys(node.op)
            elif not any(flags):
                outputs = build(self.op(node), inputs).outputs
                return tuple(map(self.examples.repeated, outputs)) if for_each else outputs
            else:
                outputs = batched_outputs(self.op(node), inputs, flags)
        if any(isinstance(t.node.op, PerExample) for t in outputs):
            _warn_of_loop(node)
        self.examples.batched.update(outputs)
        return outputs

    def _keys(self, op: RandomKey) -> Tensors:
        """A key of its own for every example: that of all with the example's number folded in."""
        key = call_key(self.number_of(op)) if self.drawn_here(op) else apply(op)
        return (apply(FoldIn(), key, Batched((), (), self.examples.like).numbers()),)

    def _stamped(self, node: Node, inputs: Tensors, flags: Flags, for_each: bool) -> Tensors:
        """A stamped node as a region, since it may take several nodes to batch it."""
        region = region_around(
            lambda _: (inputs, self._batched(node, inputs, flags, for_each)),
            carried(node.stamp, node, self, self.examples),
            position=node.position,
            allow_empty=True,
            kind=STAMP + node.op.type,
        )
        return region.pinned_outputs or ()

    @contextmanager
    def standing_for(self, node: Node) -> Iterator[None]:
        """What is built in this block has the line, origin and controls of a node of the source."""
        graph = CONTEXT.get().graph
        start = len(graph.nodes)
        yield
        for new in graph.nodes[start:]:
            keep_provenance(self, node, new)
            new.controls = self.controls(node)

    # --- what the source captured --------------------------------------------------------------

    def outside(self, t: Tensor) -> Tensor:
        """A tensor around the source, which a body of control flow reads in a way of its own."""
        home = self.home_of(t)
        if home is None:
            raise self.not_carried(t)
        if self.enter is None:
            return self.outer.captured(home)
        return self.enter(self.outer.tensor(home))

    def home_of(self, t: Tensor) -> Tensor | None:
        """The tensor around the source that one of it stands for."""
        return self.source.home_of(t) if isinstance(self.source, BodyGraph) else None

    def of_body(self, body: Graph) -> list[Carrier]:
        """What built a body, maybe several times, and what copied it."""
        return [*self.builders.get(body, ()), *super().of_body(body)]

    def unknown(self, t: Tensor) -> bool:
        """Whether t stands for a tensor of a body around that was not built there."""
        batcher = self
        while t not in batcher.tensors:
            home = batcher.home_of(t)
            if home is None:
                return True
            if not isinstance(batcher.outer, Batcher) or home.graph is not batcher.outer.source:
                return False
            batcher, t = batcher.outer, home
        return False

    def _captures_varying(self, t: Tensor) -> bool:
        """Whether t stands in the source for a tensor outside that differs between examples."""
        home = self.home_of(t)
        if home is None or self.unknown(t):
            return False
        while isinstance(home.node.op, Residual):
            home = home.node.inputs[0]
        return self.outer.tensor(home) in self.examples

    def begin(self) -> None:
        """See what is made for every example though it is the same."""
        varying = {t for t, here in self.tensors.items() if here in self.examples}
        varying |= {t for n in self.source.nodes if drawn_anew(n.op) for t in n.outputs}
        if isinstance(self.source, TraceGraph):
            varying |= set(filter(self._captures_varying, self.source.captures))
        self.for_each = Sharing(self.source, varying, self._captures_varying).for_each()
        for t in filter(sites_at, self._given):  # a site counts for what is built here alone
            given = self.tensors[t]
            given = self.examples.repeated(given) if t in self.for_each else given
            self.tensors[t] = identity(given)
            if given in self.examples:
                self.examples.batched.add(self.tensors[t])

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

    def opened(self, region: Region, new: Region) -> None:
        """Note what was made of a region."""
        self._note(region, new)

    def copied(self, body: Graph, copy: Graph) -> None:
        """Note what was made of the steps of a body that is the same for all examples."""
        stamp_in(copy)
        for old, new in zip(bodies_of(body), bodies_of(copy), strict=True):
            new.twins.clear()
            for step, twin in copied_steps(old, new):
                self._note(step, twin)


_LOOPED: set[str] = set()
"""The op types that the user was told of."""


def _warn_of_loop(node: Node) -> None:
    op = node.op
    while isinstance(op, PerExample):
        op = op.op
    if op.type not in _LOOPED:
        _LOOPED.add(op.type)
        message = (
            f"{op.type} has no batching rule for these arguments: under vmap, {node.name} "
            f"({node.where}) runs once for each example"
        )
        warnings.warn(message, PerformanceWarning, stacklevel=2)


def _at(d: Any, t: Tensor) -> Tensor:
    """What a rule gave for t, as a tensor."""
    return d if isinstance(d, Tensor) else as_tensor(d, t.dtype)
