"""Open lengths in a file: the names that they have there, and what they are found to be."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..base.length import Length
from ..base.solving import last_unknown, told_names
from ..ir.node import Tensor
from ..ir.op import Op
from ..ir.types import Dim
from .known import Local
from .literals import literal
from .naming import identifier

__all__ = ["FileLengths", "names_read"]


class FileLengths:
    """The named lengths that inputs tell, by the names that they have in a file.

    names  that of each length
    """

    def __init__(self, inputs: Sequence[Tensor], fresh: Callable[[str], str]) -> None:
        self.inputs = inputs
        told = told_names(d for t in inputs for d in t.shape)
        self.names = {name: fresh(identifier(name)) for name in sorted(told)}
        self.words = frozenset(self.names.values())
        self._renamed = {name: Length(word) for name, word in self.names.items()}
        self._ops: dict[Op, Op] = {}

    def text(self, d: Dim) -> str:
        """A length as an expression of names of the file, which inputs tell."""
        return str(d.at(self._renamed)) if isinstance(d, Length) else literal(d)

    def shape_text(self, shape: Sequence[Dim]) -> str:
        """A shape as a tuple of such expressions, with 0 for what is not told."""
        told = [
            isinstance(d, int) or (d is not None and d.names <= self.names.keys()) for d in shape
        ]
        dims = [self.text(d) if known else "0" for d, known in zip(shape, told, strict=True)]
        return literal(tuple(map(Local, dims)))

    def known_when_run(self, op: Op) -> Op:
        """The op with what is known when it runs in place of lengths in its attributes."""
        if not op.open_lengths:
            return op
        if op not in self._ops:
            self._ops[op] = type(op)._new(tuple([self._local(v) for v in op.attrs.values()]))
        return self._ops[op]

    def _local(self, value: Any) -> Any:
        if isinstance(value, Length):
            return Local(self.text(value))
        return tuple(map(self._local, value)) if type(value) is tuple else value

    # --- what they are --------------------------------------------------------------------------

    def promised(self, t: Tensor) -> str:
        """The shape of an input as it is checked at once: names and numbers."""
        known = [d if isinstance(d, int) else self._alone(t, d) for d in t.shape]
        return literal(tuple(known))

    def _alone(self, t: Tensor, d: Dim) -> str | None:
        return d.name if isinstance(d, Length) else None

    def lines(
        self, read: set[str], labels: Mapping[Tensor, tuple[str, str]], runtime: _Runtime
    ) -> list[str]:
        """What gives these names of the file their values, and checks those in arithmetic.

        labels: what each input is called in errors, and in the file.
        """
        axes = [
            (d, literal(labels[t][0]), f"{labels[t][1]}.shape[{i}]")
            for t in self.inputs
            for i, d in enumerate(t.shape)
            if isinstance(d, Length)
        ]
        arithmetic = [axis for axis in axes if axis[0].name is None]
        known = {d.name for d, *_ in axes if d.name is not None}
        alone = [self._taken(name) for name in known]
        steps = list(self._solved(arithmetic, known, runtime))
        read = read.union(*[names_read(step) for step in steps])
        return [*sorted(line for name, line in alone if name in read), *steps]

    def _taken(self, name: str) -> tuple[str, str]:
        word = self.names[name]
        return word, f"{word} = lengths[{literal(name)}][0]"

    def _solved(
        self, left: list[tuple[Length, str, str]], known: set[str], runtime: _Runtime
    ) -> Iterator[str]:
        """The others, in an order in which each has one unknown."""
        while left:
            later = []
            for axis in left:
                d, label, value = axis
                text = self.text(d)
                name = last_unknown(d, known)
                if d.names <= known:
                    same = runtime("same_length")
                    yield f"{same}({label}, {value}, {literal(str(d))}, {text}, lengths)"
                elif name is None:
                    later.append(axis)
                else:
                    known = known | {name}
                    word, solve = self.names[name], runtime("solved_length")
                    given = f"{label}, {value}, {literal(str(d))}, {literal(name)}"
                    yield f"{word} = {solve}({given}, lambda {word}: {text}, lengths)"
            if len(later) == len(left):
                return
            left = later

    def assumed(self, stated: Iterable[Any]) -> Iterator[str]:
        """Checks of what gg.assume stated, where the inputs tell it."""
        for fact in stated:
            names = {n for d in (fact.left, fact.right) if isinstance(d, Length) for n in d.names}
            if names <= self.names.keys():
                test = f"{self.text(fact.left)} {fact.sign} {self.text(fact.right)}"
                said = f"gg.assume({fact.text}), stated at {fact.where}, does not hold: "
                values = ", ".join(f"{{{literal(n)}: {self.names[n]}}}" for n in sorted(names))
                yield f"if not {test}:"
                yield f"    raise ValueError({literal(said)} + str({values}))"


_Runtime = Callable[[str], str]
"""The name in the file of a function of `runtime`."""


def names_read(text: str) -> set[str]:
    """The names in statements."""
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
