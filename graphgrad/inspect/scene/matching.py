"""Which nodes of two pictures are the same: by identity, then by name, line, and provenance.

Never by isomorphism: a node that changed its inputs is still that node, and two equal nodes are
two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...base.position import full
from ...ir.node import Node, Region, RuleCall, Tensor, enclosing
from .boxes import Owner
from .scene import behind
from .view import View

__all__: list[str] = []


class Matches:
    """Nodes of several pictures, each picture compared with the one before.

    key    node -> number; the same for nodes of different pictures that stand for each other
    marks  likewise for regions and rule calls
    """

    def __init__(self, views: Sequence[View]) -> None:
        self.key: dict[Node, int] = {}
        self.marks: dict[Owner, int] = {}
        count = 0
        before: list[Node] = []
        for view in views:
            fresh = [n for n in view.nodes if n not in self.key]
            twins = matched(before, view.nodes) if before and fresh else {}
            for node in fresh:
                if node in twins:
                    self.key[node] = self.key[twins[node]]
                else:
                    self.key[node] = count
                    count += 1
            self._match_marks([*view.regions, *view.calls], mark_twins(twins))
            before = view.nodes

    def mark(self, owner: Owner) -> int:
        """The number of a region or rule call; also of one whose rule built nothing shown."""
        return self.marks.setdefault(owner, len(self.marks))

    def _match_marks(self, owners: Sequence[Owner], twins: Mapping[Owner, Owner]) -> None:
        old = {b: self.marks[a] for a, b in twins.items() if a in self.marks}
        taken = {self.marks[owner] for owner in owners if owner in self.marks}
        for owner in owners:
            if owner not in self.marks:
                key = old.get(owner)
                self.marks[owner] = len(self.marks) if key is None or key in taken else key
                taken.add(self.marks[owner])

    def of(self, nodes: Sequence[Node]) -> dict[Node, Node]:
        """Of nodes that no picture has, what stands for them in one."""
        fresh = [n for n in nodes if n not in self.key]
        return matched(list(self.key), fresh) if fresh else {}


def matched(old: Sequence[Node], new: Sequence[Node]) -> dict[Node, Node]:
    """New node -> the same node among the old ones. Each old node is there once at most."""
    there = set(old)
    pairs = {n: n for n in new if n in there}
    _match(old, new, _given_names, pairs)
    if any(n.graph is None for n in (*old, *new)):
        _match(old, new, _kept_names, pairs)
    _match(old, new, _positions, pairs)
    _match(old, new, _readings(_built), pairs)
    order = 0  # once for each order of derivatives, equal nodes first, then equal ops
    while order < len(pairs):
        order = len(pairs)
        _match(old, new, _readings(_derivations), pairs)
        _match(old, new, _equal_derivations, pairs)
        _match(old, new, _derivations, pairs)
    return pairs


def mark_twins(pairs: Mapping[Node, Node]) -> dict[Owner, Owner]:
    """Region or rule call before -> the same after, one to one: those around matched nodes.

    pairs: new node -> old node.
    """
    twins: dict[Owner, Owner] = {}
    taken: set[Owner] = set()

    def match(a: Owner, b: Owner) -> None:
        if a not in twins and b not in taken:
            twins[a] = b
            taken.add(b)

    for new, old in pairs.items():
        if isinstance(old.origin, RuleCall) and isinstance(new.origin, RuleCall):
            match(old.origin, new.origin)
        for a, b in zip(reversed(enclosing(old.region)), reversed(enclosing(new.region))):
            if a.name == b.name:
                match(a, b)
    return {a: b for a, b in twins.items() if a is not b}


Keys = Callable[[Sequence[Node], Mapping[Node, Node]], Iterator[Any]]
"""keys(nodes, new node of each old one that has one): a key for each node; None: no match."""


def _match(old: Sequence[Node], new: Sequence[Node], keys: Keys, pairs: dict[Node, Node]) -> bool:
    """Match what is left by keys: the k-th of the one side with the k-th of the other."""
    new_of = {a: b for b, a in pairs.items()}
    left: dict[Any, deque[Node]] = {}
    for node, key in zip(old, keys(old, new_of), strict=True):
        if key is not None and node not in new_of:
            left.setdefault(key, deque()).append(node)
    before = len(pairs)
    for node, key in zip(new, keys(new, {b: b for b in pairs}), strict=True):
        if key is not None and node not in pairs and left.get(key):
            pairs[node] = left[key].popleft()
    return len(pairs) > before


def _given_names(nodes: Sequence[Node], new_of: Mapping[Node, Node]) -> Iterator[Any]:
    for node in nodes:
        yield node._name


def _kept_names(nodes: Sequence[Node], new_of: Mapping[Node, Node]) -> Iterator[Any]:
    """The name and op type, which what a pass made has from what it was made of."""
    for node in nodes:
        yield node.name, node.type


def _positions(nodes: Sequence[Node], new_of: Mapping[Node, Node]) -> Iterator[Any]:
    """The user's line, the scope and the op type."""
    for node in nodes:
        own = node.origin is None and node.position is not None and node._name is None
        yield (full(node.position), node.scope, node.type) if own else None


def _built(nodes: Sequence[Node], new_of: Mapping[Node, Node]) -> Iterator[Any]:
    """One key for what the user built of other nodes and gave no name."""
    for node in nodes:
        yield True if node.origin is None and node.inputs and node._name is None else None


def _readings(within: Keys) -> Keys:
    """The same op of the same things in the same scope, where another key is equal too.

    What is not a match is the same thing where it is equal: equal keys have one number in both
    graphs.
    """
    numbers: dict[Any, int] = {}

    def keys(nodes: Sequence[Node], new_of: Mapping[Node, Node]) -> Iterator[Any]:
        known: dict[Node, Node | int] = {}
        for node, other in zip(nodes, within(nodes, new_of), strict=True):
            reads = tuple((known.get(t.node, t.node), t.index) for t in reads_of(node))
            key = (node.op, node.scope, reads)
            known[node] = new_of[node] if node in new_of else numbers.setdefault(key, len(numbers))
            yield None if other is None else (other, key)

    return keys


def _derivations(nodes: Sequence[Node], new_of: Mapping[Node, Node]) -> Iterator[Any]:
    """What was differentiated, by which rule, and the op type."""
    for node in nodes:
        origin = node.origin
        if origin is None:
            yield None
        elif isinstance(origin, Node):
            yield new_of.get(origin, origin), node.type
        elif isinstance(origin.site, Region):
            yield _region_key(origin.site), origin.rule, node.type
        else:
            yield new_of.get(origin.site, origin.site), origin.rule, node.type


def _equal_derivations(nodes: Sequence[Node], new_of: Mapping[Node, Node]) -> Iterator[Any]:
    """The same, and the op with its attributes."""
    for node, key in zip(nodes, _derivations(nodes, new_of), strict=True):
        yield None if key is None else (key, node.op)


def _region_key(region: Region) -> Any:
    where = full(region.position)
    return region.name, where, region.index


def reads_of(node: Node) -> list[Tensor]:
    """The tensors that a node reads, those behind residuals."""
    return [behind(t)[0] for t in node.inputs]
