"""Checkpoints: the values of a graph's variables, from time to time, in a folder."""

from __future__ import annotations

import os
import re
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..base.collector import collector_paused
from ..base.errors import FileError, StateError
from ..base.processes import agreed
from ..ir.graph import Graph
from ..ir.node import Node
from ..ir.state import State
from ..ir.types import Array, type_of_array
from ..ops.sources import Variable
from .atomic import BEGINNING, write_atomically
from .container import write
from .loading import arrays_of, opened_file, reading, text_of_file
from .rows import number, text
from .saving import file_parts
from .tables import StoredTables, Tables
from .values import Unwritten, read, written
from .versions import is_newer

__all__ = ["Checkpoint", "Checkpoints"]

MEMBER = "checkpoint.json"
KIND = "checkpoint"
STALE = 3600.0
"""Seconds after which a file that is not complete is nobody's any more."""


class Checkpoint(NamedTuple):
    """What was resumed from: the step, what was given as metadata, the file.

    >>> import tempfile
    >>> v = gg.variable(1.0, name="v")
    >>> checkpoints = gg.Checkpoints(tempfile.mkdtemp())
    >>> checkpoints.save(2, v.graph)
    >>> checkpoints.resume(v.graph).path.name
    'step-000000000002.gg'
    """

    step: int
    metadata: Any
    path: Path


