"""The boundary of a region: what enters, what leaves, what is inside.

Kept up as nodes are born: each call takes in the nodes built since the last one. What leaves is
fixed the first time anybody asks, so that a rule's argument count never depends on what is built
later.

A region keeps what lies directly in it. Of a tensor the graph keeps two regions around it, for all
of them: it is used in `graph.used_in[t]` and all around that, and leaves all that lie in
`graph.left_to[t]`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from operator import attrgetter

from ..base.locks import lock_of_module
from ..ir.graph import Graph
from ..ir.node import Node, Region, Tensor, common_region, depth_of
from ..ir.residual import viewpoint

_index = attrgetter("index")
Use = tuple[float, Region | None, int]
"""Where a tensor is read: when; by which region that declares it, or a node (None); as which input.

A region reads its declared inputs just before its first member does, an outer one first.
"""

LOCK = lock_of_module()
"""Held while what is known of graphs is brought up to date: threads may differentiate one graph."""


class Boundary:
    """What is known of one region.

    nodes    those that lie directly inside, in order of creation; children: the regions that do
    first    the first node inside, inner regions' nodes included; None: there is none
    reads    tensors built outside and read inside, with their first use
    inputs, outputs  the settled boundary: pinned, or inferred when first asked for
    undeclared       tensors read inside that are not among the pinned inputs
    declaring        of a group: the regions inside whose inputs are declared
    """

    __slots__ = (
        "_exits",
        "_last",
        "_reach",
        "children",
        "declaring",
        "first",
        "input_set",
        "inputs",
        "latest",
        "nodes",
        "output_set",
        "outputs",
        "reads",
        "region",
        "settled",
        "undeclared",
    )

    def __init__(self, region: Region) -> None:
        self.region = region
        self.nodes: dict[Node, None] = {}
        self.children: dict[Region, None] = {}
        self.first: Node | None = None
        self.reads: dict[Tensor, Use] = {}
        self.settled = False
        self.latest = -1
        self.inputs: tuple[Tensor, ...] = ()
        self.outputs: tuple[Tensor, ...] = ()
        self.input_set: frozenset[Tensor] = frozenset()
        self.output_set: frozenset[Tensor] = frozenset()
        self.undeclared: tuple[Tensor, ...] = ()
        self.declaring: frozenset[Region] = frozenset()
        self._last: Node | None = None
        self._exits: list[Node] | None = None
        self._reach: dict[Tensor, int] | None = None

    @property
    def members(self) -> list[Node]:
        """The nodes inside, inner regions' nodes included, in order of creation."""
        if not self.children:
            return list(self.nodes)
        return sorted([n for each in self._within() for n in each.nodes], key=_index)

    @property
    def last(self) -> Node | None:
        """The last of the members."""
        if self._last is None and self.first is not None:
            with LOCK:
                for each in reversed(self._within("_last")):
                    ends = [*islice(reversed(each.nodes), 1), *map(_last_of, each.children)]
                    each._last = max(ends, key=_index)
        return self._last

    @property
    def position(self) -> float:
        """Where the region stands among the nodes as a step: after its last member and input."""
        last, latest = self._last or self.last, self.latest
        return (last.index if last is not None and last.index > latest else latest) + 0.5

    @property
    def left(self) -> list[Tensor]:
        """The tensors built inside that something outside reads."""
        with LOCK:
            return [t for node in self._exit_nodes() for t in node.outputs if self._leaves(t)]

    def settle(self) -> None:
        """Fix inputs and outputs for good."""
        region = self.region
        if region.settled is None:
            inputs, outputs = region.pinned_inputs, region.pinned_outputs
            region.settled = (
                self.inferred_inputs() if inputs is None else inputs,
                inferred_outputs(self._exit_nodes(), self._leaves, self._uses)
                if outputs is None
                else outputs,
            )
        self.inputs, self.outputs = region.settled
        self.input_set, self.output_set = frozenset(self.inputs), frozenset(self.outputs)
        self.latest = max([t.node.index for t in self.inputs], default=-1)
        self.undeclared = tuple([t for t in self.reads if t not in self.input_set])
        if not self.children:
            self._last = next(reversed(self.nodes), None)
        self.settled = True

    def unsettle(self) -> None:
        """Have what follows from it worked out again; settled inputs and outputs stay."""
        self.settled = False
        self._reach = None

    def inferred_inputs(self) -> tuple[Tensor, ...]:
        """What is read, in order of first use."""
        if len(self.reads) < 2:
            return tuple(self.reads)
        return tuple(sorted(self.reads, key=lambda t: when_used(self.reads[t])))

    def _uses(self, t: Tensor) -> bool:
        """Whether something inside reads a tensor that is built inside."""
        region = self.region
        user = region.graph.used_in.get(t)
        if user is None or user is region:
            return user is region
        return depth_of(user) > depth_of(region)

    def _leaves(self, t: Tensor) -> bool:
        """Whether something outside reads a tensor that is built inside."""
        left_to = self.region.graph.left_to
        if t not in left_to:
            return False
        to = left_to[t]
        return to is None or depth_of(to) < depth_of(self.region)

    def _exit_nodes(self) -> list[Node]:
        """The members of which something leaves, or nothing is used inside, in order."""
        if self._exits is None:
            for each in reversed(self._within("_exits")):
                nodes: Iterable[Node] = each.nodes
                if each.children:
                    inner = [n for r in each.children for n in known(r)._exit_nodes()]
                    nodes = sorted([*nodes, *inner], key=_index)
                each._exits = each._sifted(nodes)
        assert self._exits is not None
        return self._exits

    def _sifted(self, nodes: Iterable[Node]) -> list[Node]:
        """Those of nodes inside of which something leaves, or nothing is used inside."""
        region = self.region
        left_to, used_in = region.graph.left_to, region.graph.used_in
        sifted = []
        for node in nodes:
            used = False
            for t in node.outputs:
                if t in left_to and self._leaves(t):
                    sifted.append(node)
                    break
                used = used or used_in.get(t) is region or self._uses(t)
            else:
                if not used:
                    sifted.append(node)
        return sifted

    def _within(self, unknown: str = "") -> list[Boundary]:
        """This one and those of the regions inside, outer ones first.

        unknown  only those of which this is to be worked out. Who knows it knows it of all inside.
        """
        boundaries = [self]
        if not self.children:
            return boundaries
        for each in boundaries:
            if each.children:
                inner = map(known, each.children)
                boundaries += [b for b in inner if not unknown or getattr(b, unknown) is None]
        return boundaries

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
        inner: Collection[Region] = self.declaring
        if self.children and not inner:
            within = [b.region for b in self._within()[1:]]
            inner = {r for r in within if r.pinned_inputs is not None}
        below: dict[Region | None, int] = {}
        for node in reversed(self.members):
            bits = 0
            for t in node.outputs:
                bits |= mask.get(t, 0)
            if bits:
                for t in node.inputs:
                    mask[t] = mask.get(t, 0) | bits
            if inner:
                region = node.region
                below[region] = below.get(region, 0) | bits
                while region is not None and known(region).first is node:  # all of it was seen
                    if region in inner:
                        for t in region.pinned_inputs or ():
                            mask[t] = mask.get(t, 0) | below[region]
                    around = region.parent
                    below[around] = below.get(around, 0) | below[region]
                    region = around
        return mask


