"""The default gradient that a rule was used instead of, for pictures that show it struck through.

It is built in a copy of the graph: a look never adds a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...differentiate.gradients import gradients
from ...ir.graph import Graph
from ...ir.node import Node, Region, RuleCall, enclosing
from ...ops.sources import placeholder_of
from ...regions.boundary import boundary_of
from .boxes import Bypass


class Bypassed(NamedTuple):
    """What one rule call was made instead of.

    owner  stands for it in the picture
    nodes  of a copy of the graph: a placeholder for each dy, and what the default builds
    twins  node of the copy -> the node of the graph that it is a copy of
    """

    owner: Bypass
    nodes: list[Node]
    twins: dict[Node, Node]


def bypassed_of(nodes: Iterable[Node]) -> list[Bypassed]:
    """One for each rule call that built any of these nodes, in order."""
    calls = dict.fromkeys(n.origin for n in nodes if isinstance(n.origin, RuleCall))
    copies: dict[Graph, tuple[Graph, dict[Node, Node]]] = {}
    defaults = []
    for call in calls:
        graph = call.site.graph
        assert graph is not None
        if graph not in copies:
            count = len(graph.nodes)
            copy = graph.copy()
            twins = dict(zip(copy.nodes[:count], graph.nodes[:count], strict=True))
            copies[graph] = copy, twins
        defaults.append(_default(call, *copies[graph]))
    return defaults


def _default(call: RuleCall, copy: Graph, twins: dict[Node, Node]) -> Bypassed:
    site: Node | Region
    if isinstance(call.site, Node):
        site = copy.nodes[call.site.index]
        inputs, outputs, around = site.inputs, site.outputs, enclosing(site.region)
    else:
        site = copy.regions[call.site.index]
        boundary = boundary_of(site)
        inputs, outputs, around = boundary.inputs, boundary.outputs, enclosing(site.parent)
    ys = [y for y in outputs if y.type.differentiable]
    xs = [x for x in dict.fromkeys(inputs) if x.type.differentiable]
    start, owner = len(copy.nodes), Bypass(call)
    try:
        with copy:
            dys = [placeholder_of(y.type) for y in ys]
            for dy in dys:  # whoever looks did not write them
                dy.node.position = None
            off: dict[Any, None] = dict.fromkeys((site, *around))
            gradients(ys, xs, grad_ys=dys, stop_gradients=xs, overrides=off)
    except Exception as error:  # rules of regions inside are called: they may raise anything
        owner = Bypass(call, f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
    built = copy.nodes[start:]
    graph = call.site.graph
    assert graph is not None
    for node in built:  # they say of the graph itself what they are derived from
        node.origin = _at_home(node.origin, graph, twins)
    return Bypassed(owner, built, twins)


def _at_home(
    origin: Node | RuleCall | None, graph: Graph, twins: dict[Node, Node]
) -> Node | RuleCall | None:
    """An origin in the copy as one in the graph."""
    if not isinstance(origin, RuleCall):
        return None if origin is None else twins.get(origin, origin)
    site = origin.site
    if isinstance(site, Node):
        return RuleCall(twins.get(site, site), origin.rule, origin.outer)
    inside = site.index < len(graph.regions)
    return RuleCall(graph.regions[site.index] if inside else site, origin.rule, origin.outer)
