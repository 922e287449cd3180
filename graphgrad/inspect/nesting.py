"""Boxes inside boxes for large pictures: columns, name scopes, regions, rule calls, runs of nodes.

A name scope is a box of its own, outside the regions opened in it and inside those around it. What
was derived stands in the scopes of what it was derived from, so that both parts fold alike. Where
a box still holds very many nodes, runs of them become boxes: of the same forward nodes on both
sides.
"""

from __future__ import annotations

from typing import Any

from ..ir.node import Node, Region, RuleCall
from .view import Owner, View

__all__ = ["Nest", "Nested"]

RUNS_ABOVE = 2000
RUN_LIMIT = 500

Scope = tuple[str, ...]


class Nest:
    """One box.

    kind    "column", "scope", "region", "call" or "run"
    what    a column's number, a scope's name, a Region, a RuleCall, or a run's (first, last)
    parent  the place of the box around it in the list of boxes; -1 for a column
    """

    __slots__ = ("kind", "parent", "what")

    def __init__(self, kind: str, what: Any, parent: int) -> None:
        self.kind = kind
        self.what = what
        self.parent = parent


class Nested:
    """The boxes of a view, outer ones first, and the box that each node is directly in."""

    def __init__(self, view: View) -> None:
        self.boxes: list[Nest] = []
        self.box: dict[Node, int] = {}
        self._known: dict[tuple[int, str, Any], int] = {}
        self._scopes = _scopes(view)
        self._place(view)
        if len(view.nodes) > RUNS_ABOVE:
            self._split(view)

    def _place(self, view: View) -> None:
        shared = _shared(view, self._scopes)
        known: dict[Any, int] = {}
        for node in view.nodes:
            column, path, scope = view.column[node], view.path[node], self._scopes[node]
            found = known.get((column, path, scope))
            if found is None:
                found = known[column, path, scope] = self._chain(column, path, scope, shared)
            self.box[node] = found

    def _chain(
        self, column: int, path: tuple[Owner, ...], scope: Scope, shared: dict[Any, Scope]
    ) -> int:
        """The box for a column, a path and a scope, and those around it."""
        box, used = self._inside(-1, "column", column), 0
        for depth in range(len(path) - 1, -1, -1):
            around = shared[column, path[depth:]]
            for part in around[used:]:
                box = self._inside(box, "scope", part)
            used = len(around)
            box = self._inside(
                box, "region" if isinstance(path[depth], Region) else "call", path[depth]
            )
        for part in scope[used:]:
            box = self._inside(box, "scope", part)
        return box

    def _inside(self, parent: int, kind: str, what: Any) -> int:
        key = parent, kind, what
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.boxes)
            self.boxes.append(Nest(kind, what, parent))
        return found

    # --- runs ---------------------------------------------------------------------------------

    def _split(self, view: View) -> None:
        """Runs of 10, 100, 1000 ... nodes in boxes that hold more than RUN_LIMIT directly."""
        held: dict[int, list[Node]] = {}
        for node in view.nodes:
            held.setdefault(self.box[node], []).append(node)
        place = {n: i for i, n in enumerate(view.nodes)}
        for box, nodes in held.items():
            rank = {n: view.height[n] // 2 if n in view.height else place[n] for n in nodes}
            stack = [(box, nodes)]
            while stack:
                around, members = stack.pop()
                stack += self._runs(around, members, rank)

    def _runs(
        self, around: int, nodes: list[Node], rank: dict[Node, int]
    ) -> list[tuple[int, list[Node]]]:
        """Put nodes into runs inside a box; the runs, where they may have to be split again."""
        spread = [rank[n] for n in nodes]
        low, high = min(spread), max(spread)
        if len(nodes) <= RUN_LIMIT or low == high:
            return []
        size = 10 ** (len(str(high - low)) - 1)
        runs: dict[int, list[Node]] = {}
        for node in nodes:
            runs.setdefault(rank[node] // size, []).append(node)
        found = []
        for number, members in runs.items():
            box = self._inside(around, "run", (number * size, number * size + size - 1))
            self.box.update(dict.fromkeys(members, box))
            found.append((box, members))
        return found


def _scopes(view: View) -> dict[Node, Scope]:
    """The scope of what the user built; for derived nodes, that of what they were derived from."""
    parts: dict[str, Scope] = {}
    regions: dict[Region, Scope] = {}
    found: dict[Node, Scope] = {}

    def of(scope: str) -> Scope:
        known = parts.get(scope)
        if known is None:
            known = parts[scope] = tuple(p for p in scope.split("/") if p)
        return known

    for node in view.nodes:
        if node.origin is None:
            found[node] = of(node.scope)
            for owner in view.path[node]:
                if isinstance(owner, Region):
                    regions[owner] = _common(regions.get(owner, found[node]), found[node])
    for node in view.nodes:
        if node.origin is not None:
            site = _built_by_user(node)
            found[node] = of(site.scope) if isinstance(site, Node) else regions.get(site, ())
    return found


def _built_by_user(node: Node) -> Node | Region:
    step: Node | Region = node
    while (origin := step.origin) is not None:
        step = origin.site if isinstance(origin, RuleCall) else origin
    return step


def _shared(view: View, scopes: dict[Node, Scope]) -> dict[Any, Scope]:
    """(column, path) -> the scope that all nodes inside share, for each path and those around."""
    kinds = {(view.column[n], view.path[n], scopes[n]): None for n in view.nodes}
    found: dict[Any, Scope] = {}
    for column, path, scope in kinds:
        for depth in range(len(path)):
            key = column, path[depth:]
            found[key] = _common(found.get(key, scope), scope)
    return found


def _common(a: Scope, b: Scope) -> Scope:
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        count += 1
    return a[:count]
