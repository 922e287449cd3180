"""The mirror: how far down nodes stand, so that a gradient stands beside its forward node."""

from __future__ import annotations

from ...ir.node import Node, Region
from ...regions.boundary import boundary_of
from .scene import Scene


def heights_of(scene: Scene) -> dict[Node, int]:
    """A number for each node of columns 0 and 1: what stands higher has a smaller one.

    What reads nothing stands just above its first reader. A gradient stands no lower than its
    forward node, and than what it reads.
    """
    place = {n: i for i, n in enumerate(scene.nodes)}
    first: dict[Node, int] = {}
    for node in scene.nodes:
        if scene.column[node] == 0:
            for t, _ in scene.reads(node):
                first.setdefault(t.node, place[node])
    height: dict[Node, int] = {}
    for node in scene.nodes:
        if scene.column[node] == 0:
            above = first.get(node) if not node.inputs else None
            height[node] = 2 * place[node] if above is None else 2 * above - 1
    for node in scene.nodes:
        if scene.column[node] == 1:
            beside = [t.node for t, _ in scene.reads(node) if scene.column.get(t.node) == 1]
            own = _beside(node, scene, place, height)
            height[node] = min([own, *(height[n] for n in beside)])
    return height


def _beside(node: Node, scene: Scene, place: dict[Node, int], height: dict[Node, int]) -> int:
    """The height of a gradient's forward node; a region's rule: just above its last node."""
    site = scene.site(node)
    if site is None:
        return 2 * place[node]
    if isinstance(site, Region):
        members = [] if site.open else boundary_of(site).members
        last = next((m for m in reversed(members) if m in place), None)
        return 2 * place[node] if last is None else 2 * place[last] - 1
    return height.get(site, 2 * place[node])


def pairs_of(scene: Scene, height: dict[Node, int]) -> dict[Node, list[Node]]:
    """Beside a forward node: its gradients of the same height, of these the last ones."""
    mirrored = [n for n in scene.nodes if scene.column[n] == 1]
    read = {(t.node, height[n]) for n in mirrored for t, _ in scene.reads(n)}
    pairs: dict[Node, list[Node]] = {}
    for node in mirrored:
        site = scene.site(node)
        if not isinstance(site, Node) or scene.column.get(site) != 0:
            continue
        if height[node] == height[site] and (node, height[node]) not in read:
            pairs.setdefault(site, []).append(node)
    return pairs
