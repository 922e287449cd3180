"""Each op FakeQuantise as QuantizeLinear and DequantizeLinear, weights as integers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...ir.node import Node, Tensor
from ...ir.onnx import NoOnnxForm
from ...ir.types import Array
from ...ops.elementwise.grids import FakeFloat8, FakeQuantise
from ..writing.forms import Forms, Story
from ..writing.operators import Operators
from ..writing.values import OnnxBlock, OnnxCall, OnnxValue
from .fitting import fit_biases, grids_again, move_codes, write_codes
from .fixed import FixedValues, KnownNames
from .grids import OF_FLOAT8, Codes, NumberType, number_type
from .turning import turn_late

__all__ = ["Quantiser", "grids_in"]

AnyGrid = FakeQuantise | FakeFloat8


class Quantiser:
    """Writes grids into a block.

    codes  {name of a value: the weights that it is}, which are written when all is known that
           reads them
    """

    def __init__(self, forms: Forms, block: OnnxBlock, fixed: FixedValues) -> None:
        self.to = Operators(block, forms)
        self.forms = forms
        self.block = block
        self.fixed = fixed
        self.codes: dict[str, Codes] = {}

    def place(self, node: Node, inputs: Sequence[OnnxValue], story: Story) -> tuple[OnnxValue, ...]:
        """What a node makes of values, with integers if it is a grid; NoOnnxForm."""
        op, first = node.op, len(self.block.calls)
        if not isinstance(op, AnyGrid):
            inside = next(grids_in(each for body in op.bodies for each in body.nodes), None)
            if inside is not None:
                raise NoOnnxForm(f"a grid is in a loop or a choice, built at {inside.where}")
            return self.forms.place(self.block, op, inputs, story)
        made = self._grid(node, op, inputs) or self._floats(op, inputs)
        self.block.calls[first:] = [
            replace(call, metadata=story.metadata) for call in self.block.calls[first:]
        ]
        return (made,)

    def fit(self, tensors: Mapping[str, Tensor]) -> None:
        """Bring what was written into the form that runtimes know; NoOnnxForm.

        tensors: {name of a value: the tensor that it is}.
        """
        block, codes = self.block, self.codes
        known = KnownNames(block, tensors, self.fixed)
        ranks = {v.name: v.rank for v in (*block.given, *block.typed) if v.shape is not None}
        move_codes(block, codes, known)
        turn_late(block, known)
        grids_again(block, known)
        fit_biases(block, codes, known, ranks)
        write_codes(block, codes)

    def _floats(self, op: AnyGrid, inputs: Sequence[OnnxValue]) -> OnnxValue:
        """A grid of activations that has several steps, or is right behind another grid.

        Behind a convolution onnxruntime makes an operator of integers of the first that it cannot
        run, and it makes one grid of two that follow each other, with other numbers.
        """
        made: OnnxValue = self.to.apply(op, *inputs)
        return made

    def _grid(self, node: Node, op: AnyGrid, inputs: Sequence[OnnxValue]) -> OnnxValue | None:
        """It as integers; None for one that is written in floats."""
        x, *ends = node.inputs
        if x.dtype != np.dtype("float32"):
            hint = 'export with dtype="float32"' if x.dtype.itemsize > 4 else "cast it"
            raise NoOnnxForm(f"QuantizeLinear takes float32, and this is {x.dtype}: {hint}")
        if node.outputs[0].shape != x.shape:
            raise NoOnnxForm(f"its step or zero has more axes or larger lengths than x, {x.type!r}")
        if all(t in self.fixed for t in node.inputs):
            return self._weights(node, op)
        if all(t in self.fixed for t in ends):
            step, zero = self._step(node)
            if max(step.size, zero.size) > 1 or _on_grid(x):
                return None
            return self._activation(op, inputs[0], step, zero, node.name)
        if isinstance(op, FakeFloat8):
            raise NoOnnxForm("its step is computed from inputs: only one of integers is written")
        return self._dynamic(op, *inputs)

    def _step(self, node: Node) -> tuple[Array, Array]:
        """The values of step and zero."""
        _, step, *zero = node.inputs
        try:
            s = self.fixed[step]
            z = self.fixed[zero[0]] if zero else np.zeros(s.shape, s.dtype)
        except ValueError as error:  # of a Demand
            raise NoOnnxForm(str(error)) from error
        if not (np.isfinite(s).all() and (s > 0).all() and np.isfinite(z).all()):
            raise NoOnnxForm("its step must be finite and > 0, and its zero must be finite")
        return s, z

    # --- weights --------------------------------------------------------------------------------

    def _weights(self, node: Node, op: AnyGrid) -> OnnxValue:
        (y,) = node.outputs
        x = self.fixed[node.inputs[0]]
        step, zero = self._step(node)
        if not np.isfinite(x).all():
            raise NoOnnxForm("its weights must be finite")
        if isinstance(op, FakeFloat8):
            kind, shift = OF_FLOAT8[op.format], 0
            numbers = op.kernel(np, x / step, np.ones((), step.dtype))
        else:
            kind, shift = number_type(op.low, op.high, weights=True)
            numbers = np.clip(np.rint(x / step) + zero, op.low, op.high).astype("int64") - shift
        rank = (1,) * x.ndim
        step = step.reshape(rank[step.ndim :] + step.shape)
        zero = zero.reshape(rank[zero.ndim :] + zero.shape).astype("int64") - shift
        value = OnnxValue(self.block.names.fresh(node.name), y.dtype, y.shape)
        self.codes[value.name] = Codes(_named(node.inputs[0]), numbers, step, zero, kind)
        return value

    # --- activations ----------------------------------------------------------------------------

    def _activation(
        self, op: AnyGrid, x: OnnxValue, step: Array, zero: Array, name: str
    ) -> OnnxValue:
        if isinstance(op, FakeFloat8):
            kind, shift, whole = OF_FLOAT8[op.format], 0, True
        else:
            kind, shift = number_type(op.low, op.high)
            whole = op.high - op.low == kind.high - kind.low
        step, zero = step.reshape(()), zero.reshape(())
        own = self.block.own_constant
        s = own(np.array(step), f"{name}_scale")
        z = own((zero - shift).astype(kind.dtype), f"{name}_zero_point")
        y = self._there_and_back(x, s, z, kind)
        if isinstance(op, FakeFloat8) or whole:
            return y
        low, high = (np.asarray((end - zero) * step, "float32") for end in (op.low, op.high))
        return self._there_and_back(self.to.Clip(y, low, high, shape=x.shape), s, z, kind)

    def _dynamic(
        self, op: FakeQuantise, x: OnnxValue, step: OnnxValue, zero: OnnxValue
    ) -> OnnxValue:
        """With a scale that is computed when the model runs."""
        kind, shift = number_type(op.low, op.high)
        to = self.to
        if step.shape != () or zero.shape != ():
            raise NoOnnxForm("its step is computed from inputs, which is written only for one step")
        if op.high - op.low != kind.high - kind.low:
            raise NoOnnxForm(
                "its step is computed from inputs, which is written only for 8 or 16 bits"
            )
        zero = to.Sub(zero, float(shift)) if shift else zero
        return self._there_and_back(x, step, to.cast(zero, kind.dtype), kind)

    def _there_and_back(self, x: OnnxValue, s: Any, z: Any, kind: NumberType) -> OnnxValue:
        grid = tuple([self.to.value(a).name for a in (s, z)])
        values = [x]
        for operator, dtype in (("QuantizeLinear", kind.dtype), ("DequantizeLinear", x.dtype)):
            made = OnnxValue(self.block.names.fresh(operator.lower()), dtype, x.shape)
            given = (values[-1].name, *grid)
            self.block.calls.append(OnnxCall(operator, given, (made.name,)))
            values.append(made)
        return values[-1]


def grids_in(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes that put numbers on a grid, among these and in the bodies of their ops."""
    pending = list(nodes)
    for node in pending:
        if isinstance(node.op, AnyGrid):
            yield node
        for body in node.op.bodies:
            pending += body.nodes


def _on_grid(t: Tensor) -> bool:
    """Whether nothing but a Relu is between a tensor and a grid before it."""
    while t.node.type in ("Identity", "Relu"):
        t = t.node.inputs[0]
    return isinstance(t.node.op, AnyGrid)


def _named(t: Tensor) -> str:
    """The name of a tensor, whatever the order of its elements."""
    while t.node.type in ("Identity", "Reshape", "Transpose"):
        t = t.node.inputs[0]
    return t.node.name
