"""How much there is of what: nodes, parameters, operations and bytes, by op, scope and region."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..ir.node import Node, Region, RuleCall
from ..ir.notebook import show_as_text
from ..ir.types import Dim, TensorType
from .scene.columns import column_title
from .scene.escape import shortened, visible
from .scene.flops import costs_something, flops_of
from .scene.operators import is_parameter
from .scene.view import View, view_of
from .scene.wording import call_title, kind_of, region_title

__all__ = ["Summary", "summary"]

_NAME = 60


@dataclass(eq=False)
class Count:
    """Sums over some nodes.

    nodes       how many
    parameters  elements of the variables among them, and of weights from a file
    flops       floating point operations; see inspect.flops for what counts as one
    bytes       of what they write: outputs that are not views of something else
    exact       False where a length is unknown, and counted as 1, or an op's operations are
    """

    nodes: int = 0
    parameters: int = 0
    flops: int = 0
    bytes: int = 0
    exact: bool = True

    def add(self, other: Count) -> None:
        """Add the count of one more node."""
        self.nodes += other.nodes
        self.parameters += other.parameters
        self.flops += other.flops
        self.bytes += other.bytes
        self.exact = self.exact and other.exact

    def to_dict(self) -> dict[str, Any]:
        """The fields by name."""
        return {
            "nodes": self.nodes,
            "parameters": self.parameters,
            "flops": self.flops,
            "bytes": self.bytes,
            "exact": self.exact,
        }


@dataclass(eq=False)
class Summary:
    """What summary() returns; printed, it is a table.

    total    of all nodes
    columns  by part: "forward", "backward", ...
    ops      by op type, most operations first
    scopes   by name scope, inner ones included; a gradient counts where its forward node does
    regions  by marked region, by title
    rules    by spliced rule, by title
    unknown  op types whose operations are not known

    >>> found = gg.summary(gg.exp(gg.constant([1.0, 2.0])))
    >>> found.ops["Exp"].flops
    2
    """

    title: str
    total: Count = field(default_factory=Count)
    columns: dict[str, Count] = field(default_factory=dict)
    ops: dict[str, Count] = field(default_factory=dict)
    scopes: dict[str, Count] = field(default_factory=dict)
    regions: dict[str, Count] = field(default_factory=dict)
    rules: dict[str, Count] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain dicts."""
        tables: dict[str, Any] = {"title": self.title, "total": self.total.to_dict()}
        for name, table in self._tables():
            tables[name] = {key: count.to_dict() for key, count in table.items()}
        return tables | {"unknown": list(self.unknown)}

    def _tables(self) -> Iterator[tuple[str, dict[str, Count]]]:
        for name in ("columns", "ops", "scopes", "regions", "rules"):
            yield name, getattr(self, name)

    def __str__(self) -> str:
        rows = [("", "nodes", "parameters", "flops", "bytes"), _row("total", self.total)]
        for name, table in self._tables():
            if table:
                rows += [("", "", "", "", ""), (f"by {_BY[name]}", "", "", "", "")]
                rows += [_row(key, count) for key, count in table.items()]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = [visible(self.title) or "graph"]
        for first, *rest in rows:
            numbers = "  ".join(f"{x:>{w}}" for x, w in zip(rest, widths[1:], strict=True))
            lines.append(f"{first:<{widths[0]}}  {numbers}".rstrip())
        if self.unknown:
            lines.append(f"operations not known: {', '.join(map(visible, self.unknown))}")
        if not self.total.exact:
            lines.append(">= where a length is unknown (counted as 1) or operations are")
        return "\n".join(lines)


_BY = {
    "columns": "part",
    "ops": "op type",
    "scopes": "scope",
    "regions": "region",
    "rules": "spliced rule",
}


def summary(shown: Any, lengths: Mapping[str | None, int] | None = None) -> Summary:
    """Counts of nodes, parameters, floating point operations and bytes of what can be shown.

    Parameters:
        shown: as for to_dot.
        lengths: {name: number} of named lengths; under None, that of every other unknown one.
            Lengths that stay unknown count as 1, and the sums they are in are shown as `>=`.

    Returns: a Summary.

    Raises: TypeError for what cannot be shown; GraphError for tensors of different graphs.

    >>> x = gg.placeholder(("N", 2))
    >>> gg.summary(gg.exp(x), {"N": 3}).total
    Count(nodes=2, parameters=0, flops=6, bytes=48, exact=True)
    """
    view = view_of(shown, collapse="none", bodies=False)
    known = dict(lengths or {})
    totals = Summary(view.title)
    unknown: dict[str, None] = {}
    for node in view.present:
        count, is_known = _count(node, known)
        if not is_known:
            unknown[node.type] = None
        for counts, key in _places(view, node, totals):
            counts.setdefault(key, Count()).add(count)
        totals.total.add(count)
    by_cost = sorted(totals.ops.items(), key=lambda item: (-item[1].flops, -item[1].nodes, item[0]))
    totals.ops = dict(by_cost)
    totals.scopes = dict(sorted(totals.scopes.items()))
    totals.unknown = tuple(unknown)
    return totals


def _places(view: View, node: Node, totals: Summary) -> Iterator[tuple[dict[str, Count], str]]:
    yield totals.columns, column_title(view.column[node])
    yield totals.ops, node.type
    parts = view.scope[node]
    for k in range(len(parts)):
        yield totals.scopes, "/".join(parts[: k + 1])
    for mark in view.path[node]:
        if isinstance(mark, Region):
            yield totals.regions, region_title(mark)
        elif isinstance(mark, RuleCall):
            yield totals.rules, call_title(mark)


def _count(node: Node, lengths: Mapping[Any, int]) -> tuple[Count, bool]:
    """The count of one node, and whether its operations are known."""
    missing: list[Dim] = []

    def length(d: Dim) -> int:
        if isinstance(d, int):
            return d
        if d not in lengths and None not in lengths:
            missing.append(d)
        return lengths.get(d, lengths.get(None, 1))

    def elements(t: TensorType) -> int:
        size = 1
        for d in t.shape:
            size *= length(d)
        return size

    kind = kind_of(node)
    sizes = [elements(t.type) for t in node.outputs]
    flops = flops_of(node, length)
    written = 0
    if kind == "op" and not node.op.memory.view:
        written = sum(n * t.dtype.itemsize for n, t in zip(sizes, node.outputs, strict=True))
    parameters = sum(sizes) if is_parameter(node) else 0
    exact = flops is not None and not (missing and (written or parameters or costs_something(node)))
    return Count(1, parameters, flops or 0, written, exact), flops is not None


def _row(name: str, count: Count) -> tuple[str, str, str, str, str]:
    least = "" if count.exact else ">="
    shown = visible(shortened(name, _NAME))
    cost = f"{least}{count.flops:,}", f"{least}{count.bytes:,}"
    return (
        f"  {shown}" if name != "total" else name,
        f"{count.nodes:,}",
        f"{count.parameters:,}",
        *cost,
    )


show_as_text(Summary)
