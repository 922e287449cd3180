"""Relevance on its way back: which tensors carry it, what keeps some of it, where it got stuck."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from ..base.collector import having
from ..base.errors import GradientError, counted
from ..differentiate.site import NodeSite, Site
from ..differentiate.travel.trace import TraceGraph
from ..ir.graph import current
from ..ir.node import Node, Tensor
from ..ops.base import NO_GRAD, ZeroTensor, is_zero
from ..ops.control import BodyGraph, around
from ..ops.create.creation import zeros_like
from .sites import total


def flows(dx: Any) -> bool:
    """Whether an entry is more than nothing or a structural zero."""
    return isinstance(dx, Tensor) and not is_zero(dx)


STOPS = ("StopGradient", "ZeroGradient")


class Ledger:
    """What one question of relevance knows and notes.

    asks                whether there is a question: it is known what carries relevance
    biases, stabiliser  what constants and stabilisers keep, each a sum; noted if it counts
    unknown             the nodes that relevance reached and that have no rule
    """

    asks = True

    def __init__(self, xs: Iterable[Tensor], counts: bool = False) -> None:
        self.counts = counts
        self.biases: list[Tensor] = []
        self.stabiliser: list[Tensor] = []
        self.unknown: list[Node] = []
        self.reached = dict.fromkeys(xs, True)
        self.depends = dict(self.reached)
        self.held: dict[tuple[Tensor, bool], bool] = {}
        self.graph = next((x.graph for x in self.reached), None)
        alike = all(x.graph is self.graph for x in self.reached)
        self.lowest = min((x.node.index for x in self.reached), default=0) if alike else 0

    # --- who carries -----------------------------------------------------------------------------

    def carries(self, t: Tensor) -> bool:
        """Whether t is made from an x by way of floating tensors, shapes and stops apart."""
        return t.type.differentiable and self._made_from(t, self.reached, self._carried)

    def varies(self, t: Tensor) -> bool:
        """Whether t is made from an x at all, by way of indices and conditions too."""
        return self._made_from(t, self.depends, self._read)

    def places(self, site: Site) -> list[int]:
        """The inputs of a site that carry, by place."""
        skipped = site.op.shape_only if isinstance(site, NodeSite) else ()
        return [i for i, x in enumerate(site.inputs) if i not in skipped and self.carries(x)]

    def _made_from(
        self, t: Tensor, known: dict[Tensor, bool], sources: Callable[[Tensor], Sequence[Tensor]]
    ) -> bool:
        stack = [t]
        while stack:
            top = stack[-1]
            if top in known:
                stack.pop()
                continue
            before = sources(top)
            unknown = [s for s in before if s not in known]
            if unknown and not any(known.get(s) for s in before):
                stack += unknown
            else:
                known[top] = any(known.get(s) for s in before)
        return known[t]

    def _carried(self, t: Tensor) -> list[Tensor]:
        node = None if isinstance(t, ZeroTensor) else t.node
        if node is None or node.op.type in STOPS:
            return []
        skipped = node.op.shape_only
        sources = [s for i, s in enumerate(self._read(t)) if i not in skipped]
        return [s for s in sources if s.type.differentiable]

    def _read(self, t: Tensor) -> Sequence[Tensor]:
        """What the node that makes t reads; for what a body captured, what it stands for."""
        if isinstance(t, ZeroTensor):
            return ()
        graph = t.node.graph
        if graph is self.graph and t.node.index < self.lowest:
            return ()
        if isinstance(graph, BodyGraph) and not t.node.inputs:
            home = graph.home_of(t)
            return () if home is None else (home,)
        return t.node.inputs

    # --- what is kept ----------------------------------------------------------------------------

    def keep(self, kept: list[Tensor], relevance: Tensor) -> None:
        """Note relevance that does not flow on."""
        if self.counts:
            if current().graph is not self.graph:
                raise self.uncounted("in a branch of cond()")
            kept.append(total(relevance))

    def uncounted(self, where: str) -> GradientError:
        """The error for what cannot be added up here."""
        return GradientError(
            f"conservation() cannot measure conservation {where}; use relevance() and compare the "
            "sums"
        )

    def keep_rest(self, dys: Sequence[Any], dxs: Sequence[Any]) -> None:
        """Note as kept by constants what arrived and does not flow on."""
        if self.counts:
            for dy in filter(flows, dys):
                self.keep(self.biases, dy)
            for dx in filter(flows, dxs):
                self.keep(self.biases, -dx)

    # --- where it got stuck ----------------------------------------------------------------------

    def stuck(self, site: NodeSite) -> list[Any]:
        """Note a node without a rule; zeros that are none yet flow on, to find the others."""
        self.unknown.append(site.node)
        at = self.places(site)
        return [zeros_like(x) if i in at else NO_GRAD for i, x in enumerate(site.inputs)]

    def check_known(self, who: str) -> None:
        """GradientError that names the nodes without a rule."""
        nodes = sorted(set(self.unknown), key=lambda n: n.index)
        if nodes:
            rows = [f"\n  {n.name} ({n.type}), built at {n.where}" for n in nodes[:8]]
            more = f"\n  and {len(nodes) - 8} more" if len(nodes) > 8 else ""
            raise GradientError(
                f"{who} has no rule for {counted(len(nodes), 'op')} on the way to x:"
                f"{''.join(rows)}{more}\n"
                f'Give one, as in rules={{"{nodes[0].type}": gg.rules.lrp_pass()}}, explain a '
                'score that comes before, or say unknown="gradient" for the derivative there.'
            )

    def is_away(self) -> bool:
        """Whether a rule is being traced for its use elsewhere: x is not seen from there."""
        known = around(self.graph) if self.graph is not None else []
        here = around(current().graph)
        return any(isinstance(graph, TraceGraph) and graph not in known for graph in here)

    def check_at_home(self, site: NodeSite) -> None:
        """GradientError where it is not known what carries relevance."""
        if self.is_away():
            raise GradientError(
                f"relevance reaches {site!r} by the rule of a region that was copied from another "
                "graph, where it is not known which tensors carry relevance. Give the region a "
                "rule that does not call its default, or switch it off with rules={region: "
                "None}."
            )


class _Silent(Ledger):
    """Outside of a question: everything carries, nothing is noted."""

    asks = False

    def __init__(self) -> None:
        super().__init__(())

    def carries(self, t: Tensor) -> bool:
        return t.type.differentiable


LEDGER: ContextVar[Ledger | None] = ContextVar("ledger", default=None)
"""The ledger of the running question of relevance."""


def ledger() -> Ledger:
    """That of the running question; one that notes nothing outside, and in rules that travelled."""
    book = LEDGER.get()
    if book is None or not book.is_away():
        return book or _Silent()
    if book.counts:
        raise book.uncounted("by a rule that came from another graph")
    return _Silent()


def asking(book: Ledger, f: Callable[[], Any]) -> Any:
    """What f gives, which is asked with this ledger."""
    return having(LEDGER, book, f)
