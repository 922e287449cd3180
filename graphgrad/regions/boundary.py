"""The boundary of a region: what enters, what leaves, what is inside.

Kept up as nodes are born: each call takes in the nodes built since the last one. What leaves is
fixed the first time anybody asks, so that a rule's argument count never depends on what is built
later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..ir.graph import Graph
from ..ir.groups import Groups, around, holds
from ..ir.locks import lock_of_module
from ..ir.node import Node, Region, Tensor, enclosing, shared
from ..ir.residual import viewpoint

Place = tuple[int, int]
"""Where a tensor is read: by which node, as which of its inputs."""

LOCK = lock_of_module()
"""Held while what is known of graphs is brought up to date: threads may differentiate one graph."""


class Boundary:
    """What is known of one region.

    members  nodes inside, inner regions' nodes included, in order of creation
    reads    tensors built outside and read inside, with the place of their first use by a node
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
        self.reads: dict[Tensor, Place] = {}
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
                self._inferred_inputs() if inputs is None else inputs,
                self._inferred_outputs() if outputs is None else outputs,
            )
        self.inputs, self.outputs = region.settled
        self.input_set, self.output_set = frozenset(self.inputs), frozenset(self.outputs)
        self.latest = max((t.node.index for t in self.inputs), default=-1)
        self.undeclared = tuple(t for t in self.reads if t not in self.input_set)
        self.settled = True

    def _inferred_inputs(self) -> tuple[Tensor, ...]:
        """What is read, in order of first use.

        A region inside reads its declared inputs before its first member does, an outer one first.
        """
        places: dict[Tensor, tuple[float, int, int]]
        places = {t: (index, 0, i) for t, (index, i) in self.reads.items()}
        for region in self.inner:
            for i, t in enumerate(region.pinned_inputs or ()):
                if t in places:
                    start = known(region).members[0].index - 0.5
                    places[t] = min(places[t], (start, len(enclosing(region)), i))
        return tuple(sorted(places, key=places.__getitem__))

    def _inferred_outputs(self) -> tuple[Tensor, ...]:
        left, used = self.left, self.used
        found: list[Tensor] = []
        for node in self.members:
            made = node.outputs
            if not left.isdisjoint(made):
                found += [t for t in made if t in left]
            elif used.isdisjoint(made):
                found += made
        return tuple(found)

    def reach(self, x: Tensor) -> int:
        """The outputs that x reaches inside, as bits: whatever lies on the way counts."""
        if self._reach is None:
            self._reach = self._trace()
        return self._reach.get(x, 0)

    def _trace(self) -> dict[Tensor, int]:
        """Backward over the members: which outputs each tensor leads to.

        Declared inputs of an inner region lead to whatever its members lead to.
        """
        mask: dict[Tensor, int] = {}
        for bit, t in enumerate(self.outputs):
            mask[t] = mask.get(t, 0) | 1 << bit
        below: dict[Region | None, int] = {}
        for node in reversed(self.members):
            bits = 0
            for t in node.outputs:
                bits |= mask.get(t, 0)
            _lead(mask, node.inputs, bits)
            if self.inner:
                region = node.region
                below[region] = below.get(region, 0) | bits
                while region is not None and known(region).members[0] is node:  # all of it was seen
                    if region in self.inner:
                        _lead(mask, region.pinned_inputs or (), below[region])
                    around = region.parent
                    below[around] = below.get(around, 0) | below[region]
                    region = around
        return mask


def _lead(mask: dict[Tensor, int], tensors: Iterable[Tensor], bits: int) -> None:
    """Note that each of these leads to the outputs in bits."""
    if bits:
        for t in tensors:
            mask[t] = mask.get(t, 0) | bits


def boundary_of(region: Region) -> Boundary:
    """The settled boundary of a region."""
    scan(region.graph)
    found: Boundary | None = region.boundary
    if found is None or not found.settled:
        with LOCK:
            found = known(region)
            if not found.settled:
                found.settle()
    return found


