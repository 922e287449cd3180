"""Regions around nodes that exist: what one would hold, checked; and what it reads and lets out.

For groups of nodes that are marked afterwards (marks), and those that a call names (groups).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import Any

from ..base.errors import GraphError, RegionError
from ..base.tree import flatten
from ..ir.graph import Graph
from ..ir.node import Node, Region, Tensor, common_region, enclosing
from ..ir.region_tree import MARKED, RegionTree, sites_at
from ..ir.residual import Residual, derived_from, viewpoint
from .boundary import boundaries_of, contents_of, scan, why_idle
from .contents import Contents, Use, when_used
from .index import has_gradient, index_of
from .select import Group, members_of

_index = attrgetter("index")


class NewRegion:
    """A region that is to be.

    group     the nodes that were selected
    members   the nodes whose innermost region it becomes
    parent    the innermost region around
    children  regions that lie in it whole
    inside    all nodes in it, those of its children too
    """

    def __init__(
        self, group: Group, members: list[Node], parent: Region | None, children: list[Region]
    ) -> None:
        self.group = group
        self.members = members
        self.parent = parent
        self.children = children
        self.inside = set(members).union(*(members_of(c) for c in children))
        self.inputs: tuple[Tensor, ...] | None = None
        self.outputs: tuple[Tensor, ...] | None = None
        self.region: Region

    def declare(self, inputs: Any, outputs: Any) -> None:
        """Check and note the declared boundary; RegionError where it is not so."""
        graph = self.group.graph
        if inputs is not None:
            self.inputs = _tensors_of(graph, inputs, f"the inputs of {self.group!r}")
            listed = {t.node for t in self.inputs}
            spare = {n for n in self.members if n in listed and _is_constant(n)}
            self.members = [n for n in self.members if n not in spare]
            self.inside -= spare
            self._check(self.inputs, "input", inside=False)
        elif not self.reads_outside():
            raise RegionError(
                f"{self.group!r} reads nothing from outside, so there is no input whose gradient "
                "could be overridden"
            )
        if outputs is not None:
            self.outputs = _tensors_of(graph, outputs, f"the outputs of {self.group!r}")
            self._check(self.outputs, "output", inside=True)

    def _check(self, tensors: Sequence[Tensor], what: str, inside: bool) -> None:
        for t in tensors:
            if (t.node in self.inside) is not inside:
                raise RegionError(
                    f"{t.name} (built at {t.where}) is declared as an {what} of {self.group!r}, "
                    f"but is {'not ' if inside else ''}made inside it"
                )

    def reads(self) -> list[Tensor]:
        """What is read inside, in order of reading."""
        nodes = sorted(self.inside, key=lambda n: n.index)
        declared = [t for c in self.children for t in c.pinned_inputs or ()]
        return [*(t for n in nodes for t in n.inputs), *declared]

    def reads_outside(self) -> list[Tensor]:
        """What is read inside and made outside, constants aside."""
        read = dict.fromkeys(self.reads())
        return [t for t in read if t.node not in self.inside and not _is_constant(t.node)]

    def why_idle(self) -> str:
        """Why its rule could never be called; "" where it could."""
        outputs = self.outputs
        if outputs is None:
            outputs = tuple([t for n in self.group.nodes for t in n.outputs])
        return why_idle([*(self.inputs or ()), *self.reads_outside()], outputs)


def _tensors_of(graph: Graph, tree: Any, what: str) -> tuple[Tensor, ...]:
    tensors = tuple(flatten(tree))
    for t in tensors:
        if not isinstance(t, Tensor):
            raise RegionError(f"{what} are tensors, got {t!r}")
        if t.graph is not graph:
            raise GraphError(f"{t.name} ({t.where}) of {t.graph!r} is among {what}, in {graph!r}")
    return tensors


def plan_region(group: Group) -> NewRegion:
    """The region that a group would become; RegionError where it cannot be one."""
    scan(group.graph)  # so that no later scan takes its members in once more
    check_members(group)
    parent, children = parent_and_children(group)
    members = [n for n in group.nodes if n.region is parent]
    joining = _constants_of(NewRegion(group, members, parent, children))
    return NewRegion(group, [*members, *joining], parent, children)


def check_members(group: Group) -> None:
    """RegionError for nodes that are never members of a region."""
    for node in group.nodes:
        if node.op.source:
            raise RegionError(
                f"{node.name} ({node.type}, built at {node.where}) is in {group!r}, but "
                "placeholders and variables are never members of a region.\nFor a rule on the "
                "gradients of these tensors say graph.mark(..., together=True)."
            )
        if type(node.op) is Residual:
            check_has_gradient(node)
    if group.graph.sites:
        _check_sites(group)


def _check_sites(group: Group) -> None:
    """RegionError for a tensor in a site around the group that something inside reads."""
    among = set(group.nodes)
    for t in (t for n in group.nodes for t in n.outputs):
        for site in sites_at(t):
            inside = site.parent is not None and members_of(site.parent)
            if inside and among.issuperset(inside):
                continue
            for reader in index_of(group.graph).readers_of([t.node]):
                if reader in among and any(x is t for x in reader.inputs):
                    raise RegionError(
                        f"{group!r} would hide {t.name} ({t.where}), which {reader.name} "
                        f"({reader.where}) reads inside it, from {site!r}, a site of tensors that "
                        "it stands in.\nUnmark that first, or mark it after this."
                    )


def check_has_gradient(node: Node) -> None:
    """RegionError for a node that no rule can speak for."""
    if not has_gradient(node):
        raise RegionError(
            f"{node.name} ({node.type}, built at {node.where}) "
            + (
                "is the door through which a derivative reads a region; it cannot be marked"
                if node.inputs
                else "has no inputs, so there is no gradient to override.\nFor a rule on the "
                "gradient of what it makes say graph.mark(..., together=True)."
            )
        )


def parent_and_children(group: Group) -> tuple[Region | None, list[Region]]:
    """The region around a group and the regions in it; RegionError for one that is both."""
    inner = {n.region: n for n in group.nodes}
    parent = group.nodes[0].region
    for region in inner:
        parent = common_region(parent, region)
    depth = len(enclosing(parent))
    children = {enclosing(r)[depth]: n for r, n in inner.items() if r is not parent}
    among = set(group.nodes)
    for child, inside in children.items():
        if child.open:
            raise RegionError(f"{child!r} is still open; leave its block before it is marked")
        out = [n for n in members_of(child) if has_gradient(n) and n not in among]
        if out:
            raise RegionError(
                f"{group!r} and {child!r} overlap, and neither is inside the other: "
                f"{inside.name} ({inside.where}) is in both, {out[0].name} ({out[0].where}) only "
                "in the region.\nSelect all of the region or nothing of it, or unmark it first."
            )
    return parent, list(children)


def region_of(group: Group) -> Region | None:
    """The outermost region whose members are these nodes; those without a gradient do not count."""
    among = {n for n in group.nodes if has_gradient(n)}
    outermost = None
    for region in reversed(enclosing(group.nodes[0].region)):
        members = {n for n in members_of(region) if has_gradient(n)}
        if members == among:
            outermost = region
        elif len(members) > len(among):
            break
    return outermost


# --- constants ----------------------------------------------------------------------------------


def _constants_of(plan: NewRegion) -> list[Node]:
    """The constants that only the group reads: numbers used in a block are inside it."""
    backward = any(n.origin is not None for n in plan.inside)
    graph = plan.group.graph

    def only_here(node: Node) -> bool:
        declaring = boundaries_of(graph).declared.get(node, ())
        return all(any(c.contains(r) for c in plan.children) for r in declaring) and all(
            r in plan.inside or (r.origin is not None and not backward)
            for r in index_of(graph).readers_of([node])
        )

    return list(
        {
            t.node: None
            for t in plan.reads()
            if _is_constant(t.node)
            and t.node.origin is None
            and t.node.region is plan.parent
            and t.node not in plan.inside
            and only_here(t.node)
        }
    )


def _is_constant(node: Node) -> bool:
    return not node.inputs and node.op.pure and not node.op.source


# --- what a region reads and lets out ------------------------------------------------------------


def regions_beyond(outer: Region | None, nodes: Iterable[Node]) -> list[Region]:
    """The regions around some nodes that do not hold `outer`, which is around them all."""
    regions: dict[Region, None] = {}
    for region in {n.region: None for n in nodes}:
        while region is not None and region is not outer and region not in regions:
            regions[region] = None
            region = region.parent
    return list(regions)


class Survey:
    """A look at nodes: those inside, and their readers.

    reads    tensors built outside and read inside, with their first use
    left     tensors built inside that something outside reads
    shared   constants among the reads, which are not inputs
    partial  whether a look at all nodes, without what is known of marks, would see more than this
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
        self.left: dict[Tensor, None] = {}
        self.shared: frozenset[Tensor] = frozenset()
        self.partial = False
        for node in nodes:
            inside = self.holds(node)
            sees = inside or tree.holds(region, viewpoint(node, tree))
            for i, t in enumerate(node.inputs):
                self._read(t, inside, sees, (node.index, None, i))
        for each in inner:
            first = contents_of(each).first
            if first is not None:
                for i, t in enumerate(each.pinned_inputs or ()):
                    self._read(t, True, True, (first.index - 0.5, each, i))

    def holds(self, node: Node) -> bool:
        """Whether a node lies in the region."""
        return self.tree.holds(self.region, self.tree.around(node))

    def _read(self, t: Tensor, inside: bool, sees: bool, use: Use) -> None:
        if inside and not self.holds(t.node):
            self.reads[t] = min(use, self.reads.get(t, use), key=when_used)
        elif not sees and self.holds(t.node):
            self.left[t] = None

    def contents(
        self,
        nodes: Iterable[Node],
        children: Iterable[Region],
        inside: Collection[Node],
        declaring: frozenset[Region] = frozenset(),
    ) -> Contents:
        """The contents of a region in which these lie directly.

        inside: all nodes in it; declaring: of a group, the regions inside whose inputs are declared
        """
        within = [each for each in map(contents_of, children) if each.first is not None]
        contents = Contents(
            self.region,
            sorted(nodes, key=_index),
            within,
            min(inside, key=_index, default=None),
            shared=self.shared,
            declaring=declaring,
        )
        contents.reads.update(self.reads)
        contents.left.update(self.left)
        return contents


