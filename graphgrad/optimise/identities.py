"""Take away what only differentiation needs."""

from __future__ import annotations

from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ir.residual import Residual
from ..ops.own import Own
from ..ops.sources import Assign, Identity


def remove_residuals_and_identities(program: Program) -> Program:
    """Residual, Own, Identity, StopGradient and their kin are their input; an Assign is its value.

    That an Assign writes is settled before: its value is an output of the program.
    """
    return program.rebuild(_through)


def _through(node: Node) -> tuple[Tensor, ...] | None:
    if node.controls:
        return None
    if isinstance(node.op, Identity | Residual) and node.op.pure:
        return node.inputs
    if type(node.op) is Assign:
        return node.inputs[1:]
    if isinstance(node.op, Own):
        return node.inputs[: node.op.count]
    return None
