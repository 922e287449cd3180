"""A file of ONNX as the records of the package onnx, within limits."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ...base.errors import FileError
from ...files.regular import check_regular
from ..package import onnx

LARGEST_FILE = (1 << 31) - 1
OLDEST, NEWEST_IR = 3, 14
ONNX = ("", "ai.onnx")
"""What the domain of ONNX's own operators is called."""


def read_model(path: Path) -> Any:
    """The ModelProto of a file; FileError for what is none, or is too large for one."""
    check_regular(path)
    size = os.stat(path).st_size
    if size > LARGEST_FILE:
        raise FileError(
            f"it has {size} bytes; a model without its external weights has at most {LARGEST_FILE}"
        )
    return parse_model(path.read_bytes())


def parse_model(raw: bytes) -> Any:
    """The ModelProto in these bytes."""
    model = onnx.ModelProto()
    try:
        model.ParseFromString(raw)
    except Exception as error:  # protobuf's own, of whichever of its packages
        raise FileError(f"it is not an ONNX model: {error!s:.200}") from None
    if not model.HasField("graph") or not model.opset_import:
        raise FileError("it is not an ONNX model: it has no graph, or no version of its operators")
    if not OLDEST <= model.ir_version <= NEWEST_IR:
        raise FileError(
            f"it has format version {model.ir_version}; versions {OLDEST} to {NEWEST_IR} are "
            "supported"
        )
    return model


def opsets_of(record: Any) -> dict[str, int]:
    """{domain: version} of a model or function."""
    versions = {}
    for each in record.opset_import:
        versions["" if each.domain in ONNX else each.domain] = each.version
    return versions


def metadata_of(record: Any) -> dict[str, str]:
    """The metadata of a model, graph, function or node."""
    return {p.key: p.value for p in getattr(record, "metadata_props", ())}
