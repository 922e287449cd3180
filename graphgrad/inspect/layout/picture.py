"""What is visible of a view: collapsed boxes are one item each, and edges between items merge.

Renderers draw this. A constant that a rule or a gradient made for itself is drawn anew for each
node that reads it: they share constants, and edges to one far away say nothing. So is a hub, an
input or variable that very many things read; a collapsed box names the hubs that are read in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.node import Node, Region, RuleCall
from ..scene.boxes import BodyMark, Box, Bypass, Mark
from ..scene.edges import Edge
from ..scene.operators import is_weight
from ..scene.scene import behind
from ..scene.view import View
from ..scene.wording import is_number, is_private, kind_of
from .items import Link, PictureItem
from .ordering import ordering_edges

__all__ = ["Picture"]

HUB = 8
"""How many items may read an input or variable before it is drawn beside each of them."""
COPY_LIMIT = 300
"""Items up to which copies of constants have ordering edges too, which cost layout a third more."""


class Picture:
    """A view as it is seen.

    view    what it is of
    items   in the order in which they are drawn
    inside  open box -> the items directly in it, collapsed boxes among them
    links   what is drawn between items
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self._closed: dict[Box, Box | None] = {}
        self.inside: dict[Box, list[PictureItem]] = {}
        self._of_box: dict[Box, PictureItem] = {}
        self._of_node: dict[Node, PictureItem] = {}
        self._count: dict[Node, int] = {}
        self._reader: dict[PictureItem, PictureItem] = {}
        self._open_boxes()
        self._numbers = self._plain_numbers()
        shared = self._shared_constants() | self._numbers
        self._add_nodes(shared)
        self.links = self._linked()
        self._add_unread(shared)
        self.items = [i for c in view.columns for b in c.within() for i in self.inside.get(b, ())]
        self._filled = self._boxes_with_items()
        self._set_levels()

    def is_open(self, box: Box) -> bool:
        """Whether the box is drawn around what is in it: not where that is drawn elsewhere."""
        return self._closed[box] is None and box in self._filled

    # --- items ----------------------------------------------------------------------------

    def _open_boxes(self) -> None:
        """For each box the outermost collapsed one that it is in or is."""
        for column in self.view.columns:
            for box in column.within():
                around = None if box.parent is None else self._closed[box.parent]
                if around is None and box in self.view.collapsed:
                    around = box
                    parent = box.parent
                    assert parent is not None
                    item = self._of_box[box] = PictureItem(box.id, None, box, parent)
                    self.inside[parent].append(item)
                self._closed[box] = around
                if around is None:
                    self.inside[box] = []

    def _boxes_with_items(self) -> set[Box]:
        boxes: set[Box] = set()
        for item in self.items:
            for box in item.inside.around():
                if box in boxes:
                    break
                boxes.add(box)
        return boxes

    def _shared_constants(self) -> set[Node]:
        """The constants that are drawn where they are read."""
        return {n for n in self.view.nodes if is_private(n) and n not in self.view.bypassed}

    def _plain_numbers(self) -> set[Node]:
        """Constants that are one number without a name, and weights: written on what reads them.

        But where more is to be said of them: in comparisons, of one that crosses a boundary, that
        failed or has a number of an overlay, and where a collapsed box elsewhere reads it.
        """
        view = self.view
        if view.status:
            return set()
        kept = {behind(t)[0].node for t in view.results} | set(view.failed)
        kept |= set(view.overlay.values) if view.overlay else set()
        read: set[Node] = set()
        for edge in view.edges:
            node = edge.source
            if not is_number(node) and not is_weight(node):
                continue
            read.add(node)
            closed = self._closed[view.box[edge.target]]
            elsewhere = closed is not None and closed is not self._closed[view.box[node]]
            elsewhere = elsewhere and is_number(node)
            crosses = edge.owner is not None or (elsewhere and not is_private(node))
            if crosses or edge.tensor is None or edge.target in view.bypassed:
                kept.add(node)
        return read - kept

    def _add_nodes(self, shared: set[Node]) -> None:
        view = self.view
        for node in view.nodes:
            closed = self._closed[view.box[node]]
            if node in shared:
                continue
            if closed is not None:
                self._of_node[node] = self._of_box[closed]
            else:
                item = self._of_node[node] = PictureItem(view.id[node], node, None, view.box[node])
                self.inside[item.inside].append(item)

    def _add_unread(self, shared: set[Node]) -> None:
        """Constants that are read nowhere stand where they were built."""
        for node in self.view.nodes:
            box = self.view.box[node]
            if node in shared and node not in self._count and self._closed[box] is None:
                self._copy(node, box, None)

    def _copy(self, node: Node, box: Box, reader: PictureItem | None) -> PictureItem:
        known = self._count[node] = self._count.get(node, -1) + 1
        name = self.view.id[node] + (f"_{known}" if known else "")
        item = PictureItem(name, node, None, box)
        self.inside[box].append(item)
        if reader is not None:
            self._reader[item] = reader
        return item

    # --- links ----------------------------------------------------------------------------

    def _linked(self) -> list[Link]:
        merged: dict[object, Link] = {}
        links: list[Link] = []
        view = self.view
        edges = view.edges
        if not view.saved:
            edges = [e for e in edges if e.kind not in ("saved", "residual")]
        self._find_hubs(edges)
        for edge in edges:
            target = self._of_node[edge.target]
            if edge.source in self._numbers:
                if target.box is None:
                    target.numbers.append((edge.operand, edge.source))
                elif is_weight(edge.source) and not view.is_operator(target.box):
                    target.reads[edge.source] = None
                self._count[edge.source] = 0
                continue
            source = self._source(edge, target)
            if source is None or source is target:
                continue
            if source.box is None and target.box is None:
                links.append(Link(source, target, edge))
                continue
            key = (source, target, edge.kind, edge.owner, edge.status)
            link = merged.get(key)
            if link is None:
                link = merged[key] = Link(source, target, edge)
                links.append(link)
            else:
                link.edges.append(edge)
        return links

    def _find_hubs(self, edges: Sequence[Edge]) -> None:
        """The inputs and variables that more than a few items read."""
        readers: dict[Node, set[PictureItem]] = {}
        for edge in edges:
            node = edge.source
            if kind_of(node) not in ("input", "variable") or node in self.view.bodies:
                continue
            if self._of_node[node].box is None:
                readers.setdefault(node, set()).add(self._of_node[edge.target])
        for node, items in readers.items():
            if len(items) > HUB:
                self._count[node] = 0  # copies are counted from the one that stands where it was
                self._of_node[node].readers = len(items)

    def _source(self, edge: Edge, target: PictureItem) -> PictureItem | None:
        """Where an edge begins; None where no line is drawn into the collapsed box that reads it:
        from a hub, a constant in it, or the parameter of an update.
        """
        node = edge.source
        item = self._of_node.get(node)
        if item is not None and item is not target:
            if item.readers and target.box is None:
                return self._copy(node, target.inside, target)
            if item.readers or _is_own_parameter(node, target):
                target.reads[node] = None
                return None
        if item is not None:
            return item
        if edge.owner is None:
            return None if target.box is not None else self._copy(node, target.inside, target)
        closed = self._closed[self.view.box[node]]  # it is of another box, and that is meant
        if closed is not None:
            return self._of_box[closed]
        return self._copy(node, self.view.box[node], target)

    # --- levels ---------------------------------------------------------------------------

    def _set_levels(self) -> None:
        """Nodes stand at their height, a collapsed box below all that is in it.

        A box of the backward part stands beside the box it mirrors.
        """
        order = self.view.order
        for item in self.items:
            if item.box is None:
                assert item.node is not None
                item.level = order[item.node]
            else:
                known = [order[n] for n in item.box.members()]
                item.level = min(known) if item.box.column == 1 else max(known)
        for box, twin in self.view.mirror.items():
            left, right = self._of_box.get(twin), self._of_box.get(box)
            if left is not None and right is not None:
                right.level = left.level
        for item, reader in self._reader.items():
            item.level = reader.level - (item.inside.column % 2 == 0)

    def pairs(self) -> list[list[PictureItem]]:
        """Items that stand side by side, from left to right."""
        groups: dict[PictureItem, list[PictureItem]] = {}
        for node, beside in self.view.pairs.items():
            left = self._of_node.get(node)
            for other in beside:
                right = self._of_node.get(other)
                if left is None or right is None:  # constants stand beside what reads them
                    continue
                if left.level == right.level and left.box is None and right.box is None:
                    groups.setdefault(left, [left]).append(right)
        for box, twin in self.view.mirror.items():
            left_item, right_item = self._of_box.get(twin), self._of_box.get(box)
            if left_item is not None and right_item is not None:
                groups.setdefault(left_item, [left_item]).append(right_item)
        return list(groups.values())

    def ordering(self) -> list[tuple[PictureItem, PictureItem]]:
        """Items of which the first is to stand above the second although nothing joins them."""
        many = len(self.items) > COPY_LIMIT
        held = [i for i in self.items if i not in self._reader] if many else self.items
        return ordering_edges(held, self.links)


def _is_own_parameter(node: Node, target: PictureItem) -> bool:
    """Whether a variable is read by the collapsed box of an update: of its own, that is."""
    around = target.box
    return around is not None and around.column > 1 and kind_of(node) == "variable"


def site_in(owner: Mark | None) -> Region | Node | None:
    """The region, or the stamped node, that an owner of a box or an edge is about."""
    if isinstance(owner, Bypass):
        owner = owner.call
    return owner.site if isinstance(owner, RuleCall | BodyMark) else owner
