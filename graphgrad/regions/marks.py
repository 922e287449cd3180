"""Marks put on a graph that exists: `graph.mark` and `graph.unmark`.

A single node is marked by a stamp, as an op-type map does it; a group becomes a region, as if it
had been built in an `override_gradient` block. Everything is checked before anything changes, and
what has begun to change is changed to the end: an interrupt finds all marks as they were, or new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ..base.errors import RegionError
from ..base.flags import truth
from ..base.lazy import LazyModule
from ..base.position import Position, caller, show
from ..ir.graph import Graph
from ..ir.node import Node, Region, RuleCall, Tensor, rule_name
from ..ir.region_tree import sites_at
from ..ir.residual import Residual, viewpoint
from .boundary import Read, boundaries_of, boundary_of, why_idle
from .index import bodies_of, index_of
from .plans import (
    NewRegion,
    check_has_gradient,
    parent_and_children,
    plan_region,
    region_of,
    regions_beyond,
    survey,
)
from .rebuilt import rebuilt_in, twins_of
from .rules import check_reference
from .scopes import ESCAPES, ORDERS, _one_of
from .select import (
    Group,
    Target,
    as_selection,
    members_of,
    nodes_of,
    targets_of,
)

__all__: list[str] = []

_sites = LazyModule("graphgrad.ir.tensor_sites")
_tensors = LazyModule("graphgrad.regions.tensors")

Site = Node | Region
T = TypeVar("T")


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
    together: bool = False,
    **attrs: Any,
) -> list[Site]:
    """`graph.mark("Relu", rule)`: put a rule on the nodes that a selection finds.

    A single node gets the rule as under gradient_override_map. If you pass inputs, outputs, escape,
    order or attrs, it becomes a region of one node instead. A group of nodes becomes a region, and
    existing regions whose nodes are all in the group are nested in it. Constants are never inputs
    of such a region.

    Matches in bodies of control flow are marked there; in the body of a loop, the mark applies to
    every iteration.

    The mark applies to every later gradients() call, also to nodes that a checkpoint recomputes.
    Gradients that were built before do not change. To differentiate these again through tensors
    that are now inside a region, build them again with gradients(), or pass escape="default".

    An existing region is one step, and its rule decides whether marks inside it are used (by
    calling site.default), which is known only when the rule runs. So if every match lies inside
    existing regions, you get an error that names one of them, unless you pass allow_inside=True.

    With together=True, one rule is put on several tensors: the outputs of the selected nodes, or
    the given tensors. The rule gets all their gradients at once, each summed over all uses of the
    tensor, and the gradients that it returns are used instead. No node is built or changed.
    site.inputs and site.outputs are the tensors, and site.default returns the gradients unchanged.
    If a tensor has several such marks, their rules are called in the order of marking.

    Parameters:
        graph: that of `graph.mark`.
        selection: an op type, a node, a region, or a selection of gg.select; with together=True
            also a tensor or any nesting of tensors.
        rule: a registered name, an op type, a callable fn(site, *dys), or a rule object.
        inputs, outputs: the inputs and outputs of the region, in this order; None: inferred.
        escape, order, late, attrs: as for override_gradient.
        replace: replace an existing mark; required if the selection consists of regions.
        allow_inside: do not raise an error if all matches lie inside existing regions.
        allow_empty: do not raise an error for a selection that is empty or that no gradient can
            reach.
        together: whether to put one rule on several tensors.

    Returns: the sites, a list of nodes and regions.

    Raises: RegionError for a selection that selects nothing, two targets that share a node, partial
    overlap with a region, a node or region that is already marked, ops without inputs, and nodes
    that have only integer and bool inputs or outputs; UnknownGradientError for an unknown name.

    Gradient: that of the rule.

    >>> x = gg.constant([1.0, -1.0])
    >>> y = gg.nn.relu(x)
    >>> [site.type for site in x.graph.mark("Relu", "Identity")]
    ['Relu']
    >>> gg.evaluate(gg.gradients(y, x))
    array([1., 1.])
    """
    late, allow_empty = truth("late", late), truth("allow_empty", allow_empty)
    truth("replace", replace)
    truth("allow_inside", allow_inside)
    _one_of("escape", escape, ESCAPES)
    _one_of("order", order, ORDERS)
    at = caller()
    check_reference(rule, lambda: f"named by the mark at {show(at)}", late)
    options: dict[str, Any] = {"escape": escape, "order": order, "late": late, "attrs": attrs}
    options["allow_empty"] = allow_empty
    if truth("together", together):
        _check_together(inputs, outputs, escape, replace)
        site = _tensors.site_for(graph, selection, rule, at, allow_inside, options)
        return [] if site is None else [_to_the_end(lambda: _tensors.put_site(site))]
    pinned = inputs is not None or outputs is not None
    regional = pinned or bool(attrs) or (escape, order) != ("error", "again")
    targets = _targets(graph, selection, allow_empty)
    if regional:
        targets = [Group((t,), as_selection(t)) if isinstance(t, Node) else t for t in targets]
    _check_apart(targets)
    _check_one_boundary(targets, pinned)
    plans = [_plan(t, replace) for t in targets]
    if not allow_inside:
        _check_reached(plans, graph, at)
    for plan in plans:
        if isinstance(plan, NewRegion):
            plan.declare(inputs, outputs)
    if not allow_empty:
        _check_not_idle(plans, at)
    again = _plans_again(graph, list(zip(targets, plans, strict=True)), inputs, outputs)
    for plan in (*plans, *again):
        if isinstance(plan, NewRegion):
            plan.region = _region_for(plan, rule, at, options)
    return _to_the_end(lambda: _put(plans, again, rule, at, options))


def _check_together(inputs: Any, outputs: Any, escape: str, replace: bool) -> None:
    given = {"inputs": inputs, "outputs": outputs, "escape": escape != "error" or None}
    given["replace"] = replace or None
    for name, value in given.items():
        if value is not None:
            raise RegionError(
                f"{name}= is not for a site of tensors, which are its inputs and outputs, and may "
                "stand in several. To give one another rule: graph.mark(site, rule, "
                "replace=True)."
            )


def unmark(graph: Graph, selection: Any) -> list[Site]:
    """`graph.unmark("Relu")`: remove the marks of the nodes or regions that a selection finds.

    A node loses its rule, or the region that contains only this node. If you unmark a region, or a
    group of all its nodes, the nodes become members of the enclosing region. Boundaries of other
    regions do not change. Gradients that were built before do not change either; a region that they
    refer to remains in `graph.regions`, empty.

    Parameters:
        graph: that of `graph.unmark`.
        selection: as for mark.

    Returns: the sites, a list of nodes and regions.

    Raises: RegionError if nothing in the selection is marked, for a group that is not a marked
    region, and for a region that is still open.

    >>> x = gg.constant([1.0, -1.0])
    >>> y = gg.override("Identity")(gg.nn.relu)(x)
    >>> sites = x.graph.unmark(gg.select.rule("Identity"))
    >>> gg.evaluate(gg.gradients(y, x))
    array([1., 0.])
    """
    sites: dict[Site, None] = {}
    targets = targets_of(selection, graph)
    for target in targets:
        site = _marked(target)
        if site is not None:
            sites[site] = None
    if not sites:
        shown = "; ".join(_not_marked(t) for t in targets[:3])
        raise RegionError(f"{as_selection(selection)!r} selects nothing that is marked: {shown}")
    for site in sites:
        if isinstance(site, Region) and site.open:
            raise RegionError(f"{site!r} is still open; leave its block before it is unmarked")
    rebuilt = rebuilt_in(graph)
    gone = [*sites, *(step for site in sites for step in rebuilt.get(site, ()))]
    _to_the_end(lambda: _take_off(gone))
    return list(sites)


def _to_the_end(change: Callable[[], T]) -> T:
    """change(), which was checked and can be done again: once more to its end if interrupted."""
    try:
        return change()
    except BaseException:
        change()
        raise


def sites_of(selection: Any, graph: Graph, lenient: bool = False) -> list[Target]:
    """What an override of the call is for: nodes, regions, and groups that are not marked regions.

    lenient: it may select nothing, and name what is not in the graph.
    RegionError for a group that overlaps a region only in part, and for nodes without a gradient.
    """
    chosen = as_selection(selection)
    sites: list[Target] = []
    for target in chosen.find(graph, lenient=True) if lenient else targets_of(chosen, graph):
        if isinstance(target, Group):
            parent_and_children(target)
            region = region_of(target)  # one that is open is not yet what it will be
            sites.append(target if region is None or region.open else region)
        else:
            if isinstance(target, Node):
                check_has_gradient(target)
            sites.append(target)
    return sites


# --- what is asked for, checked -----------------------------------------------------------------


class _Restamp:
    """A node that gets a stamp, or a region that gets another rule."""

    def __init__(self, site: Site) -> None:
        self.site = site


Plan = NewRegion | _Restamp


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
                    f"{target!r}.\n"
                    "Two rules cannot apply to one node: narrow the selection with `&`, or make "
                    "one region of it with `.together()`."
                )


def _check_one_boundary(targets: Sequence[Target], pinned: bool) -> None:
    if pinned and (len(targets) != 1 or not isinstance(targets[0], Group)):
        what = f"{len(targets)} sites" if len(targets) != 1 else f"{targets[0]!r}, a region"
        raise RegionError(
            f"inputs= and outputs= are for a selection that becomes one region; this one is {what}"
        )


def _plan(target: Target, replace: bool) -> Plan:
    if isinstance(target, Group):
        return plan_region(target)
    if isinstance(target, Node):
        check_has_gradient(target)
        if target.stamp is not None and not replace:
            raise RegionError(
                f"{target.name} ({target.where}) is marked with {rule_name(target.stamp)!r} "
                "already. Say replace=True, or graph.unmark it first."
            )
    elif target.group is not None:
        raise RegionError(
            f"{target!r} counts in the calls that name it only; mark its nodes instead: "
            "graph.mark(select.nodes(...), rule)"
        )
    elif not replace:
        raise RegionError(
            f"{target!r} is marked already. Say replace=True to give it another rule, or "
            "graph.unmark it first."
        )
    return _Restamp(target)


def _check_reached(plans: Sequence[Plan], graph: Graph, at: Position | None) -> None:
    """RegionError where every site lies inside a region, whose rule may never ask for it."""
    runs = bodies_of(graph)
    around = [_around(p, runs) for p in plans]
    if not around or None in around:
        return
    raise RegionError(
        f"everything that the mark at {show(at)} selects is inside regions, the first in "
        f"{around[0]!r}, whose rule replaces the gradient of all of it: the mark has an effect "
        "only if that rule calls site.default.\n"
        "Say allow_inside=True if it does, or mark the region instead (replace=True)."
    )


def _check_not_idle(plans: Sequence[Plan], at: Position | None) -> None:
    """RegionError where no gradient can reach any of the sites."""
    reasons = [_why_idle(plan) for plan in plans]
    if reasons and all(reasons):
        raise RegionError(
            f"what the mark at {show(at)} selects {reasons[0]}\n"
            "Select the whole path from floats to floats as one region, or say allow_empty=True."
        )


def _why_idle(plan: Plan) -> str:
    if isinstance(plan, NewRegion):
        return plan.why_idle()
    site = plan.site
    return why_idle(site.inputs, site.outputs) if isinstance(site, Node) else ""


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


def _plans_again(
    graph: Graph, planned: Sequence[tuple[Target, Plan]], inputs: Any, outputs: Any
) -> dict[Plan, Plan]:
    """The same for what was built once more of the targets, with what it is the same as."""
    rebuilt = rebuilt_in(graph)
    chosen = {n for target, _ in planned for n in nodes_of(target)}
    plans: dict[Plan, Plan] = {}
    for target, first in planned:
        for twin in twins_of(target, rebuilt):
            if not chosen.isdisjoint(nodes_of(twin.target)):
                continue  # selected itself
            plan = _plan(twin.target, replace=True)
            if isinstance(plan, NewRegion):
                plan.declare(twin.inputs(inputs), twin.outputs(outputs))
            plans[plan] = first
    return plans


# --- putting marks on ---------------------------------------------------------------------------


def _put(
    plans: Sequence[Plan],
    again: Mapping[Plan, Plan],
    rule: Any,
    at: Position | None,
    options: dict[str, Any],
) -> list[Site]:
    sites = {plan: _apply(plan, rule, at, options) for plan in (*plans, *again)}
    _take_in([p for p in sites if isinstance(p, NewRegion)])
    for plan, first in again.items():
        _note_built_from(sites[plan], sites[first])
    return [sites[plan] for plan in plans]


def _note_built_from(site: Site, first: Site) -> None:
    assert site.graph is not None
    assert first.graph is not None
    site.graph.again[site] = first.graph.again.get(first, first)


def _apply(plan: Plan, rule: Any, at: Position | None, options: dict[str, Any]) -> Site:
    if isinstance(plan, NewRegion):
        return _place(plan)
    site = plan.site
    if isinstance(site, Node):
        assert site.graph is not None
        site.stamp = rule
        index_of(site.graph).stamped[site] = None
    else:
        site.rule, site.position = rule, at
        site.kind = site.kind if site.on_tensors else "scope"
        for name, value in options.items():
            setattr(site, name, value)
    return site


def _region_for(plan: NewRegion, rule: Any, at: Position | None, options: dict[str, Any]) -> Region:
    """What a group will become, of which its graph does not know yet."""
    graph, last = plan.group.graph, plan.group.nodes[-1]
    return Region(
        graph,
        rule,
        parent=plan.parent,
        origin=last.origin,
        position=at,
        open=False,
        pinned_inputs=plan.inputs,
        pinned_outputs=plan.outputs,
        **options,
    )


def _place(plan: NewRegion) -> Region:
    """The region, with its members; its boundary is still to be taken in."""
    graph, region = plan.group.graph, plan.region
    regions = graph.regions
    if region not in regions[region.index : region.index + 1]:
        graph.scattered.append(region)
        region.index = len(regions)
        regions.append(region)
    for node in plan.members:
        node.region = region
    for child in plan.children:
        child.parent = region
    return region


def _take_in(fresh: Sequence[NewRegion]) -> None:
    """The boundaries of regions that were marked after their nodes had been scanned."""
    partial = []
    for plan in fresh:
        region, inside = plan.region, plan.inside
        surveyed = survey(region, inside, regions_beyond(region, inside))
        boundaries_of(region.graph).put(surveyed.contents(plan.members, plan.children, inside))
        partial += [region] if surveyed.partial else []
    for region in partial:
        boundary_of(region)


# --- taking marks off ---------------------------------------------------------------------------


def _marked(target: Target) -> Site | None:
    """The mark that a target has; RegionError for a group that is not a region."""
    if isinstance(target, Region):
        marked = target.on_tensors or (members_of(target) and target.group is None)
        return target if marked else None
    if isinstance(target, Node):
        return target if target.stamp is not None else region_of(Group((target,), _nothing))
    region = region_of(target)
    if region is None:
        raise RegionError(
            f"{target!r} is not a marked region.\nSay `.each()` for the marks of its nodes, or "
            "select regions with select.rule(...)."
        )
    return region


_nothing: Any = None


def _not_marked(target: Target) -> str:
    around = target.region if isinstance(target, Node) else None
    inside = f", which is a member of {around!r}" if around is not None else ""
    sites = [s for n in nodes_of(target) for t in n.outputs for s in sites_at(t)]
    inside += f"; a tensor of it stands in {sites[0]!r}: graph.unmark that" if sites else ""
    shown = f"{target.name} ({target.where})" if isinstance(target, Node) else repr(target)
    return f"{shown}{inside}"


def _take_off(sites: Iterable[Site]) -> None:
    for site in sites:
        if isinstance(site, Node):
            site.stamp = None
    gone = {s for s in sites if isinstance(s, Region)}
    for each in {r.graph for r in gone}:
        _dissolve(each, {r for r in gone if r.graph is each})


def _dissolve(graph: Graph, gone: set[Region]) -> None:
    """Give the members of regions to the regions around them."""
    boundaries = boundaries_of(graph)
    boundaries.remove(gone)
    for region in gone:
        for t in dict.fromkeys(region.pinned_inputs or ()):
            boundaries.drop_reads(t, region.parent, _reads_of(t))
        region.pinned_inputs = None  # last: what is interrupted is done again
    _forget(graph, gone)


def _reads_of(t: Tensor) -> list[Read]:
    """Where t is read, by nodes and by regions that declare it."""
    graph = t.node.graph
    assert graph is not None
    reads: list[Read] = []
    for node in index_of(graph).readers_of([t.node]):
        here, view, each = node.region, viewpoint(node), enumerate(node.inputs)
        reads += [(here, view, (node.index, None, i)) for i, x in each if x is t]
    boundaries = boundaries_of(graph)
    for region in boundaries.declared.get(t.node, ()):
        first = boundaries.of(region).first
        if first is not None:
            here, when = region.parent, first.index - 0.5
            pinned = enumerate(region.pinned_inputs or ())
            reads += [(here, here, (when, region, i)) for i, x in pinned if x is t]
    return reads


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
    index_of(graph).forget_regions()
    graph.regions[:] = [r for r in graph.regions if r not in gone or r in referred]
    graph.scattered[:] = [r for r in graph.scattered if r in graph.regions]
    for region in gone:
        graph.again.pop(region, None)
        graph.twins.pop(region, None)
    for index, region in enumerate(graph.regions):
        region.index = index
    if graph.sites:
        _sites.note_sites(graph)


Graph.mark = mark  # type: ignore[method-assign, assignment]
Graph.unmark = unmark  # type: ignore[method-assign, assignment]
