"""Groups of nodes that a call of `gradients` names: a region there, and nothing to other calls.

What stands for a group is kept with its graph and found again: its boundary is settled by the first
call that names it and stays, as that of any region. Whether it counts is not a state of it: each
call puts the groups that it names into a tree of regions of its own (ir.region_tree).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.errors import GraphError, RegionError
from ..base.position import Position
from ..ir.graph import Graph
from ..ir.node import Members, Node, Region, RuleCall, Tensor, enclosing
from ..ir.region_tree import NamedTree
from .boundary import LOCK, boundaries_of, boundary_of
from .index import Index, has_gradient, index_of
from .plans import (
    check_members,
    parent_and_children,
    plan_region,
    regions_beyond,
    survey,
)
from .select import Group, as_selection

Settled = tuple[tuple[Tensor, ...], tuple[Tensor, ...]]
LABEL = 80
"""Longer labels of groups are cut."""


class NamedGroup:
    """What is kept of a group.

    members  what its regions have as `group`
    inside   its nodes, with the constants that only they read
    regions  what stands for it: one for each region that was around it in a call
    """

    def __init__(self, members: Members) -> None:
        self.members = members
        self.inside = {t.node for t in members.tensors}
        self.regions: list[Region] = []


class _Plan:
    """One group of a call, before anything changes.

    nodes     those with a gradient
    parent    the innermost marked region around; children: the marked regions in it
    inside    its nodes, with the constants that are inside
    outer     the smallest group of the same call around it
    settled   inputs and outputs, where it is carried here with them
    """

    def __init__(self, group: Group, settled: Settled | None = None) -> None:
        self.group = group
        self.settled = settled
        self.nodes = group.key
        self.parent, self.children = parent_and_children(group)
        self.outer: _Plan | None = None
        self.region: Region
        known = _named_in(group).get(self.nodes)
        if known is not None:
            check_members(group)
            self.inside = known.inside
        else:
            new = plan_region(group)
            new.declare(None, None)
            self.inside = new.inside

    @property
    def around(self) -> Region | None:
        """The region around it in this call."""
        outer = self.outer
        return outer.region if outer is not None and outer.parent is self.parent else self.parent


def put_in_place(groups: Sequence[Group], at: Position | None) -> tuple[NamedTree, list[Region]]:
    """The tree of regions with these groups in it, and what stands for each.

    at  the user's line, for those that were not named before. RegionError for a group that overlaps
    another or a marked region, and neither is inside the other; nothing has changed then.
    """
    return _placed([_Plan(group) for group in groups], at)


def _placed(plans: Sequence[_Plan], at: Position | None) -> tuple[NamedTree, list[Region]]:
    nested = _nested(plans)
    tree = NamedTree()
    with LOCK:
        for plan in nested:
            plan.region = _region_for(plan, at)
            direct = [n for n in plan.inside if n.region is plan.parent]
            tree.put(plan.region, [*direct, *plan.children])
    return tree, [plan.region for plan in plans]


def group_of(region: Region) -> Group:
    """The group that a region stands for, to be named once more."""
    assert region.group is not None
    if not region.group.tensors:
        raise RegionError(f"{region!r} was copied without some of its nodes; name them anew")
    return Group({t.node for t in region.group.tensors}, as_selection(region))


def stand_in(
    region: Region, tensor: Callable[[Tensor], Tensor], graph: Graph, parent: Region | None
) -> Region:
    """What stands for a group in another graph, where other tensors stand for its own.

    parent  what stands there for the region around it, for where not all of the group is there
    """
    assert region.group is not None
    try:
        around = [r for r in enclosing(region) if r.group is not None]
        plans = [_Plan(_carried(r, tensor), _boundary_elsewhere(r, tensor)) for r in around]
        return _placed(plans, region.position)[1][-1]
    except (GraphError, RegionError):  # a graph cut out of another, a batch
        none = Members(region.group.label, ())
        bare = _new_group(graph, none, parent, None, region.position)
        graph.regions.append(bare)
        return bare


def _new_group(
    graph: Graph,
    members: Members,
    parent: Region | None,
    origin: Node | RuleCall | None,
    at: Position | None,
) -> Region:
    """A region without a rule, which its graph does not know yet."""
    return Region(graph, None, parent=parent, origin=origin, position=at, open=False, group=members)


def _carried(region: Region, tensor: Callable[[Tensor], Tensor]) -> Group:
    group = group_of(region)
    return Group({tensor(n.outputs[0]).node for n in group.nodes if n.outputs}, group.of)


def _boundary_elsewhere(region: Region, tensor: Callable[[Tensor], Tensor]) -> Settled:
    boundary = boundary_of(region)
    return tuple(map(tensor, boundary.inputs)), tuple(map(tensor, boundary.outputs))


def _nested(plans: Sequence[_Plan]) -> list[_Plan]:
    """The plans, outer ones first; RegionError for two that overlap only in part."""
    order = sorted(plans, key=lambda p: -len(p.nodes))
    holder: dict[Node, _Plan] = {}
    for plan in order:
        around = {holder.get(n) for n in plan.nodes}
        if len(around) > 1:
            raise _overlap(plan, min((p for p in around if p), key=lambda p: len(p.nodes)))
        (plan.outer,) = around
        if plan.outer is not None and plan.outer.nodes == plan.nodes:
            raise RegionError(
                f"two entries of overrides= are for one group: {plan.outer.group!r} and "
                f"{plan.group!r}"
            )
        holder.update(dict.fromkeys(plan.nodes, plan))
    return order


def _overlap(one: _Plan, other: _Plan) -> RegionError:
    both = min(one.nodes & other.nodes, key=lambda n: n.index)
    only = min(one.nodes - other.nodes, key=lambda n: n.index)
    return RegionError(
        f"{one.group!r} and {other.group!r}, which overrides= names, overlap, and neither is "
        f"inside the other: {both.name} ({both.where}) is in both, {only.name} ({only.where}) only "
        "in the first.\nNarrow one of them with `&`, or make one group of both with "
        "`(a | b).together()`."
    )


# --- what is kept -------------------------------------------------------------------------------


def _named_in(group: Group) -> dict[frozenset[Node], NamedGroup]:
    """The groups that were named in a graph, those that came with a copy too."""
    index = index_of(group.graph)
    if index.regions_seen != len(group.graph.regions):
        with LOCK:
            _take_in(index)
    return index.named


def _take_in(index: Index) -> None:
    """Note the regions that stand for groups."""
    for region in index.graph.regions[index.regions_seen :]:
        if region.group is not None:
            _note(index, region, region.group)
        index.regions_seen += 1


def _note(index: Index, region: Region, group: Members) -> None:
    index.groups.add(region)
    nodes = frozenset(t.node for t in group.tensors if has_gradient(t.node))
    if not nodes:
        return
    known = index.named.get(nodes)
    if known is None:
        known = index.named[nodes] = NamedGroup(group)
    region.group = known.members
    if region not in known.regions:
        known.regions.append(region)


def _region_for(plan: _Plan, at: Position | None) -> Region:
    """What stands for a group where it lies in this call; LOCK is held."""
    known = _named_in(plan.group).get(plan.nodes)
    if known is None:
        known = NamedGroup(_members(plan))
    plan.inside = known.inside
    for region in known.regions:
        if region.parent is plan.around:
            break
    else:
        group = plan.group
        origin = group.nodes[-1].origin
        region = _new_group(group.graph, known.members, plan.around, origin, at)
        region.settled = plan.settled
    _settle(region, known, plan)
    if region not in known.regions:
        region.graph.regions.append(region)
        _named_in(plan.group)
    return region


def _members(plan: _Plan) -> Members:
    label = repr(plan.group.of)
    label = label if len(label) <= LABEL else label[: LABEL - 3] + "..."
    nodes = sorted(plan.inside, key=lambda n: n.index)
    return Members(label, tuple(t for n in nodes for t in n.outputs))


def _settle(region: Region, known: NamedGroup, plan: _Plan) -> None:
    """Have it know its boundary: that of the group, worked out where nobody did or it is stale."""
    inner = regions_beyond(plan.parent, plan.inside) if plan.children else []
    declaring = frozenset(r for r in inner if r.pinned_inputs is not None)
    boundaries = boundaries_of(region.graph)
    for other in known.regions:
        region.settled = other.settled
        if other.boundary is not None and boundaries.of(other).first is not None:
            boundaries.share(other, region)
    contents = boundaries.of(region)
    if region.boundary is None or contents.first is None or contents.declaring != declaring:
        alone = NamedTree()
        alone.put(region, [*(n for n in plan.inside if n.region is plan.parent), *plan.children])
        surveyed = survey(region, plan.inside, declaring, alone)
        boundaries.put_group(surveyed.contents(plan.inside, (), plan.inside, declaring))
        boundary_of(region)
        for other in known.regions:
            boundaries.share(region, other)
