"""Traces of rules: what a rule builds for its own site, as a graph.

A closure is never called with another graph's tensors. It is called once at home, with placeholders
for dys, in a scratch graph that captures what the rule reads of its home (tensors of the site,
residuals, and whatever it closes over). Where the trace is needed it is built anew (`travelled`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ...ir.build import adopted, build
from ...ir.context import CONTEXT, Context, bodies_around
from ...ir.graph import Graph, current
from ...ir.node import Node, Region, Tensor
from ...ir.residual import Residual, read_from, residual_of, unbuilt, unbuilt_residual
from ...ops.base import ZERO, ZeroTensor, is_zero
from ...ops.control import BodyGraph, BodyScope, around
from ...ops.random.keys import trace_around
from ...ops.sources import Placeholder
from ...regions.boundary import Boundary
from ...regions.index import bodies_of
from ...regions.rules import as_rule
from ..call import Calling
from ..choosing import inherited_choice
from ..forward.judge import Judge, Watched, WatchedNode, WatchedRegion
from ..levels import Step, built_from
from ..question import Question
from ..returned import seen_outside
from ..site import Answers, NodeSite, RegionSite, Site
from ..sweep import Sweep
from .deferred import Deferred, NotDeferred, traced_site


class TraceGraph(BodyGraph):
    """The scratch graph of a trace. What is read of the home is captured as the rule reads it.

    The home stays as it is: a Residual that is read of it is not a node there, unless the rule
    takes derivatives of what it built with respect to the home, which flow through it.

    deferred  whether it holds defaults that are still to be taken: then it is not differentiated
    """

    deferred = False
    scratch = True

    def __init__(self, outer: Graph, name: str) -> None:
        super().__init__(outer, name)
        self._reads: dict[Any, Tensor] = {}
        self._differentiated = False

    def adopt(self, tensor: Tensor) -> Tensor:
        """The placeholder that stands for a tensor of the home, or of a graph around it."""
        if tensor.graph is self.outer:
            if self._differentiated:
                tensor = residual_of(tensor, self._at_home())
            else:
                tensor = self._once(unbuilt_residual(tensor, self._at_home()))
        return super().adopt(tensor)

    def read_from(self, at: Region, t: Tensor) -> Tensor:
        """A tensor of the home as read from inside a region of it."""
        context = self._at_home()
        if self._differentiated:
            return read_from(at, t, context)
        return self._once(unbuilt(at, t, context))

    def _at_home(self) -> Context:
        here, there = current(), Context(self.outer)
        there.question, there.answering = here.question, here.answering
        there.origin, there.scope = here.origin, "gradients/"
        return there

    def _once(self, t: Tensor) -> Tensor:
        """The same Residual every time."""
        op = t.node.op
        if not isinstance(op, Residual):
            return t
        return self._reads.setdefault((t.node.inputs[0], op.region), t)

    def before_gradients(self, *, leaving: bool) -> None:
        """NotDeferred where a derivative leaves for the home: what is not here yet reads of it too.

        One that stays here is through what was built here alone, or by way of a `Default`, whose
        vjp raises the same.
        """
        if not leaving:
            return
        if self.deferred:
            raise NotDeferred
        self._differentiated = True
        self._first.clear()
        for placeholder, t in self.captures.items():
            self.capture(placeholder, self._built(t))

    def _built(self, t: Tensor) -> Tensor:
        """What was captured, as a node that derivatives flow through."""
        op = t.node.op
        if not isinstance(op, Residual) or t is not self._reads.get((t.node.inputs[0], op.region)):
            return t
        return read_from(op.region, t.node.inputs[0], self._at_home())


def read_inside(at: Region, t: Tensor) -> Tensor:
    """A tensor as read from inside a region; where a trace reads it, its home stays as it is."""
    context = CONTEXT.get()
    for graph in around(context.graph):
        if isinstance(graph, TraceGraph) and graph.outer is t.graph:
            return graph.read_from(at, t)
    return read_from(at, t, context)


class AtHome:
    """The home answers for the default of a site while its rule is traced, in the scratch graph."""

    by_home = True

    def as_site(self, trace: Trace, sweep: Answers) -> Site:
        """The site of a trace."""
        site: Site = traced_site(trace, sweep, NodeSite, RegionSite)
        return site


class Judged(AtHome):
    """So it does in forward mode, which judges the rules inside."""

    def as_site(self, trace: Trace, sweep: Answers) -> Site:
        """The site of a trace, as one whose default is judged."""
        site: Watched = traced_site(trace, sweep, WatchedNode, WatchedRegion)
        site.judge = Judge()
        return site


AT_HOME = AtHome()


def ends(site: Site, forward: bool) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """What a rule is given gradients of and what it answers for; its own jvp, tangents of."""
    return (site.inputs, site.outputs) if forward else (site.outputs, site.inputs)


class Trace:
    """What one rule builds for one site: a scratch graph from what it is given to what it gives.

    target    what the site is of
    reference  its rule, as it was carried away; `rule` is what was traced
    boundary  of the target, as it was then
    forward   of the rule's own jvp: it is given tangents of the inputs. A rule is given gradients
              of the outputs
    zeros     the places of what is known to be zero: rules inside may not be called then
    defaults  who answers for site.default

    given     placeholders of what it is given; structural zeros; None for integers and bools
    gives     the tensors of the site that an answer is due for
    entries   (tensor, what is returned for it), those of `gives` first: a tensor of the scratch
              graph, or anything else that a rule may return
    by_home   whether the home answers for site.default
    partials  what the default gave in the scratch graph, of each call
    asked     the steps of the home whose gradient the rule asked for
    again     what it built once more, with the marks of the home -> the steps of that
    first_draw  below it are the numbers of its own draws; other negative ones are of traces around
    chosen    the steps of the home for which the running gradients() call chooses a rule
    """

    def __init__(
        self,
        target: Node | Region,
        reference: Any,
        boundary: Boundary | None = None,
        *,
        forward: bool = False,
        zeros: Collection[int] = (),
        defaults: AtHome | Deferred = AT_HOME,
    ) -> None:
        home = target.graph
        assert home is not None
        self.target, self.reference, self.boundary = target, reference, boundary
        self.rule = as_rule(reference)
        self.forward = forward
        self.graph = TraceGraph(home, f"trace of {self.rule.name}")
        self.graph.of_call = True
        around = trace_around(home)
        self.graph.draws = 0 if around is None else around.draws
        self.first_draw = -self.graph.draws
        self.asked: set[Step] = set()
        self.by_home = defaults.by_home
        with BodyScope(self.graph):
            question = self._question(home)
            self.chosen = question.off | set(question.choice or ())
            site = defaults.as_site(self, Sweep(question))
            takes, self.gives = ends(site, forward)
            self.given = [_given(t, i in zeros) for i, t in enumerate(takes)]
            self.partials = site.partials
            with Calling(self.rule, site) as call:
                self.entries = [(t, self._entry(d)) for t, d in self._answer(call)]
        own: set[Any] = {s.graph for s in self.asked if self.graph in bodies_around(s.graph)}
        own.update(bodies_of(self.graph))
        again = (pair for each in own for pair in each.again.items())
        self.again = {new: first for new, first in again if _is_made(new)}
        first = (built_from(s) if s.graph in own else s for s in self.asked)
        self.asked = {step for step in first if step.graph not in own}

    def _question(self, home: Graph) -> Question:
        """What the rule is called for: for every question, under the choices of the running one."""
        context = CONTEXT.get()
        context.without_maps()
        context.scope, context.origin = "", None
        answering = context.answering.within()
        context.answering = answering._replace(running=(), asked=self.asked, draws=None)
        context.question = question = Question.under(inherited_choice(home))
        return question

    def _answer(self, call: Calling) -> list[tuple[Tensor, Any]]:
        if not self.forward:
            return call.answer(list(self.given))
        return list(zip(self.gives, call.tangents(self.given), strict=True))

    def _entry(self, d: Any) -> Any:
        if is_zero(d):
            return ZERO
        return seen_outside(adopted((d,))[0]) if isinstance(d, Tensor) else d


def _given(t: Tensor, zero: bool) -> Tensor | None:
    if not t.type.differentiable:
        return None
    return ZeroTensor(t) if zero else build(Placeholder(t.shape, t.dtype), ()).outputs[0]


def _is_made(step: Step) -> bool:
    """Whether a step makes anything: what a body is given is none of its own."""
    return isinstance(step, Region) or (bool(step.outputs) and type(step.op) is not Placeholder)


def in_order(steps: Iterable[Step]) -> list[Step]:
    """Steps as their graphs have them: the regions as they were opened, then the nodes."""
    return sorted(steps, key=lambda s: (s.graph and s.graph.number, isinstance(s, Node), s.index))
