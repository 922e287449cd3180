"""What a command works on: the graph that `module:function` builds."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..base.errors import GraphError, GraphGradError, did_you_mean
from ..base.lazy import LazyModule
from ..base.tree import flatten
from ..compiled import CompiledFunction
from ..files.loading import GraphFile
from ..files.loading import load as load_file
from ..ir.graph import Graph, GraphScope
from ..ir.node import Node, Tensor
from .errors import TargetError, UserCodeError
from .reading import shown_reading

_onnx = LazyModule("graphgrad.onnx")

HELP = (
    "module:function or path/to/file.py:function; the function takes no arguments and returns a "
    "graph, tensors (any nesting), or a compiled function. Or a file that gg.save wrote, with "
    ":function for one of those it holds; or a model of ONNX, FILE.onnx"
)


class TargetGraph(NamedTuple):
    """A graph, and the tensors in question.

    graph     the graph
    outputs   what the function returned; for a graph, the user's tensors that nothing of the user's
              reads
    name      as the user wrote it
    is_graph  whether the function returned a graph
    """

    graph: Graph
    outputs: list[Tensor]
    name: str
    is_graph: bool = False


def add_target(parser: ArgumentParser, name: str = "target") -> None:
    """The positional argument."""
    parser.add_argument(name, metavar=name.upper(), help=HELP)


def load(name: str | TargetGraph) -> TargetGraph:
    """The graph that a name leads to, or that is there; TargetError where it leads to none.

    The function runs with a new graph open, so a function that only builds tensors does.
    UserCodeError for whatever the module or the function raises. A file that was saved is loaded.
    """
    if isinstance(name, TargetGraph):
        return name
    saved = _saved(name)
    if saved is not None:
        return saved
    function = function_of(name)
    with GraphScope(Graph("graph")), users_own(name):
        made = function() if callable(function) and not _is_answer(function) else function
    return _target(made, name)


def _saved(name: str) -> TargetGraph | None:
    """The graph in a file, with the tensors of one or all of its functions."""
    if name.endswith(".onnx"):
        return _of_onnx(name)
    where, _, function = name.rpartition(":")
    for path, wanted in ((name, ""), (where, function)):
        if not path.endswith(".py") and Path(path).is_file():
            with shown_reading(Path(path)):
                return _of_file(load_file(path), name, wanted)
    if name.endswith(".gg") or where.endswith(".gg"):
        raise TargetError(f"there is no file {name!r}")
    return None


def _of_onnx(name: str) -> TargetGraph:
    if not Path(name).is_file():
        raise TargetError(f"there is no file {name!r}")
    model = _onnx.load(name)
    return TargetGraph(model.graph, list(dict.fromkeys(model.outputs.values())), name)


def _of_file(file: GraphFile, name: str, wanted: str) -> TargetGraph:
    if wanted and wanted not in file.functions:
        near = did_you_mean(wanted, file.functions, f"It has {', '.join(file.functions)}.")
        raise TargetError(f"{name}: there is no function {wanted!r} in it. {near}".rstrip())
    entries = [file.functions[wanted]] if wanted else list(file.functions.values())
    outputs = dict.fromkeys(t for e in entries for t in flatten(e.outputs) if t is not None)
    tensors = list(outputs) or ends_of(file.graph.nodes)
    return TargetGraph(file.graph, tensors, name, is_graph=not wanted)


@contextmanager
def users_own(name: str) -> Iterator[None]:
    """What is raised in this block is not the command's fault."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise UserCodeError(f"{name} raised {type(error).__name__}") from error


def function_of(name: str) -> Any:
    """What module:function leads to; TargetError where it leads to nothing."""
    where, colon, attribute = name.rpartition(":")
    if not colon or not where or not attribute:
        raise TargetError(f"{name!r} is not module:function, nor file.py:function")
    module = _from_file(Path(where)) if where.endswith(".py") else _from_path(where)
    member: Any = module
    for part in attribute.split("."):
        if not hasattr(member, part):
            near = did_you_mean(part, [n for n in dir(member) if not n.startswith("_")])
            raise TargetError(f"{where} has no {part!r}. {near}".rstrip())
        member = getattr(member, part)
    return member


def _from_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise TargetError(f"there is no file {str(path)!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    with users_own(str(path)):
        spec.loader.exec_module(module)
    return module


def _from_path(name: str) -> Any:
    """The module, looked for in the current folder too."""
    sys.path.insert(0, "")
    try:
        with users_own(name):
            return importlib.import_module(name)
    except UserCodeError as error:
        missing = getattr(error.__cause__, "name", None)
        if not isinstance(error.__cause__, ModuleNotFoundError) or missing is None:
            raise
        if not f"{name}.".startswith(f"{missing}."):
            raise
        raise TargetError(f"there is no module {missing!r} here or installed") from error
    finally:
        sys.path.remove("")


def _is_answer(answer: Any) -> bool:
    return isinstance(answer, Graph | Tensor | CompiledFunction)


def _target(made: Any, name: str) -> TargetGraph:
    if isinstance(made, Graph):
        return TargetGraph(made, ends_of(made.nodes), name, is_graph=True)
    if isinstance(made, CompiledFunction):
        outputs = [t for t in flatten(made.outputs) if t is not None]
        raise_for = "a compiled function"
        graphs = {t.graph for t in outputs}
    else:
        try:
            outputs = [t for t in flatten(made) if t is not None]
        except GraphGradError:
            outputs = [made]
        raise_for = "tensors"
        graphs = {t.graph for t in outputs if isinstance(t, Tensor)}
    if not outputs or not all(isinstance(t, Tensor) for t in outputs):
        raise TargetError(f"{name} returned {made!r}, not a graph, tensors or a compiled function")
    if len(graphs) != 1:
        raise GraphError(f"{name} returned {raise_for} of {len(graphs)} graphs, expected one graph")
    (graph,) = graphs
    assert graph is not None  # what users hold is in a graph
    return TargetGraph(graph, outputs, name)


def ends_of(nodes: Iterable[Node]) -> list[Tensor]:
    """The tensors that the user built and nothing that the user built reads."""
    mine = [n for n in nodes if n.origin is None]
    read = {t for n in mine for t in n.inputs}
    return [t for n in mine if n.inputs for t in n.outputs if t not in read]
