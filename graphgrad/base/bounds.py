"""What holds of lengths for all values of their names from 0 on: proofs by linear bounds.

A length is a polynomial in named lengths (`terms`), in which operations that do not simplify count
as names. An operation that stands alone in a term gives way to what it is never above or below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from operator import index
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Atom", "Monomial", "Terms", "at_least", "never_equal", "terms_of"]

DEPTH = 12  # operations that a proof looks into
EXTREMES = ("max", "min")


class Atom(NamedTuple):
    """A factor of a term: a name, or an operation on lengths that does not simplify.

    text: how it is written; operation: "" for a name, else "//", "%", "max" or "min".
    """

    text: str
    operation: str = ""
    operands: tuple[Any, ...] = ()


Monomial = tuple[Atom, ...]
Terms = tuple[tuple[Monomial, int], ...]
_Linear = dict[Monomial, Fraction]


def terms_of(value: Any) -> Terms | None:
    """The terms of a length or an int; None for what is neither."""
    terms: Terms | None = getattr(value, "terms", None)
    if terms is not None:
        return terms
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return None
    number = index(value)
    return (((), number),) if number else ()


def at_least(a: Any, b: Any, facts: Sequence[Any] = ()) -> bool:
    """Whether one length is at least another for all values of the names from 0 on.

    facts: lengths that are at least 0.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a >= b
    excess = _plus(_linear(a), Fraction(-1), _linear(b))
    least = _least_names(facts)
    return any(_holds(_plus(excess, Fraction(-k), _linear(f)), least) for f, k in _uses(facts))


def _uses(facts: Sequence[Any]) -> Iterator[tuple[Any, int]]:
    """Each fact that a proof may take once, and none."""
    yield 0, 0
    for fact in facts:
        yield fact, 1


def never_equal(a: Any, b: Any) -> bool:
    """Whether two lengths differ for all values of the names from 0 on.

    Of lengths of JAX and PyTorch that is not known.
    """
    if isinstance(a, int) and isinstance(b, int):
        return a != b
    if terms_of(a) is None or terms_of(b) is None or a == b:
        return False
    difference = _plus(_linear(a), Fraction(-1), _linear(b))
    less_one: _Linear = {(): Fraction(-1)}
    return any(_holds(_plus(less_one, Fraction(sign), difference), {}) for sign in (1, -1))


def _linear(length: Any) -> _Linear:
    return {m: Fraction(k) for m, k in terms_of(length) or ()}


def _least_names(facts: Sequence[Any]) -> dict[Atom, int]:
    """The least value of a name, from facts about it alone."""
    least: dict[Atom, int] = {}
    for fact in facts:
        terms = dict(fact.terms)
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
    if atom.operation in EXTREMES:
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
        return at_least(atom.operands[1], 0)
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
