"""Constant folding."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.program import Visit, derive
from ...ir.types import Array, TensorType, size_of
from ...ops.base import Constant, Full
from ...ops.elementwise.widening import computed

NODE_BYTES = 1 << 20
TOTAL_BYTES = 16 << 20
_PLAIN = (int, float, complex, str, bool, type(None), np.dtype, np.generic)


class Folding:
    """The step that puts constants in the place of what depends on constants alone.

    At most node_bytes per value and total_bytes in all. A broadcast is never written out: it stays
    a node, through which folding sees. A kernel that fails is left to fail when run, and is never
    run here if its op has a body of its own (a loop might not end).
    """

    def __init__(
        self, fired: Counter[str], node_bytes: int = NODE_BYTES, total_bytes: int = TOTAL_BYTES
    ) -> None:
        self.fired = fired
        self.known: dict[Tensor, Array] = {}
        self.node_bytes = node_bytes
        self.left = total_bytes

    def __call__(self, op_class: type[Op]) -> Visit | None:
        """What is to be done with nodes of an op class."""
        return self._note if op_class is Constant else None if op_class.source else self.visit

    def _note(self, node: Node) -> None:
        op = node.op
        assert isinstance(op, Constant)
        self.known[node.outputs[0]] = op.value

    def visit(self, node: Node) -> tuple[Tensor, ...] | None:
        """Constants for the outputs, where the inputs are known."""
        known = self.known
        for t in node.inputs:
            if t not in known:
                return None
        if not self._can(node):
            return None
        values = self._compute(node)
        if values is None:
            return None
        self.known.update(zip(node.outputs, values, strict=True))
        size = sum(v.nbytes for v in values)
        if size > self.left or any(map(is_broadcast, values)):
            return None
        self.left -= size
        made = [self._constant(node, v) for v in values]
        self.fired["folded"] += 1
        return tuple(made)

    def _can(self, node: Node) -> bool:
        op = node.op
        return (
            op.pure
            and not node.controls
            and all(_static_bytes(t.type) <= self.node_bytes for t in node.outputs)
            and all(_plain(v) for v in op.attrs.values())
        )

    def _compute(self, node: Node) -> list[Array] | None:
        op = node.op
        if type(op) is Full:
            return [np.broadcast_to(np.full((), op.value, dtype=op.dtype), op.shape)]
        arrays = [self.known[t] for t in node.inputs]
        try:
            with np.errstate(all="ignore"):
                made: Any = computed(node, np, arrays)
        except Exception:  # it will say so when it is run
            return None
        values = [np.asarray(v) for v in (made if len(node.outputs) > 1 else (made,))]
        types = [t.type for t in node.outputs]
        right = len(values) == len(types) and all(
            (v.dtype, v.shape) == (t.dtype, t.shape) for v, t in zip(values, types, strict=True)
        )
        return values if right else None

    def _constant(self, node: Node, value: Array) -> Tensor:
        value = value.copy()
        value.flags.writeable = False
        return derive(node, Constant(value), ()).outputs[0]


def is_broadcast(value: Array) -> bool:
    """Whether elements of the array share memory."""
    return any(s == 0 and n > 1 for s, n in zip(value.strides, value.shape, strict=True))


def _static_bytes(type: TensorType) -> float:
    size = size_of(type.shape)
    return float("inf") if size is None else size * type.dtype.itemsize


def _plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_plain, value))
    return isinstance(value, _PLAIN)
