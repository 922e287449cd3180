"""Nodes that stand for one node."""

from __future__ import annotations

from typing import Any

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import derive
from ..ir.types import as_dtype
from .base import Full


class Making:
    """Nodes in place of one node, whose name and line they keep."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.inputs = node.inputs

    def __call__(self, op: Op, *inputs: Tensor) -> Tensor:
        """op(*inputs)."""
        return derive(self.node, op, inputs).outputs[0]

    def number(self, value: Any, dtype: Any) -> Tensor:
        """A 0-d constant."""
        return self(Full((), value, as_dtype(dtype)))

    def zero(self, like: Tensor) -> Tensor:
        """0 of another's dtype."""
        return self.number(0, like.dtype)
