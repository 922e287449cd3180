"""Rules that can be pickled: traced, and kept as flat graphs that refer to their home by index."""

from __future__ import annotations

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
from ..ops.control import BodyGraph
from ..regions.contracts import Contract
from ..regions.rules import Rule, as_rule
from .site import Site
from .trace import Trace
from .transplant import Transplant

ORDER = 2
"""How deep rules of rules are traced."""

Ref = tuple[int, int]


class StoredRule:
    """The trace of a rule, as a rule.

    scratch   the traced graph, flat
    dys       its placeholders of the outputs' gradients; None for outputs that have none
    captures  (placeholder, what it stands for at home): a tensor, or one read from inside a region
    entries   what the rule returned: tensors of the scratch graph as references, else as they are
    extra     the tensors of the home, beyond the inputs, that entries speak for
    """

    def __init__(self, name: str, trace: Trace, count: int, depth: int) -> None:
        self.name = name
        rules = stored_rules(trace.graph, depth + 1)
        self.scratch = flatten_graph(trace.graph, lambda rule, owner: rules.get(owner, rule))
        self.dys = [None if p is None else _ref(p) for p in trace.dys]
        self.captures = [(_ref(p), _home_ref(o)) for o, p in trace.graph.captures.items()]
        self.entries = [
            ("tensor", _ref(dx)) if isinstance(dx, Tensor) else ("value", dx)
            for _, dx in trace.entries
        ]
        self.extra = [_ref(x) for x, _ in trace.entries[count:]]

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, site: Site, *dys: Any) -> Any:
        """The trace, built anew for this site."""
        home = site._target.graph
        assert home is not None
        with collector_paused():
            scratch = restore_graph(Graph(), self.scratch)
        given = {_at(scratch, p): _entered(home, ref) for p, ref in self.captures}
        for p, dy in zip(self.dys, dys, strict=True):
            if p is not None:
                given[_at(scratch, p)] = dy
        transplant = Transplant(scratch, given)
        transplant.run()
        found = [
            transplant.tensor(_at(scratch, dx)) if kind == "tensor" else dx
            for kind, dx in self.entries
        ]
        if not self.extra:
            return found
        inputs = (*site.inputs, *(_at(home, x) for x in self.extra))
        return dict(zip(inputs, found, strict=True))


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
    for each in with_bodies(graph):
        marked += [(n, n.stamp) for n in each.nodes if n.stamp is not None]
        marked += [(region, region.rule) for region in each.regions]
    return {
        owner: _stored(owner, rule, depth) for owner, rule in marked if not isinstance(rule, str)
    }


def _stored(owner: Node | Region, reference: Any, depth: int) -> Rule:
    known = as_rule(reference)
    fn: Any = BeyondStored(known.name, ORDER)
    if depth < ORDER:
        try:
            trace = Trace(owner, reference)
        except Exception as error:
            error.add_note(f"while tracing the rule of {owner!r}, to store the graph")
            raise
        fn = StoredRule(known.name, trace, len(trace.inputs), depth)
    position = None if known.position is None else full(known.position)
    contract = known.contract
    if contract is not None and callable(contract.of):
        contract = Contract(contract.kind)  # a function of the user's need not be there later
    return Rule(fn, known.name, contract=contract, linear=known.linear, position=position)


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
    return _unpickled, (flatten_graph(graph, lambda rule, owner: rules.get(owner, rule)),)


def _unpickled(flat: Any) -> Graph:
    with collector_paused():
        return restore_graph(Graph(), flat)


def with_bodies(graph: Graph) -> list[Graph]:
    """A graph and the bodies of the control flow in it."""
    found = [graph]
    for each in found:
        for node in each.nodes:
            for program in node.op.attrs.get("programs", ()):
                body = program.outputs[0].graph
                if body is not None and all(body is not known for known in found):
                    found.append(body)
    return found


Graph.__reduce__ = reduce_graph  # type: ignore[method-assign, assignment]
