"""A picture before anybody draws it: the nodes of a scene, in boxes and columns, with edges.

This is the one model behind DOT, SVG, text, Mermaid, TensorBoard and pages. Everything here is one
pass over the nodes.
"""

from __future__ import annotations

from typing import Any

from ...base.collector import collector_paused
from ...base.errors import did_you_mean
from ...ir.node import Node
from .boxes import Box, NameScope, Path, Tree, mirrored
from .collapse import collapsed_boxes, is_large
from .edges import Edge, edges_of
from .mirror import heights_of, pairs_of
from .operators import is_weight, weight_words
from .overlay import overlay_of
from .parts import divide
from .repeats import fold_repeats
from .scene import Options, Scene
from .unrolled import fold_steps
from .wording import is_private

__all__ = ["View", "view_of"]

SAVED_LIMIT = 300
Place = tuple[int, Path]


class View(Scene):
    """A plain description of what is shown, and where.

    id         node -> `n12`, unique in the view
    box        node -> the box it is directly in
    columns    the outermost boxes, from left to right
    scoped     whether name scopes are boxes
    mirror     box of column 1 -> the box of column 0 that it is the mirror image of
    edges      what is read, in order of the readers
    height     node of column 0 or 1 -> where it stands: what is drawn above has a smaller number
    order      node -> the same for all nodes, as far as columns can be compared
    pairs      forward node -> the gradient nodes that stand beside it
    collapsed  boxes that are shown as one node
    saved      whether edges from the forward part to the backward part are drawn
    overlay    the numbers to show, or None
    """

    def __init__(self, shown: Any, options: Options) -> None:
        super().__init__(shown, options)
        collapse = options.get("collapse", "auto")
        self.id = _ids(self)
        self.edges = edges_of(self)
        self.height = heights_of(self)
        self.pairs = pairs_of(self, self.height)
        self.order = {n: self.height.get(n, 2 * i) for i, n in enumerate(self.nodes)}
        self.scoped = options.get("scopes", True)
        scopes = self.scope if self.scoped else dict.fromkeys(self.nodes, ())
        count = sum(not is_weight(n) for n in self.nodes)
        tree = Tree(self.nodes, self.column, self.marks, scopes)
        for scope in tree.scopes():
            scope.operator = scope.path in self.operators
        for column in tree.columns:
            if self.updates and all(n in self.updates for n in column.members()):
                column.title = "updates"
        if is_large(collapse, count):
            fold_repeats(tree)
            fold_steps(tree, self.site, self.reads, self.one_line)
            divide(tree, self.order)
        tree.number()
        self.box, self.columns = tree.box, tree.columns
        self.mirror = mirrored(self.columns)
        self.collapsed = collapsed_boxes(self.columns, collapse, count, self.mirror)
        if collapse == "auto":
            self.collapsed |= {b for c in self.columns for b in c.within() if self.is_operator(b)}
        self.saved = _saved(options.get("saved_edges", "auto"), len(self.nodes))
        self.overlay = overlay_of(options.get("overlay"), self.nodes)

    def place(self, node: Node) -> Place:
        """What tells where a node is drawn: its column, and its path."""
        return self.column[node], self.path[node]

    def place_of_source(self, edge: Edge) -> Place:
        """Where the source of an edge is drawn: rules share constants, each box has its own."""
        node = edge.source
        if is_private(node) and edge.owner is None:
            node = edge.target
        return self.place(node)

    def is_operator(self, box: Box) -> bool:
        """Whether it holds one operator of a file, or the gradient of one."""
        return isinstance(box.owner, NameScope) and box.owner.operator

    def operator_rows(self, box: Box) -> list[str]:
        """What the box of an operator holds, in words: op types, then the weights read there."""
        nodes = [n for n in box.members() if not is_weight(n)]
        read = {t.node: None for n in nodes for t, _ in self.reads(n) if is_weight(t.node)}
        return [", ".join(dict.fromkeys(n.type for n in nodes)), *map(weight_words, read)]

    def __repr__(self) -> str:
        return f"<view {self.title!r}: {len(self.nodes)} nodes, {len(self.edges)} edges>"


@collector_paused
def view_of(shown: Any, title: str | None = None, **options: Any) -> View:
    """The view of what can be shown (see subject_of), with what is asked of it (see Options)."""
    unknown = [name for name in options if name not in Options.__annotations__]
    if unknown:
        hint = did_you_mean(unknown[0], Options.__annotations__)
        raise TypeError(f"a picture has no option {unknown[0]!r}. {hint}".rstrip())
    options["title"] = title
    return View(shown, options)  # type: ignore[arg-type]


def _ids(scene: Scene) -> dict[Node, str]:
    """`n12` by creation index; c12 in bodies; r12 for what a comparison took from the other graph,
    d12 for default gradients, x12 for what could not be built; by place where indices do not tell
    apart.
    """
    ids: dict[Node, str] = {}
    home = next((n.graph for n in scene.nodes if scene.status.get(n) != "removed"), None)
    inside = 0
    for node in scene.nodes:
        letter = "n"
        if node in scene.bypassed:
            letter = "d"
        elif not node.outputs and node in scene.failed:
            letter = "x"
        elif scene.status.get(node) == "removed" and node.graph is not home:
            letter = "r"
        if node in scene.bodies:
            ids[node], inside = f"c{inside}", inside + 1
        else:
            ids[node] = f"{letter}{node.index}"
    if len(set(ids.values())) == len(ids):
        return ids
    return {n: f"{name[0]}{i}" for i, (n, name) in enumerate(ids.items())}


def _saved(wanted: bool | str, nodes: int) -> bool:
    if wanted not in (True, False, "auto"):
        raise ValueError(f'saved_edges is True, False or "auto", got {wanted!r}')
    return nodes <= SAVED_LIMIT if wanted == "auto" else bool(wanted)
