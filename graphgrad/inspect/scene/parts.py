"""Boxes in which very many things stand: runs of these become boxes of their own.

Runs are of 10, 100, 1000, ... places and begin at multiples of that, so that the parts of the
forward column have the parts with their gradients beside them. They are named by what is in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...ir.node import Node
from .boxes import Box, NameScope, Part, Tree, mirrored
from .wording import local_name, shortened

__all__: list[str] = []

CROWDED = 200
"""How many nodes and boxes may stand directly in a box."""
CROWDED_BOXES = 40
"""How many of these may be boxes: a row of steps is laid out in the square of their number."""


def divide(tree: Tree, order: Mapping[Node, int]) -> None:
    """Put what is in crowded boxes into parts, and those into smaller ones as far as it takes.

    order: node -> twice its place. A box has the place of its first node, or that of the box it
    mirrors. Things of one place stay together, however many they are.
    """
    boxes = [box for column in tree.columns for box in column.within()]
    twins = mirrored(tree.columns)
    places = _Places(boxes, order, twins)
    known: dict[tuple[Box, int, int], Part] = {}
    sizes = {box: places.size(box) for box in boxes if _is_crowded(box)}
    whole = [(box, twins.get(box, box)) for box in sizes]
    stack = [(box, sizes.get(twin, sizes[box]), twin) for box, twin in reversed(whole)]
    while stack:
        box, size, root = stack.pop()
        if not size or not _is_crowded(box):
            continue
        runs = places.runs(box, size)
        if len(runs) > 1:
            box.nodes, box.boxes = [], []
            for number, things in sorted(runs.items()):
                part = known.setdefault((root, number, size), Part(places.title(things)))
                inner = tree.inside(box, part, part)
                for thing in things:
                    tree.move(thing, inner)
            stack += [(inner, size // 10, root) for inner in box.boxes]
        else:
            stack.append((box, size // 10, root))


def _things(box: Box) -> list[Node | Box]:
    """What is directly inside."""
    return [*box.nodes, *box.boxes]


def _is_crowded(box: Box) -> bool:
    boxes = sum(not (isinstance(b.owner, NameScope) and b.owner.operator) for b in box.boxes)
    return boxes > CROWDED_BOXES or len(box.nodes) + len(box.boxes) > CROWDED


def _name(thing: Node | Box) -> str:
    return shortened(local_name(thing) if isinstance(thing, Node) else thing.title, 30)


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
        places = self._within(box)
        size: int = 10 ** (len(str(max(places) - min(places))) - 1)
        return size

    def runs(self, box: Box, size: int) -> dict[int, list[Node | Box]]:
        """Number of a run of so many places -> what of the box stands in it."""
        runs: dict[int, list[Node | Box]] = {}
        for thing in _things(box):
            runs.setdefault(self._of[thing] // size, []).append(thing)
        return runs

    def title(self, things: Sequence[Node | Box]) -> str:
        """`layer1 ... layer99`."""
        ordered = sorted(things, key=self._of.__getitem__)
        first, last = (_name(ordered[i]) for i in (0, -1))
        return first if first == last else f"{first} ... {last}"

    def _within(self, box: Box) -> list[int]:
        return [self._of[thing] for thing in _things(box)]
