"""Rules away from home: traced once at their own site, and built anew where they are needed.

A closure is never called with another graph's tensors. Where a marked node or region was carried to
(a copy, another graph, a batch), its rule is `Travelled`: it is called once at home, with
placeholders for dys, in a scratch graph that captures what the rule reads of its home (tensors of
the site, residuals, and whatever it closes over). A carrier, which knows what stands for what,
builds that trace anew at the site in question.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from ..ir.build import adopted, build, read_here
from ..ir.context import CONTEXT, Context
from ..ir.errors import GradientError, GraphError
from ..ir.graph import Graph, current
from ..ir.node import Node, Region, Tensor
from ..ir.residual import Residual, read_from, residual_of
from ..ops.base import ZERO, ZeroTensor, is_zero
from ..ops.control import BodyGraph, BodyScope
from ..ops.sources import Placeholder
from ..regions.rules import Rule, as_rule
from .call import answer, own_jvp, running, seen_outside
from .choices import inherited_choice
from .forward import Question, Watched, watched
from .levels import Step
from .site import NodeSite, RegionSite, Site
from .sweep import Sweep

if TYPE_CHECKING:
    from .transplant import Transplant


class Carrier(Protocol):
    """Knows what stands for a tensor or region of one graph in another."""

    def tensor(self, t: Tensor) -> Tensor:
        """What stands for t; GraphError where nothing does."""

    def region(self, region: Region) -> Region:
        """What stands for a region."""

    def transplant(self, source: Graph, given: dict[Tensor, Tensor]) -> Transplant:
        """What builds a trace anew here."""

    def note(self, d: Tensor, t: Tensor) -> None:
        """Learn of the gradient or tangent of a tensor before it is used."""

    def fitted(self, d: Any, t: Tensor, site: Site, of: Sequence[Tensor]) -> Any:
        """The entry of the site's rule for t here; it is made of what is given for `of`."""


class TraceGraph(BodyGraph):
    """The scratch graph of a trace. What is read of the home is captured as the rule reads it."""

    def adopt(self, tensor: Tensor) -> Tensor:
        """The placeholder that stands for a tensor of the home, or of a graph around it."""
        if tensor.graph is self.outer:
            here = current()
            at_home = Context(self.outer)
            at_home.origin, at_home.running, at_home.scope = here.origin, here.running, "gradients/"
            at_home.groups = here.groups
            tensor = residual_of(tensor, at_home)
        return super().adopt(tensor)


class Trace:
    """What one rule builds for one site: a scratch graph from what it is given to what it gives.

    forward  of the rule's own jvp: it is given tangents of the inputs. A rule is given gradients of
             the outputs
    judged   for forward mode, which judges the rules inside
    zeros    the places of what is known to be zero: rules inside may not be called then

    given    placeholders of what it is given; structural zeros; None for integers and bools
    gives    the tensors of the site that an answer is due for
    entries  (tensor, what is returned for it), those of `gives` first: a tensor of the scratch
             graph, or anything else that a rule may return
    asked    the steps of the home whose gradient the rule asked for
    chosen   the steps of the home for which the running gradients() call chooses a rule
    """

    def __init__(
        self,
        target: Node | Region,
        reference: Any,
        *,
        forward: bool = False,
        judged: bool = False,
        zeros: Collection[int] = (),
    ) -> None:
        home = target.graph
        assert home is not None
        rule = as_rule(reference)
        self.graph = TraceGraph(home, f"trace of {rule.name}")
        self.asked: set[Step] = set()
        with BodyScope(self.graph):
            context = CONTEXT.get()
            context.without_maps()
            context.scope, context.origin = "", None
            context.running, context.live, context.asked = (), None, self.asked
            chosen = inherited_choice(home)
            context.choice, context.groups = chosen, chosen.groups
            self.chosen = chosen.off | set(chosen)
            make: Any = RegionSite if isinstance(target, Region) else NodeSite
            site: Site = make(target, reference, Sweep(context, chosen.off, frozenset(), chosen))
            if judged:
                site = watched(site, Question())
            takes, self.gives = site.outputs, site.inputs
            if forward:
                takes, self.gives = self.gives, takes
            self.given = [_given(t, i in zeros) for i, t in enumerate(takes)]
            with running(rule, site):
                self.entries = [(t, self._entry(d)) for t, d in self._answer(rule, site, forward)]

    def _answer(self, rule: Rule, site: Site, forward: bool) -> list[tuple[Tensor, Any]]:
        if not forward:
            return answer(rule, site, list(self.given))
        return list(zip(site.outputs, own_jvp(rule, site, self.given), strict=True))

    def _entry(self, d: Any) -> Any:
        if is_zero(d):
            return ZERO
        return seen_outside(adopted((d,))[0]) if isinstance(d, Tensor) else d


