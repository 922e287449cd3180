"""Sites that all examples of a batch share: which may be, and why others may not.

A site that reads nothing that differs between examples is the same for all. Its rule may be called
once, for the sum of what arrives, where that is the sum of what it gives for each: where it is
linear in its dys and reads nothing that differs either. Any other is called for every example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ...ir.graph import Graph
from ...ir.node import Node, Region, Tensor
from ...ir.residual import Residual
from ...ops.base import Marker
from ...ops.control import BodyGraph
from ...ops.random.keys import drawn_anew
from ...regions.boundary import boundary_of
from ...regions.index import bodies_of, index_of, marked_regions
from ...regions.rules import BuiltinRule, as_rule
from ..levels import Step
from ..linearity import NonLinear, check_linear
from ..travel.trace import Trace

Differs = Callable[[Tensor], bool]
"""Whether a tensor differs between examples."""


def why_for_each(trace: Trace, differs: Differs) -> str | None:
    """Why a traced rule of a site that all examples share is called for each; None: it need not."""
    for t in trace.graph.captures.values():
        if differs(t):
            return f"it reads {t.name} ({t.where}), which differs between examples"
    for site in _sites_in(trace.graph):
        return f"it marks {site!r}, whose rule would be called for the sum at second order"
    rule = trace.rule
    for node in trace.graph.nodes:
        if drawn_anew(node.op):
            return f"it draws without a seed ({node.where})"
    if trace.forward or rule.linear or isinstance(rule, BuiltinRule):
        return None
    if rule.linear is False:
        return "it is declared linear=False"
    dxs = [d for _, d in trace.entries if not isinstance(d, Marker) and d is not None]
    for d in dxs:
        if not isinstance(d, Tensor) and np.any(d):
            return f"it gives {d!r}, whatever it is given"
    try:
        given = [d for d in trace.given if d is not None]
        check_linear([d for d in dxs if isinstance(d, Tensor)], given)
    except NonLinear as error:
        return f"{error}, so it is not linear in the gradients it is given"
    return None


def is_marked_inside(op: Any) -> bool:
    """Whether there are marks in the bodies of an op."""
    return any(True for _ in _sites_inside(op))


def _sites_inside(op: Any) -> Iterator[Step]:
    for program in op.bodies:
        yield from _sites_in(program.outputs[0].graph)


def _sites_in(graph: Graph) -> Iterator[Step]:
    for body in bodies_of(graph):
        yield from _sites(body)


def _sites(graph: Graph) -> list[Step]:
    return [*marked_regions(graph), *(n for n in index_of(graph).stamped if n.stamp is not None)]


class Sharing:
    """Looks through a graph, which is built for a batch, for the sites that are called for each.

    varying   the tensors of it that differ between examples, or are made as if they did
    captured  whether a placeholder of it stands for a tensor that differs
    """

    def __init__(self, source: Graph, varying: Iterable[Tensor], captured: Differs) -> None:
        self.source = source
        self.varying = set(varying)
        self.captured = captured
        self.traces: dict[Step, list[Trace] | None] = {}

    def for_each(self) -> set[Tensor]:
        """The outputs of such sites that would be the same for all."""
        outputs: set[Tensor] = set()
        choices = [n for n in self.source.nodes if n.op.bodies]
        steps = dict.fromkeys([*_sites(self.source), *choices])
        self._spread()
        while more := {t for step in steps for t in self._more(step)}:
            outputs |= more
            self.varying |= more
            self._spread()
        return outputs

    def _spread(self) -> None:
        """What depends on what varies, varies."""
        varying = self.varying
        for node in self.source.nodes:
            if not varying.isdisjoint(node.inputs):
                varying.update(node.outputs)

    def _more(self, step: Step) -> list[Tensor]:
        """The outputs of a step that are found to be made for each."""
        if isinstance(step, Node):
            outputs = reads = step.outputs
        else:
            boundary = boundary_of(step)
            outputs = boundary.outputs
            reads = (*boundary.inputs, *boundary.undeclared, *outputs)
        alike = [t for t in outputs if t not in self.varying]
        if alike and (not self.varying.isdisjoint(reads) or self._is_for_each(step)):
            return alike
        return []

    def _is_for_each(self, step: Step) -> bool:
        """Whether the rule of a step, or of one inside of it, is called for each example."""
        rule = step.rule if isinstance(step, Region) else step.stamp
        inside = _sites_inside(step.op) if isinstance(step, Node) and rule is None else [step]
        return any(self._is_called_for_each(site) for site in inside)

    def _is_called_for_each(self, site: Step) -> bool:
        if site not in self.traces:
            self.traces[site] = _traces(site)
        traces = self.traces[site]
        return traces is None or any(why_for_each(t, self._differs) for t in traces)

    def _differs(self, t: Tensor) -> bool:
        """Whether a tensor of the source, or of a body in it, differs between examples."""
        while True:
            if isinstance(t.node.op, Residual):
                t = t.node.inputs[0]
            elif t.graph is self.source:
                return t in self.varying or self.captured(t)
            else:
                home = t.graph.home_of(t) if isinstance(t.graph, BodyGraph) else None
                if home is None:
                    return False
                t = home


def _traces(site: Step) -> list[Trace] | None:
    """What a site's rule, and its own jvp, build; None where they cannot be called."""
    reference = site.rule if isinstance(site, Region) else site.stamp
    try:
        rule = as_rule(reference)
        if isinstance(rule, BuiltinRule):
            return []
        ways = (False, True) if rule.jvp is not None else (False,)
        return [Trace(site, reference, forward=way) for way in ways]
    except Exception:  # whoever differentiates will hear of it
        return None
