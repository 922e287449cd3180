"""What changed between two graphs, or between two sets of tensors in one graph.

Nodes are matched by identity and provenance, never by isomorphism: a node is the same one if it is
the same object, or has the same given name, or was built at the same line as the same op, or was
derived by the same rule from the same node. So what is called the same is the same for a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..ir.node import Node
from ..ir.notebook import show_as_graph
from ..ir.region_tree import sites_at
from ..ir.residual import Residual
from .scene.matching import mark_twins, matched, reads_of
from .scene.subject import Subject, subject_of
from .scene.wording import Lines, short_attrs, short_type, visible

__all__ = ["Difference", "graph_diff"]


def graph_diff(before: Any, after: Any, *, title: str | None = None) -> Difference:
    """What was added, removed and changed from `before` to `after`.

    Tensors in one graph, such as [loss, *plain] and [loss, *overridden], compare two gradients of
    one forward part; programs compare what a pass did. Show the result with to_dot, to_svg or
    print.

    Parameters:
        before, after: what can be shown: graphs, programs, tensors (any nesting of them).
        title: what stands above it; None: their titles.

    Returns: a Difference.

    Raises: TypeError for what cannot be shown; GraphError for tensors of different graphs.

    >>> x = gg.constant(2.0)
    >>> y = gg.exp(x)
    >>> [node.type for node in gg.graph_diff(x, y).added]
    ['Exp']
    """
    return Difference(subject_of(before), subject_of(after), title)


class Difference:
    """What graph_diff() found.

    added    nodes that are only after
    removed  nodes that are only before
    changed  (before, after) of nodes whose op, attributes, types, region, rule or reads changed
    same     (before, after) of the others; the same object where one graph is compared

    >>> x = gg.constant(2.0)
    >>> y = gg.exp(x)
    >>> found = gg.graph_diff(x, y)
    >>> len(found.added), len(found.same)
    (1, 1)
    """

    def __init__(self, before: Subject, after: Subject, title: str | None = None) -> None:
        old, new = (_without_residuals(s.nodes) for s in (before, after))
        pairs = matched(old, new)
        twin = {a: b for b, a in pairs.items() if a is not b}
        kept = set(pairs.values())
        self.added = [n for n in new if n not in pairs]
        self.removed = [n for n in old if n not in kept]
        self.changed: list[tuple[Node, Node]] = []
        self.same: list[tuple[Node, Node]] = []
        for b in new:
            if (a := pairs.get(b)) is not None:
                why = a is not b and any(True for _ in _changes(a, b, twin))
                (self.changed if why else self.same).append((a, b))
        name = after.title if after.title == before.title else f"{before.title} -> {after.title}"
        self.title = name.strip(" ->") if title is None else title
        self._twin = twin
        self._marks = mark_twins(pairs)
        self._results = after.results
        self._after = new

    @property
    def _subject(self) -> Subject:
        """What is shown of it: what is after, with what was removed."""
        status = dict.fromkeys(self.added, "added") | dict.fromkeys(self.removed, "removed")
        status |= {b: "changed" for _, b in self.changed}
        status |= {b: "" for _, b in self.same}
        before = {b: a for a, b in (*self.changed, *self.same)}
        nodes = _merged(self._after, self.removed, self._twin)
        return Subject(self.title, nodes, self._results, self._twin, before, status, self._marks)

    def to_dict(self) -> dict[str, Any]:
        """Names: {"added": [...], "removed": [...], "changed": [{"before", "after", "what"}]}."""
        return {
            "added": [n.name for n in self.added],
            "removed": [n.name for n in self.removed],
            "changed": [
                {"before": a.name, "after": b.name, "what": list(_changes(a, b, self._twin))}
                for a, b in self.changed
            ],
            "same": len(self.same),
        }

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.removed or self.changed)

    def __str__(self) -> str:
        lines = Lines()
        rows = [
            f"{visible(self.title) or 'diff'}: {len(self.added)} added, {len(self.removed)} "
            f"removed, {len(self.changed)} changed, {len(self.same)} the same"
        ]
        rows += [f"- {_row(n, lines)}" for n in self.removed]
        rows += [f"+ {_row(n, lines)}" for n in self.added]
        for a, b in self.changed:
            rows.append(f"~ {_row(b, lines)}: {visible('; '.join(_changes(a, b, self._twin)))}")
        return "\n".join(rows)

    def __repr__(self) -> str:
        counts = len(self.added), len(self.removed), len(self.changed), len(self.same)
        return "<diff: {} added, {} removed, {} changed, {} the same>".format(*counts)


def _row(node: Node, lines: Lines) -> str:
    types = ", ".join(short_type(t.type) for t in node.outputs)
    return visible(f"{node.name}: {types} = {node.type}({short_attrs(node)})  {lines.why(node)}")


def _without_residuals(nodes: Iterable[Node]) -> list[Node]:
    return [n for n in nodes if type(n.op) is not Residual]


# --- what stands for what ---------------------------------------------------------------


def _merged(
    after: Sequence[Node], removed: Sequence[Node], twin: Mapping[Node, Node]
) -> list[Node]:
    """What is after, and after the last thing it reads each node that was removed."""
    place = {n: i for i, n in enumerate(after)}
    for node in removed:
        reads = [place.get(twin.get(t.node, t.node), -1) for t in reads_of(node)]
        place[node] = max(reads, default=-1)
    behind_it = {n: k for k, n in enumerate(removed)}
    return sorted([*after, *removed], key=lambda n: (place[n], behind_it.get(n, -1)))


# --- what changed -----------------------------------------------------------------------------


def _changes(a: Node, b: Node, twin: dict[Node, Node]) -> Iterator[str]:
    """In words, how a node differs from what it was."""
    if a.op is not b.op and (a.type != b.type or not _same_attrs(a, b)):
        yield f"{a.op!r} -> {b.op!r}" if a.type == b.type else f"{a.type} -> {b.type}"
    types = [short_type(t.type) for t in a.outputs], [short_type(t.type) for t in b.outputs]
    if types[0] != types[1]:
        yield f"{', '.join(types[0])} -> {', '.join(types[1])}"
    marks = _mark(a), _mark(b)
    if marks[0] != marks[1]:
        yield f"{marks[0] or 'no override'} -> {marks[1] or 'no override'}"
    old = [(twin.get(t.node, t.node), t.index) for t in reads_of(a)]
    new = [(t.node, t.index) for t in reads_of(b)]
    if old != new:
        gone = [n.name for n, _ in (Counter(old) - Counter(new))]
        come = [n.name for n, _ in (Counter(new) - Counter(old))]
        now, was = ", ".join(come) or "in another order", ", ".join(gone)
        yield f"reads {now}" + (f" instead of {was}" if was else "")


def _same_attrs(a: Node, b: Node) -> bool:
    return repr(a.op) == repr(b.op)


def _mark(node: Node) -> str:
    """The rules that a node is marked with."""
    names = []
    region = node.region
    while region is not None:
        names.append(f"override {region.name!r}")
        region = region.parent
    if node.stamp is not None:
        names.append(f"stamp {getattr(node.stamp, 'name', node.stamp)!r}")
    names += [f"tensors {site.name!r}" for t in node.outputs for site in sites_at(t)]
    return ", ".join(names)


show_as_graph(Difference)