def why_idle(inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> str:
    """Why a rule from these to those can never be called; "" where it can, or there are none."""
    for verb, tensors in (("makes", list(outputs)), ("reads", list(inputs))):
        if tensors and not any(t.type.flows for t in tensors):
            rows = "".join(f"\n  {t.name}: {t.type!r}, built at {t.where}" for t in tensors[:5])
            return (
                f"{verb} only what has no gradient, as integers and booleans, so its rule can "
                f"never be called:{rows}"
            )
    return ""


def scan(graph: Graph) -> None:
    """Take in the nodes built since the last scan."""
    if graph.scanned == len(graph.nodes):
        return
    with LOCK:
        end = len(graph.nodes)
        if graph.regions:
            for node in graph.nodes[graph.scanned : end]:
                _take_in(node)
                graph.scanned += 1
        graph.scanned = end


def rescan(region: Region, start: int) -> None:
    """Take nodes from `start` on into a region that was marked after they had been scanned."""
    for node in region.graph.nodes[start : region.graph.scanned]:
        take_in(node, region)


def _take_in(node: Node) -> None:
    """Note what a node means for the regions around it and around what it reads.

    What an exception interrupts is done again by the next scan, so twice is as good as once.
    """
    region = node.region
    here = enclosing(region)
    for i, t in enumerate(node.inputs):
        there = t.node.region
        if there is region:
            for each in here:
                (each.boundary or known(each)).used.add(t)
        else:
            _take_in_read(t, here, enclosing(viewpoint(node)), (node.index, i))
    for each in here:
        members = (each.boundary or known(each)).members
        if not members or members[-1] is not node:
            members.append(node)
        if members[0] is node:
            take_in_pins(each)


def _take_in_read(t: Tensor, here: Sequence[Region], seen: Sequence[Region], place: Place) -> None:
    """Note a read of t by what lies in the regions `here` and sees from inside those of `seen`."""
    there = enclosing(t.node.region)
    common = 0
    if there:
        common, visible = shared(there, here), shared(there, seen)
        for each in there[:common]:
            known(each).used.add(t)
        for each in there[max(common, visible) :]:
            known(each).left.add(t)
    for each in here[common:]:
        reads = (each.boundary or known(each)).reads
        reads[t] = min(place, reads.get(t, place))


def take_in_pins(region: Region) -> None:
    """Note that a region reads its declared inputs, whether or not a node inside does."""
    members = known(region).members
    if region.pinned_inputs is None or not members:
        return
    here = enclosing(region.parent)
    for t in region.pinned_inputs:
        region.graph.pinned.setdefault(t.node, {})[region] = None
        _take_in_read(t, here, here, (members[0].index, 0))
    for each in here:
        known(each).inner[region] = None


# --- one region alone, which was marked or named after its members had been scanned -------------


def take_in(node: Node, region: Region, groups: Groups | None = None) -> None:
    """Note what a node means for one region."""
    inside = holds(region, around(node, groups), groups)
    sees = inside or holds(region, viewpoint(node, groups), groups)
    for i, t in enumerate(node.inputs):
        _take_in_read_for(region, t, inside, sees, (node.index, i), groups)
    if inside:
        members = known(region).members
        append_once(members, node)
        if members[0] is node:
            take_in_pins(region)


def take_in_pins_for(region: Region, inner: Region, groups: Groups | None = None) -> None:
    """Note that an inner region reads its declared inputs."""
    members = known(inner).members
    if inner.pinned_inputs is not None and members:
        for t in inner.pinned_inputs:
            _take_in_read_for(region, t, True, True, (members[0].index, 0), groups)
        known(region).inner[inner] = None


def _take_in_read_for(
    region: Region, t: Tensor, inside: bool, sees: bool, place: Place, groups: Groups | None
) -> None:
    boundary = known(region)
    if not holds(region, around(t.node, groups), groups):
        if inside:
            boundary.reads[t] = min(place, boundary.reads.get(t, place))
    elif inside:
        boundary.used.add(t)
    elif not sees:
        boundary.left.add(t)


def append_once(nodes: list[Node], node: Node) -> None:
    """Append a node that may have been appended just before an exception interrupted."""
    if not nodes or nodes[-1] is not node:
        nodes.append(node)


def known(region: Region) -> Boundary:
    """What is known so far of the boundary of a region."""
    found = region.boundary
    if found is None:
        found = region.boundary = Boundary(region)
    return found  # type: ignore[no-any-return]
