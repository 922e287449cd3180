"""Which nodes can run as one loop over their elements.

A loop runs over the elements of one shape. What it computes is one number an element; or one number
a row, where some axes, the last ones or others, are reduced and the row, still at hand, is gone
through again; or what reductions leave in the end, which cannot be read before the loop is done.

Every node gets a stage, counted from the end: the most borders between loops on any way from it to
an output. Nodes of one stage that share a loop can be one group: a way that leaves the group
crosses a border, so it cannot come back. Counting from the end computes a value as late as it can
be: what only the backward pass reads is computed there, from what is kept anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple

from ..ir.node import Node, Tensor
from ..ir.program import Program
from .views import Lengths, View, keeps_order, memory_of, row_major, viewed


class Loop(NamedTuple):
    """How a node would run as a loop.

    shape    what it runs over; nodes share loops of equal shapes
    frame    the shape that its inputs are broadcast to: `shape`, perhaps with lengths of 1
    row      the axes of `shape` that it reduces to one number a row, in order; else ()
    ends     whether it is a reduction that may be complete in the end alone, whatever the rows
             of its loop are; one that is not has rows of its own
    picks    whether it reads its inputs at any places, so that they must be there before the loop
    """

    shape: Lengths
    frame: Lengths
    row: tuple[int, ...] = ()
    ends: bool = False
    picks: bool = False


class Level(Enum):
    """One number an element, one a row, or what is left in the end."""

    ELEMENT = "element"
    ROW = "row"
    END = "end"


class Seat(NamedTuple):
    """The loop that a node is in, by its shape and the axes of its rows, and the levels of what it
    reads and makes.
    """

    shape: Lengths
    row: tuple[int, ...]
    reads: Level
    makes: Level

    @property
    def loop(self) -> tuple[Lengths, tuple[int, ...]]:
        """The loop."""
        return self.shape, self.row

    @property
    def outer(self) -> Lengths:
        """The lengths of the axes over which rows run."""
        return tuple([d for a, d in enumerate(self.shape) if a not in self.row])

    @property
    def steps(self) -> Lengths:
        """How far apart what rows have lies, along each axis of the loop."""
        steps = iter(row_major(self.outer))
        return tuple([0 if a in self.row else next(steps) for a in range(len(self.shape))])


class Source(NamedTuple):
    """What a tensor is a view of: which elements of it, and whether its axes are in order."""

    base: Tensor
    view: View | None
    ordered: bool


LoopOf = Callable[[Node], Loop | None]


def grouped(program: Program, loop_of: LoopOf, free: Iterable[Node] = ()) -> list[list[Node]]:
    """Groups of nodes, each in the order of the program; single nodes may be groups too.

    loop_of: how a node would run as a loop; None where it cannot.
    free: nodes of which every group has its own copies: constants, and views of what it reads.
    """
    return _Grouping(program, loop_of, frozenset(free)).groups()


class _Grouping:
    def __init__(self, program: Program, loop_of: LoopOf, free: frozenset[Node]) -> None:
        self.program = program
        self.given = frozenset(program.inputs)
        self.free = free
        self.loops: dict[Node, Loop] = {}
        for node in program.nodes:
            loop = None if node in free else loop_of(node)
            if loop is not None and len(node.outputs) == 1 and not node.controls:
                self.loops[node] = loop
        self.rows = self._rows()
        self._sources: dict[Tensor, Source] = {}
        self.seats: dict[Node, Seat] = {}
        for node, loop in self.loops.items():
            self.seats[node] = self._seat(node, loop)
        self.stages = self._stages()

    def groups(self) -> list[list[Node]]:
        """Nodes of one stage that read each other, or the same, in one loop."""
        together = Together()
        first: dict[Any, Node] = {}
        for node, seat in self.seats.items():
            stage = self.stages[node]
            for t in node.inputs:
                base = self._source(t).base
                maker = None if base in self.given else base.node
                if maker in self.seats and self.stages[maker] == stage and self._joins(t, node):
                    together.unite(maker, node)
                elif seat.reads is Level.ELEMENT and self._reads_all(t, node):
                    together.unite(first.setdefault((base, stage, seat.loop), node), node)
        return self._early(together.sets(self.seats))

    def _early(self, groups: list[list[Node]]) -> list[list[Node]]:
        """Groups that leave no more than is kept for them, as part of the one that keeps it.

        So a loss is computed where its gradient is, not later from what is kept for it.
        """
        of = {n: g for g in groups for n in g}
        readers = self._readers()
        for group in sorted(groups, key=lambda g: -self.stages[g[0]]):
            first = self._earlier(group, of, readers)
            if first is not None:
                stage = self.stages[first[0]]
                self.stages.update(dict.fromkeys(group, stage))
                of.update(dict.fromkeys(group, first))
                first.extend(group)
                group.clear()
        place = {n: i for i, n in enumerate(self.program.nodes)}
        return [sorted(g, key=place.__getitem__) for g in groups if g]

    def _earlier(
        self, group: list[Node], of: dict[Node, list[Node]], readers: dict[Node, set[Node | None]]
    ) -> list[Node] | None:
        """The group that could compute what a group does, and could do so at once."""
        found = None
        here = self.stages[group[0]]
        others = []
        read: set[Node] = set()
        for node in group:
            for t in node.inputs:
                base = self._source(t).base
                if base in self.given or of.get(base.node) is group:
                    continue
                if not base.node.inputs and not base.node.controls:
                    continue
                maker = of.get(base.node)
                if maker is not None and self.stages[base.node] > here and self._joins(t, node):
                    if found is not None and found is not maker:
                        return None
                    found = maker
                    read.add(base.node)
                else:
                    others.append(base.node)
        if found is None or any(self.stages[n] <= self.stages[found[0]] for n in others):
            return None
        left = self._read_outside(group, (group,), of, readers)
        kept = self._read_outside(read, (found,), of, readers)
        kept -= self._read_outside(read, (found, group), of, readers)
        return found if len(left) <= len(kept) else None

    def _read_outside(
        self,
        nodes: Iterable[Node],
        groups: tuple[list[Node], ...],
        of: dict[Node, list[Node]],
        readers: dict[Node, set[Node | None]],
    ) -> set[Node]:
        """Those that make a number an element, and are read outside the groups or put out."""
        return {
            n
            for n in nodes
            if self.seats[n].makes is Level.ELEMENT
            and any(
                r is None or all(of.get(r) is not g for g in groups) for r in readers.get(n, ())
            )
        }

    def _readers(self) -> dict[Node, set[Node | None]]:
        """Node -> who reads it, by way of free nodes or not; None where it is an output."""
        readers: dict[Node, set[Node | None]] = {}
        for node in self.program.nodes:
            if node not in self.free:
                for t in node.inputs:
                    readers.setdefault(self._source(t).base.node, set()).add(node)
        for t in self.program.outputs:
            readers.setdefault(self._source(t).base.node, set()).add(None)
        return readers

    def _rows(self) -> dict[Lengths, tuple[int, ...]]:
        """For each shape, the axes that are a row: as most of its reductions have it."""
        count = Counter((loop.shape, loop.row) for loop in self.loops.values() if loop.row)
        found: dict[Lengths, tuple[int, ...]] = {}
        for (shape, row), _ in count.most_common():
            found.setdefault(shape, row)
        return found

    def _source(self, t: Tensor) -> Source:
        """What a tensor is a view of, by way of free nodes."""
        found = self._sources.get(t)
        if found is None:
            chain = []
            base = t
            while base not in self.given and base.node in self.free and base.node.inputs:
                chain.append(base.node)
                base = base.node.inputs[0]
            view = memory_of(_known(base)) if base.type.static else None
            ordered = True
            for node in reversed(chain):
                (made,) = node.outputs
                if view is not None:
                    ordered = ordered and keeps_order(node.op, view.shape, _known(made))
                    view = viewed(node.op, made.type, view)
            found = self._sources[t] = Source(base, view, ordered)
        return found

    def _steps(self, t: Tensor, node: Node) -> Lengths | None:
        """How far apart what a node reads of t's source lies, along each axis of its loop."""
        base, view, _ = self._source(t)
        loop = self.loops[node]
        if base is t and t.shape == loop.frame:
            return row_major(loop.shape)
        if view is None or view.offset:
            return None
        extra = len(loop.frame) - len(view.shape)
        strides = [0] * extra + [
            0 if d == 1 else s for d, s in zip(view.shape, view.strides, strict=True)
        ]
        if len(loop.shape) == len(loop.frame):
            return tuple(strides)
        return tuple([s for s, d in zip(strides, loop.frame, strict=True) if d != 1])

    def _reads_all(self, t: Tensor, node: Node) -> bool:
        """Whether a node reads all elements of t's source, one after the other."""
        loop = self.loops[node]
        return not loop.picks and self._steps(t, node) == row_major(loop.shape)

    def _seat(self, node: Node, loop: Loop) -> Seat:
        reduces = loop.ends or bool(loop.row)
        for t in node.inputs if self.rows else ():
            base = self._source(t).base
            seat = None if base in self.given else self.seats.get(base.node)
            if seat is None or seat.makes is not Level.ROW or not self._reads_all(t, node):
                continue
            if seat.outer == loop.shape:
                return seat._replace(reads=Level.ROW, makes=Level.END if reduces else Level.ROW)
        row = self.rows.get(loop.shape, ())
        if loop.row and (loop.row == row or not loop.ends):
            return Seat(loop.shape, loop.row, Level.ELEMENT, Level.ROW)
        return Seat(loop.shape, row, Level.ELEMENT, Level.END if reduces else Level.ELEMENT)

    def _joins(self, t: Tensor, node: Node) -> bool:
        """Whether a node can read t in the loop that computes what t is a view of."""
        base, _, ordered = self._source(t)
        seat = self.seats.get(node)
        maker = None if base in self.given else self.seats.get(base.node)
        if seat is None or maker is None or maker.loop != seat.loop or not ordered:
            return False
        if maker.makes is seat.reads:
            return self._reads_all(t, node)
        if maker.makes is Level.END or seat.reads is Level.ROW or self.loops[node].picks:
            return False
        return self._steps(t, node) == seat.steps

    def _stages(self) -> dict[Node, int]:
        stages: dict[Node, int] = dict.fromkeys(self.program.nodes, 0)
        for node in reversed(self.program.nodes):
            stage = stages[node]
            for t in node.inputs:
                base = self._source(t).base if node in self.seats else t
                if base not in self.given:
                    border = 0 if node in self.free or self._joins(t, node) else 1
                    stages[base.node] = max(stages[base.node], stage + border)
            for maker in node.controls:
                stages[maker] = max(stages[maker], stage + 1)
        for node, seat in self.seats.items():
            if seat.makes is Level.END and self._joins(node.inputs[0], node):
                maker = self._source(node.inputs[0]).base.node
                stages[node] = stages[maker]  # its readers all come later anyway
        return stages


def _known(t: Tensor) -> Lengths:
    return t.shape  # type: ignore[return-value]


class Together:
    """Sets of nodes that grow together (union-find with path halving)."""

    def __init__(self) -> None:
        self._parent: dict[Node, Node] = {}

    def _root(self, node: Node) -> Node:
        parent = self._parent
        while (up := parent.setdefault(node, node)) is not node:
            parent[node] = node = parent.setdefault(up, up)
        return node

    def unite(self, a: Node, b: Node) -> None:
        """a's set and b's as one."""
        self._parent[self._root(b)] = self._root(a)

    def sets(self, nodes: Iterable[Node]) -> list[list[Node]]:
        """The sets, in the order of their first nodes; each in the order given."""
        found: dict[Node, list[Node]] = {}
        for node in nodes:
            found.setdefault(self._root(node), []).append(node)
        return list(found.values())
