"""Common subexpressions."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program
from ..ops.base import Constant

SHORT = 64  # bytes of a constant that are compared as they are, not by their hash


def eliminate_common_subexpressions(program: Program) -> Program:
    """Keep the first of every set of nodes that apply one op to the same tensors.

    Ops are interned, so equal ops are one object. Constants are equal where dtype, shape and bytes
    are: 0.0 and -0.0 are two values, and NaN is one. Impure nodes are never merged. Regions do not
    keep nodes apart: a program is past differentiation.
    """
    first: dict[Any, Node] = {}

    def merge(node: Node) -> tuple[Tensor, ...] | None:
        if not node.op.pure:
            return None
        key = (_op_key(node.op), tuple(map(id, node.inputs)), node.controls)
        kept = first.setdefault(key, node)
        return None if kept is node else kept.outputs

    return program.rebuild(merge)


def _op_key(op: Op) -> Any:
    return constant_key(op) if type(op) is Constant else op


def constant_key(op: Constant) -> tuple[Any, ...]:
    """Equal for constants that cannot be told apart."""
    value = op.value
    content = value.tobytes()
    if len(content) > SHORT:
        content = sha256(content).digest()
    return value.dtype, value.shape, content
