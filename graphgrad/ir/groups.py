"""The tree of regions as one call of `gradients` sees it: with the groups of nodes that it names.

A group is no mark: nodes and marked regions do not know of it, and calls that do not name it never
see it. A call that names groups carries a `Groups`, which says where in the tree they lie. Without
one (None) the tree is that of the marks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .node import Members, Node, Region, enclosing

if TYPE_CHECKING:
    from .graph import Graph

Item = Node | Region


class Groups:
    """Groups put into the tree of the marked regions, for one call.

    regions  what stands for them; the parent of each is what is around it in this call
    spans    graph -> where those that are in it lie (differentiate.steps)
    """

    __slots__ = ("_chains", "_here", "_moved", "regions", "spans")

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.spans: dict[Graph, Any] = {}
        self._moved: dict[Item, Region] = {}
        self._here: dict[Members, Region] = {}
        self._chains: dict[Region, tuple[Region, ...]] = {}

    def put(self, region: Region, items: Iterable[Item]) -> None:
        """Put a group around nodes and marked regions; outer groups first."""
        assert region.group is not None
        self.regions.append(region)
        self._here[region.group] = region
        self._moved.update(dict.fromkeys(items, region))

    def around(self, item: Item) -> Region | None:
        """The innermost region around a node or region."""
        if isinstance(item, Node):
            return self._moved.get(item, item.region)
        if item.group is None:
            return self._moved.get(item, item.parent)
        return self._here.get(item.group, item).parent

    def chain(self, region: Region | None) -> tuple[Region, ...]:
        """A region and those around it, outermost first.

        A group that another call named counts as far as this one names it too.
        """
        if region is None:
            return ()
        found = self._chains.get(region)
        if found is None:
            chain = []
            at: Region | None = region
            while at is not None:
                if at.group is not None:
                    here = self._here.get(at.group)
                    if here is None:
                        at = at.parent
                        continue
                    at = here
                chain.append(at)
                at = self.around(at)
            found = self._chains[region] = tuple(reversed(chain))
        return found


def around(item: Item, groups: Groups | None) -> Region | None:
    """The innermost region around a node or region."""
    if groups is not None:
        return groups.around(item)
    return item.region if isinstance(item, Node) else item.parent


def chain_of(region: Region | None, groups: Groups | None) -> tuple[Region, ...]:
    """A region and those around it, outermost first."""
    return enclosing(region) if groups is None else groups.chain(region)


def holds(region: Region, inside: Region | None, groups: Groups | None) -> bool:
    """Whether `inside` is the region or lies in it."""
    if groups is None:
        return region.contains(inside)
    whole, place = groups.chain(inside), len(groups.chain(region)) - 1
    return 0 <= place < len(whole) and whole[place] is groups.chain(region)[-1]


def is_same(a: object, b: Region) -> bool:
    """Whether two regions are one and the same, or stand for one group."""
    return a is b or (b.group is not None and isinstance(a, Region) and a.group is b.group)
