"""Sites of tensors, put on a graph that exists: what is asked for, checked, and the site."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.errors import RegionError
from ..base.position import Position, show
from ..base.tree import flatten
from ..ir.graph import Graph
from ..ir.node import TENSORS, Node, Region, Tensor, enclosing
from ..ir.tensor_sites import note_site
from .boundary import settled_boundary, why_idle
from .index import bodies_of
from .rebuilt import rebuilt_in
from .rules import Rule
from .select import Selection, as_selection, nodes_of, targets_of


def site_for(
    graph: Graph,
    selection: Any,
    rule: Any,
    at: Position | None,
    allow_inside: bool,
    options: dict[str, Any],
) -> Region | None:
    """The site of what is selected, of which its graph does not know yet; None for nothing.

    RegionError for tensors that cannot be one.
    """
    tensors = _tensors_of(graph, selection, options["allow_empty"])
    idle = why_idle(tensors, ())
    if idle:
        raise RegionError(f"what the mark at {show(at)} selects {idle}")
    tensors = [t for t in tensors if t.type.differentiable]
    if not tensors:
        return None
    if isinstance(rule, Rule) and rule.on_tensors is not None:
        rule.on_tensors(tensors)
    home = _graph_of(tensors, at)
    _check_apart(home, tensors, at)
    parents = {_parent_of(t): t for t in tensors}
    if len(parents) > 1:
        rows = "".join(f"\n  {t.name} ({t.where}), in {p or 'none'}" for p, t in parents.items())
        raise RegionError(f"the tensors of the mark at {show(at)} lie in several regions:{rows}")
    (parent,) = parents
    if parent is not None and not allow_inside:
        raise RegionError(
            f"{tensors[0].name} ({tensors[0].where}), which the mark at {show(at)} selects, is "
            f"hidden inside {parent!r}, whose rule replaces the gradient of all of it: the mark "
            "has an effect only if that rule calls site.default.\n"
            "Say allow_inside=True if it does."
        )
    last = max(tensors, key=lambda t: t.node.index).node
    pins: Any = {"pinned_inputs": tuple(tensors), "pinned_outputs": tuple(tensors)}
    pins |= {"parent": parent, "origin": last.origin, "position": at, "open": False}
    site = Region(home, rule, kind=TENSORS, **pins, **options)
    site.settled = site.pinned_inputs, site.pinned_outputs  # type: ignore[assignment]
    return site


def put_site(site: Region) -> Region:
    """Have the graph know a site; twice is as good as once."""
    regions = site.graph.regions
    if regions[site.index : site.index + 1] != [site]:
        site.graph.scattered.append(site)
        site.index = len(regions)
        regions.append(site)
    note_site(site)
    return site


# --- what is selected -------------------------------------------------------------------------


def _tensors_of(graph: Graph, selection: Any, allow_empty: bool) -> list[Tensor]:
    """The tensors that are given, or that what is selected makes, each once."""
    if isinstance(selection, Selection | str | Node | Region):
        find = as_selection(selection).find if allow_empty else None
        targets = find(graph) if find else targets_of(selection, graph)
        made: list[Tensor] = []
        for target in targets:
            if isinstance(target, Region):
                made += settled_boundary(target).outputs
            else:
                made += [t for n in nodes_of(target) for t in n.outputs]
        return list(dict.fromkeys(made))
    tensors = flatten(selection)
    homes = bodies_of(graph)
    for t in tensors:
        if not isinstance(t, Tensor):
            raise RegionError(f"a site of tensors is of a selection or of tensors, got {t!r}")
        if t.graph not in homes:
            raise RegionError(f"{t.name} ({t.where}) is not in {graph!r} but in {t.graph!r}")
    if not tensors and not allow_empty:
        raise RegionError("a site of tensors is of at least one tensor, got none")
    return list(dict.fromkeys(tensors))


def _graph_of(tensors: Sequence[Tensor], at: Position | None) -> Graph:
    homes = {t.graph: t for t in tensors}
    if len(homes) > 1:
        rows = "".join(f"\n  {t.name} ({t.where}) of {home!r}" for home, t in homes.items())
        raise RegionError(
            f"the tensors of the mark at {show(at)} lie in several graphs, as those of bodies of "
            f"control flow do:{rows}"
        )
    (home,) = homes
    assert home is not None
    return home


def _parent_of(t: Tensor) -> Region | None:
    """The region in which a site on t stands: outside of those that show t as an output."""
    for region in enclosing(t.node.region):
        if region.open:
            raise RegionError(
                f"{region!r} is still open; leave its block before {t.name} is marked"
            )
        if t in settled_boundary(region).output_set:
            return region.parent
    return t.node.region


def _check_apart(graph: Graph, tensors: Sequence[Tensor], at: Position | None) -> None:
    """RegionError where one depends on another, or was computed once more for a derivative."""
    rebuilt, among = rebuilt_in(graph), {t.node: t for t in tensors}
    for node, t in among.items():
        if node in rebuilt:
            raise RegionError(
                f"{t.name} ({t.where}) was recomputed in derivatives that were taken: mark it "
                "before a gradient is taken"
            )
    places = [node.index for node in among]
    depends: dict[Node, Tensor] = {}
    for node in graph.nodes[min(places) : max(places) + 1]:
        read = [among.get(t.node, depends.get(t.node)) for t in node.inputs]
        first = next((t for t in read if t is not None), None)
        if first is None:
            continue
        if node in among:
            raise RegionError(
                f"{among[node].name} ({among[node].where}) depends on {first.name} "
                f"({first.where}), and the mark at {show(at)} puts both into one site: its rule is "
                "called once, with the gradients of both, but that of the second needs what the "
                "rule gives for the first.\nMark them as two sites."
            )
        depends[node] = first
