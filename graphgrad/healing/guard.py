"""Branches of `where` that are kept from arguments at which they have no derivative."""

from __future__ import annotations

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ops.base import Constant, apply
from ..ops.elementwise.exponential import Exp, Exp2, Expm1, Sqrt
from ..ops.elementwise.logic import WHERE, logical_not, where
from ..ops.elementwise.trigonometry import Acosh, Cosh, Sinh

SAFE: dict[type[Op], float] = {
    Exp: 0.0,
    Exp2: 0.0,
    Expm1: 0.0,
    Cosh: 0.0,
    Sinh: 0.0,
    Sqrt: 1.0,
    Acosh: 2.0,
}
"""Ops that overflow, or whose domain has no 0.5 in it, and an argument that is harmless."""


FAR = 24
"""How many nodes behind a branch are looked at."""


def singular(node: Node) -> tuple[int, float] | None:
    """The place of the argument at which an op may have no derivative, and a harmless one."""
    op = node.op
    if not op.elementwise:
        return None
    if type(op) in SAFE:
        return 0, SAFE[type(op)]
    at = op.derivative.singular
    if at is None or not node.inputs[at].type.differentiable:
        return None
    return at, 1.0 if op.type in ("Divide", "Reciprocal", "Log", "Power") else 0.5


def branch(t: Tensor) -> list[Node]:
    """The nodes behind a branch that work element by element, the last ones first.

    A node with a rule of its own, and what stands behind it, is left as it is.
    """
    found: dict[Node, None] = {}
    stack = [t.node]
    while stack and len(found) < FAR:
        node = stack.pop()
        own = node.region is not None or node.stamp is not None
        if own or node in found or not node.op.elementwise or not node.inputs:
            continue
        found[node] = None
        inputs = node.inputs[1:] if node.op is WHERE else node.inputs
        stack += [s.node for s in inputs if s.type.differentiable]
    return sorted(found, key=lambda node: -node.index)


def arguments(node: Node) -> tuple[Tensor, ...]:
    """What a choice and its condition are functions of, element by element."""
    inside, found, stack = {node}, dict[Tensor, None](), [*node.inputs]
    while stack:
        t = stack.pop()
        own = t.node.region is not None or t.node.stamp is not None
        if len(inside) < FAR and not own and t.node.op.elementwise and t.node.inputs:
            inside.add(t.node)
            stack += t.node.inputs
        else:
            found[t] = None
    return tuple(t for t in reversed(found) if t.node not in inside)


def needs_guard(node: Node) -> bool:
    """Whether a choice has a branch in which something may have no derivative."""
    condition, *branches = node.inputs
    return any(
        place is not None and not _is_chosen(n.inputs[place[0]], condition)
        for t in branches
        if t.type.differentiable
        for n in branch(t)
        for place in [singular(n)]
    )


def _is_chosen(t: Tensor, condition: Tensor) -> bool:
    """Whether an argument is a choice by the same condition, or a number."""
    return isinstance(t.node.op, Constant) or (t.node.op is WHERE and t.node.inputs[0] is condition)


def guarded(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """where(condition, x, y) whose branches see what is harmless where they are not chosen."""
    return apply(WHERE, condition, _safe(x, condition), _safe(y, logical_not(condition)))


def _safe(t: Tensor, chosen: Tensor) -> Tensor:
    nodes = branch(t)
    now: dict[Tensor, Tensor] = {}
    for node in reversed(nodes):
        inputs = [now.get(s, s) for s in node.inputs]
        place = singular(node)
        if place is not None and not _is_chosen(node.inputs[place[0]], chosen):
            at, number = place
            inputs[at] = where(chosen, inputs[at], number)
        if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            now[node.outputs[0]] = apply(node.op, *inputs)
    return now.get(t, t)
