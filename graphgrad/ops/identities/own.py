"""The outputs of a node with a stamp, read with the op's own gradient.

What the own gradient of a stamped node reads of the node's outputs is to be
differentiated by the op's own gradient again, not by the rule. `Own` is that read: it passes the
outputs through and has the gradient that the node would have without its stamp.
"""

from __future__ import annotations

from ..base import (
    NO_GRAD,
    Any,
    Gradients,
    Memory,
    Node,
    Op,
    Tensor,
    TensorType,
    Types,
    build,
    cast,
    is_zero,
)
from ..shape.reshaping import sum_to

__all__ = ["Applied", "Own", "OwnStep"]


class Own(Op):
    """ys = the first `count` inputs, which are op(the other inputs). Gradient: that of op."""

    op: Op
    count: int
    memory = Memory(view=True)

    def infer(self, *types: TensorType) -> Types:
        return types[: self.count]

    def kernel(self, xp: Any, *arrays: Any) -> Any:
        return arrays[0] if self.count == 1 else arrays[: self.count]

    def vjp(self, node: Node, *dys: Tensor) -> Gradients:
        inputs = node.inputs[self.count :]
        dxs = self.op.vjp(Applied(self.op, inputs, node.outputs), *dys)
        return [NO_GRAD] * self.count + [
            dx if dx is NO_GRAD or is_zero(dx) else sum_to(cast(dx, x.dtype), like=x)
            for x, dx in zip(inputs, dxs, strict=True)
        ]


class Applied:
    """An op applied to inputs, as a gradient sees it."""

    def __init__(self, op: Op, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]) -> None:
        self.op = op
        self.inputs = inputs
        self.outputs = outputs


class OwnStep:
    """A stamped node as its op's own gradient sees it: its outputs are read as `Own`."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.op = node.op
        self.inputs = node.inputs
        self._outputs: tuple[Tensor, ...] | None = None

    @property
    def name(self) -> str:
        """That of the node."""
        return self.node.name

    @property
    def where(self) -> str:
        """That of the node."""
        return self.node.where

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs; built when the gradient reads them."""
        if self._outputs is None:
            node = self.node
            made = build(Own(node.op, len(node.outputs)), (*node.outputs, *node.inputs))
            self._outputs = made.outputs
        return self._outputs
