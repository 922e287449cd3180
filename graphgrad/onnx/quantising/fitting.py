"""What runtimes need to see to compute with integers: weights in the layout that is read, biases of
32 bits in the layer, and grids again behind what only moves numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...ir.onnx import NoOnnxForm
from ...ir.types import Array
from ..writing.values import OnnxBlock, OnnxCall
from .fixed import KnownNames
from .grids import INT8, Codes
from .wires import readers_of

__all__ = ["fit_biases", "grids_again", "move_codes", "write_codes"]

# fmt: off
MOVING = frozenset((
    "Concat", "Flatten", "Gather", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose",
    "Unsqueeze",
))
# fmt: on
"""Operators whose result is on the grid of what they read."""

MOST = 2**31 - 1


# --- weights ------------------------------------------------------------------------------------


def move_codes(block: OnnxBlock, codes: dict[str, Codes], known: KnownNames) -> None:
    """Transposes and reshapes of weights, made of their integers."""
    kept = []
    results = {value.name for value in block.results}
    for call in block.calls:
        moved = None
        if call.inputs and call.inputs[0] in codes and call.outputs[0] not in results:
            moved = _moved(call, codes[call.inputs[0]], known)
        if moved is None:
            kept.append(call)
        else:
            codes[call.outputs[0]] = moved
    block.calls = kept


def _moved(call: OnnxCall, held: Codes, known: KnownNames) -> Codes | None:
    if call.operator == "Identity":
        return held
    if call.operator == "Transpose":
        perm = call.attributes.get("perm", range(held.numbers.ndim)[::-1])
        return held.transposed(tuple(perm))
    if call.operator in ("Reshape", "Squeeze", "Unsqueeze") and call.outputs[0]:
        shape = _shape_of(call, held.numbers, known)
        return None if shape is None else held.reshaped(shape)
    return None


def _shape_of(call: OnnxCall, numbers: Array, known: KnownNames) -> tuple[int, ...] | None:
    wanted = known.get(call.inputs[1]) if len(call.inputs) > 1 else None
    if wanted is None:
        return None
    given = [int(n) for n in wanted]
    if call.operator == "Reshape":
        return numbers.reshape(given).shape
    if call.operator == "Squeeze":
        return numbers.squeeze(tuple(given)).shape
    return np.expand_dims(numbers, tuple(given)).shape


def write_codes(block: OnnxBlock, codes: Mapping[str, Codes]) -> None:
    """DequantizeLinear of the weights that are read, before all else; NoOnnxForm."""
    readers = readers_of(block)
    results = {value.name for value in block.results}
    calls = []
    for name, held in codes.items():
        if name not in readers and name not in results:
            continue
        scale, zero, attributes = held.attributes()
        dtype = held.kind.dtype
        inputs = [
            block.own_constant(held.numbers.astype(dtype, "C"), f"{held.name}_quantized"),
            block.own_constant(np.array(scale, order="C"), f"{held.name}_scale"),
            block.own_constant(zero.astype(dtype, "C"), f"{held.name}_zero_point"),
        ]
        given = tuple([value.name for value in inputs])
        calls.append(OnnxCall("DequantizeLinear", given, (name,), attributes))
    block.calls[:0] = calls


# --- biases -------------------------------------------------------------------------------------


def fit_biases(
    block: OnnxBlock, codes: Mapping[str, Codes], known: KnownNames, ranks: Mapping[str, int]
) -> None:
    """Biases of layers of integers as integers of 32 bits, read by the layer; NoOnnxForm."""
    _Biases(block, codes, known, ranks).run()


class _Biases:
    def __init__(
        self,
        block: OnnxBlock,
        codes: Mapping[str, Codes],
        known: KnownNames,
        ranks: Mapping[str, int],
    ) -> None:
        self.block = block
        self.codes = codes
        self.known = known
        self.ranks = ranks
        self.readers = readers_of(block)
        self.makers = {name: call for call in block.calls for name in call.outputs}
        self.results = {value.name for value in block.results}
        self.new: dict[str, list[OnnxCall]] = {}
        self.dropped: set[str] = set()

    def run(self) -> None:
        """Each layer with the one addition behind it."""
        for call in self.block.calls:
            if call.operator in ("Conv", "Gemm", "MatMul") and not call.domain:
                self._layer(call)
        calls: list[OnnxCall] = []
        for call in self.block.calls:
            if call.outputs[0] not in self.dropped:
                calls += self.new.get(call.outputs[0], [call])
        self.block.calls = calls

    def _layer(self, call: OnnxCall) -> None:
        held = self.codes.get(call.inputs[1])
        scale = self._scale(call.inputs[0])
        if held is None or scale is None or held.block or held.kind is not INT8:
            return
        axis = _output_axis(call, held)
        steps = _along(held.scale, axis)
        if steps is None or (call.operator == "MatMul" and not self._is_product(call)):
            return
        if len(call.inputs) > 2 and call.inputs[2]:
            bias = self.known.get(call.inputs[2])
            end: OnnxCall | None = call
        else:
            bias, end = self._added(call, held.numbers.shape[axis])
        if bias is None or end is None:
            return
        name = self._integers(end, bias.reshape(-1), scale, steps, held.numbers.shape[axis])
        operator = "Gemm" if call.operator == "MatMul" else call.operator
        inputs = (*call.inputs[:2], name)
        layer = replace(call, operator=operator, inputs=inputs, outputs=end.outputs)
        if end is not call:
            self.dropped.add(call.outputs[0])
        self.new.setdefault(end.outputs[0], []).append(layer)

    def _is_product(self, call: OnnxCall) -> bool:
        """Whether it is one of matrices."""
        return self.ranks.get(call.inputs[0]) == 2 == self.codes[call.inputs[1]].numbers.ndim

    def _scale(self, name: str) -> Array | None:
        """The scale of an activation on a grid of 8 bits; None where it is none."""
        maker = self.makers.get(name)
        if maker is None or maker.operator != "DequantizeLinear":
            return None
        zero, scale = self.known.get(maker.inputs[2]), self.known.get(maker.inputs[1])
        if scale is None or zero is None or scale.size != 1 or zero.dtype.itemsize != 1:
            return None
        return scale

    def _added(self, call: OnnxCall, count: int) -> tuple[Array | None, OnnxCall | None]:
        """The bias that is added to a layer, and the addition."""
        (name,) = call.outputs
        readers = self.readers[name]
        if len(readers) != 1 or readers[0].operator != "Add" or name in self.results:
            return None, None
        (add,) = readers
        other = add.inputs[1] if add.inputs[0] == name else add.inputs[0]
        bias = self.known.get(other)
        if bias is None or other == name:
            return None, None
        from_end = 1 if call.operator != "Conv" else self.codes[call.inputs[1]].numbers.ndim - 1
        shape = bias.shape[-from_end:] if bias.ndim >= from_end else ()
        if bias.size != 1 and not (shape and shape[0] == bias.size == count):
            return None, None
        return bias, add

    def _integers(self, end: OnnxCall, bias: Array, scale: Array, steps: Array, count: int) -> str:
        """The name of a bias as integers."""
        steps = (scale.reshape(()) * steps).astype("float32")
        with np.errstate(all="ignore"):
            numbers = np.rint(np.broadcast_to(bias, (count,)).astype("float64") / steps)
        if not np.isfinite(numbers).all() or np.abs(numbers).max(initial=0) > MOST:
            raise NoOnnxForm(
                f"the bias of {end.outputs[0]} is {np.abs(bias).max():g}, which is not an integer "
                f"of 32 bits in steps of {steps.min():g}: train with larger steps"
            )
        name = self.block.names.fresh(f"{end.outputs[0]}_bias")
        zero = np.zeros(steps.shape, "int32")
        inputs = [
            self.block.own_constant(numbers.astype("int32"), f"{name}_quantized").name,
            self.block.own_constant(steps, f"{name}_scale").name,
            self.block.own_constant(zero, f"{name}_zero_point").name,
        ]
        attributes = {"axis": 0} if steps.ndim else {}
        bias_call = OnnxCall("DequantizeLinear", tuple(inputs), (name,), attributes)
        self.new.setdefault(end.outputs[0], []).append(bias_call)
        return name


def _output_axis(call: OnnxCall, held: Codes) -> int:
    """The axis of the weights along which the outputs of a layer lie."""
    if call.operator == "Conv":
        return 0
    if call.operator == "Gemm" and call.attributes.get("transB"):
        return 0
    return held.numbers.ndim - 1


def _along(scale: Array, axis: int) -> Array | None:
    """A scale as one number, or one for each place along an axis; None where it is neither."""
    if scale.size == 1:
        return scale.reshape(())
    return scale.reshape(-1) if scale.shape[axis] == scale.size else None


# --- grids again --------------------------------------------------------------------------------


def grids_again(block: OnnxBlock, known: KnownNames) -> None:
    """QuantizeLinear and DequantizeLinear behind what moves numbers of one grid.

    Shape reads the integers, so that nobody but operators of integers reads what they stand for.
    """
    grids: dict[str, _Grid] = {}
    readers = readers_of(block)
    calls: list[OnnxCall] = []
    for call in block.calls:
        name = call.outputs[0]
        if call.operator == "Shape" and call.inputs[0] in grids:
            call = replace(call, inputs=(grids[call.inputs[0]].numbers,))
        calls.append(call)
        if call.operator == "DequantizeLinear" and call.inputs[0] not in known:
            if _is_one(known.get(call.inputs[1])):
                grids[name] = _Grid(*call.inputs)
            continue
        moved = call.inputs if call.operator == "Concat" else call.inputs[:1]
        found = [grids[source] for source in moved if source in grids]
        same = len(found) == len(moved) and len({each[1:] for each in found}) == 1
        if not same or call.domain or any(call.outputs[1:]):
            continue
        if call.operator == "Identity":
            grids[name] = found[0]
        reading = {each.operator for each in readers[name]}
        if call.operator not in MOVING or reading <= {"QuantizeLinear", "Identity"}:
            continue
        before, numbers = (block.names.fresh(f"{name}_{end}") for end in ("float", "quantized"))
        grid = grids[name] = found[0]._replace(numbers=numbers)
        calls[-1] = replace(call, outputs=(before,))
        calls.append(OnnxCall("QuantizeLinear", (before, *grid[1:]), (numbers,)))
        calls.append(OnnxCall("DequantizeLinear", tuple(grid), (name,)))
    block.calls = calls


class _Grid(NamedTuple):
    """Names of the integers of an activation, and of the one scale and the one zero of its grid."""

    numbers: str
    scale: str
    zero: str


def _is_one(array: Array | None) -> bool:
    return array is not None and array.size == 1
