"""What the form of an operator is given: one node of the file with the values that it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.errors import FileError
from ...ir.build import build
from ...ir.node import Tensor
from ...ir.op import Op
from ...ir.types import Array
from ...ops.base import LengthValue
from .lengths import GIVE_SHAPES, Dimension, as_numbers, entries, has_lengths

__all__ = ["OperatorCall", "Value"]

Value = Any
"""Tensor, array (known while loading), or None (left out)."""


class OperatorCall:
    """A node with what it reads.

    type        the operator's name, domain its domain, opset the version of the domain
    attributes  {name: value}; those that the form does not read are an error
    values      tensors, arrays where they are known while loading, None where left out
    wanted      for each output, whether anybody may read it
    made        constant(array, i): the tensor of a known input
    inside      what builds graphs inside of it (a Builder)
    """

    def __init__(
        self,
        node: Any,
        opset: int,
        attributes: dict[str, Any],
        values: Sequence[Value],
        made: Callable[[Array, int], Tensor],
        inside: Any = None,
    ) -> None:
        self.node = node
        self.type: str = node.op_type
        self.opset = opset
        self.values = list(values)
        self.wanted = [bool(name) for name in node.output]
        self.inside = inside
        self.unread = set(attributes)
        self._attributes = attributes
        self._made = made

    # --- attributes ---

    @property
    def attributes(self) -> dict[str, Any]:
        """All of them; who asks knows each."""
        self.unread.clear()
        return self._attributes

    def attribute(self, name: str, default: Any = None) -> Any:
        """One of them."""
        self.unread.discard(name)
        return self._attributes.get(name, default)

    def needed(self, name: str) -> Any:
        """One that has to be there."""
        if name not in self._attributes:
            raise FileError(f"it has no attribute {name!r}")
        return self.attribute(name)

    # --- inputs ---

    def given(self, i: int) -> bool:
        """Whether there is such an input."""
        return i < len(self.values) and self.values[i] is not None

    def tensor(self, i: int) -> Tensor:
        """An input as a tensor."""
        if not self.given(i):
            raise FileError(f"it has no input {i}")
        value = self.values[i]
        if isinstance(value, Tensor):
            return value
        return as_numbers(value) if has_lengths(value) else self._made(value, i)

    def optional(self, i: int) -> Tensor | None:
        """An input as a tensor, if it is there."""
        return self.tensor(i) if self.given(i) else None

    @property
    def tensors(self) -> list[Tensor]:
        """All inputs, none of which may be left out."""
        return [self.tensor(i) for i in range(len(self.values))]

    @property
    def inputs(self) -> list[Any]:
        """All inputs: tensors, None where left out."""
        return [self.optional(i) for i in range(len(self.values))]

    def known(self, i: int, what: str) -> Array:
        """An input that has to be known while loading: numbers."""
        value = self.values[i] if self.given(i) else None
        if value is None:
            raise FileError(f"it has no {what} (input {i})")
        if isinstance(value, Tensor):
            raise NotFixed(self.node.input[i], what, *_read_by(value))
        if has_lengths(value):
            raise FileError(
                f"its {what}, {self.node.input[i]!r:.80}, is computed from lengths that are only "
                f"known at run time. {GIVE_SHAPES}"
            )
        numbers: Array = value
        return numbers

    def dims(self, i: int, what: str) -> list[Dimension]:
        """An input of lengths, which may be known only at run time."""
        if self.given(i) and has_lengths(self.values[i]):
            return entries(self.values[i])
        return [int(d) for d in self.known(i, what).reshape(-1)]

    def one(self, i: int, what: str) -> Dimension:
        """An input that is one integer, or one length that may be known only at run time."""
        dims = self.dims(i, what)
        if len(dims) != 1:
            raise FileError(f"its {what} are {len(dims)}, not one number")
        return dims[0]

    def whole(self, i: int, what: str) -> int:
        """An input that is one known integer."""
        number = self.known(i, what)
        if number.size != 1:
            raise FileError(f"its {what} has shape {list(number.shape)}, expected one number")
        return int(number.reshape(-1)[0])

    def axes(self, i: int, name: str = "axes") -> list[int] | None:
        """Axes, which are an attribute in old versions and an input in new ones; None: not said."""
        if name in self._attributes:
            return [int(a) for a in np.atleast_1d(self.attribute(name))]
        if not self.given(i):
            return None
        return [int(a) for a in self.known(i, name).reshape(-1)]

    # --- outputs ---

    def build(self, op: Op, *xs: Any) -> Any:
        """op of tensors and arrays: its output, or all in a tuple."""
        outputs = build(op, tuple([self._as_tensor(x) for x in xs])).outputs
        return outputs[0] if len(outputs) == 1 else outputs

    def _as_tensor(self, x: Any) -> Tensor:
        return x if isinstance(x, Tensor) else self._made(np.asarray(x), -1)

    def wants(self, i: int) -> bool:
        """Whether anybody may read this output."""
        return i < len(self.wanted) and self.wanted[i]


class NotFixed(FileError):
    """A number that decides about shapes is computed from inputs of the model."""

    def __init__(self, name: str, what: str, inputs: list[str], lengths: list[str]) -> None:
        self.inputs = inputs
        of_lengths = bool(lengths) and not inputs
        read = ", ".join(map(repr, inputs)) or "weights that are variables"
        if of_lengths:
            read = f"lengths that are only known at run time ({', '.join(lengths)})"
        hint = (
            GIVE_SHAPES
            if of_lengths
            else "Pass the values of fixed inputs with known={name: array}"
        )
        super().__init__(
            f"its {what}, {name!r:.80}, must be known while loading, but is computed from "
            f"{read:.300}. {hint}"
        )


def _read_by(t: Tensor) -> tuple[list[str], list[str]]:
    """The names of the placeholders that a tensor is computed from, and the lengths."""
    graph = t.graph
    assert graph is not None
    needed = {t.node}
    for node in reversed(graph.nodes[: t.node.index + 1]):
        if node in needed:
            needed.update(read.node for read in node.inputs)
    read = [n for n in graph.nodes if n in needed]
    lengths = dict.fromkeys(str(n.op.length) for n in read if isinstance(n.op, LengthValue))
    return [n.name for n in read if n.type == "Placeholder"], list(lengths)
