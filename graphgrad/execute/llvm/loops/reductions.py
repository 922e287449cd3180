"""Sums and other reductions: what they start from, how parts are put together, and how exactly.

A sum of floats runs in chains of at most CHAIN additions a lane; the sums of the chains are added
up with the bits that rounding loses kept beside (Knuth's TwoSum), lanes and blocks in pairs. So the
error is that of NumPy's pairwise sums or less, and does not grow with the number of elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ....ir.types import DType
from ..emit.module import Body
from ..emit.types import element_of, vector
from ..emit.values import Number, Value, call, constant, lanes_of
from .access import spread

CHAIN = 16

Pairing = Callable[[Value, Value], Value]


class VectorReduction:
    """How numbers of a dtype are reduced. kind: sum, prod, max, min, any or all."""

    def __init__(self, kind: str, dtype: DType) -> None:
        self.kind = kind
        self.letter = dtype.kind
        element = element_of(dtype)
        assert element is not None
        self.element = element
        self.start = _start(kind, dtype)

    def together(self, a: Value, b: Value) -> Value:
        """Two parts as one."""
        if self.letter == "b":
            return a | b if self.kind in ("sum", "max", "any") else a & b
        if self.kind in ("sum", "prod"):
            return a + b if self.kind == "sum" else a * b
        how = "gt" if self.kind == "max" else "lt"
        if self.letter == "f":
            return a.extremum(how, b)
        return b.compare(("s" if self.letter == "i" else "u") + how, a).where(b, a)

    def across(self, x: Value) -> Value:
        """The lanes of a vector, as a scalar: halves are put together, and halves of that.

        Where the max or min is zero or NaN, neighbours are, by a function, which takes longer: so
        the last of equal zeros comes out, as of NumPy.
        """
        total = _halved(self.together, x)
        if self.kind not in IN_ORDER or self.letter != "f" or x.lanes <= 2:
            return total
        again = total.compare("ueq", 0).name

        def in_order() -> str:
            return lanes_of(call(IN_ORDER[self.kind], [x], inline=False), 0, 1).name

        return Value(x.body, x.element, 1, x.body.value_if(again, total.type, in_order, total.name))

    def masked(self, x: Value, valid: int) -> Value:
        """x with what changes nothing in all lanes but the first."""
        if valid == x.lanes:
            return x
        bits = ", ".join(f"i1 {'true' if i < valid else 'false'}" for i in range(x.lanes))
        return Value(x.body, "i1", x.lanes, f"<{bits}>").where(x, self.start)


def _halved(together: Pairing, x: Value) -> Value:
    while x.lanes > 1:
        half = x.lanes // 2
        x = together(lanes_of(x, 0, half), lanes_of(x, half, half))
    return x


def _in_order(how: str, x: Value) -> Value:
    """Neighbours put together, and neighbours of that: the first NaN, or the last of equal ones."""
    lanes = x.lanes
    while x.lanes > 1:
        half = x.lanes // 2
        x = lanes_of(x, 0, half, 2).extremum(how, lanes_of(x, 1, half, 2))
    return spread(x, lanes)


def max_in_order(x: Value) -> Value:
    """The max of a vector in all lanes."""
    return _in_order("gt", x)


def min_in_order(x: Value) -> Value:
    """The min of a vector in all lanes."""
    return _in_order("lt", x)


IN_ORDER = {"max": max_in_order, "min": min_in_order}


def _start(kind: str, dtype: DType) -> Number:
    """What a reduction of nothing is."""
    if kind in ("sum", "any"):
        return 0
    if kind in ("prod", "all"):
        return 1
    if dtype.kind == "f":
        return -math.inf if kind == "max" else math.inf
    if dtype.kind == "b":
        return kind == "min"
    limits = np.iinfo(dtype)
    return int(limits.min if kind == "max" else limits.max)


class Accumulator:
    """A reduction in progress, in slots of a function: a vector, or a scalar (one lane).

    exact: it is a sum of floats, and `carry` is called after every chain of additions.
    """

    def __init__(
        self, body: Body, how: VectorReduction, lanes: int, exact: bool, tail: bool = False
    ) -> None:
        self.body = body
        self.how = how
        self.lanes = lanes
        self.exact = exact and how.kind == "sum" and how.letter == "f"
        kind = vector(how.element, lanes)
        self._sum = body.slot(kind)
        self._parts = [body.slot(kind) for _ in range(2 if self.exact else 0)]
        self._tail = body.slot(how.element) if tail else None

    def begin(self) -> None:
        """Start anew."""
        for slot in (self._sum, *self._parts):
            self._put(slot, self._neutral())
        if self._tail is not None:
            self._put(self._tail, self._neutral(1))

    def add(self, x: Value) -> None:
        """One more vector."""
        self._put(self._sum, self.how.together(self._get(self._sum), x))

    def add_tail(self, x: Value, valid: int) -> None:
        """The first lanes of a last vector, which may be of another length."""
        assert self._tail is not None
        rest = self.how.across(self.how.masked(x, valid))
        self._put(self._tail, self.how.together(self._get(self._tail, 1), rest))

    def carry(self) -> None:
        """End a chain."""
        if not self.exact:
            return
        high_slot, low_slot = self._parts
        high, low, x = self._get(high_slot), self._get(low_slot), self._get(self._sum)
        total = high + x
        moved = total - high
        lost = (high - (total - moved)) + (x - moved)
        self._put(high_slot, total)
        self._put(low_slot, low + lost)
        self._put(self._sum, self._neutral())

    def each(self) -> Value:
        """What each lane has, without the tail."""
        if not self.exact:
            return self._get(self._sum)
        self.carry()
        high, low = (self._get(slot) for slot in self._parts)
        return (high.abs() < math.inf).where(high + low, high)

    def result(self) -> Value:
        """All of it as a scalar."""
        total = self.how.across(self.each())
        if self._tail is None:
            return total
        return self.how.together(total, self._get(self._tail, 1))

    def _neutral(self, lanes: int | None = None) -> Value:
        return constant(self.body, self.how.element, lanes or self.lanes, self.how.start)

    def _get(self, slot: str, lanes: int | None = None) -> Value:
        lanes = lanes or self.lanes
        name = self.body(f"load {vector(self.how.element, lanes)}, ptr {slot}")
        return Value(self.body, self.how.element, lanes, name)

    def _put(self, slot: str, x: Value) -> None:
        self.body.do(f"store {x.type} {x.name}, ptr {slot}")
