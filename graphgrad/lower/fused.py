"""A group of nodes as one: `Fused` is an op whose program a backend may run as a single loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from ..ir.node import Node, Tensor
from ..ir.op import Op, Types
from ..ir.program import Program, derive
from ..ir.types import TensorType
from .groups import grouped

__all__ = ["Fused", "fuse", "nodes_within"]


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


def fuse(
    program: Program,
    fusible: Callable[[Node], bool],
    reducible: Callable[[Node], bool],
    least: int = 2,
) -> Program:
    """The program with its element-wise groups as Fused nodes; the very same one without any.

    fusible, reducible: what the backend can take into a group, element by element or as a
    reduction of what the group computes (see `grouped`). least: nodes that make a group.
    """
    groups = [g for g in grouped(program, fusible, reducible) if len(g) >= least]
    return gathered(program, groups) if groups else program


def gathered(program: Program, groups: Sequence[Sequence[Node]]) -> Program:
    """The program with each group as one Fused node, in an order close to its own.

    Each group's nodes are in their order; no path leads out of a group and back.
    """
    units = _units(program, groups)
    readers = _readers(program)
    wanted = set(program.outputs)
    new: dict[Tensor, Tensor] = {}
    order: list[Node] = []
    for unit in units:
        if len(unit) == 1:
            node = unit[0]
            made = derive(node, node.op, tuple([new.get(t, t) for t in node.inputs]))
            new.update(zip(node.outputs, made.outputs, strict=True))
        else:
            made = _fused_node(unit, readers, wanted, new)
        order.append(made)
    given = set(program.inputs)
    outputs = [t if t in given else new.get(t, t) for t in program.outputs]
    return Program(program.inputs, outputs, order)


def _fused_node(
    unit: Sequence[Node],
    readers: dict[Tensor, list[Node]],
    wanted: set[Tensor],
    new: dict[Tensor, Tensor],
) -> Node:
    inside = set(unit)
    made_here = {t for n in unit for t in n.outputs}
    inputs = list(dict.fromkeys(t for n in unit for t in n.inputs if t not in made_here))
    outputs = [
        t
        for n in unit
        for t in n.outputs
        if t in wanted or any(r not in inside for r in readers.get(t, ()))
    ]
    op = Fused(Program(inputs, outputs, list(unit)))
    made = derive(unit[-1], op, tuple([new.get(t, t) for t in inputs]))
    new.update(zip(outputs, made.outputs, strict=True))
    return made


def _readers(program: Program) -> dict[Tensor, list[Node]]:
    readers: dict[Tensor, list[Node]] = {}
    for node in program.nodes:
        for t in node.inputs:
            readers.setdefault(t, []).append(node)
    return readers


def _units(program: Program, groups: Sequence[Sequence[Node]]) -> list[Sequence[Node]]:
    """Groups and single nodes in an order in which they can run: that of their last nodes, where
    possible."""
    place = {n: i for i, n in enumerate(program.nodes)}
    unit_of: dict[Node, int] = {}
    units: list[Sequence[Node]] = []
    for nodes in [*groups, *([n] for n in program.nodes)]:
        if nodes[0] not in unit_of or len(nodes) > 1:
            unit_of.update((n, len(units)) for n in nodes)
            units.append(nodes)
    given = set(program.inputs)
    waits = [0] * len(units)
    feeds: list[set[int]] = [set() for _ in units]
    for node in program.nodes:
        here = unit_of[node]
        sources = {unit_of[t.node] for t in node.inputs if t not in given}
        sources.update(unit_of[c] for c in node.controls)
        for source in sources - {here}:
            if here not in feeds[source]:
                feeds[source].add(here)
                waits[here] += 1
    ready: list[tuple[int, int]] = []
    for i, unit in enumerate(units):
        if not waits[i]:
            heappush(ready, (place[unit[-1]], i))
    order: list[Sequence[Node]] = []
    while ready:
        _, i = heappop(ready)
        order.append(units[i])
        for reader in feeds[i]:
            waits[reader] -= 1
            if not waits[reader]:
                heappush(ready, (place[units[reader][-1]], reader))
    assert len(order) == len(units), "a path leads out of a group and back"
    return order
