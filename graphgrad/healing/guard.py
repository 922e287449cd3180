"""Branches of `where` that are kept from arguments at which they have no derivative."""

from __future__ import annotations

import numpy as np

from ..differentiate.levels import Step
from ..ir.node import Node, Region, Tensor
from ..ir.op import Op
from ..ir.tensor_sites import makes_sited
from ..ops.base import Constant, apply
from ..ops.elementwise.exponential import Exp, Exp2, Expm1, Sqrt
from ..ops.elementwise.logic import WHERE, logical_not, where
from ..ops.elementwise.trigonometry import Acosh, Cosh, Sinh
from ..regions.boundary import boundary_of
from ..regions.scopes import override_gradient
from ..regions.select import members_of

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


FORMS = "gg.healing."
"""What the names of the rules of healed forms begin with."""


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


def branch(t: Tensor) -> list[Step]:
    """What is behind a branch and works element by element, in order: nodes, and healed forms.

    A node with a rule of its own, and what stands behind it, is left as it is.
    """
    found: dict[Step, int] = {}
    stack = [t.node]
    while stack and len(found) < FAR:
        node = stack.pop()
        form = _form_around(node)
        if node in found or form in found or not node.op.elementwise or not node.inputs:
            continue
        if makes_sited(node):
            continue
        if form is not None:
            found[form] = node.index
            stack += [s.node for s in boundary_of(form).inputs]
        elif node.region is None and node.stamp is None:
            found[node] = node.index
            inputs = node.inputs[1:] if node.op is WHERE else node.inputs
            stack += [s.node for s in inputs if s.type.differentiable]
    return sorted(found, key=lambda step: found[step])


def _form_around(node: Node) -> Region | None:
    """The region of a healed form that a node lies in, if all of it works element by element."""
    region = node.region
    if region is None or not isinstance(region.rule, str) or not region.rule.startswith(FORMS):
        return None
    return region if all(n.op.elementwise for n in members_of(region) if n.inputs) else None


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
        if isinstance(n, Node)
        for place in [singular(n)]
    )


def _is_chosen(t: Tensor, condition: Tensor) -> bool:
    """Whether an argument is a choice by the same condition, or a number it does not ask about."""
    if isinstance(t.node.op, Constant):
        asked = any(s is t for s in arguments(condition.node))
        return not asked and bool(np.all(t.node.op.value))
    return t.node.op is WHERE and t.node.inputs[0] is condition


Copies = list[tuple[Node, Node]]
"""Nodes that were built once more, each with what it was built from."""


def guarded(condition: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, Copies]:
    """where(condition, x, y) whose branches see what is harmless where they are not chosen."""
    copies: Copies = []
    first = _safe(x, condition, copies)
    return apply(WHERE, condition, first, _safe(y, logical_not(condition), copies)), copies


def _safe(t: Tensor, chosen: Tensor, copies: Copies) -> Tensor:
    now: dict[Tensor, Tensor] = {}
    for step in branch(t):
        if isinstance(step, Region):
            _copy_form(step, chosen, now)
            continue
        inputs = [now.get(s, s) for s in step.inputs]
        place = singular(step)
        if place is not None and not _is_chosen(step.inputs[place[0]], chosen):
            at, number = place
            inputs[at] = where(chosen, inputs[at], number)
        if any(a is not b for a, b in zip(inputs, step.inputs, strict=True)):
            now[step.outputs[0]] = made = apply(step.op, *inputs)
            copies.append((made.node, step))
    return now.get(t, t)


def _copy_form(form: Region, chosen: Tensor, now: dict[Tensor, Tensor]) -> None:
    """A healed form, whose slopes are finite at 1, of arguments that are 1 where not chosen."""
    inputs = boundary_of(form).inputs
    safe = [where(chosen, now.get(s, s), 1.0) for s in inputs]
    inside = {**now, **dict(zip(inputs, safe, strict=True))}
    with override_gradient(form.rule, inputs=safe):
        for node in members_of(form):
            y = apply(node.op, *[inside.get(s, s) for s in node.inputs])
            inside[node.outputs[0]] = now[node.outputs[0]] = y
