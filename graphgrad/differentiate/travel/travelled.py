"""Rules away from home: the trace of a rule, built anew where it is needed.

Where a marked node or region was carried to (a copy, another graph, a batch), its rule is
`Travelled`. A carrier, which knows what stands for what, builds the trace anew at the site in
question. What the rule asks of `site.default` is taken there, of the inside as it stands there: the
marks there count, not those of the home (`deferred`). Only where that is not possible is it taken
at home, and then marks that differ are an error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ...base.errors import GradientError, GraphError, RegionError
from ...ir.context import CONTEXT, Within
from ...ir.node import Node, Region, Tensor
from ...ops.base import is_zero
from ...ops.sources import apart
from ...regions.boundary import Boundary, boundary_of, is_empty
from ...regions.rules import BuiltinRule, Rule, as_rule
from ..additive import note_built_again
from ..call import told
from ..forward.judge import Watched
from ..levels import Step
from ..site import Site
from .carrier import Carrier, Convention, Rebuilding
from .deferred import Away, Deferred, NotDeferred
from .trace import AT_HOME, AtHome, Judged, Trace, ends, in_order

Zeros = frozenset[int]


class Travelled:
    """The rule, or the rule's own jvp, of a site that was carried away from its home.

    boundary  of the home, as it was then: a region may be unmarked there later
    """

    def __init__(
        self,
        home: Node | Region,
        rule: Any,
        carrier: Carrier,
        convention: Convention,
        *,
        forward: bool = False,
    ) -> None:
        self.home = home
        self.rule = rule
        self.carrier = carrier
        self.convention = convention
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
        takes, _ = ends(site, self.forward)
        for d, t in zip(given, takes, strict=True):
            if d is not None:
                self.convention.note(d, t)
        fn = _first(self.rule)
        if fn not in self._at_home and self.convention.defers(site):
            try:
                return AskingHere(self, site, given).answer()
            except NotDeferred:
                self._at_home.add(fn)
        return AskingHome(self, site, given).answer()

    def traced(self, zeros: Zeros, defaults: AtHome | Deferred) -> Trace:
        """A trace of it, given structural zeros at some places."""
        return Trace(
            self.home,
            self.rule,
            self.boundary,
            forward=self.forward,
            zeros=zeros,
            defaults=defaults,
        )

    def trace_of(self, zeros: Zeros, defaults: Deferred) -> Trace:
        """The same, once and for all where the rule asks nothing of its home or its site."""
        key = _first(self.rule), zeros
        trace = self._traces.get(key)
        if trace is None:
            trace = self.traced(zeros, defaults)
            if not trace.asked and not trace.graph.deferred:
                self._traces[key] = trace
        return trace

    def standing_for(self, nodes: Iterable[Node]) -> Iterator[Node]:
        """What stands here for nodes of the home and of graphs around it, of those carried here."""
        for node in nodes:
            for carrier in self.carrier.carriers_of(node):
                with suppress(GraphError):
                    yield carrier.tensor(node.outputs[0]).node


class Asking(ABC):
    """One call of a rule that travelled: its trace at home, built anew for the site here."""

    def __init__(self, rule: Travelled, site: Site, given: Sequence[Any]) -> None:
        self.rule, self.site, self.given = rule, site, given
        self.carrier, self.convention = rule.carrier, rule.convention
        self.zeros = frozenset([i for i, d in enumerate(given) if d is not None and is_zero(d)])

    @abstractmethod
    def traced(self) -> Trace:
        """The trace; an error where it does not serve here."""

    @abstractmethod
    def rebuilding(self, trace: Trace) -> Rebuilding:
        """The trace as it is built anew here."""

    def answer(self) -> Any:
        """The entries of the trace, as they are here."""
        trace, site, fitted = self.traced(), self.site, self.convention.fitted
        rebuilding = self.rebuilding(trace)
        rebuilding.run()
        self.note_again(trace, rebuilding)
        for i in told(trace.given):
            self.given[i].asked = True
        site.partials[:0] = trace.partials
        _, gives = ends(site, trace.forward)
        beyond = [self.carrier.tensor(t) for t, _ in trace.entries[len(gives) :]]
        gives = (*gives, *beyond)
        entries = [
            fitted(rebuilding.entry(d), t, site)
            for (_, d), t in zip(trace.entries, gives, strict=True)
        ]
        return dict(zip(gives, entries, strict=True)) if beyond else entries

    def transplant(self, trace: Trace) -> Rebuilding:
        """What builds the trace anew, in the current graph."""
        pairs = zip(trace.given, self.given, strict=True)
        here = {p: d for p, d in pairs if p is not None and not is_zero(p)}
        rebuilding = self.convention.transplant(self.carrier, trace.graph, here)
        rebuilding.site = self.site
        return rebuilding

    # --- marks inside, where the home was asked ------------------------------------------------

    def check_marks(self, trace: Trace) -> None:
        """An error where what the rule asked for at home is marked, or chosen, otherwise here."""
        inside = {}
        again = [s for s in trace.again.values() if isinstance(s, Region) or s.inputs]
        steps = in_order(trace.asked.union(again))
        for step in steps:
            counterparts = self.carrier.counterparts(step)
            if not counterparts and isinstance(step, Region):  # marked later around these, maybe
                steps += [r for r in step.graph.regions if r is not step and step.contains(r)]
                steps += boundary_of(step).members
            for there, carrier in counterparts:
                if not _is_as_carried(step, there, carrier):
                    raise _edited(self.site, there)
                if step in trace.asked:
                    inside[there] = step in trace.chosen
        check_choices(self.site, inside)

    def note_again(self, trace: Trace, rebuilding: Rebuilding) -> None:
        """Note what stands here for what the trace built once more, as that of what stands here."""
        for new, first in trace.again.items():
            for first_there, _ in self.carrier.counterparts(first)[:1]:
                for there, _ in rebuilding.counterparts(new):
                    if type(there) is type(first_there):
                        note_built_again(there, first_there)


class AskingHome(Asking):
    """A call whose default the home answers: the marks inside have to be the same."""

    def traced(self) -> Trace:
        """The trace, which is another one for each call."""
        judged = isinstance(self.site, Watched)
        trace = self.rule.traced(self.zeros, Judged() if judged else AT_HOME)
        self.convention.check(trace, self.site, self.carrier)
        self.check_marks(trace)
        return trace

    def rebuilding(self, trace: Trace) -> Rebuilding:
        """The trace, of which nothing is built yet."""
        return self.transplant(trace)


class AskingHere(Asking, Deferred):
    """A call whose default the site here answers, as far as the trace is built by then."""

    def __init__(self, rule: Travelled, site: Site, given: Sequence[Any]) -> None:
        super().__init__(rule, site, given)
        self._context = CONTEXT.get()
        self._rebuilding: Rebuilding | None = None

    def traced(self) -> Trace:
        """The trace; one that asks for nothing serves for all calls."""
        trace = self.rule.trace_of(self.zeros, self)
        if trace.asked:
            self.check_marks(trace)
        return trace

    def rebuilding(self, trace: Trace) -> Rebuilding:
        """The trace, built anew as far as it was there when its default was asked for."""
        if self._rebuilding is None:
            with Within(self._context.copy()):  # not in the trace, where this is asked for
                self._rebuilding = self.transplant(trace)
        return self._rebuilding

    def take(self, given: Mapping[int, Tensor], site: Away) -> dict[int, Any]:
        """The default of the site here, for gradients that the trace has built so far."""
        rebuilding = self.rebuilding(site.trace)
        with Within(self._context.copy()):
            return rebuilding.default_for(given)

    def note(self, stands: Sequence[Tensor], dxs: Sequence[Any]) -> None:
        """What was taken stands here for what stands in the trace."""
        assert self._rebuilding is not None
        self._rebuilding.tensors.update(zip(stands, dxs, strict=True))


def _first(rule: Any) -> Any:
    """The function that a rule means now, at the start of all its journeys."""
    fn = as_rule(rule).fn
    while isinstance(fn, Travelled):
        fn = as_rule(fn.rule).fn
    return fn


def is_carried(mark: Any, candidate: Any) -> bool:
    """Whether a mark that is found is one of the home as it was carried here."""
    if candidate is mark or (isinstance(mark, str) and candidate == mark):
        return True
    fn = getattr(candidate, "fn", None)
    return isinstance(fn, Travelled) and (
        fn.rule is mark or (isinstance(mark, str) and fn.rule == mark)
    )


def _is_as_carried(step: Step, there: Step, carrier: Carrier) -> bool:
    """Whether what stands for a step has the mark that was carried, and lies where it lay."""
    (around, mark), (around_there, mark_there) = _marked(step), _marked(there)
    if isinstance(step, Region) and isinstance(there, Region):
        unmarked = is_empty(there) and not is_empty(step)
        if unmarked or (step.order, step.escape) != (there.order, there.escape):
            return False
    try:
        carried_around = carrier.around_of(around)
    except GraphError:  # it was marked at home after that was carried
        return False
    return around_there is carried_around and is_carried(mark, mark_there)


def _marked(step: Step) -> tuple[Region | None, Any]:
    """The region around a step, and its mark."""
    return (step.parent, step.rule) if isinstance(step, Region) else (step.region, step.stamp)


def _edited(site: Site, step: Step) -> RegionError:
    return RegionError(
        f"the marks of {step.name} ({step.where}) differ from those that were copied with "
        f"{site!r}, or have since changed in the original graph: its rule was traced there, and "
        "does not see the change.\n"
        "Mark before the graph is copied or batched, or give the region another rule "
        "(replace=True)."
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
                "whose rule was copied from another graph: its default is built from that graph, "
                "where the choice is not known.\n"
                "Choose by op type or by a selection, for the region itself, or in the graph "
                "that it came from."
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
        return self.fn.convention.batches or (isinstance(inner, Carried) and inner.batched)

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


def carried(rule: Any, home: Node | Region, carrier: Carrier, convention: Convention) -> Rule:
    """The rule of a marked node or region of one graph, for what stands for it in another."""
    fn = Travelled(home, rule, carrier, convention)
    return Carried(fn, Travelled(home, rule, carrier, convention, forward=True))
