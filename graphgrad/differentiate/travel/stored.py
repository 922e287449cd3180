"""Rules that can be pickled: traced, and kept as flat graphs that refer to their home by index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...base.collector import collector_paused
from ...base.errors import GradientError
from ...ir.build import read_here
from ...ir.context import CONTEXT
from ...ir.flat import Path, flatten_graph, restore_graph
from ...ir.graph import Graph
from ...ir.node import Node, Region, Tensor
from ...ops.base import ZeroTensor, is_zero
from ...ops.sources import apart
from ...regions.boundary import is_empty
from ...regions.index import index_of
from ...regions.rules import as_rule
from ..additive import note_built_again
from ..call import told
from ..forward.judge import Watched
from ..levels import Step
from ..site import Site
from .deferred import Away, NotDeferred
from .trace import Trace, read_inside
from .transplant import Transplant

Ref = tuple[int, int]
Zeros = frozenset[int]


Regions = Mapping[Graph, Sequence[Region]]
"""Those of a graph and of the bodies in it, as they were when it was stored."""


class Asked:
    """A step of the home that was differentiated while a rule was traced, by index.

    body    the body of the home that it is in: its place there, its place in that one, and so on
    mark    what was marked on it, as it is stored
    around  the region around it; None: none
    again   the steps of the trace that were built once more of it: their bodies there and indices
    """

    body: Path = ()  # older pickles have none
    again: Sequence[tuple[Path, int]] = ()

    def __init__(
        self, step: Step, home: Graph, rules: Mapping[Step, Any], again: Sequence[tuple[Path, int]]
    ) -> None:
        self.is_node = isinstance(step, Node)
        self.index = step.index
        self.body, self.again = path_in(home, step.graph), again
        around = step.region if isinstance(step, Node) else step.parent
        self.around = None if around is None else around.index
        self.mark = rules.get(step, step.rule if isinstance(step, Region) else step.stamp)

    def step(self, home: Graph, regions: Regions) -> Step:
        """The step, in a graph whose regions were these."""
        graph = _body_at(home, self.body)
        return graph.nodes[self.index] if self.is_node else _of(graph, regions)[self.index]

    def note_again(self, first: Step, scratch: Transplant) -> None:
        """Note what was made of the steps of the trace that are the same as this one."""
        for body, index in self.again:
            graph = _body_at(scratch.source, body)
            step = graph.nodes[index] if self.is_node else graph.regions[index]
            for new, _ in scratch.counterparts(step):
                note_built_again(new, first)

    def is_as_stored(self, step: Step, regions: Regions) -> bool:
        """Whether it lies where it lay and has the mark that it had."""
        if isinstance(step, Region):
            now, around, there = step.rule, step.parent, not is_empty(step)
        else:
            now, around, there = step.stamp, step.region, True
        then = None if self.around is None else _of(step.graph, regions)[self.around]
        return there and now is self.mark and around is then


def _body_at(graph: Graph, path: Path) -> Graph:
    """A body in a graph, by its place."""
    for place in path:
        graph = list(index_of(graph).runs)[place]
    return graph


def path_in(home: Graph, body: Any) -> Path:
    """The place of a body in a graph."""
    path: list[int] = []
    while body is not home:
        path.insert(0, list(index_of(body.outer).runs).index(body))
        body = body.outer
    return tuple(path)


def _of(graph: Any, regions: Regions) -> Sequence[Region]:
    """The regions of a graph; its own now where it is none of those that were stored."""
    return regions.get(graph, graph.regions)


class StoredTrace:
    """The trace of a rule, or of a rule's own jvp, where some of what it is given is zero.

    scratch   the traced graph, flat
    given     its placeholders of what is given; None where none is
    captures  (placeholder, what it stands for): ("input" or "output", place) of the site, read as
              its rule reads them; ("home", reference, region from inside which it is read, or None)
    entries   what the rule returned: tensors of the scratch graph as references, else as they are
    extra     the tensors of the home, beyond the inputs, that entries speak for
    asked     what was differentiated inside, or built once more, while it was traced
    told      the places of what the rule was told to be zero
    partials  of each call of its default, which were zero: whether the rule asked; None for others
    by_home   whether the home answers for site.default
    """

    partials: Sequence[Sequence[bool | None]] = ()  # older files have none

    def __init__(self, trace: Trace, captures: Sequence[Any], rules: Mapping[Any, Any]) -> None:
        self.scratch = flatten_graph(trace.graph, lambda rule, owner: rules.get(owner, rule))
        self.given = [None if p is None or is_zero(p) else reference_of(p) for p in trace.given]
        for ref in self.given:
            self.scratch["position"].pop(ref and ref[0], None)  # it is where the graph was stored
        self.captures = captures
        self.entries = [
            ("tensor", reference_of(d)) if isinstance(d, Tensor) else ("value", d)
            for _, d in trace.entries
        ]
        self.extra = [reference_of(x) for x, _ in trace.entries[len(trace.gives) :]]
        self.asked: list[Asked] = []
        self.by_home = trace.by_home
        self.told = told(trace.given)
        self.partials = [
            [dx.asked if isinstance(dx, ZeroTensor) else None for dx in partials]
            for partials in trace.partials
        ]

    @property
    def at_home_only(self) -> bool:
        """Whether it refers to its home."""
        return bool(self.extra or self.asked) or any(at[0] == "home" for _, at in self.captures)

    def build(self, site: Site, given: Sequence[Any], regions: Regions) -> Any:
        """The trace, built anew for a site."""
        if self.by_home and isinstance(site, Away):
            raise NotDeferred
        home: Any = site._target.graph
        self._check_marks(site, home, regions)
        scratch = collector_paused(restore_graph)(Graph(), self.scratch)
        for i in self.told:
            given[i].asked = True
        site.partials[:0] = [tuple(map(_zero, p, site.inputs)) for p in self.partials]
        known = {_at(scratch, p): _entered(site, regions, what) for p, what in self.captures}
        for p, d in zip(self.given, apart(given), strict=True):
            if p is not None:
                known[_at(scratch, p)] = d
        transplant = Transplant(scratch, known)
        transplant.site = site
        transplant.run()
        for one in self.asked:
            one.note_again(one.step(home, regions), transplant)
        entries = [
            transplant.tensor(_at(scratch, d)) if kind == "tensor" else d
            for kind, d in self.entries
        ]
        if not self.extra:
            return entries
        inputs = (*site.inputs, *(_at(home, x) for x in self.extra))
        return dict(zip(inputs, entries, strict=True))

    def _check_marks(self, site: Site, home: Graph, regions: Regions) -> None:
        """GradientError where what it differentiated is marked, or chosen, otherwise now."""
        asked = CONTEXT.get().answering.asked
        for one in self.asked:
            step = one.step(home, regions)
            if asked is not None:
                asked.add(step)
            if self.by_home and isinstance(site, Watched) and has_jvp(one.mark):
                raise GradientError(
                    f"the rule of {site!r} was stored for reverse mode, and forward mode uses the "
                    f"jvp of {step.name} ({step.where}) inside: that needs the graph it was "
                    "defined in"
                )
            same = one.is_as_stored(step, regions)
            if not same or site._sweep.question.decides(step):
                raise GradientError(
                    f"the rule of {site!r} differentiates {step.name} ({step.where}), which has a "
                    "different rule here than when the graph was stored: that needs the graph it "
                    "was defined in"
                )


def _zero(asked: bool | None, x: Tensor) -> ZeroTensor | None:
    """A partial of x that was zero."""
    if asked is None:
        return None
    zero = ZeroTensor(x)
    zero.asked = asked
    return zero


class StoredRule:
    """A rule, or a rule's own jvp, as it was stored with its graph.

    traces   which of what it is given is zero -> the trace, or what was wrong
    regions  those of the graph that it was stored with; none: the graph is no other
    named    whether it was put there by its registered name
    """

    named = False

    def __init__(self, name: str) -> None:
        self.name = name
        self.traces: dict[Zeros, StoredTrace | str] = {}
        self.regions: Regions = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "regions": {}}

    @property
    def at_home_only(self) -> bool:
        """Whether it reads more of its home than the inputs and outputs of its site."""
        return any(isinstance(t, StoredTrace) and t.at_home_only for t in self.traces.values())

    def held(self, home: Graph) -> list[Node]:
        """The nodes of its home that it reads, beyond the inputs and outputs of its site."""
        refs: list[Ref] = []
        for trace in self.traces.values():
            if isinstance(trace, StoredTrace):
                refs += [*trace.extra, *(at[1] for _, at in trace.captures if at[0] == "home")]
        return [_at(home, ref).node for ref in refs]

    def is_at_home(self, graph: Graph) -> bool:
        """Whether it means the same in a graph."""
        if not self.at_home_only:
            return True
        home = next(iter(self.regions), None)
        return home is graph and all(
            tuple(each.regions[: len(then)]) == then for each, then in self.regions.items()
        )

    def __call__(self, site: Site, *given: Any) -> Any:
        """The trace for what is zero here, built anew for this site."""
        zeros = frozenset(i for i, d in enumerate(given) if d is not None and is_zero(d))
        trace = self.traces.get(zeros)
        if trace is None and self._never_asks():
            trace = self.traces[frozenset()]
        if isinstance(trace, StoredTrace):
            return trace.build(site, given, self.regions)
        why = trace or "it was not stored for these to be zero"
        places = ", ".join(str(i) for i in sorted(zeros)) or "none"
        raise GradientError(
            f"the stored rule {self.name!r} of {site!r}, given {len(given)} gradients or tangents "
            f"of which these are zero: {places}.\n{why}"
        )

    def _never_asks(self) -> bool:
        """Whether a zero is to the rule a tensor as any other.

        If it ever asked, it did so first where all before was not zero: with one zero, it was told.
        """
        return all(
            isinstance(trace, StoredTrace) and not trace.told and not any(map(any, trace.partials))
            for trace in self.traces.values()
        )


class BeyondStored:
    """Stands for a rule that was not traced when the graph was stored."""

    def __init__(self, name: str, order: int) -> None:
        self.name = name
        self.order = order

    def __call__(self, site: Site, *dys: Any) -> Any:
        """A GradientError: what is asked for was not stored."""
        raise GradientError(
            f"the rule {self.name!r} of {site!r} was stored to order {self.order}; differentiating "
            "beyond that needs the graph it was defined in"
        )


def has_jvp(mark: Any) -> bool:
    """Whether a mark, or none, has forward mode of its own."""
    return mark is not None and as_rule(mark).jvp is not None


def _entered(site: Site, regions: Regions, what: tuple[Any, ...]) -> Tensor:
    """What a placeholder stands for, as it is read here."""
    kind, place, *at = what
    if kind != "home":
        return read_here(((site.inputs if kind == "input" else site.outputs)[place],))[0]
    home: Any = site._target.graph
    tensor = _at(home, place)
    if at[0] is not None:
        tensor = read_inside(_of(home, regions)[at[0]], tensor)
    return read_here((tensor,))[0]


def reference_of(t: Tensor) -> Ref:
    """A tensor by its place in the graph."""
    return t.node.index, t.index


def _at(graph: Graph, ref: Ref) -> Tensor:
    return graph.nodes[ref[0]].outputs[ref[1]]
