"""Listings for terminals: every node once, as a tree of what reads what, or as it was built."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, TextIO

from ...base.ancestry import OUTSIDE
from ...ir.node import Node, Region, RuleCall, Tensor
from ...regions.boundary import boundary_of
from ..layout.colours import DIFF
from ..layout.labels import Labels
from ..layout.terminal import LEAST, fitted, width_of
from ..layout.tree import tree_of
from ..scene.boxes import BodyMark, Bypass, Mark, Path, unseen
from ..scene.columns import column_mark
from ..scene.escape import shortened, visible
from ..scene.overlay import number_text
from ..scene.scene import behind
from ..scene.view import View, view_of
from ..scene.wording import (
    call_title,
    kind_of,
    region_title,
    short_attrs,
    short_name,
    short_type,
    sites_on,
    stamp_name,
    value_of,
)

__all__ = ["graph_text", "print_graph"]

_WIDTH = 76
_WHY = 28
"""Columns of a row, and of the user's line at its end where rows are as wide as a terminal."""


def print_graph(
    shown: Any,
    file: TextIO | None = None,
    *,
    style: str = "tree",
    width: int | None = None,
    **options: Any,
) -> None:
    """Print graph_text(shown, ...).

    Parameters:
        shown: as for to_dot.
        file: standard output unless one is given.
        style: "tree" or "list", as for graph_text.
        width: columns; None: those of the terminal, or of $COLUMNS, where there are any.
        **options: those of graph_text.

    Returns: nothing.

    Raises: the errors of graph_text.

    >>> gg.print_graph(gg.constant(2.0, name="c"))
    graph: 1 node, 0 regions, 0 spliced
    ...
    """
    out = sys.stdout if file is None else file
    out.writelines(_text(shown, style, width_of(out) if width is None else width, options))


def graph_text(shown: Any, *, style: str = "tree", width: int | None = None, **options: Any) -> str:
    """A graph, or tensors (any nesting of them) with their ancestors, as rows of text.

    A row is `id name: type = Op(what it reads)` and the user's line, or what it is the gradient of.
    Before it: F or B for the forward or backward part, #0 for the inside of region 0, *#0 for what
    the rule of region 0 built. `~x` is the inside of a region, read by what was derived from it.

    Parameters:
        shown: as for to_dot.
        style: "tree": from the results to what they read; a node read more than once is printed
            once, and named by its id elsewhere. "list": in order of building, regions and spliced
            rules indented under their titles.
        width: columns that a row has, at least 40; what is longer goes on in the next, indented.
            None: as many as it takes.
        **options: as of to_dot: title, hide, overlay, failed, bypassed.

    Returns: the text.

    Raises: ValueError for another style; what to_dot raises.

    >>> x = gg.placeholder((2,), name="x")
    >>> print(gg.graph_text(gg.exp(x)))
    graph: 2 nodes, 0 regions, 0 spliced
    F n1 Exp_1: f64[2] = Exp(x) ...
    """
    return "".join(_text(shown, style, width, options))


