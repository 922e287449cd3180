"""What a picture is drawn of: items, and links between them."""

from __future__ import annotations

from ...ir.node import Node, Tensor
from ..scene.boxes import Box
from ..scene.edges import Edge
from ..scene.wording import brief_type

__all__ = ["Link", "PictureItem"]


class PictureItem:
    """What is drawn as one: a node, a copy of a constant, or a collapsed box.

    id      unique in the picture: `n12`, `n12_1` for a copy, `b3` for a box
    node    the node; None for a box
    box     the collapsed box; None for a node
    inside  the open box it is drawn in
    level   how far down it stands among the items of its column
    reads   hubs that are read in the box: no edges are drawn from these
    readers of a hub: how many items read it
    numbers the numbers that a node reads, which stand on it: which operand, and the constant
    """

    __slots__ = ("box", "id", "inside", "level", "node", "numbers", "readers", "reads")

    def __init__(self, id: str, node: Node | None, box: Box | None, inside: Box) -> None:
        self.id = id
        self.node = node
        self.box = box
        self.inside = inside
        self.level = 0
        self.reads: dict[Node, None] = {}
        self.readers = 0
        self.numbers: list[tuple[str, Node]] = []

    def __repr__(self) -> str:
        return f"<item {self.id}>"


class Link:
    """The edges of one kind from one item to another; between nodes that is one edge.

    edge   the first of them, for everything that is not a number
    edges  all of them
    """

    __slots__ = ("edges", "source", "target")

    def __init__(self, source: PictureItem, target: PictureItem, edge: Edge) -> None:
        self.source = source
        self.target = target
        self.edges = [edge]

    @property
    def edge(self) -> Edge:
        """The first edge."""
        return self.edges[0]

    @property
    def operand(self) -> str:
        """`arg 1`, `x2`: which operand of its reader it is; see edges.operand_words."""
        return self.edge.operand if self.target.box is None else ""

    def tensors(self) -> list[Tensor]:
        """The tensors that are read, each once."""
        return list(dict.fromkeys(e.tensor for e in self.edges if e.tensor is not None))

    def words(self) -> str:
        """`in 0 f32[64,N]`, `arg 1 f32[64]`, `3 x f32[64,N]`, `7 tensors`, `control`.

        That a value is saved or a residual is shown by the stroke.
        """
        tensors = self.tensors()
        if not tensors:
            return "control"
        types = dict.fromkeys(t.type for t in tensors)
        text = brief_type(next(iter(types)))
        if len(types) > 1:
            text = f"{len(tensors)} tensors"
        elif len(tensors) > 1:
            text = f"{len(tensors)} x {text}"
        elif len(tensors[0].node.outputs) > 1:
            text = f":{tensors[0].index} {text}"
        tags = dict.fromkeys(e.tag for e in self.edges)
        told = self.edge.owner is not None or self.edge.kind == "loop"
        tag = next(iter(tags)) if len(tags) == 1 and told else ""
        return " ".join(filter(None, (tag, self.operand, text)))
