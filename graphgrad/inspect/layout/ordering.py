"""Ordering edges: lines that are not drawn, and keep boxes from overlapping in height.

Boxes that do not overlap in height can stand below each other. What reads nothing of its column is
held by nothing on one side: it goes to the inner side of what comes into its box, which is below it
in the user's part and above it in the mirrored one. All of it is within one column: a line from one
to another would pull the columns past each other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..scene.boxes import Box
from .items import Link, PictureItem

Ordered = tuple[PictureItem, PictureItem]


def ordering_edges(items: Sequence[PictureItem], links: Sequence[Link]) -> list[Ordered]:
    """Pairs of items of which the first is to stand above the second; its level says so too."""
    return [*_Ordering(items, links).found(), *_below_each_other(items)]


def _below_each_other(items: Sequence[PictureItem]) -> Iterator[Ordered]:
    """Collapsed boxes of what the user built from gradients: nothing else would order them."""
    beside: dict[Box, list[PictureItem]] = {}
    for item in items:
        if item.box is not None and item.box.column > 1 and item.box.kind == "scope":
            beside.setdefault(item.inside, []).append(item)
    for group in beside.values():
        yield from pairwise(sorted(group, key=_level))


class _Ordering:
    """What is known of the items of a picture.

    comes_in  box -> what is read in it of what is outside, in the same column; by level
    alone     box of column 1 -> what is in it that nothing of the column is joined to; by level
    """

    def __init__(self, items: Sequence[PictureItem], links: Sequence[Link]) -> None:
        self.comes_in: dict[Box, list[PictureItem]] = {}
        self.alone: dict[Box, list[PictureItem]] = {}
        reading: set[PictureItem] = set()
        read: set[PictureItem] = set()
        for link in links:
            source, target = link.source, link.target
            if link.edge.kind == "loop":  # it leads back up
                continue
            if source.inside.column == target.inside.column < 2:
                reading.add(target)
                read.add(source)
                for box in _entered(source.inside, target.inside):
                    self.comes_in.setdefault(box, []).append(source)
        self.free = [i for i in items if i.node is not None and i not in reading]
        for item in self.free:
            if item.inside.column == 1 and item not in read:
                for box in item.inside.around():
                    self.alone.setdefault(box, []).append(item)
        for group in (*self.comes_in.values(), *self.alone.values()):
            group.sort(key=_level)

    def found(self) -> list[Ordered]:
        return [pair for item in self.free for pair in self._of(item)]

    def _of(self, item: PictureItem) -> Iterator[Ordered]:
        """To the nearest of what comes into the innermost box that anything comes into.

        In column 1 also to what stands alone in the box that this comes from.
        """
        box = next((b for b in item.inside.around() if b in self.comes_in), None)
        if box is None:
            return
        sources = self.comes_in[box]
        if box.column == 0:
            place = bisect_left(sources, item.level, key=_level)
            if place:
                yield sources[place - 1], item
            return
        place = bisect_right(sources, item.level, key=_level)
        if place == len(sources):
            return
        yield item, sources[place]
        for below in list(_entered(item.inside, sources[place].inside))[-1:]:
            alone = self.alone.get(below, [])
            place = bisect_right(alone, item.level, key=_level)
            if place < len(alone):
                yield item, alone[place]


def _entered(source: Box, target: Box) -> Iterator[Box]:
    """The boxes around the one box that are not around the other, innermost first."""
    while source is not target:
        if target.depth >= source.depth:
            yield target
            assert target.parent is not None
            target = target.parent
        else:
            assert source.parent is not None
            source = source.parent


def _level(item: PictureItem) -> int:
    return item.level
