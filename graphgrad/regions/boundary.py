"""The boundary of a region: what enters, what leaves, what is inside.

`Boundaries` is one object for each graph, which alone writes what is known of its regions. It reads
the nodes of the graph once, in order, from where it stopped; what marks change afterwards goes
through it too. A region's `Contents` only grow as nodes are read. Its `Boundary` is worked out in
one pass when somebody first asks, and what leaves is then fixed, so that a rule's argument count
never depends on what is built later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter

from ..base.locks import lock_of_module
from ..ir.graph import Graph
from ..ir.node import Node, Region, Tensor, ancestry_of, common_region, depth_of, enclosing
from ..ir.residual import viewpoint
from .contents import Contents, Use, when_used

_index = attrgetter("index")
Read = tuple[Region | None, Region | None, Use]
"""A use of a tensor, with the region in which it is and the one from inside which it sees."""

LOCK = lock_of_module()
"""Held while what is known of graphs is brought up to date: threads may differentiate one graph."""


class Boundary:
    """The settled boundary of a region: it stays as it is, and is replaced where marks change.

    inputs, outputs  pinned, or inferred when first asked for
    undeclared       tensors read inside that are not among the pinned inputs
    position         where the region stands among the nodes as a step: after its last member and
                     input
    """

    __slots__ = (
        "_contents",
        "_reach",
        "input_set",
        "inputs",
        "output_set",
        "outputs",
        "position",
        "undeclared",
    )

    def __init__(
        self, contents: Contents, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
    ) -> None:
        self._contents = contents
        self._reach: dict[Tensor, int] | None = None
        self.inputs = inputs
        self.outputs = outputs
        self.input_set = frozenset(inputs)
        self.output_set = frozenset(outputs)
        known, shared = self.input_set, contents.shared
        self.undeclared = tuple([t for t in contents.reads if t not in known and t not in shared])
        contents.work_out()
        position = -1 if contents.last is None else contents.last.index
        for t in inputs:
            position = max(position, t.node.index)
        self.position = position + 0.5

    @property
    def members(self) -> list[Node]:
        """The nodes inside, inner regions' nodes included, in order of creation."""
        return self._contents.members

    @property
    def first(self) -> Node | None:
        """The first of the members."""
        return self._contents.first

    @property
    def last(self) -> Node | None:
        """The last of the members."""
        with LOCK:
            self._contents.work_out()
        return self._contents.last

    @property
    def reads(self) -> list[Tensor]:
        """The tensors built outside that something inside reads."""
        return [t for t in self._contents.reads if t not in self._contents.shared]

    @property
    def left(self) -> list[Tensor]:
        """The tensors built inside that something outside reads, in order of creation."""
        return sorted(self._contents.left, key=lambda t: (t.node.index, t.index))

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
        contents = self._contents
        inner: Collection[Region] = contents.declaring
        if contents.children:
            within = [each.region for each in contents.within()[1:]]
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
                while region is not None and contents_of(region).first is node:  # all was seen
                    if region in inner:
                        for t in region.pinned_inputs or ():
                            mask[t] = mask.get(t, 0) | below[region]
                    around = region.parent
                    below[around] = below.get(around, 0) | below[region]
                    region = around
        return mask


def why_idle(inputs: Iterable[Tensor], outputs: Iterable[Tensor]) -> str:
    """Why a rule from these to those can never be called; "" where it can, or there are none."""
    for verb, tensors in (("produces", list(outputs)), ("reads", list(inputs))):
        if tensors and not any(t.type.differentiable for t in tensors):
            rows = "".join(f"\n  {t.name}: {t.type!r}, built at {t.where}" for t in tensors[:5])
            return (
                f"{verb} only tensors without a gradient, such as integers and bools, so its rule "
                f"can never be called:{rows}"
            )
    return ""


# --- what is asked ------------------------------------------------------------------------------


def settled_boundary(region: Region) -> Boundary:
    """The boundary of a region, for who reads what is fixed in it: inputs, outputs, undeclared."""
    boundary: Boundary | None = region.boundary
    return boundary_of(region) if boundary is None else boundary


def boundary_of(region: Region) -> Boundary:
    """The settled boundary of a region, with the nodes taken in that were built since."""
    graph = region.graph
    boundaries = graph.boundaries or boundaries_of(graph)
    if boundaries.seen != len(graph.nodes):
        boundaries.take_in()
    boundary: Boundary | None = region.boundary
    return boundaries.settle(region) if boundary is None else boundary


def contents_of(region: Region) -> Contents:
    """What is known so far of what lies in a region."""
    return boundaries_of(region.graph).of(region)


def is_empty(region: Region) -> bool:
    """Whether nothing lies in a region: one that was unmarked is there for what it was read for."""
    if region.on_tensors:
        return False
    scan(region.graph)
    return contents_of(region).first is None


