"""Which nodes of several pictures are the same: by identity, then by name, then by provenance.

Never by isomorphism: a node that changed its inputs is still that node, and two equal nodes are
two. Each node gets a number that its counterparts in the other pictures have too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.node import Node, Region, RuleCall
from .view import View

__all__ = ["Matches"]

Signature = Callable[[Node], Any]


class Matches:
    """key: node -> number; the same for nodes of different views that stand for each other."""

    def __init__(self, views: Sequence[View]) -> None:
        self.key: dict[Node, int] = {}
        self._count = 0
        before: list[Node] = []
        for view in views:
            self._add(view.nodes, before)
            before = view.nodes

    def of(self, nodes: Sequence[Node], among: Sequence[Node]) -> dict[Node, Node]:
        """Nodes that no view has, and what stands for them among nodes that have a number."""
        fresh = [n for n in nodes if n not in self.key]
        found: dict[Node, Node] = {}
        for signature in (_by_name, self._by_provenance):
            _pair([n for n in fresh if n not in found], among, signature, found)
        return found

    def _add(self, nodes: Sequence[Node], before: Sequence[Node]) -> None:
        here = set(nodes)
        fresh = [n for n in nodes if n not in self.key]
        left = [n for n in before if n not in here]
        found: dict[Node, Node] = {}
        for signature in (_by_name, _by_line, self._by_provenance) if left else ():
            taken = set(found.values())
            waiting = [n for n in fresh if n not in found]
            _pair(waiting, [n for n in left if n not in taken], signature, found)
            self.key.update((n, self.key[m]) for n, m in found.items())
        for node in fresh:
            if node not in self.key:
                self.key[node] = self._count
                self._count += 1

    def _by_provenance(self, node: Node) -> Any:
        """What a node was derived from, by which rule, and its op type. None for the user's."""
        origin = node.origin
        if origin is None:
            return None
        site, rule = (origin.site, origin.rule) if isinstance(origin, RuleCall) else (origin, "")
        if isinstance(site, Region):
            return ("region", site.name, site.index, rule, node.type)
        return ("node", self.key.get(site, site.name), rule, node.type)


def _by_name(node: Node) -> Any:
    """The name, op type, and the name of what it was derived from: passes keep these."""
    origin = node.origin
    site = origin.site if isinstance(origin, RuleCall) else origin
    return node.name, node.type, None if site is None else site.name


def _by_line(node: Node) -> Any:
    """The user's line, scope and op type; for nodes that were built anew from the same program."""
    if node.origin is not None:
        return None
    return node.scope, node.type, node.where


def _pair(
    nodes: Sequence[Node], others: Sequence[Node], signature: Signature, found: dict[Node, Node]
) -> None:
    """Pair nodes with equal signatures, the first with the first; what is left over stays alone."""
    waiting: dict[Any, list[Node]] = {}
    for other in reversed(others):
        key = signature(other)
        if key is not None:
            waiting.setdefault(key, []).append(other)
    for node in nodes:
        key = signature(node)
        if key is not None and (same := waiting.get(key)):
            found[node] = same.pop()
