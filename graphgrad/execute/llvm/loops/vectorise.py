"""What the ways to vectorise rows share: passes over a row, and what is done for one vector.

The lanes of a vector are neighbours in a row (`inner`), or elements of neighbouring rows (`outer`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from ..emit.values import Value
from .access import ORDERED, Values, element, load, store
from .nest import Pass
from .rows import Loops
from .spills import Spills


class RowPass(ABC):
    """Writes what is done for a row, or for a vector of rows.

    index   the places along the outer axes
    values  what the row has
    """

    def __init__(self, loops: Loops, index: list[str]) -> None:
        self.index = index
        self.body, self.nest, self.items = loops.body, loops.nest, loops.items
        self.values: Values = {}

    def write(self) -> None:
        """Pass by pass; then what the row has, to outputs and to reductions that end later."""
        nest = self.nest
        self._of_row(-1)
        for p, step in enumerate(nest.passes):
            self.one_pass(step)
            self._of_row(p)
        for k, o in enumerate(nest.outputs):
            if o.item not in nest.final and not nest.of_elements(o):
                self.store(k, self.get(o.item))
        for i in sorted(nest.ends):
            if not nest.over_elements(i):
                self.end(i, self.get(self.items[i].args[0]))

    def _of_row(self, after: int) -> None:
        """The numbers that the row has after this pass."""
        nest = self.nest
        for i, passed in enumerate(nest.passed):
            known = i in self.values or i in nest.fixed
            if passed == after and not known and i not in nest.inner and i not in nest.final:
                self.values[i] = self.compute(i)

    @abstractmethod
    def get(self, i: int) -> Value:
        """An item that the row has, or that is the same everywhere."""

    @abstractmethod
    def compute(self, i: int) -> Value:
        """An item of the row, from others."""

    @abstractmethod
    def one_pass(self, step: Pass) -> None:
        """One way through the row."""

    @abstractmethod
    def store(self, k: int, x: Value) -> None:
        """Write an output that has one number a row."""

    @abstractmethod
    def end(self, i: int, x: Value) -> None:
        """Put a number of the row together with what there is of a reduction that ends later."""


class Lanes(NamedTuple):
    """A vector: where its elements are along the axes of a row, the number of its lanes, and how
    many of these hold anything.
    """

    at: tuple[str, ...]
    number: int
    valid: int


class Vector(ABC):
    """Writes what a pass does for one vector of elements."""

    def __init__(self, loops: Loops, step: Pass) -> None:
        self._loops, self.step = loops, step
        self.body, self.nest, self.items = loops.body, loops.nest, loops.items

    @property
    def last(self) -> list[int]:
        """The items that are reduced or stored."""
        reduced = [self.items[i].args[0] for i in self.step.reduces]
        return [*reduced, *(self.nest.outputs[k].item for k in self.step.stores)]

    @property
    def of_rows(self) -> list[int]:
        """What is read that the row has."""
        read = [a for i in self.step.computes for a in self.items[i].args]
        return [i for i in (*read, *self.last) if i not in self.nest.inner]

    def vector(self, v: Lanes) -> None:
        """All that is computed for these elements."""
        step, items, kept = self.step, self.items, self._loops.kept
        space, row = self._loops.workspace, self.row(v.number)
        here = Spills(items, step.computes, self.last, v.number, space, row)
        order = ORDERED if here.long else ""
        for i in step.reads:
            kind, where = element(items[i]), self.kept_at(i, v)
            here.values[i] = load(self.body, kind, v.number, v.valid, where)
        for i in step.computes:
            x = self.compute(i, here.get, v, order)
            here.put(i, x)
            if i in kept:
                store(x, v.valid, self.kept_at(i, v))
        for i in step.reduces:
            self.reduce(i, here.get(items[i].args[0]), v)
        for k in step.stores:
            self.store(k, here.get(self.nest.outputs[k].item), v, order)

    @abstractmethod
    def row(self, lanes: int) -> Callable[[int], Value]:
        """What the row has, by item, in so many lanes."""

    @abstractmethod
    def compute(self, i: int, get: Callable[[int], Value], v: Lanes, order: str) -> Value:
        """An item of the elements."""

    @abstractmethod
    def kept_at(self, i: int, v: Lanes) -> str:
        """Where a value is that an earlier pass keeps for a later one."""

    @abstractmethod
    def reduce(self, i: int, x: Value, v: Lanes) -> None:
        """Put elements together with what there is of a reduction."""

    @abstractmethod
    def store(self, k: int, x: Value, v: Lanes, order: str) -> None:
        """Write elements of an output."""