def survey(
    region: Region, inside: set[Node], inner: Iterable[Region], tree: RegionTree = MARKED
) -> Survey:
    """What a region reads and lets out that was marked, or named, after it had been built.

    inner: regions in it. Reads of its inside by derivatives that are there already are residuals of
    them, not outputs. Constants are not inputs.
    """
    readers = index_of(region.graph).readers_of(inside)
    nodes = sorted(inside.union(readers), key=_index)
    counting = [n for n in nodes if n in inside or not _is_derived(region, n, tree)]
    surveyed = Survey(region, counting, inner, tree)
    declared = _declared_beyond(region, inside, tree)
    residual = [t for t, by in declared if derived_from(region, by.origin, t, tree)]
    leaving = [*_returned(region.graph), *(t for t, _ in declared if t not in residual)]
    surveyed.left.update({t: None for t in leaving if surveyed.holds(t.node)})
    pinned = frozenset(region.pinned_inputs or ())
    shared = [t for t in surveyed.reads if _is_constant(t.node) and t not in pinned]
    surveyed.shared = frozenset(shared)
    surveyed.partial = bool(shared or residual) or len(counting) < len(nodes)
    return surveyed


def _returned(graph: Graph) -> list[Tensor]:
    """What the control flow that runs a body takes out of it: that is a read, too."""
    outer: Graph | None = getattr(graph, "outer", None)
    node = None if outer is None else index_of(outer).runs.get(graph)
    programs = () if node is None else node.op.bodies
    return [t for program in programs for t in program.outputs if t.graph is graph]


def _declared_beyond(
    region: Region, inside: Iterable[Node], tree: RegionTree
) -> list[tuple[Tensor, Region]]:
    """What is made inside and what regions that are not inside declare, with those regions."""
    declared = boundaries_of(region.graph).declared
    beyond = [(n, by) for n in inside for by in declared.get(n, ()) if not tree.holds(region, by)]
    return [(t, by) for n, by in beyond for t in by.pinned_inputs or () if t.node is n]


def _is_derived(region: Region, node: Node, tree: RegionTree) -> bool:
    return node.origin is not None and any(
        tree.holds(region, tree.around(t.node)) and derived_from(region, node.origin, t, tree)
        for t in node.inputs
    )
