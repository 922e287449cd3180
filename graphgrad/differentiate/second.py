"""Second-order rules: what a grad_fn built is a region whose rule is the grad_fn2 it returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.errors import GradientError
from ..ir.build import apply, read_here
from ..ir.node import Node, Region, Tensor
from ..ir.residual import Residual
from ..ops.base import DEFAULT, Constant
from ..ops.sources import Identity
from ..regions.boundary import boundaries_of
from ..regions.opening import Pins, region_around
from ..regions.plans import Survey
from ..regions.rules import Rule
from .site import Site


def with_second(
    site: Site,
    dys: Sequence[Any],
    entries: Any,
    second: Rule,
    arity: int,
    start: int,
    first_region: int,
) -> Any:
    """Mark what grad_fn built as a region from (xs, dys) to dxs, whose rule is `second` for xs.

    entries              what grad_fn gave, with the outputs of the region in place of the dxs
    arity                how many of the site's inputs are xs
    start, first_region  where in the graph what grad_fn built begins
    """
    listed = _listed(entries)
    if not any(isinstance(dx, Tensor) for dx in listed):
        return entries
    real_dys = [dy for dy in dys if dy is not None and dy.type.differentiable]
    spare = {dy.node for dy in real_dys}  # a structural zero becomes a node before the region
    xs = read_here(site.inputs[:arity])

    def inside(region: Region) -> Pins:
        _mark_since(region, start, first_region, spare)
        outputs = [apply(Identity(), dx) for dx in listed if isinstance(dx, Tensor)]
        return (*xs, *real_dys), outputs

    rule = _second_rule(site, second, len(real_dys))
    made = iter(region_around(inside, rule, kind="second").pinned_outputs or ())
    dxs = [next(made) if isinstance(dx, Tensor) else dx for dx in listed]
    return dict(zip(entries, dxs, strict=True)) if isinstance(entries, Mapping) else dxs


def _second_rule(site: Site, second: Rule, dys: int) -> Rule:
    """The rule of such a region: with respect to dys, its inside is differentiated."""

    def second_rule(second_site: Site, *ddxs: Any) -> Any:
        gradients = second.fn(second_site, *ddxs)
        if isinstance(gradients, Mapping):
            raise GradientError(
                f"the second rule of {site!r} (defined at {second.where}) returned a mapping; it "
                "gives one gradient for each argument, in their order"
            )
        return [*_listed(gradients), *[DEFAULT] * dys]

    return Rule(second_rule, f"{site.name}/second", position=second.position)


def _listed(entries: Any) -> list[Any]:
    if isinstance(entries, Mapping):
        return list(entries.values())
    return list(entries) if isinstance(entries, list | tuple) else [entries]


def _mark_since(region: Region, start: int, first_region: int, spare: set[Node]) -> None:
    """Make members of the nodes and regions that were built in this rule call, at its level.

    Residuals stay outside: they are the door to another region. So do constants, which may be
    shared.
    """
    graph, around = region.graph, region.parent
    boundaries = boundaries_of(graph)
    boundaries.take_in()
    opened = [inner for inner in graph.regions[first_region:] if inner is not region]
    members: list[Node] = []
    for node in graph.nodes[start:]:
        shared = isinstance(node.op, Residual | Constant) or node.op.source
        if node.region is around and node not in spare and not shared:
            node.region = region
            members.append(node)
    children = [inner for inner in opened if inner.parent is around]
    for inner in children:
        inner.parent = region
    within = [inner for inner in opened if region.contains(inner)]
    fresh = graph.nodes[start:]
    inside = [node for node in fresh if region.contains(node.region)]
    boundaries.put(Survey(region, fresh, within).contents(members, children, inside))
