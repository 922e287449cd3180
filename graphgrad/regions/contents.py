"""What lies in a region, and what crosses its border."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from ..ir.node import Node, Region, Tensor, depth_of

_index = attrgetter("index")
Use = tuple[float, Region | None, int]
"""Where a tensor is read: when; by which region that declares it, or a node (None); as which input.

A region reads its declared inputs just before its first member does, an outer one first.
"""


def when_used(use: Use) -> tuple[float, int, int]:
    """What orders uses: the earlier, the outer, the input before."""
    start, by, place = use
    return start, depth_of(by), place


class Contents:
    """What lies in a region, and what crosses its border. `Boundaries` alone writes it.

    nodes      those that lie directly inside, in order of creation; children: the regions that do
    first      the first node inside, inner regions' nodes included; None: there is none
    reads      tensors built outside and read inside, with their first use
    left       tensors built inside that something outside reads
    shared     of a region that was put around nodes: the constants among the reads, no inputs
    declaring  of a group, which has no children: the regions inside whose inputs are declared
    sinks      the nodes inside of which nothing inside reads an output, in order; None: nobody has
               asked. Where they are known, those of all regions inside are
    last       with them, the last node inside
    """

    __slots__ = (
        "children",
        "declaring",
        "first",
        "last",
        "left",
        "nodes",
        "reads",
        "region",
        "shared",
        "sinks",
    )

    def __init__(
        self,
        region: Region,
        nodes: Iterable[Node] = (),
        children: Iterable[Contents] = (),
        first: Node | None = None,
        *,
        shared: frozenset[Tensor] = frozenset(),
        declaring: frozenset[Region] = frozenset(),
    ) -> None:
        self.region = region
        self.nodes = dict.fromkeys(nodes)
        self.children = {each.region: each for each in children}
        self.first = first
        self.reads: dict[Tensor, Use] = {}
        self.left: dict[Tensor, None] = {}
        self.shared = shared
        self.declaring = declaring
        self.sinks: dict[Node, None] | None = None
        self.last: Node | None = None

    @property
    def members(self) -> list[Node]:
        """The nodes inside, inner regions' nodes included, in order of creation."""
        if not self.children:
            return list(self.nodes)
        return sorted([n for each in self.within() for n in each.nodes], key=_index)

    def within(self) -> list[Contents]:
        """These, and those of the regions inside, outer ones first."""
        within = [self]
        for each in within:
            within += each.children.values()
        return within

    def work_out(self) -> dict[Node, None]:
        """The sinks, worked out for all inside for which they are not yet."""
        if self.sinks is None:
            unknown = [self]
            if self.children:
                for each in unknown:
                    unknown += [c for c in each.children.values() if c.sinks is None]
            for each in reversed(unknown):
                each._work_out()
            assert self.sinks is not None
        return self.sinks

    def _work_out(self) -> None:
        """The sinks and the last node, where those of the children are known."""
        nodes = list(self.nodes)
        used = {t for node in nodes for t in node.inputs}
        last = nodes[-1] if nodes else None
        for child in self.children.values():
            assert child.sinks is not None
            used.update(child.reads)
            nodes += _shown(child.region, child.sinks)
            if child.last is not None and (last is None or child.last.index > last.index):
                last = child.last
        if self.children or self.declaring:
            for region in self.children or self.declaring:
                used.update(region.pinned_inputs or ())
            nodes.sort(key=_index)
        self.last = last
        self.sinks = {node: None for node in nodes if used.isdisjoint(node.outputs)}

    def inferred(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """What is read, in order of first use; and what leaves, or nothing inside uses.

        Of a node of which something leaves, the outputs that nothing reads do not count.
        """
        reads, left = self.reads, self.left
        inputs = [t for t in reads if t not in self.shared] if self.shared else [*reads]
        if len(inputs) > 1:
            inputs.sort(key=lambda t: when_used(reads[t]))
        exits: Iterable[Node] = self.work_out()
        passed = {t.node for t in left}.difference(exits)
        if passed:
            exits = sorted([*exits, *passed], key=_index)
        outputs: list[Tensor] = []
        for node in exits:
            outputs += [t for t in node.outputs if t in left] or node.op.returned(node.outputs)
        return tuple(inputs), tuple(outputs)


def _shown(region: Region, sinks: Iterable[Node]) -> Iterable[Node]:
    """The nodes that nothing reads, without those that declared outputs hide."""
    if region.pinned_outputs is None:
        return sinks
    makers = {t.node for t in region.pinned_outputs}
    return [node for node in sinks if node in makers]
