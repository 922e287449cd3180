"""Marks put on a graph that exists: `graph.mark` and `graph.unmark`.

A single node is marked by a stamp, as an op-type map does it; a group becomes a region, as if it
had been built in an `override_gradient` block. Everything is checked before anything changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..ir.errors import GraphError, RegionError
from ..ir.graph import Graph
from ..ir.node import Node, Region, RuleCall, Tensor, common_region
from ..ir.position import Position, caller, show
from ..ir.residual import Residual, derived_from
from ..ir.tree import flatten
from .boundary import Boundary, boundary_of, known, take_in, take_in_pins
from .rules import check_reference
from .scopes import ESCAPES, ORDERS, _one_of
from .select import (
    Group,
    Target,
    as_selection,
    bodies_of,
    has_gradient,
    nodes_of,
    rule_name,
    targets_of,
)

__all__: list[str] = []

Site = Node | Region


def mark(
    graph: Graph,
    selection: Any,
    rule: Any,
    inputs: Any = None,
    outputs: Any = None,
    *,
    escape: str = "error",
    order: str = "again",
    late: bool = False,
    replace: bool = False,
    allow_inside: bool = False,
    allow_empty: bool = False,
    **attrs: Any,
) -> list[Site]:
    """`graph.mark("Relu", rule)`: put a rule on what a selection selects; returns the sites.

    selection     an op type, a node, a region, or what gg.select makes
    rule          a registered name, an op type, a callable fn(site, *dys), or a rule object
    inputs, outputs  tensors that are the boundary of the region, in this order; None: inferred
    escape, order, late, attrs  as for override_gradient
    replace       put the rule in place of one that is marked there already; for a selection of
                  regions this is needed
    allow_inside  everything selected may lie inside a region that is there
    allow_empty   a selection that selects nothing is no error

    A node site gets a stamp: the rule answers for the node, as under gradient_override_map. With
    inputs, outputs, escape, order or attrs, which a stamp cannot hold, it becomes a region of one
    node. A group becomes a region; regions that lie in it whole are then inside it. Constants that
    only the group reads join it, and others are no inputs of it: as in a block, numbers are inside.

    Matches in bodies of control flow are marked there: a loop's body at every iteration.

    The mark counts for every later gradients() call. What was differentiated before keeps the
    derivative it has; to differentiate that again through what is now hidden inside, ask
    gradients() anew, or say escape="default".

    Raises RegionError for a selection that selects nothing, two targets that share a node, partial
    overlap with a region, a node or region that is marked already, ops without inputs. A region
    that is there is one step and its rule speaks for all of it; whether that rule asks for its
    default is known only when it runs. So a selection of which every match lies inside regions is
    an error that names one, unless allow_inside says that the rule does ask.
    """
    _one_of("escape", escape, ESCAPES)
    _one_of("order", order, ORDERS)
    at = caller()
    check_reference(rule, lambda: f"named by the mark at {show(at)}", late)
    options: dict[str, Any] = {"escape": escape, "order": order, "late": late, "attrs": attrs}
    pinned = inputs is not None or outputs is not None
    regional = pinned or bool(attrs) or (escape, order) != ("error", "again")
    targets = _targets(graph, selection, allow_empty)
    if regional:
        targets = [Group((t,), as_selection(t)) if isinstance(t, Node) else t for t in targets]
    _check_apart(targets)
    _check_one_boundary(targets, pinned)
    uses = _Uses({t.graph for t in targets if isinstance(t, Group)})
    plans = [_plan(t, uses, replace) for t in targets]
    if not allow_inside:
        _check_reached(plans, graph, at)
    for plan in plans:
        if isinstance(plan, _NewRegion):
            plan.declare(inputs, outputs)
    sites = [_apply(plan, rule, at, options) for plan in plans]
    _take_in([p for p in plans if isinstance(p, _NewRegion)], uses)
    return sites


def unmark(graph: Graph, selection: Any) -> list[Site]:
    """`graph.unmark("Relu")`: take off the marks of what a selection selects; returns the sites.

    A node loses its stamp, or the region that is of this node alone. Of a region, or a group that
    is all of one, the members go to the region around. Settled boundaries of other regions stay.
    Derivatives that were taken stay too; a region they refer to remains in `graph.regions`, empty.
    Raises RegionError where nothing selected is marked, and for a group that is no marked region.
    """
    found: dict[Site, None] = {}
    targets = targets_of(selection, graph)
    for target in targets:
        site = _marked(target)
        if site is not None:
            found[site] = None
    if not found:
        shown = "; ".join(_not_marked(t) for t in targets[:3])
        raise RegionError(f"{as_selection(selection)!r} selects nothing that is marked: {shown}")
    for site in found:
        if isinstance(site, Region) and site.open:
            raise RegionError(f"{site!r} is still open; leave its block before it is unmarked")
    for site in found:
        if isinstance(site, Node):
            site.stamp = None
    gone = {s for s in found if isinstance(s, Region)}
    for each in {r.graph for r in gone}:
        _dissolve(each, {r for r in gone if r.graph is each})
    return list(found)


def sites_of(selection: Any, graph: Graph, lenient: bool = False) -> list[Site]:
    """The sites of an override of the call: nodes, regions, and groups that are marked regions.

    lenient: of a call within the call, in whose graph there may be nothing of what is selected; so
    it is in a body of control flow.
    RegionError for a group that is not marked, or that overlaps a region only in part.
    """
    lenient = lenient or hasattr(graph, "outer")
    found: list[Site] = []
    for target in (
        as_selection(selection).find(graph, lenient=True)
        if lenient
        else targets_of(selection, graph)
    ):
        if isinstance(target, Group):
            _parent_and_children(target)
            region = _region_of(target)
            if region is None:
                raise RegionError(
                    f"overrides= names {target!r}, which is a group of {len(target.nodes)} nodes "
                    "and not a region yet.\nMark it first (`graph.mark(selection, rule)`), or "
                    "say `.each()` to choose a rule for every node of it."
                )
            found.append(region)
        else:
            if isinstance(target, Node):
                _check_has_gradient(target)
            found.append(target)
    return found


# --- what is asked for, checked -----------------------------------------------------------------


class _NewRegion:
    """A region that is to be.

    group     the nodes that were selected
    members   the nodes whose innermost region it becomes
    parent    the innermost region around
    children  regions that lie in it whole
    """

    def __init__(
        self, group: Group, members: list[Node], parent: Region | None, children: list[Region]
    ) -> None:
        self.group = group
        self.members = members
        self.parent = parent
        self.children = children
        self.inside = set(members).union(*(known(c).members for c in children))
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
        elif not self._reads_outside():
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

    def _reads_outside(self) -> bool:
        return any(t.node not in self.inside and not _is_constant(t.node) for t in self.reads())


def _tensors_of(graph: Graph, tree: Any, what: str) -> tuple[Tensor, ...]:
    tensors = tuple(flatten(tree))
    for t in tensors:
        if not isinstance(t, Tensor):
            raise RegionError(f"{what} are tensors, got {t!r}")
        if t.graph is not graph:
            raise GraphError(f"{t.name} ({t.where}) of {t.graph!r} is among {what}, in {graph!r}")
    return tensors


class _Restamp:
    """A node that gets a stamp, or a region that gets another rule."""

    def __init__(self, site: Site) -> None:
        self.site = site


Plan = _NewRegion | _Restamp


class _Uses:
    """Who reads each node of some graphs, and which regions declare it as an input."""

    def __init__(self, graphs: Iterable[Graph]) -> None:
        self.readers: dict[Node, list[Node]] = {}
        self.pinned: dict[Node, list[Region]] = {}
        for graph in graphs:
            for node in graph.nodes:
                for t in node.inputs:
                    self.readers.setdefault(t.node, []).append(node)
            for region in graph.regions:
                for t in region.pinned_inputs or ():
                    self.pinned.setdefault(t.node, []).append(region)

    def of(self, nodes: Iterable[Node]) -> list[Node]:
        """The readers of some nodes."""
        return [reader for node in nodes for reader in self.readers.get(node, ())]


def _targets(graph: Graph, selection: Any, allow_empty: bool) -> list[Target]:
    return as_selection(selection).find(graph) if allow_empty else targets_of(selection, graph)


def _check_apart(targets: Sequence[Target]) -> None:
    """RegionError where two targets of one mark share a node."""
    taken: dict[Node, Target] = {}
    for target in targets:
        for node in nodes_of(target):
            other = taken.setdefault(node, target)
            if other is not target:
                raise RegionError(
                    f"two sites of one mark share {node.name} ({node.where}): {other!r} and "
                    f"{target!r}.\nTwo rules cannot speak for one node: narrow the selection with "
                    "`&`, or make one region of it with `.together()`."
                )


def _check_one_boundary(targets: Sequence[Target], pinned: bool) -> None:
    if pinned and (len(targets) != 1 or not isinstance(targets[0], Group)):
        what = f"{len(targets)} sites" if len(targets) != 1 else f"{targets[0]!r}, a region"
        raise RegionError(
            f"inputs= and outputs= are for a selection that becomes one region; this one is {what}"
        )


def _plan(target: Target, uses: _Uses, replace: bool) -> Plan:
    if isinstance(target, Group):
        return _plan_region(target, uses)
    if isinstance(target, Node):
        _check_has_gradient(target)
        if target.stamp is not None and not replace:
            raise RegionError(
                f"{target.name} ({target.where}) is marked with {rule_name(target.stamp)!r} "
                "already. Say replace=True, or graph.unmark it first."
            )
    elif not replace:
        raise RegionError(
            f"{target!r} is marked already. Say replace=True to give it another rule, or "
            "graph.unmark it first."
        )
    return _Restamp(target)


def _check_has_gradient(node: Node) -> None:
    if not has_gradient(node):
        raise RegionError(
            f"{node.name} ({node.type}, built at {node.where}) "
            + (
                "is the door through which a derivative reads a region; it cannot be marked"
                if node.inputs
                else "has no inputs, so there is no gradient to override"
            )
        )


def _plan_region(group: Group, uses: _Uses) -> _NewRegion:
    for node in group.nodes:
        if node.op.source:
            raise RegionError(
                f"{node.name} ({node.type}, built at {node.where}) is in {group!r}, but "
                "placeholders and variables are never members of a region"
            )
        if type(node.op) is Residual:
            _check_has_gradient(node)
    parent, children = _parent_and_children(group)
    members = [n for n in group.nodes if n.region is parent]
    joining = _constants_of(_NewRegion(group, members, parent, children), uses)
    return _NewRegion(group, [*members, *joining], parent, children)


def _parent_and_children(group: Group) -> tuple[Region | None, list[Region]]:
    """The region around a group and the regions in it; RegionError for one that is both."""
    parent = group.nodes[0].region
    for node in group.nodes:
        parent = common_region(parent, node.region)
    children: dict[Region, None] = {}
    for node in group.nodes:
        inner, region = None, node.region
        while region is not parent:
            assert region is not None
            inner, region = region, region.parent
        if inner is not None:
            children[inner] = None
    among = set(group.nodes)
    for child in children:
        if child.open:
            raise RegionError(f"{child!r} is still open; leave its block before it is marked")
        out = [n for n in known(child).members if has_gradient(n) and n not in among]
        if out:
            inside = next(n for n in group.nodes if child.contains(n.region))
            raise RegionError(
                f"{group!r} and {child!r} overlap, and neither is inside the other: "
                f"{inside.name} ({inside.where}) is in both, {out[0].name} ({out[0].where}) only "
                "in the region.\nSelect all of the region or nothing of it, or unmark it first."
            )
    return parent, list(children)


def _constants_of(plan: _NewRegion, uses: _Uses) -> list[Node]:
    """The constants that only the group reads: numbers used in a block are inside it."""
    backward = any(n.origin is not None for n in plan.inside)

    def only_here(node: Node) -> bool:
        around = uses.pinned.get(node, ())
        return all(any(c.contains(r) for c in plan.children) for r in around) and all(
            r in plan.inside or (r.origin is not None and not backward) for r in uses.of([node])
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


def _check_reached(plans: Sequence[Plan], graph: Graph, at: Position | None) -> None:
    """RegionError where every site lies inside a region, whose rule may never ask for it."""
    runs = bodies_of(graph)
    around = [_around(p, runs) for p in plans]
    if not around or None in around:
        return
    raise RegionError(
        f"everything that the mark at {show(at)} selects lies inside regions, the first in "
        f"{around[0]!r}, whose rule speaks for all of it: the mark counts only where that rule "
        "asks for site.default.\nSay allow_inside=True if it does, or mark the region instead "
        "(replace=True)."
    )


def _around(plan: Plan, runs: dict[Graph, Node | None]) -> Region | None:
    """The region around a new mark; None also for one that only changes its rule."""
    if isinstance(plan, _Restamp):
        site = plan.site
        if isinstance(site, Region) or site.stamp is not None:
            return None
        around, graph = site.region, site.graph
    else:
        around, graph = plan.parent, plan.group.graph
    while around is None and graph is not None:
        runner = runs.get(graph)
        around, graph = (runner.region, runner.graph) if runner is not None else (None, None)
    return around


# --- putting marks on ---------------------------------------------------------------------------


def _apply(plan: Plan, rule: Any, at: Position | None, options: dict[str, Any]) -> Site:
    if isinstance(plan, _NewRegion):
        return _open(plan, rule, at, options)
    site = plan.site
    if isinstance(site, Node):
        site.stamp = rule
    else:
        site.rule, site.position, site.kind = rule, at, "scope"
        for name, value in options.items():
            setattr(site, name, value)
    return site


def _open(plan: _NewRegion, rule: Any, at: Position | None, options: dict[str, Any]) -> Region:
    """The region, with its members; its boundary is still to be taken in."""
    graph, last = plan.group.graph, plan.group.nodes[-1]
    region = Region(graph, rule, parent=plan.parent, origin=last.origin, position=at, **options)
    region.open = False
    graph.regions.append(region)
    graph.scattered.append(region)
    for node in plan.members:
        node.region = region
    for child in plan.children:
        child.parent = region
    region.pinned_inputs, region.pinned_outputs = plan.inputs, plan.outputs
    plan.region = region
    return region


def _take_in(fresh: Sequence[_NewRegion], uses: _Uses) -> None:
    """The boundaries of regions that were marked after their nodes had been scanned."""
    for plan in fresh:
        _fill(plan.region, plan.inside, uses)
    marked = {plan.region for plan in fresh}
    for graph in {region.graph for region in marked}:
        for inner in graph.regions:
            if inner.pinned_inputs is not None and not marked.isdisjoint(_chain(inner)):
                take_in_pins(inner)
    for plan in fresh:
        for around in _chain(plan.parent):
            _unsettle(known(around))
        _leave_constants_out(plan.region, uses)


def _fill(region: Region, inside: set[Node], uses: _Uses) -> None:
    """Take in the members and their readers, but for what was derived from the region.

    Reads of its inside by derivatives that are there already are residuals of them, not outputs.
    """
    for node in sorted(inside.union(uses.of(inside)), key=lambda n: n.index):
        if node in inside or not _is_derived(region, node):
            take_in(node, region)


def _is_derived(region: Region, node: Node) -> bool:
    return node.origin is not None and any(
        region.contains(t.node.region) and derived_from(region, node.origin, t) for t in node.inputs
    )


def _unsettle(boundary: Boundary) -> None:
    """Have what follows from the boundary worked out again; settled inputs and outputs stay."""
    boundary.settled = False
    boundary._reach = None


def _leave_constants_out(region: Region, uses: _Uses) -> None:
    """Constants are no inputs of it. Where a later scan would see more than this, settle now."""
    boundary = known(region)
    pinned = set(region.pinned_inputs or ())
    shared = [t for t in boundary.reads if _is_constant(t.node) and t not in pinned]
    for t in shared:
        del boundary.reads[t]
    readers = uses.of(boundary.members)
    if shared or any(not region.contains(n.region) and _is_derived(region, n) for n in readers):
        boundary_of(region)


def _chain(region: Region | None) -> Iterable[Region]:
    while region is not None:
        yield region
        region = region.parent


# --- taking marks off ---------------------------------------------------------------------------


def _marked(target: Target) -> Site | None:
    """The mark that a target has; RegionError for a group that is no region."""
    if isinstance(target, Region):
        return target if known(target).members else None
    if isinstance(target, Node):
        return target if target.stamp is not None else _region_of(Group((target,), _nothing))
    region = _region_of(target)
    if region is None:
        raise RegionError(
            f"{target!r} is no marked region.\nSay `.each()` for the marks of its nodes, or "
            "select regions with select.rule(...)."
        )
    return region


_nothing: Any = None


def _region_of(group: Group) -> Region | None:
    """The outermost region whose members are these nodes; those without a gradient do not count."""
    among = {n for n in group.nodes if has_gradient(n)}
    found = None
    for region in _chain(group.nodes[0].region):
        if {n for n in known(region).members if has_gradient(n)} == among:
            found = region
    return found


def _not_marked(target: Target) -> str:
    around = target.region if isinstance(target, Node) else None
    inside = f", which is a member of {around!r}" if around is not None else ""
    shown = f"{target.name} ({target.where})" if isinstance(target, Node) else repr(target)
    return f"{shown}{inside}"


def _dissolve(graph: Graph, gone: set[Region]) -> None:
    """Give the members of regions to the regions around them."""
    for region in gone:
        for node in known(region).members:
            node.region = _left(node.region, gone)
    for inner in graph.regions:
        inner.parent = _left(inner.parent, gone)
    for region in gone:
        pinned = region.pinned_inputs
        region.boundary = region.settled = region.pinned_inputs = region.pinned_outputs = None
        for around in _chain(region.parent):
            boundary = known(around)
            boundary.inner.pop(region, None)
            if pinned is not None and around.settled is None:
                _drop_reads(boundary, pinned)
            _unsettle(boundary)
    _forget(graph, gone)


def _left(region: Region | None, gone: set[Region]) -> Region | None:
    """The innermost region around that stays."""
    while region in gone:
        region = region.parent
    return region


def _drop_reads(boundary: Boundary, pinned: Sequence[Tensor]) -> None:
    """Forget what only the declared inputs of a region that is gone read."""
    read = {t for n in boundary.members for t in n.inputs}
    read.update(t for inner in boundary.inner for t in inner.pinned_inputs or ())
    for t in pinned:
        if t not in read:
            boundary.reads.pop(t, None)
            boundary.used.discard(t)


def _forget(graph: Graph, gone: set[Region]) -> None:
    """Take regions out of the graph's list; those that derivatives refer to stay, empty."""
    referred: set[Any] = set()
    items: list[Site] = [*graph.nodes, *graph.regions]
    for item in items:
        if isinstance(item.origin, RuleCall):
            referred.add(item.origin.site)
        if isinstance(item, Node) and type(item.op) is Residual:
            referred.add(item.op.region)
    for region in gone & referred:
        region.rule, region.kind, region.attrs = rule_name(region.rule), "scope", {}
    graph.regions[:] = [r for r in graph.regions if r not in gone or r in referred]
    graph.scattered[:] = [r for r in graph.scattered if r in graph.regions]
    for index, region in enumerate(graph.regions):
        region.index = index


Graph.mark = mark  # type: ignore[method-assign, assignment]
Graph.unmark = unmark  # type: ignore[method-assign, assignment]
