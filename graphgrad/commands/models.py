"""`onnx`: what is in a model of ONNX, what of it cannot be loaded, and derivatives for it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

from ..base.errors import FileError, counted
from ..base.words import shortened, visible
from ..onnx.loading.load import load, opened
from ..onnx.loading.protobuf import metadata_of, opsets_of
from ..onnx.loading.survey import ModelSurvey, survey
from ..onnx.loading.tensors import type_name
from ..onnx.package import need_onnx
from .deriving import derivative_arguments, derive, derived_kind


def onnx_arguments(parser: ArgumentParser) -> None:
    """MODEL, and which derivatives it is given."""
    parser.add_argument("file", metavar="MODEL", type=Path, help="a model of ONNX")
    derivative_arguments(parser)


def onnx(options: Namespace) -> int:
    """A line for each thing, or a new model; exit code 1 where something is wrong with it."""
    need_onnx("this command")
    kind = derived_kind(options)
    if kind is not None:
        return derive(options, kind)
    path: Path = options.file
    with opened(path) as (model, _):
        needs = survey(model)
        rows = [f"file: {path.stat().st_size} bytes", *_rows(model, needs)]
    refused = _refused(path, needs)
    for row in [*rows, *refused]:
        print(visible(row))
    return 1 if refused else 0


def _rows(model: Any, needs: ModelSurvey) -> Iterator[str]:
    versions = ", ".join(f"{d or 'ai.onnx'} {v}" for d, v in opsets_of(model).items())
    made_by = f"{model.producer_name} {model.producer_version}".strip()
    yield f"format {model.ir_version}, operators {versions}" + (made_by and f", by {made_by}")
    if model.domain or model.model_version:
        yield f"model {model.domain}, version {model.model_version}"
    graph = model.graph
    if doc := model.doc_string or graph.doc_string:
        yield f"description: {shortened(doc, 400)}"
    weights = {t.name: t for t in graph.initializer}
    yield f"graph {graph.name!r}: {counted(needs.nodes, 'node')}, functions opened"
    for what, values in (("input", graph.input), ("output", graph.output)):
        yield from (f"{what} {v.name}: {_type(v)}" for v in values if v.name not in weights)
    numbers = sum(prod(t.dims) for t in weights.values())
    yield f"{counted(len(weights), 'weight')} of {counted(numbers, 'number')}"
    for name, count in sorted(needs.functions.items()):
        yield f"function {name}: called {counted(count, 'time')}"
    for name, count in sorted(needs.operators.items(), key=lambda row: (-row[1], row[0])):
        yield f"operator {name}: {counted(count, 'time')}"
    for key, text in metadata_of(model).items():
        yield f"metadata {key}: {shortened(text, 200)}"


def _type(said: Any) -> str:
    kind = said.type.WhichOneof("value")
    if kind != "tensor_type":
        return str(kind).removesuffix("_type")
    tensor = said.type.tensor_type
    dims = [
        d.dim_param or (d.dim_value if d.HasField("dim_value") else "?") for d in tensor.shape.dim
    ]
    return f"{type_name(tensor.elem_type)}[{', '.join(map(str, dims))}]"


def _refused(path: Path, needs: ModelSurvey) -> list[str]:
    """What cannot be loaded: each operator, or else the first thing that is wrong."""
    if needs.refused:
        return [
            f"cannot be loaded: {name}, {counted(needs.operators[name], 'time')}: {why}"
            for name, why in needs.refused.items()
        ]
    try:
        load(path)
    except FileError as error:
        return [f"cannot be loaded: {error}"]
    return []
