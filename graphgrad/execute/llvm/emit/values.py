"""Vectors of numbers whose operators write IR, so that formulas read as formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .module import Body
from .types import BITS, INTEGER_OF, literal, suffix, vector

Number = int | float | bool
Formula = Callable[..., "Value"]
Pair = Callable[["Value"], "tuple[Value, Value]"]


class Value:
    """A vector of numbers of one type, or a scalar: one lane. Each operator adds an instruction.

    A Python number as the other operand stands for itself in every lane. Integers are signed where
    that matters.
    """

    __slots__ = ("body", "element", "lanes", "name")

    def __init__(self, body: Body, element: str, lanes: int, name: str) -> None:
        self.body = body
        self.element = element
        self.lanes = lanes
        self.name = name

    @property
    def type(self) -> str:
        """The LLVM type."""
        return vector(self.element, self.lanes)

    @property
    def floating(self) -> bool:
        """Whether it holds floats."""
        return self.element in INTEGER_OF

    def number(self, value: Number) -> Value:
        """A constant of this type."""
        return constant(self.body, self.element, self.lanes, value)

    def let(self, text: str, element: str | None = None) -> Value:
        """The value of an instruction, of as many lanes."""
        return Value(self.body, element or self.element, self.lanes, self.body(text))

    def _operand(self, other: Value | Number) -> str:
        return other.name if isinstance(other, Value) else self.number(other).name

    def binary(self, op: str, other: Value | Number) -> Value:
        """An instruction of two operands of this type."""
        return self.let(f"{op} {self.type} {self.name}, {self._operand(other)}")

    def arithmetic(self, op: str, other: Value | Number, flags: str = "") -> Value:
        """add, sub, mul of floats (with fast-math flags) or integers."""
        return self.binary(f"f{op} {flags}".rstrip() if self.floating else op, other)

    def __add__(self, other: Value | Number) -> Value:
        return self.arithmetic("add", other)

    def __sub__(self, other: Value | Number) -> Value:
        return self.arithmetic("sub", other)

    def __mul__(self, other: Value | Number) -> Value:
        return self.arithmetic("mul", other)

    def __truediv__(self, other: Value | Number) -> Value:
        return self.binary("fdiv", other)

    def __radd__(self, other: Number) -> Value:
        return self.number(other) + self

    def __rsub__(self, other: Number) -> Value:
        return self.number(other) - self

    def __rmul__(self, other: Number) -> Value:
        return self.number(other) * self

    def __rtruediv__(self, other: Number) -> Value:
        return self.number(other) / self

    def __neg__(self) -> Value:
        return self.let(f"fneg {self.type} {self.name}") if self.floating else self.number(0) - self

    def __and__(self, other: Value | Number) -> Value:
        return self.binary("and", other)

    def __or__(self, other: Value | Number) -> Value:
        return self.binary("or", other)

    def __xor__(self, other: Value | Number) -> Value:
        return self.binary("xor", other)

    def __lshift__(self, other: Value | Number) -> Value:
        return self.binary("shl", other)

    def __rshift__(self, other: Value | Number) -> Value:
        return self.binary("ashr", other)

    def __invert__(self) -> Value:
        return self ^ (True if self.element == "i1" else -1)

    def compare(self, how: str, other: Value | Number) -> Value:
        """A bool a lane, `how` spelled as LLVM does: olt, une, sgt, ..."""
        op = "fcmp" if self.floating else "icmp"
        return self.let(f"{op} {how} {self.type} {self.name}, {self._operand(other)}", "i1")

    def _ordered(self, how: str, other: Value | Number) -> Value:
        return self.compare(("o" if self.floating else "s") + how, other)

    def __lt__(self, other: Value | Number) -> Value:
        return self._ordered("lt", other)

    def __le__(self, other: Value | Number) -> Value:
        return self._ordered("le", other)

    def __gt__(self, other: Value | Number) -> Value:
        return self._ordered("gt", other)

    def __ge__(self, other: Value | Number) -> Value:
        return self._ordered("ge", other)

    def equals(self, other: Value | Number) -> Value:
        """Whether they are equal; NaN equals nothing."""
        return self.compare("oeq" if self.floating else "eq", other)

    def is_nan(self) -> Value:
        """Whether it is NaN."""
        return self.compare("uno", self)

    def where(self, yes: Value, no: Value | Number) -> Value:
        """yes where this bool holds, else no."""
        text = f"select {self.type} {self.name}, {yes.type} {yes.name}, {yes.type} "
        return yes.let(text + yes._operand(no))

    def convert(self, op: str, element: str) -> Value:
        """As another type, by an instruction such as `sitofp`."""
        text = f"{op} {self.type} {self.name} to {vector(element, self.lanes)}"
        return self.let(text, element)

    def bits(self) -> Value:
        """The integer of the same bits as a float."""
        return self.convert("bitcast", INTEGER_OF[self.element])

    def as_float(self) -> Value:
        """The float of the same bits as an integer."""
        return self.convert("bitcast", "float" if BITS[self.element] == 32 else "double")

    def intrinsic(self, name: str, *others: Value | Number) -> Value:
        """llvm.name of this and others, all of this type."""
        full = f"llvm.{name}.{suffix(self.element, self.lanes)}"
        args = [f"{self.type} {self._operand(v)}" for v in (self, *others)]
        self.body.module.declare(full, self.type, *[self.type] * len(args))
        return self.let(f"call {self.type} @{full}({', '.join(args)})")

    def abs(self) -> Value:
        """|x| of floats."""
        return self.intrinsic("fabs")

    def with_sign_of(self, other: Value) -> Value:
        """|x| with the sign of another."""
        return self.intrinsic("copysign", other)

    def rint(self) -> Value:
        """The nearest integer, halves to even, as a float."""
        return self.intrinsic("rint")

    def sqrt(self) -> Value:
        """The square root."""
        return self.intrinsic("sqrt")

    def fma(self, y: Value | Number, z: Value | Number) -> Value:
        """x * y + z, rounded once."""
        return self.intrinsic("fma", y, z)

    def at_least(self, low: Number) -> Value:
        """max(x, low), NaN for NaN."""
        return (self < low).where(self.number(low), self)

    def at_most(self, high: Number) -> Value:
        """min(x, high), NaN for NaN."""
        return (self > high).where(self.number(high), self)

    def extremum(self, how: str, other: Value) -> Value:
        """The greater (gt) or less (lt) of two floats, the first NaN; of equal ones the other.

        Asked as "is this a number", which LLVM leaves as one instruction for the extremum and a
        mask; "is this NaN, or greater" becomes two comparisons, an `or` and a choice.
        """
        found = self.compare(f"o{how}", other).where(self, other)
        return self.compare("ord", self).where(found, self)

    def call(self, formula: Formula, *others: Value, inline: bool = True) -> Value:
        """formula(self, *others) as a function, which the module has once for each type."""
        return call(formula, (self, *others), inline)


def constant(body: Body, element: str, lanes: int, value: Number) -> Value:
    """The same number in every lane."""
    text = literal(element, value)
    return Value(body, element, lanes, text if lanes == 1 else f"splat ({element} {text})")


def call(formula: Formula, args: Sequence[Value], inline: bool = True) -> Value:
    """formula(*args) for vectors of one type, as a call of a function that the module has once.

    Inlined, which is fast, or not, which compiles sooner where there are many calls.
    """
    first = args[0]
    return first.let(
        _called(formula.__name__, first.type, lambda *made: formula(*made).name, args, inline)
    )


def call_pair(formula: Pair, x: Value, inline: bool = True) -> tuple[Value, Value]:
    """Both numbers of formula(x), by a call that a block makes once."""
    known, kind = x.body.pairs, f"{{{x.type}, {x.type}}}"

    def write(x: Value) -> str:
        one, other = formula(x)
        first = x.body(f"insertvalue {kind} poison, {x.type} {one.name}, 0")
        return x.body(f"insertvalue {kind} {first}, {x.type} {other.name}, 1")

    name = f"{formula.__name__} {x.name}"
    if name not in known:
        known[name] = x.body(_called(formula.__name__, kind, write, (x,), inline))
    one, other = (x.let(f"extractvalue {kind} {known[name]}, {i}") for i in range(2))
    return one, other


def _called(
    stem: str, kind: str, write: Callable[..., str], args: Sequence[Value], inline: bool
) -> str:
    """A call of a function with a result of this kind, which the module has once."""
    first = args[0]
    takes = [f"%x{i}" for i in range(len(args))]
    name = f"{stem}.{suffix(first.element, first.lanes)}"

    def text(body: Body) -> str:
        result = write(*[Value(body, first.element, first.lanes, x) for x in takes])
        taken = ", ".join(f"{first.type} {x}" for x in takes)
        head = f"define internal {kind} @{name}({taken}) alwaysinline nounwind {{"
        return "\n".join([head, *body.lines, f"  ret {kind} {result}", "}"])

    first.body.module.helper(name, text)
    given = ", ".join(f"{v.type} {v.name}" for v in args)
    return f"call {kind} @{name}({given}){'' if inline else ' noinline'}"


def lanes_of(x: Value, start: int, count: int, step: int = 1) -> Value:
    """Some lanes, neighbours or `step` apart; a scalar where it is one."""
    if count == x.lanes:
        return x
    if count == 1:
        return Value(x.body, x.element, 1, x.body(f"extractelement {x.type} {x.name}, i32 {start}"))
    picks = ", ".join(f"i32 {start + i * step}" for i in range(count))
    text = f"shufflevector {x.type} {x.name}, {x.type} poison, <{count} x i32> <{picks}>"
    return Value(x.body, x.element, count, x.body(text))


def joined(x: Value, y: Value) -> Value:
    """The lanes of both, of one type."""
    picks = ", ".join(f"i32 {i}" for i in range(2 * x.lanes))
    text = f"shufflevector {x.type} {x.name}, {x.type} {y.name}, <{2 * x.lanes} x i32> <{picks}>"
    return Value(x.body, x.element, 2 * x.lanes, x.body(text))


def polynomial(x: Value, coefficients: Sequence[float]) -> Value:
    """c0 + c1 x + c2 x**2 + ..., by Horner's rule, each step rounded once."""
    *rest, last = coefficients
    total = x.number(last)
    for c in reversed(rest):
        total = total.fma(x, c)
    return total
