"""Sums, products and extrema so far as LLVM IR: y[a, k, b] = y[a, k - 1, b] op x[a, k, b].

In the order of k, as NumPy's `accumulate` has it: the same bits. Along the last axis each step
waits for the one before, so ABREAST rows are gone through at a time; else a vector is some b.
"""

from __future__ import annotations

from ..emit.arrays import ArrayArgument, Unlocked, built_in, number
from ..emit.text import Text
from ..emit.types import BITS, FLOATS, Target

ABREAST = 8
PIECE = 1 << 12  # elements of a row at a time, of which those before are near


class Accumulations:
    """The text for one type of numbers and an op: "sum", "product", "largest" or "smallest".

    rows(x, y, start, stop), columns(x, y, start, stop): of three axes, the last with a stride of
    one element. start, stop: which of the first axis; of columns, of the last. It is 1 for rows.
    """

    names = "rows", "columns"

    def __init__(self, element: str, op: str, target: Target) -> None:
        self.element, self.op = element, op
        self.size = BITS[element] // 8
        self.lanes = target.lanes(element)

    def functions(self) -> tuple[str, ...]:
        """The definitions of `names`."""
        return self._rows(), self._columns()

    def _after(self, t: Text, lanes: int, total: str, x: str) -> str:
        """The total with one more."""
        float_, kind = self.element in FLOATS.values(), self._kind(lanes)
        if name := {"sum": "add", "product": "mul"}.get(self.op):
            return t(f"{'f' * float_}{name} {kind} {total}, {x}")
        bits = "i1" if lanes == 1 else f"<{lanes} x i1>"
        than = ("o" if float_ else "s") + ("gt" if self.op == "largest" else "lt")
        compare = "fcmp" if float_ else "icmp"
        held = t(f"{compare} {than} {kind} {total}, {x}")
        if float_:
            held = t(f"or {bits} {held}, {t(f'fcmp uno {kind} {total}, {total}')}")
        return t(f"select {bits} {held}, {kind} {total}, {kind} {x}")

    def _kind(self, lanes: int) -> str:
        return self.element if lanes == 1 else f"<{lanes} x {self.element}>"

    def _step(self, t: Text, lanes: int, x: str, before: str | None, *to: str) -> None:
        """The total at `before`, if any, with what is at x, to other addresses."""
        kind, aligned = self._kind(lanes), f"align {self.size}"
        value = t(f"load {kind}, ptr {x}, {aligned}")
        if before is not None:
            value = self._after(t, lanes, t(f"load {kind}, ptr {before}, {aligned}"), value)
        for where in to:
            t.do(f"store {kind} {value}, ptr {where}, {aligned}")

    def _rows(self) -> str:
        t = Text()
        totals = [t(f"alloca {self.element}") for _ in range(ABREAST)]
        x, y = ArrayArgument(t, 0), ArrayArgument(t, 1)
        steps = [(of.data, of.stride(3), of.stride(2)) for of in (x, y)]
        start, stop, n = number(t, 2), number(t, 3), x.length(2)
        unlocked = Unlocked(t, "true")
        unlocked.start()

        def together(a: str, count: int) -> None:
            def one(k: str, begins: bool) -> None:
                for i, total in enumerate(totals[:count]):
                    source, target = (_place(t, step, t.add(a, i), k) for step in steps)
                    self._step(t, 1, source, None if begins else total, total, target)

            one("0", True)
            t.loop(1, n, 1, lambda k: one(k, False))

        even = t.add(start, t.mul(t.div(t.sub(stop, start), ABREAST), ABREAST))
        t.loop(start, even, ABREAST, lambda a: together(a, ABREAST))
        t.loop(even, stop, 1, lambda a: together(a, 1))
        unlocked.stop()
        return built_in("rows", t, y.object)

    def _columns(self) -> str:
        t = Text()
        x, y = ArrayArgument(t, 0), ArrayArgument(t, 1)
        steps = [(of.data, of.stride(3), of.stride(2)) for of in (x, y)]
        start, stop, count, n = number(t, 2), number(t, 3), x.length(3), x.length(2)
        up = t.sub(0, steps[1][2])
        unlocked = Unlocked(t, "true")
        unlocked.start()

        def piece(a: str, left: str) -> None:
            right = t.least(t.add(left, PIECE), stop)
            main = t.sub(right, t(f"urem i64 {t.sub(right, left)}, {self.lanes}"))

            def next_row(k: str, begins: bool) -> None:
                row = [_place(t, step, a, k) for step in steps]

                def some(b: str, lanes: int) -> None:
                    source, target = (t.at(where, t.mul(b, self.size)) for where in row)
                    self._step(t, lanes, source, None if begins else t.at(target, up), target)

                t.loop(left, main, self.lanes, lambda b: some(b, self.lanes))
                t.loop(main, right, 1, lambda b: some(b, 1))

            next_row("0", True)
            t.loop(1, n, 1, lambda k: next_row(k, False))

        t.loop(0, count, 1, lambda a: t.loop(start, stop, PIECE, lambda left: piece(a, left)))
        unlocked.stop()
        return built_in("columns", t, y.object)


def _place(t: Text, steps: tuple[str, str, str], a: str, k: str) -> str:
    """The address of a row: of data, and the strides of a and k."""
    data, far, near = steps
    return t.at(t.at(data, t.mul(a, far)), t.mul(k, near))
