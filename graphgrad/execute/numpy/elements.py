"""A group of element-wise nodes and reductions as steps, each of which is one call of NumPy.

Values are numbered: the inputs of the group, then what steps make. A value has the shape that its
operands have together, which may be less than the group's: what is broadcast is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...ir.op import Op
from ...ir.types import DType, broadcast, lengths
from ...lower.calls import Operand
from ...lower.items import Dialect, Read, Reduced, lower
from ...lower.loop_ir import LoopGroup, Number

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


def elements_of(group: LoopGroup) -> Elements:
    """The steps of a group of static types."""
    return _UfuncSteps(group).run()


class _UfuncSteps:
    def __init__(self, group: LoopGroup) -> None:
        self.group = group
        self.arity = len(group.inputs)
        self.loop = group.space.shape
        self.values = [ValueType(t.dtype, lengths(t)) for t in group.inputs]
        self.steps: list[UfuncStep] = []
        self.spreads: dict[Any, int] = {}

    def run(self) -> Elements:
        """Item by item."""
        lowered = lower(self.group, Dialect())
        made = [o.item for o in lowered.outputs]
        operands: dict[int, Operand] = {}
        for i, (fn, args, dtype, data) in enumerate(lowered.items):
            reads = [operands[a] for a in args]
            match data:
                case None:
                    operands[i] = self._call(fn, reads, dtype)
                case Read(place):
                    operands[i] = place
                case Number():
                    operands[i] = data.array()
                case Reduced():
                    self._reduce(reads[0], [k for k, o in enumerate(made) if o == i])
        outputs: list[int | None] = []
        for o in made:
            outputs.append(self._own(operands[o], outputs) if o in operands else None)
        return Elements(
            self.loop, self.arity, tuple(self.values), tuple(self.steps), tuple(outputs)
        )

    def _call(self, fn: Any, operands: Sequence[Operand], dtype: DType) -> int:
        shapes = [self.values[o].shape for o in operands if isinstance(o, int)]
        shape: Any = broadcast(shapes or [()])
        if fn in SLOW_WITH_ONE_NUMBER and math.prod(shape) >= WORTH_SPREADING:
            last = [(1, *self._shape(o))[-1] for o in operands]
            pairs = zip(operands, last, strict=True)
            operands = [o if d == shape[-1] else self._spread(o, shape) for o, d in pairs]
        return self._step(fn, operands, ValueType(dtype, shape))

    def _step(self, fn: Any, operands: Sequence[Operand], value: ValueType) -> int:
        self.steps.append(UfuncStep(fn, tuple(operands), len(self.values)))
        self.values.append(value)
        return len(self.values) - 1

    def _copied(self, operand: Operand, shape: Shape) -> int:
        """An operand as an array of this shape."""
        dtype = self.values[operand].dtype if isinstance(operand, int) else operand.dtype
        return self._step(SPREAD, [operand], ValueType(dtype, shape))

    def _spread(self, operand: Operand, shape: Shape) -> int:
        """The same, once for all that read it."""
        key = operand if isinstance(operand, int) else (operand.dtype, operand.tobytes()), shape
        if key not in self.spreads:
            self.spreads[key] = self._copied(operand, shape)
        return self.spreads[key]

    def _own(self, operand: Operand, taken: Sequence[int | None]) -> int:
        """A value that one output can be: made here, of the whole shape, and of no other output."""
        if (
            isinstance(operand, int)
            and operand >= self.arity
            and self._shape(operand) == self.loop
            and operand not in taken
        ):
            return operand
        return self._copied(operand, self.loop)

    def _reduce(self, operand: Operand, outputs: Iterable[int]) -> None:
        """One step for each output that the reduction is."""
        if self._shape(operand) != self.loop:
            operand = self._spread(operand, self.loop)
        for k in outputs:
            op, _, made = self.group.members[self.group.outputs[k] - self.arity]
            assert isinstance(op, Op)
            axes = op.reduced_axes(self.loop)
            divisor = (
                math.prod([self.loop[a] for a in axes]) if op.traits.reduction == "mean" else None
            )
            ufunc = REDUCTIONS[op.traits.reduction]
            fn = ReductionStep(k, lengths(made), ufunc, axes, made.dtype, divisor)
            self.steps.append(UfuncStep(fn, (operand,), None))

    def _shape(self, operand: Operand) -> Shape:
        return self.values[operand].shape if isinstance(operand, int) else ()
