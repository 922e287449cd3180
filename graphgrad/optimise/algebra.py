"""Algebra that keeps every value: NaN, infinities and the sign of zero included.

What is missing here is missing on purpose: 0 * x is NaN for x = inf, x + 0.0 turns -0.0 into 0.0,
x - x is NaN for x = inf, and complex products mix their parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ir.types import Dim, Shape, broadcast
from ..ops.base import Constant, Full
from ..ops.shaping import BroadcastLike, BroadcastTo, ExpandDims, Reshape
from .rewrite import Rule, instead, rewrite, rule

_REAL = "iuf"
_DEPTH = 8  # how far constants are looked for behind broadcasts


# --- neutral elements --------------------------------------------------------------------------


@rule("Multiply")
def times_one(node: Node) -> Tensor | None:
    """x * 1 -> x"""
    for x, c in _both(node):
        if _is_neutral(node, x, c, 1):
            return x
    return None


@rule("Divide")
def over_one(node: Node) -> Tensor | None:
    """x / 1 -> x"""
    x, c = node.inputs
    return x if _is_neutral(node, x, c, 1) else None


@rule("Add")
def plus_zero(node: Node) -> Tensor | None:
    """x + (-0.0) -> x, and x + 0 -> x for integers"""
    for x, c in _both(node):
        if _is_neutral(node, x, c, -0.0):
            return x
    return None


@rule("Subtract")
def minus_zero(node: Node) -> Tensor | None:
    """x - 0.0 -> x"""
    x, c = node.inputs
    return x if _is_neutral(node, x, c, 0.0) else None


@rule("Power")
def power_one(node: Node) -> Tensor | None:
    """x ** 1 -> x"""
    x, c = node.inputs
    return x if _is_neutral(node, x, c, 1) else None


# --- pairs that cancel -------------------------------------------------------------------------


@rule("Negative")
def double_negative(node: Node) -> Tensor | None:
    """-(-x) -> x"""
    inner = node.inputs[0].node
    return inner.inputs[0] if inner.type == "Negative" else None


@rule("Cast")
def cast_and_back(node: Node) -> Tensor | None:
    """x as a wider dtype of its kind and back -> x; x as its own dtype -> x"""
    (y,), (x,) = node.outputs, node.inputs
    if x.type is y.type:
        return x
    if x.node.type != "Cast":
        return None
    (start,) = x.node.inputs
    wider = start.dtype.kind == x.dtype.kind and start.dtype.itemsize <= x.dtype.itemsize
    return start if wider and start.type is y.type else None


@rule("Transpose")
def transpose_of_transpose(node: Node) -> Tensor | None:
    """x with its axes permuted twice -> once, or not at all"""
    (x,) = node.inputs
    axes = node.op.attrs["axes"]
    if axes == tuple(range(len(axes))):
        return x
    if x.node.type != "Transpose":
        return None
    inner = x.node.op.attrs["axes"]
    return instead(node, type(node.op)(tuple(inner[a] for a in axes)), x.node.inputs[0])


@rule("Squeeze")
def squeeze_of_expand_dims(node: Node) -> Tensor | None:
    """axes put in and taken out -> x"""
    return _undone(node, "ExpandDims")


@rule("ExpandDims")
def expand_dims_of_squeeze(node: Node) -> Tensor | None:
    """axes of length 1 taken out and put back -> x"""
    return _undone(node, "Squeeze")


@rule("Reshape")
def reshape_of_reshape(node: Node) -> Tensor | None:
    """x reshaped twice -> once, or not at all"""
    (y,), (x,) = node.outputs, node.inputs
    if not y.type.static:
        return None
    if x.type is y.type:
        return x
    if x.node.type not in ("Reshape", "ExpandDims", "Squeeze"):
        return None
    if not x.node.inputs[0].type.static:
        return None  # the first may be an error when run
    return instead(node, Reshape(y.shape), x.node.inputs[0])


@rule("BroadcastTo", "SumToShape")
def to_own_shape(node: Node) -> Tensor | None:
    """x broadcast or summed to its own shape -> x"""
    (x,) = node.inputs
    return x if x.type is node.outputs[0].type and x.type.static else None


@rule("BroadcastTo")
def broadcast_of_broadcast(node: Node) -> Tensor | None:
    """x broadcast twice -> once"""
    inner = node.inputs[0].node
    if inner.type != "BroadcastTo" or not inner.inputs[0].type.static:
        return None  # of unknown lengths, the first may be an error when run
    return instead(node, node.op, inner.inputs[0])


# --- broadcasts --------------------------------------------------------------------------------


@rule(
    "Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "Where",
    "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual",
)  # fmt: skip
def broadcast_into_elementwise(node: Node) -> Tensor | None:
    """broadcast(x) op y -> x op y, where y has the whole shape anyway"""
    shape = node.outputs[0].shape
    inputs = list(node.inputs)
    for i, t in enumerate(inputs):
        if type(t.node.op) not in (BroadcastTo, BroadcastLike) or t.shape != shape:
            continue
        rest = [*inputs[:i], *inputs[i + 1 :]]
        if any(r.shape == shape and None not in shape for r in rest):
            inputs[i] = t.node.inputs[0]
            if broadcast([r.shape for r in inputs]) != shape:
                return None
            return instead(node, node.op, *inputs)
    return None


# --- what rules ask ----------------------------------------------------------------------------


def _both(node: Node) -> Iterator[tuple[Tensor, Tensor]]:
    x, y = node.inputs
    yield x, y
    yield y, x


def _is_neutral(node: Node, x: Tensor, c: Tensor, number: float) -> bool:
    """Whether c is this number everywhere, and x already of the shape of the result."""
    kind = x.dtype.kind
    return (
        kind in _REAL
        and x.type is node.outputs[0].type
        and adds_no_length(c.shape, x.shape)
        and _is(uniform_value(c), number)
    )


def adds_no_length(small: Shape, big: Shape) -> bool:
    """Whether broadcasting `small` against `big` surely leaves big's lengths."""
    if len(small) > len(big):
        return False
    tail = big[len(big) - len(small) :]
    return all(_same(a, b) for a, b in zip(small, tail, strict=True))


