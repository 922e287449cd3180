"""Rules away from home: the trace of a rule, built anew where it is needed.

Where a marked node or region was carried to (a copy, another graph, a batch), its rule is
`Travelled`. A carrier, which knows what stands for what, builds the trace anew at the site in
question. What the rule asks of `site.default` is taken there, of the inside as it stands there: the
marks there count, not those of the home (`deferred`). Only where that is not possible is it taken
at home, and then marks that differ are an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from ...base.errors import GradientError, GraphError, RegionError
from ...ir.build import read_here
from ...ir.context import CONTEXT, Within
from ...ir.graph import Graph
from ...ir.node import Node, Region, Tensor
from ...ir.residual import Residual
from ...ops.base import is_zero
from ...ops.sources import apart
from ...regions.boundary import Boundary, boundary_of, known
from ...regions.rules import BuiltinRule, Rule, as_rule
from ..call import told
from ..forward.judge import Watched
from ..levels import Step
from ..site import Site
from .deferred import NotDeferred
from .trace import Trace, read_inside


class Rebuilding(Protocol):
    """A trace that is being built anew for a site.

    site     the site whose rule it is a trace of
    tensors  what stands for which tensor of the trace
    """

    site: Site
    tensors: dict[Tensor, Tensor]

    def run(self) -> None:
        """Build what is not there yet."""

    def entry(self, dx: Any) -> Any:
        """An entry of the rule, as it is here."""

    def default_for(self, given: Mapping[int, Tensor]) -> dict[int, Any]:
        """The default of the site, asked for while the trace is not complete, by place."""


class Carrier(Protocol):
    """Knows what stands for a tensor or region of one graph in another.

    batches: whether that is a batch of it
    """

    batches: bool

    @property
    def source(self) -> Graph | None:
        """The one graph; None where it carries from any."""

    @property
    def outer(self) -> Carrier | None:
        """What carries from the graph around that one; None where nothing does."""

    def tensor(self, t: Tensor) -> Tensor:
        """What stands for t; GraphError where nothing does."""

    def region(self, region: Region) -> Region:
        """What stands for a region."""

    def transplant(self, source: Graph, given: dict[Tensor, Tensor]) -> Rebuilding:
        """What builds a trace anew here."""

    def captured(self, t: Tensor) -> Tensor:
        """What stands here for a tensor that was captured at home, read as it was read there."""

    def note(self, d: Tensor, t: Tensor) -> None:
        """Learn of the gradient or tangent of a tensor before it is used."""

    def check(self, trace: Trace, site: Site) -> None:
        """GradientError where the traced rule does not serve for this site."""

    def fitted(self, d: Any, t: Tensor, site: Site) -> Any:
        """The entry of the site's rule for t here."""

    def defers(self, site: Site) -> bool:
        """Whether the default of the site here is what the rule means by it at home."""

    def around_of(self, region: Region | None) -> Region | None:
        """The region in which the members of a region, or of none, lie here."""


