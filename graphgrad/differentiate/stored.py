"""Rules that can be pickled: traced, and kept as flat graphs that refer to their home by index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from ..ir.build import build, read_here
from ..ir.collector import collector_paused
from ..ir.context import CONTEXT, Context
from ..ir.errors import GradientError, GraphError, GraphFormatError, UnknownGradientError
from ..ir.flat import flatten_graph, restore_graph
from ..ir.graph import Graph
from ..ir.node import Node, Region, RuleCall, Tensor
from ..ir.op import OP_TYPES
from ..ir.position import full
from ..ir.residual import Residual, read_from, residual_of
from ..ops.base import is_zero
from ..ops.control import BodyGraph, BodyScope
from ..ops.sources import Placeholder
from ..regions.boundary import boundary_of, known
from ..regions.contracts import Contract
from ..regions.index import bodies_of, marked_regions
from ..regions.rules import Rule, as_rule, is_registered
from ..regions.select import rule_name
from .call import outer_reads, told
from .deferred import Away, NotDeferred
from .judge import Watched
from .levels import Step
from .question import Question
from .site import NodeSite, RegionSite, Site
from .trace import Trace, TraceGraph
from .transplant import Transplant

FORMAT = "graphgrad pickle, format 2"
"""What a pickle begins with; one that begins otherwise is refused."""

ORDER = 2
"""How deep rules of rules are traced, where they are not their own."""

FEW = 3
"""Up to so many gradients, every way in which some of them are zero has a trace of its own."""

Ref = tuple[int, int]
Zeros = frozenset[int]


class Asked:
    """A step of the home that was differentiated while a rule was traced, by index.

    mark    what was marked on it, as it is stored
    around  the region around it; None: none
    """

    def __init__(self, step: Step, rules: Mapping[Step, Any]) -> None:
        self.is_node = isinstance(step, Node)
        self.index = step.index
        around = step.region if isinstance(step, Node) else step.parent
        self.around = None if around is None else around.index
        self.mark = rules.get(step, step.rule if isinstance(step, Region) else step.stamp)

    def step(self, home: Graph, regions: Sequence[Region]) -> Step:
        """The step, in a graph whose regions were these."""
        return home.nodes[self.index] if self.is_node else regions[self.index]

    def is_as_stored(self, step: Step, regions: Sequence[Region]) -> bool:
        """Whether it lies where it lay and has the mark that it had."""
        if isinstance(step, Region):
            now, around, there = step.rule, step.parent, known(step).first is not None
        else:
            now, around, there = step.stamp, step.region, True
        then = None if self.around is None else regions[self.around]
        return there and now is self.mark and around is then


class StoredTrace:
    """The trace of a rule, or of a rule's own jvp, where some of what it is given is zero.

    scratch   the traced graph, flat
    given     its placeholders of what is given; None where none is
    captures  (placeholder, what it stands for): ("input" or "output", place) of the site, read as
              its rule reads them; ("home", reference, region from inside which it is read, or None)
    entries   what the rule returned: tensors of the scratch graph as references, else as they are
    extra     the tensors of the home, beyond the inputs, that entries speak for
    asked     what was differentiated inside while it was traced
    told      the places of what the rule was told to be zero
    by_home   whether the home answers for site.default
    """

    def __init__(self, trace: Trace, captures: Sequence[Any], rules: Mapping[Any, Any]) -> None:
        self.scratch = flatten_graph(trace.graph, lambda rule, owner: rules.get(owner, rule))
        self.given = [None if p is None or is_zero(p) else _ref(p) for p in trace.given]
        self.captures = captures
        self.entries = [
            ("tensor", _ref(d)) if isinstance(d, Tensor) else ("value", d) for _, d in trace.entries
        ]
        self.extra = [_ref(x) for x, _ in trace.entries[len(trace.gives) :]]
        self.asked: list[Asked] = []
        self.by_home = trace.by_home
        self.told = told(trace.given)

    @property
    def at_home_only(self) -> bool:
        """Whether it refers to its home."""
        return bool(self.extra or self.asked) or any(at[0] == "home" for _, at in self.captures)

    def build(self, site: Site, given: Sequence[Any], regions: Sequence[Region] | None) -> Any:
        """The trace, built anew for a site; regions: of its graph, as they were stored."""
        if self.by_home and isinstance(site, Away):
            raise NotDeferred
        home: Any = site._target.graph
        regions = home.regions if regions is None else regions
        self._check_marks(site, home, regions)
        with collector_paused():
            scratch = restore_graph(Graph(), self.scratch)
        for i in self.told:
            given[i].asked = True
        known = {_at(scratch, p): _entered(site, regions, what) for p, what in self.captures}
        for p, d in zip(self.given, given, strict=True):
            if p is not None:
                known[_at(scratch, p)] = d
        transplant = Transplant(scratch, known)
        transplant.site = site
        transplant.run()
        found = [
            transplant.tensor(_at(scratch, d)) if kind == "tensor" else d
            for kind, d in self.entries
        ]
        if not self.extra:
            return found
        inputs = (*site.inputs, *(_at(home, x) for x in self.extra))
        return dict(zip(inputs, found, strict=True))

    def _check_marks(self, site: Site, home: Graph, regions: Sequence[Region]) -> None:
        """GradientError where what it differentiated is marked, or chosen, otherwise now."""
        asked = CONTEXT.get().question.asked
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
                    f"the rule of {site!r} differentiates {step.name} ({step.where}), which has "
                    "another rule here than when the graph was stored: that needs the graph it "
                    "was defined in"
                )


class StoredRule:
    """A rule, or a rule's own jvp, as it was stored with its graph.

    traces   which of what it is given is zero -> the trace, or what was wrong
    regions  those of the graph that it was stored with, as they were; None: the graph is no other
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.traces: dict[Zeros, StoredTrace | str] = {}
        self.regions: Sequence[Region] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "regions": None}

    @property
    def at_home_only(self) -> bool:
        """Whether it reads more of its home than the inputs and outputs of its site."""
        return any(isinstance(t, StoredTrace) and t.at_home_only for t in self.traces.values())

    @property
    def __name__(self) -> str:
        return self.name

    def held(self, home: Graph) -> list[Node]:
        """The nodes of its home that it reads, beyond the inputs and outputs of its site."""
        found: list[Ref] = []
        for trace in self.traces.values():
            if isinstance(trace, StoredTrace):
                found += [*trace.extra, *(at[1] for _, at in trace.captures if at[0] == "home")]
        return [_at(home, ref).node for ref in found]

    def is_at_home(self, regions: tuple[Region, ...]) -> bool:
        """Whether it means the same in a graph of these regions."""
        if not self.at_home_only:
            return True
        return self.regions is not None and regions[: len(self.regions)] == self.regions

    def __call__(self, site: Site, *given: Any) -> Any:
        """The trace for what is zero here, built anew for this site."""
        zeros = frozenset(i for i, d in enumerate(given) if d is not None and is_zero(d))
        trace = self.traces.get(zeros)
        if isinstance(trace, StoredTrace):
            return trace.build(site, given, self.regions)
        why = trace or "it was not stored for these to be zero"
        places = ", ".join(str(i) for i in sorted(zeros)) or "none"
        raise GradientError(
            f"the stored rule {self.name!r} of {site!r}, given {len(given)} gradients or tangents "
            f"of which these are zero: {places}.\n{why}"
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


# --- storing -----------------------------------------------------------------------------------

Chain = Mapping[Any, Rule]
"""The rules that are being stored: signature -> what stands for them. One may contain itself."""


def has_jvp(mark: Any) -> bool:
    """Whether a mark, or none, has forward mode of its own."""
    return mark is not None and as_rule(mark).jvp is not None


def stored_rules(graph: Graph, chain: Chain | None = None, depth: int = 0) -> dict[Step, Any]:
    """What stands for every rule, of the graph and the bodies in it; names that mean nothing stay.

    A rule that opens a region under itself refers to itself, if it reads of its home nothing but
    the inputs and outputs of its site; other rules of rules are traced to ORDER.
    """
    found: dict[Step, Any] = {}
    fresh: list[tuple[StoredTrace, Trace]] = []
    for step, mark in _marks(graph):
        if isinstance(step, Region) and not step.open and boundary_of(step).first is None:
            found[step] = rule_name(mark)  # unmarked: it is there for what was derived from it
            continue
        if isinstance(mark, str) and (mark in OP_TYPES or not is_registered(mark)):
            continue
        kept = _is_stored(mark, step)
        found[step] = mark if kept else _stored(step, mark, chain or {}, depth, fresh)
    for stored, trace in fresh:
        home = trace.graph.outer
        stored.asked = [Asked(step, found) for step in trace.asked if step.graph is home]
    return found


def _is_stored(mark: Any, step: Step) -> bool:
    """Whether a mark is a stored rule that needs no home, or whose home this graph is still."""
    fns = [fn for fn in (getattr(mark, "fn", None), getattr(mark, "jvp", None)) if fn is not None]
    assert step.graph is not None
    now = tuple(step.graph.regions)
    return bool(fns) and all(isinstance(fn, StoredRule) and fn.is_at_home(now) for fn in fns)


def _marks(graph: Graph) -> Iterator[tuple[Step, Any]]:
    """Everything that is marked in a graph and the bodies in it, with its mark."""
    for each in list(bodies_of(graph)):
        yield from _marks_of(each)


def _marks_of(graph: Graph) -> list[tuple[Step, Any]]:
    marked: list[tuple[Step, Any]] = [(n, n.stamp) for n in graph.nodes if n.stamp is not None]
    return marked + [(region, region.rule) for region in marked_regions(graph)]


def _stored(step: Step, reference: Any, chain: Chain, depth: int, fresh: list[Any]) -> Rule:
    rule = as_rule(reference)
    key = rule.fn, _signature(step)
    if key in chain:
        return chain[key]
    contract = rule.contract
    if contract is not None and callable(contract.of):
        contract = Contract(contract.kind)  # a function of the user's need not be there later
    new = Rule(
        BeyondStored(rule.name, ORDER),
        rule.name,
        contract=contract,
        linear=rule.linear,
        position=None if rule.position is None else full(rule.position),
    )
    new.jvp = None if rule.jvp is None else new.fn
    if depth >= ORDER:
        return new
    traced = [_traced(step, reference, forward=False)]
    if rule.jvp is not None:
        traced.append(_traced(step, reference, forward=True))
    within = {**chain, key: new} if _is_own(traced, step) else chain
    written = [_written(rule.name, ways, step, within, depth, fresh) for ways in traced]
    if within is not chain and not _is_own(traced, step):  # what is opened in it reads more
        written = [_written(rule.name, ways, step, chain, depth, fresh) for ways in traced]
    new.fn = written[0]
    new.jvp = written[1] if len(written) > 1 else None
    return new


Traced = dict[Zeros, Trace | str]
"""The trace for what is zero, or what was wrong."""


def _traced(step: Step, reference: Any, *, forward: bool) -> Traced:
    """The traces of a rule, or of its own jvp, for every way to be given zeros that is stored."""
    found: Traced = {}
    inputs, outputs = _ends(step)
    for zeros in _patterns(inputs if forward else outputs):
        try:
            found[zeros] = _trace(step, reference, forward, zeros)
        except Exception as error:
            if not zeros:
                error.add_note(f"while tracing the rule of {step!r}, to store the graph")
                raise
            found[zeros] = f"When the graph was stored, it raised {type(error).__name__}: {error}"
    return found


def _trace(step: Step, reference: Any, forward: bool, zeros: Zeros) -> Trace:
    """A trace that asks for defaults where it is built anew, if it can."""
    try:
        return Trace(step, reference, forward=forward, zeros=zeros, defaults=lambda _: _AtHome())
    except NotDeferred:
        return Trace(step, reference, forward=forward, zeros=zeros)


def _captured(t: Tensor, step: Step) -> tuple[Any, ...]:
    """What a trace captured: an input or output of its site, or any tensor of the home."""
    op, home = t.node.op, t.graph
    base, region = (t.node.inputs[0], op.region) if isinstance(op, Residual) else (t, None)
    assert home is not None
    inputs, outputs = _ends(step)
    reader = Context(home)
    reader.origin = RuleCall(step, "", outer_reads(step, outputs))
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for place, own in enumerate(tensors):
            if own is base and residual_of(own, reader) is t:
                return kind, place
    return "home", _ref(base), None if region is None else region.index


def _entered(site: Site, regions: Sequence[Region], what: tuple[Any, ...]) -> Tensor:
    """What a placeholder stands for, as it is read here."""
    kind, place, *at = what
    if kind != "home":
        return read_here(((site.inputs if kind == "input" else site.outputs)[place],))[0]
    home, context = site._target.graph, CONTEXT.get()
    assert home is not None
    found = _at(home, place)
    if at[0] is not None and not regions[at[0]].contains(context.region):
        found = read_from(regions[at[0]], found, context)
    return read_here((found,))[0]


def _is_own(traced: Sequence[Traced], step: Step) -> bool:
    """Whether traces read nothing of their home but the inputs and outputs of their site."""
    ready = [t for ways in traced for t in ways.values() if isinstance(t, Trace)]
    return all(_captured(o, step)[0] != "home" for t in ready for o in t.graph.captures)


def _ends(step: Step) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The inputs and outputs of a step as a site."""
    if isinstance(step, Node):
        return step.inputs, step.outputs
    boundary = boundary_of(step)
    return boundary.inputs, boundary.outputs


def _signature(step: Step) -> Any:
    """What a rule is told of its site: steps for which it is equal have equal traces."""
    kind: Any = step.op if isinstance(step, Node) else (step.kind, step.order, step.escape)
    attrs = tuple((name, repr(value)) for name, value in sorted(step.attrs.items()))
    return kind, attrs, *(tuple(t.type for t in tensors) for tensors in _ends(step))


def _patterns(tensors: Sequence[Tensor]) -> Iterator[Zeros]:
    """The sets of places that may be zero, none first; of many at most one, or all but one."""
    places = [i for i, t in enumerate(tensors) if t.type.differentiable]
    counts = range(len(places) + 1)
    for count in counts:
        if len(places) <= FEW or count in (0, 1, len(places) - 1, len(places)):
            yield from map(frozenset, combinations(places, count))


def _written(
    name: str, ways: Traced, step: Step, chain: Chain, depth: int, fresh: list[Any]
) -> StoredRule:
    stored = StoredRule(name)
    for zeros, trace in ways.items():
        if isinstance(trace, str):
            stored.traces[zeros] = trace
            continue
        rules = stored_rules(trace.graph, chain, depth + 1)  # which may capture more
        captures = [(_ref(p), _captured(o, step)) for o, p in trace.graph.captures.items()]
        stored.traces[zeros] = StoredTrace(trace, captures, rules)
        fresh.append((stored.traces[zeros], trace))
    return stored


class _AtHome:
    """Answers for a site while it is stored: which inputs get something is all that counts."""

    def take(self, given: Mapping[int, Tensor], site: Site) -> dict[int, Any]:
        """The inputs to which something flows at home."""
        home = site._target.graph
        assert home is not None
        own: Any = RegionSite if isinstance(site, RegionSite) else NodeSite
        target = own(site._target, site.reference, site._sweep)
        target.marked = site.reference
        dys: list[Tensor | None] = [None] * len(site.outputs)
        with BodyScope(TraceGraph(home, f"default of {site.name}")):
            context = CONTEXT.get()
            context.question = question = Question(context.question)
            question.asked = set()
            for i in given:
                y = site.outputs[i]
                dys[i] = build(Placeholder(y.shape, y.dtype), ()).outputs[0]
            try:
                found = target.default(*dys)
            except UnknownGradientError:  # of a name inside that is still to come
                found = site.inputs
        return {
            i: dx
            for i, dx in enumerate(found)
            if site.inputs[i].type.differentiable and not is_zero(dx)
        }

    def note(self, made: Sequence[Tensor], found: Sequence[Any]) -> None:
        """Nothing stands here for it."""


def _ref(t: Tensor) -> Ref:
    return t.node.index, t.index


def _at(graph: Graph, ref: Ref) -> Tensor:
    return graph.nodes[ref[0]].outputs[ref[1]]


# --- pickles -----------------------------------------------------------------------------------


def reduce_graph(graph: Graph) -> tuple[Any, ...]:
    """How a graph is pickled: flat, with the traces of its rules, those that names mean too.

    A graph that is unpickled answers with the rules that were stored, whatever is registered under
    their names there. As with any pickle, unpickling runs code: take graphs from who you trust.
    """
    if isinstance(graph, BodyGraph):
        raise GraphError(f"{graph!r} is a body of control flow; pickle the graph around it")
    rules = stored_rules(graph)
    flat = flatten_graph(graph, lambda rule, owner: rules.get(owner, rule))
    return _unpickled, (_side_by_side(flat), FORMAT)


def _unpickled(flats: Any, written: str = "graphgrad pickle, format 1") -> Graph:
    """The graph; GraphFormatError for what another version of graphgrad has written."""
    if written != FORMAT:
        raise GraphFormatError(
            f"this is a {written!r}, and this version of graphgrad reads {FORMAT!r}.\nBuild the "
            "graph anew and pickle it, or read it with the version that wrote it."
        )
    with collector_paused():
        graph = restore_graph(Graph(), _nested(flats))
    for each in bodies_of(graph):
        regions = tuple(each.regions)
        for _, mark in _marks_of(each):
            for fn in (getattr(mark, "fn", None), getattr(mark, "jvp", None)):
                if isinstance(fn, StoredRule) and fn.at_home_only:
                    fn.regions = regions
    return graph


def _side_by_side(flat: Any) -> list[Any]:
    """A flat graph and those of the bodies in it, by place: pickle recurses over what nests."""
    found = [dict(flat)]
    for each in found:
        bodies = each["bodies"]
        each["bodies"] = [{**b, "graph": len(found) + i} for i, b in enumerate(bodies)]
        found += [dict(b["graph"]) for b in bodies]
    return found


def _nested(flats: list[Any]) -> Any:
    """What _side_by_side took apart."""
    found = [dict(flat) for flat in flats]
    for each in found:
        each["bodies"] = [{**b, "graph": found[b["graph"]]} for b in each["bodies"]]
    return found[0]


Graph.__reduce__ = reduce_graph  # type: ignore[method-assign, assignment]
