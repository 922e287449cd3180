"""Rows out of columns: what lies across memory is copied, a square at a time, into rows beside each
other.
"""

from __future__ import annotations

from .module import Body, Module
from .text import function
from .types import BITS, vector

TAKES = "ptr %from, i64 %step, ptr %to, i64 %length, i64 %count"


def turn(module: Module, element: str, side: int) -> str:
    """The name of void(from, step, to, length, count): to[k, i] = from[i, k] for k < count <= side.

    The entries from[i, :] are adjacent, and `step` bytes from those of i + 1; the rows of `to` are
    adjacent, `length` long.
    """
    name = f"turn.{vector(element, side)}".translate({ord(c): None for c in "<> "})
    module.helper(name, lambda body: _Turning(body, element, side).write(name))
    return name


class _Turning:
    def __init__(self, body: Body, element: str, side: int) -> None:
        self.t, self.element, self.side = body, element, side
        self.size = BITS[element] // 8
        self.vector = vector(element, side)
        self.width = body.mul("%length", self.size)

    def write(self, name: str) -> str:
        """Squares as far as they go, then entry by entry."""
        t = self.t
        square = t(f"icmp eq i64 %count, {self.side}")
        even = t.mul(t.div("%length", self.side), self.side)
        whole = t.chosen(square, "i64", even, 0)
        t.loop(0, whole, self.side, self._square)
        t.loop(whole, "%length", 1, lambda i: t.loop(0, "%count", 1, lambda k: self._entry(i, k)))
        return function("void", name, TAKES, t)

    def _entry(self, i: str, k: str) -> None:
        t = self.t
        source = t.at(t.at("%from", t.mul(i, "%step")), t.mul(k, self.size))
        target = t.at(t.at("%to", t.mul(k, self.width)), t.mul(i, self.size))
        t.do(f"store {self.element} {t.load(self.element, source)}, ptr {target}")

    def _square(self, i: str) -> None:
        t = self.t
        start = t.at("%from", t.mul(i, "%step"))
        rows = []
        for _ in range(self.side):
            rows.append(t(f"load {self.vector}, ptr {start}, align {self.size}"))
            start = t.at(start, "%step")
        target = t.at("%to", t.mul(i, self.size))
        for row in self._exchanged(rows):
            t.do(f"store {self.vector} {row}, ptr {target}, align {self.size}")
            target = t.at(target, self.width)

    def _exchanged(self, rows: list[str]) -> list[str]:
        """Columns for rows: in each round pairs exchange blocks of `half` lanes."""
        n, half = self.side, 1
        while half < n:
            made = list(rows)
            for i in range(n):
                if i & half:
                    continue
                low = [n + c - half if c & half else c for c in range(n)]
                high = [n + c if c & half else c + half for c in range(n)]
                for place, lanes in ((i, low), (i | half, high)):
                    made[place] = self._picked(rows[i], rows[i | half], lanes)
            rows, half = made, 2 * half
        return rows

    def _picked(self, a: str, b: str, lanes: list[int]) -> str:
        order = ", ".join(f"i32 {lane}" for lane in lanes)
        v = self.vector
        return self.t(f"shufflevector {v} {a}, {v} {b}, <{self.side} x i32> <{order}>")
