"""What a gradient built once more of a step: it has the marks of that step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base.errors import RegionError
from ..base.tree import tree_map
from ..ir.context import bodies_around
from ..ir.graph import Graph
from ..ir.node import Node, Region
from .index import bodies_of, has_gradient
from .select import Group, Target

Rebuilt = Mapping[Node | Region, Sequence[Any]]


def rebuilt_in(graph: Graph) -> Rebuilt:
    """What was built of each step, in order: in bodies of control flow, and around one, too."""
    rebuilt: dict[Node | Region, list[Any]] = {}
    *_, outermost = bodies_around(graph)
    for body in bodies_of(outermost):
        for step, first in body.again.items():
            rebuilt.setdefault(first, []).append(step)
    return rebuilt


class Twin:
    """What was built once more of a target of a mark, and what stands there for its nodes."""

    def __init__(self, target: Target, nodes: Mapping[Node, Node]) -> None:
        self.target = target
        self._nodes = nodes

    def outputs(self, tree: Any) -> Any:
        """What stands for tensors that are made inside."""
        pairs = self._nodes.items()
        made = {t: new for n, twin in pairs for t, new in zip(n.outputs, twin.outputs, strict=True)}
        return tree_map(lambda t: made.get(t, t), tree)

    def inputs(self, tree: Any) -> Any:
        """What is read there in the place of tensors from outside."""
        pairs = self._nodes.items()
        read = {t: new for n, twin in pairs for t, new in zip(n.inputs, twin.inputs, strict=True)}
        return tree_map(lambda t: read.get(t, t), tree)


def twins_of(target: Target, rebuilt: Rebuilt) -> list[Twin]:
    """What was built once more of a node, region or group; RegionError for a group in part."""
    if not isinstance(target, Group):
        return [Twin(step, {}) for step in rebuilt.get(target, ())]
    nodes = [n for n in target.nodes if n in rebuilt or has_gradient(n)]
    counts = {len(rebuilt.get(n, ())): n for n in nodes}
    if len(counts) > 1:
        raise RegionError(
            f"{target!r} was recomputed in part in derivatives that were taken: "
            f"{counts[min(counts)].name} {min(counts)} times, {counts[max(counts)].name} "
            f"{max(counts)} times. Mark it before a gradient is taken."
        )
    twins = []
    for made in zip(*(rebuilt.get(n, ()) for n in nodes), strict=True):
        twins.append(Twin(Group(made, target.of), dict(zip(nodes, made, strict=True))))
    return twins
