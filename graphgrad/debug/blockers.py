"""Why nothing reaches a gradient: the steps that get one and do not pass it on.

Where a gradient is zero from the start, nothing was derived on the way to it. What was derived next
to it shows how far the gradient came: from there the forward graph is followed down to x.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..base.errors import GraphGradError
from ..ir.build import build
from ..ir.graph import Graph, GraphScope
from ..ir.node import Node, Region, RuleCall, Tensor, enclosing
from ..ops.base import NO_GRAD, is_zero
from ..ops.sources import Placeholder

Step = Node | Region


class Blocker(NamedTuple):
    """A step that a gradient reaches, and that passes nothing on.

    step    the node, or the region whose rule passes nothing to what lies below
    region  the marked region that it is in, of whose rule nothing was derived: it was switched off,
            or gave back what it got, or gave nothing
    """

    step: Step
    region: Region | None = None


def blockers(x: Node, zero: Node, derived: Sequence[Node]) -> list[Blocker]:
    """The steps above x that stop its gradient; none where none is found.

    zero: the node that stands for the gradient of x. derived: the nodes of the backward pass.
    """
    if x.graph is None or x.graph is not zero.graph or x.origin is not None:
        return []
    search = _Search(x, x.graph.nodes[: zero.index], derived)
    return (search if search.starts else _Search(x, *_same_call(zero))).found()


def _same_call(zero: Node) -> tuple[Sequence[Node], list[Node]]:
    """The nodes before a node, and those of them that were derived in the same go."""
    nodes = zero.graph.nodes[: zero.index] if zero.graph is not None else []
    start = len(nodes)
    while start and nodes[start - 1].origin is not None:
        start -= 1
    return nodes, nodes[start:]


class _Search:
    """From the steps that a gradient reached down to x.

    above    x, and what the user built on it
    reached  the steps that something was derived from
    ruled    those of them for which a rule was called
    starts   those of them above x, with what they read of what is above it
    """

    def __init__(self, x: Node, nodes: Sequence[Node], derived: Sequence[Node]) -> None:
        self.x = x
        self.above = {x: None}
        for node in nodes[x.index + 1 :]:
            if node.origin is None and any(t.node in self.above for t in node.inputs):
                self.above[node] = None
        calls = [n.origin for n in derived if isinstance(n.origin, RuleCall)]
        self.ruled: set[Step] = {call.site for call in calls}
        self.reached = self.ruled | {n.origin for n in derived if isinstance(n.origin, Node)}
        self.starts: dict[Step, dict[Tensor, None]] = {}
        for node in self.above:
            step = self._step(node)
            if step in self.reached and node is not x:
                reads = [t for t in self._inputs(node) if self._step(t.node) is not step]
                self.starts.setdefault(step, {}).update(dict.fromkeys(reads))

    def found(self) -> list[Blocker]:
        """What stops the gradient at or below each start."""
        blocking: dict[Blocker, None] = {}
        for start, reads in self.starts.items():
            if isinstance(start, Node) and start not in self.ruled:
                blocking.update(dict.fromkeys(self._below(start, start)))
            else:
                for t in reads:
                    blocking.update(dict.fromkeys(self._below(start, t.node)))
        return list(blocking)

    def _below(self, start: Step, first: Node) -> list[Blocker]:
        """What stops the gradient first on each way from a node down to x; where that is in doubt,
        what stops it next too.

        Where a way is free: the regions on it of whose rules nothing was derived, or the start.
        """
        blocking: dict[Blocker, None] = {}
        silent: dict[Region, None] = {}
        free, seen, stack = False, {first}, [(first, False)]
        while stack:
            node, doubtful = stack.pop()
            free = free or node is self.x
            if node is self.x or (node is not start and self._step(node) in self.reached):
                continue
            region = next((r for r in enclosing(node.region) if r.rule is not None), None)
            if region is not None:
                silent[region] = None
            reads = list(self._inputs(node))
            shut = {read for read in reads if not passes(node, read)}
            if shut and (region is None or not doubtful):
                blocking[Blocker(node, region)] = None
            for read in reads:
                goes_on = region is not None or read not in shut
                if goes_on and read.node not in seen:
                    seen.add(read.node)
                    stack.append((read.node, doubtful or read in shut))
        if blocking or not free:
            return list(blocking)
        return [Blocker(r) for r in silent] or ([Blocker(start)] if start in self.ruled else [])

    def _step(self, node: Node) -> Step:
        """The region whose rule answered for a node, or the node."""
        return next((r for r in enclosing(node.region) if r in self.reached), node)

    def _inputs(self, node: Node) -> Iterator[Tensor]:
        return (t for t in node.inputs if t.node in self.above)


def passes(node: Node, read: Tensor) -> bool:
    """Whether the own gradient of a node gives anything to one of its inputs: asked elsewhere, on
    placeholders, so that nothing is added to the graph."""
    if not any(t.type.differentiable for t in node.outputs):
        return False
    if not read.type.differentiable or not node.op.pure or node.op.bodies:
        return True  # it is what makes `read` that stops it; asking the others would do something
    try:
        with GraphScope(Graph("asked")):
            asked = build(node.op, tuple([_like(t) for t in node.inputs]))
            dys = [_like(t) if t.type.differentiable else None for t in asked.outputs]
            dxs = node.op.vjp(asked, *dys)
    except GraphGradError:
        return True
    return any(
        not (dx is NO_GRAD or is_zero(dx))
        for t, dx in zip(node.inputs, dxs, strict=False)
        if t is read
    )


def _like(t: Tensor) -> Tensor:
    return build(Placeholder(t.shape, t.dtype), ()).outputs[0]
