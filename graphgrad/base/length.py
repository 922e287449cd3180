"""Lengths of axes that are known when a program runs, and integer arithmetic on them.

A length is a polynomial in named lengths with integer coefficients, in which floor divisions,
remainders, maxima and minima that do not simplify count as names. Equal polynomials are equal.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import product
from math import gcd
from typing import Any, ClassVar

from .bounds import EXTREMES, Atom, Monomial, Terms, at_least, terms_of
from .errors import ShapeError
from .expression import LARGEST_POWER, NoExpression, is_plain, quoted, read, unquoted
from .interned import Interned

__all__ = ["Inequality", "Length", "LengthTooLongError", "as_length", "divided_exactly", "under"]


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
    """A symbolic length of an axis, known only at run time: a name, or an expression of names.

    Shapes consist of ints and lengths. `+`, `-`, `*`, `//`, `%`, `gg.Length.max`, `gg.Length.min`
    and `gg.Length.ceil_div` of ints and lengths return a length, or an int if the result is known.
    In arithmetic with tensors and floats, a length acts as a weakly typed integer tensor. Two
    lengths are equal if they are the same polynomial, and a length equals the str that names it.
    `<`, `<=`, `>` and `>=` return a bool if the result is the same for all lengths of at least 0,
    given the facts stated by `gg.assume`; otherwise they return an `Inequality`, which has no truth
    value.

    Parameters: text: a name, or an expression as `str` writes it: "2*N + 1", "N//2", "max(N, 3)".

    Raises: ShapeError for an empty name, a number, or a negative length.

    >>> N = gg.Length("N")
    >>> (N + 1) * 2 == 2 * N + 2, N == "N", N // 2 + 3 * N - 1
    (True, True, 3*N + N//2 - 1)
    >>> N + 1 > N, (4 * N) // 4 == N, (6 * N + 3) % 3
    (True, True, 0)
    """

    __slots__ = ("__weakref__", "_hash", "_text", "terms")
    terms: Terms
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
            raise ShapeError(
                f"a Length stands for an open length, got {text!r}: use the int itself"
            )
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
            return self.terms == other.terms
        return self._text == other if isinstance(other, str) else False

    @property
    def names(self) -> frozenset[str]:
        """The named lengths that it is made of."""
        return frozenset(name for monomial, _ in self.terms for name in names_in(monomial))

    @property
    def name(self) -> str | None:
        """Its name, where it is one; None for arithmetic."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            atom = self.terms[0][0][0]
            return None if atom.operation else self._text
        return None

    # --- arithmetic ------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        terms = terms_of(other)
        if terms is None:
            return self._computed("add", self, other)
        return _made([*self.terms, *terms])

    def __radd__(self, other: Any) -> Any:
        terms = terms_of(other)
        if terms is None:
            return self._computed("add", other, self)
        return _made([*terms, *self.terms])

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Length:
        return self

    def __sub__(self, other: Any) -> Any:
        terms = terms_of(other)
        if terms is None:
            return self._computed("sub", self, other)
        return _made([*self.terms, *[(m, -k) for m, k in terms]])

    def __rsub__(self, other: Any) -> Any:
        terms = terms_of(other)
        if terms is None:
            return self._computed("sub", other, self)
        return _made([*terms, *[(m, -k) for m, k in self.terms]])

    def __mul__(self, other: Any) -> Any:
        terms = terms_of(other)
        if terms is None:
            return self._computed("mul", self, other)
        _check_size(len(self.terms) * len(terms) // 8)
        return _made([_times(a, b) for a, b in product(self.terms, terms)])

    def __rmul__(self, other: Any) -> Any:
        return self * other if terms_of(other) is not None else self._computed("mul", other, self)

    def __floordiv__(self, other: Any) -> Any:
        if terms_of(other) is None:
            return self._computed("floordiv", self, other)
        return _floor_divided(self, _plain(other))

    def __rfloordiv__(self, other: Any) -> Any:
        if terms_of(other) is None:
            return self._computed("floordiv", other, self)
        return _floor_divided(_plain(other), self)

    def __mod__(self, other: Any) -> Any:
        if terms_of(other) is None:
            return self._computed("mod", self, other)
        return _remainder(self, _plain(other))

    def __rmod__(self, other: Any) -> Any:
        if terms_of(other) is None:
            return self._computed("mod", other, self)
        return _remainder(_plain(other), self)

    def __abs__(self) -> Any:
        return Length.max(self, -self)

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
        if terms_of(other) is None:
            return NotImplemented
        return Inequality(self, sign, _plain(other)).decided()

    # --- what it is not --------------------------------------------------------------------

    def __bool__(self) -> bool:
        if at_least(self, 1, Length.assumed()):
            return True
        raise TypeError(
            f"the length {self} is open: whether it is 0 is only known at run time. State "
            f"gg.assume({self} >= 1), or choose with gg.cond(gg.size(x, axis) > 0, ...)."
        )

    def __index__(self) -> int:
        raise TypeError(
            f"the length {self} is open: it is an int at run time, not while the graph is built. "
            "Loop with gg.fori_loop or gg.scan instead of range(), take gg.size(x, axis) for a "
            "tensor of it, or compile with fixed shapes."
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
        for monomial, k in self.terms:
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
            f"whether {self} holds is only known at run time: state gg.assume({self}) if it "
            "always does, or choose with gg.cond on gg.size(x, axis)"
        )


# --- from text -----------------------------------------------------------------------------------

_interned: Interned[Length] = Interned(4096)
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
        length = read(text, _operand, _FUNCTIONS)
    except (NoExpression, LengthTooLongError):
        return _named(text)
    if not isinstance(length, Length):
        raise ShapeError(f"the length {text!r} is a number: give it as an int")
    return length


def _operand(name: str) -> Length | int:
    """What a name in an expression stands for; a quoted one may be an expression itself."""
    return _named(name) if is_plain(name) else as_length(name)


def _named(name: str) -> Length:
    """The length of a name, which may have any characters; others are quoted in arithmetic."""
    atom = Atom(quoted(name))
    return _interned.add(name, lambda: _new((((atom,), 1),), name))


# --- polynomials ---------------------------------------------------------------------------------


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
        return _named(unquoted(text))
    text = _written(ordered)
    _check_size(len(ordered), len(text))
    return _interned.add(text, lambda: _new(ordered, text))


def _new(terms: Terms, text: str) -> Length:
    length = object.__new__(Length)
    length.terms, length._text, length._hash = terms, text, hash(text)
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


def names_in(monomial: Monomial) -> Iterator[str]:
    for atom in monomial:
        if not atom.operation:
            yield unquoted(atom.text)
        for operand in atom.operands:
            if isinstance(operand, Length):
                yield from operand.names


def _atom_at(atom: Atom, sizes: Mapping[str, Any]) -> Any:
    if not atom.operation:
        name = unquoted(atom.text)
        return sizes.get(name, _made([((atom,), 1)]))
    operands: list[Any] = [o.at(sizes) if isinstance(o, Length) else o for o in atom.operands]
    if atom.operation in EXTREMES:
        foreign = next((f for o in operands if (f := _extreme_of_others(atom.operation, o))), None)
        return reduce(foreign, operands) if foreign else _extreme(atom.operation, operands)
    if isinstance(operands[1], int) and operands[1] == 0:
        raise ShapeError(f"the length {atom.text} divides by 0")
    return operands[0] // operands[1] if atom.operation == "//" else operands[0] % operands[1]


_EXTREMES_OF_OTHERS = {"jax": ("jax.core", "{}_dim"), "torch": ("torch", "sym_{}")}
"""Where they are, by the package that a length is of."""


def _extreme_of_others(operation: str, operand: Any) -> Any:
    """max or min, of two, of the package that an open length is of; None for ours and ints."""
    package = type(operand).__module__.partition(".")[0]
    if package not in _EXTREMES_OF_OTHERS:
        return None
    module, name = _EXTREMES_OF_OTHERS[package]
    return getattr(sys.modules[module], name.format(operation))


def _opaque(operation: str, *operands: Length | int) -> Length | int:
    shown = [str(o) for o in operands]
    if operation in EXTREMES:
        text = f"{operation}({', '.join(shown)})"
    else:
        text = operation.join(map(_operand_text, operands))
    return _made([((Atom(text, operation, operands),), 1)])


def _operand_text(operand: Length | int) -> str:
    if isinstance(operand, Length) and (operand.name is None or not is_plain(operand.name)):
        if len(operand.terms) == 1 and operand.terms[0][1] == 1:
            (atom, *more) = operand.terms[0][0]
            if not more and atom.operation not in ("//", "%"):
                return atom.text
        return f"({operand})"
    return str(operand)


def _floor_divided(a: Any, b: Any) -> Any:
    """a // b: what b divides leaves the division, quotients of quotients become one."""
    if isinstance(b, int):
        if b == 0:
            raise ZeroDivisionError(f"the length {a} divided by 0")
        if b < 0:
            a, b = -a, -b
        if isinstance(a, int) or b == 1:
            return a // b if isinstance(a, int) else a
        divided = [(m, k) for m, k in a.terms if m and k % b]
        if divided and _leading(divided)[1] < 0:  # (-N)//2 is -((N + 1)//2), as ceil_div writes it
            return -_floor_divided(-a + (b - 1), b)
        whole = [(m, k // b) for m, k in a.terms]
        rest: Any = _made([(m, k % b) for m, k in a.terms])
        if isinstance(rest, int):
            return _made(whole)
        common = gcd(b, *[k for m, k in rest.terms if m])
        if common > 1:  # (4*N + 3)//6 is (2*N + 1)//3
            rest = _made([(m, k // common) for m, k in rest.terms])
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
    open_terms = [(m, k) for m, k in length.terms if m]
    if len(open_terms) != 1 or open_terms[0][1] != 1 or len(open_terms[0][0]) != 1:
        return None
    (atom,) = open_terms[0][0]
    if atom.operation != "//" or not isinstance(atom.operands[1], int):
        return None
    added = sum(k for m, k in length.terms if not m)
    d = atom.operands[1]
    return atom.operands[0] + added * d, d


def _remainder(a: Any, b: Any) -> Any:
    if isinstance(b, int):
        if b <= 0:
            raise ZeroDivisionError(f"the length {a} modulo {b}: take a positive number")
        if isinstance(a, int):
            return a % b
        rest: Any = _made([(m, k % b) for m, k in a.terms])
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
    for monomial, k in d.terms:
        factor: Any = k
        for atom in monomial:
            operands = [under(o, facts) for o in atom.operands]
            if atom.operation in EXTREMES:
                factor = factor * _extreme(atom.operation, operands, facts)
            elif atom.operation:
                a, b = operands
                factor = factor * (a // b if atom.operation == "//" else a % b)
            else:
                factor = factor * _made([((atom,), 1)])
        total = total + factor
    return total


def _only_atom(length: Length) -> Atom | None:
    if len(length.terms) == 1 and length.terms[0][1] == 1 and len(length.terms[0][0]) == 1:
        return length.terms[0][0][0]
    return None


def divided_exactly(a: Any, b: Any) -> Any:
    """a / b, where that is a length whatever the names are; None where it is not known to be."""
    if isinstance(b, int):
        if b == 0 or any(k % b for _, k in terms_of(a) or ()):
            return None
        return a // b
    if isinstance(a, int):
        return 0 if a == 0 else None
    rest: Any = a
    quotient: Any = 0
    lead, k = _leading(b.terms)
    for _ in range(len(a.terms) * 4):
        if rest == 0:
            return quotient
        if isinstance(rest, int):
            return None
        monomial, n = _leading(rest.terms)
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
