"""Programs with dtypes of 16 bits, as programs that compute in float32."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..base.kinds import FLOAT32, is_half
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program, derive
from ..ops.base import Cast, Constant, Full
from ..ops.elementwise.widening import TO_FLOAT32, in_float32


def widen(program: Program, native: Collection[type[Op]] = ()) -> Program:
    """The program with casts around what computes of 16 bits in float32; itself without any.

    native: ops that what runs the program computes of 16 bits itself, rounding once.
    """
    if not any(is_half(t.dtype) for t in program.types):
        return program
    return program.rebuild(_Widening(native))


class _Widening:
    """A visit of nodes. Each tensor of 16 bits becomes float32 once, for all that read it."""

    def __init__(self, native: Collection[type[Op]]) -> None:
        self._native = native
        self._wide: dict[Tensor, Tensor] = {}

    def __call__(self, node: Node) -> tuple[Tensor, ...] | None:
        op = None if type(node.op) in self._native else in_float32(node)
        if op is None:
            return None
        made = derive(node, op, tuple([self._read(t, node) for t in node.inputs]))
        pairs = zip(made.outputs, node.outputs, strict=True)
        return tuple([y if y.type is t.type else _cast(node, Cast(t.dtype), y) for y, t in pairs])

    def _read(self, t: Tensor, node: Node) -> Tensor:
        if not is_half(t.dtype):
            return t
        if t not in self._wide:
            number = _number(t)
            self._wide[t] = _cast(node, TO_FLOAT32, t) if number is None else number
        return self._wide[t]


def _number(t: Tensor) -> Tensor | None:
    """A constant of one number as float32; None for any other tensor."""
    op: Op = t.node.op
    if type(op) is Full:
        op = op.replace(value=float(np.asarray(op.value, t.dtype)), dtype=FLOAT32)
    elif type(op) is Constant and op.value.size == 1:
        op = Constant(op.value.astype(FLOAT32))
        op.value.flags.writeable = False
    return None if op is t.node.op else derive(t.node, op, ()).outputs[0]


def _cast(node: Node, op: Cast, t: Tensor) -> Tensor:
    made = derive(node, op, (t,))
    made.controls = ()
    return made.outputs[0]
