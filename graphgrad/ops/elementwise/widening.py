"""Sixteen bits are a format to keep numbers in: what computes with them computes in float32.

An op reads its bfloat16 operands as float32, runs as it does of float32, and what it makes is
rounded once. Ops that move data, or look at it, run as they are. The same holds of float16, but
for element-wise ops other than sums of many terms: NumPy and XLA compute these themselves. So every
sum of either dtype is accumulated in float32, and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.kinds import FLOAT32, is_bfloat16, is_half
from ...ir.node import Node
from ...ir.op import Op
from ...ir.types import TensorType, tensor_type
from ..base import Cast
from .accumulate import AddN

TO_FLOAT32 = Cast(FLOAT32)


def of_half(node: Node) -> bool:
    """Whether a tensor at a node has 16 bits, so that it may be computed in float32."""
    return any(is_half(t.type.dtype) for t in (*node.inputs, *node.outputs))


def in_float32(node: Node) -> Op | None:
    """The op that computes in float32 what a node does of 16 bits; None where it runs as it is."""
    op = node.op
    tensors = *node.inputs, *node.outputs
    if not of_half(node) or _runs_as_it_is(op):
        return None
    if _computes_float16(op) and not any(is_bfloat16(t.type.dtype) for t in tensors):
        return None
    wide = op.replace(**{n: FLOAT32 for n, v in op.attrs.items() if _says_half(v)})
    try:
        made = wide.infer(*[_wide(t.type) for t in node.inputs])
    except Exception:  # whatever infer raises, a user's op's too: it is for 16 bits alone
        return None
    return wide if made == tuple([_wide(t.type) for t in node.outputs]) else None


def computed(node: Node, xp: Any, arrays: Sequence[Any]) -> Any:
    """What the kernel of a node makes of arrays: the output, or a tuple of them."""
    wide = in_float32(node)
    if wide is None:
        return node.op.kernel(xp, *arrays)
    made = wide.kernel(xp, *[xp.astype(a, FLOAT32) if is_half(a.dtype) else a for a in arrays])
    if len(node.outputs) == 1:
        return xp.astype(made, node.outputs[0].dtype)
    return tuple([xp.astype(a, t.dtype) for a, t in zip(made, node.outputs, strict=True)])


def _runs_as_it_is(op: Op) -> bool:
    """Whether it is about the format of its numbers, or no computation in one."""
    return op.traits.of_format or _only_moves(op) or bool(op.bodies) or not op.pure


def _only_moves(op: Op) -> bool:
    """Whether it makes, moves or passes on data; a view that counts operations may do more."""
    return op.flop_free or (op.memory.view and type(op).flops is Op.flops)


def _computes_float16(op: Op) -> bool:
    """Whether backends have it of float16 as it is: element by element, with one rounding."""
    return op.elementwise and type(op) is not AddN


def _says_half(attribute: Any) -> bool:
    return isinstance(attribute, np.dtype) and is_half(attribute)


def _wide(t: TensorType) -> TensorType:
    return tensor_type(t.shape, FLOAT32) if is_half(t.dtype) else t
