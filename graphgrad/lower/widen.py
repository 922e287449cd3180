"""Programs with bfloat16, as programs that compute in float32."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..ir.kinds import FLOAT32, is_bfloat16
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.program import Program, derive
from ..ops.base import Cast, Constant, Full
from ..ops.widening import TO_FLOAT32, in_float32, reads_or_makes_bfloat16


def widen(program: Program, native: Collection[type[Op]] = ()) -> Program:
    """The program with casts around what computes with bfloat16; the very same one without any.

    native: ops that what runs the program computes of bfloat16 itself, rounding once.
    """
    if not any(map(reads_or_makes_bfloat16, program.nodes)):
        return program
    return program.rebuild(_Widening(native))


class _Widening:
    """A visit of nodes. Each bfloat16 tensor becomes float32 once, for all that read it."""

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
        if not is_bfloat16(t.dtype):
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
