"""Lengths of axes that are known when a program runs, and integer arithmetic on them.

A length is a polynomial in named lengths with integer coefficients, in which floor divisions,
remainders, maxima and minima that do not simplify count as names. Equal polynomials are equal.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import gcd
from typing import Any, ClassVar, NamedTuple

from .errors import ShapeError
from .interned import Interned

__all__ = ["Inequality", "Length", "as_length", "at_least", "divided_exactly", "solved"]


class Atom(NamedTuple):
    """A factor of a term: a name, or an operation on lengths that does not simplify.

    text: how it is written; operation: "" for a name, else "//", "%", "max" or "min".
    """

    text: str
    operation: str = ""
    operands: tuple[Length | int, ...] = ()


Monomial = tuple[Atom, ...]
Terms = tuple[tuple[Monomial, int], ...]
DEPTH = 12  # operations that a proof looks into
LARGEST_POWER = 8
MOST_TERMS, LONGEST = 64, 400  # of an expression, and characters of its text


class LengthTooLongError(ShapeError):
    """An expression of lengths that is longer than anybody would read."""


def _check_size(terms: int, characters: int = 0) -> None:
    if terms > MOST_TERMS or characters > LONGEST:
        raise LengthTooLongError(
            f"an expression of lengths with more than {MOST_TERMS} terms or {LONGEST} characters: "
            "name the length, as gg.Length('M'), in the shape of an input"
        )


class Length:
    """The length of an axis that is known when the program runs: a name, or arithmetic on names.

    Shapes hold lengths where they do not hold ints. `+`, `-`, `*`, `//`, `%`, `gg.Length.max`,
    `gg.Length.min` and `gg.Length.ceil_div` with ints and lengths give lengths, or an int where
    nothing is left open. Arithmetic with tensors and floats takes the length as a weak integer
    tensor. A length equals another where both are one polynomial, and equals the str that names it.
    `<`, `<=`, `>` and `>=` are decided where they hold for all lengths from 0 on, and under what
    `gg.assume` says; else they give an `Inequality`, which has no truth value.

    Parameters: text: a name, or an expression as `str` writes it: "2*N + 1", "N//2", "max(N, 3)".

    Raises: ShapeError for an empty name, a number, or a negative length.

    >>> N = gg.Length("N")
    >>> (N + 1) * 2 == 2 * N + 2, N == "N", N // 2 + 3 * N - 1
    (True, True, 3*N + N//2 - 1)
    >>> N + 1 > N, (4 * N) // 4 == N, (6 * N + 3) % 3
    (True, True, 0)
    """

    __slots__ = ("__weakref__", "_hash", "_terms", "_text")
    _terms: Terms
    _text: str
    _hash: int

    operators: ClassVar[Mapping[str, Callable[[Any, Any], Any]]] = {}
    """What `graphgrad.ops` does for arithmetic with floats and arrays, by operator."""
    assumed: ClassVar[Callable[[], tuple[Any, ...]]] = staticmethod(tuple)
    """The lengths that are at least 0 by what `gg.assume` says, which `graphgrad.ir` knows."""

    def __new__(cls, text: str | Length | int) -> Length:
        """The length of this text: the same object for equal ones, while it lives."""
        length = as_length(text)
        if not isinstance(length, Length):
            raise ShapeError(f"a Length is open, got {text!r}: use the int itself")
        return length

    # --- what it is ------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self._text

    def __str__(self) -> str:
        return self._text

    def __format__(self, spec: str) -> str:
        return format(self._text, spec)

    def __reduce__(self) -> tuple[Any, ...]:
        return Length, (self._text,)

    def __copy__(self) -> Length:
        return self

    def __deepcopy__(self, memo: Any) -> Length:
        return self

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Length):
            return self._terms == other._terms
        return self._text == other if isinstance(other, str) else False

    @property
    def names(self) -> frozenset[str]:
        """The named lengths that it is made of."""
        return frozenset(name for monomial, _ in self._terms for name in _names_in(monomial))

    @property
    def name(self) -> str | None:
        """Its name, where it is one; None for arithmetic."""
        if len(self._terms) == 1 and self._terms[0][1] == 1 and len(self._terms[0][0]) == 1:
            atom = self._terms[0][0][0]
            return None if atom.operation else self._text
        return None

    # --- arithmetic ------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        terms = _terms_of(other)
        if terms is None:
            return self._computed("add", self, other)
        return _made([*self._terms, *terms])

    def __radd__(self, other: Any) -> Any:
        terms = _terms_of(other)
        if terms is None:
            return self._computed("add", other, self)
        return _made([*terms, *self._terms])

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Length:
        return self

    def __sub__(self, other: Any) -> Any:
        terms = _terms_of(other)
        if terms is None:
            return self._computed("sub", self, other)
        return _made([*self._terms, *[(m, -k) for m, k in terms]])

    def __rsub__(self, other: Any) -> Any:
        terms = _terms_of(other)
        if terms is None:
            return self._computed("sub", other, self)
        return _made([*terms, *[(m, -k) for m, k in self._terms]])

    def __mul__(self, other: Any) -> Any:
        terms = _terms_of(other)
        if terms is None:
            return self._computed("mul", self, other)
        _check_size(len(self._terms) * len(terms) // 8)
        return _made([_times(a, b) for a, b in product(self._terms, terms)])

    def __rmul__(self, other: Any) -> Any:
        return self * other if _terms_of(other) is not None else self._computed("mul", other, self)

    def __floordiv__(self, other: Any) -> Any:
        if _terms_of(other) is None:
            return self._computed("floordiv", self, other)
        return _floor_divided(self, _plain(other))

    def __rfloordiv__(self, other: Any) -> Any:
        if _terms_of(other) is None:
            return self._computed("floordiv", other, self)
        return _floor_divided(_plain(other), self)

    def __mod__(self, other: Any) -> Any:
        if _terms_of(other) is None:
            return self._computed("mod", self, other)
        return _remainder(self, _plain(other))

    def __rmod__(self, other: Any) -> Any:
        if _terms_of(other) is None:
            return self._computed("mod", other, self)
        return _remainder(_plain(other), self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and 0 <= other <= LARGEST_POWER:
            power: Any = 1
            for _ in range(other):
                power = power * self
            return power
        return self._computed("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return self._computed("pow", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._computed("truediv", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._computed("truediv", other, self)

    def _computed(self, operation: str, left: Any, right: Any) -> Any:
        """A tensor, of a length and a float or an array; with a tensor, what that makes of it."""
        other = right if left is self else left
        if not isinstance(other, int | float | complex | Length) and (
            hasattr(other, "node") or not hasattr(other, "dtype")
        ):
            return NotImplemented
        return Length.operators[operation](left, right)

    __array_ufunc__ = None  # NumPy leaves arithmetic with its arrays to the methods here

    # --- comparisons -----------------------------------------------------------------------

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, ">=")

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, ">")

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "<=")

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, "<")

    def _compared(self, other: Any, sign: str) -> Any:
        if _terms_of(other) is None:
            return NotImplemented
        return Inequality(self, sign, _plain(other)).decided()

    # --- what it is not --------------------------------------------------------------------

    def __bool__(self) -> bool:
        if at_least(self, 1, Length.assumed()):
            return True
        raise TypeError(
            f"the length {self} is open: whether it is 0 is known when the program runs. "
            f"State gg.assume({self} >= 1), or choose with gg.cond(gg.size(x, axis) > 0, ...)."
        )

    def __index__(self) -> int:
        raise TypeError(
            f"the length {self} is open: it is an int when the program runs, not while it is "
            "built. Loop with gg.fori_loop or gg.scan instead of range(), take gg.size(x, axis) "
            "for a tensor of it, or compile with fixed shapes."
        )

    __int__ = __float__ = __complex__ = __index__

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.__index__()

    # --- values ----------------------------------------------------------------------------

    def at(self, sizes: Mapping[str, Any]) -> Any:
        """The length where named lengths have these values; names without one stay.

        Raises: ShapeError where it divides by 0.

        >>> gg.Length("N//2 + M").at({"N": 7})
        M + 3
        """
        total: Any = 0
        for monomial, k in self._terms:
            for atom in monomial:
                k = k * _atom_at(atom, sizes)
            total = total + k
        return total

    @staticmethod
    def max(*lengths: Any) -> Any:
        """The greatest of lengths and ints.

        >>> gg.Length.max(gg.Length("N"), 3, 2)
        max(N, 3)
        """
        return _extreme("max", lengths)

    @staticmethod
    def min(*lengths: Any) -> Any:
        """The least of lengths and ints.

        >>> gg.Length.min(gg.Length("N"), gg.Length("N") + 1)
        N
        """
        return _extreme("min", lengths)

    @staticmethod
    def ceil_div(a: Any, b: Any) -> Any:
        """a / b, rounded up.

        >>> gg.Length.ceil_div(gg.Length("N"), 2)
        (N + 1)//2
        """
        return -(-a // b)


class Inequality:
    """A comparison of lengths that holds for some lengths and not for others.

    `gg.assume` takes it. It has no truth value: TypeError for `if N > 3`.

    >>> gg.Length("N") >= 2
    N >= 2
    """

    __slots__ = ("left", "right", "sign")

    def __init__(self, left: Length | int, sign: str, right: Length | int) -> None:
        self.left, self.sign, self.right = left, sign, right

    @property
    def excess(self) -> Any:
        """What is at least 0 where it holds."""
        first, second = self.left, self.right
        if self.sign in "<=":
            first, second = second, first
        difference: Any = first - second
        return difference if "=" in self.sign else difference - 1

    def decided(self) -> Any:
        """True or False, where it is one for all lengths; else itself."""
        excess, facts = self.excess, Length.assumed()
        if at_least(excess, 0, facts):
            return True
        return False if at_least(-1, excess, facts) else self

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"

    __repr__ = __str__

    def __bool__(self) -> bool:
        raise TypeError(
            f"whether {self} is known when the program runs, not while it is built: state "
            f"gg.assume({self}) where it always holds, or choose with gg.cond on gg.size(x, axis)"
        )


class Assumption(NamedTuple):
    """What `gg.assume` stated of two lengths, and where."""

    left: Length | int
    sign: str
    right: Length | int
    where: str

    @property
    def excess(self) -> Any:
        """What is at least 0."""
        return Inequality(self.left, self.sign, self.right).excess

    @property
    def text(self) -> str:
        """`N >= 2`."""
        return f"{self.left} {self.sign} {self.right}"

    @classmethod
    def checked(cls, left: Any, sign: Any, right: Any, where: Any) -> Assumption:
        """One of a file; ShapeError for what states nothing."""
        sides = isinstance(left, Length | int) and isinstance(right, Length | int)
        if not (sides and sign in ("<", "<=", ">", ">=") and isinstance(where, str)):
            raise ShapeError(f"{left!r:.40} {sign!r:.40} {right!r:.40} states nothing of lengths")
        return cls(left, sign, right, where)

    def check(self, sizes: Mapping[str, Any]) -> None:
        """ShapeError where it does not hold for these values of names, if they tell."""
        excess = self.excess.at(sizes) if isinstance(self.excess, Length) else self.excess
        if isinstance(excess, int) and excess < 0:
            names = sorted(self.excess.names) if isinstance(self.excess, Length) else ()
            known = " and ".join(f"{name} is {sizes[name]}" for name in names)
            raise ShapeError(f"gg.assume({self.text}), stated at {self.where}, is not so: {known}")


# --- from text -----------------------------------------------------------------------------------

_interned: Interned[Length] = Interned(4096)
_TOKEN = re.compile(r"\s*(\d+|[^\W\d]\w*(?:[./:]\w+)*|'(?:[^'\\]|\\.)*'|//|[-+*^%(),])")
_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:[./:]\w+)*")
_EXTREMES = ("max", "min")
_FUNCTIONS = {
    "max": Length.max,
    "min": Length.min,
    "ceil_div": Length.ceil_div,
    "floordiv": operator.floordiv,  # JAX writes these two so
    "mod": operator.mod,
}


def as_length(value: Any) -> Length | int:
    """The length of a str as `str` writes one, of a length or an int; ShapeError for others."""
    if isinstance(value, Length):
        return value
    if isinstance(value, str):
        return _parsed(str(value))
    return operator.index(value)


@lru_cache(4096)
def _parsed(text: str) -> Length:
    if not text.strip():
        raise ShapeError(f"a named length needs a name, got {text!r}")
    try:
        _check_size(text.count("("), len(text))
        length = _Parser(text).all()
    except (_NoExpression, LengthTooLongError):
        return _named(text)
    if not isinstance(length, Length):
        raise ShapeError(f"the length {text!r} is a number: give it as an int")
    return length


class _NoExpression(Exception):
    """The text is none of an expression."""


class _Parser:
    """What reads an expression, of the loosest operation first."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at = 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise _NoExpression
            self._tokens.append(match[1])
            at = match.end()
        self._at = 0

    def all(self) -> Any:
        """The whole of it."""
        value = self._sum()
        if self._at < len(self._tokens):
            raise _NoExpression
        return value

    def _next(self, *expected: str) -> str | None:
        """The next token, taken if it is one of these."""
        if self._at < len(self._tokens) and self._tokens[self._at] in expected:
            self._at += 1
            return self._tokens[self._at - 1]
        return None

    def _sum(self) -> Any:
        value = self._product()
        while sign := self._next("+", "-"):
            other = self._product()
            value = value + other if sign == "+" else value - other
        return value

    def _product(self) -> Any:
        value = self._power()
        while sign := self._next("*", "//", "%"):
            other = self._power()
            if sign != "*" and isinstance(other, int) and other <= 0:
                raise _NoExpression
            if sign == "*":
                value = value * other
            else:
                value = value // other if sign == "//" else value % other
        return value

    def _power(self) -> Any:
        value = self._factor()
        if self._next("^"):  # as JAX writes it
            exponent = self._factor()
            if not isinstance(exponent, int) or exponent > LARGEST_POWER:
                raise _NoExpression
            value = value**exponent
        return value

    def _factor(self) -> Any:
        if self._next("-"):
            return -self._factor()
        if self._next("("):
            value = self._sum()
            if not self._next(")"):
                raise _NoExpression
            return value
        if self._at == len(self._tokens):
            raise _NoExpression
        token = self._tokens[self._at]
        self._at += 1
        if token.isdigit():
            return int(token)
        if token in _FUNCTIONS and self._next("("):
            return self._call(token)
        if token[0] == "'":
            return as_length(_unquoted(token))
        if not _PLAIN_NAME.fullmatch(token):
            raise _NoExpression
        return _named(token)

    def _call(self, function: str) -> Any:
        operands = [self._sum()]
        while self._next(","):
            operands.append(self._sum())
        if not self._next(")") or (function not in _EXTREMES and len(operands) != 2):
            raise _NoExpression
        call: Any = _FUNCTIONS[function]
        return call(*operands)


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", r"\1", token[1:-1])


def _named(name: str) -> Length:
    """The length of a name, which may have any characters; others are quoted in arithmetic."""
    quoted = "'" + re.sub(r"(['\\])", r"\\\1", name) + "'"
    atom = Atom(name if _PLAIN_NAME.fullmatch(name) else quoted)
    return _interned.add(name, lambda: _new((((atom,), 1),), name))


# --- polynomials ---------------------------------------------------------------------------------


def _terms_of(value: Any) -> Terms | None:
    """The terms of a length, an int or the name of a length; None for what is none of them."""
    if isinstance(value, Length):
        return value._terms
    if isinstance(value, bool) or not hasattr(value, "__index__") or hasattr(value, "node"):
        return None
    number = operator.index(value)
    return (((), number),) if number else ()


def _plain(value: Any) -> Length | int:
    return value if isinstance(value, Length) else operator.index(value)


def _times(a: tuple[Monomial, int], b: tuple[Monomial, int]) -> tuple[Monomial, int]:
    return tuple(sorted((*a[0], *b[0]))), a[1] * b[1]


def _made(terms: Iterable[tuple[Monomial, int]]) -> Length | int:
    """The length that is the sum of terms; an int where nothing is open in it."""
    total: dict[Monomial, int] = {}
    for monomial, k in terms:
        total[monomial] = total.get(monomial, 0) + k
    left = [(monomial, k) for monomial, k in total.items() if k]
    if not left:
        return 0
    if len(left) == 1 and not left[0][0]:
        return left[0][1]
    left.sort(key=lambda term: (term[1] < 0, not term[0], -len(term[0]), term[0]))
    ordered = tuple(left)
    if len(left) == 1 and left[0][1] == 1 and len(left[0][0]) == 1 and not left[0][0][0].operation:
        text = left[0][0][0].text
        return _named(_unquoted(text) if text[0] == "'" else text)
    text = _written(ordered)
    _check_size(len(ordered), len(text))
    return _interned.add(text, lambda: _new(ordered, text))


def _new(terms: Terms, text: str) -> Length:
    length = object.__new__(Length)
    length._terms, length._text, length._hash = terms, text, hash(text)
    return length


def _written(terms: Terms) -> str:
    """`2*N*M + N//2 - 1`."""
    text = ""
    for monomial, k in terms:
        alone = len(monomial) == 1 and (k == 1 or (k == -1 and text != ""))
        factors = [_factor_text(atom, alone) for atom in monomial]
        if abs(k) != 1 or not monomial:
            factors.insert(0, str(abs(k)))
        sign = ("-" if k < 0 else "") if not text else (" - " if k < 0 else " + ")
        text += sign + "*".join(factors)
    return text


def _factor_text(atom: Atom, alone: bool) -> str:
    return atom.text if alone or atom.operation not in ("//", "%") else f"({atom.text})"


def _names_in(monomial: Monomial) -> Iterator[str]:
    for atom in monomial:
        if not atom.operation:
            yield _unquoted(atom.text) if atom.text[0] == "'" else atom.text
        for operand in atom.operands:
            if isinstance(operand, Length):
                yield from operand.names


def _atom_at(atom: Atom, sizes: Mapping[str, Any]) -> Any:
    if not atom.operation:
        name = _unquoted(atom.text) if atom.text[0] == "'" else atom.text
        return sizes.get(name, _made([((atom,), 1)]))
    operands: list[Any] = [o.at(sizes) if isinstance(o, Length) else o for o in atom.operands]
    if atom.operation in _EXTREMES:
        return _extreme(atom.operation, operands)
    if operands[1] == 0:
        raise ShapeError(f"the length {atom.text} divides by 0")
    return operands[0] // operands[1] if atom.operation == "//" else operands[0] % operands[1]


def _opaque(operation: str, *operands: Length | int) -> Length | int:
    shown = [str(o) for o in operands]
    if operation in _EXTREMES:
        text = f"{operation}({', '.join(shown)})"
    else:
        text = operation.join(map(_operand_text, operands))
    return _made([((Atom(text, operation, operands),), 1)])


def _operand_text(operand: Length | int) -> str:
    if isinstance(operand, Length) and (operand.name is None or not _is_plain(operand)):
        if len(operand._terms) == 1 and operand._terms[0][1] == 1:
            (atom, *more) = operand._terms[0][0]
            if not more and atom.operation not in ("//", "%"):
                return atom.text
        return f"({operand})"
    return str(operand)


def _is_plain(length: Length) -> bool:
    return _PLAIN_NAME.fullmatch(length._text) is not None


def _floor_divided(a: Any, b: Any) -> Any:
    """a // b: what b divides leaves the division, quotients of quotients become one."""
    if isinstance(b, int):
        if b == 0:
            raise ZeroDivisionError(f"the length {a} divided by 0")
        if b < 0:
            a, b = -a, -b
        if isinstance(a, int) or b == 1:
            return a // b if isinstance(a, int) else a
        divided = [(m, k) for m, k in a._terms if m and k % b]
        if divided and _leading(divided)[1] < 0:  # (-N)//2 is -((N + 1)//2), as ceil_div writes it
            return -_floor_divided(-a + (b - 1), b)
        whole = [(m, k // b) for m, k in a._terms]
        rest: Any = _made([(m, k % b) for m, k in a._terms])
        if isinstance(rest, int):
            return _made(whole)
        common = gcd(b, *[k for m, k in rest._terms if m])
        if common > 1:  # (4*N + 3)//6 is (2*N + 1)//3
            rest = _made([(m, k // common) for m, k in rest._terms])
            return _made(whole) + _floor_divided(rest, b // common)
        inner = _single_quotient(rest)
        if inner is not None:
            return _made(whole) + _floor_divided(inner[0], inner[1] * b)
        return _made(whole) + _opaque("//", rest, b)
    if a == 0:
        return 0
    return _opaque("//", a, b)


def _single_quotient(length: Length) -> tuple[Any, int] | None:
    """(n, d), where a length is n//d for an int d, with what is added taken inside."""
    open_terms = [(m, k) for m, k in length._terms if m]
    if len(open_terms) != 1 or open_terms[0][1] != 1 or len(open_terms[0][0]) != 1:
        return None
    (atom,) = open_terms[0][0]
    if atom.operation != "//" or not isinstance(atom.operands[1], int):
        return None
    added = sum(k for m, k in length._terms if not m)
    d = atom.operands[1]
    return atom.operands[0] + added * d, d


def _remainder(a: Any, b: Any) -> Any:
    if isinstance(b, int):
        if b <= 0:
            raise ZeroDivisionError(f"the length {a} modulo {b}: take a positive number")
        if isinstance(a, int):
            return a % b
        rest: Any = _made([(m, k % b) for m, k in a._terms])
        if isinstance(rest, int) or (at_least(rest, 0) and at_least(b - 1 - rest, 0)):
            return rest
        return _opaque("%", rest, b)
    return 0 if a == 0 else _opaque("%", a, b)


def _extreme(operation: str, given: Iterable[Any], facts: Sequence[Length] = ()) -> Any:
    """max or min, without what another one is never behind."""
    operands: list[Any] = []
    for operand in map(as_length, given):
        same = isinstance(operand, Length) and _only_atom(operand)
        if same and same.operation == operation:
            operands += same.operands
        else:
            operands.append(operand)
    sign = 1 if operation == "max" else -1
    kept: list[Any] = []
    for operand in dict.fromkeys(operands):
        if any(_dominates(sign, other, operand, facts) for other in kept):
            continue
        kept = [other for other in kept if not _dominates(sign, operand, other, facts)]
        kept.append(operand)
    if len(kept) == 1:
        return kept[0]
    kept.sort(key=lambda o: (isinstance(o, int), str(o)))
    return _opaque(operation, *kept)


def _dominates(sign: int, a: Any, b: Any, facts: Sequence[Length]) -> bool:
    """Whether a is never less than b, or never greater where sign is -1."""
    return at_least(a, b, facts) if sign > 0 else at_least(b, a, facts)


def under(d: Any, facts: Sequence[Length]) -> Any:
    """A length without the maxima and minima that are decided where these are at least 0."""
    if not isinstance(d, Length) or not facts:
        return d
    total: Any = 0
    for monomial, k in d._terms:
        factor: Any = k
        for atom in monomial:
            operands = [under(o, facts) for o in atom.operands]
            if atom.operation in _EXTREMES:
                factor = factor * _extreme(atom.operation, operands, facts)
            elif atom.operation:
                a, b = operands
                factor = factor * (a // b if atom.operation == "//" else a % b)
            else:
                factor = factor * _made([((atom,), 1)])
        total = total + factor
    return total


def _only_atom(length: Length) -> Atom | None:
    if len(length._terms) == 1 and length._terms[0][1] == 1 and len(length._terms[0][0]) == 1:
        return length._terms[0][0][0]
    return None


def divided_exactly(a: Any, b: Any) -> Any:
    """a / b, where that is a length whatever the names are; None where it is not known to be."""
    if isinstance(b, int):
        if b == 0 or any(k % b for _, k in _terms_of(a) or ()):
            return None
        return a // b
    if isinstance(a, int):
        return 0 if a == 0 else None
    rest: Any = a
    quotient: Any = 0
    lead, k = _leading(b._terms)
    for _ in range(len(a._terms) * 4):
        if rest == 0:
            return quotient
        if isinstance(rest, int):
            return None
        monomial, n = _leading(rest._terms)
        left = list(monomial)
        for atom in lead:
            if atom not in left:
                return None
            left.remove(atom)
        if n % k:
            return None
        part = _made([(tuple(left), n // k)])
        quotient = quotient + part
        rest = rest - part * b
    return None


def _leading(terms: Iterable[tuple[Monomial, int]]) -> tuple[Monomial, int]:
    """The term of the highest degree, and of these the first by its names."""
    return min(terms, key=lambda term: (-len(term[0]), term[0]))


# --- what holds for all lengths ------------------------------------------------------------------

_Linear = dict[Monomial, Fraction]


def at_least(a: Any, b: Any, facts: Sequence[Length] = ()) -> bool:
    """Whether one length is at least another for all values of the names from 0 on.

    facts: lengths that are at least 0.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a >= b
    excess = _plus(_linear(a), Fraction(-1), _linear(b))
    least = _least_names(facts)
    return any(_holds(_plus(excess, Fraction(-k), _linear(f)), least) for f, k in _uses(facts))


def _uses(facts: Sequence[Length]) -> Iterator[tuple[Any, int]]:
    """Each fact that a proof may take once, and none."""
    yield 0, 0
    for fact in facts:
        yield fact, 1


def never_equal(a: Any, b: Any) -> bool:
    """Whether two lengths differ for all values of the names from 0 on."""
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    if a == b:
        return False
    difference = _plus(_linear(a), Fraction(-1), _linear(b))
    less_one: _Linear = {(): Fraction(-1)}
    return any(_holds(_plus(less_one, Fraction(sign), difference), {}) for sign in (1, -1))


def _linear(length: Any) -> _Linear:
    return {m: Fraction(k) for m, k in _terms_of(length) or ()}


def _least_names(facts: Sequence[Length]) -> dict[Atom, int]:
    """The least value of a name, from facts about it alone."""
    least: dict[Atom, int] = {}
    for fact in facts:
        terms = dict(fact._terms)
        constant = terms.pop((), 0)
        if len(terms) == 1:
            ((monomial, k),) = terms.items()
            if len(monomial) == 1 and k > 0:
                (atom,) = monomial
                least[atom] = max(least.get(atom, 0), -(constant // k))
    return least


def _shifted(linear: _Linear, least: Mapping[Atom, int]) -> _Linear:
    """The polynomial in what each name exceeds its least value by."""
    if not least:
        return linear
    total: _Linear = {}
    for monomial, k in linear.items():
        parts: list[list[Monomial]] = [
            [(atom,), *([()] * (least.get(atom, 0) > 0))] for atom in monomial
        ]
        for chosen in product(*parts):
            factor = k
            for atom, part in zip(monomial, chosen, strict=True):
                factor *= 1 if part else least[atom]
            key = tuple(sorted(a for part in chosen for a in part))
            total[key] = total.get(key, Fraction(0)) + factor
    return total


def _holds(linear: _Linear, least: Mapping[Atom, int], depth: int = 0) -> bool:
    """Whether it is never below 0: operations that stand alone in a term give way to bounds."""
    operations = ((m, k) for m, k in linear.items() if len(m) == 1 and m[0].operation and k)
    monomial, k = next(operations, ((), Fraction(0)))
    if not monomial or depth > DEPTH:
        return _no_term_is_negative(_shifted(linear, least))
    (atom,) = monomial
    rest = {m: c for m, c in linear.items() if m != monomial}
    if atom.operation in _EXTREMES:
        every = (atom.operation == "max") == (k < 0)
        cases = (_holds(_plus(rest, k, _linear(o)), least, depth + 1) for o in atom.operands)
        return all(cases) if every else any(cases)
    bounds = _bounds(atom, above=k < 0)
    return any(_holds(_plus(rest, k, bound), least, depth + 1) for bound in bounds)


def _no_term_is_negative(linear: _Linear) -> bool:
    return all(
        k == 0 or (k > 0 and all(not a.operation or _is_natural(a) for a in monomial))
        for monomial, k in linear.items()
    )


def _plus(linear: _Linear, k: Fraction, other: _Linear) -> _Linear:
    total = dict(linear)
    for monomial, c in other.items():
        total[monomial] = total.get(monomial, Fraction(0)) + k * c
    return total


def _is_natural(atom: Atom) -> bool:
    """Whether an operation is never below 0."""
    if atom.operation == "%":
        return True
    known = [at_least(o, 0) for o in atom.operands]
    return any(known) if atom.operation == "max" else all(known)


def _bounds(atom: Atom, above: bool) -> Iterator[_Linear]:
    """What a quotient or remainder is never above, or never below."""
    first, second = atom.operands
    if not above and _is_natural(atom):
        yield {}
    if not isinstance(second, int):
        return
    if atom.operation == "%":
        if above:
            yield {(): Fraction(second - 1)}
        return
    quotient = {m: k / second for m, k in _linear(first).items()}
    yield quotient if above else _plus(quotient, Fraction(1 - second, second), {(): Fraction(1)})


# --- values of names -----------------------------------------------------------------------------

Axis = tuple[Any, Any, str]
"""A length, or an int or None, with what it is, and where: "in x"."""


def solved(axes: Iterable[Axis], exact: bool = False) -> dict[str, Any]:
    """The values of the names in lengths of which it is known what they are.

    What they are is an int, another length, None where that is not known, or a length of JAX or
    PyTorch. A name is solved for where a length is linear in it alone once the others are known.

    exact: two lengths that may be equal, but are not known to be, are an error.

    Raises: ShapeError where no lengths from 0 on fit, with both places.
    """
    sizes: dict[str, Any] = {}
    told: dict[str, Axis] = {}
    left = [axis for axis in axes if isinstance(axis[0], Length) and axis[1] is not None]
    while left:
        later: list[Axis] = []
        for axis in left:
            d, n, where = axis
            value = d.at(sizes) if sizes else d
            if sizes.keys() >= d.names:
                both = isinstance(value, int) and isinstance(n, int)
                if value != n and (both or exact):
                    raise ShapeError(_contradiction(axis, value, told))
                continue
            solution = _solution(value, n)
            if solution is None:
                later.append(axis)
                continue
            name, size = solution
            if size is None:
                raise ShapeError(f"length '{d}' is {n} {where}: no length {name} makes it so")
            sizes[name] = size
            told[name] = axis
        if len(later) == len(left):
            break
        left = later
    return sizes


def told_names(dims: Iterable[Any]) -> set[str]:
    """The names that `solved` finds the values of, once those of these lengths are known."""
    lengths = [d for d in dims if isinstance(d, Length)]
    known: set[str] = set()
    while new := {name for d in lengths if (name := _last_unknown(d, known))}:
        known |= new
    return known


def _last_unknown(d: Length, known: set[str]) -> str | None:
    """The one name in a length that is not known, where it is linear in that."""
    unknown = d.names - known
    if len(unknown) != 1:
        return None
    (name,) = unknown
    for monomial, _ in d._terms:
        inside = [atom for atom in monomial if name in _names_in((atom,))]
        if len(inside) > 1 or any(atom.operation for atom in inside):
            return None
    return name


def _contradiction(axis: Axis, value: int, told: Mapping[str, Axis]) -> str:
    d, n, where = axis
    first = told[min(d.names & told.keys())]
    if d == first[0]:
        return f"length '{d}' is {first[1]} {first[2]}, and {n} {where}"
    known = " and ".join(
        f"'{told[name][0]}' is {told[name][1]} {told[name][2]}" for name in sorted(d.names)
    )
    return f"length '{d}' is {n} {where}, and {value} where {known}"


def _solution(d: Length, n: Any) -> tuple[str, Any] | None:
    """The name in a length of one name to the first power, and its value, None where no length is
    one; None: it is not that simple."""
    terms = dict(d._terms)
    constant = terms.pop((), 0)
    if len(terms) != 1:
        return None
    ((monomial, k),) = terms.items()
    if len(monomial) != 1 or monomial[0].operation:
        return None
    (name,) = _names_in(monomial)
    if isinstance(n, int):
        value, rest = divmod(n - constant, k)
        return name, None if rest or value < 0 else value
    if isinstance(n, Length):
        quotient = divided_exactly(n - constant, k)
        return None if quotient is None else (name, quotient)
    return name, n if (constant, k) == (0, 1) else (n - constant) // k
