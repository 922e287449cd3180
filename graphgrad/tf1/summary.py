"""Summaries: `tf.summary`. A FileWriter writes the scalars among them for TensorBoard.

It does so by the package tensorboardX, the extra `graphgrad[tensorboard]`.
"""

from __future__ import annotations

import os
import re
import time
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from socket import gethostname
from typing import Any

import numpy as np

import graphgrad as gg

from .create import apply, convert_to_tensor, name_scope
from .definition import define
from .graph import GraphKeys, Tensor, get_default_graph
from .shapes import TensorShape

__all__ = ["FileWriter", "FileWriterCache", "audio", "histogram", "image", "merge", "merge_all",
           "scalar", "tensor_summary", "text"]  # fmt: skip


def _recorded(run: Any, op: Any, *values: Any) -> Any:
    """One line per summary: its kind, its tag, its value."""
    lines = [f"{op.attrs['kind']}\t{op.attrs['tag']}\t{np.asarray(v).tolist()}" for v in values]
    return [np.array("\n".join(lines).encode(), object)]


def _merged(run: Any, op: Any, *values: Any) -> Any:
    return [np.array(b"\n".join(bytes(v.reshape(-1)[0]) for v in values), object)]


for _type, _host in {"ScalarSummary": _recorded, "MergeSummary": _merged}.items():
    define(_type, "values*:A", host=_host, dtype="string", infer=lambda i, a: TensorShape(()))


def _summary(kind: str, name: str, value: Any, collections: Any, shown: bool) -> Tensor:
    graph = get_default_graph()
    name = re.sub(r"[^-/\w.]", "_", name).lstrip("/")
    with name_scope(name) as scope:
        tag = scope.rstrip("/")
        values = [convert_to_tensor(value)] if shown else []
        made: Tensor = apply("ScalarSummary", *values, name=scope, kind=kind, tag=tag)
    for key in [GraphKeys.SUMMARIES] if collections is None else collections:
        graph.add_to_collection(key, made)
    return made


def scalar(name: str, tensor: Any, collections: Any = None, family: Any = None, **_: Any) -> Tensor:
    """A summary of a number."""
    return _summary("scalar", name, tensor, collections, True)


def histogram(name: str, values: Any, collections: Any = None, family: Any = None) -> Tensor:
    """A summary of numbers: noted by name, not written."""
    return _summary("histogram", name, values, collections, False)


def image(
    name: str, tensor: Any, max_outputs: int = 3, collections: Any = None, family: Any = None
) -> Tensor:
    """A summary of images: noted by name, not written."""
    return _summary("image", name, tensor, collections, False)


def audio(name: str, tensor: Any, sample_rate: Any, max_outputs: int = 3, collections: Any = None,
          family: Any = None) -> Tensor:  # fmt: skip
    """A summary of sounds: noted by name, not written."""
    return _summary("audio", name, tensor, collections, False)


def text(name: str, tensor: Any, collections: Any = None) -> Tensor:
    """A summary of text: noted by name, not written."""
    return _summary("text", name, tensor, collections, False)


def tensor_summary(name: str, tensor: Any, collections: Any = None, **_: Any) -> Tensor:
    """A summary of a tensor: noted by name, not written."""
    return _summary("tensor", name, tensor, collections, False)


def merge(inputs: Any, collections: Any = None, name: Any = None) -> Tensor:
    """Several summaries as one."""
    made: Tensor = apply("MergeSummary", *inputs, name=name or "Merge/MergeSummary")
    for key in collections or []:
        get_default_graph().add_to_collection(key, made)
    return made


def merge_all(key: Any = GraphKeys.SUMMARIES, scope: Any = None, name: Any = None) -> Any:
    """All summaries as one, or None where there are none."""
    found = get_default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None


def _tensorboard(module: str) -> Any:
    if find_spec("tensorboardX") is None:
        raise gg.TensorBoardError(
            "tf.summary.FileWriter needs the package tensorboardX to write scalars.\nInstall it "
            "with `pip install 'graphgrad[tensorboard]'`."
        )
    return import_module(f"tensorboardX.{module}")


class FileWriter:
    """Writes scalars for TensorBoard, into a file in a folder."""

    def __init__(self, logdir: Any = None, graph: Any = None, *_: Any, **__: Any) -> None:
        self._folder = logdir
        self._file: Any = None

    def get_logdir(self) -> Any:
        """The folder."""
        return self._folder

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write what a run gave for a summary. Raises TensorBoardError without tensorboardX."""
        if not isinstance(summary, bytes):
            return
        for line in summary.decode().split("\n"):
            kind, _, rest = line.partition("\t")
            tag, _, value = rest.partition("\t")
            if kind == "scalar":
                step = None if global_step is None else int(global_step)
                values = [{"tag": tag, "simple_value": float(value)}]
                self._write(step=step, summary={"value": values})

    def _write(self, **fields: Any) -> None:
        event = _tensorboard("proto.event_pb2").Event
        if self._file is None:
            self._file = _tensorboard("record_writer").RecordWriter(os.fspath(self._free()))
            self._write(file_version="brain.Event:2")
        self._file.write(event(wall_time=time.time(), **fields).SerializeToString())

    def _free(self) -> Path:
        """A path for a file of events that is not there yet."""
        folder = Path(self._folder)
        folder.mkdir(parents=True, exist_ok=True)
        start = f"events.out.tfevents.{int(time.time()):010d}.{gethostname()}.{os.getpid()}"
        return next(p for k in count() if not (p := folder / f"{start}.{k}").exists())

    def add_graph(self, *_: Any, **__: Any) -> None:
        """Nothing."""

    add_run_metadata = add_event = add_meta_graph = add_graph

    def flush(self) -> None:
        """Write what waits."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Write what waits, and end; what comes later goes into another file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    reopen = flush


class FileWriterCache:
    """One writer for each folder."""

    _writers: dict[str, FileWriter] = {}

    @classmethod
    def get(cls, logdir: Any) -> FileWriter:
        """The writer of a folder."""
        return cls._writers.setdefault(os.fspath(logdir), FileWriter(logdir))
