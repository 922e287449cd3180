"""What the page knows of the file from which a model was loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...ir.node import Node
from ...ir.properties import FileOperator, ModelProperties, properties_of
from ..scene.boxes import Box, NameScope
from ..scene.operators import called
from ..scene.view import View
from ..scene.wording import shortened, visible

__all__ = ["FileTables"]

TEXT, ENTRIES = 2000, 200
"""Characters of a text, and entries of the metadata, that a page has."""


class FileTables:
    """Rows about operators of the file.

    properties  what the file says; None where what is shown is of no file
    """

    def __init__(self, views: Iterable[View]) -> None:
        self.properties = properties_of(n for view in views for n in view.nodes)
        self._places: dict[str, int] = {}

    def operator(self, name: str) -> int:
        """The row of the operator of which a node or scope of this name was built; -1: of none."""
        said = self.properties
        if said is None or name not in said.operators:
            return -1
        return self._places.setdefault(name, len(self._places))

    def of_node(self, node: Node) -> int:
        """The row of the operator that a node is, or is a part of; -1: of none."""
        if node.origin is not None:
            return -1
        own = self.operator(node.name)
        return self.operator(node.scope[:-1]) if own < 0 else own

    def of_boxes(self, boxes: Mapping[Box, int]) -> list[tuple[int, int]]:
        """Box, and the row of the operator that it is."""
        found = [
            (at, self.operator(box.owner.path))
            for box, at in boxes.items()
            if isinstance(box.owner, NameScope)
        ]
        return [pair for pair in found if pair[1] >= 0]

    def rows(self, nodes: Mapping[Node, int]) -> dict[str, Any] | None:
        """What stands in the page; nodes: their rows. None where there is no file."""
        said = self.properties
        if said is None:
            return None
        of_node = {row: self.of_node(node) for node, row in nodes.items()}
        return {
            "format": visible(said.format),
            "rows": [(name, _text(text)) for name, text in said.rows()],
            "metadata": [(_text(k), _text(v)) for k, v in list(said.metadata.items())[:ENTRIES]],
            "entries": len(said.metadata),
            "nodes": {row: place for row, place in of_node.items() if place >= 0},
            "weights": {row: word for node, row in nodes.items() if (word := called(node))},
            "operators": [_operator(said, said.operators[name]) for name in self._places],
        }


def _text(text: str) -> str:
    return visible(shortened(text, TEXT))


def _operator(said: ModelProperties, operator: FileOperator) -> tuple[str, str, str]:
    """Its type, a line for each attribute, and what it does."""
    lines = [f"{name} = {_value(value)}" for name, value in operator.attributes.items()]
    says = said.says.get(operator.type, "")
    return _text(operator.type), "\n".join(map(visible, lines)), _text(says)


def _value(value: Any) -> str:
    """`[3, 3]`, `1e-05`, `NOTSET`, as files have them."""
    if isinstance(value, tuple):
        return shortened(f"[{', '.join(map(_value, value))}]", TEXT)
    return shortened(str(value), TEXT)
