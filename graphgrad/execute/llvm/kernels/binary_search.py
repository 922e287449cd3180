"""Places in a vector in order, as LLVM IR: searches by halves, several values side by side.

All values take the same steps, since these depend on the length alone; only how far a search is
moves with what it finds. NumPy's, which branches, guesses wrong every other time, and so would the
code for a single value, where a processor's conditional move becomes a branch.
"""

from __future__ import annotations

from ..emit.arrays import ArrayArgument, Unlocked, built_in, number
from ..emit.text import Text
from ..emit.types import BITS, suffix, vector

NAMES = ("search_left", "search_right")
TOGETHER = 8  # values side by side


class Searching:
    """The text for one type of numbers: functions(x, v, places, start, stop).

    places[i] = how many elements of x are before v[i], for i from start to stop. NaN is behind all
    others. They return places.
    """

    def __init__(self, element: str) -> None:
        self.element = element
        self.size = BITS[element] // 8
        self.floating = element in ("float", "double")

    def declarations(self) -> tuple[str, ...]:
        """What the text calls."""
        kind, name = vector(self.element, TOGETHER), suffix(self.element, TOGETHER)
        takes = f"<{TOGETHER} x ptr>, i32, <{TOGETHER} x i1>, {kind}"
        return (f"declare {kind} @llvm.masked.gather.{name}.v{TOGETHER}p0({takes})",)

    def functions(self) -> tuple[str, ...]:
        """One for each side."""
        return tuple([self._search(name, right=name == NAMES[1]) for name in NAMES])

    def _search(self, name: str, right: bool) -> str:
        t = Text()
        x, v, places = (ArrayArgument(t, i) for i in range(3))
        start, stop, length = number(t, 3), number(t, 4), x.length(1)
        unlocked = Unlocked(t, "true")
        unlocked.start()

        def some(i: str, lanes: int) -> None:
            kind, whole = vector(self.element, lanes), vector("i64", lanes)
            of, to = t.at(v.data, t.mul(i, self.size)), t.at(places.data, t.mul(i, 8))
            values = t(f"load {kind}, ptr {of}, align {self.size}")
            counts = _Halves(self, t, x.data, values, lanes, right).count(length)
            t.do(f"store {whole} {counts}, ptr {to}, align 8")

        main = t.sub(stop, t(f"urem i64 {t.sub(stop, start)}, {TOGETHER}"))
        t.loop(start, main, TOGETHER, lambda i: some(i, TOGETHER))
        t.loop(main, stop, 1, lambda i: some(i, 1))
        unlocked.stop()
        return built_in(name, t, places.object)


class _Halves:
    """The searches for some values side by side."""

    def __init__(
        self, of: Searching, t: Text, x: str, values: str, lanes: int, right: bool
    ) -> None:
        self._of, self.t, self._x, self._values = of, t, x, values
        self._lanes, self._right = lanes, right
        self._kind, self._whole = vector(of.element, lanes), vector("i64", lanes)
        self._flags = vector("i1", lanes)

    def count(self, length: str) -> str:
        """How many of the first `length` elements are before each value."""
        t, whole = self.t, self._whole
        base, left, after, rest = (f"%{t.new(s)}" for s in ("base", "left", "after", "rest"))
        test, inside, done = (t.new(s) for s in ("test", "body", "done"))
        head = t.block("head")
        none = "0" if self._lanes == 1 else "zeroinitializer"
        t.do(f"br label %{test}")
        t.label(test)
        t.do(f"{base} = phi {whole} [{none}, %{head}], [{after}, %{inside}]")
        t.do(f"{left} = phi i64 [{length}, %{head}], [{rest}, %{inside}]")
        t.do(f"br i1 {t(f'icmp sgt i64 {left}, 1')}, label %{inside}, label %{done}")
        t.label(inside)
        half = t.div(left, 2)
        middle = t(f"add {whole} {base}, {self._spread(t.sub(half, 1))}")
        there = f"{self._flags} {self._before(middle)}, {whole}"
        moved = t(f"select {there} {self._spread(half)}, {whole} {none}")
        t.do(f"{after} = add {whole} {base}, {moved}")
        t.do(f"{rest} = sub i64 {left}, {half}")
        t.do(f"br label %{test}")
        t.label(done)
        last = t(f"zext {self._flags} {self._before(base)} to {whole}")
        return t(f"add {whole} {base}, {last}")

    def _spread(self, value: str) -> str:
        if self._lanes == 1:
            return value
        one = self.t(f"insertelement {self._whole} poison, i64 {value}, i32 0")
        zeros = f"<{self._lanes} x i32> zeroinitializer"
        return self.t(f"shufflevector {self._whole} {one}, {self._whole} poison, {zeros}")

    def _elements(self, places: str) -> str:
        """What is at these places of x."""
        t, of, kind = self.t, self._of, self._kind
        at = t(f"getelementptr {of.element}, ptr {self._x}, {self._whole} {places}")
        if self._lanes == 1:
            return t.load(of.element, at)
        every = ", ".join(["i1 true"] * self._lanes)
        name = f"@llvm.masked.gather.{suffix(of.element, self._lanes)}.v{self._lanes}p0"
        return t(
            f"call {kind} {name}(<{self._lanes} x ptr> {at}, i32 {of.size}, "
            f"{self._flags} <{every}>, {kind} zeroinitializer)"
        )

    def _before(self, places: str) -> str:
        """Whether the elements there are before the values, or on the right side like them."""
        t, kind, values, right = self.t, self._kind, self._values, self._right
        elements = self._elements(places)
        if not self._of.floating:
            return t(f"icmp {'sle' if right else 'slt'} {kind} {elements}, {values}")
        below = t(f"fcmp {'ole' if right else 'olt'} {kind} {elements}, {values}")
        nothing = t(f"fcmp uno {kind} {values}, {values}")
        if not right:
            there = t(f"fcmp ord {kind} {elements}, {elements}")
            nothing = t(f"and {self._flags} {nothing}, {there}")
        return t(f"or {self._flags} {below}, {nothing}")
