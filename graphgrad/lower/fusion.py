"""Loop fusion: which nodes run as one loop over their elements.

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
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import accumulate, groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program
from ..ir.strided import Lengths, Strided, contiguous, row_major
from .loop_ir import Fusion, Loop, LoopOf, Space, axes_through, viewed

REDUCED = 32  # operands that a reduction counts for
Twins = Mapping[type[Op], tuple[type[Op], ...]]
Readers = Mapping[Node, set[Node | None]]
"""Who reads a node, by way of free nodes or not; None where it is an output."""


def fusions(
    program: Program,
    loop_of: LoopOf,
    free: Iterable[Node] = (),
    parts: tuple[int, int] | None = None,
    twins: Twins = MappingProxyType({}),
) -> list[Fusion]:
    """Nodes that can run as loops, each in one fusion, which may be of this node alone.

    loop_of: how a node would run as a loop; None where it cannot; asked once for every node.
    free: nodes of which every fusion has its own copies: constants, and views of what it reads.
    parts: (most, each): a group that reads more than `most` operands is divided into parts of about
    `each`; a reduction counts as many, for what it adds up to is at hand all through the loop.
    twins: an op and those that cost little where it is computed of the same.
    """
    seating = _Seating(program, loop_of, frozenset(free))
    stages, readers = _stages(seating), _readers(seating)
    _join_twins(seating, stages, readers, twins)
    groups = _Hoisting(seating, stages, readers, _groups(seating, stages)).run()
    if parts is not None:
        groups = [part for group in groups for part in _divided(seating, group, *parts)]
    return [Fusion(group, _space(seating, group)) for group in groups]


# --- what nodes read and make in a loop ------------------------------------------------------


class Level(Enum):
    """One number an element, one a row, or what is left in the end."""

    ELEMENT = "element"
    ROW = "row"
    END = "end"


class Seat(NamedTuple):
    """The loop that a node is in, and the levels of what it reads and makes."""

    space: Space
    reads: Level
    makes: Level


class Source(NamedTuple):
    """What a tensor is a view of: which elements of it, and whether its axes are in order.

    maker: of the base; None where it is given.
    """

    base: Tensor
    maker: Node | None
    view: Strided | None
    ordered: bool


class _Sources(dict[Tensor, Source]):
    """What tensors are views of, by way of free nodes; looked up when first asked for."""

    def __init__(self, program: Program, free: frozenset[Node]) -> None:
        super().__init__()
        self.given = frozenset(program.inputs)
        self.free = free

    def __missing__(self, t: Tensor) -> Source:
        chain = []
        base = t
        while base not in self.given and base.node in self.free and base.node.inputs:
            chain.append(base.node)
            base = base.node.inputs[0]
        view = contiguous(_known(base)) if base.type.static else None
        ordered = True
        for node in reversed(chain):
            (made,) = node.outputs
            if view is not None:
                through = axes_through(node.op, view.shape, _known(made))
                ordered = ordered and through is not None
                view = viewed(node.op, made.type, view)
        maker = None if base in self.given else base.node
        source = self[t] = Source(base, maker, view, ordered)
        return source


class _Seating:
    """Where every node would run.

    sources  what tensors are views of
    loops    how nodes would run as loops, but for the free ones
    rows     for each shape, the axes that are a row: as most of its reductions have it
    seats    of these nodes
    """

    def __init__(self, program: Program, loop_of: LoopOf, free: frozenset[Node]) -> None:
        self.program = program
        self.free = free
        self.sources = _Sources(program, free)
        self.loops: dict[Node, Loop] = {}
        for node in program.nodes:
            loop = None if node in free else loop_of(node)
            if loop is not None and len(node.outputs) == 1 and not node.controls:
                self.loops[node] = loop
        self.rows = _rows(self.loops.values())
        self.seats: dict[Node, Seat] = {}
        for node, loop in self.loops.items():
            self.seats[node] = self._in_rows(node, loop) or self._in_elements(loop)

    def _in_rows(self, node: Node, loop: Loop) -> Seat | None:
        """The seat of a node that reads what rows have, one number for each."""
        for t in node.inputs if self.rows else ():
            maker = self.sources[t].maker
            seat = None if maker is None else self.seats.get(maker)
            if seat is None or seat.makes is not Level.ROW or seat.space.outer != loop.shape:
                continue
            if self.reads_all(t, node):
                reduces = loop.ends or loop.row
                return Seat(seat.space, Level.ROW, Level.END if reduces else Level.ROW)
        return None

    def _in_elements(self, loop: Loop) -> Seat:
        """The seat of a node that reads elements."""
        row = self.rows.get(loop.shape, ())
        if loop.row and (loop.row == row or not loop.ends):
            return Seat(Space(loop.shape, loop.row), Level.ELEMENT, Level.ROW)
        makes = Level.END if loop.ends else Level.ELEMENT
        return Seat(Space(loop.shape, row), Level.ELEMENT, makes)

    def joins(self, t: Tensor, node: Node) -> bool:
        """Whether a node can read t in the loop that computes what t is a view of."""
        _, by, _, ordered = self.sources[t]
        if by is None or not ordered:
            return False
        seat, maker = self.seats.get(node), self.seats.get(by)
        if seat is None or maker is None or maker.space != seat.space:
            return False
        if maker.makes is seat.reads:
            return self.reads_all(t, node)
        if maker.makes is Level.END or seat.reads is Level.ROW or self.loops[node].gathers:
            return False
        return self._steps(t, node) == seat.space.steps

    def reads_all(self, t: Tensor, node: Node) -> bool:
        """Whether a node reads all elements of t's source, one after the other."""
        loop = self.loops[node]
        return not loop.gathers and self._steps(t, node) == row_major(loop.shape)

    def _steps(self, t: Tensor, node: Node) -> Lengths | None:
        """How far apart what a node reads of t's source lies, along each axis of its loop."""
        base, _, view, _ = self.sources[t]
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


