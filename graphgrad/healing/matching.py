"""Where a term is an instance of another, whose atoms stand for any terms.

Up to order, to a factor of the whole and, in a product, to a common power and to factors beside.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .terms import ATOM, CALL, PRODUCT, SUM, Term, Terms, near

Bound = dict[Term, Term]


class Match(NamedTuple):
    """A term is scale * pattern**power * rest, with terms for the atoms of the pattern."""

    bound: Bound
    scale: float = 1.0
    power: int = 1
    rest: tuple[tuple[Term, int], ...] = ()


class Matcher:
    """Matches terms of one arena."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def whole(self, pattern: Term, term: Term) -> Iterator[Match]:
        """The matches of a pattern with a term that has no coefficient."""
        if pattern.kind == PRODUCT:
            yield from self._product(pattern, term, {})
        elif pattern.kind == SUM:
            for scale, bound in self._scaled(pattern, term, {}):
                yield Match(bound, scale)
            for i, (base, e) in enumerate(term.parts if term.kind == PRODUCT else ()):
                for scale, bound in self._scaled(pattern, base, {}):
                    rest = term.parts[:i] + term.parts[i + 1 :]
                    yield Match(bound, scale**e, e, rest)
        else:
            for bound in self._exact(pattern, term, {}):
                yield Match(bound)

    def _exact(self, p: Term, t: Term, b: Bound) -> Iterator[Bound]:
        if p.kind == ATOM:
            if p in b:
                if b[p] is t:
                    yield b
            else:
                yield {**b, p: t}
        elif p.kind == CALL:
            if t.kind == CALL and t.key is p.key and len(t.parts) == len(p.parts):
                yield from self._all(p.parts, t.parts, b)
        elif p.is_number:
            if t.is_number and near(p.key, t.key):
                yield b
        elif p.kind == SUM:
            inner, c = self.terms.monomial(p)
            if c != 1 and inner.kind == ATOM and inner not in b:
                yield {**b, inner: self.terms.scaled(t, 1 / c)}
                return
            for scale, bound in self._scaled(p, t, b):
                if near(scale, 1.0):
                    yield bound
        else:
            for m in self._product(p, t, b):
                if not m.rest and m.power == 1 and near(m.scale, 1.0):
                    yield m.bound

    def _all(self, ps: tuple[Term, ...], ts: tuple[Term, ...], b: Bound) -> Iterator[Bound]:
        if not ps:
            yield b
            return
        for bound in self._exact(ps[0], ts[0], b):
            yield from self._all(ps[1:], ts[1:], bound)

    def _scaled(self, p: Term, t: Term, b: Bound) -> Iterator[tuple[float, Bound]]:
        """How a term is a number times a pattern."""
        if p.kind == ATOM:
            if p not in b:
                yield 1.0, {**b, p: t}
                return
            (inner, k), (other, c) = self.terms.monomial(b[p]), self.terms.monomial(t)
            if inner is other:
                yield c / k, b
        elif p.kind == SUM and p.parts:
            yield from self._sums(p, t, b)
        elif p.kind == PRODUCT:
            for m in self._product(p, t, b):
                if not m.rest and m.power == 1:
                    yield m.scale, m.bound
        else:
            inner, c = self.terms.monomial(t)
            for bound in self._exact(p, inner, b):
                yield c, bound

    # --- sums --------------------------------------------------------------------------------

    def _sums(self, p: Term, t: Term, b: Bound) -> Iterator[tuple[float, Bound]]:
        parts, const = self.terms.addends(t)
        known = sorted(p.parts, key=lambda item: item[0].kind == ATOM)
        head, c = known[0]
        if head.kind == ATOM:
            scales = [const / p.key] if p.key and const else [1.0]
            for scale in scales:
                yield from self._rest_of_sum(known, dict(parts), const, p.key, scale, b)
            return
        for term, k in parts:
            for scale, bound in self._scaled(head, term, b):
                left = {s: n for s, n in parts if s is not term}
                yield from self._rest_of_sum(known[1:], left, const, p.key, scale * k / c, bound)

    def _rest_of_sum(
        self,
        known: list[tuple[Term, float]],
        left: dict[Term, float],
        const: float,
        pattern_const: float,
        scale: float,
        b: Bound,
    ) -> Iterator[tuple[float, Bound]]:
        if not known:
            if not left and (near(const, pattern_const * scale)):
                yield scale, b
            return
        (head, c), rest = known[0], known[1:]
        if head.kind == ATOM and head not in b:
            if rest and any(t.kind != ATOM or t not in b for t, _ in rest):
                for term, k in left.items():
                    others = {s: n for s, n in left.items() if s is not term}
                    bound = {**b, head: self.terms.scaled(term, k / (c * scale))}
                    yield from self._rest_of_sum(rest, others, const, pattern_const, scale, bound)
                return
            left, const = dict(left), const
            for t, k in rest:
                taken = self.without(left, const, b[t], k * scale)
                if taken is None:
                    return
                left, const = taken
            if left:
                over = const - pattern_const * scale
                total = self.terms.add(left.items(), 0.0 if abs(over) < 1e-15 else over, True)
                if self.terms.is_written(total):
                    yield scale, {**b, head: self.terms.scaled(total, 1 / (c * scale))}
            return
        if head.kind == ATOM:
            taken = self.without(left, const, b[head], c * scale)
            if taken is not None:
                yield from self._rest_of_sum(rest, *taken, pattern_const, scale, b)
            return
        for term, k in left.items():
            for factor, bound in self._scaled(head, term, b):
                if near(factor * k, c * scale):
                    others = {s: n for s, n in left.items() if s is not term}
                    yield from self._rest_of_sum(rest, others, const, pattern_const, scale, bound)

    def without(
        self, left: dict[Term, float], const: float, term: Term, c: float
    ) -> tuple[dict[Term, float], float] | None:
        """A sum less a number times a term; None where a part of that is not in it."""
        parts, number = self.terms.addends(term)
        after = dict(left)
        for t, k in parts:
            if t not in after or not near(after[t], c * k):
                return None
            del after[t]
        rest = const - c * number
        return after, 0.0 if abs(rest) <= 1e-15 * abs(const) else rest

    # --- products ----------------------------------------------------------------------------

    def _product(self, p: Term, t: Term, b: Bound) -> Iterator[Match]:
        inner, c = self.terms.monomial(t)
        if inner.kind == SUM:
            return
        known = sorted(p.parts, key=lambda item: item[0].kind == ATOM)
        have = dict(self.terms.factors(inner))
        (head, e), rest = known[0], known[1:]
        if head.kind == ATOM and head in b:
            for power in (1, 2, -1, -2):
                yield from self._factors(known, have, power, c, b)
            return
        for base, f in have.items():
            power, odd = divmod(f, e)
            if not odd and (power > 0 or len(known) > 1):
                others = {s: n for s, n in have.items() if s is not base}
                for scale, bound in self._scaled(head, base, b):
                    yield from self._factors(rest, others, power, c * scale**f, bound)

    def _factors(
        self,
        known: list[tuple[Term, int]],
        have: dict[Term, int],
        power: int,
        scale: float,
        b: Bound,
    ) -> Iterator[Match]:
        if not known:
            yield Match(b, scale, power, tuple(have.items()))
            return
        (head, e), rest = known[0], known[1:]
        if head.kind == ATOM and head in b:
            inner, k = self.terms.monomial(b[head])
            after = dict(have)
            if not (inner.kind == SUM or inner.is_number):
                for base, n in self.terms.factors(inner):
                    if after.pop(base, None) != n * e * power:
                        return
                yield from self._factors(rest, after, power, scale / k ** (e * power), b)
                return
        for base, f in have.items():
            if f == e * power:
                others = {s: n for s, n in have.items() if s is not base}
                for factor, bound in self._scaled(head, base, b):
                    yield from self._factors(rest, others, power, scale * factor**f, bound)
