"""Rules that can be pickled: traced, and kept as flat graphs that refer to their home by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.build import read_here
from ..ir.collector import collector_paused
from ..ir.context import CONTEXT
from ..ir.errors import GradientError, GraphError
from ..ir.flat import flatten_graph, restore_graph
from ..ir.graph import Graph
from ..ir.node import Node, Region, Tensor
from ..ir.position import full
from ..ir.residual import Residual, read_from
from ..ops.base import is_zero
from ..ops.control import BodyGraph
from ..regions.contracts import Contract
from ..regions.index import bodies_of, marked_regions
from ..regions.rules import Rule, as_rule
from .forward import Watched
from .levels import Step
from .site import Site
from .trace import Trace, check_choices
from .transplant import Transplant

ORDER = 2
"""How deep rules of rules are traced."""

Ref = tuple[int, int]


class StoredRule:
    """The trace of a rule, or of a rule's own jvp, in its place.

    scratch   the traced graph, flat
    given     its placeholders of the gradients, or tangents, that are given; None where none is
    captures  (placeholder, what it stands for at home): a tensor, or one read from inside a region
    entries   what the rule returned: tensors of the scratch graph as references, else as they are
    extra     the tensors of the home, beyond the inputs, that entries speak for
    asked     what the rule asks for inside, by index: nodes, and regions
    """

    at_home_only = True

    def __init__(self, name: str, trace: Trace, depth: int) -> None:
        self.name = name
        rules = stored_rules(trace.graph, depth + 1)
        self.scratch = flatten_graph(trace.graph, lambda rule, owner: rules.get(owner, rule))
        self.given = [None if p is None else _ref(p) for p in trace.given]
        self.captures = [(_ref(p), _home_ref(o)) for o, p in trace.graph.captures.items()]
        self.entries = [
            ("tensor", _ref(d)) if isinstance(d, Tensor) else ("value", d) for _, d in trace.entries
        ]
        self.extra = [_ref(x) for x, _ in trace.entries[len(trace.gives) :]]
        asked = [s for s in trace.asked if s.graph is trace.graph.outer]
        self.asked = [
            sorted(s.index for s in asked if isinstance(s, kind)) for kind in (Node, Region)
        ]

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, site: Site, *given: Any) -> Any:
        """The trace, built anew for this site."""
        home = site._target.graph
        assert home is not None
        self._check(home, site, given)
        with collector_paused():
            scratch = restore_graph(Graph(), self.scratch)
        known = {_at(scratch, p): _entered(home, ref) for p, ref in self.captures}
        for p, d in zip(self.given, given, strict=True):
            if p is not None:
                known[_at(scratch, p)] = d
        transplant = Transplant(scratch, known)
        transplant.run()
        found = [
            transplant.tensor(_at(scratch, d)) if kind == "tensor" else d
            for kind, d in self.entries
        ]
        if not self.extra:
            return found
        inputs = (*site.inputs, *(_at(home, x) for x in self.extra))
        return dict(zip(inputs, found, strict=True))

    def _check(self, home: Graph, site: Site, given: Sequence[Any]) -> None:
        """GradientError where rules inside would be asked otherwise than when it was traced."""
        nodes, regions = self.asked
        inside: list[Step] = [*map(home.nodes.__getitem__, nodes)]
        inside += map(home.regions.__getitem__, regions)
        check_choices(site, dict.fromkeys(inside, False))
        missing = any(d is not None and is_zero(d) for d in given)
        for step in inside:
            mark = step.rule if isinstance(step, Region) else step.stamp
            if mark is None:
                continue
            if missing:
                raise self._refused(site, "an output has no gradient here, which counts for", step)
            if isinstance(site, Watched) and as_rule(mark).jvp is not None:
                raise self._refused(site, "forward mode uses the jvp of", step)

    def _refused(self, site: Site, why: str, step: Step) -> GradientError:
        return GradientError(
            f"the rule {self.name!r} of {site!r} was stored for reverse mode, with a gradient of "
            f"every output; {why} {step.name} ({step.where}) inside: that needs the graph it was "
            "defined in"
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


def stored_rules(graph: Graph, depth: int = 0) -> dict[Any, Rule]:
    """What stands for every rule, of the graph and the bodies in it, that is not given by name."""
    marked: list[tuple[Any, Any]] = []
    for each in bodies_of(graph):
        marked += [(n, n.stamp) for n in each.nodes if n.stamp is not None]
        marked += [(region, region.rule) for region in marked_regions(each)]
    return {
        owner: _stored(owner, rule, depth) for owner, rule in marked if not isinstance(rule, str)
    }


def _stored(owner: Node | Region, reference: Any, depth: int) -> Rule:
    known = as_rule(reference)
    position = None if known.position is None else full(known.position)
    contract = known.contract
    if contract is not None and callable(contract.of):
        contract = Contract(contract.kind)  # a function of the user's need not be there later
    return Rule(
        _traced(owner, reference, depth, forward=False),
        known.name,
        contract=contract,
        linear=known.linear,
        jvp=None if known.jvp is None else _traced(owner, reference, depth, forward=True),
        position=position,
    )


def _traced(owner: Node | Region, reference: Any, depth: int, *, forward: bool) -> Any:
    """What stands for a rule, or for its own jvp."""
    name = as_rule(reference).name
    if depth >= ORDER:
        return BeyondStored(name, ORDER)
    try:
        trace = Trace(owner, reference, forward=forward)
    except Exception as error:
        error.add_note(f"while tracing the rule of {owner!r}, to store the graph")
        raise
    return StoredRule(name, trace, depth)


def _ref(t: Tensor) -> Ref:
    return t.node.index, t.index


def _at(graph: Graph, ref: Ref) -> Tensor:
    return graph.nodes[ref[0]].outputs[ref[1]]


def _home_ref(t: Tensor) -> tuple[Ref, int | None]:
    """A captured tensor of the home, and the region from inside which it was read."""
    op = t.node.op
    return (
        (_ref(t.node.inputs[0]), op.region.index) if isinstance(op, Residual) else (_ref(t), None)
    )


def _entered(home: Graph, ref: tuple[Ref, int | None]) -> Tensor:
    """What a placeholder stands for, as it is read here."""
    found, at = _at(home, ref[0]), ref[1]
    if at is not None and not home.regions[at].contains(CONTEXT.get().region):
        found = read_from(home.regions[at], found, CONTEXT.get())
    return read_here((found,))[0]


def reduce_graph(graph: Graph) -> tuple[Any, ...]:
    """How a graph is pickled: flat, its rules traced; names stay names."""
    if isinstance(graph, BodyGraph):
        raise GraphError(f"{graph!r} is a body of control flow; pickle the graph around it")
    rules = stored_rules(graph)
    flat = flatten_graph(graph, lambda rule, owner: rules.get(owner, rule))
    return _unpickled, (_side_by_side(flat),)


def _unpickled(flats: list[Any]) -> Graph:
    with collector_paused():
        return restore_graph(Graph(), _nested(flats))


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