class Travelled:
    """The rule, or the rule's own jvp, of a site that was carried away from its home.

    boundary  of the home, as it was then: a region may be unmarked there later
    """

    def __init__(
        self, home: Node | Region, rule: Any, carrier: Carrier, *, forward: bool = False
    ) -> None:
        self.home = home
        self.rule = rule
        self.carrier = carrier
        self.forward = forward
        self.boundary: Boundary | None = None
        if isinstance(home, Region) and not home.open:
            self.boundary = boundary_of(home)
        self._traces: dict[Any, Trace] = {}
        self._at_home: set[Any] = set()

    @property
    def __name__(self) -> str:
        return as_rule(self.rule).name

    def __call__(self, site: Site, *given: Any) -> Any:
        """The trace, built anew for this site."""
        given = tuple(apart(given))
        takes = site.inputs if self.forward else site.outputs
        for d, t in zip(given, takes, strict=True):
            if d is not None:
                self.carrier.note(d, t)
        fn = _first(self.rule)
        if fn not in self._at_home and self.carrier.defers(site):
            try:
                return self._deferring(site, given)
            except NotDeferred:
                self._at_home.add(fn)
        return self._asking_home(site, given)

    def standing_for(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """What stands here for nodes of the home and of graphs around it, of those carried here."""
        for node in nodes:
            carrier: Carrier | None = self.carrier
            while carrier is not None and carrier.source is not node.graph:
                carrier = carrier.outer
            if carrier is not None:
                with suppress(GraphError):
                    yield carrier.tensor(node.outputs[0]).node

    def _deferring(self, site: Site, given: Sequence[Any]) -> Any:
        """By a trace that asks the site here for its default."""
        zeros = _zeros(given)
        key = _first(self.rule), zeros
        trace = self._traces.get(key)
        delivery = _Delivery(self.carrier, site, given)
        if trace is None:
            trace = self._traced(zeros=zeros, defaults=delivery.of)
            if trace.asked:
                self._check_marks(site, trace)
            elif not trace.graph.deferred:
                self._traces[key] = trace
        return self._answered(site, trace, delivery)

    def _asking_home(self, site: Site, given: Sequence[Any]) -> Any:
        """By a trace that asks the home for its default: the marks inside have to be the same."""
        trace = self._traced(zeros=_zeros(given), judged=isinstance(site, Watched))
        self.carrier.check(trace, site)
        self._check_marks(site, trace)
        return self._answered(site, trace, _Delivery(self.carrier, site, given))

    def _traced(self, **how: Any) -> Trace:
        return Trace(self.home, self.rule, self.boundary, forward=self.forward, **how)

    def _answered(self, site: Site, trace: Trace, delivery: _Delivery) -> Any:
        """The entries of the trace, as they are here."""
        transplant = delivery.of(trace).transplant
        transplant.run()
        for i in told(trace.given):
            delivery.given[i].asked = True
        site.partials[:0] = trace.partials
        gives = site.outputs if self.forward else site.inputs
        beyond = [self.carrier.tensor(t) for t, _ in trace.entries[len(gives) :]]
        gives = (*gives, *beyond)
        entries = [
            self.carrier.fitted(transplant.entry(d), t, site)
            for (_, d), t in zip(trace.entries, gives, strict=True)
        ]
        return dict(zip(gives, entries, strict=True)) if beyond else entries

    # --- marks inside, where the home was asked ------------------------------------------------

    def _check_marks(self, site: Site, trace: Trace) -> None:
        """An error where what the rule asked for at home is marked, or chosen, otherwise here."""
        inside = {}
        for step in trace.asked:
            with suppress(GraphError):  # what was not carried here was not chosen here
                there = self._stands_for(step)
                inside[there] = step in trace.chosen
                if not self._as_carried(step, there):
                    raise _edited(site, there)
        check_choices(site, inside)

    def _stands_for(self, step: Step) -> Step:
        """What stands here for a step of the home."""
        if isinstance(step, Region):
            return self.carrier.region(step)
        return self.carrier.tensor(step.outputs[0]).node

    def _as_carried(self, step: Step, there: Step) -> bool:
        """Whether what stands for a step has the mark that was carried, and lies where it lay."""
        if isinstance(step, Region):
            assert isinstance(there, Region)
            same = (step.order, step.escape) == (there.order, there.escape)
            empty = known(step).first is not None and known(there).first is None
            return same and not empty and is_carried(step.rule, there.rule)
        assert isinstance(there, Node)
        around, mark = there.region, there.stamp
        if step.stamp is not None and mark is None and around is not None:  # one node as several
            mark, around = around.rule, around.parent
        return around is self.carrier.around_of(step.region) and is_carried(step.stamp, mark)


class _Delivery:
    """One call of a rule that travelled: its trace, built anew as far as it is there."""

    transplant: Rebuilding

    def __init__(self, carrier: Carrier, site: Site, given: Sequence[Any]) -> None:
        self.carrier = carrier
        self.site = site
        self.given = given
        self.context = CONTEXT.get()
        self._trace: Trace | None = None

    def of(self, trace: Trace) -> _Delivery:
        """For this trace."""
        if self._trace is None:
            pairs = zip(trace.given, self.given, strict=True)
            here = {p: d for p, d in pairs if p is not None and not is_zero(p)}
            self._trace = trace
            with Within(self.context.copy()):  # not in the trace, where this is asked for
                self.transplant = self.carrier.transplant(trace.graph, here)
            self.transplant.site = self.site
        return self

    def take(self, given: Mapping[int, Tensor], site: Site) -> dict[int, Any]:
        """The default of the site here, for gradients that the trace has built so far."""
        with Within(self.context.copy()):
            return self.transplant.default_for(given)

    def note(self, made: Sequence[Tensor], dxs: Sequence[Any]) -> None:
        """What was taken stands here for what stands in the trace."""
        self.transplant.tensors.update(zip(made, dxs, strict=True))


def _first(rule: Any) -> Any:
    """The function that a rule means now, at the start of all its journeys."""
    fn = as_rule(rule).fn
    while isinstance(fn, Travelled):
        fn = as_rule(fn.rule).fn
    return fn


def _zeros(given: Sequence[Any]) -> frozenset[int]:
    return frozenset(i for i, d in enumerate(given) if d is not None and is_zero(d))


def is_carried(mark: Any, candidate: Any) -> bool:
    """Whether a mark that is found is one of the home as it was carried here."""
    if candidate is mark or (isinstance(mark, str) and candidate == mark):
        return True
    fn = getattr(candidate, "fn", None)
    return isinstance(fn, Travelled) and (
        fn.rule is mark or (isinstance(mark, str) and fn.rule == mark)
    )


def _edited(site: Site, step: Step) -> RegionError:
    return RegionError(
        f"the marks of {step.name} ({step.where}) are others than those that were carried here "
        f"with {site!r}, or were changed where that came from since: its rule was called there, "
        "and does not know of it.\nMark before the graph is copied or batched, or give the region "
        "another rule (replace=True)."
    )


def check_choices(site: Site, inside: Mapping[Step, bool]) -> None:
    """GradientError where the running call chose for a step inside a site that travelled in vain.

    inside  what the rule asks for inside -> whether the choice was seen at home
    """
    asked = CONTEXT.get().answering.asked
    if asked is not None:
        asked.update(inside)
    for step, seen in inside.items():
        if not seen and site._sweep.question.decides(step):
            raise GradientError(
                f"overrides= chooses for {step.name} ({step.where}), which lies inside {site!r}, "
                "whose rule came here from another graph: its default is taken there, where the "
                "choice is not known.\nChoose by op type or by a selection, for the region itself, "
                "or in the graph that it came from."
            )


class Carried(Rule):
    """The rule of a site that was carried away. A name is looked up when it is needed."""

    __slots__ = ("_forward",)
    fn: Travelled

    def __init__(self, fn: Travelled, forward: Travelled) -> None:
        self.fn = fn
        self._forward = forward

    @property
    def name(self) -> str:  # type: ignore[override]
        """What it is called at home."""
        rule = self.fn.rule
        return rule if isinstance(rule, str) else as_rule(rule).name

    @property
    def batched(self) -> bool:
        """Whether its site is one of a batch."""
        inner = self.fn.rule
        return self.fn.carrier.batches or (isinstance(inner, Carried) and inner.batched)

    @property
    def contract(self) -> Any:  # type: ignore[override]
        """What the rule declares itself to be."""
        return as_rule(self.fn.rule).contract

    @property
    def linear(self) -> bool | None:  # type: ignore[override]
        """Whether the rule says that it is linear."""
        rule = as_rule(self.fn.rule)
        return True if isinstance(rule, BuiltinRule) else rule.linear

    @property
    def position(self) -> Any:  # type: ignore[override]
        """Where the rule was defined."""
        return as_rule(self.fn.rule).position

    @property
    def jvp(self) -> Any:  # type: ignore[override]
        """The rule's own jvp, if it has one."""
        return None if as_rule(self.fn.rule).jvp is None else self._forward


def carried(rule: Any, home: Node | Region, carrier: Carrier) -> Rule:
    """The rule of a marked node or region of one graph, for what stands for it in another."""
    fn, forward = Travelled(home, rule, carrier), Travelled(home, rule, carrier, forward=True)
    return Carried(fn, forward)


def enter(t: Tensor, carrier: Carrier) -> Tensor:
    """What stands here for a tensor that was captured at home, read as it was read there."""
    op = t.node.op
    if not isinstance(op, Residual):
        return read_here((carrier.tensor(t),))[0]
    tensor, context = carrier.tensor(t.node.inputs[0]), CONTEXT.get()
    with suppress(GraphError):  # a region that was marked at home later is none here
        at = carrier.region(op.region)
        if not at.contains(context.region):
            tensor = read_inside(at, tensor)
    return read_here((tensor,))[0]
