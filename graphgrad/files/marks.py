"""Marks as JSON: names as they are, rules as traces, each of which stands once in the file.

What a trace reads of the graph around, beyond the inputs and outputs of its site, stands with the
site. A rule that is opened in its own trace is `{"up": n}`: the rule n steps around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.errors import FileError
from ..differentiate.travel.pickles import side_by_side
from ..differentiate.travel.stored import Asked, BeyondStored, StoredRule, StoredTrace
from ..ir.flat import Flat
from ..regions.rules import Rule
from .tables import Tables, text_of
from .values import Unwritten, written

CLOSED = 1 << 30

Home = tuple[Sequence[Flat], Flat]
"""A flat graph, after a graph and the bodies in it that it is one of, side by side."""


class MarkWriter:
    """Writes marks, and the table of rules."""

    def __init__(
        self, tables: Tables, graphs: Callable[[Sequence[Flat]], list[dict[str, Any]]]
    ) -> None:
        self.rules: list[Any] = []
        self._tables = tables
        self._graphs = graphs
        self._places: dict[str, int] = {}
        self._known: dict[Rule, Any] = {}
        self._around: list[Rule] = []
        self._reached = CLOSED

    def written(self, mark: Any, home: Home) -> Any:
        """What stands for a mark of a flat graph."""
        if mark is None or isinstance(mark, str):
            return mark
        if not isinstance(mark, Rule):
            raise FileError(f"it cannot be saved: the rule {mark!r:.80} was not traced")
        if mark in self._around:
            place = self._around.index(mark)
            self._reached = min(self._reached, place)
            return {"up": len(self._around) - 1 - place}
        return self._known.get(mark) or self._rule(mark, home)

    def _rule(self, rule: Rule, home: Home) -> Any:
        """A place in the table, or all of it where it refers to a rule around it."""
        before, self._reached = self._reached, CLOSED
        self._around.append(rule)
        content, sites = self._content(rule, home)
        self._around.pop()
        if self._reached < len(self._around):
            self._reached = min(before, self._reached)
            row: dict[str, Any] = {"open": content}
        else:
            self._reached = before
            row = {"rule": self._place(content)}
            if not any(sites.values()):
                self._known[rule] = row
        return row | {k: v for k, v in sites.items() if v}

    def _place(self, content: Any) -> int:
        place = self._places.setdefault(text_of(content), len(self.rules))
        if place == len(self.rules):
            self.rules.append(content)
        return place

    def _content(self, rule: Rule, home: Home) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a rule is wherever it is put, and what it reads of this place."""
        contract = rule.contract
        content: dict[str, Any] = {
            "name": rule.name,
            "contract": contract and [contract.kind, self._value(contract.of, rule)],
            "linear": rule.linear,
            "line": self._tables.line(rule.position),  # type: ignore[arg-type]
        }
        sites = {}
        for kind, fn in (("fn", rule.fn), ("jvp", rule.jvp)):
            if fn is not None:
                content[kind], sites[f"{kind} here"] = self._function(fn, rule, home)
        return {k: v for k, v in content.items() if v is not None}, sites

    def _function(self, fn: Any, rule: Rule, home: Home) -> tuple[Any, Any]:
        if isinstance(fn, BeyondStored):
            return {"beyond": fn.order}, None
        if not isinstance(fn, StoredRule):
            raise FileError(f"it cannot be saved: {rule!r:.80} was not traced")
        traces: list[list[Any]] = []
        here: list[Any] = []
        for zeros, trace in fn.traces.items():
            if isinstance(trace, str):
                traces.append([sorted(zeros), trace])
                here.append(None)
            else:
                traces.append([sorted(zeros), self._trace(trace, rule)])
                here.append(_read_here(trace, home))
        content = {"named": True, "traces": traces} if fn.named else {"traces": traces}
        return content, here if any(here) else None

    def _trace(self, trace: StoredTrace, rule: Rule) -> dict[str, Any]:
        """Of a trace, what is the same wherever the rule is put."""
        graphs = self._graphs(side_by_side(trace.scratch))
        return {
            "graphs": graphs,
            "given": [None if ref is None else list(ref) for ref in trace.given],
            "captures": [
                [list(ref), kind] if kind == "home" else [list(ref), kind, *at]
                for ref, (kind, *at) in trace.captures
            ],
            "entries": [
                {"tensor": list(d)} if kind == "tensor" else {"value": self._value(d, rule)}
                for kind, d in trace.entries
            ],
            "told": sorted(trace.told),
            "partials": [list(p) for p in trace.partials],
            "by_home": trace.by_home,
        }

    def _value(self, value: Any, rule: Rule) -> Any:
        try:
            return written(value, self._tables)
        except Unwritten as error:
            raise FileError(f"it cannot be saved: {rule!r:.80} gives {error}.") from None


def _read_here(trace: StoredTrace, home: Home) -> dict[str, Any] | None:
    """Of a trace, what it refers to in the graph of its site; None: nothing."""
    refs = {
        "home": [[list(at[0]), at[1]] for _, (kind, *at) in trace.captures if kind == "home"],
        "extra": [list(ref) for ref in trace.extra],
        "asked": [_asked(each, home) for each in trace.asked],
    }
    return {k: v for k, v in refs.items() if v} or None


def _asked(asked: Asked, home: Home) -> list[Any]:
    """A step, what is around it, whether it is marked now as it was when it was traced.

    Then its body, and what was built once more of it in the trace.
    """
    same = _is_same(mark_in(home, asked), asked.mark)
    row = [asked.is_node, asked.index, asked.around, same]
    more = [list(asked.body), [[list(body), i] for body, i in asked.again]]
    return row + more if any(more) else row


def _is_same(now: Any, mark: Any) -> bool:
    return now is mark or (isinstance(mark, str) and now == mark)


def mark_in(home: Home, asked: Asked) -> Any:
    """The mark of a step of a flat graph, or of a body in it."""
    flats, flat = home
    for place in asked.body:
        flat = flats[flat["bodies"][place]["graph"]]
    return flat["stamp"].get(asked.index) if asked.is_node else flat["regions"][asked.index]["rule"]
