"""Boxes in which very many things stand: runs of these become boxes of their own.

Runs are of 10, 100, 1000, ... places and begin at multiples of that, so that the parts of the
forward column have the parts with their gradients beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..ir.node import Node
from .boxes import Box, Part, Tree, mirrored

__all__: list[str] = []

CROWDED = 200
"""How many nodes and boxes may stand directly in a box."""


def divide(tree: Tree, order: Mapping[Node, int]) -> None:
    """Put what is in crowded boxes into parts, and those into smaller ones as far as it takes.

    order: node -> twice its place. A box has the place of its first node, or that of the box it
    mirrors. Things of one place stay together, however many they are.
    """
    boxes = [box for column in tree.columns for box in column.within()]
    twins = mirrored(tree.columns)
    places = _Places(boxes, order, twins)
    known: dict[tuple[int, int], Part] = {}
    sizes = {box: places.size(box) for box in boxes if _is_crowded(box)}
    stack = [(box, sizes.get(twins.get(box, box), size)) for box, size in sizes.items()]
    while stack:
        box, size = stack.pop()
        if not size or not _is_crowded(box):
            continue
        runs = places.runs(box, size)
        if len(runs) > 1:
            box.nodes, box.boxes = [], []
            for number, things in sorted(runs.items()):
                ends = number * size, (number + 1) * size - 1
                part = known.setdefault(ends, Part(*ends))
                inner = tree.inside(box, part, part)
                for thing in things:
                    tree.move(thing, inner)
            stack += [(inner, size // 10) for inner in box.boxes]
        else:
            stack.append((box, size // 10))


def _things(box: Box) -> list[Node | Box]:
    """What is directly inside."""
    return [*box.nodes, *box.boxes]


def _is_crowded(box: Box) -> bool:
    return len(box.nodes) + len(box.boxes) > CROWDED


class _Places:
    """Where nodes and boxes stand."""

    def __init__(
        self, boxes: Iterable[Box], order: Mapping[Node, int], twins: Mapping[Box, Box]
    ) -> None:
        self._of: dict[Node | Box, int] = {n: place // 2 for n, place in order.items()}
        for box in reversed(list(boxes)):
            self._of[box] = min(self._within(box), default=0)
        self._of |= {box: self._of[twin] for box, twin in twins.items()}

    def size(self, box: Box) -> int:
        """How many places a part of a box has, if there are to be at most about ten."""
        found = self._within(box)
        size: int = 10 ** (len(str(max(found) - min(found))) - 1)
        return size

    def runs(self, box: Box, size: int) -> dict[int, list[Node | Box]]:
        """Number of a run of so many places -> what of the box stands in it."""
        found: dict[int, list[Node | Box]] = {}
        for thing in _things(box):
            found.setdefault(self._of[thing] // size, []).append(thing)
        return found

    def _within(self, box: Box) -> list[int]:
        return [self._of[thing] for thing in _things(box)]
