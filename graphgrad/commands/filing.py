"""`info`: what a file holds."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from ..base.errors import FileError, counted
from ..base.tree import flatten
from ..base.words import shortened, visible
from ..files.checkpoints import read_checkpoint
from ..files.loading import GraphFile, load, opened_file, reading
from ..files.saving import GRAPH
from ..ir.node import Tensor
from ..ir.types import type_of_array
from .reading import shown_reading


def info_arguments(parser: ArgumentParser) -> None:
    """FILE, and how much is checked."""
    parser.add_argument("file", metavar="FILE", type=Path, help="a file of gg.save or Checkpoints")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="read and check all arrays; by default they stay on disk",
    )


def info(options: Namespace) -> int:
    """A line for each thing: functions, rules, variables, metadata."""
    path: Path = options.file
    if not path.is_file():
        raise FileError(f"there is no file {str(path)!r}")
    with reading(path):
        is_graph = GRAPH in opened_file(path, mapped=True).members
    with shown_reading(path):
        if is_graph:
            rows = _of_graph(load(path, verify=options.verify))
        else:
            rows = _of_checkpoint(path, whole=options.verify)
    for row in [f"file: {path.stat().st_size} bytes", *rows]:
        print(visible(row))
    return 0


def _of_graph(file: GraphFile) -> list[str]:
    graph = file.graph
    rows = [
        f"version {file.version} of the format, made by {file.made_by}",
        f"digest: {file.digest}",
        f"graph {graph.name!r}: {counted(len(graph.nodes), 'node')}, "
        f"{counted(len(graph.regions), 'region')}",
    ]
    for name, entry in file.functions.items():
        outputs = [t for t in flatten(entry.outputs) if t is not None]
        writes = f", writes {_shown(list(entry.updates))}" if entry.updates else ""
        rows.append(f"function {name}({_shown(list(entry.inputs))}) -> {_shown(outputs)}{writes}")
    rows += [f"rule {name}: as saved" for name in file.rules]
    values = graph.state.values()
    for node in graph.nodes:
        if node.type == "Variable":
            what = "" if node in values else ", at its initial value"
            rows.append(f"variable {node.name}: {node.outputs[0].type!r}{what}")
    return rows + _metadata(file.metadata)


def _of_checkpoint(path: Path, *, whole: bool) -> list[str]:
    values, runs, metadata = read_checkpoint(path, whole=whole)
    rows = [f"checkpoint after {counted(runs, 'run')} with random draws"]
    rows += [f"variable {name}: {type_of_array(a)!r}" for name, a in values.items()]
    return rows + _metadata(metadata)


def _metadata(metadata: Any) -> list[str]:
    return [] if metadata is None else [f"metadata: {shortened(repr(metadata), 400)}"]


def _shown(tensors: list[Tensor]) -> str:
    return ", ".join(f"{t.name}: {t.type!r}" for t in tensors)
