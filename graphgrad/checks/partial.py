"""Where a branch of `where` can be NaN or infinite just where it is not chosen."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any

from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ops.base import Constant


def unsafe_wheres(graph: Graph) -> Iterator[tuple[Node, int, Node]]:
    """(where node, branch 1 or 2, the partial op in it) for each branch that looks unsafe."""
    wheres = [n for n in graph.nodes if n.type == "Where"]
    if not any(n.origin is None for n in wheres):
        return
    numbers, ops = Numbers(), _PartialOps(graph)
    same: defaultdict[Any, set[Node]] = defaultdict(set)
    for node in wheres:
        same[numbers.of(node.inputs[0])].add(node)
    for node in wheres:
        if node.origin is None:
            condition = node.inputs[0]
            for branch in (1, 2):
                alike = same[numbers.of(condition)]
                partial_op = ops.partial_in(node.inputs[branch], condition, alike)
                if partial_op is not None:
                    yield node, branch, partial_op


class Numbers:
    """Numbers of values: tensors with one number are the same computation of the same tensors."""

    def __init__(self) -> None:
        self._of: dict[Node, int] = {}
        self._numbers: dict[Any, int] = {}

    def of(self, t: Tensor) -> tuple[int, int]:
        """The number of what a node computes, and which of its outputs it is."""
        stack = [t.node]
        while stack:
            node = stack[-1]
            missing = [s.node for s in node.inputs if s.node not in self._of]
            if node not in self._of and missing:
                stack += missing
                continue
            stack.pop()
            self._of.setdefault(node, self._numbers.setdefault(self._key(node), len(self._numbers)))
        return self._of[t.node], t.index

    def _key(self, node: Node) -> Any:
        if isinstance(node.op, Constant):
            value = node.op.value
            return value.dtype, value.shape, value.tobytes()
        if not node.op.pure or not node.inputs:
            return node
        return node.op, *[(self._of[s.node], s.index) for s in node.inputs]


class _PartialOps:
    """What of a graph every search reads, of all nodes by their index.

    roots    the nodes without inputs that a node depends on, one bit each; constants are none
    bare     those of them on which it depends through nothing that guards it
    partial  those that unguarded arguments of partial ops depend on, in it and before it
    nearest  the partial op of these that was built last
    """

    def __init__(self, graph: Graph) -> None:
        self.roots: list[int] = []
        self.bare: list[int] = []
        self.partial: list[int] = []
        self.nearest: list[Node | None] = []
        count = 0
        for node in graph.nodes:
            read = [t.node.index for t in node.inputs]
            roots = bare = partial = 0
            nearest = None
            if not read and not isinstance(node.op, Constant):
                roots = bare = 1 << count
                count += 1
            for i in read:
                roots |= self.roots[i]
                bare |= self.bare[i]
            if node.origin is None:
                argument = _argument(node)
                for i in read:
                    partial |= self.partial[i]
                    nearest = _later(nearest, self.nearest[i])
                if argument is not None and not argument.node.op.traits.guards:
                    partial |= self.roots[argument.node.index]
                    nearest = node
            self.roots.append(roots)
            self.bare.append(0 if node.op.traits.guards else bare)
            self.partial.append(partial)
            self.nearest.append(nearest)

    def partial_in(self, branch: Tensor, condition: Tensor, same: set[Node]) -> Node | None:
        """The partial op nearest to the branch whose argument the condition tests.

        same: all choices by this test, which guard what they choose.
        """
        tested = self.roots[condition.node.index]
        if not self.partial[branch.node.index] & tested:
            return None
        nearest = self.nearest[branch.node.index]
        argument = None if len(same) > 1 or nearest is None else _argument(nearest)
        if argument is not None and self.bare[argument.node.index] & tested:
            return nearest
        return self._walked(branch, same, _Ancestors(condition))

    def _walked(self, branch: Tensor, same: set[Node], tested: _Ancestors) -> Node | None:
        """The same, by looking at every node from the last one on."""
        seen: set[Node] = set()
        unfed: set[Tensor] = set()
        heap = [(-branch.node.index, branch.node)]
        while heap:
            _, node = heappop(heap)
            if node in seen or node in same or not self.partial[node.index]:
                continue
            seen.add(node)
            argument = _argument(node)
            if argument is not None and _fed_by(argument, same, tested, unfed):
                return node
            for t in node.inputs:
                if t.node not in seen:
                    heappush(heap, (-t.node.index, t.node))
        return None


class _Ancestors:
    """A tensor and what it is computed from, without constants: looked for as far as is asked."""

    def __init__(self, t: Tensor) -> None:
        self._found = {t}
        self._queue = deque([t])

    def __contains__(self, t: Tensor) -> bool:
        while t not in self._found and self._queue:
            for s in self._queue.popleft().node.inputs:
                if s not in self._found and not isinstance(s.node.op, Constant):
                    self._found.add(s)
                    self._queue.append(s)
        return t in self._found


def _fed_by(argument: Tensor, same: set[Node], tested: _Ancestors, unfed: set[Tensor]) -> bool:
    """Whether an argument depends, unguarded, on what the condition tests.

    unfed: tensors that do not, to which those that are found here are added.
    """
    stack = [argument]
    while stack:
        t = stack.pop()
        node = t.node
        if t in unfed or node.op.traits.guards or isinstance(node.op, Constant):
            continue
        unfed.add(t)
        if node in same:
            continue
        if t in tested:
            return True
        stack.extend(node.inputs)
    return False


def _argument(node: Node) -> Tensor | None:
    """The argument of a partial op."""
    at = node.op.derivative.singular
    if at is None or (node.type == "Power" and _whole(node.inputs[1])):
        return None
    return node.inputs[at]


def _later(a: Node | None, b: Node | None) -> Node | None:
    if a is None or b is None:
        return a or b
    return a if a.index > b.index else b


def _whole(exponent: Tensor) -> bool:
    """Whether an exponent is a constant positive integer, of which nothing is NaN."""
    op = exponent.node.op
    return isinstance(op, Constant) and bool((op.value >= 1).all() and (op.value % 1 == 0).all())
