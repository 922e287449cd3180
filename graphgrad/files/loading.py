"""`load`: what was saved, checked, without running any code of the file."""

from __future__ import annotations

import hashlib
import mmap as mapping
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..base.collector import collector_paused
from ..base.errors import FileError, GraphGradError, did_you_mean
from ..base.flags import truth, truth_if_given
from ..differentiate.travel.pickles import at_home, nested
from ..ir.flat import restore_graph
from ..ir.graph import Graph, restored
from ..ir.node import Tensor
from .arrays import StoredArrays
from .check import check_graph, check_tree
from .container import Buffer, StoredMember, checked, members_of
from .entries import EntryPoint, read_entry
from .registry import answered_by_registry, check_registered
from .regular import check_regular
from .rows import ColumnReader, Size
from .saving import GRAPH, KIND
from .tables import StoredTables
from .text import parse
from .values import read
from .versions import up_to_date

__all__ = ["GraphFile", "load"]


class GraphFile:
    """What gg.load returns.

    graph      the graph, with its values in graph.state
    functions  {name: EntryPoint}
    metadata   as it was given
    rules {name: "saved" or "registry"}: which rule is used where one was put by name
    version    of the format; made_by: what wrote the file
    digest     SHA-256 of its text, which knows the digest of each of its arrays

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "x.gg")
    >>> gg.save(path, gg.placeholder((), name="x").graph, metadata={"step": 3})
    >>> gg.load(path).metadata
    {'step': 3}
    """

    def __init__(
        self,
        graph: Graph,
        functions: dict[str, EntryPoint],
        metadata: Any,
        rules: dict[str, str],
        version: int,
        made_by: str,
        digest: str,
    ) -> None:
        self.graph = graph
        self.functions = functions
        self.metadata = metadata
        self.rules = rules
        self.version = version
        self.made_by = made_by
        self.digest = digest

    def __repr__(self) -> str:
        names = ", ".join(self.functions) or "none"
        return f"<file of {self.graph!r}, functions: {names}>"


@restored
@collector_paused
def load(
    path: str | os.PathLike[str],
    mmap: bool = True,
    rules: str = "saved",
    functions: Mapping[str, Any] | None = None,
    *,
    verify: bool | None = None,
) -> GraphFile:
    """Load a file written by gg.save. No code is run or imported.

    The loaded graph has the same gradients as the original, with the rules as they were saved.
    Types are inferred again and compared, so an op whose meaning has changed is an error.

    Parameters:
        path: the file.
        mmap: whether large arrays stay on the disk until they are needed; then the file may be
            replaced while they are in use, and must not be changed in place. False: all are read.
        rules: "saved": use the rules in the file; "registry": for rules that were put by name, use
            the rule that is registered under this name, if there is one; "check": use the rules in
            the file, and raise an error unless the registered rules build the same nodes.
        functions: {name: function} for Python functions that the graph calls and that are not
            registered with gg.register_function.
        verify: whether to check digests of arrays: None: arrays of up to 64 MB; True: all; False:
            none.

    Returns: a GraphFile.

    Raises: FileError, which names the file, the part and the reason, for input that is not such a
    file (nor any file: a directory, a device, a pipe), is damaged, is of a newer version, or does
    not mean here what it meant; OSError of the disk; ValueError for an unknown word in `rules`.

    >>> import os, tempfile
    >>> x = gg.placeholder((2,), name="x")
    >>> path = os.path.join(tempfile.mkdtemp(), "sum.gg")
    >>> gg.save(path, x.graph, functions={"sum": ([x], gg.sum(x))})
    >>> gg.load(path).functions["sum"]([1.0, 2.0])
    array(3.)
    """
    truth("mmap", mmap)
    truth_if_given("verify", verify)
    if rules not in ("saved", "registry", "check"):
        near = did_you_mean(str(rules), ["saved", "registry", "check"])
        raise ValueError(f'rules is "saved", "registry" or "check", got {rules!r}. {near}'.rstrip())
    with reading(path):
        opened = opened_file(path, mmap)
        document = text_of_file(opened, GRAPH, KIND)
        return _read(document, opened, rules, functions or {}, mmap, verify)


