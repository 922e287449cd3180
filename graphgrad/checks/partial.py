"""Where a branch of `where` can be NaN or infinite just where it is not chosen."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ops.base import Constant


def unsafe_wheres(graph: Graph) -> Iterator[tuple[Node, int, Node]]:
    """(where node, branch 1 or 2, the partial op in it) for each branch that looks unsafe."""
    for node in graph.nodes:
        if node.type != "Where" or node.origin is not None:
            continue
        condition = node.inputs[0]
        tested = _ancestors(condition)
        for branch in (1, 2):
            found = _partial_in(node.inputs[branch], condition, tested)
            if found is not None:
                yield node, branch, found


def _ancestors(t: Tensor) -> set[Tensor]:
    """t and what it is computed from, without constants."""
    found: set[Tensor] = set()
    stack = [t]
    while stack:
        at = stack.pop()
        if at not in found and not isinstance(at.node.op, Constant):
            found.add(at)
            stack.extend(at.node.inputs)
    return found


def _partial_in(branch: Tensor, condition: Tensor, tested: set[Tensor]) -> Node | None:
    """The partial op nearest to the branch whose argument the condition tests."""
    seen: set[Node] = set()
    unfed: set[Tensor] = set()
    stack = [branch]
    while stack:
        node = stack.pop().node
        if node in seen or node.origin is not None:
            continue
        seen.add(node)
        if node.type == "Where" and _same(node.inputs[0], condition):
            continue
        at = node.op.singular
        tame = node.type == "Power" and _whole(node.inputs[1])
        if at is not None and not tame and _fed_by(node.inputs[at], condition, tested, unfed):
            return node
        stack.extend(node.inputs)
    return None


def _fed_by(argument: Tensor, condition: Tensor, tested: set[Tensor], unfed: set[Tensor]) -> bool:
    """Whether an argument depends, unguarded, on what the condition tests.

    unfed: tensors that do not, to which those that are found here are added.
    """
    stack = [argument]
    while stack:
        t = stack.pop()
        node = t.node
        if t in unfed or node.op.guards or isinstance(node.op, Constant):
            continue
        unfed.add(t)
        if node.type == "Where" and _same(node.inputs[0], condition):
            continue
        if t in tested:
            return True
        stack.extend(node.inputs)
    return False


def _whole(exponent: Tensor) -> bool:
    """Whether an exponent is a constant positive whole number, of which nothing is NaN."""
    op = exponent.node.op
    return isinstance(op, Constant) and bool((op.value >= 1).all() and (op.value % 1 == 0).all())


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether two conditions are the same tensor, or the same test of the same tensors."""
    pairs = [(a, b)]
    while pairs:
        s, t = pairs.pop()
        if s is t:
            continue
        m, n = s.node, t.node
        if isinstance(m.op, Constant) and isinstance(n.op, Constant):
            if m.op.value.tolist() != n.op.value.tolist():
                return False
            continue
        if m.op is not n.op or s.index != t.index or not m.op.pure or not m.inputs:
            return False
        pairs.extend(zip(m.inputs, n.inputs, strict=True))
    return True
