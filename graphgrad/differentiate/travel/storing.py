"""What stands for the rules of a graph that is stored: each traced for all that it may be given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from ...base.errors import GradientError, UnknownGradientError
from ...base.position import full
from ...ir.build import build
from ...ir.context import CONTEXT, Context
from ...ir.flat import Path
from ...ir.graph import Graph
from ...ir.node import Node, Region, RuleCall, Tensor, rule_name
from ...ir.op import OP_TYPES
from ...ir.residual import Residual, unbuilt_residual
from ...ops.base import is_zero
from ...ops.control import BodyScope
from ...ops.random.keys import draws_in
from ...ops.sources import Placeholder
from ...regions.boundary import boundary_of, is_empty
from ...regions.contracts import Contract
from ...regions.index import bodies_of, marked_regions
from ...regions.rules import Rule, as_rule, is_registered
from ..call import outer_reads
from ..levels import Step
from .deferred import Away, Deferred, NotDeferred
from .stored import (
    Asked,
    BeyondStored,
    StoredRule,
    StoredTrace,
    Zeros,
    path_in,
    reference_of,
)
from .trace import AT_HOME, Trace, TraceGraph, in_order

ORDER = 2
"""How deep rules of rules are traced, where they are not their own, if nobody says it."""


FEW = 3
"""Up to so many gradients, every way in which some of them are zero has a trace of its own."""


Chain = Mapping[Any, Rule]
"""The rules that are being stored: signature -> what stands for them. One may contain itself."""


Traced = dict[Zeros, Trace | str]
"""The trace for what is zero, or what was wrong."""


class Depth(NamedTuple):
    """How deep in rules of rules a graph lies, and to which order they are traced."""

    at: int = 0
    order: int = ORDER


OUTERMOST = Depth()


def stored_rules(
    graph: Graph, chain: Chain | None = None, depth: Depth = OUTERMOST
) -> dict[Step, Any]:
    """What stands for every rule, of the graph and the bodies in it; names that mean nothing stay.

    A rule that opens a region under itself refers to itself, if it reads of its home nothing but
    the inputs and outputs of its site; other rules of rules are traced to the order of `depth`.
    """
    rules: dict[Step, Any] = {}
    fresh: list[tuple[StoredTrace, Trace]] = []
    for step, mark in _marks(graph):
        if isinstance(step, Region) and not step.open and is_empty(step):
            rules[step] = rule_name(mark)  # unmarked: it is there for what was derived from it
            continue
        if isinstance(mark, str) and (mark in OP_TYPES or not is_registered(mark)):
            continue
        kept = _is_stored(mark, step)
        rules[step] = mark if kept else _stored(step, mark, chain or {}, depth, fresh)
    for stored, trace in fresh:
        stored.asked = _asked(trace, rules)
    return rules


def _asked(trace: Trace, rules: Mapping[Step, Any]) -> list[Asked]:
    """What a trace asked for of its home, or built once more, in order."""
    home, own = trace.graph.outer, bodies_of(trace.graph)
    bodies = bodies_of(home)
    again: dict[Step, list[tuple[Path, int]]] = {step: [] for step in trace.asked}
    for new, first in trace.again.items():
        places = again.setdefault(first, [])
        if new.graph in own:
            places.append((path_in(trace.graph, new.graph), new.index))
    steps = [step for step in in_order(again) if step.graph in bodies]
    return [Asked(step, home, rules, again[step]) for step in steps]


def _is_stored(mark: Any, step: Step) -> bool:
    """Whether a mark is a stored rule that needs no home, or whose home this graph is still."""
    fns = [fn for fn in (getattr(mark, "fn", None), getattr(mark, "jvp", None)) if fn is not None]
    assert step.graph is not None
    return bool(fns) and all(
        isinstance(fn, BeyondStored) or (isinstance(fn, StoredRule) and fn.is_at_home(step.graph))
        for fn in fns
    )


def _marks(graph: Graph) -> Iterator[tuple[Step, Any]]:
    """Everything that is marked in a graph and the bodies in it, with its mark."""
    for each in list(bodies_of(graph)):
        yield from marks_of(each)


def marks_of(graph: Graph) -> list[tuple[Step, Any]]:
    """What is marked in a graph, with its mark."""
    marked: list[tuple[Step, Any]] = [(n, n.stamp) for n in graph.nodes if n.stamp is not None]
    return marked + [(region, region.rule) for region in marked_regions(graph)]


def _stored(step: Step, reference: Any, chain: Chain, depth: Depth, fresh: list[Any]) -> Rule:
    rule = as_rule(reference)
    key = rule.fn, _signature(step)
    if key in chain:
        return chain[key]
    contract = rule.contract
    if contract is not None and callable(contract.of):
        contract = Contract(contract.kind)  # a function of the user's need not be there later
    new = Rule(
        BeyondStored(rule.name, depth.order),
        rule.name,
        contract=contract,
        linear=rule.linear,
        position=None if rule.position is None else full(rule.position),
    )
    new.jvp = None if rule.jvp is None else new.fn
    if depth.at >= depth.order:
        return new
    traced = [_traced(step, reference, forward=False)]
    if rule.jvp is not None:
        traced.append(_traced(step, reference, forward=True))
    within = {**chain, key: new} if _is_own(traced, step) else chain
    written = [_written(rule.name, ways, step, within, depth, fresh) for ways in traced]
    if within is not chain and not _is_own(traced, step):  # what is opened in it reads more
        written = [_written(rule.name, ways, step, chain, depth, fresh) for ways in traced]
    new.fn = written[0]
    new.fn.named = isinstance(reference, str)
    new.jvp = written[1] if len(written) > 1 else None
    return new


def _traced(step: Step, reference: Any, *, forward: bool) -> Traced:
    """The traces of a rule, or of its own jvp, for every way to be given zeros that is stored."""
    traces: Traced = {}
    inputs, outputs = _ends(step)
    for zeros in _patterns(inputs if forward else outputs):
        try:
            traces[zeros] = _trace(step, reference, forward, zeros)
        except Exception as error:
            if not zeros:
                error.add_note(f"while tracing the rule of {step!r}, to store the graph")
                raise
            traces[zeros] = f"When the graph was stored, it raised {type(error).__name__}: {error}"
    return traces


def _trace(step: Step, reference: Any, forward: bool, zeros: Zeros) -> Trace:
    """A trace that asks for defaults where it is built anew, if it can; there it draws anew."""
    try:
        trace = Trace(step, reference, forward=forward, zeros=zeros, defaults=WhenBuilt())
    except NotDeferred:
        trace = Trace(step, reference, forward=forward, zeros=zeros)
    first = trace.first_draw
    if any(first <= n < 0 for n in draws_in(n for g in bodies_of(trace.graph) for n in g.nodes)):
        raise GradientError(
            f"the rule of {step!r} recomputes a draw without a seed of another rule, which cannot "
            "be stored: give that draw a seed, or move it out of its cond() or switch()"
        )
    return trace


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
            if own is base and _is_read_as(unbuilt_residual(own, reader), region):
                return kind, place
    return "home", reference_of(base), None if region is None else region.index


def _is_read_as(t: Tensor, region: Region | None) -> bool:
    """Whether a tensor is read as from inside this region, or from none."""
    op = t.node.op
    return (op.region if isinstance(op, Residual) else None) is region


def _is_own(traced: Sequence[Traced], step: Step) -> bool:
    """Whether traces read nothing of their home but the inputs and outputs of their site."""
    ready = [t for ways in traced for t in ways.values() if isinstance(t, Trace)]
    return all(_captured(o, step)[0] != "home" for t in ready for o in t.graph.captures.values())


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
    name: str, ways: Traced, step: Step, chain: Chain, depth: Depth, fresh: list[Any]
) -> StoredRule:
    stored = StoredRule(name)
    for zeros, trace in ways.items():
        if isinstance(trace, str):
            stored.traces[zeros] = trace
            continue
        rules = stored_rules(
            trace.graph, chain, Depth(depth.at + 1, depth.order)
        )  # which may capture more
        captures = [(reference_of(p), _captured(o, step)) for p, o in trace.graph.captures.items()]
        stored.traces[zeros] = StoredTrace(trace, captures, rules)
        fresh.append((stored.traces[zeros], trace))
    return stored


class WhenBuilt(Deferred):
    """The site that a stored trace is built for answers; so far it counts which inputs do get it.

    For that the home is asked.
    """

    def take(self, given: Mapping[int, Tensor], site: Away) -> dict[int, Any]:
        """The inputs to which something flows at home."""
        home = site._target.graph
        assert home is not None
        own = AT_HOME.as_site(site.trace, site._sweep)
        dys: list[Tensor | None] = [None] * len(site.outputs)
        with BodyScope(TraceGraph(home, f"default of {site.name}")):
            context = CONTEXT.get()
            context.answering = context.answering.within()._replace(asked=set())
            for i in given:
                y = site.outputs[i]
                dys[i] = build(Placeholder(y.shape, y.dtype), ()).outputs[0]
            try:
                dxs: Sequence[Any] = own.default(*dys)
            except UnknownGradientError:  # of a name inside that is still to come
                dxs = site.inputs
        return {
            i: dx
            for i, dx in enumerate(dxs)
            if site.inputs[i].type.differentiable and not is_zero(dx)
        }

    def note(self, stands: Sequence[Tensor], dxs: Sequence[Any]) -> None:
        """Nothing stands here for it."""
