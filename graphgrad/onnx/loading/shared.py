"""Weights that a model reads out of files that were there before it: whether they are the same."""

from __future__ import annotations

import json
from hashlib import file_digest
from pathlib import Path
from typing import Any

from ...base.errors import FileError
from .protobuf import metadata_of
from .tensors import file_inside

__all__ = ["WEIGHTS", "check_shared", "digest_of"]

WEIGHTS = "graphgrad.weights"
"""The key of metadata that hold {file beside the model: its SHA-256}."""


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def check_shared(model: Any, folder: Path | None) -> None:
    """FileError where a file that a model shares weights with is gone, or another one by now."""
    text = metadata_of(model).get(WEIGHTS)
    if text is None or folder is None:  # without a folder no external data are read
        return
    try:
        named = dict(json.loads(text))
    except (ValueError, TypeError):
        raise FileError(f"its metadata {WEIGHTS!r} are not JSON of files") from None
    for name, digest in named.items():
        found = digest_of(file_inside(folder, str(name), "its shared data"))
        if found != digest:
            raise FileError(
                f"its weights are in {name!r:.80}, which has changed since the model was written: "
                f"its SHA-256 was {str(digest)[:12]}..., and is {found[:12]}...; write it again"
            )