def inferred_outputs(
    nodes: Iterable[Node], leaves: Callable[[Tensor], bool], uses: Callable[[Tensor], bool]
) -> tuple[Tensor, ...]:
    """What of these leaves a region, or nothing in it uses; unread siblings do not."""
    outputs: list[Tensor] = []
    for node in nodes:
        left = [t for t in node.outputs if leaves(t)]
        if left:
            outputs += left
        elif not any(map(uses, node.outputs)):
            outputs += node.op.returned(node.outputs)
    return tuple(outputs)


def _last_of(region: Region) -> Node:
    last = known(region).last
    assert last is not None
    return last


def when_used(use: Use) -> tuple[float, int, int]:
    """What orders uses: the earlier, the outer, the input before."""
    start, by, place = use
    return start, depth_of(by), place


def settled_boundary(region: Region) -> Boundary:
    """The boundary of a region, for who reads what is fixed in it: inputs, outputs, undeclared."""
    boundary: Boundary | None = region.boundary
    return boundary_of(region) if boundary is None or not boundary.settled else boundary


def boundary_of(region: Region) -> Boundary:
    """The settled boundary of a region, with the nodes taken in that were built since."""
    graph = region.graph
    if graph.scanned != len(graph.nodes):
        scan(graph)
    boundary: Boundary | None = region.boundary
    if boundary is None or not boundary.settled:
        with LOCK:
            boundary = known(region)
            if not boundary.settled:
                boundary.settle()
    return boundary


def known(region: Region) -> Boundary:
    """What is known so far of the boundary of a region."""
    boundary = region.boundary
    if boundary is None:
        boundary = region.boundary = Boundary(region)
    return boundary  # type: ignore[no-any-return]


