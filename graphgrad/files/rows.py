"""Columns as graphs: what `columns` wrote, with every place checked before it is followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from sys import intern
from typing import Any

from ..base.errors import FileError
from ..base.solving import Assumption
from ..ir.flat import Flat
from ..ir.node import TENSORS, Twins
from ..ir.types import TensorType
from ..ops.control import BodyGraph
from .columns import USUAL
from .stored_marks import MarkReader
from .tables import StoredTables, entry
from .values import read

Ref = tuple[int, int]


class ColumnReader:
    """Reads flat graphs, and the rules that are marked in them."""

    def __init__(self, tables: StoredTables) -> None:
        self.tables = tables
        self.marks = MarkReader(tables, self.read)

    def read(self, graphs: list[dict[str, Any]]) -> list[Flat]:
        """Flat graphs, side by side."""
        sizes = [Size(g) for g in graphs]
        bodies = [(i, b["graph"]) for i, g in enumerate(graphs) for b in g.get("bodies", ())]
        if sorted(body for _, body in bodies) != list(range(1, len(graphs))):
            raise FileError("a body of control flow is in no graph, or in several")
        if any(type(body) is not int or body <= graph for graph, body in bodies):
            raise FileError("a body of control flow is before the graph that it is in")
        for g, size in zip(graphs, sizes, strict=True):
            size.within = [sizes[b["graph"]] for b in g.get("bodies", ())]
        shared: dict[int, Twins] = {}
        flats = [self._flat(g, size, shared) for g, size in zip(graphs, sizes, strict=True)]
        self.marks.note_asked(flats)
        return flats

    def _flat(self, said: dict[str, Any], size: Size, shared: dict[int, Twins]) -> Flat:
        pairs = zip(said.get("bodies", ()), size.within, strict=True)
        bodies = [_body(b, size, inner) for b, inner in pairs]
        own = [self._own(op, size) for op in said.get("own", ())]
        twins = {
            number(k): shared.setdefault(number(n), Twins())
            for k, n in said.get("twins_in_bodies", ())
        }
        flat: Flat = {
            "name": text(said["name"]),
            "ops": self._ops(said["ops"], own),
            "inputs": _inputs(said["inputs"], size),
            "types": self._types(said["types"]),
            "controls": {i: [size.before(c, i) for c in cs] for i, cs in size.column("controls")},
            "region": {i: size.region(r) for i, r in size.column("region")},
            "origin": {i: size.origin(at, i) for i, at in size.column("origin")},
            "stamp": {},
            "scope": dict(size.scopes()),
            "position": dict(self._positions(said.get("line", ()), size)),
            "named": {text(name): i for i, name in size.column("named")},
            "state": {i: self._array(value) for i, value in size.column("state")},
            "random": tuple([number(read(n, self.tables)) for n in said["random"]]),
            "assumptions": _assumptions(read(said.get("assumptions", []), self.tables)),
            "properties": read(said.get("properties", []), self.tables),
            "scattered": [size.region(r) for r in said.get("scattered", ())],
            "regions": [self._region(r, size) for r in said.get("regions", ())],
            "twins": [
                (node is True, size.step(node, i), twins.setdefault(number(k), Twins()))
                for node, i, k in said.get("twins", ())
            ],
            "again": [
                (node is True, size.step(node, i), size.step(node, j))
                for node, i, j in said.get("again", ())
            ],
            "healed": [_healed(form, size) for form in said.get("healed", ())],
            "calls": [_call(call, size) for call in said.get("calls", ())],
            "bodies": bodies,
            "again_in_bodies": [_again(r, size) for r in said.get("again_in_bodies", ())],
        }
        self._mark(flat, said, size)
        return flat

    def _mark(self, flat: Flat, said: dict[str, Any], size: Size) -> None:
        """Put the marks in, which may refer to each other."""
        for region, r in zip(flat["regions"], said.get("regions", ()), strict=True):
            region["rule"] = self.marks.read(r.get("rule"), flat, size)
        for i, mark in size.column("stamp"):
            flat["stamp"][i] = self.marks.read(mark, flat, size)

    def _ops(self, places: list[Any], own: list[Any]) -> list[Any]:
        """Ops of the table, and those of the graph's own, at -1 and before."""
        _check_range(places, -len(own), len(self.tables.ops), "op")
        known = [*self.tables.ops, *reversed(own)]
        return [known[at] for at in places]

    def _own(self, said: Any, size: Size) -> Any:
        if "residual" in said:
            return "residual", size.region(said["residual"])
        name, revision, attrs = said["op"]
        cls = self.tables.op_class(name, revision)
        fields = self.tables.attrs(attrs, cls)
        if revision != cls.revision:
            fields = cls.from_revision(revision, fields).attrs
        if set(fields) != set(cls.fields):
            raise FileError(f"{name} has {sorted(fields)}, not {sorted(cls.fields)}")
        parts = []
        for at, inputs, outputs in said["bodies"]:
            body: Size = entry(size.within, at, "body")
            parts.append((at, body.tensors(inputs), body.tensors(outputs)))
        if not parts or not all(outputs for _, _, outputs in parts):
            raise FileError(f"{name} without a body, or with one that gives nothing")
        return "bodies", cls, parts, fields

    def _types(self, said: list[Any]) -> list[tuple[TensorType, ...]]:
        """For each node, the types of its outputs."""
        types = self.tables.types
        _check_range([at for at in said if type(at) is not list], 0, len(types), "type")
        single = [(t,) for t in types]
        several = self.tables.type_at
        return [
            tuple([several(at) for at in ats]) if type(ats) is list else single[ats] for ats in said
        ]

    def _positions(self, said: Any, size: Size) -> Iterator[tuple[int, tuple[str, int]]]:
        known: dict[tuple[Any, Any], Any] = {}
        for i, *at in zip(*said, strict=True):
            key = at[0], at[1]
            if key not in known:
                known[key] = self.tables.position(at)
            yield size.node(i), known[key]

    def _array(self, said: Any) -> Any:
        ((kind, inside),) = said.items()
        return self.tables.array(kind, inside)

    def _region(self, said: dict[str, Any], size: Size) -> dict[str, Any]:
        r = {**USUAL, **said}
        escape, order, late, allow_empty = r["options"]
        settled, group = r.get("settled"), r.get("group")
        attrs = read(r["attrs"], self.tables)
        if not isinstance(attrs, dict) or not all(isinstance(k, str) for k in attrs):
            raise FileError(f"{attrs!r:.80} are not attributes of a region")
        pins = r.get("pinned_inputs")
        if r["kind"] == TENSORS and not (
            pins and r.get("pinned_outputs") == pins and settled == [pins, pins]
        ):
            raise FileError(f"{pins!r:.80} are not what a site of tensors gives back")
        return {
            "rule": None,
            "kind": text(r["kind"]),
            "parent": None if r.get("parent") is None else size.region(r["parent"]),
            "origin": None if r.get("origin") is None else size.origin(r["origin"]),
            "position": self.tables.position(r.get("line")),
            "attrs": attrs,
            "options": (text(escape), text(order), bool(late), bool(allow_empty)),
            "pinned_inputs": _tensors_or_none(r.get("pinned_inputs"), size),
            "pinned_outputs": _tensors_or_none(r.get("pinned_outputs"), size),
            "settled": None if settled is None else [size.tensors(refs) for refs in settled],
            "group": None if group is None else (text(group[0]), size.tensors(group[1])),
        }


