"""The plan of a sweep: the steps through which xs reach ys, in order, and what is live on the way.

The sweep executes it backward; `explain` shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..base.errors import RegionError
from ..ir.node import Node, Region, Tensor
from ..ir.residual import viewpoint
from ..ops.identities.sequencing import After
from ..ops.sources import StopGradient
from ..regions.boundary import settled_boundary, why_idle
from ..regions.index import is_marked
from .levels import Key, Step, key_of
from .question import Question
from .steps import leading_to, lowest_of


class SweepPlan:
    """What one sweep does, and for the sake of what.

    question  what is asked
    steps     those through which an x reaches a y, inputs first
    live      keys whose gradient somebody wants
    stop      tensors through which nothing flows
    regional  whether there are regions at all
    sites     tensor -> the sites of tensors that it stands in
    """

    __slots__ = ("live", "question", "regional", "sites", "steps", "stop")

    def __init__(self, question: Question, keys: Sequence[Key]) -> None:
        self.question = question
        self.stop = frozenset(question.stops)
        self.live: set[Key] = set()
        self.steps: list[Step] = []
        self.regional = False
        self.sites: Mapping[Tensor, Sequence[Region]] = {}
        if question.xs:
            self._lay(keys)

    def _lay(self, keys: Sequence[Key]) -> None:
        question, tree = self.question, self.question.tree
        graph = question.xs[0].node.graph
        assert graph is not None
        self.regional = bool(tree.regions) or is_marked(graph)
        self.sites = graph.sites
        order = self._order(keys, lowest_of(question.xs, graph, tree))
        for x in question.xs:
            self.live.update(self.keys(x))
        self.steps = self._live(order)

    def _order(self, keys: Sequence[Key], lowest: float) -> list[Step]:
        """The steps that keys depend on, in order."""
        question = self.question
        return leading_to(keys, lowest, self.stop, question.off, self.regional, question.tree)

    def keys(self, t: Tensor) -> list[Key]:
        """All keys of a tensor: it, and it as each region around shows it."""
        tree = self.question.tree
        return [t, *[(t, region) for region in tree.chain(tree.around(t.node))]]

    def is_live(self, x: Tensor, view: Region | None) -> bool:
        """Whether somebody wants the gradient of x as it is read from inside `view`."""
        return key_of(x, view, self.question.off, self.question.tree) in self.live

    def _live(self, steps: Iterable[Step]) -> list[Step]:
        """The steps through which an x reaches a y, in order; notes their outputs as live."""
        live, stop, regional = self.live, self.stop, self.regional
        moved, sites = self.question.tree.moved, self.sites
        live_steps: list[Step] = []
        for step in steps:
            if not isinstance(step, Node):
                if self._passes_region(step):
                    live_steps.append(step)
                continue
            for t in step.inputs:
                if not regional or (
                    t.node.region is None and t.node not in moved and t not in sites
                ):
                    if t in live:
                        break
                elif self.is_live(t, viewpoint(step, self.question.tree)):
                    break
            else:
                continue
            if self.is_cut(step):
                continue
            live_steps.append(step)
            for t in step.outputs:
                if t.type.differentiable and t not in stop:
                    live.add(t)
        return live_steps

    def is_cut(self, step: Node) -> bool:
        """Whether nothing flows through a node that reads what is live."""
        if stops(step, self.question):
            return True
        if type(step.op) is After:  # the other inputs say when, not what
            return not self.is_live(step.inputs[0], viewpoint(step, self.question.tree))
        return False

    def _passes_region(self, region: Region) -> bool:
        """Whether an input is live; then what it leads to is."""
        boundary = settled_boundary(region)
        reads = (*boundary.inputs, *boundary.undeclared)
        for t in reads:
            if self.is_live(t, region):
                break
        else:
            return False
        led = self.led_to(region)
        if not (led or region.allow_empty or any(t.type.differentiable for t in boundary.outputs)):
            raise RegionError(
                f"region {region.name!r} ({region.where}) {why_idle(reads, boundary.outputs)}\n"
                "Include the ops that convert these to floats, or say allow_empty=True."
            )
        for t in led:
            if region.on_tensors or t not in self.stop:
                self.live.add((t, region))
        return True

    def led_to(self, region: Region) -> list[Tensor]:
        """The outputs of a region that is passed: all, for its rule says what depends on what."""
        return [t for t in settled_boundary(region).outputs if t.type.differentiable]


def stops(node: Node, question: Question) -> bool:
    """Whether it is a stop_gradient for which no rule speaks."""
    return type(node.op) is StopGradient and question.rule_of(node, node.stamp) is None
