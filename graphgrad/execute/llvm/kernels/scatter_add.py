"""Adding at indices as LLVM IR: y[b, index[j], a] += u[b, j, a], in the order of b, j and a.

So it is with every key: what stands before the indices is one axis, what comes after another. An
index may also differ with b and a. A number named twice is added twice, one after the other, as
NumPy's `add.at` does; so the sums are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from ..emit.arrays import ArrayArgument, Unlocked, built_in, number
from ..emit.text import Text
from ..emit.types import BITS, Target

NAMES = ("add_rows", "add_each")


Word = TypeVar("Word")


class Layout(NamedTuple, Generic[Word]):
    """What the functions read of an array of int64: lengths, and strides in elements.

    many     indices, for one b and a         after    elements after them in u
    length   of the axis that they pick from  offset   of y's first element
    before, at, step       strides of b, an index and a in y
    index_before, index_at, index_step        those of b, j and a in the indices
    """

    many: Word
    after: Word
    length: Word
    offset: Word
    before: Word
    at: Word
    step: Word
    index_before: Word
    index_at: Word
    index_step: Word


class Adding:
    """The text for one type of numbers: functions(y, index, u, layout, b, b_end, a, a_end).

    index: int64. They return y; where an index is out of range, index.
    """

    def __init__(self, element: str, target: Target) -> None:
        self.element = element
        self.size = BITS[element] // 8
        self.lanes = 2 * target.lanes(element)

    def functions(self) -> tuple[str, ...]:
        """`add_rows`, for steps of 1 and an index for each row; `add_each`, for all others."""
        return self._add_rows(), self._add_each()

    def _add_rows(self) -> str:
        t = Text()
        f = _Frame(t)

        def row(b: str, j: str) -> None:
            to = self._target(f, b, f.index(b, j, "0"))
            of = self._source(f, b, j)
            main = t.sub(f.a_end, t(f"urem i64 {t.sub(f.a_end, f.a)}, {self.lanes}"))
            wide = f"<{self.lanes} x {self.element}>"
            t.loop(f.a, main, self.lanes, lambda a: self._add(t, wide, to, of, a))
            t.loop(main, f.a_end, 1, lambda a: self._add(t, self.element, to, of, a))

        f.rows(row)
        return f.done(NAMES[0])

    def _add_each(self) -> str:
        t = Text()
        f = _Frame(t)

        def row(b: str, j: str) -> None:
            of = self._source(f, b, j)

            def one(a: str) -> None:
                to = self._target(f, b, f.index(b, j, a))
                where = t.at(to, t.mul(t.mul(a, f.layout.step), self.size))
                self._sum(t, self.element, where, t.at(of, t.mul(a, self.size)))

            t.loop(f.a, f.a_end, 1, one)

        f.rows(row)
        return f.done(NAMES[1])

    def _target(self, f: _Frame, b: str, index: str) -> str:
        t = f.t
        place = t.add(t.mul(b, f.layout.before), t.mul(index, f.layout.at))
        return t.at(f.y.data, t.mul(t.add(place, f.layout.offset), self.size))

    def _source(self, f: _Frame, b: str, j: str) -> str:
        t = f.t
        row = t.add(t.mul(b, f.layout.many), j)
        return t.at(f.u.data, t.mul(t.mul(row, f.layout.after), self.size))

    def _add(self, t: Text, kind: str, to: str, of: str, a: str) -> None:
        at = t.mul(a, self.size)
        self._sum(t, kind, t.at(to, at), t.at(of, at))

    def _sum(self, t: Text, kind: str, to: str, of: str) -> None:
        aligned = f"align {self.size}"
        x = t(f"load {kind}, ptr {to}, {aligned}")
        y = t(f"load {kind}, ptr {of}, {aligned}")
        op = "fadd" if self.element in ("float", "double") else "add"
        t.do(f"store {kind} {t(f'{op} {kind} {x}, {y}')}, ptr {to}, {aligned}")


class _Frame:
    """What a function begins and ends with."""

    def __init__(self, t: Text) -> None:
        self.t = t
        self._wrong = t("alloca i1")
        t.do(f"store i1 false, ptr {self._wrong}")
        self.y, self._index, self.u, given = (ArrayArgument(t, i) for i in range(4))
        words = [t.load("i64", t.at(given.data, 8 * i)) for i in range(len(Layout._fields))]
        self.layout = Layout(*words)
        self._b, self._b_end, self.a, self.a_end = (number(t, i) for i in range(4, 8))
        self._unlocked = Unlocked(t, "true")
        self._unlocked.start()

    def rows(self, row: Callable[[str, str], None]) -> None:
        """row(b, j) for all of them."""
        t = self.t
        inside = partial(t.loop, 0, self.layout.many, 1)
        t.loop(self._b, self._b_end, 1, lambda b: inside(lambda j: row(b, j)))

    def index(self, b: str, j: str, a: str) -> str:
        """The index there, counted from the start. 0 where it is out of range, which is noted."""
        t, layout = self.t, self.layout
        place = t.add(t.mul(b, layout.index_before), t.mul(j, layout.index_at))
        place = t.add(place, t.mul(a, layout.index_step))
        index = t.load("i64", t.at(self._index.data, t.mul(place, 8)))
        from_end = t.add(index, layout.length)
        index = t.chosen(t(f"icmp slt i64 {index}, 0"), "i64", from_end, index)
        wrong = t(f"icmp uge i64 {index}, {layout.length}")
        noted = t(f"or i1 {wrong}, {t.load('i1', self._wrong)}")
        t.do(f"store i1 {noted}, ptr {self._wrong}")
        return t.chosen(wrong, "i64", 0, index)

    def done(self, name: str) -> str:
        """The definition."""
        t = self.t
        self._unlocked.stop()
        wrong = t.load("i1", self._wrong)
        return built_in(name, t, t.chosen(wrong, "ptr", self._index.object, self.y.object))
