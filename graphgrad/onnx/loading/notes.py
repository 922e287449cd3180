"""What a file says beside its nodes, collected while these are built."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...base.errors import counted
from ...base.words import shortened
from ...ir.graph import Graph
from ...ir.node import Node, Tensor
from ...ir.properties import FileOperator, ModelProperties
from .call import Value
from .protobuf import metadata_of, opsets_of
from .survey import domain_of, full_name, schema_of

__all__ = ["FileNotes"]

SENTENCE = 300
FEW = 16
"""Elements of an array that is written out."""


class FileNotes:
    """The operators of the nodes of one graph.

    graph    the graph; None before it is there. What is in bodies has no notes
    """

    def __init__(self) -> None:
        self.graph: Graph | None = None
        self._operators: dict[str, FileOperator] = {}
        self._says: dict[str, str] = {}
        self._weights: dict[str, str] = {}

    def built(
        self, outputs: list[Value], call: Any, version: int, attributes: Mapping[str, Any]
    ) -> None:
        """Of an operator of the file these outputs were built."""
        for value in outputs:
            if isinstance(value, Tensor) and value.node.graph is self.graph:
                self.opened(value.node.name, call, version, attributes)

    def opened(self, name: str, call: Any, version: int, attributes: Mapping[str, Any]) -> None:
        """Of an operator of the file all in a scope was built, or a node."""
        type = full_name(domain_of(call), call.op_type)
        plain = {key: _plain(value) for key, value in attributes.items()}
        self._operators[name] = FileOperator(type, plain)
        if type not in self._says:
            schema = schema_of(domain_of(call), call.op_type, version)
            self._says[type] = "" if schema is None else _sentence(schema.doc)

    def weight(self, constant: Node, call: Any, i: int, version: int) -> None:
        """A constant is input i of an operator."""
        schema = schema_of(domain_of(call), call.op_type, version)
        if constant.graph is not self.graph or constant._name is None or schema is None:
            return
        if i < len(schema.inputs) and schema.inputs[i].option.name != "Variadic":
            self._weights.setdefault(constant.name, str(schema.inputs[i].name))

    def properties(self, model: Any) -> ModelProperties:
        """All that a model says."""
        return ModelProperties(
            "ONNX",
            model.ir_version,
            opsets_of(model),
            model.producer_name,
            model.producer_version,
            model.domain,
            model.model_version,
            model.doc_string or model.graph.doc_string,
            metadata_of(model),
            self._operators,
            {type: sentence for type, sentence in self._says.items() if sentence},
            self._weights,
        )


def _plain(value: Any) -> Any:
    """An attribute as numbers and strings; arrays and graphs in words."""
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    if isinstance(value, np.ndarray):
        return str(value.tolist()) if value.size <= FEW else f"{value.dtype}{list(value.shape)}"
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float):
        return float(str(np.float32(value)))  # 1e-05, not 9.999999747378752e-06
    nodes = getattr(value, "node", None)
    if nodes is not None:
        return f"a graph of {counted(len(nodes), 'node')}"
    return value if isinstance(value, str | int) else shortened(repr(value), FEW * 10)


def _sentence(doc: str) -> str:
    """The first sentence of a description."""
    plain = " ".join(doc.split())
    end = re.search(r"[.:](?=\s|$)", plain)
    return shortened(plain[: end.start() + 1].rstrip(":") if end else plain, SENTENCE)
