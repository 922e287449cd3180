"""A graph as a tree of rows: from results to what they read, each node once."""

from __future__ import annotations

from typing import NamedTuple

from ...ir.node import Node
from ..scene.scene import behind
from ..scene.view import View
from ..scene.wording import kind_of


class TreeRow(NamedTuple):
    """A node of the tree, and how far it is indented."""

    node: Node
    depth: int


def tree_of(view: View) -> list[TreeRow]:
    """The rows, results first, each followed by what it reads.

    What nothing is computed from (inputs, variables, constants) has no row. Where a node reads one
    thing that has no row yet, that follows at the same depth; where it reads more, they are
    indented. So a chain is not a staircase, however long it is.
    """
    rows: list[TreeRow] = []
    seen: set[Node] = set()
    stack = [TreeRow(n, 0) for n in reversed(_roots(view))]
    while stack:
        row = stack.pop()
        if row.node in seen:
            continue
        seen.add(row.node)
        rows.append(row)
        below = [t.node for t, _ in view.reads(row.node) if t.node in view.column]
        below = [n for n in dict.fromkeys(below) if n not in seen and _has_row(n)]
        depth = row.depth + (len(below) > 1)
        stack += [TreeRow(n, depth) for n in reversed(below)]
    return rows


def _has_row(node: Node) -> bool:
    return kind_of(node) == "op"


def _roots(view: View) -> list[Node]:
    """The results; then what nobody reads, in order."""
    asked = [behind(t)[0].node for t in view.results]
    read = {t.node for n in view.nodes for t, _ in view.reads(n)}
    ends = [n for n in view.nodes if n not in read]
    return [n for n in dict.fromkeys([*asked, *ends]) if n in view.column and _has_row(n)]
