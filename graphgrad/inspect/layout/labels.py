"""What stands on the items of a picture, as rows of plain text; each renderer escapes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...base.errors import counted
from ...ir.node import Node
from ..scene.operators import weight_words
from ..scene.overlay import number_text
from ..scene.scene import behind
from ..scene.view import View
from ..scene.wording import (
    Lines,
    about,
    kind_of,
    local_name,
    short_attrs,
    sites_on,
    stamp_name,
    value_of,
)
from .colours import DIFF
from .items import PictureItem

COMMON = 3


def _number_row(operand: str, constant: Node) -> str:
    """`arg 1 = 2.0`, `with 2.0`, `bias f32[64]`: a constant as it stands on what reads it."""
    if constant.outputs[0].type.shape:
        return weight_words(constant)
    value = value_of(constant)
    return f"{operand} = {value}" if operand.startswith("arg") else f"with {value}"


class Labels:
    """The words on nodes and collapsed boxes of one view."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.lines = Lines()
        self.results: dict[Node, list[str]] = {}
        for i, t in enumerate(view.results):
            self.results.setdefault(behind(t)[0].node, []).append(f"result {i}")
        self._derived = view.derived()
        self._stands_for = view.stands_for()

    def rows(self, item: PictureItem) -> list[str]:
        """The rows on an item, the first of them its name; a mark before it says what changed."""
        if item.node is None:
            return self._box_rows(item)
        node = item.node
        mark = DIFF[self.view.status.get(node, "")][0]
        rows = self._node_rows(node)
        rows[0] = f"{mark} {rows[0]}" if mark else rows[0]
        rows[1:1] = [_number_row(operand, constant) for operand, constant in item.numbers]
        rows += [f"read by {item.readers}"] if item.readers else []
        value = self.value(item)
        rows += [] if value is None else [number_text(value)]
        return [*rows, "FAILED"] if node in self.view.failed else rows

    def value(self, item: PictureItem) -> float | None:
        """The overlay's number for an item."""
        overlay = self.view.overlay
        if overlay is None:
            return None
        return overlay.of(self.nodes(item))

    def nodes(self, item: PictureItem) -> Sequence[Node]:
        """The nodes that an item stands for."""
        if item.node is not None:
            return (item.node,)
        assert item.box is not None
        return item.box.members()

    def status(self, item: PictureItem) -> str:
        """What a comparison says of an item: of a box, that of its nodes if they agree."""
        statuses = {self.view.status.get(n, "") for n in self.nodes(item)}
        return statuses.pop() if len(statuses) == 1 else "changed"

    def tooltip(self, item: PictureItem) -> list[str]:
        """Everything about an item."""
        if item.node is None:
            return self._box_rows(item, common=20)
        node = item.node
        rows = about(node, self.lines)
        made = self.view.made_by.get(node)
        rows += [f"made by the pass {made!r}"] if made else []
        grads = self.derived(node)
        if grads:
            rows.append(f"its gradient: {', '.join(n.name for n in grads[:8])}")
        rows += [self.view.reason] if node in self.view.failed and self.view.reason else []
        return rows

    def derived(self, node: Node) -> Sequence[Node]:
        """The nodes shown that are derived from a node."""
        return self._derived.get(node, ())

    def _node_rows(self, node: Node) -> list[str]:
        view, kind = self.view, kind_of(node)
        name, given = self._name(node), node._name is not None
        if kind == "constant":
            return [name, value_of(node)] if given else [value_of(node)]
        if node in view.bypassed and kind == "input":
            return ["dy"]
        rows = [name]
        if node in self._stands_for and not given:  # a body's placeholder, which has no name
            rows = [self._stands_for[node].removeprefix("= ")]
        if given and name.rpartition("/")[2] != node.type:
            rows.append(node.type)
        if node in self._stands_for and given:
            rows.append(self._stands_for[node])
        if kind == "op" and (attrs := short_attrs(node)):
            rows.append(attrs)
        if node.stamp is not None:
            rows.append(f'override "{stamp_name(node)}"')
        if sites := sites_on(node):
            rows.append(f"tensors {sites}")
        if why := self._why(node):
            rows.append(why)
        if node in self.results:
            rows.append(", ".join(self.results[node]))
        return rows

    def _box_rows(self, item: PictureItem, common: int = COMMON) -> list[str]:
        box = item.box
        assert box is not None
        status = self.view.status
        there = [n for n in box.members() if status.get(n) != "removed"]
        gone = box.size - len(there)
        lost = f", {gone} removed" if gone else ""
        counts = Counter(n.type for n in there)
        ops = [f"{op} x{n}" if n > 1 else op for op, n in counts.most_common(common)]
        more = ["..."] if len(counts) > common else []
        rows = [box.title, f"{counted(len(there), 'node')}{lost}", ", ".join([*ops, *more])]
        if self.view.is_operator(box):
            rows = [box.title, *self.view.operator_rows(box)]
            rows += [", ".join(r) for n in there if (r := self.results.get(n))]
        names = list(dict.fromkeys(map(self._name, item.reads)))
        rows += [f"reads {', '.join(names[:4])}{', ...' * (len(names) > 4)}"] if names else []
        value = self.value(item)
        rows += [] if value is None else [number_text(value)]
        failed = any(n in self.view.failed for n in self.nodes(item)) if self.view.failed else False
        return [*rows, "FAILED inside"] if failed else rows

    def _name(self, node: Node) -> str:
        if not self.view.scoped or node not in self.view.scope:
            return local_name(node) if self.view.scoped else node.name
        return self.view.local_name(node)

    def _why(self, node: Node) -> str:
        origin = node.origin
        if isinstance(origin, Node) and node not in self.view.bypassed:
            return f"grad of {self._name(origin)}"
        shared = node.position == self.view.one_line
        return "" if shared and origin is None else self.lines(node.position)
