"""The boundary of a region: what enters, what leaves, what is inside.

Kept up as nodes are born: each call takes in the nodes built since the last one. What leaves is
fixed the first time anybody asks, so that a rule's argument count never depends on what is built
later.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.graph import Graph
from ..ir.node import Node, Region, Tensor
from ..ir.residual import viewpoint


class Boundary:
    """What is known of one region.

    members  nodes inside, inner regions' nodes included, in order of creation
    reads    tensors built outside and read inside, with the place of their first use
    left     tensors built inside that something outside reads
    used     tensors built inside that something inside reads
    inner    regions inside whose inputs are declared: they read these, used or not
    inputs, outputs  the settled boundary: pinned, or inferred when first asked for
    undeclared       tensors read inside that are not among the pinned inputs
    """

    __slots__ = (
        "_reach",
        "inner",
        "input_set",
        "inputs",
        "latest",
        "left",
        "members",
        "output_set",
        "outputs",
        "reads",
        "region",
        "settled",
        "undeclared",
        "used",
    )

    def __init__(self, region: Region) -> None:
        self.region = region
        self.members: list[Node] = []
        self.reads: dict[Tensor, float] = {}
        self.left: set[Tensor] = set()
        self.used: set[Tensor] = set()
        self.inner: dict[Region, None] = {}
        self.settled = False
        self.latest = -1
        self.inputs: tuple[Tensor, ...] = ()
        self.outputs: tuple[Tensor, ...] = ()
        self.input_set: frozenset[Tensor] = frozenset()
        self.output_set: frozenset[Tensor] = frozenset()
        self.undeclared: tuple[Tensor, ...] = ()
        self._reach: dict[Tensor, int] | None = None

    @property
    def position(self) -> float:
        """Where the region stands among the nodes as a step: after its last member and input."""
        last = self.members[-1].index if self.members else -1
        return max(last, self.latest) + 0.5

    def settle(self) -> None:
        """Fix inputs and outputs for good."""
        region = self.region
        if region.settled is None:
            inputs, outputs = region.pinned_inputs, region.pinned_outputs
            region.settled = (
                tuple(sorted(self.reads, key=self.reads.__getitem__)) if inputs is None else inputs,
                self._inferred_outputs() if outputs is None else outputs,
            )
        self.settled = True
        self.inputs, self.outputs = region.settled
        self.input_set, self.output_set = frozenset(self.inputs), frozenset(self.outputs)
        self.latest = max((t.node.index for t in self.inputs), default=-1)
        self.undeclared = tuple(t for t in self.reads if t not in self.input_set)

    def _inferred_outputs(self) -> tuple[Tensor, ...]:
        found: list[Tensor] = []
        for node in self.members:
            untouched = all(t not in self.left and t not in self.used for t in node.outputs)
            found += [t for t in node.outputs if t in self.left or untouched]
        return tuple(found)

    def reach(self, x: Tensor) -> int:
        """The outputs that x reaches inside, as bits: whatever lies on the way counts."""
        if self._reach is None:
            self._reach = self._trace()
        return self._reach.get(x, 0)

    def _trace(self) -> dict[Tensor, int]:
        """Backward over the members: which outputs each tensor leads to."""
        mask: dict[Tensor, int] = {}
        for bit, t in enumerate(self.outputs):
            mask[t] = mask.get(t, 0) | 1 << bit
        begins = {known(inner).members[0]: inner for inner in self.inner}
        for node in reversed(self.members):
            _pull(mask, (node,), node.inputs)
            if node in begins:
                inner = begins[node]
                _pull(mask, known(inner).members, inner.pinned_inputs or ())
        return mask


def _pull(mask: dict[Tensor, int], nodes: Iterable[Node], inputs: Iterable[Tensor]) -> None:
    """Give the inputs the bits of all outputs of the nodes."""
    bits = 0
    for node in nodes:
        for t in node.outputs:
            bits |= mask.get(t, 0)
    if bits:
        for t in inputs:
            mask[t] = mask.get(t, 0) | bits


def boundary_of(region: Region) -> Boundary:
    """The settled boundary of a region."""
    scan(region.graph)
    found = known(region)
    if not found.settled:
        found.settle()
    return found


def scan(graph: Graph) -> None:
    """Take in the nodes built since the last scan."""
    if graph.scanned == len(graph.nodes):
        return
    if graph.regions:
        for node in graph.nodes[graph.scanned :]:
            take_in(node, None)
    graph.scanned = len(graph.nodes)


def rescan(region: Region, start: int) -> None:
    """Take nodes from `start` on into a region that was marked after they had been scanned."""
    for node in region.graph.nodes[start : region.graph.scanned]:
        take_in(node, region)


def take_in(node: Node, only: Region | None) -> None:
    """Note what a node means for the regions around it and around what it reads."""
    here, view = node.region, viewpoint(node)
    for t in node.inputs:
        _take_in_read(t, here, view, node.index, only)
    for region in _chain(here, only):
        members = known(region).members
        members.append(node)
        if len(members) == 1:
            take_in_pins(region)


def _take_in_read(
    t: Tensor, here: Region | None, view: Region | None, place: float, only: Region | None
) -> None:
    there = t.node.region
    if there is None and here is None:
        return
    for region in _chain(there, only):
        if region.contains(here):
            known(region).used.add(t)
        elif not region.contains(view):
            known(region).left.add(t)
    for region in _chain(here, only):
        if not region.contains(there):
            reads = known(region).reads
            reads[t] = min(place, reads.get(t, place))


def take_in_pins(region: Region) -> None:
    """Note that a region reads its declared inputs, whether or not a node inside does."""
    members = known(region).members
    if region.pinned_inputs is None or not members:
        return
    for t in region.pinned_inputs:
        _take_in_read(t, region.parent, region.parent, members[0].index - 0.5, None)
    for around in _chain(region.parent, None):
        known(around).inner[region] = None


def _chain(region: Region | None, only: Region | None) -> list[Region]:
    if only is not None:
        return [only] if only.contains(region) else []
    chain = []
    while region is not None:
        chain.append(region)
        region = region.parent
    return chain


def known(region: Region) -> Boundary:
    """What is known so far of the boundary of a region."""
    found = region.boundary
    if found is None:
        found = region.boundary = Boundary(region)
    return found  # type: ignore[no-any-return]
