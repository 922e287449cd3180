"""Graphs as columns: one list for each thing that is said of nodes.

It is the flat form (ir/flat.py), a graph and the bodies in it side by side, with places in tables
for ops and types. What few nodes have is two lists: the nodes, and what they have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from ..base.errors import FileError
from ..ir.flat import Flat
from ..ir.node import TENSORS, Twins
from ..ir.op import Op
from .marks import Home, MarkWriter
from .tables import Tables
from .values import Unwritten, written
from .versions import SITES

USUAL = {"kind": "scope", "options": ["error", "again", False, False], "attrs": {"dict": []}}
"""What is said of most regions, and left out."""


class ColumnWriter:
    """Writes flat graphs, and the rules that are marked in them."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.marks = MarkWriter(tables, self.written)

    def written(self, flats: Sequence[Flat]) -> list[dict[str, Any]]:
        """The columns of a graph and of the bodies in it."""
        shared = _in_several(flats)
        return [self._columns((flats, flat), shared) for flat in flats]

    def _columns(self, home: Home, shared: dict[Twins, int]) -> dict[str, Any]:
        _, flat = home
        own: list[Any] = []
        twins = {each: k for k, each in enumerate(_twins(flat))}
        columns = {
            "name": flat["name"],
            "ops": [self._op(op, own, i, flat) for i, op in enumerate(flat["ops"])],
            "own": own,
            "inputs": list(map(_refs, flat["inputs"])),
            "types": self._types(flat["types"]),
            "controls": _sparse(flat["controls"], list),
            "region": _sparse(flat["region"], int),
            "origin": _sparse(flat["origin"], _origin),
            "stamp": _sparse(flat["stamp"], lambda mark: self.marks.written(mark, home)),
            "scope": _runs(flat["scope"]),
            "line": self._lines(flat["position"]),
            "named": _sparse({i: name for name, i in flat["named"].items()}, str),
            "state": _sparse(flat["state"], self.tables.array),
            "random": [written(n, self.tables) for n in flat["random"]],
            "assumptions": written(flat["assumptions"], self.tables),
            "properties": written(flat["properties"], self.tables),
            "regions": [self._region(r, home, i) for i, r in enumerate(flat["regions"])],
            "scattered": flat["scattered"],
            "twins": [[node, i, twins[each]] for node, i, each in flat["twins"]],
            "twins_in_bodies": [[k, shared[each]] for each, k in twins.items() if each in shared],
            "again": list(map(list, flat["again"])),
            "healed": [[*form, list(of)] for *form, of in flat["healed"]],
            "calls": [[rule, list(site), _refs(outer)] for rule, site, outer in flat["calls"]],
            "bodies": [
                {"graph": b["graph"], "captures": list(map(_refs, b["captures"]))}
                for b in flat["bodies"]
            ],
            "again_in_bodies": list(map(list, flat.get("again_in_bodies", ()))),
        }
        return {k: v for k, v in columns.items() if v or k in ("name", "ops", "inputs", "types")}

    def _op(self, op: Any, own: list[Any], node: int, flat: Flat) -> int:
        """The place of an op in the table; -1 - k is the k-th of those of this graph alone."""
        try:
            if isinstance(op, Op):
                return self.tables.op(op)
            own.append(self._own(op))
            return -len(own)
        except Unwritten as error:
            where = _where(flat["position"].get(node))
            raise FileError(f"it cannot be saved: node {node}{where} has {error}.") from None

    def _own(self, op: Any) -> Any:
        if op[0] == "residual":
            return {"residual": op[1]}
        _, cls, parts, attrs = op
        row = self.tables.row(cls, attrs)
        return {"op": row, "bodies": [[at, _refs(i), _refs(o)] for at, i, o in parts]}

    def _types(self, types: list[tuple[Any, ...]]) -> list[Any]:
        """For each node the type of its output, or a list of several or none."""
        place = self.tables.type_place
        return [place(ts[0]) if len(ts) == 1 else [place(t) for t in ts] for ts in types]

    def _lines(self, positions: dict[int, tuple[str, int]]) -> list[list[int]]:
        """Nodes, their source files, and the lines in these."""
        rows = [(i, *self.tables.line(at)) for i, at in sorted(positions.items())]
        return [list(column) for column in zip(*rows, strict=True)]

    def _region(self, region: dict[str, Any], home: Home, index: int) -> dict[str, Any]:
        settled, group = region["settled"], region["group"]
        try:
            attrs = written(region["attrs"], self.tables)
        except Unwritten as error:
            raise FileError(
                f"it cannot be saved: region {index}{_where(region['position'])} has an attribute "
                f"with {error}."
            ) from None
        if region["kind"] == TENSORS:
            self.tables.needs.add(SITES)
        fields = {
            "rule": self.marks.written(region["rule"], home),
            "kind": region["kind"],
            "parent": region["parent"],
            "origin": None if region["origin"] is None else _origin(region["origin"]),
            "line": self.tables.line(region["position"]),
            "attrs": attrs,
            "options": list(region["options"]),
            "pinned_inputs": _refs_or_none(region["pinned_inputs"]),
            "pinned_outputs": _refs_or_none(region["pinned_outputs"]),
            "settled": settled and list(map(_refs, settled)),
            "group": group and [group[0], _refs(group[1])],
        }
        return {k: v for k, v in fields.items() if v is not None and USUAL.get(k) != v}


def _where(position: tuple[str, int] | None) -> str:
    """A line, as it stands in an error."""
    return "" if position is None else f" ({PurePath(position[0]).name}:{position[1]})"


def _refs(refs: Any) -> list[Any]:
    """Tensors: the place of the node; with its own among the outputs unless it is the first."""
    return [i if not k else [i, k] for i, k in refs]


def _refs_or_none(refs: Any) -> list[Any] | None:
    return None if refs is None else _refs(refs)


def _origin(origin: tuple[str, int]) -> int:
    """The place of a node; -1 - k is the k-th call of a rule."""
    kind, at = origin
    return at if kind == "node" else -1 - at


def _sparse(values: dict[int, Any], form: Callable[[Any], Any]) -> list[list[Any]]:
    rows = sorted(values.items(), key=lambda row: row[0])
    return [[i for i, _ in rows], [form(v) for _, v in rows]] if rows else []


def _runs(scopes: dict[int, str]) -> list[list[Any]]:
    """Neighbours in one scope: the first, how many, the scope."""
    runs: list[list[Any]] = []
    for i, scope in sorted(scopes.items()):
        if runs and runs[-1][2] == scope and runs[-1][0] + runs[-1][1] == i:
            runs[-1][1] += 1
        else:
            runs.append([i, 1, scope])
    return runs


def _twins(flat: Flat) -> dict[Twins, None]:
    """What copies have in common: those with one of these are copies of one step."""
    return dict.fromkeys(each for _, _, each in flat["twins"])


def _in_several(flats: Sequence[Flat]) -> dict[Twins, int]:
    """What copies have in common that lie in several of these graphs, by number."""
    counts = Counter(each for flat in flats for each in _twins(flat))
    return {each: k for k, each in enumerate(t for t, count in counts.items() if count > 1)}
