"""Models in earlier versions of ONNX's operators, for runtimes that know no later ones."""

from __future__ import annotations

from typing import Any

from ...base.errors import ExportError
from ..loading.attributes import subgraphs_of
from ..loading.protobuf import metadata_of
from ..package import onnx, onnx_inliner
from .model import OPSET, put_metadata

__all__ = ["OLDEST_WRITTEN", "in_version"]

IR_OF = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10}
"""{version of the operators: of the format that came with it}"""

OLDEST_WRITTEN = min(IR_OF)
HIDDEN = "graphgrad.same"


def in_version(model: Any, opset: int) -> Any:
    """The model in another version, local functions opened, by onnx's converter; ExportError.

    Nodes say no more where they are from.
    """
    if opset == OPSET:
        return model
    opened = onnx_inliner.inline_local_functions(model)
    _hide(opened.graph, "", HIDDEN)
    opened.opset_import.add(domain=HIDDEN, version=1)
    try:
        made = onnx.version_converter.convert_version(opened, opset)
        _hide(made.graph, HIDDEN, "")
        del made.opset_import[:]
        made.opset_import.add(domain="", version=opset)
        made.ir_version = IR_OF[opset]
        onnx.checker.check_model(made)
    except Exception as error:  # of its C++
        raise ExportError(
            f"onnx cannot bring this model to version {opset} of the operators: {error!s:.400}"
        ) from None
    del made.metadata_props[:]
    put_metadata(made, metadata_of(model))
    for new, old in zip(
        (*made.graph.input, *made.graph.output),
        (*model.graph.input, *model.graph.output),
        strict=True,
    ):
        new.CopyFrom(old)
    return made


def _hide(graph: Any, domain: str, to: str) -> None:
    """Operators that mean the same in all versions, as those of a domain that nobody converts."""
    for node in graph.node:
        if node.domain == domain and _is_same(node):
            node.domain = to
        for inner in subgraphs_of(node):
            _hide(inner, domain, to)


def _is_same(node: Any) -> bool:
    """Whether versions differ in what is not written here: dtypes, and inputs that are left out."""
    if node.op_type == "Split":
        return len(node.input) == 2
    return node.op_type == "ConstantOfShape" or (node.op_type == "Pad" and len(node.input) < 4)
