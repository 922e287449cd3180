"""The model that is differentiated, and what its file says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from glob import escape
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ...base.errors import GraphError
from ..loading.load import LoadOptions, loaded, opened
from ..loading.model import OnnxModel

__all__ = ["SourceModel", "source_of"]


class SourceModel(NamedTuple):
    """A model as a graph.

    names  all names of the file, which nothing new may have
    notes  {input or output: what the file says of it}
    told   of the file: its name, digest and producer
    path   of the file, if it is one
    given  whether it was loaded before
    """

    model: OnnxModel
    names: frozenset[str]
    notes: Mapping[str, str]
    told: Mapping[str, str]
    path: Path | None = None
    given: bool = False


def source_of(
    given: Any, wrt: Sequence[str], options: Mapping[str, Mapping[str, Any] | None]
) -> SourceModel:
    """What was given, loaded; initializers among `wrt` are variables."""
    said: dict[str, Any] = {name: option for name, option in options.items() if option}
    if isinstance(given, OnnxModel):
        for name in said:
            raise GraphError(
                f"{name}= applies to a file; for a loaded model, pass it to gg.onnx.load"
            )
        told = {"name": given.graph.name or "", "producer": given.producer}
        names = frozenset({*given.tensors, *given.inputs})
        return SourceModel(given, names, {}, told, given=True)
    with opened(given) as (proto, folder):
        stored = [t.name for t in proto.graph.initializer]
        trainable = [escape(name) for name in wrt if name in stored]
        model = loaded(proto, folder, LoadOptions(trainable or False, **said))
        made = [name for node in proto.graph.node for name in node.output]
        ends = (*proto.graph.input, *proto.graph.output)
        notes = {each.name: each.doc_string for each in ends if each.doc_string}
        raw = _bytes_of(given, proto)
    told = {
        "name": "" if folder is None else Path(given).name,
        "sha256": sha256(raw).hexdigest(),
        "producer": model.producer,
    }
    names = frozenset({*stored, *made, *[each.name for each in ends]})
    path = None if folder is None else Path(given)
    return SourceModel(model, names, notes, told, path)


def _bytes_of(given: Any, proto: Any) -> bytes:
    if isinstance(given, bytes):
        return given
    if given is proto or type(given) is type(proto):
        raw: bytes = given.SerializeToString(deterministic=True)
        return raw
    return Path(given).read_bytes()
