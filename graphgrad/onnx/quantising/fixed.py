"""What of a program is fixed: computed of constants and of variables, by their values now."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...ir.node import Node, Tensor
from ...ir.program import Program
from ...ir.types import Array
from ...ops.base import Constant
from ..writing.values import OnnxBlock

__all__ = ["FixedValues", "KnownNames"]


class FixedValues:
    """The values of tensors that no input of a model changes, each computed when it is asked for.

    given  {input of the program: its value}, of those that are fixed
    """

    def __init__(self, program: Program, given: Mapping[Tensor, Array]) -> None:
        self._values = dict(given)
        self._fixed = set(given)
        for node in program.nodes:
            if _is_fixed(node) and self._fixed.issuperset(node.inputs):
                self._fixed.update(node.outputs)

    def __contains__(self, t: Tensor) -> bool:
        return t in self._fixed

    def __getitem__(self, t: Tensor) -> Array:
        pending = [t]
        while pending:
            node = pending[-1].node
            missing = [x for x in node.inputs if x not in self._values]
            if pending[-1] in self._values:
                pending.pop()
            elif missing:
                pending += missing
            else:
                self._run(node)
        return self._values[t]

    def _run(self, node: Node) -> None:
        arrays = [self._values[x] for x in node.inputs]
        with np.errstate(all="ignore"):
            made = node.op.kernel(np, *arrays)
        rows = made if isinstance(made, tuple) else (made,)
        for y, row in zip(node.outputs, rows, strict=True):
            self._values[y] = np.asarray(row).astype(y.dtype, copy=False)


class KnownNames:
    """Arrays by the names of values: constants of a block, and what is fixed."""

    def __init__(self, block: OnnxBlock, tensors: Mapping[str, Tensor], fixed: FixedValues) -> None:
        self.block = block
        self.fixed = fixed
        self.tensors = {name: t for name, t in tensors.items() if t in fixed}

    def __contains__(self, name: str) -> bool:
        return name in self.block.constants or name in self.tensors

    def get(self, name: str) -> Array | None:
        """The array; None where it is not known."""
        if name in self.block.constants:
            return self.block.constants[name]
        return self.fixed[self.tensors[name]] if name in self.tensors else None


def _is_fixed(node: Node) -> bool:
    """Whether it makes the same of the same."""
    return (isinstance(node.op, Constant) or bool(node.inputs)) and not (
        node.op.bodies or node.op.open_lengths
    )
