"""TensorBoard: a graph as an event file for its graph page, by the package tensorboardX."""

from __future__ import annotations

import os
import re
import time
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

from ...base.errors import GraphGradError
from ...ir.node import Node
from ...ir.types import TensorType
from ..scene.boxes import Box
from ..scene.escape import shortened, visible
from ..scene.scene import behind
from ..scene.view import View, view_of
from ..scene.wording import Lines, about, local_name, site_name

__all__ = ["TensorBoardError", "write_tensorboard"]

_WRONG = re.compile(r"[^A-Za-z0-9_.\-]+")
_NAME_LIMIT, _TEXT_LIMIT = 80, 400
_DTYPES = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}
"""The numbers of TensorFlow's DataType."""


class TensorBoardError(GraphGradError, ImportError):
    """The package tensorboardX is missing."""


def write_tensorboard(folder: str | os.PathLike[str], shown: Any, **options: Any) -> Path:
    """Write what can be shown as an event file into a folder.

    `tensorboard --logdir FOLDER` then shows it on its graph page: forward and backward part,
    scopes, regions and spliced rules as boxes to open, and of each node its types, attributes, the
    user's line, and what it is derived from.

    Parameters:
        folder: is made if it is not there.
        shown: as for to_dot.
        **options: hide, bypassed, made_by, as of to_dot.

    Returns: the file's path.

    Raises: TensorBoardError without the extra `graphgrad[tensorboard]`; what to_dot raises.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gg.write_tensorboard(folder, gg.constant(1.0)).name.startswith("events.out.tfevents")
    True
    """
    graph = _GraphDef(view_of(shown, bodies=False, **{"collapse": "none"} | options)).made()
    events, records = _module("proto.event_pb2"), _module("record_writer")
    Path(folder).mkdir(parents=True, exist_ok=True)
    path = _free(Path(folder))
    writer = records.RecordWriter(os.fspath(path))
    now = time.time()
    for event in (
        events.Event(wall_time=now, file_version="brain.Event:2"),
        events.Event(wall_time=now, graph_def=graph.SerializeToString()),
    ):
        writer.write(event.SerializeToString())
    writer.close()
    return path


def _module(name: str) -> Any:
    if find_spec("tensorboardX") is None:
        raise TensorBoardError(
            "write_tensorboard needs the package tensorboardX.\nInstall it with "
            "`pip install 'graphgrad[tensorboard]'`."
        )
    return import_module(f"tensorboardX.{name}")


def _free(folder: Path) -> Path:
    """A path for an event file that is not there yet; readers take files in order of names."""
    start = f"events.out.tfevents.{int(time.time())}.graphgrad"
    return next(p for k in count() if not (p := folder / f"{start}.{k}").exists())


class _GraphDef:
    """The nodes under names that TensorBoard takes."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.names: dict[Node, str] = {}
        self.prefixes: dict[Box, str] = {}
        self.lines = Lines()
        self.taken: dict[str, int] = {}
        for node in view.nodes:
            self.names[node] = self._unique(self._prefix(view.box[node]) + _clean(local_name(node)))

    def made(self) -> Any:
        """The protocol buffer."""
        graphs, versions = _module("proto.graph_pb2"), _module("proto.versions_pb2")
        graph = graphs.GraphDef(versions=versions.VersionDef(producer=22))
        for node in self.view.nodes:
            self._add(node, graph.node.add())
        return graph

    def _add(self, node: Node, made: Any) -> None:
        view = self.view
        made.name, made.op = self.names[node], node.type
        for t in node.inputs:
            source = view.twins.get(behind(t)[0].node, behind(t)[0].node)
            if source in self.names:
                name = self.names[source]
                made.input.append(name if t.index == 0 else f"{name}:{behind(t)[0].index}")
        made.input.extend(f"^{self.names[c]}" for c in node.controls if c in self.names)
        for i, row in enumerate(about(node, self.lines)):
            self._say(made, f"about_{i}", row)
        for name, value in node.attrs.items():
            self._say(made, name, repr(value))
        rows = {
            "pass": view.made_by.get(node, ""),
            "status": view.status.get(node, ""),
            "bypassed": "default gradient, not used" if node in view.bypassed else "",
        }
        for name, value in rows.items():
            if value:
                self._say(made, name, value)
        for t in node.outputs:
            _shape(made.attr["_output_shapes"].list.shape.add(), t.type)
        if node.outputs:
            made.attr["dtype"].type = _DTYPES.get(node.outputs[0].dtype.name, 0)

    def _say(self, made: Any, name: str, text: str) -> None:
        made.attr[_clean(name)].s = visible(shortened(text, _TEXT_LIMIT)).encode()

    def _prefix(self, box: Box) -> str:
        prefix = self.prefixes.get(box)
        if prefix is None:
            around: list[Box] = []
            at: Box | None = box
            while at is not None and at not in self.prefixes:
                around.append(at)
                at = at.parent
            prefix = "" if at is None else self.prefixes[at]
            for inner in reversed(around):
                prefix = self.prefixes[inner] = f"{prefix}{_clean(_box_name(inner))}/"
        return prefix

    def _unique(self, name: str) -> str:
        unique = name
        while unique in self.taken:
            self.taken[name] += 1
            unique = f"{name}_{self.taken[name]}"
        self.taken[unique] = 0
        return unique


def _box_name(box: Box) -> str:
    """`override_ste_0`, `spliced_ste_0`: without the lines, which stand on the nodes."""
    owner: Any = box.owner
    if box.kind == "region":
        return f"override_{owner.name}_{owner.index}"
    if box.kind == "rule":
        return f"spliced_{owner.rule}_{site_name(owner).lstrip('#')}"
    if box.kind == "bypass":
        return f"bypassed_{site_name(owner.call).lstrip('#')}"
    return box.title


def _clean(text: str) -> str:
    """A name of letters, digits and _.- that begins with a letter or digit."""
    cleaned = _WRONG.sub("_", shortened(text, _NAME_LIMIT)).lstrip("_-.")
    return cleaned or "unnamed"


def _shape(made: Any, type: TensorType) -> None:
    for d in type.shape:
        name = visible(shortened(d, _NAME_LIMIT)) if isinstance(d, str) else ""
        made.dim.add(size=d if isinstance(d, int) else -1, name=name)
