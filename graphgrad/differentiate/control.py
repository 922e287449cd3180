"""The gradient of control flow: the bodies are differentiated where they stand.

The backward choice runs the gradients of the two bodies. They are built in the bodies' own graphs,
so that the rules and regions inside are called at home; nothing is copied. The chosen body's
forward part is run again by it, on the same inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.node import Node, Tensor
from ..ir.op import Gradients
from ..ops.base import NO_GRAD, ZeroTensor, wants
from ..ops.control import BodyGraph, BodyScope, Cond, choose
from .gradients import gradients


def cond_vjp(op: Cond, node: Node, *dys: Tensor | None) -> Gradients:
    """One gradient for each input of the choice: none for the bool, of captures by branch."""
    pred, *captured = node.inputs
    for dy in dys:
        if dy is not None:
            dy.node  # noqa: B018  structural zeros become nodes out here, not in a body
    wanted = [i for i, x in enumerate(captured) if x.type.differentiable and wants(x)]
    branches = [_branch(op, branch, wanted, dys) for branch in (0, 1)]
    flows = [i for i in wanted if any(i in found for found in branches)]
    if not flows:
        return [NO_GRAD] * len(node.inputs)
    bodies = [_body(op, branch) for branch in (0, 1)]
    outputs = []
    for body, found in zip(bodies, branches, strict=True):
        with BodyScope(body):
            outputs.append([found[i] if i in found else _zero(body, captured[i]) for i in flows])
    given = dict(zip(flows, choose(pred, bodies, outputs), strict=True))
    return [NO_GRAD, *(given.get(i, NO_GRAD) for i in range(len(captured)))]


def _body(op: Cond, branch: int) -> BodyGraph:
    body = op.programs[branch].outputs[0].graph
    assert isinstance(body, BodyGraph)
    return body


def _branch(
    op: Cond, branch: int, wanted: Sequence[int], dys: Sequence[Tensor | None]
) -> dict[int, Tensor]:
    """The gradients of one body with respect to the captures it reads, where something flows."""
    program, reads, body = op.programs[branch], op.reads[branch], _body(op, branch)
    inner = dict(zip(reads, program.inputs, strict=True))
    at = [i for i in wanted if i in inner]
    pairs = [
        (y, dy)
        for y, dy in zip(program.outputs, dys, strict=True)
        if dy is not None and y.type.differentiable
    ]
    with BodyScope(body):
        found = gradients(
            [y for y, _ in pairs],
            [inner[i] for i in at],
            grad_ys=[body.adopt(dy) for _, dy in pairs],
        )
    return {i: dx for i, dx in zip(at, found, strict=True) if dx is not None}


def _zero(body: BodyGraph, x: Tensor) -> Tensor:
    """The gradient of a capture that a branch does not read."""
    zero = ZeroTensor(x if x.type.static else body.adopt(x))
    zero.node  # noqa: B018
    return zero


Cond.vjp = cond_vjp  # type: ignore[method-assign, assignment]
