"""Common subexpressions."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import Any

import numpy as np

from ...base.kinds import kind_of
from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.program import Visit
from ...ir.types import Array
from ...ops.base import Constant
from ..rule import Step

SHORT = 64  # bytes of a constant that are compared as they are, not by their hash
LONG = 1 << 16  # bytes of a constant from which on it is compared with what looks like it alone
LOOKS = 64  # elements of it that are looked at


def merging(fired: Counter[str]) -> Step:
    """The step that keeps the first of all nodes that compute the same of the same tensors.

    Ops are interned, so equal ops are one object. x + y and y + x are the same, x > y and y < x,
    and all ways to write one reshape; max(x, y) and max(y, x) may differ in the sign of a zero.
    Constants are equal where dtype, shape and bytes are: 0.0 and -0.0 are two values, and NaN is
    one. Impure nodes are never merged. Regions do not keep nodes apart: a program is past
    differentiation.
    """
    first: dict[Any, Node] = {}

    def step(op_class: type[Op]) -> Visit | None:
        keyed = _key_maker(op_class)

        def merge(node: Node) -> tuple[Tensor, ...] | None:
            if not node.op.pure:
                return None
            key = keyed(node)
            kept = first.setdefault((key, node.controls) if node.controls else key, node)
            if kept is node:
                return None
            fired["merged"] += 1
            return kept.outputs

        return merge

    return step


def _key_maker(op_class: type[Op]) -> Any:
    """What makes of a node of this class a key that equal nodes have in common."""
    if op_class is Constant:
        return lambda node: constant_key(node.op)
    if op_class.traits.commutes:
        return _in_any_order
    if op_class.traits.mirror_type is not None:
        return _mirrored
    return _by_type if op_class.memory.reshapes else _in_order


def _in_order(node: Node) -> Any:
    inputs = node.inputs
    if len(inputs) == 1:  # what makes a tensor, and its place there: an id would be one more object
        return node.op, inputs[0].node, inputs[0].index
    return (node.op, *[t.node for t in inputs], *[t.index for t in inputs])


def _in_any_order(node: Node) -> Any:
    x, y = node.inputs
    if id(x) > id(y) and kind_of(x.dtype) != "c":
        x, y = y, x
    return node.op, x.node, y.node, x.index, y.index


def _mirrored(node: Node) -> Any:
    x, y = map(id, node.inputs)
    mirror = node.op.traits.mirror_type
    assert mirror is not None
    return (node.op.type, x, y) if node.op.type > mirror else (mirror, y, x)


def _by_type(node: Node) -> Any:
    (x,), (y,) = node.inputs, node.outputs
    return ("Reshape", y.type, id(x)) if x.type.static and y.type.static else (node.op, id(x))


class _Content:
    """The bytes of a large array in order. Its hash is that of a few, of all over it."""

    __slots__ = ("bytes", "looks")

    def __init__(self, value: Array) -> None:
        flat = value.reshape(-1)
        self.bytes = flat.view(np.uint8)
        self.looks = hash(flat[:: max(1, flat.size // LOOKS)].tobytes())

    def __hash__(self) -> int:
        return self.looks

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and np.array_equal(self.bytes, other.bytes)


def constant_key(op: Constant) -> tuple[Any, ...]:
    """Equal for constants that cannot be told apart."""
    value = op.value
    if value.nbytes >= LONG:
        return value.dtype, value.shape, _Content(np.ascontiguousarray(value))
    content = value.tobytes()
    if len(content) > SHORT:
        content = sha256(content).digest()
    return value.dtype, value.shape, content
