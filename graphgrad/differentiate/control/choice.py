"""The gradient of a choice: one between the gradients of its bodies.

The chosen body's forward part is run again by it, on the same inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.node import Node, Tensor
from ...ir.op import Gradients
from ...ir.program import Program
from ...ops.base import NO_GRAD, ZeroTensor, is_zero, wants
from ...ops.control import BodyScope, Cond, choose
from ..gradients import gradients
from .bodies import body_of, here, zero_in


def cond_vjp(op: Cond, node: Node, *dys: Tensor | None) -> Gradients:
    """One gradient for each input of the choice: none for the bool, of captures by branch."""
    pred, *captured = node.inputs
    wanted = [i for i, x in enumerate(captured) if x.type.differentiable and wants(x)]
    programs = [here(program) for program in op.programs]
    branches = [
        _branch(program, reads, wanted, dys)
        for program, reads in zip(programs, op.reads, strict=True)
    ]
    flows = [i for i in wanted if any(i in dxs for dxs in branches)]
    if not flows:
        return [NO_GRAD] * len(node.inputs)
    bodies = [body_of(program) for program in programs]
    outputs = []
    for body, dxs in zip(bodies, branches, strict=True):
        with BodyScope(body):
            outputs.append([dxs[i] if i in dxs else zero_in(body, captured[i]) for i in flows])
    given = dict(zip(flows, choose(pred, bodies, outputs), strict=True))
    return [NO_GRAD, *(given.get(i, NO_GRAD) for i in range(len(captured)))]


def _branch(
    program: Program, reads: Sequence[int], wanted: Sequence[int], dys: Sequence[Tensor | None]
) -> dict[int, Tensor]:
    """The gradients of one body with respect to the captures it reads, where something flows."""
    body = body_of(program)
    inner = dict(zip(reads, program.inputs, strict=True))
    at = [i for i in wanted if i in inner]
    pairs = [
        (y, dy)
        for y, dy in zip(program.outputs, dys, strict=True)
        if dy is not None and y.type.differentiable
    ]
    with BodyScope(body):
        dxs = gradients(
            [y for y, _ in pairs],
            [inner[i] for i in at],
            grad_ys=[ZeroTensor(y) if is_zero(dy) else body.adopt(dy) for y, dy in pairs],
        )
    return {i: dx for i, dx in zip(at, dxs, strict=True) if dx is not None}


Cond.vjp = cond_vjp
