"""Values that a later loop computes again instead of reading them.

    h, u, s, d = gelu(z) and what its gradient reads      u, s and d are written here,
    dz = f(dy, u, s, d)                                    and read here; or u alone, of which this
                                                           loop computes s and d again

Only arrays that no cache keeps from one loop to the next, of what the later loop reads anyway: so
no more memory is held.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..ir.node import Node, Tensor
from ..ir.strided import Lengths
from ..ir.types import elements, lengths
from .loop_ir import Space

LARGE = 1 << 19  # bytes of an array from which on it is not expected in a cache
MOST = 40  # instructions for a vector in the time that writing and reading one takes
Cost = Callable[[Node], int]
"""Roughly how many instructions a node takes for a vector of elements."""


class Unit(NamedTuple):
    """What runs at once: nodes in their order, what they read of others, and the loop, if any.

    again: those of the nodes that an earlier unit computes, too.
    """

    nodes: list[Node]
    inputs: list[Tensor]
    space: Space | None
    again: frozenset[Node] = frozenset()


class Recomputing:
    """Units of a program, of which later ones compute again what pays.

    unit_of  node -> the unit that computes it first, by number
    place    node -> where it stands in the program
    kept     inputs and outputs of the program
    free     nodes of which every unit has its own copies
    """

    def __init__(
        self,
        units: Sequence[Unit],
        unit_of: Mapping[Node, int],
        place: Mapping[Node, int],
        kept: frozenset[Tensor],
        free: frozenset[Node],
        cost: Cost,
    ) -> None:
        self.units, self.unit_of, self.place = list(units), unit_of, place
        self.kept, self.free, self.cost = kept, free, cost
        self.readers: dict[Tensor, set[int]] = {}
        for i, unit in enumerate(units):
            for t in unit.inputs:
                self.readers.setdefault(t, set()).add(i)

    def run(self) -> list[Unit]:
        """The units."""
        for i, unit in enumerate(self.units):
            read = [t for t in unit.inputs if self._is_candidate(t, i)]
            for t in sorted(read, key=lambda t: self.place[t.node]):
                self._consider(t, i)
        return self.units

    def _is_candidate(self, t: Tensor, reader: int) -> bool:
        """Whether t is a large array that another loop computes for this one, but not only it."""
        if t in self.kept or self.readers[t] != {reader} or _bytes(t) < LARGE:
            return False
        unit, maker = self.units[reader], self.unit_of[t.node]
        made = self.units[maker]
        if unit.space is None or made.space is None:
            return False
        if not _fills(t, unit.space.shape, made.space.shape):
            return False
        if not all(self._reads_elements(n) for n in unit.nodes if any(x is t for x in n.inputs)):
            return False
        others = [
            y
            for n in made.nodes
            if n not in self.free and n not in made.again
            for y in n.outputs
            if y is not t
        ]
        return any(y in self.kept or self.readers.get(y, set()) - {maker} for y in others)

    def _reads_elements(self, node: Node) -> bool:
        """Whether a node reads one element after the other."""
        op = node.op
        return node not in self.free and (op.elementwise or op.traits.reduction is not None)

    def _consider(self, t: Tensor, reader: int) -> None:
        """Let the reader compute t, if that pays."""
        unit, made = self.units[reader], self.units[self.unit_of[t.node]]
        assert unit.space is not None
        inside = set(unit.nodes)
        there = {y for n in inside for y in n.outputs}.union(unit.inputs) - {t}
        nodes = self._computed(t, set(made.inputs), there, unit.space.shape)
        if nodes is None or sum(self.cost(n) for n in nodes - self.free) > MOST:
            return
        self.units[reader] = Unit(
            sorted(inside | nodes, key=self.place.__getitem__),
            [x for x in unit.inputs if x is not t],
            unit.space,
            unit.again | (nodes - inside),
        )
        self.readers[t] = set()

    def _computed(
        self, t: Tensor, given: set[Tensor], there: set[Tensor], shape: Lengths
    ) -> set[Node] | None:
        """The nodes that compute t, of what is there.

        None where they need more that is given, or where not all are element-wise, over all
        elements.
        """
        nodes, stack = set[Node](), [t]
        while stack:
            x = stack.pop()
            if x in there:
                continue
            if x in given or not (
                x.node in self.free or (x.node.op.elementwise and _fills(x, shape))
            ):
                return None
            nodes.add(x.node)
            stack += x.node.inputs
        return nodes


def _fills(t: Tensor, *shapes: Lengths) -> bool:
    """Whether a tensor has one number for each element of loops over these shapes."""
    shape = tuple([d for d in lengths(t.type) if d != 1])
    return all(shape == other for other in shapes)


def _bytes(t: Tensor) -> int:
    return elements(t.type) * t.dtype.itemsize if t.type.static else 0
