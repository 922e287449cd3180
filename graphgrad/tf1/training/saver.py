"""Savers: the values of variables in files, by name."""

from __future__ import annotations

import os
import re
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

import graphgrad as gg

from ..errors import NotFoundError
from ..graph import GraphKeys, get_default_graph

__all__ = [
    "CheckpointState", "NewCheckpointReader", "Saver", "checkpoint_exists", "get_checkpoint_state",
    "latest_checkpoint", "list_variables", "load_checkpoint", "load_variable",
]  # fmt: skip

SUFFIX = ".index"


class Saver:
    """Saves and restores variables, all of them by default, by the names of their ops.

    var_list     variables, or {name in the file: variable}
    max_to_keep  how many files are kept; None or 0 keeps all
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: Any = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: Any = None,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: Any = None,
    ) -> None:
        self._reshape, self._keep = reshape, max_to_keep
        if var_list is None:
            graph = get_default_graph()
            var_list = graph.get_collection(GraphKeys.GLOBAL_VARIABLES)
            var_list += graph.get_collection(GraphKeys.SAVEABLE_OBJECTS)
        if not var_list and not allow_empty and not defer_build:
            raise ValueError("No variables to save")
        self._variables = (
            dict(var_list) if isinstance(var_list, dict) else {v.op.name: v for v in var_list}
        )
        self._saved: list[str] = []

    @property
    def last_checkpoints(self) -> list[str]:
        """The files that are kept, oldest first."""
        return list(self._saved)

    def save(
        self,
        sess: Any,
        save_path: Any,
        global_step: Any = None,
        latest_filename: Any = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str:
        """Write a file; the path with the step behind it."""
        path = os.fspath(save_path)
        if global_step is not None:
            step = global_step if isinstance(global_step, int | np.integer) else sess.run(
                global_step)  # fmt: skip
            path = f"{path}-{int(step)}"
        values = sess.run({n: v.op.name + ":0" for n, v in self._variables.items()})
        folder = os.path.dirname(path)
        if folder and not os.path.isdir(folder):
            raise ValueError(f"Parent directory of {path} doesn't exist, can't save.")
        _write(path, values)
        self._saved = [p for p in self._saved if p != path] + [path]
        if self._keep:
            for old in self._saved[: -self._keep]:
                Path(old + SUFFIX).unlink(missing_ok=True)
            self._saved = self._saved[-self._keep :]
        if write_state:
            _write_state(folder, latest_filename, self._saved)
        return path

    def restore(self, sess: Any, save_path: Any) -> None:
        """Give variables the values of a file."""
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        path = os.fspath(save_path)
        if not checkpoint_exists(path):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        values = _read(path)
        found = {}
        for name, v in self._variables.items():
            if name not in values:
                raise NotFoundError(None, None, f"Key {name} not found in checkpoint {path}")
            array = values[name].astype(v.dtype.base_dtype.numpy)
            if self._reshape and v.shape.is_fully_defined():
                array = array.reshape(v.shape.as_list())
            if not v.shape.is_compatible_with(array.shape):
                raise ValueError(
                    f"{name} has shape {array.shape} in {path}, the variable {v.shape}"
                )
            found[sess.graph.get_operation_by_name(v.op.name)] = array
        sess._commit(found)

    def set_last_checkpoints(self, last_checkpoints: Any) -> None:
        """Say which files are kept."""
        self._saved = list(last_checkpoints)

    def as_saver_def(self) -> Any:
        """Not there."""
        raise NotImplementedError("a Saver has no description: make it anew")

    def export_meta_graph(self, *_: Any, **__: Any) -> Any:
        """Not there."""
        raise NotImplementedError("meta graphs are not there: keep the program that builds the "
                                  "graph, and restore its variables")  # fmt: skip


def _write(path: str, values: dict[str, Any]) -> None:
    graph = gg.Graph()
    with graph.as_default():
        for i, value in enumerate(values.values()):
            gg.variable(np.asarray(value), name=f"v{i}")
    gg.save(path + SUFFIX, graph, metadata={"names": list(values)})


def _read(path: str) -> dict[str, Any]:
    loaded = gg.load(path + SUFFIX)
    held = loaded.graph.state.as_dict()
    return {name: np.asarray(held[f"v{i}"]) for i, name in enumerate(loaded.metadata["names"])}


def _write_state(folder: str, name: Any, paths: list[str]) -> None:
    lines = [f'model_checkpoint_path: "{os.path.basename(paths[-1])}"']
    lines += [f'all_model_checkpoint_paths: "{os.path.basename(p)}"' for p in paths]
    Path(folder or ".", name or "checkpoint").write_text("\n".join(lines) + "\n")


class CheckpointState:
    """What a folder says of its files."""

    def __init__(self, latest: str, paths: list[str]) -> None:
        self.model_checkpoint_path = latest
        self.all_model_checkpoint_paths = paths


def get_checkpoint_state(checkpoint_dir: Any, latest_filename: Any = None) -> Any:
    """What a folder says of its files, or None."""
    file = Path(checkpoint_dir, latest_filename or "checkpoint")
    if not file.exists():
        return None
    found = re.findall(r'(\w+): "(.*)"', file.read_text())
    paths = [str(Path(checkpoint_dir, p)) for _, p in found]
    return CheckpointState(paths[0], paths[1:]) if paths else None


def latest_checkpoint(checkpoint_dir: Any, latest_filename: Any = None) -> str | None:
    """The newest file of a folder, or None."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not checkpoint_exists(state.model_checkpoint_path):
        return None
    return str(state.model_checkpoint_path)


def checkpoint_exists(checkpoint_prefix: Any) -> bool:
    """Whether there is such a file."""
    return bool(glob(glob_safe(os.fspath(checkpoint_prefix)) + SUFFIX))


def glob_safe(path: str) -> str:
    """A path as a pattern of itself."""
    return re.sub(r"([\[*?])", r"[\1]", path)


class NewCheckpointReader:
    """Reads a file by name."""

    def __init__(self, filepattern: Any) -> None:
        self._values = _read(os.fspath(filepattern))

    def get_tensor(self, name: str) -> Any:
        """The value of a name."""
        return self._values[name]

    def has_tensor(self, name: str) -> bool:
        """Whether a name is there."""
        return name in self._values

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """{name: shape}."""
        return {n: list(a.shape) for n, a in self._values.items()}


load_checkpoint = NewCheckpointReader


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """The value of a name in a file, or in the newest one of a folder."""
    return _reader(ckpt_dir_or_file).get_tensor(name)


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """(name, shape) of all that is in a file."""
    return sorted(_reader(ckpt_dir_or_file).get_variable_to_shape_map().items())


def _reader(path: Any) -> NewCheckpointReader:
    return NewCheckpointReader(latest_checkpoint(path) if os.path.isdir(path) else path)
