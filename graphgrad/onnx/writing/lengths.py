"""Open lengths in a model: read by Shape of the inputs that tell them, and computed with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from ...base.bounds import Atom, at_least
from ...base.expression import unquoted
from ...base.length import Length
from ...base.solving import last_unknown
from ...ir.onnx import NoOnnxForm
from .values import OnnxBlock, OnnxValue

__all__ = ["ToldLengths"]


class ToldLengths:
    """The lengths that the inputs of a model tell, as vectors of one element.

    What is told is read at the start of the model, so that subgraphs see it too. What is computed
    of it is computed once in a block.
    """

    def __init__(self, home: OnnxBlock) -> None:
        self.home = home
        self._axes: list[tuple[Length, OnnxValue, int]] = []
        self._names: dict[str, OnnxValue] = {}

    def tell(self, value: OnnxValue) -> None:
        """One more input."""
        for axis, d in enumerate(value.shape or ()):
            if isinstance(d, Length):
                self._axes.append((d, value, axis))

    def of(self, to: Any, d: Length) -> OnnxValue:
        """A length, in the block that `to` writes into; NoOnnxForm."""
        block: OnnxBlock = to.block
        if block.root is not self.home:
            raise NoOnnxForm(f"it needs the length {d}, inside of a function of its own")
        if d not in block.lengths:
            terms = [self._term(to, atoms, k) for atoms, k in d.terms]
            block.lengths[d] = reduce(to.Add, terms)
        return block.lengths[d]

    def _term(self, to: Any, atoms: Sequence[Atom], k: int) -> OnnxValue:
        factors = [self._atom(to, atom) for atom in atoms]
        if k != 1 or not factors:
            factors.append(to.value([k]))
        product: OnnxValue = reduce(to.Mul, factors)
        return product

    def _atom(self, to: Any, atom: Atom) -> OnnxValue:
        if not atom.operation:
            return self._named(to, unquoted(atom.text))
        parts = [to.lengths(o) for o in atom.operands]
        if atom.operation in ("max", "min"):
            extreme: OnnxValue = to(atom.operation.title(), *parts)
            return extreme
        rest: OnnxValue = to.Mod(*parts)  # of the sign of the divisor, as of Python
        if atom.operation == "%":
            return rest
        a, b = parts
        if not at_least(atom.operands[0], 0):  # ONNX divides towards 0
            a = to.Sub(a, rest)
        quotient: OnnxValue = to.Div(a, b)
        return quotient

    def _named(self, to: Any, name: str) -> OnnxValue:
        if name not in self._names:
            self._names[name] = self._read(type(to)(self.home, to.applying), name)
        return self._names[name]

    def _read(self, to: Any, name: str) -> OnnxValue:
        """The length of this name, of the first axis that has it alone or beside known ones."""
        known: set[str] = set()
        while True:
            found = [(last_unknown(d, known), d, x, axis) for d, x, axis in self._axes]
            new = [row for row in found if row[0] is not None]
            if not new:
                raise NoOnnxForm(f"it needs the length {name}, which no input determines")
            for last, d, x, axis in new:
                if last == name:
                    return self._solved(to, name, d, to.Shape(x, start=axis, end=axis + 1))
            known |= {last for last, *_ in new if last is not None}

    def _solved(self, to: Any, name: str, d: Length, n: OnnxValue) -> OnnxValue:
        least, more = d.at({name: 0}), d.at({name: 1})
        slope = more - least
        n = n if least == 0 else to.Sub(n, to.lengths(least))
        return n if slope == 1 else to.Div(n, to.lengths(slope))