class Opened(NamedTuple):
    """A file with its members, and the digest of its text."""

    buffer: Buffer
    members: dict[str, StoredMember]


def opened_file(path: str | os.PathLike[str], mapped: bool) -> Opened:
    """A file, mapped or read, whose container is in order."""
    buffer: Any
    check_regular(path)
    with open(path, "rb") as file:
        if mapped and os.fstat(file.fileno()).st_size:
            buffer = memoryview(mapping.mmap(file.fileno(), 0, access=mapping.ACCESS_READ))
        else:
            buffer = file.read()
    return Opened(buffer, members_of(buffer))


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever is wrong in this block is wrong with the file."""
    try:
        yield
    except OSError:  # of the disk
        raise
    except Exception as error:
        said = str(error) if isinstance(error, GraphGradError) else f"it is broken: {error!r:.200}"
        raise FileError(f"{os.fspath(path)}: {said}") from error


def text_of_file(opened: Opened, name: str, kind: str) -> dict[str, Any]:
    """The document of a file, of the version that is read here."""
    if name not in opened.members:
        raise FileError(f"it has no {name}; it is not a file of graphgrad that holds a {kind}")
    try:
        raw = checked(opened.buffer, opened.members[name])
        return up_to_date(parse(raw), kind)
    except FileError as error:
        raise FileError(f"{name}: {error}") from error


def arrays_of(
    opened: Opened, document: dict[str, Any], mapped: bool, verify: bool | None
) -> StoredArrays:
    """The arrays of a file; FileError for members that are none."""
    names = document["arrays"]
    left = {k: v for k, v in opened.members.items() if not k.endswith(".json")}
    arrays = StoredArrays(opened.buffer, left, names, mapped=mapped, verify=verify)
    if left or len(opened.members) != len(names) + 1:
        other = next(iter(left), "another text")
        raise FileError(f"{other}: is not a member of such a file")
    return arrays


def _read(
    document: dict[str, Any],
    opened: Opened,
    rules: str,
    functions: Mapping[str, Any],
    mapped: bool,
    verify: bool | None,
) -> GraphFile:
    digest = hashlib.sha256(checked(opened.buffer, opened.members[GRAPH])).hexdigest()
    arrays = arrays_of(opened, document, mapped, verify)
    try:
        return _graph_file(document, arrays, rules, functions, digest)
    except Exception as error:
        if isinstance(error, FileError) and error.args[0].startswith("arrays/"):
            raise
        said = str(error) if isinstance(error, GraphGradError) else f"it is broken: {error!r:.200}"
        raise FileError(f"{GRAPH}: {said}") from error


def _graph_file(
    document: dict[str, Any],
    arrays: StoredArrays,
    rules: str,
    functions: Mapping[str, Any],
    digest: str,
) -> GraphFile:
    tables = StoredTables(document, arrays, dict(functions))
    columns = ColumnReader(tables)
    columns.marks.take(document["rules"])
    flats = columns.read(document["graphs"])
    check_tree(flats)
    graph = restore_graph(Graph(), nested(flats))
    check_graph(graph)
    if document["rules"]:
        at_home(graph)
    places = Size(document["graphs"][0])

    def tensor(ref: Any) -> Tensor:
        i, k = places.tensor(ref)
        return graph.nodes[i].outputs[k]

    entries = {k: read_entry(e, tensor, tables) for k, e in document["functions"].items()}
    report = dict.fromkeys(columns.marks.names, "saved")
    if rules == "registry":
        report |= answered_by_registry(graph)
    elif rules == "check":
        check_registered(graph)
    metadata = read(document["metadata"], tables)
    version, made_by = document["version"], str(document["made_by"])
    return GraphFile(graph, entries, metadata, report, version, made_by, digest)