def _text(shown: Any, style: str, width: int | None, options: dict[str, Any]) -> Iterator[str]:
    if style not in ("tree", "list"):
        raise ValueError(f'style is "tree" or "list", got {style!r}')
    if width is not None and width < LEAST:
        raise ValueError(f"a row has at least {LEAST} columns, got width={width!r}")
    writer = _TextWriter(view_of(shown, **{"collapse": "none"} | options))
    rows = _rows(writer, style)
    if width is None:
        yield from rows
        return
    writer.left = max(LEAST // 2, min(_WIDTH, width - _WHY))
    for row in rows:
        yield "".join(f"{line}\n" for line in fitted(row.rstrip("\n"), width, "      "))


def _rows(writer: _TextWriter, style: str) -> Iterator[str]:
    yield from writer.tree() if style == "tree" else writer.listing()


class _TextWriter:
    def __init__(self, view: View) -> None:
        self.view = view
        self.labels = Labels(view)
        self.titles: dict[Mark, str] = {}
        self.left = _WIDTH

    # --- both ------------------------------------------------------------------------------

    def _head(self) -> str:
        view = self.view
        title = visible(shortened(view.title, 120)) or "graph"
        failed = f"\nfailed: {visible(view.reason)}" if view.reason else ""
        return f"{title}: {view.counts()}{failed}\n"

    def _results(self) -> Iterator[str]:
        if self.view.results:
            yield f"results: {', '.join(_name(t) for t in self.view.results)}\n"

    def _title(self, mark: Mark) -> str:
        title = self.titles.get(mark)
        if title is None:
            if isinstance(mark, Region):
                title = region_title(mark) + _signature(mark)
            elif isinstance(mark, RuleCall):
                title = call_title(mark)
            elif isinstance(mark, BodyMark):
                title = f"{mark.word} of {short_name(mark.site)}{mark.often}"
            else:
                title = f"default gradient of {self._site_mark(mark.call)}, bypassed"
            title = self.titles[mark] = visible(title)
        return title

    def _row(self, left: str, node: Node) -> str:
        why = self.labels.lines.why(node)
        row = f"{left:<{self.left}}  {visible(shortened(why, 80))}"
        overlay = self.view.overlay
        if overlay is not None and node in overlay.values:
            row += f"  [{number_text(overlay.values[node])}]"
        if node in self.view.failed:
            row += "  <-- FAILED"
        return row.rstrip() + "\n"

    def _status(self, node: Node) -> str:
        mark = DIFF[self.view.status.get(node, "")][0]
        return f"{mark} " if mark else "  " if self.view.status else ""

    def _made(self, node: Node, args: list[str]) -> str:
        """`name: type = Op(args)` of a node."""
        types = shortened(", ".join(short_type(t.type) for t in self.view.outputs(node)), 120)
        if kind_of(node) == "constant":
            args = [value_of(node)]
        elif attrs := short_attrs(node):
            args = [*args, attrs]
        if node in self.view.nexts:
            args = [*args, f"next {_name(behind(self.view.nexts[node])[0])}"]
        args += [f"after {short_name(c)}" for c in node.controls]
        rule = shortened(stamp_name(node), 60) if node.stamp is not None else ""
        stamp = f' override "{rule}"' if rule else ""
        sites = sites_on(node)
        stamp += f" tensors {sites}" if sites else ""
        name, inside = shortened(short_name(node), 60), shortened(", ".join(args), 200)
        struck = "(not used) " if node in self.view.bypassed else ""
        return visible(f"{struck}{name}: {types} = {node.type}({inside}){stamp}")

    # --- in order of building ----------------------------------------------------------------

    def listing(self) -> Iterator[str]:
        """A title wherever a region or rule call is entered, again where one is come back to."""
        yield self._head()
        members: dict[int, list[Node]] = {}
        for node in self.view.nodes:
            members.setdefault(self.view.column[node], []).append(node)
        for column in self.view.columns:
            yield f"{column.title}\n"
            yield from self._listed(members[column.column])
        yield from self._results()

    def _listed(self, nodes: list[Node]) -> Iterator[str]:
        here: Path = OUTSIDE
        seen: set[Mark] = set()
        for node in nodes:
            marks = self.view.marks[node]
            if marks is not here:
                for depth in range(len(here.common(marks)), len(marks)):
                    mark = marks.up_to(depth + 1).item
                    again = " (continued)" if mark in seen else ""
                    seen.add(mark)
                    yield f"  {_indent(depth)}{self._title(mark)}{again}\n"
                here = marks
            args = [_arg(t, residual) for t, residual in map(behind, self.view.inputs(node))]
            left = f"{self._status(node)}  {_indent(len(marks))}{self._made(node, args)}"
            yield self._row(left, node)

    # --- as a tree -----------------------------------------------------------------------------

    def tree(self) -> Iterator[str]:
        """From the results down; at the end what nothing is computed from, and the marks."""
        yield self._head()
        rows = tree_of(self.view)
        width = max((len(self._margin(row.node)) for row in rows), default=0)
        for row in rows:
            margin = f"{self._margin(row.node):<{width}}"
            told = self._told(row.node)
            yield self._row(
                f"{margin} {_indent(row.depth)}{self._status(row.node)}{told}", row.node
            )
        leaves = [n for n in self.view.nodes if kind_of(n) in ("input", "variable")]
        if leaves:
            yield "inputs and variables\n"
        for node in leaves:
            margin = f"{self._margin(node):<{width}}"
            yield self._row(f"{margin} {self._status(node)}{self._told(node)}", node)
        yield "marks\n"
        for column in self.view.columns:
            yield f"  {column_mark(column.column)}: {column.title}\n"
        new = unseen(self.view.marks[n] for n in self.view.nodes)
        for mark in dict.fromkeys(m for marks in new for m in reversed(marks)):
            yield f"  {visible(self._site_mark(mark))}: {self._title(mark)}\n"
        yield from self._results()

    def _told(self, node: Node) -> str:
        args = [self._id_of(t, residual) for t, residual in map(behind, self.view.inputs(node))]
        return f"{self.view.id[node]} {self._made(node, args)}"

    def _id_of(self, t: Tensor, residual: bool) -> str:
        """How a row names what it reads: constants by value, inputs by name, others by id."""
        node = self.view.twins.get(t.node, t.node)
        kind = kind_of(node)
        if kind == "constant" and node._name is None:
            name = shortened(value_of(node), 30)
        elif kind in ("input", "variable") or node not in self.view.id:
            name = shortened(short_name(node), 40)
        else:
            name = self.view.id[node]
        name = name if len(node.outputs) < 2 else f"{name}:{t.index}"
        return f"~{name}" if residual else name

    def _margin(self, node: Node) -> str:
        marks = self.view.marks[node]
        inner = f" {self._site_mark(marks.item)}" if marks else ""
        return visible(column_mark(self.view.column[node]) + inner)

    def _site_mark(self, mark: Mark) -> str:
        """`#0` for a region, `*#0` for what its rule built, `/#0` for what that was instead of,
        `then n4` for a body of n4."""
        if isinstance(mark, Region):
            return f"#{mark.index}" if mark.group is None else shortened(mark.name, 20)
        if isinstance(mark, BodyMark):
            return f"{mark.word} {self.view.id.get(mark.site, mark.site.name)}"
        call = mark.call if isinstance(mark, Bypass) else mark
        site = call.site
        name = f"n{site.index}" if isinstance(site, Node) else self._site_mark(site)
        return f"{'/' if isinstance(mark, Bypass) else '*'}{name}"


def _signature(region: Region) -> str:
    if region.open:
        return ""
    boundary = boundary_of(region)
    into, out = (", ".join(map(_name, ts)) for ts in (boundary.inputs, boundary.outputs))
    return f": ({shortened(into, 60)}) -> ({shortened(out, 60)})"


def _indent(depth: int) -> str:
    return "| " * depth if depth <= 40 else f"| ...{depth} "


def _arg(t: Tensor, residual: bool) -> str:
    return f"~{_name(t)}" if residual else _name(t)


def _name(t: Tensor) -> str:
    name = shortened(short_name(t.node), 60)
    return visible(name if len(t.node.outputs) == 1 else f"{name}:{t.index}")
