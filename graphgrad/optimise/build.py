"""What rules build: nodes that stand for others or beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import derive
from ..ir.types import Array, DType, Shape
from ..ops.base import Constant
from ..ops.elementwise.accumulate import AddN
from ..ops.elementwise.arithmetic import ADD
from ..ops.shape.reshaping import BroadcastLike, BroadcastTo, Reshape
from .facts import ints


def instead(node: Node, op: Op, *inputs: Tensor) -> Tensor:
    """The output of a new node that stands for `node`, with its name, line and origin."""
    return derive(node, op, inputs).outputs[0]


def beside(node: Node, op: Op, *inputs: Tensor) -> Tensor:
    """The output of a new node that helps to stand for `node`, with its line and origin."""
    made = derive(node, op, inputs)
    made._name = None
    return made.outputs[0]


def number_of(node: Node, value: Any, dtype: DType) -> Tensor:
    """A 0-d constant to stand beside a node."""
    return array_of(node, np.asarray(value, dtype=dtype))


def array_of(node: Node, value: Array) -> Tensor:
    """A constant to stand beside a node. The array is not copied and becomes read-only."""
    value.flags.writeable = False
    return beside(node, Constant(value))


def filled(node: Node, value: Any, like: Tensor) -> Tensor:
    """The number in the shape of `like`, of the dtype of the node's output."""
    (y,) = node.outputs
    one = number_of(node, value, y.dtype)
    if not like.shape:
        return one
    if like.type.static:
        return beside(node, BroadcastTo(ints(like.shape)), one)
    return beside(node, BroadcastLike(), one, like)


def reshaped(node: Node, x: Tensor, shape: Shape) -> Tensor:
    """x in another static shape, to stand beside a node; x itself where it has that shape."""
    return x if x.shape == shape else beside(node, Reshape(ints(shape)), x)


def total(node: Node, terms: Sequence[Tensor]) -> Tensor:
    """The sum of tensors of one type, to stand for a node."""
    if len(terms) == 1:
        return terms[0]
    return instead(node, ADD if len(terms) == 2 else AddN(), *terms)