class Checkpoints:
    """A folder of checkpoints: the values of a graph's variables at its last steps.

    A checkpoint is either complete or absent, whenever the process ends. It does not contain the
    graph: to resume, build the graph again, with variables of the same names, shapes and dtypes.
        Random draws without a seed continue where they were.

    Parameters:
        folder: the folder, which is created if it does not exist.
        keep: the number of checkpoints to keep; None: all.

    Raises: ValueError for a keep that is not a number from 1.

    >>> import tempfile
    >>> v = gg.variable(1.0, name="v")
    >>> checkpoints = gg.Checkpoints(tempfile.mkdtemp())
    >>> v.graph.state[v] = 5.0
    >>> checkpoints.save(10, v.graph, metadata={"loss": 0.25})
    >>> v.graph.state[v] = 7.0
    >>> found = checkpoints.resume(v.graph)
    >>> found.step, found.metadata, gg.evaluate(v)
    (10, {'loss': 0.25}, array(5.))
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int | None = 3) -> None:
        if not (keep is None or (type(keep) is int and keep > 0)):
            raise ValueError(f"keep is how many checkpoints are kept, or None, got {keep!r}")
        self.folder = Path(folder)
        self.keep = keep

    @property
    def steps(self) -> list[int]:
        """The steps of which there is a checkpoint, in order."""
        entries = [*os.scandir(self.folder)] if self.folder.is_dir() else []
        matches = [(e, re.fullmatch(r"step-(\d{12})\.gg", e.name)) for e in entries]
        return sorted(int(m[1]) for e, m in matches if m and e.is_file())

    def path(self, step: int) -> Path:
        """The file of a step."""
        return self.folder / f"step-{step:012}.gg"

    def save(
        self, step: int, graph: Graph, state: State | None = None, *, metadata: Any = None
    ) -> None:
        """Write the values of all variables of a graph, all from one moment.

        Parameters:
            step: a number that goes up.
            graph: whose variables.
            state: where their values are; the graph's own by default.
            metadata: plain values, as for gg.save.

        Returns: nothing.

        Raises: TypeError for input that is not a graph; FileError where there are checkpoints of
        later steps, of another run, or for metadata that cannot be saved; OSError of the disk.
        """
        _check_graph("save(step, graph)", graph)
        if not isinstance(step, int | np.integer) or type(step) is bool or not 0 <= step < 10**12:
            raise FileError(f"a step is a number from 0, got {step!r}")
        step = int(step)
        if later := [s for s in self.steps if s > step]:
            raise FileError(
                f"{self.folder} has checkpoints of later steps, {later}, and this is step {step}: "
                "resume from them, or give each run its own folder"
            )
        parts = _parts(step, graph, graph.state if state is None else state, metadata)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path(step), lambda file: write(file, parts))
        self._prune()

    def _prune(self) -> None:
        """Remove what is not among the newest, and what a process that was ended left."""
        old = [] if self.keep is None else self.steps[: -self.keep]
        for path in map(self.path, old):
            path.unlink(missing_ok=True)
        for path in self.folder.glob(f"{BEGINNING}*"):
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - STALE:
                    path.unlink()

    def resume(self, graph: Graph, state: State | None = None) -> Checkpoint | None:
        """Take the values of the newest checkpoint that is whole.

        One that is damaged is put aside, under the name `*.damaged`, and a warning says so. Another
        process may save meanwhile, and remove old ones.

        Parameters:
            graph: whose variables get values.
            state: where they are put; the graph's own by default.

        Returns: a Checkpoint; None where there is none.

        Raises: StateError, which lists them all, for variables that are not those of the
        checkpoint: then no value changes; TypeError for input that is not a graph; FileError for
            one that a
        newer graphgrad has written, which stays where it is, where all were removed meanwhile, and
        where processes that run one program together do not see the same checkpoints; OSError of
        the disk.
        """
        _check_graph("resume(graph)", graph)
        self._check_seen()
        tried: list[int] = []
        gone: list[int] = []
        while left := [step for step in self.steps if step not in tried]:
            tried.append(step := left[-1])
            path = self.path(step)
            try:
                values, runs, metadata = read_checkpoint(path)
            except FileNotFoundError:  # another process has written newer ones, and removed it
                gone.append(step)
                continue
            except FileError as error:
                if is_newer(error):
                    raise
                aside = path.with_suffix(".damaged")
                os.replace(path, aside)
                warnings.warn(f"{error}\nIt is {aside} now.", stacklevel=2)
                continue
            into = graph.state if state is None else state
            into.turn.take(_put, into, _by_node(graph, values, path), runs)
            return Checkpoint(step, metadata, path)
        if gone:
            raise FileError(
                f"the checkpoints in {self.folder} were removed while they were read: steps {gone}"
            )
        return None

    def _check_seen(self) -> None:
        """FileError where this folder is another one for other processes."""
        seen = agreed(self.steps)
        if seen is not None:
            rows = "\n  ".join(f"process {i}: steps {steps}" for i, steps in enumerate(seen))
            raise FileError(
                f"the processes see different checkpoints in {self.folder}:\n  {rows}\n"
                "Process 0 writes them: the folder has to be on a disk that all of them read"
            )

    def __repr__(self) -> str:
        return f"<checkpoints in {str(self.folder)!r}: steps {self.steps}>"


def _check_graph(call: str, graph: object) -> None:
    if not isinstance(graph, Graph):
        raise TypeError(f"Checkpoints.{call} takes a Graph, got {graph!r}")


def _variables(graph: Graph) -> list[Node]:
    return [n for n in graph.nodes if type(n.op) is Variable]


@collector_paused
def _parts(step: int, graph: Graph, state: State, metadata: Any) -> Any:
    """The members of the file of a checkpoint."""
    tables = Tables()
    variables = _variables(graph)
    arrays = state.read(variables)
    try:
        said = written(metadata, tables)
    except Unwritten as error:
        raise FileError(f"the metadata cannot be saved: it has {error}") from None
    rows = [[v.name, tables.array(a)] for v, a in zip(variables, arrays, strict=True)]
    document = {"step": step, "runs": state.runs, "variables": rows, "metadata": said}
    return file_parts(MEMBER, KIND, document, tables)


@collector_paused
def read_checkpoint(path: Path, *, whole: bool = True) -> tuple[dict[str, Array], int, Any]:
    """Values by name, the number of runs, and the metadata of a checkpoint.

    whole: whether all of it is read and checked; else arrays stay on the disk.
    """
    with reading(path):
        opened = opened_file(path, mapped=not whole)
        document = text_of_file(opened, MEMBER, KIND)
        arrays = arrays_of(opened, document, mapped=not whole, verify=whole)
        tables = StoredTables(document, arrays, {})
        values = {}
        for name, said in document["variables"]:
            ((kind, inside),) = said.items()
            values[text(name)] = tables.array(kind, inside)
        return values, number(document["runs"]), read(document["metadata"], tables)


def _by_node(graph: Graph, values: dict[str, Array], path: Path) -> dict[Node, Array]:
    """Values by variable; StateError where these are others."""
    nodes = {v.name: v for v in _variables(graph)}
    rows = [f"{n} ({nodes[n].where}) is not in it" for n in nodes if n not in values]
    rows += [f"{n} is not a variable here" for n in values if n not in nodes]
    for name in nodes.keys() & values.keys():
        here, there = nodes[name].outputs[0].type, type_of_array(values[name])
        if here is not there:
            rows.append(f"{name} is {here!r} here ({nodes[name].where}) and {there!r} in it")
    if rows:
        raise StateError(
            f"{path} belongs to a different graph from {graph!r}:\n  " + "\n  ".join(sorted(rows))
        )
    return {nodes[name]: array for name, array in values.items()}


def _put(state: State, values: dict[Node, Array], runs: int) -> None:
    """All values at once, with the number of the run."""
    state.commit(values, runs - state.runs)