def why_idle(inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> str:
    """Why a rule from these to those can never be called; "" where it can, or there are none."""
    for verb, tensors in (("makes", list(outputs)), ("reads", list(inputs))):
        if tensors and not any(t.type.differentiable for t in tensors):
            rows = "".join(f"\n  {t.name}: {t.type!r}, built at {t.where}" for t in tensors[:5])
            return (
                f"{verb} only what has no gradient, as integers and booleans, so its rule can "
                f"never be called:{rows}"
            )
    return ""


# --- taking in ----------------------------------------------------------------------------------


def scan(graph: Graph) -> None:
    """Take in the nodes built since the last scan."""
    if graph.scanned == len(graph.nodes):
        return
    with LOCK:
        end = len(graph.nodes)
        if graph.regions:
            for node in graph.nodes[graph.scanned : end]:
                _take_in(node, graph)
                graph.scanned += 1
        graph.scanned = end


def _take_in(node: Node, graph: Graph) -> None:
    """Note what a node means for the regions around it and around what it reads.

    What an exception interrupts is done again by the next scan, so twice is as good as once.
    """
    region = node.region
    used_in = graph.used_in
    for i, t in enumerate(node.inputs):
        if t.node.region is not region:
            _take_in_read(t, region, viewpoint(node), (node.index, None, i))
        elif region is not None and used_in.get(t) is not region:
            _note_used(t, region)
    if region is not None:
        own = region.boundary or known(region)
        if own.first is None or own.first is node:
            _begin(node, region)
        elif own._exits is not None or own._last is not None:
            forget("_exits", region)
            forget("_last", region)
        own.nodes[node] = None


def _take_in_read(t: Tensor, here: Region | None, view: Region | None, use: Use) -> None:
    """Note a read of t by what lies in the region `here` and sees from inside `view`."""
    inside = t.node.region
    common = common_region(inside, here)
    if common is not None:
        _note_used(t, common)
    if common is not inside and view is not inside:
        note_left(t, here, view)
    if here is not common:
        _note_reads(t, here, common, use)


def _note_reads(t: Tensor, here: Region | None, common: Region | None, use: Use) -> None:
    """Note that `here` reads t, and those around in `common`: where one knows, all around it do.

    The outermost first: an interrupt never leaves one that knows in one that does not.
    """
    fresh = []
    while here is not common:
        assert here is not None
        reads = known(here).reads
        if t in reads and when_used(reads[t]) <= when_used(use):
            break
        fresh.append(reads)
        here = here.parent
    for reads in reversed(fresh):
        reads[t] = use


def _note_used(t: Tensor, region: Region) -> None:
    """Note that something in a region around t reads it."""
    used_in = region.graph.used_in
    before = used_in.get(t)
    if before is None or depth_of(before) < depth_of(region):
        forget("_exits", region)
        used_in[t] = region


def note_left(t: Tensor, here: Region | None, view: Region | None) -> None:
    """Note that t leaves the regions around it that hold neither its reader nor `view`."""
    inside = t.node.region
    to = common_region(inside, here)
    if view is not here:
        to = max(to, common_region(inside, view), key=depth_of)
    if to is not inside:
        _note_left(t, to)


def _note_left(t: Tensor, to: Region | None) -> None:
    """Note that something reads t from outside the regions around it that lie in `to`."""
    graph, inside = t.node.graph, t.node.region
    assert graph is not None
    left_to = graph.left_to
    if t in left_to and (left_to[t] is None or depth_of(left_to[t]) <= depth_of(to)):
        return
    forget("_exits", inside)
    left_to[t] = to


def _begin(node: Node, region: Region) -> None:
    """Note the first node of a region, and of those around that have none."""
    begun: list[Boundary] = []
    at: Region | None = region
    while at is not None and ((boundary := known(at)).first is None or boundary.first is node):
        begun.append(boundary)
        at = at.parent
    if at is not None:
        forget("_exits", at)
        forget("_last", at)
    for each in reversed(begun):
        each.first = node
        if each.region.parent is not None:
            known(each.region.parent).children[each.region] = None
        take_in_pins(each.region)


def forget(what: str, region: Region | None) -> None:
    """Have something worked out again for a region, and for those around that know it.

    Who knows it knows it of all inside. The outermost first: an interrupt leaves that true.
    """
    stale: list[Boundary] = []
    while region is not None and getattr(region.boundary, what, None) is not None:
        stale.append(region.boundary)
        region = region.parent
    for each in reversed(stale):
        setattr(each, what, None)


def take_in_pins(region: Region) -> None:
    """Note that a region reads its declared inputs, whether or not a node inside does."""
    if region.pinned_inputs is None or (first := known(region).first) is None:
        return
    for i, t in enumerate(region.pinned_inputs):
        region.graph.pinned.setdefault(t.node, {})[region] = None
        _take_in_read(t, region.parent, region.parent, (first.index - 0.5, region, i))