def boundaries_of(graph: Graph) -> Boundaries:
    """What is known of the regions of a graph."""
    if graph.boundaries is None:
        with LOCK:
            graph.boundaries = graph.boundaries or Boundaries(graph)
    boundaries: Boundaries = graph.boundaries
    return boundaries


def scan(graph: Graph) -> None:
    """Take in the nodes built since the last scan."""
    boundaries_of(graph).take_in()


def take_in_pins(region: Region) -> None:
    """Note that a region reads its declared inputs, whether or not a node inside does."""
    boundaries_of(region.graph).take_in_pins(region)


def unsettle(regions: Iterable[Region]) -> None:
    """Have the boundaries of regions be as if nobody had asked for them."""
    with LOCK:
        for region in regions:
            region.boundary = region.settled = None


# --- what is known of the regions of one graph ----------------------------------------------------


class Boundaries:
    """What is known of the regions of one graph. What an interrupt breaks off is done again by the
    next call, so all that it does can be done twice.

    seen      how many nodes of the graph were taken in
    contents  region -> what lies in it
    declared  nodes that make what regions declare as inputs, with those regions
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.seen = 0
        self.contents: dict[Region, Contents] = {}
        self.declared: dict[Node, dict[Region, None]] = {}

    def of(self, region: Region) -> Contents:
        """What lies in a region."""
        contents = self.contents.get(region)
        return self.contents.setdefault(region, Contents(region)) if contents is None else contents

    def settle(self, region: Region) -> Boundary:
        """The boundary of a region; inputs and outputs are fixed for good."""
        with LOCK:
            boundary: Boundary | None = region.boundary
            if boundary is None:
                contents = self.of(region)
                if region.settled is None:
                    inputs, outputs = region.pinned_inputs, region.pinned_outputs
                    if inputs is None or outputs is None:
                        reads, leaves = contents.inferred()
                        inputs = reads if inputs is None else inputs
                        outputs = leaves if outputs is None else outputs
                    region.settled = inputs, outputs
                boundary = region.boundary = Boundary(contents, *region.settled)
            return boundary

    # --- nodes as they are built ---

    def take_in(self) -> None:
        """Take in the nodes built since the last time."""
        graph = self.graph
        if self.seen == len(graph.nodes):
            return
        with LOCK:
            end = len(graph.nodes)
            if graph.regions:
                for node in graph.nodes[self.seen : end]:
                    self._take_in(node)
                    self.seen += 1
            self.seen = end

    def _take_in(self, node: Node) -> None:
        """Note what a node means for the regions around it and around what it reads."""
        region = node.region
        for i, t in enumerate(node.inputs):
            if t.node.region is not region:
                self._take_in_read(t, region, viewpoint(node), (node.index, None, i))
        if region is not None:
            contents = self.contents.get(region) or self.of(region)
            if contents.first is None or contents.first is node:
                self._begin(node, region)
            elif contents.sinks is not None:
                self._invalidate(region)
            contents.nodes[node] = None

    def _begin(self, node: Node, region: Region) -> None:
        """Note the first node of a region, and of those around that have none."""
        begun: list[Contents] = []
        at: Region | None = region
        while at is not None and (
            (contents := self.of(at)).first is None or contents.first is node
        ):
            begun.append(contents)
            at = at.parent
        self._invalidate(at)
        for each in reversed(begun):
            each.first = node
            if each.region.parent is not None:
                self.of(each.region.parent).children[each.region] = each
            self.take_in_pins(each.region)

    def take_in_pins(self, region: Region) -> None:
        """Note that a region reads its declared inputs, whether or not a node inside does."""
        pinned, parent = region.pinned_inputs, region.parent
        if pinned is None or (first := self.of(region).first) is None:
            return
        for i, t in enumerate(pinned):
            self.declared.setdefault(t.node, {})[region] = None
            self._take_in_read(t, parent, parent, (first.index - 0.5, region, i))
            at = common_region(t.node.region, parent)
            while at is not None and (sinks := self.of(at).sinks) is not None:
                sinks.pop(t.node, None)
                at = at.parent
        self._invalidate(parent, nodes=False)

    def _take_in_read(self, t: Tensor, here: Region | None, view: Region | None, use: Use) -> None:
        """Note a read of t by what lies in the region `here` and sees from inside `view`."""
        inside = t.node.region
        common = common_region(inside, here)
        if common is not inside and view is not inside:
            self._note_left(t, _left_to(t, here, view))
        if here is not common:
            self._note_reads(t, here, common, use)

    def _note_left(self, t: Tensor, to: Region | None) -> None:
        """Note that t leaves the regions around it that lie in `to`.

        The innermost first: what left a region left all in it, and an interrupt leaves that true.
        """
        at = t.node.region
        if at is to:
            return
        assert at is not None
        outermost = at if at._parent is to else ancestry_of(at).up_to(depth_of(to) + 1).item
        if t in self.of(outermost).left:
            return
        while at is not to:
            assert at is not None
            self.of(at).left[t] = None
            at = at.parent

    def _note_reads(self, t: Tensor, here: Region | None, common: Region | None, use: Use) -> None:
        """Note that `here` reads t, and those around in `common`: where one knows, all around do.

        The outermost first: an interrupt never leaves one that knows in one that does not.
        """
        fresh = []
        while here is not common:
            assert here is not None
            reads = self.of(here).reads
            if t in reads and when_used(reads[t]) <= when_used(use):
                break
            fresh.append(reads)
            here = here.parent
        for reads in reversed(fresh):
            reads[t] = use

    def _invalidate(self, region: Region | None, nodes: bool = True) -> None:
        """Have the boundary of a region that has changed, and of those around, be worked out again.

        nodes  whether other nodes are inside, or used inside

        Settled inputs and outputs stay. The outermost first: an interrupt never leaves sinks where
        those of a region inside are not known.
        """
        stale: list[Contents] = []
        while region is not None and (contents := self.of(region)).sinks is not None:
            stale.append(contents)
            region = region.parent
        for each in reversed(stale):
            each.region.boundary = None
            if nodes:
                each.sinks = None

    # --- marks that are put and taken off afterwards ---

    def put(self, contents: Contents) -> None:
        """Take in a region that was put around nodes and regions that were taken in before."""
        region, parent = contents.region, contents.region.parent
        self.contents[region] = contents
        if parent is not None:
            around = self.of(parent)
            if around.sinks is not None:
                contents.work_out()
            if contents.first is not None:
                around.children[region] = contents
            for node in contents.nodes:
                around.nodes.pop(node, None)
            for child in contents.children:
                around.children.pop(child, None)
        self.take_in_pins(region)

    def put_group(self, contents: Contents) -> None:
        """Take in what lies in a group that a call has named."""
        contents.region.boundary = None
        self.contents[contents.region] = contents

    def share(self, region: Region, other: Region) -> None:
        """Have another region, which stands for the same group, be as this one."""
        settled, boundary = region.settled, region.boundary
        other.boundary = None  # what is interrupted has none
        self.contents[other] = self.of(region)
        other.settled, other.boundary = settled, boundary

    def remove(self, gone: set[Region]) -> None:
        """Give what lies in regions to those around them. Settled boundaries of others stay."""
        self.take_in()
        beyond = _beyond(gone)
        for region in gone:
            self._give_up(region, beyond[region], gone)
        for around in set(beyond.values()):
            if around is not None:
                contents = self.of(around)
                contents.nodes = dict.fromkeys(sorted(contents.nodes, key=_index))
        for inner in self.graph.regions:
            if inner.parent in beyond:
                inner.parent = beyond[inner.parent]
        for region in gone:
            region.boundary = region.settled = region.pinned_outputs = None
            self.contents.pop(region, None)
            for t in region.pinned_inputs or ():
                self.declared.get(t.node, {}).pop(region, None)

    def _give_up(self, region: Region, around: Region | None, gone: set[Region]) -> None:
        """Have what lies directly in a region lie in the innermost around it that stays."""
        old = self.of(region)
        if around is not None:
            new = self.of(around)
            new.nodes.update(old.nodes)
            new.children.update({r: c for r, c in old.children.items() if r not in gone})
            new.children.pop(region, None)
        for node in old.nodes:
            node.region = around

    def drop_reads(self, t: Tensor, region: Region | None, uses: Sequence[Read]) -> None:
        """Note anew who reads t, which a region inside of these declared.

        uses: all there are.
        """
        for around in enclosing(t.node.region):
            self.of(around).left.pop(t, None)
            if not any(around.contains(here) for here, _, _ in uses):
                self._invalidate(around)
        for here, view, _ in uses:
            self._note_left(t, _left_to(t, here, view))
        at = region
        while at is not None:
            reads = self.of(at).reads
            if t in reads:
                inner = [use for here, _, use in uses if at.contains(here)]
                if inner:
                    reads[t] = min(inner, key=when_used)
                else:
                    del reads[t]
            at = at.parent
        self._invalidate(region, nodes=False)


def _left_to(t: Tensor, here: Region | None, view: Region | None) -> Region | None:
    """The region inside of which t leaves all those around it, by what reads it in `here`.

    They hold neither that nor `view`, from inside which it sees.
    """
    inside = t.node.region
    to = common_region(inside, here)
    return to if view is here else max(to, common_region(inside, view), key=depth_of)


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
