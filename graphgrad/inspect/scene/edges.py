"""The edges of a picture: what each node reads, and which boundary is crossed on the way."""

from __future__ import annotations

from ...base.ancestry import OUTSIDE
from ...ir.node import Node, Region, RuleCall, Tensor
from ...ops.elementwise.accumulate import AddN
from ...regions.boundary import boundary_of
from .boxes import Owner, Path
from .scene import Scene, behind
from .wording import is_private, kind_of


class Edge:
    """One tensor as one node reads it.

    tensor  what is read; None for a control edge
    source  the node that made it
    target  the node that reads it
    kind    "data"; "input", "capture", "output" (over a region's boundary); "dy", "dx" (in and out
            of a spliced rule); "saved" (derived nodes read a forward value, which may enter a
            region that their rule opened), "residual" (the inside of a region), "gradient" (the
            user's nodes read a gradient), "loop" (what a run of a loop carries on to the next),
            "control"
    tag     words for the picture, such as "in 0"
    operand which operand of the reader it is, as operand_words says
    owner   the region or rule call whose boundary is crossed
    status  in a comparison: "added", "removed", or "" for an edge of both sides
    """

    __slots__ = ("kind", "operand", "owner", "source", "status", "tag", "target", "tensor")

    def __init__(self, tensor: Tensor | None, source: Node, target: Node, kind: str) -> None:
        self.tensor = tensor
        self.source = source
        self.target = target
        self.kind = kind
        self.tag = ""
        self.operand = ""
        self.owner: Owner | None = None
        self.status = ""

    def __repr__(self) -> str:
        return f"<{self.kind} edge {self.source.name} -> {self.target.name} {self.tag}>"


def edges_of(scene: Scene) -> list[Edge]:
    """Every edge, in order of the readers."""
    edges: list[Edge] = []
    column, before = scene.column, scene.before
    for node in scene.nodes:
        old = before.get(node) if before else None
        reads = scene.reads(node)
        words = operand_words(node, scene) if len(node.inputs) > 1 else {}
        for t, residual in reads:
            if t.node in column:
                edge = _edge(t, node, residual, scene)
                edge.operand = words.get(t, "")
                edges.append(edge)
        edges += [Edge(None, c, node, "control") for c in node.controls if c in column]
        if old is not None and old is not node:
            _compare(edges, node, old, scene)
    edges += _loops(scene)
    for edge in edges if scene.status else ():
        ends = scene.status.get(edge.source, ""), scene.status.get(edge.target, "")
        edge.status = next((s for s in ends if s in ("added", "removed")), edge.status)
    return edges


def operand_words(node: Node, scene: Scene) -> dict[Tensor, str]:
    """What is read -> which operands it is.

    `arg 1`, or `arg 0,2`, where it matters; `x2` where it does not, and one thing is read twice.
    Control flow has none: what its bodies make stands in their boxes.
    """
    if node.op.bodies:
        return {}
    places: dict[Tensor, list[int]] = {}
    for place, t in enumerate(scene.operands(node)):
        places.setdefault(t, []).append(place)
    if node.op.traits.commutes or type(node.op) is AddN:
        return {t: f"x{len(at)}" for t, at in places.items() if len(at) > 1}
    return {t: f"arg {','.join(map(str, at))}" for t, at in places.items()}


def _loops(scene: Scene) -> list[Edge]:
    """From what a run of a loop carries on back to what stands for the carry."""
    loops = []
    for placeholder, after in scene.nexts.items():
        t, _ = behind(after)
        t = scene.twins[t.node].outputs[t.index] if t.node in scene.twins else t
        if t.node in scene.column and placeholder in scene.column:
            loops.append(Edge(t, t.node, placeholder, "loop"))
            loops[-1].tag = "next"
    return loops


def _compare(edges: list[Edge], node: Node, old: Node, scene: Scene) -> None:
    """What a node reads now and did not before, and the other way round."""
    was, gone = dict(scene.reads(old)), operand_words(old, scene) if len(old.inputs) > 1 else {}
    now = {t for t, _ in scene.reads(node)}
    for edge in reversed(edges):
        if edge.target is not node:
            break
        if edge.tensor is not None and edge.tensor not in was:
            edge.status = "added"
    for t, residual in was.items():
        if t not in now and t.node in scene.column:
            edge = _edge(t, node, residual, scene)
            edge.status, edge.operand = "removed", gone.get(t, "")
            edges.append(edge)


def _edge(t: Tensor, node: Node, residual: bool, scene: Scene) -> Edge:
    here, there = scene.column[node], scene.column[t.node]
    edge = Edge(t, t.node, node, "data")
    if here % 2 == 1 and is_private(t.node):
        there = here
    if residual:
        edge.kind = edge.tag = "residual"
    elif here != there and here % 2 == 1:
        edge.kind = edge.tag = "saved"
        _note_entry(edge, scene.path[t.node], scene.path[node])
    else:
        if here != there and there % 2:
            edge.kind = "gradient"
        if scene.path[node] is not scene.path[t.node] and node not in scene.bypassed:
            _note_crossing(edge, scene.path[t.node], scene.path[node])
    return edge


def _note_crossing(edge: Edge, left: Path, entered: Path) -> None:
    """Words for the outermost box that the edge leaves, and the outermost it enters."""
    t = edge.tensor
    assert t is not None
    shared = left.common(entered).depth
    out, into = (
        path.up_to(shared + 1) if len(path) > shared else OUTSIDE for path in (left, entered)
    )
    constant = kind_of(t.node) == "constant"
    tags = []
    for owner, leaving in ((out.item, True), (into.item, False)):
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


def _note_entry(edge: Edge, left: Path, entered: Path) -> None:
    """What is saved can enter a region too: one that a rule opened."""
    assert edge.tensor is not None
    for depth in range(left.common(entered).depth + 1, len(entered) + 1):
        owner = entered.up_to(depth).item
        if isinstance(owner, Region):
            edge.owner = owner
            edge.tag = _input_tag(edge.tensor, owner)[1]
            break


def _output_tag(t: Tensor, region: Region) -> str:
    if region.open:
        return "out"
    outputs = boundary_of(region).outputs
    places = [i for i, x in enumerate(outputs) if x is t]
    return f"out {places[0]}" if places else "undeclared out"


def _input_tag(t: Tensor, region: Region) -> tuple[str, str]:
    """Whether it is an input or a capture, and which. An open region is not settled by a look."""
    variable = kind_of(t.node) == "variable"
    kind = "capture" if variable and region.pinned_inputs is None else "input"
    if region.open:
        return kind, "in"
    places = [i for i, x in enumerate(boundary_of(region).inputs) if x is t]
    if not places:
        return "capture", "capture"
    return kind, f"in {places[0]}" if kind == "input" else f"in {places[0]} (capture)"
