"""Small matrix products that share an operand as one: what unrolled steps do with their inputs.

x1 @ w, ..., xn @ w are the rows of one product, unless one of the x needs another's product. It
changes last bits, and copies the x, but for cuts of one tensor that follow each other.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate
from typing import Any

from ...base.lazy import lazy_module
from ...ir.node import Node, Tensor
from ...ir.program import Program
from ...ops.shape.joining import Concat
from ...ops.shape.slicing import FULL, Slice
from ..build import beside, instead
from ..facts import ints
from ..rewrite import Now, Plan
from .matrices import FEW, MANY_ROWS, in_a_row, in_parts, is_plain, summed_axis


class SharedBatch:
    """Products that share the operand on one side.

    side     the place of the operands that differ
    members  the products, in the order of the program
    """

    def __init__(self, side: int, members: list[Node]) -> None:
        self.side = side
        self.members = members
        self._whole: Tensor | None = None
        ends = list(accumulate(self._rows(n) for n in members))
        self._start = dict(zip(members, [0, *ends], strict=False))

    def _rows(self, product: Node) -> int:
        return ints(product.outputs[0].shape)[self.side]

    def held(self, product: Node) -> tuple[Tensor, ...]:
        """What is kept of a product until all are made."""
        return product.inputs[self.side], product.outputs[0]

    def plan(self, member: Node) -> Plan:
        """What makes a member's rows (or columns) of the one product."""
        start = self._start[member]
        key = (*(FULL,) * self.side, (start, start + self._rows(member), None))
        return lambda node, now: instead(node, Slice(key), self._made(node, now))

    def _made(self, node: Node, now: Now) -> Tensor:
        """The one product; made when the first member is."""
        if self._whole is None:
            first, side = self.members[0], self.side
            inputs = [now.get(t, t) for t in first.inputs]
            pieces = [now.get(t, t) for t in (n.inputs[side] for n in self.members)]
            inputs[side] = beside(node, Concat(1 - summed_axis(first, side)), *pieces)
            self._whole = beside(node, first.op, *inputs)
        return self._whole


# --- which -------------------------------------------------------------------------------------


def products_to_batch(program: Program, without: Set[Node]) -> list[SharedBatch]:
    """Products of which each batch can be one, all at the same time, where it is worth it.

    x1 @ w, x2 @ w, ... -> the rows of [x1; x2; ...] @ w; w @ x1, ... -> columns likewise. Not those
    that are taken already.
    """
    groups = [b for b in map(_small, _sharing(program, without)) if len(b.members) >= FEW]
    if not groups:
        return []
    groups = _apart(program, groups)
    groups = _without_circles(program, groups)
    return [SharedBatch(b.side, part) for b in groups for part in in_parts(b.members, b.held)]


def _sharing(program: Program, without: Set[Node]) -> list[SharedBatch]:
    """Products by the operand that they share, each in the larger of its two groups."""
    groups: dict[tuple[int, int, object], list[Node]] = {}
    for node in program.nodes:
        if is_plain(node) and node not in without:
            for side in (0, 1):
                groups.setdefault((side, id(node.inputs[1 - side]), node.op), []).append(node)
    best: dict[Node, tuple[int, int, object]] = {}
    for key, nodes in groups.items():
        for node in nodes:
            if node not in best or len(nodes) > len(groups[best[node]]):
                best[node] = key
    return [
        SharedBatch(key[0], mine)
        for key, nodes in groups.items()
        if len(nodes) >= FEW and len(mine := [n for n in nodes if best[n] is key]) >= FEW
    ]


def _small(batch: SharedBatch) -> SharedBatch:
    """The members that are faster together."""
    pieces = [n.inputs[batch.side] for n in batch.members]
    axis = 1 - summed_axis(batch.members[0], batch.side)
    most = 2 * MANY_ROWS if in_a_row(pieces, axis) else MANY_ROWS
    kept = [n for n, x in zip(batch.members, pieces, strict=True) if ints(x.shape)[axis] <= most]
    return SharedBatch(batch.side, kept)


def _needs(program: Program, batches: Sequence[SharedBatch]) -> dict[Node, int]:
    """For every member, the batches of which its operands need a product, as bits."""
    bit_of = {n: 1 << i for i, batch in enumerate(batches) for n in batch.members}
    given = set(program.inputs)
    below: dict[Node, int] = {}
    needs: dict[Node, int] = {}
    for node in program.nodes:
        bits = 0
        for t in node.inputs:
            if t not in given:
                bits |= below[t.node]
        for control in node.controls:
            bits |= below[control]
        if node in bit_of:
            needs[node] = bits
            bits |= bit_of[node]
        below[node] = bits
    return needs


def _apart(program: Program, batches: Sequence[SharedBatch]) -> list[SharedBatch]:
    """The batches without the members that need another member."""
    needs = _needs(program, batches)
    free = [
        SharedBatch(b.side, [n for n in b.members if not needs[n] >> i & 1])
        for i, b in enumerate(batches)
    ]
    return [b for b in free if len(b.members) >= FEW]


def _without_circles(program: Program, batches: list[SharedBatch]) -> list[SharedBatch]:
    """The largest of every set of batches of which each would need the others to be first."""
    needs = _needs(program, batches)
    first: dict[int, list[int]] = {}
    for i, batch in enumerate(batches):
        bits = 0
        for member in batch.members:
            bits |= needs[member]
        first[i] = [j for j in range(len(batches)) if bits >> j & 1]
    try:
        TopologicalSorter(first).prepare()
    except CycleError:
        nx: Any = lazy_module("networkx")
        circles = nx.strongly_connected_components(nx.DiGraph(first))
        kept = {max(circle, key=lambda i: len(batches[i].members)) for circle in circles}
        return [b for i, b in enumerate(batches) if i in kept]
    return batches


def ready_together(program: Program, batches: Sequence[SharedBatch]) -> Program:
    """The program in an order in which every operand of a batch comes before its first member."""
    given = set(program.inputs)
    before: dict[Node, list[Node]] = {}
    for batch in batches:
        makers = list(dict.fromkeys(m for n in batch.members for m in _makers(given, n)))
        before.update((n, makers) for n in batch.members)
    rank: dict[Node, None] = {}
    for start in program.nodes:
        stack = [start]
        while stack:
            node = stack[-1]
            if node in rank:
                stack.pop()
                continue
            waiting = [n for n in before.get(node) or _makers(given, node) if n not in rank]
            if waiting:
                stack += waiting
            else:
                rank[stack.pop()] = None
    return Program(program.inputs, program.outputs, list(rank))


def _makers(given: set[Tensor], node: Node) -> list[Node]:
    """The nodes that run before a node."""
    return [*[t.node for t in node.inputs if t not in given], *node.controls]
