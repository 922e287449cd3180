"""A group of nodes as one: `Fused` is an op whose program a backend may run as a single loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import accumulate, groupby
from typing import Any, NamedTuple

from ..ir.node import Node, Tensor
from ..ir.op import Op, Types
from ..ir.program import Program, derive
from ..ir.types import TensorType
from .groups import Loop, LoopOf, Together, grouped

__all__ = ["Fused", "Loop", "fuse_loops", "nodes_within"]


REDUCED = 32  # operands that a reduction counts for


class Fused(Op, interned=False):
    """The nodes of a program as one node. Its kernel in any array namespace runs them in order."""

    program: Program
    differentiable = False

    def infer(self, *types: TensorType) -> Types:
        """The types of what the group computes."""
        return tuple([t.type for t in self.program.outputs])

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        """The nodes one by one."""
        values: dict[Tensor, Any] = dict(zip(self.program.inputs, arrays, strict=True))
        for node in self.program.nodes:
            made = node.op.kernel(xp, *[values[t] for t in node.inputs])
            parts = made if len(node.outputs) > 1 else (made,)
            values.update(zip(node.outputs, parts, strict=True))
        found = tuple([values[t] for t in self.program.outputs])
        return found if len(found) > 1 else found[0]

    def __repr__(self) -> str:
        return f"Fused({', '.join(n.type for n in self.program.nodes)})"


def nodes_within(node: Node) -> Sequence[Node]:
    """The nodes that a node stands for: those that were fused, or itself."""
    if not isinstance(node.op, Fused):
        return (node,)
    found: list[Node] = []
    stack = [*reversed(node.op.program.nodes)]
    while stack:
        inner = stack.pop()
        if isinstance(inner.op, Fused):
            stack.extend(reversed(inner.op.program.nodes))
        else:
            found.append(inner)
    return found


def fuse_loops(
    program: Program,
    loop_of: LoopOf,
    free: Callable[[Node], bool] = lambda node: False,
    least: int = 1,
    parts: tuple[int, int] | None = None,
) -> Program:
    """The program with its groups as Fused nodes; the very same one without any.

    loop_of: how a node can run as a loop (see `grouped`). free: nodes without a cost, of which
    every group has its own copies. least: nodes that make a group. parts: (most, each): a group
    that reads more than `most` operands is divided into parts of about `each`; one that reduces
    counts as many, for what it adds up to is at hand all through the loop.
    """
    copied = [n for n in program.nodes if free(n)]
    groups = grouped(program, loop_of, copied)
    if parts is not None:
        divided = [_divided(group, loop_of, *parts) for group in groups]
        apart = _Apart(program, loop_of, copied)
        groups = [p for found in divided for p in (apart.all(found) if len(found) > 1 else found)]
    groups = [g for g in groups if len(g) >= least]
    found = gathered(program, groups, copied)
    return found if any(type(n.op) is Fused for n in found.nodes) else program


def _divided(group: list[Node], loop_of: LoopOf, most: int, each: int) -> list[list[Node]]:
    """A group, or its parts in their order."""
    read = list(accumulate(_operands(n, loop_of) for n in group))
    if read[-1] <= most:
        return [group]
    numbered = zip(group, read, strict=True)
    return [[n for n, _ in part] for _, part in groupby(numbered, lambda pair: pair[1] // each)]


def _operands(node: Node, loop_of: LoopOf) -> int:
    """How many operands a node counts for."""
    loop = loop_of(node)
    assert loop is not None
    return REDUCED if loop.row or loop.ends else len(node.inputs)


class _Apart:
    """Parts of a group that are groups themselves.

    In a part, nodes that go over rows alone may be connected with those that go over all elements
    by other parts only. Then nothing in it says whose rows they are, and they are a part of their
    own.
    """

    def __init__(self, program: Program, loop_of: LoopOf, free: Iterable[Node]) -> None:
        self.loop_of = loop_of
        self.given = frozenset(program.inputs)
        self.base: dict[Tensor, Tensor] = {}  # of what free nodes make
        for node in free:
            if node.inputs:
                base = self.base.get(node.inputs[0], node.inputs[0])
                self.base.update(dict.fromkeys(node.outputs, base))

    def all(self, parts: Iterable[list[Node]]) -> list[list[Node]]:
        """The parts, some of them as two."""
        return [found for part in parts for found in self._two(part) if found]

    def _two(self, part: list[Node]) -> tuple[list[Node], list[Node]]:
        """What is connected with nodes of the most axes, and the rest; each in order."""
        together = Together()
        inside = set(part)
        for node in part:
            for t in node.inputs:
                base = self.base.get(t, t)
                if base not in self.given and base.node in inside:
                    together.unite(base.node, node)
        axes = {n: self._axes(n) for n in part}
        most = max(axes.values())
        sets = together.sets(part)
        whole = {n for nodes in sets if any(axes[n] == most for n in nodes) for n in nodes}
        return [n for n in part if n in whole], [n for n in part if n not in whole]

    def _axes(self, node: Node) -> int:
        loop = self.loop_of(node)
        assert loop is not None
        return len(loop.shape)


def gathered(
    program: Program, groups: Sequence[Sequence[Node]], free: Iterable[Node] = ()
) -> Program:
    """The program with each group as one Fused node, in an order close to its own.

    Each group's nodes are in their order; no path leads out of a group and back. Groups take
    copies of the free nodes that they read; a group of one node that reads none stays that node.
    """
    return _Gathering(program, groups, frozenset(free)).run()


class _Unit(NamedTuple):
    """What runs at once: nodes in their order, and what they read of others."""

    nodes: list[Node]
    inputs: list[Tensor]


class _Gathering:
    def __init__(
        self, program: Program, groups: Sequence[Sequence[Node]], free: frozenset[Node]
    ) -> None:
        self.program = program
        self.given = frozenset(program.inputs)
        self.free = free
        self.place = {n: i for i, n in enumerate(program.nodes)}
        grouped = {n for g in groups for n in g}
        self.units = [self._unit(g) for g in groups]
        needed = {t for u in self.units for t in u.inputs}
        needed.update(program.outputs)
        for node in reversed(program.nodes):
            if node in grouped or (node in free and needed.isdisjoint(node.outputs)):
                continue
            self.units.append(_Unit([node], list(node.inputs)))
            needed.update(node.inputs)

    def run(self) -> Program:
        """The program of the units."""
        readers: dict[Tensor, set[int]] = {}
        for i, unit in enumerate(self.units):
            for t in unit.inputs:
                readers.setdefault(t, set()).add(i)
        wanted = set(self.program.outputs)
        new: dict[Tensor, Tensor] = {}
        order: list[Node] = []
        for i in _ordered([self._last(u) for u in self.units], self._feeds()):
            unit = self.units[i]
            if len(unit.nodes) == 1:
                node = unit.nodes[0]
                made = derive(node, node.op, tuple([new.get(t, t) for t in node.inputs]))
                new.update(zip(node.outputs, made.outputs, strict=True))
            else:
                outputs = [
                    t
                    for n in unit.nodes
                    if n not in self.free
                    for t in n.outputs
                    if t in wanted or readers.get(t, {i}) != {i}
                ]
                made = _fused_node(unit, outputs, new)
            order.append(made)
        outputs = [t if t in self.given else new.get(t, t) for t in self.program.outputs]
        return Program(self.program.inputs, outputs, order)

    def _unit(self, group: Sequence[Node]) -> _Unit:
        """A group with the free nodes that it reads."""
        inside = set(group)
        stack = list(group)
        while stack:
            for t in stack.pop().inputs:
                if t not in self.given and t.node in self.free and t.node not in inside:
                    inside.add(t.node)
                    stack.append(t.node)
        nodes = sorted(inside, key=self.place.__getitem__)
        made = {t for n in nodes for t in n.outputs}
        read = dict.fromkeys(t for n in nodes for t in n.inputs)
        return _Unit(nodes, [t for t in read if t not in made])

    def _last(self, unit: _Unit) -> int:
        return self.place[unit.nodes[-1]]

    def _feeds(self) -> list[set[int]]:
        """For each unit, the units that wait for it."""
        unit_of = {
            n: i
            for i, u in enumerate(self.units)
            for n in u.nodes
            if len(u.nodes) == 1 or n not in self.free
        }
        feeds: list[set[int]] = [set() for _ in self.units]
        for i, unit in enumerate(self.units):
            sources = {unit_of[t.node] for t in unit.inputs if t not in self.given}
            sources.update(unit_of[c] for n in unit.nodes for c in n.controls)
            for source in sources - {i}:
                feeds[source].add(i)
        return feeds


def _fused_node(unit: _Unit, outputs: list[Tensor], new: dict[Tensor, Tensor]) -> Node:
    op = Fused(Program(unit.inputs, outputs, unit.nodes))
    made = derive(unit.nodes[-1], op, tuple([new.get(t, t) for t in unit.inputs]))
    new.update(zip(outputs, made.outputs, strict=True))
    return made


def _ordered(places: Sequence[int], feeds: Sequence[set[int]]) -> list[int]:
    """Units in an order in which they can run: that of their places, where possible."""
    waits = [0] * len(places)
    for readers in feeds:
        for reader in readers:
            waits[reader] += 1
    ready = [(place, i) for i, place in enumerate(places) if not waits[i]]
    heapify(ready)
    order = []
    while ready:
        _, i = heappop(ready)
        order.append(i)
        for reader in feeds[i]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, (places[reader], reader))
    assert len(order) == len(places), "a path leads out of a group and back"
    return order
