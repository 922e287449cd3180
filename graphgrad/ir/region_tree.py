"""The tree of regions, as one call of `gradients` sees it.

There is always one: that of the marks, `MARKED`, or for a call that names groups of nodes one of
its own, with the groups put in. A group is no mark: nodes and marked regions do not know of it, and
calls that do not name it never see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..base.ancestry import OUTSIDE, Ancestry
from .node import Graph, Members, Node, Region, Tensor, ancestry_of, enclosing

Item = Node | Region


class RegionTree:
    """The tree of the marked regions.

    regions  the groups that are in it besides
    moved    the nodes and regions that lie directly in a group, with that. What has no region and
             is not among these lies in none
    """

    regions: Sequence[Region] = ()
    moved: Mapping[Item, Region] = {}

    def around(self, item: Item) -> Region | None:
        """The innermost region around a node or region."""
        return item.region if isinstance(item, Node) else item.parent

    def ancestry(self, region: Region | None) -> Ancestry:
        """Where a region stands in it."""
        return ancestry_of(region)

    def chain(self, region: Region | None) -> tuple[Region, ...]:
        """A region and those around it, outermost first."""
        return enclosing(region)

    def holds(self, region: Region, inside: Region | None) -> bool:
        """Whether `inside` is the region or lies in it."""
        return region.contains(inside)

    def between(self, view: Region | None, inside: Region) -> Iterable[Region]:
        """`inside` and the regions around it that are not around `view`, or it, outermost first."""
        if inside._parent is None and (view is None or view._parent is None):
            return () if inside is view else (inside,)
        return _between(ancestry_of(view), ancestry_of(inside))


def _between(there: Ancestry, inside: Ancestry) -> Iterator[Region]:
    start = inside.common(there).depth
    for depth in range(start + 1, inside.depth + 1):
        yield inside.up_to(depth).item


MARKED = RegionTree()
"""The tree of the marks."""


class NamedTree(RegionTree):
    """The tree of the marked regions with groups put in, for one call that names them.

    regions  what stands for the groups; the parent of each is what is around it in this call
    spans    graph -> where those that are in it lie (differentiate.steps)
    """

    __slots__ = ("_here", "_known", "_nesting", "moved", "regions", "spans")

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.moved: dict[Item, Region] = {}
        self.spans: dict[Graph, Any] = {}
        self._here: dict[Members, Region] = {}
        self._known: dict[Region | None, Ancestry] = {None: OUTSIDE}
        self._nesting = Region._nesting

    def put(self, region: Region, items: Iterable[Item]) -> None:
        """Put a group around nodes and marked regions; outer groups first."""
        assert region.group is not None
        self.regions.append(region)
        self._here[region.group] = region
        self.moved.update(dict.fromkeys(items, region))
        self._known = {None: OUTSIDE}

    def around(self, item: Item) -> Region | None:
        """The innermost region around a node or region."""
        if isinstance(item, Node):
            return self.moved.get(item, item.region)
        if item.group is None:
            return self.moved.get(item, item.parent)
        return self._here.get(item.group, item).parent

    def chain(self, region: Region | None) -> tuple[Region, ...]:
        """A region and those around it, outermost first."""
        return self.ancestry(region).chain()

    def holds(self, region: Region, inside: Region | None) -> bool:
        """Whether `inside` is the region or lies in it."""
        if inside is region:
            return True
        if inside is None:
            return False
        whole = self.ancestry(region)
        return whole.depth > 0 and self.ancestry(inside).lies_in(whole)

    def between(self, view: Region | None, inside: Region) -> Iterable[Region]:
        """`inside` and the regions around it that are not around `view`, or it, outermost first."""
        return _between(self.ancestry(view), self.ancestry(inside))

    def ancestry(self, region: Region | None) -> Ancestry:
        """Where a region stands in it.

        A group that another call named counts as far as this one names it too.
        """
        if self._nesting is not Region._nesting:  # a rule that runs in the call put marks
            self._nesting, self._known = Region._nesting, {None: OUTSIDE}
        known = self._known
        inner: list[Region] = []
        while region not in known:
            assert region is not None
            inner.append(region)
            region = self.around(region)
        ancestry = known[region]
        for each in reversed(inner):
            here = each if each.group is None else self._here.get(each.group)
            if here is not None:
                ancestry = known[here] = known.get(here) or Ancestry(here, ancestry)
            known[each] = ancestry
        return ancestry


def sites_at(t: Tensor) -> tuple[Region, ...]:
    """The sites of tensors that t stands in, the outermost first."""
    graph = t.node.graph
    return graph.sites.get(t, ()) if graph is not None and graph.sites else ()


def is_same(a: object, b: Region) -> bool:
    """Whether two regions are one and the same, or stand for one group."""
    return a is b or (b.group is not None and isinstance(a, Region) and a.group is b.group)