def _rows(loops: Iterable[Loop]) -> dict[Lengths, tuple[int, ...]]:
    count = Counter((loop.shape, loop.row) for loop in loops if loop.row)
    rows: dict[Lengths, tuple[int, ...]] = {}
    for (shape, row), _ in count.most_common():
        rows.setdefault(shape, row)
    return rows


def _known(t: Tensor) -> Lengths:
    return t.shape  # type: ignore[return-value]


# --- groups ----------------------------------------------------------------------------------


def _stages(seating: _Seating) -> dict[Node, int]:
    """The most borders between loops on any way from a node to an output."""
    nodes = seating.program.nodes
    stages: dict[Node, int] = dict.fromkeys(nodes, 0)
    for node in reversed(nodes):
        stage = stages[node]
        for maker, border in _borders(seating, node):
            if stages[maker] < stage + border:
                stages[maker] = stage + border
    for node, seat in seating.seats.items():
        if seat.makes is Level.END and seating.joins(node.inputs[0], node):
            base = seating.sources[node.inputs[0]].base
            stages[node] = stages[base.node]  # its readers all come later anyway
    return stages


def _readers(seating: _Seating) -> Readers:
    readers: dict[Node, set[Node | None]] = {}
    for node in seating.program.nodes:
        if node not in seating.free:
            for t in node.inputs:
                readers.setdefault(seating.sources[t].base.node, set()).add(node)
    for t in seating.program.outputs:
        readers.setdefault(seating.sources[t].base.node, set()).add(None)
    return readers


def _join_twins(seating: _Seating, stages: dict[Node, int], readers: Readers, twins: Twins) -> None:
    """Give nodes the stage of their twin, if what they read is kept for such nodes alone.

    So what a later loop would make of it is kept instead of it.
    """
    joining: dict[Tensor, list[tuple[Node, Node]]] = {}
    for node in seating.seats:
        for t in node.inputs if type(node.op) in twins else ():
            base = seating.sources[t].base
            for other in readers[base.node]:
                if other is None or type(other.op) not in twins[type(node.op)]:
                    continue
                if other.inputs[0] is t and stages[other] < stages[node]:
                    joining.setdefault(base, []).append((other, node))
    for base, pairs in joining.items():
        done = min([stages[node] for _, node in pairs])
        late = {n for n in readers[base.node] if n is None or stages[n] < done}
        if seating.sources[base].maker is not None and late <= {other for other, _ in pairs}:
            stages.update([(other, stages[node]) for other, node in pairs])


def _borders(seating: _Seating, node: Node) -> list[tuple[Node, int]]:
    """Nodes that run before a node, each with 1 where it does so in another loop, else 0."""
    borders = [(maker, 1) for maker in node.controls]
    if node in seating.seats:
        for t in node.inputs:
            maker = seating.sources[t].maker
            if maker is not None:
                borders.append((maker, 0 if seating.joins(t, node) else 1))
        return borders
    border = 0 if node in seating.free else 1
    return [*borders, *[(t.node, border) for t in node.inputs if t not in seating.sources.given]]


def _groups(seating: _Seating, stages: dict[Node, int]) -> list[list[Node]]:
    """Nodes of one stage that read each other, or the same, in one loop."""
    together = Together()
    first: dict[Any, Node] = {}
    for node, seat in seating.seats.items():
        stage = stages[node]
        for t in node.inputs:
            base, maker, *_ = seating.sources[t]
            if maker is not None and stages[maker] == stage and seating.joins(t, node):
                together.unite(maker, node)
            elif seat.reads is Level.ELEMENT and seating.reads_all(t, node):
                together.unite(first.setdefault((base, stage, seat.space), node), node)
    return together.sets(seating.seats)


