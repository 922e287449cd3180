"""What became of a program of others: a record that opening fills, and a table of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ..base.errors import GraphError, GraphGradError, counted
from ..base.words import shortened, visible_lines
from ..ir.node import Node
from ..ir.types import TensorType

__all__ = ["OpenReport", "OpenedRow", "Tally"]


@dataclass(frozen=True)
class OpenedRow:
    """One kind of operation of the program.

    theirs  what it is called there: a primitive, an operator, or a function that stays whole
    ours    the types of the ops that it became, constants apart -> how many
    count   how often it occurs
    where   the line of the first
    why     why it cannot be opened

    >>> str(gg.interop.OpenedRow("tanh", {"Tanh": 2}, 2, "model.py:7"))
    "OpenedRow(theirs='tanh', ours={'Tanh': 2}, count=2, where='model.py:7', why='')"
    """

    theirs: str
    ours: Mapping[str, int]
    count: int
    where: str
    why: str = ""


class OpenReport:
    """What opening a program makes of it.

    rows     its operations, and what each became
    rules    its own rules, each of which becomes a region
    draws    its operations that draw random numbers
    missing  what cannot be opened; where there is anything, opening is an error
    weights  the variables: their names, by which they are found there, and their types
    writes   the names of those that the program writes, as batch normalisation its statistics

    >>> print(gg.interop.OpenReport([gg.interop.OpenedRow("tanh", {"Tanh": 2}, 2, "model.py:7")]))
    2 operations as 2 nodes
      count  theirs  ours  first at
          2  tanh    Tanh  model.py:7
    """

    def __init__(
        self,
        rows: Sequence[OpenedRow],
        rules: Sequence[OpenedRow] = (),
        draws: Sequence[OpenedRow] = (),
        missing: Sequence[OpenedRow] = (),
        weights: Mapping[str, TensorType] = MappingProxyType({}),
        writes: Sequence[str] = (),
    ) -> None:
        self.rows, self.rules, self.draws = tuple(rows), tuple(rules), tuple(draws)
        self.missing, self.weights = tuple(missing), dict(weights)
        self.writes = tuple(writes)

    def __str__(self) -> str:
        lines = [_summary(self)]
        lines += _table([("count", "theirs", "ours", "first at"), *map(_cells, self.rows)])
        for title, rows in (
            ("rules that become regions", self.rules),
            ("random numbers", self.draws),
        ):
            lines += [f"{title}:"] * bool(rows)
            lines += [f"  {r.theirs}: {counted(r.count, 'time')}, first at {r.where}" for r in rows]
        lines += ["weights:"] * bool(self.weights)
        lines += [f"  {name}: {type!r}" for name, type in self.weights.items()]
        lines += [f"writes: {', '.join(self.writes)}"] * bool(self.writes)
        lines += ["cannot be opened:"] * bool(self.missing)
        return visible_lines("\n".join([*lines, *map(refusal, self.missing)]))

    def __repr__(self) -> str:
        return f"<{_summary(self)}>"


def _summary(report: OpenReport) -> str:
    known = sum(row.count for row in report.rows)
    nodes = sum(sum(row.ours.values()) for row in report.rows)
    missing = sum(row.count for row in report.missing)
    without = f", {missing} cannot be opened" if missing else ""
    return f"{counted(known, 'operation')} as {counted(nodes, 'node')}{without}"


def _cells(row: OpenedRow) -> tuple[str, ...]:
    ours = ", ".join(name if n == row.count else f"{name} {n}" for name, n in row.ours.items())
    return str(row.count), row.theirs, shortened(ours, WIDTH) or "-", row.where


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with their first columns as wide as the widest cell; none below the heading: nothing."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join([row[0].rjust(widths[0]), *map(str.ljust, row[1:], widths[1:])]).rstrip()
        for row in (rows if len(rows) > 1 else ())
    ]


def refusal(row: OpenedRow) -> str:
    """A line about what cannot be opened."""
    why = f" ({row.why})" if row.why else ""
    return f"  {row.theirs}: {counted(row.count, 'time')}, first at {row.where}{why}"


WIDTH = 50
"""Characters of a cell of the table."""


class Tally:
    """Counts what becomes of a program, while it is built."""

    def __init__(self) -> None:
        self._rows: dict[str, OpenedRow] = {}
        self._rules: dict[str, OpenedRow] = {}
        self._draws: dict[str, OpenedRow] = {}
        self._missing: dict[tuple[str, str], OpenedRow] = {}
        self._told: set[Node] = set()
        self._error: GraphGradError | None = None

    def built(self, theirs: str, nodes: Iterable[Node], where: str, *, through: bool) -> None:
        """An operation became these nodes, those of operations within it apart.

        through: it is nothing but the operations in it, and no row of its own.
        """
        new = [node for node in nodes if node not in self._told]
        self._told.update(new)
        if not through:
            ours = Counter(node.type for node in new if node.type != "Constant")
            _count(self._rows, theirs, theirs, where, ours)

    def rule(self, name: str, where: str) -> None:
        """A rule became a region."""
        _count(self._rules, name, name, where)

    def drawn(self, theirs: str, where: str) -> None:
        """An operation draws random numbers."""
        _count(self._draws, theirs, theirs, where)

    def refused(
        self, theirs: str, where: str, why: str = "", error: GraphGradError | None = None
    ) -> None:
        """An operation cannot be opened; error: what is raised for it, where that is not the one
        of `check`."""
        self._error = self._error or error
        _count(self._missing, (theirs, why), theirs, where, {}, why)

    def report(self, weights: Mapping[str, TensorType], writes: Sequence[str] = ()) -> OpenReport:
        """What was counted."""
        missing = sorted(self._missing.values(), key=lambda row: row.theirs)
        known = [list(rows.values()) for rows in (self._rows, self._rules, self._draws)]
        return OpenReport(known[0], known[1], known[2], missing, weights, writes)

    def check(self, who: str, instead: str) -> None:
        """GraphError that names all that cannot be opened."""
        if self._error is not None:
            raise self._error
        if self._missing:
            rows = self.report({}).missing
            raise GraphError(
                f"{who} has no form for {len(rows)} of the operations:\n"
                + "\n".join(map(refusal, rows))
                + f"\n{instead}"
            )


def _count(
    rows: dict[Any, OpenedRow],
    key: Any,
    theirs: str,
    where: str,
    ours: Mapping[str, int] | None = None,
    why: str = "",
) -> None:
    row = rows.get(key, OpenedRow(theirs, {}, 0, where, why))
    sums = Counter(row.ours) + Counter(ours or {})
    rows[key] = replace(row, ours=dict(sums), count=row.count + 1)
