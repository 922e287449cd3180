"""Weights of a model that stay in its file: where their bytes lie in it."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from ...ir.types import Array
from ..loading.protobuf import read_model
from ..loading.shared import digest_of
from ..loading.tensors import array_of_tensor
from ..writing.model import ExternalPlace
from ..writing.values import OnnxBlock, OnnxCall

__all__ = ["SharedWeights"]

STORED = {2: (1, 0), 4: (3, 2, 0, 1), 5: (4, 3, 0, 1, 2)}
"""{axes of an array: their order in the file, where that is not the array's}"""
LEAST = 1024
"""Bytes of an array for which it is worth it."""


class SharedWeights:
    """The arrays in a file, or beside it, by their bytes."""

    def __init__(self, path: Path) -> None:
        self._places = dict(_places(path))
        self._folder = path.parent

    def take(self, array: Array) -> ExternalPlace | None:
        """Where the bytes of an array lie; None: nowhere."""
        return self._places.get(_digest(array)) if array.nbytes >= LEAST else None

    @property
    def digests(self) -> dict[str, str]:
        """{file in the folder: its SHA-256}."""
        names = {place.location for place in self._places.values()}
        return {name: digest_of(self._folder / name) for name in sorted(names)}

    def turn(self, block: OnnxBlock) -> None:
        """Matrices and filters that lie there in another order of axes are made of these."""
        calls = []
        for name, array in list(block.constants.items()):
            perm = STORED.get(array.ndim)
            if perm is None or self.take(array) is not None:
                continue
            there = np.ascontiguousarray(np.transpose(array, perm))
            if self.take(there) is not None:
                stored = block.names.fresh(f"{name}/stored")
                block.constants[stored] = there
                del block.constants[name]
                back = np.argsort(perm).tolist()
                calls.append(OnnxCall("Transpose", (stored,), (name,), {"perm": back}))
        block.calls[:0] = calls


def _digest(array: Array) -> tuple[str, bytes]:
    little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
    return array.dtype.name, sha256(little.data.cast("B") if array.size else b"").digest()


def _places(path: Path) -> Iterator[tuple[Any, ExternalPlace]]:
    raw, end = path.read_bytes(), 0
    graph = read_model(path).graph
    constants = [a.t for node in graph.node if node.op_type == "Constant" for a in node.attribute]
    for stored in (*constants, *graph.initializer):
        if not stored.dims:
            continue
        array = array_of_tensor(stored, path.parent)
        if array.nbytes < LEAST:
            continue
        said = {entry.key: entry.value for entry in stored.external_data}
        if said:
            start = int(said.get("offset", 0))
            yield _digest(array), ExternalPlace(said["location"], start, array.nbytes)
        elif stored.raw_data:
            start = raw.find(stored.raw_data, end)
            if start >= 0:
                end = start + len(stored.raw_data)
                yield _digest(array), ExternalPlace(path.name, start, array.nbytes)
