"""What a group computes, without names and places: equal groups are equal recipes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.types import TensorType
from ...lower.fused import Fused
from ...ops.base import Constant, Full


class Member(NamedTuple):
    """A node of a group. reads: values by number, the inputs of the group first, then its nodes."""

    op: Op
    reads: tuple[int, ...]
    type: TensorType


class Recipe(NamedTuple):
    """outputs: values by number."""

    inputs: tuple[TensorType, ...]
    members: tuple[Member, ...]
    outputs: tuple[int, ...]


def recipe_of(node: Node) -> Recipe:
    """The recipe of a Fused node, or of any other as a group of its own."""
    if isinstance(node.op, Fused):
        program = node.op.program
        return _recipe(program.inputs, program.nodes, program.outputs)
    return _recipe(node.inputs, (node,), node.outputs)  # one that it reads twice stands there twice


def _recipe(inputs: Sequence[Tensor], nodes: Sequence[Node], outputs: Sequence[Tensor]) -> Recipe:
    number = {t: i for i, t in enumerate(inputs)}
    members = []
    for at, node in enumerate(nodes, len(inputs)):
        (y,) = node.outputs
        members.append(Member(_plain(node.op), tuple([number[t] for t in node.inputs]), y.type))
        number[y] = at
    return Recipe(
        tuple([t.type for t in inputs]), tuple(members), tuple([number[t] for t in outputs])
    )


def _plain(op: Op) -> Op:
    """A constant of one number as Full, which equal numbers share."""
    if isinstance(op, Constant) and op.value.size == 1:
        return Full(op.value.shape, op.value.item(), op.value.dtype)
    return op