def _given(t: Tensor, zero: bool) -> Tensor | None:
    if not t.type.differentiable:
        return None
    return ZeroTensor(t) if zero else build(Placeholder(t.shape, t.dtype), ()).outputs[0]


class Travelled:
    """The rule, or the rule's own jvp, of a site that was carried away from its home."""

    def __init__(
        self, home: Node | Region, rule: Any, carrier: Carrier, *, forward: bool = False
    ) -> None:
        self.home = home
        self.rule = rule
        self.carrier = carrier
        self.forward = forward
        self._traces: dict[Any, Trace] = {}

    @property
    def __name__(self) -> str:
        return as_rule(self.rule).name

    def __call__(self, site: Site, *given: Any) -> Any:
        """The trace, built anew for this site."""
        trace = self._trace(site, given)
        takes, gives = site.outputs, site.inputs
        if self.forward:
            takes, gives = gives, takes
        for d, t in zip(given, takes, strict=True):
            if d is not None:
                self.carrier.note(d, t)
        pairs = zip(trace.given, given, strict=True)
        here = {p: d for p, d in pairs if p is not None and not is_zero(p)}
        transplant = self.carrier.transplant(trace.graph, here)
        transplant.run()
        beyond = [self.carrier.tensor(t) for t, _ in trace.entries[len(gives) :]]
        gives = (*gives, *beyond)
        found = [
            self.carrier.fitted(transplant.entry(d), t, site, takes)
            for (_, d), t in zip(trace.entries, gives, strict=True)
        ]
        return dict(zip(gives, found, strict=True)) if beyond else found

    def _trace(self, site: Site, given: Sequence[Any]) -> Trace:
        """The trace: made once, but anew for a call that chooses rules, which may be of inside."""
        zeros = frozenset(i for i, d in enumerate(given) if d is not None and is_zero(d))
        key = isinstance(site, Watched), zeros
        if CONTEXT.get().overrides is None:
            if key not in self._traces:
                self._traces[key] = self._traced(*key)
            return self._traces[key]
        trace = self._traced(*key)
        inside = {}
        for step in trace.asked:
            with suppress(GraphError):  # what was not carried here was not chosen here
                inside[self._stands_for(step)] = step in trace.chosen
        check_choices(site, inside)
        return trace

    def _traced(self, judged: bool, zeros: Collection[int]) -> Trace:
        return Trace(self.home, self.rule, forward=self.forward, judged=judged, zeros=zeros)

    def _stands_for(self, step: Step) -> Step:
        """What stands here for a step of the home."""
        if isinstance(step, Region):
            return self.carrier.region(step)
        return self.carrier.tensor(step.outputs[0]).node


def check_choices(site: Site, inside: Mapping[Step, bool]) -> None:
    """GradientError where the running call chose for a step inside a site that travelled in vain.

    inside  what the rule asks for inside -> whether the choice was seen at home
    """
    asked = CONTEXT.get().asked
    if asked is not None:
        asked.update(inside)
    for step, seen in inside.items():
        if not seen and (step in site._sweep.off or step in site._sweep.overrides):
            raise GradientError(
                f"overrides= chooses for {step.name} ({step.where}), which lies inside {site!r}, "
                "whose rule came here from another graph: its default is taken there, where the "
                "choice is not known.\nChoose by op type or by a selection, for the region itself, "
                "or in the graph that it came from."
            )


def carried(rule: Any, home: Node | Region, carrier: Carrier) -> Rule:
    """The rule of a marked node or region of one graph, for what stands for it in another."""
    known = as_rule(rule)
    return Rule(
        Travelled(home, rule, carrier),
        known.name,
        contract=known.contract,
        linear=known.linear,
        jvp=None if known.jvp is None else Travelled(home, rule, carrier, forward=True),
        position=known.position,
    )


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