class Size:
    """How much there is of each thing in a graph that is read: what places are checked against.

    within  of the bodies in it
    """

    within: Sequence[Size] = ()

    def __init__(self, said: dict[str, Any]) -> None:
        self._said = said
        self.nodes = len(said["ops"])
        self.outputs = [len(ts) if type(ts) is list else 1 for ts in said["types"]]
        self.regions = len(said.get("regions", ()))
        self.calls = len(said.get("calls", ()))
        if len(self.outputs) != self.nodes or len(said["inputs"]) != self.nodes:
            raise FileError("its columns are not of one length")

    def body(self, at: Any) -> Size:
        """A body: by its place, or by those of bodies in one another."""
        body = self
        for place in at if type(at) is list else [at]:
            body = entry(body.within, place, "body")
        return body

    def node(self, at: Any) -> int:
        """The place of a node."""
        if type(at) is not int or not 0 <= at < self.nodes:
            raise FileError(f"there is no node {at!r:.40}; there are {self.nodes}")
        return at

    def before(self, at: Any, reader: int) -> int:
        """The place of a node that stands before its reader."""
        if self.node(at) >= reader:
            raise FileError(f"node {reader} is derived from node {at}, which is not before it")
        return int(at)

    def region(self, at: Any) -> int:
        """The place of a region."""
        if type(at) is not int or not 0 <= at < self.regions:
            raise FileError(f"there is no region {at!r:.40}; there are {self.regions}")
        return at

    def step(self, is_node: Any, at: Any) -> int:
        """The place of a node or region."""
        return self.node(at) if is_node is True else self.region(at)

    def tensor(self, ref: Any) -> Ref:
        """A tensor, by the place of its node and its own among the outputs."""
        i, k = ref if type(ref) is list and len(ref) == 2 else (ref, 0)
        if type(k) is not int or not 0 <= k < self.outputs[self.node(i)]:
            raise FileError(f"there is no tensor {ref!r:.40}")
        return i, k

    def tensors(self, refs: Any) -> tuple[Ref, ...]:
        """Several."""
        return tuple([self.tensor(r) for r in refs])

    def origin(self, at: Any, of: int | None = None) -> tuple[str, int]:
        """The place of a node, before the node `of` if it is one's, or of a call of a rule."""
        if type(at) is int and at < 0:
            if -1 - at >= self.calls:
                raise FileError(f"there is no call {-1 - at}; there are {self.calls}")
            return "call", -1 - at
        return "node", self.node(at) if of is None else self.before(at, of)

    def column(self, name: str) -> Iterator[tuple[int, Any]]:
        """What some nodes have, by node."""
        said = self._said.get(name)
        if said:
            nodes, values = said
            for i, value in zip(nodes, values, strict=True):
                yield self.node(i), value

    def scopes(self) -> Iterator[tuple[int, str]]:
        """The name scopes of nodes."""
        for first, count, scope in self._said.get("scope", ()):
            self.node(first + count - 1)
            for i in range(self.node(first), first + count):
                yield i, text(scope)


