"""Rules away from home: traced once at their own site, and built anew where they are needed.

A closure is never called with another graph's tensors. Where a marked node or region was carried to
(a copy, another graph, a batch), its rule is `Travelled`: it is called once at home, with
placeholders for dys, in a scratch graph that captures what the rule reads of its home (tensors of
the site, residuals, and whatever it closes over). A carrier, which knows what stands for what,
builds that trace anew at the site in question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ..ir.build import adopted, build, read_here
from ..ir.context import CONTEXT, Context
from ..ir.errors import GradientError
from ..ir.graph import Graph, current
from ..ir.node import Node, Region, Tensor
from ..ir.residual import Residual, read_from, residual_of
from ..ops.base import ZERO, is_zero
from ..ops.control import BodyGraph, BodyScope
from ..ops.sources import Placeholder
from ..regions.rules import Rule, as_rule
from .call import answer, running, seen_outside
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

    def note(self, dy: Tensor, y: Tensor) -> None:
        """Learn of the gradient of a tensor before it is used."""

    def fitted(self, dx: Any, x: Tensor) -> Any:
        """The entry of a rule, for an input here."""


class TraceGraph(BodyGraph):
    """The scratch graph of a trace. What is read of the home is captured as the rule reads it."""

    def adopt(self, tensor: Tensor) -> Tensor:
        """The placeholder that stands for a tensor of the home, or of a graph around it."""
        if tensor.graph is self.outer:
            here = current()
            at_home = Context(self.outer)
            at_home.origin, at_home.running, at_home.scope = here.origin, here.running, "gradients/"
            tensor = residual_of(tensor, at_home)
        return super().adopt(tensor)


class Trace:
    """What one rule builds for one site: a scratch graph from dys and captures to gradients.

    inputs   the inputs of the site
    dys      the placeholders of the outputs' gradients; None for outputs that have none
    entries  (input of the site, what the rule returns for it): a tensor of the scratch graph, or
             anything else that a rule may return
    """

    def __init__(self, target: Node | Region, reference: Any) -> None:
        home = target.graph
        assert home is not None
        rule = as_rule(reference)
        self.graph = TraceGraph(home, f"trace of {rule.name}")
        with BodyScope(self.graph):
            context = CONTEXT.get()
            context.stamps, context.scope, context.origin = None, "", None
            context.running, context.live = (), None
            sweep = Sweep(context, frozenset(), frozenset(), {})
            make: Any = RegionSite if isinstance(target, Region) else NodeSite
            site: Site = make(target, reference, sweep)
            self.inputs = site.inputs
            self.dys = [
                build(Placeholder(y.shape, y.dtype), ()).outputs[0]
                if y.type.differentiable
                else None
                for y in site.outputs
            ]
            with running(rule, site):
                entries = answer(rule, site, list(self.dys))
                self.entries = [(x, self._entry(dx)) for x, dx in entries]

    def _entry(self, dx: Any) -> Any:
        if is_zero(dx):
            return ZERO
        return seen_outside(adopted((dx,))[0]) if isinstance(dx, Tensor) else dx


class Travelled:
    """The rule of a site that was carried away from its home."""

    def __init__(self, home: Node | Region, rule: Any, carrier: Carrier) -> None:
        self.home = home
        self.rule = rule
        self.carrier = carrier
        self._trace: Trace | None = None

    @property
    def __name__(self) -> str:
        return as_rule(self.rule).name

    def __call__(self, site: Site, *dys: Any) -> Any:
        """The trace, built anew for this site."""
        if self._trace is None:
            self._trace = Trace(self.home, self.rule)
        trace = self._trace
        given = {p: dy for p, dy in zip(trace.dys, dys, strict=True) if p is not None}
        for dy, y in zip(dys, site.outputs, strict=True):
            if dy is not None:
                self.carrier.note(dy, y)
        transplant = self.carrier.transplant(trace.graph, given)
        transplant.run()
        count = len(site.inputs)
        beyond = [self.carrier.tensor(x) for x, _ in trace.entries[count:]]
        inputs = (*site.inputs, *beyond)
        found = [
            self.carrier.fitted(transplant.entry(dx), x)
            for (_, dx), x in zip(trace.entries, inputs, strict=True)
        ]
        return dict(zip(inputs, found, strict=True)) if beyond else found


def carried(rule: Any, home: Node | Region, carrier: Carrier) -> Rule:
    """The rule of a marked node or region of one graph, for what stands for it in another."""
    known = as_rule(rule)
    return Rule(
        Travelled(home, rule, carrier),
        known.name,
        contract=known.contract,
        linear=known.linear,
        jvp=None if known.jvp is None else _JvpStaysAtHome(known.name),
        position=known.position,
    )


class _JvpStaysAtHome:
    """Stands for a rule's own jvp where the rule was carried to: it is not traced."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, site: Site, *dxs: Any) -> Any:
        """A GradientError: using the transpose instead would not be what was asked for."""
        raise GradientError(
            f"the rule {self.name!r} of {site!r} has a jvp of its own, which does not travel into "
            "a batch or, as a closure, into another graph; take the jvp at home, per example"
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
