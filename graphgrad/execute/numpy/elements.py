"""A group of element-wise nodes and reductions as steps, each of which is one call of NumPy.

Values are numbered: the inputs of the group, then what steps make. A value has the shape that its
operands have together, which may be less than the group's: what is broadcast is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ir.op import Op
from ...ir.types import DType, broadcast, lengths
from ...lower.calls import Call, Operand, calls_of
from ...lower.loop_ir import LoopGroup, Member, Number
from ...ops.shape.reshaping import BroadcastTo

SPREAD = "spread"
Shape = tuple[int, ...]
REDUCTIONS: dict[str | None, np.ufunc] = {
    "sum": np.add,
    "mean": np.add,
    "max": np.maximum,
    "min": np.minimum,
}
SLOW_WITH_ONE_NUMBER = frozenset({np.maximum, np.minimum, np.fmax, np.fmin})
WORTH_SPREADING = 512  # elements


class ValueType(NamedTuple):
    """What is known of a value."""

    dtype: DType
    shape: Shape


class ReductionStep(NamedTuple):
    """An output of a group that reduces a value over axes of the group's shape.

    output, shape: its place and its shape, which may have axes of length 1 where x is reduced, as
    `kept` has not. divisor: of the reduced value, for a mean.
    """

    output: int
    shape: Shape
    ufunc: np.ufunc
    axes: tuple[int, ...]
    dtype: DType
    divisor: int | None


class UfuncStep(NamedTuple):
    """One call: fn (a ufunc, CHOOSE, CAST, SPREAD, or a ReductionStep) of operands makes a value.

    makes: a value by number; None for a ReductionStep, which writes an output.
    """

    fn: Any
    operands: tuple[Operand, ...]
    makes: int | None


class Elements(NamedTuple):
    """The steps of a group.

    loop     the shape that they run over
    arity    the number of inputs, which are the first values
    outputs  for each output the value that it is, no two the same and each made by a step, or None
             where a ReductionStep writes it
    """

    loop: Shape
    arity: int
    values: tuple[ValueType, ...]
    steps: tuple[UfuncStep, ...]
    outputs: tuple[int | None, ...]


def elements_of(group: LoopGroup) -> Elements | None:
    """The steps of a group of static types, None where a kernel is no sequence of calls."""
    return _UfuncLowering(group).run()


class _UfuncLowering:
    def __init__(self, group: LoopGroup) -> None:
        self.group = group
        self.types = [*group.inputs, *[m.type for m in group.members]]
        self.loop = group.space.shape
        self.values = [ValueType(t.dtype, lengths(t)) for t in group.inputs]
        self.steps: list[UfuncStep] = []
        self.made: dict[Any, int] = {}
        self.found: list[Operand | None] = list(range(len(self.values)))  # inputs, then members

    def run(self) -> Elements | None:
        """Member by member."""
        for member in self.group.members:
            if isinstance(member.op, Number):
                self.found.append(member.op.array())
            elif isinstance(member.op, BroadcastTo):
                self.found.append(self._read(member.reads[0]))
            elif member.op.reduction in REDUCTIONS:
                self._reduce(member.op, member)
            elif not self._inline(member.op, member):
                return None
        outputs: list[int | None] = []
        for o in self.group.outputs:
            operand = self.found[o]
            outputs.append(None if operand is None else self._own(operand, outputs))
        arity = len(self.group.inputs)
        return Elements(self.loop, arity, tuple(self.values), tuple(self.steps), tuple(outputs))

    def _inline(self, op: Op, member: Member) -> bool:
        """The steps of one node; False where it cannot be taken apart."""
        reads = [self._read(r) for r in member.reads]
        dtypes = tuple([self.types[r].dtype for r in member.reads])
        calls = calls_of(op, dtypes, member.type.dtype)
        if calls is None:
            return False
        for call in calls.steps:
            reads.append(self._call(call, reads))
        self.found.append(reads[calls.result])
        return True

    def _read(self, number: int) -> Operand:
        operand = self.found[number]
        assert operand is not None, "a group reads what it reduces"
        return operand

    def _call(self, call: Call, reads: Sequence[Operand]) -> int:
        operands = tuple([reads[o] if isinstance(o, int) else o for o in call.operands])
        shape: Any = broadcast([self._shape(o) for o in operands])
        if call.fn in SLOW_WITH_ONE_NUMBER and math.prod(shape) >= WORTH_SPREADING:
            operands = tuple([self._spread(o, shape) for o in operands])
        return self._step(call.fn, operands, ValueType(call.dtype, shape))

    def _spread(self, operand: Operand, shape: Shape) -> Operand:
        """An operand that stays the same along the last axis, as an array of the whole shape."""
        last = (1, *self._shape(operand))[-1]
        if last == shape[-1]:
            return operand
        return self._step(SPREAD, (operand,), ValueType(self._dtype(operand), shape))

    def _step(self, fn: Any, operands: tuple[Operand, ...], value: ValueType) -> int:
        """The value that a step makes; a step that was there before is not made again."""
        keys = [o if isinstance(o, int) else (o.dtype, o.tobytes()) for o in operands]
        key = (fn, value, *keys)
        if key not in self.made:
            self.made[key] = self._append(fn, operands, value)
        return self.made[key]

    def _append(self, fn: Any, operands: tuple[Operand, ...], value: ValueType) -> int:
        self.steps.append(UfuncStep(fn, operands, len(self.values)))
        self.values.append(value)
        return len(self.values) - 1

    def _own(self, operand: Operand, taken: Sequence[int | None]) -> int:
        """A value that one output can be: made here, of the whole shape, and of no other output."""
        if (
            isinstance(operand, int)
            and operand >= len(self.group.inputs)
            and self.values[operand].shape == self.loop
            and operand not in taken
        ):
            return operand
        return self._append(SPREAD, (operand,), ValueType(self._dtype(operand), self.loop))

    def _reduce(self, op: Op, member: Member) -> None:
        """One step for each output that the reduction is."""
        operand = self._read(member.reads[0])
        if not isinstance(operand, int) or self.values[operand].shape != self.loop:
            operand = self._step(SPREAD, (operand,), ValueType(self._dtype(operand), self.loop))
        axes = op.reduced_axes(self.loop)
        size = math.prod([self.loop[a] for a in axes])
        divisor = size if op.reduction == "mean" else None
        number = len(self.found)
        for k in [k for k, o in enumerate(self.group.outputs) if o == number]:
            ufunc, dtype = REDUCTIONS[op.reduction], member.type.dtype
            fn = ReductionStep(k, lengths(member.type), ufunc, axes, dtype, divisor)
            self.steps.append(UfuncStep(fn, (operand,), None))
        self.found.append(None)

    def _dtype(self, operand: Operand) -> DType:
        return self.values[operand].dtype if isinstance(operand, int) else operand.dtype

    def _shape(self, operand: Operand) -> Shape:
        return self.values[operand].shape if isinstance(operand, int) else ()
