"""What a file says of the model in it, beside its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..base.errors import FileError
from ..base.words import shortened

__all__ = [
    "FileOperator",
    "ModelProperties",
    "properties_of",
    "read_properties",
    "stored_properties",
]


class FileOperator(NamedTuple):
    """An operator as its file has it.

    type        "Conv", or "com.acme.Magic" of another domain
    attributes  {name: number, string or tuple of them}; arrays and graphs in words
    """

    type: str
    attributes: Mapping[str, Any] = MappingProxyType({})


class ModelProperties(NamedTuple):
    """What a file says of its model. All of it is text or numbers.

    format            "ONNX"
    format_version    the IR version
    opset             {domain: version}, "" for ONNX's own operators
    producer          the program that wrote the file
    producer_version  its version
    domain            of the model, such as "com.acme"
    model_version     of the model
    doc               its description
    metadata          {key: text}
    operators         {name of a node or scope: FileOperator of which it was built}
    says              {type of an operator: a sentence of ONNX about it}
    weights           {name of a constant: what the operator that reads it calls it, as "W"}

    >>> said = gg.onnx.ModelProperties("ONNX", 8, {"": 17}, "pytorch", "2.13", doc="a net")
    >>> said.short()
    'ONNX by pytorch 2.13, ai.onnx 17'
    >>> said.rows()[-1]
    ('description', 'a net')
    """

    format: str = ""
    format_version: int = 0
    opset: Mapping[str, int] = MappingProxyType({})
    producer: str = ""
    producer_version: str = ""
    domain: str = ""
    model_version: int = 0
    doc: str = ""
    metadata: Mapping[str, str] = MappingProxyType({})
    operators: Mapping[str, FileOperator] = MappingProxyType({})
    says: Mapping[str, str] = MappingProxyType({})
    weights: Mapping[str, str] = MappingProxyType({})

    @property
    def made_by(self) -> str:
        """`pytorch 2.13.0`; "" where the file does not say."""
        return f"{self.producer} {self.producer_version}".strip()

    @property
    def operator_sets(self) -> str:
        """`ai.onnx 17, com.acme 1`."""
        return ", ".join(f"{domain or 'ai.onnx'} {v}" for domain, v in self.opset.items())

    def rows(self) -> list[tuple[str, str]]:
        """What there is of it, as (name, text), without the metadata."""
        rows = [
            ("format", f"{self.format}, IR version {self.format_version}"),
            ("opsets", self.operator_sets),
            ("producer", self.made_by),
            ("domain", self.domain),
            ("model version", str(self.model_version or "")),
            ("description", self.doc),
        ]
        return [(name, text) for name, text in rows if text]

    def short(self) -> str:
        """`ONNX by pytorch 2.13.0, ai.onnx 17`, in one line."""
        by = f" by {self.made_by}" if self.made_by else ""
        return shortened(f"{self.format}{by}, {self.operator_sets}", 120)


def properties_of(nodes: Iterable[Any]) -> ModelProperties | None:
    """What the file of these nodes says; None where they are of no file."""
    graphs = dict.fromkeys(node.graph for node in nodes)
    said = (graph.properties for graph in graphs if graph is not None)
    return next((each for each in said if each is not None), None)


def stored_properties(properties: ModelProperties | None) -> tuple[Any, ...]:
    """Plain values that a file can hold; () of none."""
    if properties is None:
        return ()
    plain: dict[str, Any] = properties._asdict()
    plain["operators"] = {name: (op[0], dict(op[1])) for name, op in plain["operators"].items()}
    return tuple(dict(v) if isinstance(v, Mapping) else v for v in plain.values())


def read_properties(said: Any) -> ModelProperties | None:
    """What `stored_properties` wrote; FileError for anything else."""
    if said == ():
        return None
    kinds = [type(default) for default in ModelProperties()]
    right = isinstance(said, tuple) and len(said) == len(kinds)
    for value, kind in zip(said, kinds, strict=True) if right else ():
        right = right and type(value) is (dict if kind is MappingProxyType else kind)
    if not right:
        raise FileError(f"{said!r:.80} are not the properties of a model")
    read = ModelProperties(*said)
    for name, kind in TEXTS.items():
        table = getattr(read, name)
        if not all(type(k) is str and type(v) is kind for k, v in table.items()):
            raise FileError(f"{table!r:.80} is not the {name} of a model")
    operators = {name: _operator(op) for name, op in read.operators.items()}
    return read._replace(operators=operators)


TEXTS = {"opset": int, "metadata": str, "operators": tuple, "says": str, "weights": str}


def _operator(said: tuple[Any, ...]) -> FileOperator:
    if len(said) == 2 and type(said[0]) is str and type(said[1]) is dict:
        return FileOperator(*said)
    raise FileError(f"{said!r:.80} is not an operator of a file")
