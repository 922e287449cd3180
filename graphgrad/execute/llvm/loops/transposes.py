"""Rows out of columns: what lies across memory is copied, a square at a time, into rows beside each
other. And columns out of short rows, and back.
"""

from __future__ import annotations

from ..emit.module import Body, Module
from ..emit.text import function
from ..emit.types import BITS, vector

TAKES = "ptr %from, i64 %step, ptr %to, i64 %length, i64 %count"


def turn(module: Module, element: str, side: int) -> str:
    """The name of void(from, step, to, length, count): to[k, i] = from[i, k] for k < count <= side.

    The entries from[i, :] are adjacent, and `step` bytes from those of i + 1; the rows of `to` are
    adjacent, `length` long.
    """
    name = f"turn.{vector(element, side)}".translate({ord(c): None for c in "<> "})
    module.helper(name, lambda body: _Turning(body, element, side).write(name))
    return name


def columns(module: Module, element: str, width: int, *, back: bool = False) -> str:
    """The name of void(rows, columns, step, count): columns[k, i] = rows[i, k] for i < count.

    The rows are adjacent, of `width` entries; `step` bytes lead from one column to the next.
    back: rows[i, k] = columns[k, i].
    """
    name = f"{'rows' if back else 'columns'}.{width}.{element}"
    module.helper(name, lambda body: _Columns(body, element, width, back).write(name))
    return name


class _Columns:
    def __init__(self, body: Body, element: str, width: int, back: bool) -> None:
        self.t, self.element, self.width, self.back = body, element, width, back
        self.size = BITS[element] // 8
        self.lanes = body.module.target.lanes(element)
        self.vector = vector(element, self.lanes)

    def write(self, name: str) -> str:
        """As many rows at a time as a vector has lanes, then entry by entry."""
        t = self.t
        main = t.mul(t.div("%count", self.lanes), self.lanes)
        t.loop(0, main, self.lanes, self._vectors)
        t.loop(main, "%count", 1, self._entries)
        return function("void", name, "ptr %rows, ptr %columns, i64 %step, i64 %count", t)

    def _entries(self, i: str) -> None:
        for k in range(self.width):
            self._move(self.element, *self._places(i, k, k))

    def _places(self, i: str, k: int, m: int) -> tuple[str, str]:
        """Where entry i of column k is, and entry m after the start of row i."""
        t = self.t
        column = t.at(t.at("%columns", t.mul("%step", k)), t.mul(i, self.size))
        return t.at(t.at("%rows", t.mul(i, self.width * self.size)), m * self.size), column

    def _move(self, kind: str, row: str, column: str) -> None:
        source, target = (column, row) if self.back else (row, column)
        x = self.t(f"load {kind}, ptr {source}, align {self.size}")
        self.t.do(f"store {kind} {x}, ptr {target}, align {self.size}")

    def _vectors(self, i: str) -> None:
        n, lanes, t = self.width, self.lanes, self.t
        places = [self._places(i, k, k * lanes) for k in range(n)]
        vectors = [
            t(f"load {self.vector}, ptr {place[self.back]}, align {self.size}") for place in places
        ]
        for k, place in enumerate(places):
            if self.back:
                picks = [((k * lanes + j) % n, (k * lanes + j) // n) for j in range(lanes)]
            else:
                picks = [divmod(j * n + k, lanes) for j in range(lanes)]
            made = self._picked(vectors, picks)
            where = place[not self.back]
            t.do(f"store {self.vector} {made}, ptr {where}, align {self.size}")

    def _picked(self, vectors: list[str], picks: list[tuple[int, int]]) -> str:
        """A vector of lanes (of which vector, which one), one vector joined after the other."""
        made = vectors[0]
        for number, x in enumerate(vectors[1:], 1):
            order = ", ".join(
                f"i32 {self.lanes + lane if of == number else lane if number == 1 else at}"
                for at, (of, lane) in enumerate(picks)
            )
            text = f"shufflevector {self.vector} {made}, {self.vector} {x}"
            made = self.t(f"{text}, <{self.lanes} x i32> <{order}>")
        return made


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
