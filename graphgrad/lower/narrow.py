"""Programs of double precision, as programs that compute in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program, derive
from ..ir.types import DType, TensorType, tensor_type
from ..ops.base import Cast, Constant
from ..ops.sources import Placeholder

__all__ = ["narrow", "narrow_dtype"]

_NARROW = {
    np.dtype("float64"): np.dtype("float32"),
    np.dtype("complex128"): np.dtype("complex64"),
}


def narrow_dtype(dtype: DType) -> DType:
    """float32 for float64, complex64 for complex128; any other dtype as it is."""
    return _NARROW.get(dtype, dtype)


def narrow(program: Program) -> Program:
    """The program with float32 for every float64 in it, and complex64 for every complex128.

    Constants are rounded, integers stay what they are.
    """
    new: dict[Tensor, Tensor] = {}
    inputs = [_input(t) for t in program.inputs]
    new.update(zip(program.inputs, inputs, strict=True))
    nodes: list[Node] = []
    moved: dict[Node, Node] = {}
    for node in program.nodes:
        made = derive(node, _op(node.op), tuple([new[t] for t in node.inputs]))
        made.controls = tuple([moved[n] for n in node.controls if n in moved])
        moved[node] = made
        nodes.append(made)
        for t, y in zip(node.outputs, made.outputs, strict=True):
            wanted = narrow_dtype(t.dtype)
            if y.dtype != wanted:
                cast = derive(node, Cast(wanted), (y,))
                cast.controls = ()
                nodes.append(cast)
                y = cast.outputs[0]
            new.setdefault(t, y)
    return Program(inputs, [new[t] for t in program.outputs], nodes)


def _input(t: Tensor) -> Tensor:
    """What stands for an input: of its node's name and line, and nothing runs to make it."""
    type = _type(t.type)
    return derive(t.node, Placeholder(type.shape, type.dtype), ()).outputs[0]


def _type(type: TensorType) -> TensorType:
    return tensor_type(type.shape, narrow_dtype(type.dtype))


def _op(op: Op) -> Op:
    """The op that computes in single precision."""
    if type(op) is Constant:
        return _constant(op)
    if op.bodies:
        op = op.replace_bodies([narrow(body) for body in op.bodies])
    attrs = {name: _value(value) for name, value in op.attrs.items()}
    changed = {n: v for n, v in attrs.items() if v is not op.attrs[n]}
    return op.replace(**changed) if changed else op


def _constant(op: Constant) -> Op:
    dtype = narrow_dtype(op.value.dtype)
    if dtype == op.value.dtype:
        return op
    with np.errstate(all="ignore"):
        value = op.value.astype(dtype)
    value.flags.writeable = False
    return Constant(value)


def _value(value: Any) -> Any:
    """An attribute of an op."""
    if isinstance(value, np.dtype):
        return narrow_dtype(value)
    if isinstance(value, TensorType):
        return _type(value)
    if isinstance(value, Op):
        return _op(value)
    if type(value) is tuple:
        narrowed = tuple([_value(v) for v in value])
        return value if all(a is b for a, b in zip(narrowed, value, strict=True)) else narrowed
    return value
