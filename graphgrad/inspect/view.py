"""What a picture shows, before anybody draws it: columns, boxes, edges and their kinds.

Column 0 is what the user built, column 1 its gradients. What the user built from gradients is
column 2, gradients of that or of gradients column 3, and so on: even columns are the user's, odd
ones derived. Everything here is one pass over the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..ir.errors import GraphError
from ..ir.graph import Graph
from ..ir.node import Node, Region, RuleCall, Tensor
from ..ir.program import Program, needed
from ..ir.residual import Residual
from ..ir.tree import flatten
from ..regions.boundary import boundary_of
from .wording import call_title, kind_of, region_title

__all__ = ["Box", "Edge", "View", "view_of"]

Owner = Region | RuleCall
Place = tuple[int, tuple[Owner, ...]]


class Edge:
    """One tensor as one node reads it.

    tensor  what is read; None for a control edge
    source  the node that made it
    target  the node that reads it
    kind    "data"; "input", "capture", "output" (over a region's boundary); "dy", "dx" (in and out
            of a spliced rule); "saved" (derived nodes read a forward value), "residual" (the inside
            of a region), "gradient" (the user's nodes read a gradient), "control"
    tag     words for the picture, such as "in 0"
    owner   the region or rule call whose boundary is crossed
    """

    __slots__ = ("kind", "owner", "source", "tag", "target", "tensor")

    def __init__(self, tensor: Tensor | None, source: Node, target: Node, kind: str) -> None:
        self.tensor = tensor
        self.source = source
        self.target = target
        self.kind = kind
        self.tag = ""
        self.owner: Owner | None = None

    def __repr__(self) -> str:
        return f"<{self.kind} edge {self.source.name} -> {self.target.name} {self.tag}>"


class Box:
    """A column, a region or a rule call: a box around nodes and inner boxes.

    owner   None for a column
    title   what stands on it
    nodes   nodes directly inside
    boxes   boxes directly inside
    column  the column it is in
    """

    __slots__ = ("boxes", "column", "nodes", "owner", "title")

    def __init__(self, owner: Owner | None, title: str, column: int) -> None:
        self.owner = owner
        self.title = title
        self.column = column
        self.nodes: list[Node] = []
        self.boxes: list[Box] = []

    def __repr__(self) -> str:
        return f"<box {self.title!r}: {len(self.nodes)} nodes, {len(self.boxes)} boxes>"


class View:
    """A plain description of what is shown.

    title    of the picture
    nodes    in an order in which they can run
    results  the tensors asked for, in order; empty where a whole graph is shown
    number   node -> its number, unique in the view
    column   node -> its column
    path     node -> the regions and rule calls around it, innermost first
    columns  one Box for each column that has nodes
    edges    what is read, in order of the readers
    height   node of column 0 or 1 -> where it stands: what is drawn above has a smaller number
    pairs    forward node -> the gradient nodes that stand beside it
    """

    def __init__(self, title: str, nodes: Sequence[Node], results: Sequence[Tensor]) -> None:
        self.title = title
        self.results = tuple(results)
        self.nodes = [n for n in nodes if type(n.op) is not Residual]
        self.number = _numbers(self.nodes)
        self.column = _columns(self.nodes)
        self.path = _paths(self.nodes)
        self.columns = _boxes(self)
        self.edges = _edges(self)
        self.height = _heights(self)
        self.pairs = _pairs(self)

    def place(self, node: Node) -> Place:
        """What tells the box of a node: its column, and its path."""
        return self.column[node], self.path[node]

    def place_of_source(self, edge: Edge) -> Place:
        """Where the source of an edge is drawn: rules share constants, each box has its own."""
        node = edge.source
        if kind_of(node) == "constant" and node.origin is not None and edge.owner is None:
            node = edge.target
        return self.place(node)

    @property
    def regions(self) -> list[Region]:
        """The regions that have a box, in order of opening."""
        owners = {owner for path in self.path.values() for owner in path}
        return sorted((o for o in owners if isinstance(o, Region)), key=lambda r: r.index)

    def __repr__(self) -> str:
        return f"<view {self.title!r}: {len(self.nodes)} nodes, {len(self.edges)} edges>"


def view_of(shown: Any, title: str | None = None) -> View:
    """The view of a graph, a program, or of tensors (any nesting of them) and their ancestors.

    None among the tensors (what `gradients` gives for the unconnected) is left out. As any look at
    a region, this settles the boundaries of the closed regions shown. TypeError for what is
    neither; GraphError for tensors of different graphs.
    """
    if isinstance(shown, Graph):
        name = "" if shown.name == "graph" else shown.name
        return View(name if title is None else title, shown.nodes, ())
    if isinstance(shown, Program):
        return View(title or "", shown.nodes, shown.outputs)
    results = [t for t in flatten(shown) if t is not None]
    for t in results:
        if not isinstance(t, Tensor):
            raise TypeError(f"a graph, a program or tensors can be shown, got {t!r}")
        if t.graph is not results[0].graph:
            raise GraphError(
                f"{t.name} ({t.where}) of {t.graph!r} and {results[0].name} "
                f"({results[0].where}) of {results[0].graph!r} do not fit in one picture"
            )
    return View(title or "", needed((), results), results)


def reads(node: Node) -> list[tuple[Tensor, bool]]:
    """The tensors a node reads, each once, and whether only as a residual."""
    found: dict[Tensor, bool] = {}
    for read in node.inputs:
        t, residual = behind(read)
        found[t] = found.get(t, True) and residual
    return list(found.items())


def behind(t: Tensor) -> tuple[Tensor, bool]:
    """The tensor that a Residual stands for, and True; any other tensor, and False."""
    residual = False
    while type(t.node.op) is Residual:
        t, residual = t.node.inputs[0], True
    return t, residual


def _numbers(nodes: Sequence[Node]) -> dict[Node, int]:
    """Creation indices where they tell nodes apart, else places in the order."""
    found = {n: n.index for n in nodes}
    return found if len(set(found.values())) == len(found) else {n: i for i, n in enumerate(nodes)}


# --- columns ----------------------------------------------------------------------------------


def _columns(nodes: Sequence[Node]) -> dict[Node, int]:
    """A second pass keeps all that one rule call built together."""
    column: dict[Node, int] = {}
    lowest: dict[RuleCall, int] = {}
    for _ in range(2):
        for node in nodes:
            origin = node.origin
            found = 0 if origin is None else _after(_column_of(origin, column))
            for t, _residual in reads(node):
                found = max(found, _from_input(column.get(t.node, 0), origin is None))
            if isinstance(origin, RuleCall):
                found = max(found, lowest.get(origin, 0))
                lowest[origin] = found
            column[node] = found
        if not lowest:
            break
    _move_constants(nodes, column)
    return column


def _move_constants(nodes: Sequence[Node], column: dict[Node, int]) -> None:
    """The user's constants go to the first of the user's columns that reads them."""
    readers: dict[Node, int] = {}
    for node in nodes:
        for t in node.inputs:
            if kind_of(t.node) == "constant" and t.node.origin is None:
                readers[t.node] = min(column[node], readers.get(t.node, column[node]))
    column.update((n, c) for n, c in readers.items() if c % 2 == 0 and n in column)


def _column_of(origin: Node | RuleCall, column: dict[Node, int]) -> int:
    """The column of what was differentiated; by the order of derivation where it is not shown."""
    site = origin.site if isinstance(origin, RuleCall) else origin
    if site in column:
        return column[site]
    order = 0
    while site.origin is not None:
        order += 1
        site = site.origin.site if isinstance(site.origin, RuleCall) else site.origin
    return max(0, 2 * order - 1)


def _after(column: int) -> int:
    return column + 1 if column % 2 == 0 else column + 2


def _from_input(column: int, user: bool) -> int:
    if user:
        return column + column % 2
    return column + 1 if column and column % 2 == 0 else column


def _column_title(column: int) -> str:
    if column == 0:
        return "forward"
    if column == 1:
        return "backward"
    if column % 2 == 0:
        return "built from gradients"
    return f"backward, order {column // 2 + 1}"


# --- boxes ------------------------------------------------------------------------------------


def _paths(nodes: Iterable[Node]) -> dict[Node, tuple[Owner, ...]]:
    known: dict[Any, tuple[Owner, ...]] = {}
    found: dict[Node, tuple[Owner, ...]] = {}
    for node in nodes:
        origin = node.origin if isinstance(node.origin, RuleCall) else None
        key = (node.region, origin)
        path = known.get(key)
        if path is None:
            path = known[key] = _path(node.region, origin)
        found[node] = path
    return found


def _path(region: Region | None, origin: Node | RuleCall | None) -> tuple[Owner, ...]:
    """The boxes around, innermost first: a region that a rule opened stands inside its call."""
    found: list[Owner] = []
    while True:
        while region is not None and region.origin is origin:
            found.append(region)
            region = region.parent
        if isinstance(origin, RuleCall):
            found.append(origin)
        if region is None:
            return tuple(found)
        origin = region.origin


def _boxes(view: View) -> list[Box]:
    columns: dict[int, Box] = {}
    known: dict[Any, Box] = {}
    inner: dict[tuple[Box, Owner], Box] = {}
    for node in view.nodes:
        column, path = view.column[node], view.path[node]
        box = known.get((column, path))
        if box is None:
            if column not in columns:
                columns[column] = Box(None, _column_title(column), column)
            box = columns[column]
            for owner in reversed(path):
                box = _inside(box, owner, inner)
            known[column, path] = box
        box.nodes.append(node)
    return [columns[c] for c in sorted(columns)]


def _inside(box: Box, owner: Owner, known: dict[tuple[Box, Owner], Box]) -> Box:
    found = known.get((box, owner))
    if found is None:
        title = region_title(owner) if isinstance(owner, Region) else call_title(owner)
        found = known[box, owner] = Box(owner, title, box.column)
        box.boxes.append(found)
    return found


# --- edges ------------------------------------------------------------------------------------


def _edges(view: View) -> list[Edge]:
    found: list[Edge] = []
    for node in view.nodes:
        for t, residual in reads(node):
            if t.node in view.column:
                found.append(_edge(t, node, residual, view))
        found += [Edge(None, c, node, "control") for c in node.controls if c in view.column]
    return found


def _edge(t: Tensor, node: Node, residual: bool, view: View) -> Edge:
    here, there = view.column[node], view.column[t.node]
    edge = Edge(t, t.node, node, "data")
    if kind_of(t.node) == "constant" and t.node.origin is not None and here % 2 == 1:
        there = here
    if residual:
        edge.kind = edge.tag = "residual"
    elif here != there and here % 2 == 1:
        edge.kind = edge.tag = "saved"
    else:
        if here != there:
            edge.kind = "gradient"
        if view.path[node] is not view.path[t.node]:
            _note_crossing(edge, view.path[t.node], view.path[node])
    return edge


def _note_crossing(edge: Edge, left: tuple[Owner, ...], entered: tuple[Owner, ...]) -> None:
    """Words for the outermost box that the edge leaves, and the outermost it enters."""
    t = edge.tensor
    assert t is not None
    out = next((o for o in reversed(left) if o not in entered), None)
    into = next((o for o in reversed(entered) if o not in left), None)
    constant = kind_of(t.node) == "constant"
    tags = []
    for owner, leaving in ((out, True), (into, False)):
        if owner is None or (constant and isinstance(owner, RuleCall)):
            continue
        if isinstance(owner, RuleCall):
            edge.kind = "dx" if leaving else "dy"
            tag = edge.kind
        elif leaving:
            edge.kind, tag = "output", _output_tag(t, owner)
        else:
            edge.kind, tag = _input_tag(t, owner)
        edge.owner = owner
        tags += [tag] if tag else []
    edge.tag = ", ".join(tags)


def _output_tag(t: Tensor, region: Region) -> str:
    if region.open:
        return "out"
    outputs = boundary_of(region).outputs
    found = [i for i, x in enumerate(outputs) if x is t]
    return f"out {found[0]}" if found else "undeclared out"


def _input_tag(t: Tensor, region: Region) -> tuple[str, str]:
    """Whether it is an input or a capture, and which. An open region is not settled by a look."""
    variable = kind_of(t.node) == "variable"
    kind = "capture" if variable and region.pinned_inputs is None else "input"
    if region.open:
        return kind, "in"
    found = [i for i, x in enumerate(boundary_of(region).inputs) if x is t]
    if not found:
        return "capture", "capture"
    return kind, f"in {found[0]}" if kind == "input" else f"in {found[0]} (capture)"


# --- the mirror -------------------------------------------------------------------------------


def _heights(view: View) -> dict[Node, int]:
    """A number for each node of columns 0 and 1: what stands higher has a smaller one.

    A gradient stands no lower than its forward node, and than what it reads.
    """
    height: dict[Node, int] = {}
    for node in view.nodes:
        if view.column[node] == 0:
            height[node] = 2 * node.index
        elif view.column[node] == 1:
            beside = [t.node for t, _ in reads(node) if view.column.get(t.node) == 1]
            height[node] = min([_place(node), *(height[n] for n in beside)])
    return height


def _place(node: Node) -> int:
    """Twice the index of a gradient's forward node; a region's rule: just above its last node."""
    origin = node.origin
    site = origin.site if isinstance(origin, RuleCall) else origin
    if isinstance(site, Region):
        members = boundary_of(site).members
        return 2 * members[-1].index - 1 if members else 0
    return 2 * (node.index if site is None else site.index)


def _pairs(view: View) -> dict[Node, list[Node]]:
    """Beside a forward node: its gradients of the same height, of these the last ones."""
    height = view.height
    mirrored = [n for n in view.nodes if view.column[n] == 1]
    read = {(t.node, height[n]) for n in mirrored for t, _ in reads(n)}
    found: dict[Node, list[Node]] = {}
    for node in mirrored:
        origin = node.origin
        site = origin.site if isinstance(origin, RuleCall) else origin
        if not isinstance(site, Node) or view.column.get(site) != 0:
            continue
        if height[node] == height[site] and (node, height[node]) not in read:
            found.setdefault(site, []).append(node)
    return found