class _Hoisting:
    """Groups that leave no more than is kept for them, as part of the one that keeps it.

    So a loss is computed where its gradient is, not later from what is kept for it.

    of  node -> its group
    """

    def __init__(
        self,
        seating: _Seating,
        stages: dict[Node, int],
        readers: Readers,
        groups: list[list[Node]],
    ) -> None:
        self.seating, self.stages, self.readers, self.groups = seating, stages, readers, groups
        self.of = {n: g for g in groups for n in g}

    def run(self) -> list[list[Node]]:
        """The groups that are left, each in the order of the program."""
        for group in sorted(self.groups, key=lambda g: -self.stages[g[0]]):
            host = self._host(group)
            if host is not None:
                self.stages.update(dict.fromkeys(group, self.stages[host[0]]))
                self.of.update(dict.fromkeys(group, host))
                host.extend(group)
                group.clear()
        place = {n: i for i, n in enumerate(self.seating.program.nodes)}
        return [sorted(g, key=place.__getitem__) for g in self.groups if g]

    def _host(self, group: list[Node]) -> list[Node] | None:
        """The group that could compute what a group does, and could do so at once."""
        joined, others = self._reads(group)
        hosts = [self.of[n] for n in joined]
        if not hosts or any(host is not hosts[0] for host in hosts):
            return None
        host = hosts[0]
        if any(self.stages[n] <= self.stages[host[0]] for n in others):
            return None
        left = self._read_outside(group, group)
        kept = self._read_outside(joined, host) - self._read_outside(joined, host, group)
        return host if len(left) <= len(kept) else None

    def _reads(self, group: list[Node]) -> tuple[set[Node], set[Node]]:
        """What a group could read in the loops of earlier groups, and what else is computed."""
        joined, others = set[Node](), set[Node]()
        for node in group:
            for t in node.inputs:
                maker = self.seating.sources[t].maker
                if maker is None or self.of.get(maker) is group or _is_constant(maker):
                    continue
                makers = joined if self.seating.joins(t, node) else others
                makers.add(maker)
        return joined, others

    def _read_outside(self, nodes: Iterable[Node], *groups: list[Node]) -> set[Node]:
        """Those that make a number an element, and are read outside the groups or put out."""
        return {
            n
            for n in nodes
            if self.seating.seats[n].makes is Level.ELEMENT
            and any(r is None or self._outside(r, groups) for r in self.readers.get(n, ()))
        }

    def _outside(self, node: Node, groups: tuple[list[Node], ...]) -> bool:
        return all(self.of.get(node) is not g for g in groups)


def _is_constant(node: Node) -> bool:
    return not node.inputs and not node.controls


# --- parts of long groups --------------------------------------------------------------------


def _divided(seating: _Seating, group: list[Node], most: int, each: int) -> list[list[Node]]:
    """A group, or its parts in their order."""
    read = list(accumulate(_operands(seating.loops[n]) or len(n.inputs) for n in group))
    if read[-1] <= most:
        return [group]
    numbered = zip(group, [r // each for r in read], strict=True)
    parts = [[n for n, _ in part] for _, part in groupby(numbered, itemgetter(1))]
    return [piece for part in parts for piece in _apart(seating, part) if piece]


def _operands(loop: Loop) -> int:
    """How many operands a reduction counts for; 0 for other nodes."""
    return REDUCED if loop.row or loop.ends else 0


def _apart(seating: _Seating, part: list[Node]) -> tuple[list[Node], list[Node]]:
    """What is connected with nodes of the most axes, and the rest; each in order.

    In a part, nodes that go over rows alone may be connected with those that go over all elements
    by other parts only. Then nothing in it says whose rows they are, and they are a part of their
    own.
    """
    together = Together()
    inside = set(part)
    for node in part:
        for t in node.inputs:
            maker = seating.sources[t].maker
            if maker in inside:
                together.unite(maker, node)
    axes = {n: len(seating.loops[n].shape) for n in part}
    most = max(axes.values())
    sets = together.sets(part)
    whole = {n for nodes in sets if any(axes[n] == most for n in nodes) for n in nodes}
    return [n for n in part if n in whole], [n for n in part if n not in whole]


def _space(seating: _Seating, nodes: Sequence[Node]) -> Space:
    """What a loop of nodes runs over: the elements of rows, or no more than one number for each.

    Its rows are those of what it reduces and reads again for elements.
    """
    carried: set[Node] = set()  # what rows have of reductions in this loop
    again = False
    shape, row = Space(seating.loops[nodes[0]].shape)
    for node in nodes:
        space, reads, makes = seating.seats[node]
        from_rows = carried and any(seating.sources[t].maker in carried for t in node.inputs)
        if reads is Level.ELEMENT:
            shape, row = space
            again = again or bool(from_rows)
        if makes is Level.ROW and (reads is Level.ELEMENT or from_rows):
            carried.add(node)
    return Space(shape, row if again else ())


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
        by_root: dict[Node, list[Node]] = {}
        for node in nodes:
            by_root.setdefault(self._root(node), []).append(node)
        return list(by_root.values())
