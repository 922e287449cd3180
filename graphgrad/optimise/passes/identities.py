"""Take away what only differentiation needs."""

from __future__ import annotations

from collections import Counter

from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.program import Program, Visit
from ...ir.residual import Residual
from ...ops.own import Own
from ...ops.sources import Assign, Identity
from ..rewrite import settle
from ..rule import Step


def remove_residuals_and_identities(program: Program) -> Program:
    """Residual, Own, Identity, StopGradient and their kin are their input; an Assign is its value.

    That an Assign writes is settled before: its value is an output of the program.
    """
    return settle(program, identities(Counter()))


def identities(fired: Counter[str]) -> Step:
    """The step that puts the input of an identity in its place."""

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        if node.controls:
            return None
        fired["identities"] += 1
        return _passed_on(node)

    def step(op_class: type[Op]) -> Visit | None:
        identity = issubclass(op_class, Identity | Residual) and op_class.pure
        return visit if identity or op_class is Assign or op_class is Own else None

    return step


def _passed_on(node: Node) -> tuple[Tensor, ...]:
    """What the outputs of an identity are."""
    op = node.op
    if isinstance(op, Own):
        return node.inputs[: op.count]
    return node.inputs[1:] if isinstance(op, Assign) else node.inputs
