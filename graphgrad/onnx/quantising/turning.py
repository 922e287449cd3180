"""Transposes moved behind what works element by element, where the next one undoes them.

Layers compute with channels last here and with channels first in ONNX, so there is a Transpose on
either side of each. Between a convolution and the grid of its result it would keep runtimes from
making one operator of integers of them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..writing.values import OnnxBlock, OnnxCall
from .fixed import KnownNames
from .wires import reads_of, renamed

__all__ = ["turn_late"]

# fmt: off
UNARY = frozenset((
    "Abs", "Clip", "DequantizeLinear", "Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "Neg",
    "QuantizeLinear", "Relu", "Sigmoid", "Softplus", "Tanh",
))
BINARY = frozenset(("Add", "Div", "Max", "Min", "Mul", "Sub"))
# fmt: on

Turned = tuple[str, tuple[int, ...]]
"""A value that is a transpose: of which, and by which order of axes."""


def turn_late(block: OnnxBlock, known: KnownNames) -> None:
    """Move transposes towards the end of a block. known: arrays by name."""
    _LateTurns(block, known).run()


class _LateTurns:
    def __init__(self, block: OnnxBlock, known: KnownNames) -> None:
        self.block = block
        self.known = known
        self.turned: dict[str, Turned] = {}
        self.same: dict[str, str] = {}
        self.done: set[str] = set()
        self.calls: list[OnnxCall] = []

    def run(self) -> None:
        """Each call once: as a turned one, or behind the transposes that it reads."""
        for old in self.block.calls:
            call = renamed(old, lambda name: self.same.get(name, name))
            if not (self._transposed(call) or self._late(call)):
                for name in reads_of(call):
                    self._write(name)
                self.calls.append(call)
        for value in self.block.results:
            self._write(value.name)
        self.block.calls = self.calls

    def _write(self, name: str) -> None:
        """The transpose of this name, where somebody reads it after all."""
        if name in self.turned and name not in self.done:
            source, perm = self.turned[name]
            self.done.add(name)
            self.calls.append(OnnxCall("Transpose", (source,), (name,), {"perm": list(perm)}))

    def _transposed(self, call: OnnxCall) -> bool:
        """Whether it is a transpose of what is computed: noted, not written."""
        if call.operator != "Transpose" or call.inputs[0] in self.known:
            return False
        perm = call.attributes.get("perm")
        if perm is None:
            return False
        source, first = self.turned.get(call.inputs[0], (call.inputs[0], None))
        perm = tuple(perm) if first is None else tuple([first[i] for i in perm])
        if perm == tuple(range(len(perm))) and not self._is_result(call):
            self.same[call.outputs[0]] = source
        else:
            self.turned[call.outputs[0]] = source, perm
        return True

    def _is_result(self, call: OnnxCall) -> bool:
        return any(value.name == call.outputs[0] for value in self.block.results)

    def _late(self, call: OnnxCall) -> bool:
        """Whether it works element by element on a transpose: it is written before that."""
        if call.domain or len(call.outputs) != 1:
            return False
        count = 1 if call.operator in UNARY else 2 if call.operator in BINARY else 0
        perms = {self.turned[n][1] for n in call.inputs[:count] if n in self.turned}
        if len(perms) != 1:
            return False
        (perm,) = perms
        inputs = [self._before(n, perm, i < count) for i, n in enumerate(call.inputs)]
        if not all(name is not None for name in inputs):
            return False
        (name,) = call.outputs
        source = self.block.names.fresh(f"{name}_before")
        given = tuple([n or "" for n in inputs])
        self.calls.append(replace(call, inputs=given, outputs=(source,)))
        self.turned[name] = source, perm
        return True

    def _before(self, name: str, perm: tuple[int, ...], operand: bool) -> str | None:
        """What to read in place of an input; None where there is nothing."""
        if not operand:
            return name
        if name in self.turned:
            return self.turned[name][0]
        array = self.known.get(name)
        if array is None or array.ndim > len(perm):
            return None
        if array.size == 1 and array.ndim == 0:
            return name
        full = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
        back = np.argsort(perm)
        return self.block.constant(np.ascontiguousarray(np.transpose(full, back)), name).name