def _same(a: Dim, b: Dim) -> bool:
    return (a == 1 and isinstance(a, int)) or (a is not None and a == b)


def uniform_value(t: Tensor) -> Any:
    """The number that every element of t is; None where that is not known."""
    for _ in range(_DEPTH):
        op = t.node.op
        if type(op) is Constant:
            value = op.value.reshape(-1)
            one = value[:1]
            same = value.size == 1 or (
                value.size > 1 and value.tobytes() == one.tobytes() * value.size
            )
            return one[0] if same else None
        if type(op) is Full:
            return np.full((), op.value, dtype=op.dtype)[()]
        if type(op) not in (BroadcastTo, BroadcastLike, ExpandDims, Reshape):
            return None
        (t, *_) = t.node.inputs
    return None


def _is(value: Any, number: float) -> bool:
    """Equal, and for floats of equal sign: 0.0 is not -0.0."""
    if value is None or value != number:
        return False
    return value.dtype.kind != "f" or bool(np.signbit(value) == np.signbit(number))


def _undone(node: Node, other: str) -> Tensor | None:
    inner = node.inputs[0].node
    if inner.type != other or inner.op.attrs["axes"] != node.op.attrs["axes"]:
        return None
    (x,) = inner.inputs
    return x if x.type is node.outputs[0].type else None


ALGEBRA: tuple[Rule, ...] = (
    times_one,
    over_one,
    plus_zero,
    minus_zero,
    power_one,
    double_negative,
    cast_and_back,
    transpose_of_transpose,
    squeeze_of_expand_dims,
    expand_dims_of_squeeze,
    reshape_of_reshape,
    to_own_shape,
    broadcast_of_broadcast,
    broadcast_into_elementwise,
)


def simplify(program: Program, fired: Counter[str] | None = None) -> Program:
    """ALGEBRA applied to every node. fired: counts how often each rule did."""
    return rewrite(*ALGEBRA, fired=fired)(program)
