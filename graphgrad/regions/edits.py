"""Regions put around nodes whose reads are known already, and taken away from around them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter

from ..base.ancestry import OUTSIDE
from ..ir.graph import Graph
from ..ir.node import Node, Region, Tensor, ancestry_of
from ..ir.region_tree import MARKED, RegionTree
from ..ir.residual import viewpoint
from .boundary import Boundary, Use, forget, known, note_left, take_in_pins, when_used

_index = attrgetter("index")
Read = tuple[Region | None, Region | None, Use]
"""A use of a tensor, with the region in which it is and the one from inside which it sees."""


class Survey:
    """What a region reads, uses and lets out, by a look at nodes: those inside, and their readers.

    reads  tensors built outside and read inside, with their first use
    used, left  tensors built inside that something inside, or outside, reads
    """

    def __init__(
        self,
        region: Region,
        nodes: Iterable[Node],
        inner: Iterable[Region],
        tree: RegionTree = MARKED,
    ) -> None:
        self.region = region
        self.tree = tree
        self.reads: dict[Tensor, Use] = {}
        self.used: set[Tensor] = set()
        self.left: set[Tensor] = set()
        for node in nodes:
            inside = self.holds(node)
            sees = inside or tree.holds(region, viewpoint(node, tree))
            for i, t in enumerate(node.inputs):
                self._read(t, inside, sees, (node.index, None, i))
        for each in inner:
            first = known(each).first
            if first is not None:
                for i, t in enumerate(each.pinned_inputs or ()):
                    self._read(t, True, True, (first.index - 0.5, each, i))

    def holds(self, node: Node) -> bool:
        """Whether a node lies in the region."""
        return self.tree.holds(self.region, self.tree.around(node))

    def _read(self, t: Tensor, inside: bool, sees: bool, use: Use) -> None:
        if not self.holds(t.node):
            if inside:
                self.reads[t] = min(use, self.reads.get(t, use), key=when_used)
        elif inside:
            self.used.add(t)
        elif not sees:
            self.left.add(t)

    def boundary(
        self, nodes: Iterable[Node], children: Iterable[Region], inside: Iterable[Node]
    ) -> Boundary:
        """The boundary of a region in which these lie directly; inside: all nodes in it."""
        boundary = Boundary(self.region)
        boundary.nodes = dict.fromkeys(sorted(nodes, key=_index))
        boundary.children = dict.fromkeys([r for r in children if known(r).first is not None])
        boundary.first = min(inside, key=_index, default=None)
        boundary.reads = self.reads
        return boundary


def insert(
    nodes: Collection[Node],
    children: Collection[Region],
    inside: Collection[Node],
    survey: Survey,
) -> None:
    """Take in a region that was put around nodes and regions, as a survey of it has found it.

    inside  all nodes in it
    """
    region = survey.region
    boundary = region.boundary = survey.boundary(nodes, children, inside)
    parent = region.parent
    for node in inside:
        for t in node.outputs:
            _come_between(t, region, survey)
    if parent is not None:
        around = known(parent)
        if boundary.first is not None:
            around.children[region] = None
        for node in nodes:
            around.nodes.pop(node, None)
        for child in children:
            around.children.pop(child, None)
    forget("_exits", parent)
    forget("_last", parent)
    take_in_pins(region)
    if region.pinned_inputs is not None:
        while parent is not None:
            known(parent).unsettle()
            parent = parent.parent


def _come_between(t: Tensor, region: Region, survey: Survey) -> None:
    """Note what a tensor is to a region that came between two around it."""
    used_in, left_to = region.graph.used_in, region.graph.left_to
    if t in survey.used:
        before = used_in.get(t)
        if before is None or not region.contains(before):
            used_in[t] = region
    if t in survey.left:
        left_to.setdefault(t, region.parent)
    elif t in left_to and not region.contains(left_to[t]):
        left_to[t] = region


# --- regions that are taken away ------------------------------------------------------------------


def remove(graph: Graph, gone: set[Region]) -> None:
    """Give what lies in regions to those around them. Settled boundaries of others stay."""
    beyond = _beyond(gone)
    for node in _inside_any(gone):
        _come_apart(node, beyond)
    for region in gone:
        _give_up(region, beyond[region], gone)
    for around in set(beyond.values()):
        if around is not None:
            nodes = known(around).nodes
            known(around).nodes = dict.fromkeys(sorted(nodes, key=_index))
    for inner in graph.regions:
        if inner.parent in beyond:
            inner.parent = beyond[inner.parent]
    for region in gone:
        region.boundary = region.settled = region.pinned_outputs = None


def _beyond(gone: set[Region]) -> dict[Region | None, Region | None]:
    """Region that goes -> the innermost around it that stays."""
    beyond: dict[Region | None, Region | None] = {}
    for region in gone:
        inner: list[Region] = []
        at: Region | None = region
        while at in gone and at not in beyond:
            inner.append(at)
            at = at.parent
        beyond.update(dict.fromkeys(inner, beyond.get(at, at)))
    return beyond


def _give_up(region: Region, around: Region | None, gone: set[Region]) -> None:
    """Have what lies directly in a region lie in the innermost around it that stays."""
    old = known(region)
    if around is not None:
        for what in ("_exits", "_last"):
            forget(what, around)
        new = known(around)
        new.nodes.update(old.nodes)
        new.children.update(dict.fromkeys(r for r in old.children if r not in gone))
        new.children.pop(region, None)
    for node in old.nodes:
        node.region = around


def _inside_any(regions: Iterable[Region]) -> list[Node]:
    """The nodes that lie in any of these, each once."""
    seen = dict.fromkeys(regions)
    stack = list(seen)
    nodes: list[Node] = []
    while stack:
        boundary = known(stack.pop())
        nodes += boundary.nodes
        fresh = [r for r in boundary.children if r not in seen]
        seen.update(dict.fromkeys(fresh))
        stack += fresh
    return nodes


def _come_apart(node: Node, beyond: dict[Region | None, Region | None]) -> None:
    """Note where the tensors of a node are used and left, once only `beyond` is around them."""
    graph = node.graph
    assert graph is not None
    for t in node.outputs:
        if graph.left_to.get(t) in beyond:
            graph.left_to[t] = beyond[graph.left_to[t]]
        if graph.used_in.get(t) in beyond:
            _use_in(t, beyond[graph.used_in[t]])


def _use_in(t: Tensor, region: Region | None) -> None:
    """Note where something reads t: in no region where that is None."""
    graph = t.node.graph
    assert graph is not None
    if region is None:
        graph.used_in.pop(t, None)
    else:
        graph.used_in[t] = region


def drop_reads(t: Tensor, region: Region | None, uses: Sequence[Read]) -> None:
    """Note anew who reads t, which a region inside of these declared.

    uses: all there are.
    """
    graph, inside = t.node.graph, t.node.region
    assert graph is not None
    common = [ancestry_of(inside).common(ancestry_of(here)) for here, _, _ in uses]
    forget("_exits", inside)
    _use_in(t, max(common, key=lambda each: each.depth, default=OUTSIDE).item)
    graph.left_to.pop(t, None)
    for here, view, _ in uses:
        note_left(t, here, view)
    while region is not None:
        boundary = known(region)
        if region.settled is None and t in boundary.reads:
            kept = [use for at, _, use in uses if region.contains(at)]
            if kept:
                boundary.reads[t] = min(kept, key=when_used)
            else:
                del boundary.reads[t]
        boundary.unsettle()
        region = region.parent
