"""Programs with fusions as single nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush
from types import MappingProxyType

from ..ir.node import Node, Tensor
from ..ir.program import Program, derive
from .fusion import Twins, fusions
from .loop_ir import Fused, Fusion, LoopOf
from .recompute import Cost, Recomputing, Unit


def fuse_loops(
    program: Program,
    loop_of: LoopOf,
    free: Callable[[Node], bool] = lambda node: False,
    least: int = 1,
    parts: tuple[int, int] | None = None,
    twins: Twins = MappingProxyType({}),
    cost: Cost | None = None,
) -> Program:
    """The program with its groups as Fused nodes; the very same one without any.

    loop_of, free, parts, twins: see `fusions`; free says it of a node. least: nodes that make a
    fusion. cost: of what loops may compute again; without it, they read whatever others computed.
    """
    copied = [n for n in program.nodes if free(n)]
    groups = [f for f in fusions(program, loop_of, copied, parts, twins) if len(f.nodes) >= least]
    made = gathered(program, groups, copied, cost=cost)
    return made if any(type(n.op) is Fused for n in made.nodes) else program


def gathered(
    program: Program,
    fusions: Sequence[Fusion],
    free: Iterable[Node] = (),
    kind: type[Fused] = Fused,
    cost: Cost | None = None,
) -> Program:
    """The program with each fusion as one node of a kind of Fused, in an order close to its own.

    No path leads out of a fusion and back. Fusions take copies of the free nodes that they read;
    one of a node that reads none stays that node.
    """
    return _Gathering(program, fusions, frozenset(free), kind, cost).run()


class _Gathering:
    def __init__(
        self,
        program: Program,
        fusions: Sequence[Fusion],
        free: frozenset[Node],
        kind: type[Fused],
        cost: Cost | None,
    ) -> None:
        self.program = program
        self.kind = kind
        self.given = frozenset(program.inputs)
        self.free = free
        self.place = {n: i for i, n in enumerate(program.nodes)}
        fused = {n for f in fusions for n in f.nodes}
        self.units = [self._unit(f) for f in fusions]
        needed = {t for u in self.units for t in u.inputs}
        needed.update(program.outputs, *[c.outputs for n in program.nodes for c in n.controls])
        for node in reversed(program.nodes):
            if node in fused or (node in free and needed.isdisjoint(node.outputs)):
                continue
            self.units.append(Unit([node], list(node.inputs), None))
            needed.update(node.inputs)
        # free nodes that others read or wait for come last: they are in units of their own
        self.unit_of = {n: i for i, u in enumerate(self.units) for n in u.nodes}
        if cost is not None:
            kept = self.given.union(program.outputs)
            sources = self.unit_of, self.place, kept, self.free
            self.units = Recomputing(self.units, *sources, cost).run()

    def run(self) -> Program:
        """The program of the units."""
        readers: dict[Tensor, set[int]] = {}
        for i, unit in enumerate(self.units):
            for t in unit.inputs:
                readers.setdefault(t, set()).add(i)
        wanted = set(self.program.outputs)
        new: dict[Tensor, Tensor] = {}
        order: dict[int, Node] = {}
        for i in _ordered([self._last(u) for u in self.units], self._feeds()):
            unit = self.units[i]
            if len(unit.nodes) == 1 or unit.space is None:
                node = unit.nodes[0]
                made = derive(node, node.op, tuple([new.get(t, t) for t in node.inputs]))
                pairs = zip(node.outputs, made.outputs, strict=True)
                new.update([(t, y) for t, y in pairs if t not in self.given])
            else:
                outputs = [
                    t
                    for n in unit.nodes
                    if n not in self.free and n not in unit.again
                    for t in n.outputs
                    if t in wanted or readers.get(t, {i}) != {i}
                ]
                op = self.kind(Program(unit.inputs, outputs, unit.nodes), unit.space)
                made = _fused_node(unit, op, new)
            made.controls = tuple(dict.fromkeys([order[w] for w in self._waits(unit)]))
            order[i] = made
        outputs = [new.get(t, t) for t in self.program.outputs]
        return Program(self.program.inputs, outputs, [*order.values()])

    def _unit(self, fusion: Fusion) -> Unit:
        """A fusion with the free nodes that it reads."""
        inside = set(fusion.nodes)
        stack = list(fusion.nodes)
        while stack:
            for t in stack.pop().inputs:
                if t not in self.given and t.node in self.free and t.node not in inside:
                    inside.add(t.node)
                    stack.append(t.node)
        nodes = sorted(inside, key=self.place.__getitem__)
        made = {t for n in nodes for t in n.outputs}
        read = dict.fromkeys(t for n in nodes for t in n.inputs)
        return Unit(nodes, [t for t in read if t not in made], fusion.space)

    def _waits(self, unit: Unit) -> list[int]:
        """Units that run before one although it reads nothing of them."""
        return [self.unit_of[c] for n in unit.nodes for c in n.controls]

    def _last(self, unit: Unit) -> int:
        return self.place[unit.nodes[-1]]

    def _feeds(self) -> list[set[int]]:
        """For each unit, the units that wait for it."""
        feeds: list[set[int]] = [set() for _ in self.units]
        for i, unit in enumerate(self.units):
            sources = {self.unit_of[t.node] for t in unit.inputs if t not in self.given}
            sources.update(self._waits(unit))
            for source in sources - {i}:
                feeds[source].add(i)
        return feeds


def _fused_node(unit: Unit, op: Fused, new: dict[Tensor, Tensor]) -> Node:
    made = derive(unit.nodes[-1], op, tuple([new.get(t, t) for t in unit.inputs]))
    new.update(zip(op.program.outputs, made.outputs, strict=True))
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
    assert len(order) == len(places), "a path leads out of a fusion and back"
    return order
