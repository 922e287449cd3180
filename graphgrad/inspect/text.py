"""A listing for terminals: every node once, in boxes as in the picture."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, TextIO

from ..ir.node import Node, Region, Tensor
from ..regions.boundary import boundary_of
from .view import Owner, View, behind, view_of
from .wording import (
    Lines,
    kind_of,
    short_attrs,
    short_name,
    short_type,
    shortened,
    stamp_name,
    value_of,
    visible,
)

__all__ = ["graph_text", "print_graph"]

_WIDTH = 72


def print_graph(shown: Any, file: TextIO | None = None) -> None:
    """Print graph_text(shown), to standard output unless a file is given."""
    out = sys.stdout if file is None else file
    out.writelines(_rows(view_of(shown)))


def graph_text(shown: Any) -> str:
    """A graph, or tensors (any nesting of them) with their ancestors, as an indented listing.

    One row for each node: `name: type = Op(what it reads)` and the user's line, or what it is the
    gradient of. Forward and backward parts stand apart; regions and spliced rules are indented
    under their titles. `~x` is the inside of a region, read by what was derived from the region.
    """
    return "".join(_rows(view_of(shown)))


def _rows(view: View) -> Iterator[str]:
    yield _summary(view) + "\n"
    lines = Lines()
    for column in view.columns:
        members = [n for n in view.nodes if view.column[n] == column.column]
        yield f"{column.title}\n"
        yield from _listed(members, view, lines)
    if view.results:
        yield f"results: {', '.join(_name(t) for t in view.results)}\n"


def _summary(view: View) -> str:
    calls = {o for path in view.path.values() for o in path if not isinstance(o, Region)}
    title = visible(view.title) or "graph"
    return f"{title}: {len(view.nodes)} nodes, {len(view.regions)} regions, {len(calls)} spliced"


def _listed(nodes: list[Node], view: View, lines: Lines) -> Iterator[str]:
    """The nodes in order; a title wherever a box is entered, again where one is come back to."""
    titles = _titles(view)
    here: tuple[Owner, ...] = ()
    seen: set[Owner] = set()
    for node in nodes:
        path = view.path[node]
        if path is not here:
            common = _common(here, path)
            for depth in range(common, len(path)):
                owner = path[len(path) - 1 - depth]
                again = " (continued)" if owner in seen else ""
                seen.add(owner)
                yield f"  {_indent(depth)}{titles[owner]}{again}\n"
            here = path
        left = f"  {_indent(len(path))}{_described(node)}"
        yield f"{left:<{_WIDTH}}  {visible(shortened(lines.why(node), 80))}".rstrip() + "\n"


def _titles(view: View) -> dict[Owner, str]:
    found: dict[Owner, str] = {}
    stack = list(view.columns)
    while stack:
        box = stack.pop()
        stack += box.boxes
        if box.owner is not None:
            found[box.owner] = visible(box.title) + _signature(box.owner)
    return found


def _signature(owner: Owner) -> str:
    if not isinstance(owner, Region) or owner.open:
        return ""
    boundary = boundary_of(owner)
    into, out = (", ".join(map(_name, ts)) for ts in (boundary.inputs, boundary.outputs))
    return f": ({shortened(into, 60)}) -> ({shortened(out, 60)})"


def _common(a: tuple[Owner, ...], b: tuple[Owner, ...]) -> int:
    """How many of the outermost boxes two places share."""
    count = 0
    for x, y in zip(reversed(a), reversed(b), strict=False):
        if x is not y:
            break
        count += 1
    return count


def _indent(depth: int) -> str:
    return "| " * depth if depth <= 40 else f"| ...{depth} "


def _described(node: Node) -> str:
    kind = kind_of(node)
    types = ", ".join(short_type(t.type) for t in node.outputs)
    args = [f"~{_name(t)}" if residual else _name(t) for t, residual in map(behind, node.inputs)]
    if kind == "constant":
        args = [value_of(node)]
    elif attrs := short_attrs(node):
        args.append(attrs)
    args += [f"after {short_name(c)}" for c in node.controls]
    stamp = f' override "{stamp_name(node)}"' if node.stamp is not None else ""
    name, inside = shortened(short_name(node), 60), shortened(", ".join(args), 200)
    return visible(f"{name}: {types} = {node.type}({inside}){stamp}")


def _name(t: Tensor) -> str:
    name = shortened(short_name(t.node), 60)
    return visible(name if len(t.node.outputs) == 1 else f"{name}:{t.index}")
