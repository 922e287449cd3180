"""What stands for what where a graph was carried to, and how its rules are called there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol

from ...base.errors import GraphError
from ...ir.build import read_here
from ...ir.context import CONTEXT, bodies_around
from ...ir.graph import Graph
from ...ir.node import Node, Region, Tensor
from ...ir.residual import Residual
from ..levels import Step
from ..site import Site
from .trace import Trace, read_inside


class Carrier(ABC):
    """A substitution: what stands for the tensors and regions of one graph in another.

    source  the one graph; None where it carries from any
    outer   what carries from the graph around that one; None where nothing does
    """

    source: Graph | None = None
    outer: Carrier | None = None

    @abstractmethod
    def tensor(self, t: Tensor) -> Tensor:
        """What stands for t; GraphError where nothing does."""

    @abstractmethod
    def region(self, region: Region) -> Region:
        """What stands for a region; GraphError where nothing does."""

    def step(self, step: Step) -> Step | None:
        """What stands for a step of the source; None where nothing does."""
        with suppress(GraphError):
            if isinstance(step, Region):
                return self.region(step)
            return as_one(step, self.tensor(step.outputs[0]).node)
        return None

    @property
    def sizes(self) -> dict[str, Any]:
        """What named lengths of the source are there; those that keep their names are left out."""
        return {} if self.outer is None else self.outer.sizes

    def of_body(self, body: Graph) -> list[Carrier]:
        """What carries the steps of a body in the source."""
        return []

    def carriers_of(self, step: Step) -> list[Carrier]:
        """What carries a step of the source, of a graph around it, or of a body in one of them."""
        carrier: Carrier | None = self
        outward: dict[Graph | None, Carrier] = {}
        while carrier is not None:
            outward[carrier.source] = carrier
            carrier = carrier.outer
        inward: list[Graph] = []
        for graph in bodies_around(step.graph):
            if graph in outward:
                carriers = [outward[graph]]
                for body in reversed(inward):
                    carriers = [inner for each in carriers for inner in each.of_body(body)]
                return carriers
            inward.append(graph)
        return [outward[None]] if None in outward else []  # what carries from any graph

    def counterparts(self, step: Step) -> list[tuple[Step, Carrier]]:
        """What stands for a step of any of these, with what carried it."""
        pairs = [(carrier.step(step), carrier) for carrier in self.carriers_of(step)]
        return [(there, carrier) for there, carrier in pairs if there is not None]

    def captured(self, t: Tensor) -> Tensor:
        """What stands here for a tensor that was captured at home, read as it was read there."""
        op = t.node.op
        if not isinstance(op, Residual):
            return read_here((self.tensor(t),))[0]
        tensor, context = self.tensor(t.node.inputs[0]), CONTEXT.get()
        with suppress(GraphError):  # a region that was marked at home later is none here
            at = self.region(op.region)
            if not at.contains(context.region):
                tensor = read_inside(at, tensor)
        return read_here((tensor,))[0]

    def around_of(self, region: Region | None) -> Region | None:
        """The region in which the members of a region, or of none, lie here."""
        return None if region is None else self.region(region)


def as_one(node: Node, new: Node) -> Step:
    """What stands for a node whose first output is made by `new`: a region, if it took several."""
    if node.stamp is None or new.stamp is not None:
        return new
    region = new.region
    return region if region is not None and region.stamped == node.type else new


class Rebuilding(Protocol):
    """A trace that is being built anew for a site.

    site     the site whose rule it is a trace of
    tensors  what stands for which tensor of the trace
    """

    site: Site
    tensors: dict[Tensor, Tensor]

    def run(self) -> None:
        """Build what is not there yet."""

    def counterparts(self, step: Step) -> list[tuple[Step, Carrier]]:
        """What stands for a step of the trace, or of a body in it, with what carried it."""

    def entry(self, dx: Any) -> Any:
        """An entry of the rule, as it is here."""

    def default_for(self, given: Mapping[int, Tensor]) -> dict[int, Any]:
        """The default of the site, asked for while the trace is not complete, by place."""


class Convention(Protocol):
    """How rules are called whose sites were carried: as at home, or for a batch.

    batches  whether a site here is a batch of that at home
    """

    batches: bool

    def carries(self, rule: Any, owner: Node | Region) -> bool:
        """Whether a mark stands here for its trace, and not for itself."""

    def transplant(
        self, carrier: Carrier, source: Graph, given: dict[Tensor, Tensor]
    ) -> Rebuilding:
        """What builds a trace anew here."""

    def note(self, d: Tensor, t: Tensor) -> None:
        """Learn of the gradient or tangent of a tensor before it is used."""

    def check(self, trace: Trace, site: Site, carrier: Carrier) -> None:
        """GradientError where the traced rule does not serve for this site."""

    def fitted(self, d: Any, t: Tensor, site: Site) -> Any:
        """The entry of the site's rule for t here."""

    def defers(self, site: Site) -> bool:
        """Whether the default of the site here is what the rule means by it at home."""
