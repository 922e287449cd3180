"""Constant folding."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.node import Node, Tensor
from ..ir.program import Program, derive
from ..ir.types import Array, TensorType, size_of
from ..ops.base import Constant, Full

NODE_BYTES = 1 << 20
TOTAL_BYTES = 16 << 20
_PLAIN = (int, float, complex, str, bool, type(None), np.dtype, np.generic)


def fold_constants(
    program: Program, node_bytes: int = NODE_BYTES, total_bytes: int = TOTAL_BYTES
) -> Program:
    """Compute now what depends on constants alone.

    At most node_bytes per value and total_bytes in all. A broadcast is never written out: it stays
    a node, through which folding sees. A kernel that fails is left to fail when run, and is never
    run here if its op has a body of its own (a loop might not end).
    """
    folding = _Folding(node_bytes, total_bytes, frozenset(program.inputs))
    with np.errstate(all="ignore"):
        return program.rebuild(folding.visit)


class _Folding:
    def __init__(self, node_bytes: int, total_bytes: int, given: frozenset[Tensor]) -> None:
        self.given = given
        self.known: dict[Tensor, Array] = {}
        self.node_bytes = node_bytes
        self.left = total_bytes

    def visit(self, node: Node) -> tuple[Tensor, ...] | None:
        if type(node.op) is Constant:
            self.known[node.outputs[0]] = node.op.value
            return None
        if not self._can(node):
            return None
        values = self._compute(node)
        if values is None:
            return None
        pairs = zip(node.outputs, values, strict=True)
        self.known.update((t, v) for t, v in pairs if t not in self.given)
        size = sum(v.nbytes for v in values)
        if size > self.left or any(map(is_broadcast, values)):
            return None
        self.left -= size
        made = [self._constant(node, v) for v in values]
        self.known.update(zip(made, values, strict=True))
        return tuple(made)

    def _can(self, node: Node) -> bool:
        op = node.op
        return (
            op.pure
            and not op.source
            and not node.controls
            and all(t in self.known for t in node.inputs)
            and all(_static_bytes(t.type) <= self.node_bytes for t in node.outputs)
            and all(_plain(v) for v in op.attrs.values())
        )

    def _compute(self, node: Node) -> list[Array] | None:
        if type(node.op) is Full:
            one = np.full((), node.op.value, dtype=node.op.dtype)
            return [np.broadcast_to(one, node.op.shape)]
        try:
            made: Any = node.op.kernel(np, *(self.known[t] for t in node.inputs))
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
