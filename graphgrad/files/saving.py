"""`save`: a graph with its rules, values and functions in one file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..base.collector import collector_paused
from ..base.errors import FileError
from ..base.flags import truth
from ..base.version import __version__
from ..differentiate.travel.pickles import side_by_side
from ..differentiate.travel.storing import ORDER, Depth, stored_rules
from ..ir.flat import Flat, flatten_graph
from ..ir.graph import Graph
from ..ir.node import Node, Region
from ..ir.state import State
from ..ops.control import BodyGraph
from ..regions.boundary import unsettle
from ..regions.index import bodies_of
from .arrays import digests
from .atomic import write_atomically
from .columns import ColumnWriter
from .container import NewMember, crc_of, write
from .entries import entries_of, write_entry
from .tables import Tables
from .text import dump
from .values import Unwritten, written
from .versions import FORMAT, FUNCTIONS, VERSION

__all__ = ["save"]

GRAPH = "graph.json"
KIND = "graph"
MADE_BY = f"graphgrad {__version__}"


def save(
    path: str | os.PathLike[str],
    graph: Graph,
    functions: Mapping[str, Any] | None = None,
    metadata: Any = None,
    *,
    state: State | None = None,
    order: int = ORDER,
    full_paths: bool = False,
) -> None:
    """Write a graph into one file, with its rules, regions, values and named functions.

    Every rule is traced, including named rules, so that the file has the same meaning in a process
    without your code: for derivatives up to `order`, and at every order for rules that read only
    their site or open no region. The file contains no code. Equal graphs give equal bytes. Saving
    does not change the graph, and an interrupted save leaves the old file intact.

    Parameters:
        path: the file; an existing file is replaced when the new one is complete.
        graph: any graph except the body of a loop or conditional.
        functions: {name: a compiled function, an EntryPoint, or (inputs, outputs)}, which gg.load
            returns under these names.
        metadata: any nesting of None, bools, numbers, strings, arrays, lists, tuples and dicts.
        state: the state with the values of variables; by default that of the graph.
        order: the highest order of derivatives of the loaded graph, if rules open regions; a higher
            order is an error.
        full_paths: whether to store full paths of source files, which describe this machine;
            otherwise only file and folder.

    Returns: nothing.

    Raises: FileError for what no file can hold, with its place: a py_function without a name (see
    gg.register_function), an attribute of a region that is not a plain value; what a rule raises
    when it is traced; ValueError for an order below 1; GraphError for a body or inside an open
    region; OSError of the disk.

    >>> import os, tempfile
    >>> x = gg.placeholder((), name="x")
    >>> with gg.override_gradient(lambda site, dy: 10 * dy):
    ...     y = gg.exp(x)
    >>> path = os.path.join(tempfile.mkdtemp(), "exp.gg")
    >>> gg.save(path, x.graph, functions={"slope": ([x], gg.gradients(y, x))})
    >>> gg.load(path).functions["slope"](0.0)
    array(10.)
    """
    truth("full_paths", full_paths)
    tables = Tables(full_paths=full_paths)
    parts = parts_of(graph, functions or {}, metadata, state, tables, order)
    write_atomically(Path(path), lambda file: write(file, parts))


@collector_paused
def parts_of(
    graph: Graph,
    functions: Mapping[str, Any],
    metadata: Any,
    state: State | None,
    tables: Tables,
    order: int,
) -> list[tuple[NewMember, int]]:
    """The members of the file of a graph, each with its CRC-32."""
    _check(graph, state)
    if type(order) is not int or order < 1:
        raise ValueError(f"order is how often rules are differentiated, from 1, got {order!r}")
    columns = ColumnWriter(tables)
    with unsettled(graph):
        flat = _flat(graph, state, order)
        graphs = columns.written(side_by_side(flat))
    entries = entries_of(functions, graph)
    try:
        said = written(metadata, tables)
    except Unwritten as error:
        raise FileError(f"the metadata cannot be saved: it has {error}") from None
    document = {
        "graphs": graphs,
        "rules": columns.marks.rules,
        "functions": {name: write_entry(name, e, tables) for name, e in entries.items()},
        "metadata": said,
    }
    return file_parts(GRAPH, KIND, document, tables)


def file_parts(
    name: str, kind: str, document: dict[str, Any], tables: Tables
) -> list[tuple[NewMember, int]]:
    """The members of a file: its text, which knows the digests of its arrays, and these."""
    arrays = [(part, *digests(part)) for part in tables.arrays.parts()]
    head = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "made_by": MADE_BY,
        "needs": sorted(tables.needs | ({FUNCTIONS} if tables.functions else set())),
        "packages": dict(sorted(tables.packages.items())),
        "arrays": [sha for _, _, sha in arrays],
        "files": tables.files,
        "types": tables.types,
        "ops": tables.ops,
    }
    text = NewMember(name, [dump(head | document)])
    return [(text, crc_of(text)), *((part, crc) for part, crc, _ in arrays)]


def _check(graph: Any, state: Any) -> None:
    if not isinstance(graph, Graph):
        raise FileError(f"save() takes a graph, got {graph!r:.120}; a tensor's is t.graph")
    if state is not None and not isinstance(state, State):
        raise FileError(f"save() takes the values of a State, got state={state!r:.120}")
    if isinstance(graph, BodyGraph):
        raise FileError(f"{graph!r} is a body of control flow; save the graph around it")
    for each in bodies_of(graph):
        for region in each.regions:
            if region.open:
                raise FileError(f"{region!r} is still open; save the graph after its block")


def _flat(graph: Graph, state: State | None, order: int) -> Flat:
    """The graph, flat, with its rules traced, and values of this state."""
    random = graph.seed, graph.draws, graph.state.runs
    rules = stored_rules(graph, None, Depth(0, order))

    def carry(rule: Any, owner: Node | Region) -> Any:
        return rules.get(owner, rule)

    flat = flatten_graph(graph, carry)
    flat["random"] = random
    if state is not None:
        values = state.values()
        flat["state"] = {v.index: a for v, a in values.items() if v.graph is graph}
        flat["random"] = graph.seed, random[1], state.runs
    return flat


@contextmanager
def unsettled(graph: Graph) -> Iterator[None]:
    """What is settled in this block to be written down is not settled for the graph by it.

    The same of the numbers of draws: a rule that is traced draws some.
    """
    draws = graph.draws
    open_still = [r for each in bodies_of(graph) for r in each.regions if r.settled is None]
    try:
        yield
    finally:
        graph.draws = draws
        unsettle(open_still)
