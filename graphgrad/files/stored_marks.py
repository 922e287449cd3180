"""Marks from JSON: what `marks` wrote, as rules that build their traces anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ..base.errors import FileError
from ..differentiate.travel.pickles import nested
from ..differentiate.travel.stored import Asked, BeyondStored, StoredRule, StoredTrace
from ..ir.flat import Flat, restore_graph
from ..ir.graph import Graph
from ..regions.contracts import Contract
from ..regions.rules import Rule
from .check import check_graph, check_tree
from .marks import mark_in
from .tables import StoredTables, entry
from .values import read

Ref = tuple[int, int]


class Places(Protocol):
    """Knows which places there are in the graph of a site."""

    def tensor(self, ref: Any) -> Ref:
        """A tensor."""

    def region(self, at: Any) -> int:
        """A region."""

    def body(self, at: Any) -> Places:
        """A body in it, by those of bodies in one another."""

    def step(self, is_node: Any, at: Any) -> int:
        """A node or region."""


class MarkReader:
    """Reads the table of rules, and marks.

    names  the names under which rules of the file were put, with the mark of the first
    """

    def __init__(
        self, tables: StoredTables, graphs: Callable[[list[dict[str, Any]]], list[Flat]]
    ) -> None:
        self.names: dict[str, Rule] = {}
        self._tables = tables
        self._graphs = graphs
        self._rows: list[Any] = []
        self._ready: list[Rule | None] = []
        self._around: list[Rule] = []
        self._asked: list[tuple[Asked, Flat]] = []

    def take(self, rows: list[Any]) -> None:
        """Read the table, each rule after those that it refers to."""
        for row in rows:
            self._rows.append(row)
            self._ready.append(None if _reads_home(row) else self._rule(row, {}, None, None))

    def read(self, said: Any, home: Flat, places: Places) -> Any:
        """The mark of a step in a flat graph."""
        if said is None or isinstance(said, str):
            return said
        if not isinstance(said, dict):
            raise FileError(f"{said!r:.40} is not a mark")
        if "up" in said:
            if type(said["up"]) is not int or said["up"] < 0:
                raise FileError(f"there is no rule {said['up']!r:.40} steps around")
            return entry(self._around[::-1], said["up"], "rule around")
        if "open" in said:
            return self._rule(said["open"], said, home, places)
        at: Any = said.get("rule")
        ready = entry(self._ready, at, "rule")
        if ready is not None and len(said) == 1:
            return ready
        return self._rule(self._rows[at], said, home, places)

    def note_asked(self, flats: list[Flat]) -> None:
        """Tell what was asked of flat graphs, whose marks are all there, how that is marked."""
        there = set(map(id, flats))
        for asked, home in self._asked:
            if id(home) in there and asked.mark is AS_MARKED:
                asked.mark = mark_in((flats, home), asked)
        self._asked = [(a, home) for a, home in self._asked if id(home) not in there]

    def _rule(self, row: Any, here: dict[str, Any], home: Any, places: Any) -> Rule:
        rule = Rule.__new__(Rule)
        self._around.append(rule)
        linear, contract, name = row.get("linear"), row.get("contract"), row["name"]
        if not isinstance(name, str) or linear not in (None, True, False):
            raise FileError(f"{name!r:.40} is not a rule")
        rule.name, rule.linear = name, linear
        rule.contract = None if contract is None else self._contract(*contract)
        rule.position = self._tables.position(row.get("line"))
        rule.fn = self._function(row["fn"], name, here.get("fn here"), home, places)
        rule.jvp = None
        if "jvp" in row:
            rule.jvp = self._function(row["jvp"], name, here.get("jvp here"), home, places)
        self._around.pop()
        if getattr(rule.fn, "named", False):
            self.names.setdefault(name, rule)
        return rule

    def _contract(self, kind: Any, of: Any) -> Contract:
        return Contract(kind, read(of, self._tables))

    def _function(self, said: Any, name: str, here: Any, home: Any, places: Any) -> Any:
        if "beyond" in said:
            return BeyondStored(name, int(said["beyond"]))
        rule = StoredRule(name)
        rule.named = said.get("named") is True
        sites = [None] * len(said["traces"]) if here is None else here
        for (zeros, trace), site in zip(said["traces"], sites, strict=True):
            key = frozenset([int(z) for z in zeros])
            if isinstance(trace, str):
                rule.traces[key] = trace
            else:
                rule.traces[key] = self._trace(trace, site or {}, home, places)
        if frozenset() not in rule.traces:
            raise FileError(f"the rule {name!r:.60} has no trace")
        return rule

    def _trace(self, said: Any, here: dict[str, Any], home: Any, places: Any) -> StoredTrace:
        flats = self._graphs(said["graphs"])
        scratch = nested(flats)
        check_tree(flats)
        check_graph(restore_graph(Graph(), scratch))
        inside = TracePlaces(scratch)
        read_home = iter([_read(r, places) for r in here.get("home", ())])
        parts = {
            "scratch": scratch,
            "given": [None if ref is None else inside.tensor(ref) for ref in said["given"]],
            "captures": [_capture(c, inside, read_home) for c in said["captures"]],
            "entries": [self._entry(e, inside) for e in said["entries"]],
            "told": [int(i) for i in said["told"]],
            "partials": [_flags(p) for p in said["partials"]],
            "by_home": said["by_home"] is True,
            "extra": [places.tensor(ref) for ref in here.get("extra", ())],
            "asked": [self._asked_of(a, home, places, inside) for a in here.get("asked", ())],
        }
        if next(read_home, None) is not None:
            raise FileError("a site reads more of its graph than its rule")
        trace = StoredTrace.__new__(StoredTrace)
        trace.__dict__.update(parts)
        return trace

    def _entry(self, said: dict[str, Any], inside: TracePlaces) -> tuple[str, Any]:
        if "tensor" in said:
            return "tensor", inside.tensor(said["tensor"])
        return "value", read(said["value"], self._tables)

    def _asked_of(self, said: Any, home: Flat, places: Places, inside: TracePlaces) -> Asked:
        is_node, index, around, same, *more = said
        asked = Asked.__new__(Asked)
        asked.is_node = is_node is True
        if more:
            path, again = more
            places, asked.body = places.body(path), tuple(path)
            asked.again = [(tuple(at), inside.step(is_node, at, i)) for at, i in again]
        asked.index = places.step(is_node, index)
        asked.around = None if around is None else places.region(around)
        asked.mark = AS_MARKED if same is True else OTHERWISE
        self._asked.append((asked, home))
        return asked


class TracePlaces:
    """The places of a traced graph."""

    def __init__(self, flat: Flat) -> None:
        self._flat = flat
        self._outputs = [len(ts) for ts in flat["types"]]

    def step(self, is_node: Any, body: Any, at: Any) -> int:
        """A node or region of a body."""
        flat = self._flat
        for place in body:
            flat = entry(flat["bodies"], place, "body of a trace")["graph"]
        entry(flat["ops" if is_node is True else "regions"], at, "step of a trace")
        return int(at)

    def tensor(self, ref: Any) -> Ref:
        """A tensor."""
        i, k = ref
        size = entry(self._outputs, i, "node of a trace")
        if type(k) is not int or not 0 <= k < size:
            raise FileError(f"there is no tensor {ref!r:.40}")
        return i, k


def _otherwise(site: Any, *dys: Any) -> Any:
    """Stands for a mark that is not there any more."""
    raise FileError("a mark that was changed before the graph was saved")


AS_MARKED = Rule(_otherwise, "as marked")
OTHERWISE = Rule(_otherwise, "otherwise")


def _reads_home(row: Any) -> bool:
    """Whether a rule of the table is not whole without its site."""
    functions = [row[kind] for kind in ("fn", "jvp") if kind in row]
    traces = [t for fn in functions for _, t in fn.get("traces", ()) if isinstance(t, dict)]
    return any(kind == "home" for t in traces for _, kind, *_ in t["captures"])


def _read(said: Any, places: Places) -> tuple[Any, ...]:
    ref, region = said
    return "home", places.tensor(ref), None if region is None else places.region(region)


def _capture(said: Any, inside: TracePlaces, read_home: Any) -> tuple[Ref, tuple[Any, ...]]:
    ref, kind, *at = said
    if kind == "home":
        what = next(read_home, None)
        if what is None:
            raise FileError("a rule reads more of the graph of its site than is declared there")
        return inside.tensor(ref), what
    if kind not in ("input", "output") or type(at[0]) is not int or at[0] < 0:
        raise FileError(f"{said!r:.40} is not something that a trace can read")
    return inside.tensor(ref), (kind, at[0])


def _flags(said: Any) -> list[bool | None]:
    if not all(flag in (None, True, False) for flag in said):
        raise FileError(f"{said!r:.40} are not flags")
    return list(said)
