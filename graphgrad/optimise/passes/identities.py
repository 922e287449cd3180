"""Take away what only differentiation needs."""

from __future__ import annotations

from collections import Counter

from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.program import Visit
from ...ir.residual import Residual
from ...ops.identities.own import Own
from ...ops.sources import Assign, Identity
from ..rule import Step


def identities(fired: Counter[str]) -> Step:
    """The step that puts its input in the place of a Residual, Own, Identity, StopGradient or kin.

    An Assign is its value: that it writes is settled before, its value is an output of the program.
    """

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
    return node.inputs[1:2] if isinstance(op, Assign) else node.inputs
