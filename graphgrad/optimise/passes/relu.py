"""The gradient of relu, told by its output."""

from __future__ import annotations

from collections import Counter

from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.program import Visit, with_inputs
from ...ops.nn.activations import Relu, ReluGrad


class ReluGrads:
    """The step that lets the gradient of relu read y = relu(x) for x: y > 0 where x > 0.

    y is there anyway, for whatever reads it; x need not be kept for the way back, nor made at all
    where it is fused with the relu. Every bit stays.
    """

    def __init__(self, fired: Counter[str]) -> None:
        self.fired = fired
        self.relu_of: dict[Tensor, Tensor] = {}

    def __call__(self, op_class: type[Op]) -> Visit | None:
        """What is to be done with nodes of an op class."""
        return self._note if op_class is Relu else self._read if op_class is ReluGrad else None

    def _note(self, node: Node) -> None:
        self.relu_of.setdefault(node.inputs[0], node.outputs[0])

    def _read(self, node: Node) -> tuple[Tensor, ...] | None:
        dy, x = node.inputs
        y = self.relu_of.get(x)
        if y is None or node.controls:
            return None
        self.fired["relu_grad_of_output"] += 1
        return with_inputs(node, (dy, y)).outputs
