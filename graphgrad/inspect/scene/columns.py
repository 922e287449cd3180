"""The column of a node: what the user built, its gradients, what was built from gradients, ...

Column 0 is what the user built, column 1 its gradients. What the user built from gradients is
column 2, gradients of that or of gradients column 3, and so on: even columns are the user's, odd
ones derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ...ir.graph import Graph
from ...ir.node import Node, RuleCall, Tensor
from .wording import kind_of, site_of

Reads = Callable[[Node], Sequence[tuple[Tensor, bool]]]


def columns_of(nodes: Sequence[Node], reads: Reads) -> dict[Node, int]:
    """The column of each node, in two passes: all that one rule call built stays together."""
    column: dict[Node, int] = {}
    lowest: dict[RuleCall, int] = {}
    first = _first_of_sweeps(nodes)
    order = _with_sites(nodes, reads, first)
    for _ in range(2):
        for node in order:
            origin = node.origin
            number = 0 if origin is None else _after(_column_of(origin, column))
            if node in first:
                number = max(number, column.get(first[node], 0))
            for t, _residual in reads(node):
                number = max(number, _from_input(column.get(t.node, 0), origin is None))
            if isinstance(origin, RuleCall):
                number = max(number, lowest.get(origin, 0))
                lowest[origin] = number
            column[node] = number
        if not lowest and not first:
            break
    _move_constants(nodes, column)
    return {n: column[n] for n in nodes} if len(order) > len(nodes) else column


def column_title(column: int) -> str:
    """What stands on a column."""
    if column < 2:
        return "backward" if column else "forward"
    if column % 2 == 0:
        return "built from gradients" + ("" if column == 2 else f", {column // 2}")
    return f"backward, order {column // 2 + 1}"


def column_mark(column: int) -> str:
    """The same in a letter or two: F, B, F2, B2."""
    return f"{'FB'[column % 2]}{column // 2 + 1 if column > 1 else ''}"


def _first_of_sweeps(nodes: Sequence[Node]) -> dict[Node, Node]:
    """Derived node -> the first one of the sweep that built it, which says of which order that is.

    What ignores its dy, or reads nothing but the forward part, cannot tell itself. A sweep goes
    from the outputs down: one that is derived of something later than what is before it begins
    another sweep.
    """
    graphs = dict.fromkeys(n.graph for n in nodes if n.origin is not None)
    return {n: f for g in graphs if g is not None for n, f in _sweeps_of(g) if n is not f}


def _sweeps_of(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """The derived nodes of a graph, each with the first one of its sweep."""
    first: Node | None = None
    place = 0
    for node in graph.nodes:
        origin = node.origin
        if origin is None:
            first = None
            continue
        if isinstance(origin, Node) and origin.graph is graph:
            first = None if origin.index > place else first
            place = origin.index
        first = first or node
        yield node, first


def _with_sites(nodes: Sequence[Node], reads: Reads, first: Mapping[Node, Node]) -> list[Node]:
    """The nodes, and before each one what it was derived from although that is not shown.

    So what began the sweep that built it.

    The sum of a gradient is differentiated, say, and only the result of that asked for. What was
    built before the first gradient is forward in any case, and not looked at.
    """
    start: dict[Graph | None, int] = {}
    visited = dict.fromkeys(nodes, True)
    order: list[Node] = []
    for node in nodes:
        stack = _hidden_sites(node, visited, start, first)
        while stack:
            one = stack[-1]
            if one in visited:
                stack.pop()
                order += [] if visited[one] else [one]
                visited[one] = True
                continue
            visited[one] = False  # it follows when all that it reads has been looked at
            around = [t.node for t, _ in reads(one)]
            stack += [n for n in around if n not in visited and _is_late(n, start)]
            stack += _hidden_sites(one, visited, start, first)
        order.append(node)
    return order


def _hidden_sites(
    node: Node,
    visited: Mapping[Node, bool],
    start: dict[Graph | None, int],
    first: Mapping[Node, Node],
) -> list[Node]:
    site = None if node.origin is None else site_of(node.origin)
    known = [n for n in (site, first.get(node)) if isinstance(n, Node)]
    return [n for n in known if n not in visited and _is_late(n, start)]


def _is_late(node: Node, start: dict[Graph | None, int]) -> bool:
    """Whether a node of a graph was built after a first derived one."""
    graph = node.graph
    if graph is None:
        return False
    if graph not in start:
        derived = (n.index for n in graph.nodes if n.origin is not None)
        start[graph] = next(derived, len(graph.nodes))
    return node.index > start[graph]


def _move_constants(nodes: Sequence[Node], column: dict[Node, int]) -> None:
    """The user's constants go to the first of the user's columns that reads them."""
    readers: dict[Node, int] = {}
    for node in nodes:
        for t in node.inputs:
            if kind_of(t.node) == "constant" and t.node.origin is None:
                readers[t.node] = min(column[node], readers.get(t.node, column[node]))
    column.update((n, c) for n, c in readers.items() if c % 2 == 0 and n in column)


def _column_of(origin: Node | RuleCall, column: Mapping[Node, int]) -> int:
    """The column of what was differentiated; by the order of derivation where it is not shown."""
    site = site_of(origin)
    if isinstance(site, Node) and site in column:
        return column[site]
    order = 0
    while site is not None and site.origin is not None:
        order += 1
        site = site_of(site.origin)
    return max(0, 2 * order - 1)


def _after(column: int) -> int:
    return column + 1 if column % 2 == 0 else column + 2


def _from_input(column: int, user: bool) -> int:
    if user:
        return column + column % 2
    return column + 1 if column and column % 2 == 0 else column
