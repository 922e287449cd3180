"""Selections of selections: both, either, the rest, regrouped, with derived nodes."""

from __future__ import annotations

from typing import Any

from ...ir.graph import Graph
from ..index import has_gradient
from .targets import Group, Kind, Target, as_group, covered, nodes_of, pool


class Both(Kind):
    """What the left one selects, as far as the right one selects it too."""

    def __init__(self, left: Kind, right: Kind) -> None:
        self.left = left
        self.right = right
        self.parts = (left, right)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        among = set(self.right._find(graph, derived))
        also = covered(among)
        targets: list[Target] = []
        for target in self.left._find(graph, derived):
            if isinstance(target, Group):
                kept = [n for n in target.nodes if n in also]
                targets += [Group(kept, self)] if kept else []
            elif target in among or all(n in also for n in nodes_of(target) if has_gradient(n)):
                targets.append(target)
        return targets

    def _hint(self, graph: Graph) -> str:
        for part in (self.left, self.right):
            if not part._find(graph, False):
                return f"{part!r} alone selects nothing. {part._hint(graph)}".rstrip()
        left, right = (len(covered(p._find(graph, False))) for p in (self.left, self.right))
        return (
            f"{self.left!r} covers {left} nodes and {self.right!r} covers {right}; no site of the "
            "first lies in the second."
        )

    def __repr__(self) -> str:
        return f"({self.left!r} & {self.right!r})"


class Either(Kind):
    """What either selects; each target once."""

    def __init__(self, left: Kind, right: Kind) -> None:
        self.left = left
        self.right = right
        self.parts = (left, right)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        targets: dict[Any, Target] = {}
        for target in (*self.left._find(graph, derived), *self.right._find(graph, derived)):
            targets.setdefault(target.nodes if isinstance(target, Group) else target, target)
        return list(targets.values())

    def _hint(self, graph: Graph) -> str:
        return "\n".join(filter(None, (self.left._hint(graph), self.right._hint(graph))))

    def __repr__(self) -> str:
        return f"({self.left!r} | {self.right!r})"


class Rest(Kind):
    """The nodes that are not selected."""

    def __init__(self, inner: Kind) -> None:
        self.inner = inner
        self.parts = (inner,)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        out = covered(self.inner._find(graph, derived))
        return [n for n in pool(graph, derived) if n not in out]

    def _hint(self, graph: Graph) -> str:
        return f"{self.inner!r} selects every node that has inputs."

    def __repr__(self) -> str:
        return f"~{self.inner!r}"


class Regrouped(Kind):
    """The same nodes, each a site of its own, or all one group."""

    def __init__(self, inner: Kind, *, together: bool, shown: str = "") -> None:
        self.inner = inner
        self.parts = (inner,)
        self.is_together = together
        self.shown = shown

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        targets = self.inner._find(graph, derived)
        if self.is_together:
            return as_group(covered(targets), self, graph)
        parts: dict[Target, None] = {}
        for target in targets:
            parts.update(
                (t, None) for t in (target.nodes if isinstance(target, Group) else (target,))
            )
        return list(parts)

    def _hint(self, graph: Graph) -> str:
        return self.inner._hint(graph)

    def __repr__(self) -> str:
        return self.shown or f"{self.inner!r}.{'together' if self.is_together else 'each'}()"


class WithDerived(Kind):
    """The same among all nodes."""

    def __init__(self, inner: Kind) -> None:
        self.inner = inner
        self.parts = (inner,)

    def _find(self, graph: Graph, derived: bool) -> list[Target]:
        return self.inner._find(graph, True)

    def _hint(self, graph: Graph) -> str:
        return self.inner._hint(graph)

    def __repr__(self) -> str:
        return f"{self.inner!r}.backward()"