def _check_range(places: list[Any], first: int, end: int, what: str) -> None:
    """FileError for a place that is none."""
    kinds = set(map(type, places))
    if places and (kinds != {int} or min(places) < first or max(places) >= end):
        raise FileError(f"there are places of no {what} among {places!r:.60}; there are {end}")


def _inputs(said: list[Any], size: Size) -> list[tuple[Ref, ...]]:
    """What nodes read, each of nodes before it."""
    outputs = size.outputs
    rows: list[tuple[Ref, ...]] = []
    for reader, refs in enumerate(said):
        row = []
        for ref in refs:
            i, k = ref if type(ref) is list and len(ref) == 2 else (ref, 0)
            if not (type(i) is type(k) is int and 0 <= i < reader and 0 <= k < outputs[i]):
                raise FileError(f"node {reader} reads {ref!r:.40}, which is not before it")
            row.append((i, k))
        rows.append(tuple(row))
    return rows


def _tensors_or_none(refs: Any, size: Size) -> tuple[Ref, ...] | None:
    return None if refs is None else size.tensors(refs)


def _body(said: dict[str, Any], outer: Size, inner: Size) -> dict[str, Any]:
    captures = [(outer.tensor(o), inner.tensor(i)) for o, i in map(_pair, said["captures"])]
    return {"graph": said["graph"], "type": BodyGraph, "captures": captures}


def _pair(pair: Any) -> tuple[Any, Any]:
    outer, inner = pair
    return outer, inner


def _call(said: Any, size: Size) -> tuple[str, tuple[str, int], tuple[Ref, ...]]:
    rule, (kind, at), outer = said
    if kind not in ("node", "region"):
        raise FileError(f"{kind!r:.40} is neither node nor region")
    return text(rule), (kind, size.step(kind == "node", at)), size.tensors(outer)


def _healed(said: Any, size: Size) -> tuple[int, int, str, tuple[int, ...]]:
    first, end, name, of = said
    return size.node(first), size.node(end - 1) + 1, text(name), tuple(map(size.node, of))


def _again(said: Any, size: Size) -> tuple[bool, Any, int, Any, int]:
    node, new, i, first, j = said
    new_size, first_size = size.body(new), size.body(first)
    return (
        node is True,
        _place(new),
        new_size.step(node, i),
        _place(first),
        first_size.step(node, j),
    )


def _place(said: Any) -> Any:
    return tuple(said) if type(said) is list else said


def text(said: Any) -> str:
    """A string, the same object for all that are equal."""
    if type(said) is not str:
        raise FileError(f"{said!r:.40} is not a string")
    return intern(said)


def number(said: Any) -> int:
    """A integer."""
    if type(said) is not int:
        raise FileError(f"{said!r:.40} is not an integer")
    return said


def _assumptions(said: Any) -> tuple[Assumption, ...]:
    """What is stated of lengths; FileError for what states nothing."""
    if not isinstance(said, tuple) or not all(isinstance(row, tuple) for row in said):
        raise FileError(f"{said!r:.80} are not assumptions")
    return tuple([Assumption.checked(*row) for row in said])
