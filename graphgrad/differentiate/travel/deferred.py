"""What a rule asks of `site.default` away from its home: taken where its trace is built anew.

The inside of a site that was carried away may have been marked anew there, or its home since. So a
trace does not hold what the default gave at home, but that it was asked for: a `Default` node, in
whose place the site there is asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ...base.errors import GradientError
from ...ir.build import build
from ...ir.context import CONTEXT
from ...ir.node import Node, Tensor
from ...ir.op import Gradients, Op, Types
from ..site import Answers, NodeSite, RegionSite, Site


class NotDeferred(Exception):
    """The rule asks for its default in a way that only the home can answer."""


class Default(Op, interned=False):
    """Gradients of a site's inputs without its rule, made of gradients of its outputs.

    given  the places of the outputs that the inputs of this node are gradients of
    gives  the places of the inputs to which something flows, and their types
    """

    given: tuple[int, ...]
    gives: tuple[int, ...]
    types: Types

    def infer(self, *_: Any) -> Types:
        """As noted."""
        return self.types

    def vjp(self, *args: Any, **_: Any) -> Gradients:
        """Not to be had: what it depends on is not here yet."""
        raise NotDeferred


def traced_site(trace: Any, sweep: Answers, node: Any, region: Any) -> Any:
    """What a trace is of as a site, under the rule that it had when it was carried away.

    node, region  the class of the site
    """
    target, reference = trace.target, trace.reference
    if isinstance(target, Node):
        site = node(target, reference, sweep)
    else:
        site = region(target, reference, sweep, trace.boundary)
    site.marked = reference
    return site


class Deferred(ABC):
    """Whoever answers for the default of a site while its rule is traced, in place of the home."""

    by_home = False

    def as_site(self, trace: Any, sweep: Answers) -> Site:
        """The site of a trace, as one that asks this."""
        site: Away = traced_site(trace, sweep, AwayNode, AwayRegion)
        site.trace, site.defaults = trace, self
        return site

    @abstractmethod
    def take(self, given: Mapping[int, Tensor], site: Away) -> dict[int, Any]:
        """Gradients by place of the input, of those to which something flows."""

    @abstractmethod
    def note(self, stands: Sequence[Tensor], dxs: Sequence[Any]) -> None:
        """Learn what stands in the trace for what was taken."""


class Away(Site):
    """A site at home whose rule is traced for another graph.

    trace     the trace
    defaults  who answers
    """

    trace: Any
    defaults: Deferred

    def _own_default(self, dys: list[Tensor | None]) -> Sequence[Tensor | None]:
        context, scratch = CONTEXT.get(), self.trace.graph
        scratch.deferred = True
        if context.graph is not scratch or context.region is not None or context.stamps is not None:
            raise NotDeferred  # in a branch, or a region or map of the rule, which acts on it
        given = {i: dy for i, dy in enumerate(dys) if dy is not None}
        dxs = self.defaults.take(given, self) if given else {}
        if not dxs:
            return [None] * len(self.inputs)
        types = tuple(self.inputs[i].type for i in dxs)
        stands = build(Default(tuple(given), tuple(dxs), types), tuple(given.values())).outputs
        self.defaults.note(stands, list(dxs.values()))
        at = dict(zip(dxs, stands, strict=True))
        return [at.get(i) for i in range(len(self.inputs))]


class AwayNode(Away, NodeSite):
    """A node."""


class AwayRegion(Away, RegionSite):
    """A region."""


def check_same(op: Default, dxs: Mapping[int, Any], site: Site) -> None:
    """GradientError where other inputs have a gradient than when the rule was traced."""
    if tuple(dxs) != op.gives:
        names = [", ".join(site.inputs[i].name for i in at) or "none" for at in (op.gives, dxs)]
        raise GradientError(
            f"the rule of {site!r} was stored when its default had gradients of {names[0]}; here "
            f"it has gradients of {names[1]}, since the marks inside differ: that needs the graph "
            "it was defined in"
        )
