"""Attributes of nodes as Python values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ...base.errors import FileError
from ..package import onnx
from .tensors import array_of_tensor

__all__ = ["subgraphs_of", "values_of"]


def values_of(
    attributes: Iterable[Any], bound: Mapping[str, Any], folder: Path | None
) -> dict[str, Any]:
    """{name: value}: numbers, strings, lists of them, arrays, and graphs as they are.

    bound: the attributes of the function around, for those that refer to one of them.
    """
    values: dict[str, Any] = {}
    for each in attributes:
        if not each.ref_attr_name:
            values[each.name] = _value(each, folder)
        elif each.ref_attr_name in bound:
            values[each.name] = bound[each.ref_attr_name]
    return values


def _value(attribute: Any, folder: Path | None) -> Any:
    kinds = onnx.AttributeProto
    kind = attribute.type
    if kind == kinds.INT:
        return attribute.i
    if kind == kinds.FLOAT:
        return attribute.f
    if kind == kinds.STRING:
        return _text(attribute.s)
    if kind == kinds.INTS:
        return list(attribute.ints)
    if kind == kinds.FLOATS:
        return list(attribute.floats)
    if kind == kinds.STRINGS:
        return [_text(s) for s in attribute.strings]
    if kind == kinds.TENSOR:
        return array_of_tensor(attribute.t, folder)
    if kind == kinds.GRAPH:
        return attribute.g
    named = {number: name for name, number in kinds.AttributeType.items()}
    raise FileError(
        f"its attribute {attribute.name!r:.80} has kind {named.get(kind, kind)}, which is not "
        "supported"
    )


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise FileError(f"an attribute has {raw!r:.80}, which is not text") from None


def subgraphs_of(node: Any) -> list[Any]:
    """The graphs among the attributes of a node."""
    return [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
