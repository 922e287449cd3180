"""Expressions in one spelling: x * x, x**2 and square(x) are one term, as are a + b and b + a."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from ..ir.node import Tensor
from ..ir.types import Shape, broadcast

ATOM, SUM, PRODUCT, CALL = "atom", "sum", "product", "call"
DIGITS = 1e-15  # coefficients this near to each other are one number
LONGEST = 8  # parts of a sum or product that are seen as one
WHOLES = 5040.0  # a coefficient this near to a multiple of 1 / WHOLES is that


class CancelsError(Exception):
    """Terms that would vanish, constants that would be added up, or too many: it stays as it is."""


NONE: frozenset[Any] = frozenset()


class Term:
    """One expression; equal ones are one object.

    kind   ATOM, SUM, PRODUCT or CALL
    key    of an atom the tensor, of a call what is called, of a sum its constant
    parts  of a sum (term, coefficient), of a product (base, exponent), of a call arguments
    shape  the common shape of what it is made of
    calls  what is called in it, not within other calls
    """

    __slots__ = ("calls", "key", "kind", "number", "parts", "shape")

    def __init__(self, kind: str, key: Any, parts: tuple[Any, ...], shape: Shape, number: int):
        self.kind, self.key, self.parts, self.shape, self.number = kind, key, parts, shape, number
        self.calls: frozenset[Any] = NONE
        if kind == CALL:
            self.calls = frozenset([key])
        elif parts:
            self.calls = frozenset().union(*[t.calls for t, _ in parts])

    @property
    def is_number(self) -> bool:
        """Whether it is a constant."""
        return self.kind == SUM and not self.parts

    def __repr__(self) -> str:
        if self.kind == ATOM:
            return str(self.key.name)
        if self.kind == SUM:
            terms = [f"{c:g}*{t!r}" for t, c in self.parts]
            return "(" + " + ".join([*terms, f"{self.key:g}"]) + ")"
        if self.kind == PRODUCT:
            return " ".join(f"{b!r}^{e}" for b, e in self.parts)
        return f"{self.key!r}({', '.join(map(repr, self.parts))})"


def near(a: float, b: float) -> bool:
    """Whether two coefficients are one number."""
    return abs(a - b) <= DIGITS * max(abs(a), abs(b))


def snapped(c: float) -> float:
    """A coefficient without the last bits of what it was computed by."""
    if not 1e-3 < abs(c) < 1e9:
        return c
    whole = round(c * WHOLES) / WHOLES
    return whole if near(c, whole) else c


class Terms:
    """The terms of one graph.

    exp  what is called where exponents may be added up
    """

    def __init__(self, exp: Hashable) -> None:
        self.exp = exp
        self._known: dict[Any, Term] = {}
        self._written: set[Any] = set()

    def _term(self, kind: str, key: Any, parts: tuple[Any, ...], shape: Shape) -> Term:
        names = parts if kind == CALL else tuple([(t.number, c) for t, c in parts])
        if kind == CALL:
            names = tuple([t.number for t in parts])
        at = (kind, key if kind != ATOM else id(key), names)
        term = self._known.get(at)
        if term is None:
            term = self._known[at] = Term(kind, key, parts, shape, len(self._known))
        return term

    def atom(self, t: Tensor) -> Term:
        """A tensor of which nothing is known."""
        return self._term(ATOM, t, (), t.shape)

    def number(self, c: float) -> Term:
        """A constant."""
        return self._term(SUM, float(c), (), ())

    def call(self, key: Hashable, *args: Term, shape: Shape | None = None) -> Term:
        """What is called with terms; without a shape it is done element by element."""
        known = broadcast([a.shape for a in args]) if shape is None else shape
        return self._term(CALL, key, args, known)

    def monomial(self, term: Term) -> tuple[Term, float]:
        """A term and the number that it is multiplied by."""
        if term.kind == SUM and len(term.parts) == 1 and term.key == 0:
            return term.parts[0][0], term.parts[0][1]
        return term, 1.0

    def factors(self, term: Term) -> tuple[tuple[Term, int], ...]:
        """The powers that a term without a coefficient is the product of."""
        return term.parts if term.kind == PRODUCT else ((term, 1),)

    def size(self, term: Term) -> int:
        """How many factors a term is the product of."""
        inner, _ = self.monomial(term)
        return 0 if inner.is_number else sum(abs(e) for _, e in self.factors(inner))

    def addends(self, term: Term) -> tuple[tuple[tuple[Term, float], ...], float]:
        """The terms, with coefficients, and the constant that a term is the sum of."""
        return (term.parts, term.key) if term.kind == SUM else (((term, 1.0),), 0.0)

    def add(
        self, items: Iterable[tuple[Term, float]], const: float = 0.0, loose: bool = False
    ) -> Term:
        """The sum of terms times numbers; CancelsError where a term would vanish, unless loose."""
        found: dict[Term, float] = {}
        for term, c in items:
            parts, number = self.addends(term)
            if number:
                if const and not loose:
                    raise CancelsError
                const += c * number
            for t, k in parts:
                total = found.get(t, 0.0) + c * k
                if abs(total) <= DIGITS * abs(c * k):
                    if not loose:
                        raise CancelsError
                    del found[t]
                else:
                    found[t] = snapped(total)
        return self._sum(found, const)

    def _sum(self, found: dict[Term, float], const: float) -> Term:
        if len(found) == 1 and not const:
            ((term, c),) = found.items()
            if c == 1:
                return term
        if len(found) > LONGEST:
            raise CancelsError
        parts = tuple(sorted(found.items(), key=_by_number))
        shape = broadcast([t.shape for t in found]) if found else ()
        return self._term(SUM, float(const), parts, shape)

    def note_written(self, term: Term) -> None:
        """What is added up in a term was added up where it was written."""
        if term.kind == SUM and len(term.parts) + bool(term.key) > 1:
            self._written.add(_direction(term))

    def is_written(self, term: Term) -> bool:
        """Whether a term is no sum, or a multiple of one that was written."""
        alone = term.kind != SUM or len(term.parts) + bool(term.key) < 2
        return alone or _direction(term) in self._written

    def scaled(self, term: Term, c: float) -> Term:
        """A number times a term."""
        return self.add([(term, c)], loose=True) if c != 1 else term

    def multiply(
        self, items: Iterable[tuple[Term, int]], c: float = 1.0, loose: bool = False
    ) -> Term:
        """The product of powers. CancelsError where something would vanish, unless loose."""
        found: dict[Term, int] = {}
        powers: list[tuple[Term, int]] = []
        stack = list(items)
        while stack:
            term, e = stack.pop()
            inner, k = self.monomial(term)
            if inner.is_number:
                if inner.key == 0:
                    raise CancelsError
                c *= inner.key**e
                continue
            c *= k**e
            for base, n in self.factors(inner):
                if base.kind == CALL and base.key is self.exp:
                    powers.append((base.parts[0], n * e))
                else:
                    total = found.get(base, 0) + n * e
                    if total:
                        found[base] = total
                    elif loose:
                        del found[base]
                    else:
                        raise CancelsError
        if powers:
            exponent = self.add([(t, float(n)) for t, n in powers], loose=loose)
            if not exponent.is_number:
                found[self.call(self.exp, exponent)] = 1
            elif not loose:
                raise CancelsError
        return self.scaled(self._product(found), snapped(c))

    def _product(self, found: dict[Term, int]) -> Term:
        if not found:
            return self.number(1.0)
        if len(found) > LONGEST:
            raise CancelsError
        parts = tuple(sorted(found.items(), key=_by_number))
        if len(parts) == 1 and parts[0][1] == 1:
            return parts[0][0]
        return self._term(PRODUCT, None, parts, broadcast([t.shape for t in found]))


def _by_number(item: tuple[Term, Any]) -> int:
    return item[0].number


def _direction(term: Term) -> Any:
    """Equal for sums that are multiples of each other."""
    first = term.parts[0][1]
    parts = tuple([(t.number, round(c / first, 12)) for t, c in term.parts])
    return parts, round(term.key / first, 12)
