"""Differences of what is nearly equal."""

from __future__ import annotations

import math
from typing import Any

from ...ops.elementwise.exponential import EXP, SQRT, TANH
from ...ops.elementwise.logic import where
from ...ops.elementwise.magnitudes import ABS
from ...ops.reduce.reductions import ReduceSum
from .. import forms
from ..forms import StableForm
from ..identity import Rewriter
from ..terms import CALL, PRODUCT, SUM, Term, Terms, near
from .lengths import half_of
from .shared import ATAN, ERF, SIGMOID, SIN, called, simpler, two


def difference_of_roots(rw: Rewriter, term: Term) -> Term | None:
    """sqrt(a) - sqrt(b) -> (a - b) / (sqrt(a) + sqrt(b)), where a - b is shorter"""
    terms = rw.terms
    parts = two(term)
    if parts is None:
        return None
    roots = [(t, inside, c) for t, c in parts if (inside := _under_root(terms, t)) is not None]
    if len(roots) != len(parts) or all(called(t, ABS) for t, _ in parts):
        return None
    if len(roots) == 2:
        (s, a, p), (t, b, q) = roots
        if p * q > 0:
            return None
        gap, other = simpler(terms, a, b, p * p, q * q), terms.scaled(t, -q)
    else:
        ((s, a, p),) = roots
        if p * term.key > 0:
            return None
        other = terms.number(-term.key)
        gap = simpler(terms, a, terms.number(term.key**2), p * p, 1.0)
    return None if gap is None else _by_gap(terms, BY_ROOTS, gap, terms.scaled(s, p), other)


BY_ROOTS = StableForm.of(forms.gap_by_roots)
BY_RECIPROCALS = StableForm.of(forms.gap_by_reciprocals)


def _by_gap(terms: Terms, form: StableForm, gap: Term, a: Term, b: Term) -> Term:
    """A difference by the gap of what it is taken of; one that is infinite has a choice in it."""
    if gap.is_number:
        return _parts_of(terms, terms.call(form, gap, a, b), 1)
    return terms.call(form, gap, a, b)


def _parts_of(terms: Terms, call: Term, e: int) -> Term:
    gap, a, b = call.parts
    below = [terms.add([(a, 1.0), (b, 1.0)])] if call.key is BY_ROOTS else [a, b]
    return terms.multiply([(gap, e), *[(t, -e) for t in below]], loose=True)


def gap_over_its_parts(rw: Rewriter, term: Term) -> Term | None:
    """(sqrt(1 + x) - 1) / x -> 1 / (sqrt(1 + x) + 1): what a gap has in common with the others"""
    terms = rw.terms
    for base, e in term.parts:
        if not (called(base, BY_ROOTS) or called(base, BY_RECIPROCALS)):
            continue
        rest = [(b, n) for b, n in term.parts if b is not base]
        plain = _parts_of(terms, base, e)
        made = terms.multiply([(plain, 1), *rest], loose=True)
        if terms.size(made) < terms.size(plain) + sum(abs(n) for _, n in rest):
            return made
    return None


def difference_of_reciprocals(rw: Rewriter, term: Term) -> Term | None:
    """1 / a - 1 / b -> (b - a) / a / b, where b - a is shorter"""
    terms = rw.terms
    parts = two(term)
    if parts is None:
        return None
    pairs = [(_under_one(terms, t), c) for t, c in parts]
    pairs += [(terms.number(1.0), term.key)][: bool(term.key)]
    (a, p), (b, q) = pairs
    if a is None or b is None or p * q > 0:
        return None
    gap = simpler(terms, b, a, p, -q)
    if gap is None:
        gap = difference_of_roots(rw, terms.add([(b, p), (a, q)]))
    if gap is None:
        return None
    over = [terms.scaled(t, 1 / c) for t, c in ((gap, -p * q), (a, p), (b, -q))]
    return _by_gap(terms, BY_RECIPROCALS, *over)


def _under_one(terms: Terms, t: Term) -> Term | None:
    """What 1 is divided by."""
    factors = terms.factors(t)
    return factors[0][0] if len(factors) == 1 and factors[0][1] == -1 else None


def difference_of_ratios(rw: Rewriter, term: Term) -> Term | None:
    """a / b - c / d -> (a d - b c) / b / d, where that is shorter once it is multiplied out"""
    terms = rw.terms
    parts = [*term.parts, *[(terms.number(1.0), term.key)][: bool(term.key)]]
    below: dict[Term, int] = {}
    for t, _ in parts:
        for base, e in () if t.is_number else terms.factors(t):
            if e < 0:
                below[base] = max(below.get(base, 0), -e)
    if not below or not 2 <= len(parts) <= 4 or any(b.kind == CALL for b in below):
        return None
    products: list[tuple[Term, float]] = []
    for t, c in parts:
        own = {} if t.is_number else dict(terms.factors(t))
        factors = [(b, n + own.pop(b, 0)) for b, n in below.items()]
        product = expanded(terms, [*own.items(), *[(b, n) for b, n in factors if n]])
        if product is None:
            return None
        products += [(s, c * k) for s, k in product]
    gap = terms.add(products, loose=True)
    left, const = terms.addends(gap)
    if not 0 < len(left) + bool(const) <= len(products) - 2:
        return None
    return terms.multiply([(gap, 1), *[(b, -n) for b, n in below.items()]], loose=True)


def expanded(terms: Terms, factors: list[tuple[Term, int]]) -> list[tuple[Term, float]] | None:
    """A product as a sum of products of what is not a sum; None where it is long."""
    made = [(terms.number(1.0), 1.0)]
    for base, e in factors:
        inner, n = (base, e) if base.kind == SUM else (terms.multiply([(base, e)], loose=True), 1)
        parts, const = terms.addends(inner)
        addends = [*parts, *[(terms.number(1.0), const)][: bool(const)]]
        for _ in range(n):
            made = [
                (terms.multiply([(s, 1), (t, 1)], loose=True), c * k)
                for s, c in made
                for t, k in addends
            ]
            if len(made) > 16:
                return None
    return made


def power_less_one(rw: Rewriter, term: Term) -> Term | None:
    """(1 + x)**n - 1 -> x (1 + (1 + x) + ... + (1 + x)**(n-1))"""
    terms = rw.terms
    parts = two(term)
    if parts is None or len(parts) != 1 or parts[0][0].kind != PRODUCT:
        return None
    ((power, c),) = parts
    if len(power.parts) != 1 or not near(c, -term.key):
        return None
    ((base, n),) = power.parts
    if base.kind != SUM or abs(base.key) != 1 or not 1 < n <= 16:
        return None
    one = terms.scaled(base, base.key)  # 1 + x, or 1 - x of an even power of x - 1
    if base.key < 0 and n % 2:
        return None
    x = terms.add([(one, 1.0)], -1.0, loose=True)
    return terms.scaled(terms.call(StableForm.of(forms.power_less_one, n), x), c)


def difference_of_squares(rw: Rewriter, term: Term) -> Term | None:
    """x**2 - y**2 -> (x - y) (x + y)"""
    terms = rw.terms
    parts = two(term)
    if parts is None:
        return None
    squares = [(None if called(t, ReduceSum) else half_of(terms, t), c) for t, c in parts]
    if term.key:
        root = math.sqrt(abs(term.key / parts[0][1]))
        exact = root * 1024 == round(root * 1024)
        squares.append((terms.number(root) if exact else None, -parts[0][1]))
    (x, c), (y, d) = squares
    if x is None or y is None or not near(c, -d) or (term.key * c) > 0:
        return None
    return terms.scaled(terms.call(StableForm.of(forms.difference_of_squares), x, y), c)


def _difference(key: Any, form: StableForm) -> Any:
    def rule(rw: Rewriter, term: Term) -> Term | None:
        parts = two(term)
        if parts is None or len(parts) != 2:
            return None
        (s, p), (t, q) = parts
        if not (called(s, key) and called(t, key) and near(p, -q)):
            return None
        if p < 0:
            s, t, p = t, s, q
        return rw.terms.scaled(rw.terms.call(form, *s.parts, *t.parts), p)

    return rule


difference_of_exponentials = _difference(EXP, StableForm.of(forms.exp_difference))
difference_of_sines = _difference(SIN, StableForm.of(forms.sin_difference))
difference_of_tanh = _difference(TANH, StableForm.of(forms.tanh_difference))
difference_of_arctan = _difference(ATAN, StableForm.of(forms.arctan_difference))
difference_of_sigmoids = _difference(SIGMOID, StableForm.of(forms.sigmoid_difference))
difference_of_erf = _difference(ERF, StableForm.of(forms.erf_difference))


def root_that_cancels(rw: Rewriter, term: Term) -> Term | None:
    """sqrt(b**2 + r) - b, and over what it is divided by -> r / (sqrt(b**2 + r) + b) for b > 0"""
    terms = rw.terms
    factors = terms.factors(term)
    for base, e in factors:
        if e == 1 and len(factors) > 1 and called(base, StableForm.of(cancelled_root)):
            rest = [(s, k) for s, k in factors if s is not base]
            b, root, *both = base.parts
            parts = [terms.multiply([(t, 1), *rest], loose=True) for t in both]
            return terms.call(base.key, b, root, *parts)
        found = _cancelling(terms, base) if e == 1 else None
        if found is None:
            continue
        b, r, root, scale = found
        rest = [(s, k) for s, k in terms.factors(term) if s is not base]
        away = terms.multiply([(r, 1), *rest], loose=True)
        beside = terms.multiply(rest, loose=True)
        form = StableForm.of(cancelled_root)
        return terms.scaled(terms.call(form, b, root, away, beside), scale)
    return None


def cancelled_root(b: Any, root: Any, above: Any, beside: Any) -> Any:
    """above / (root - b) for b < 0, else beside * (root + b)."""
    away = b < 0
    far = where(away, root - where(away, b, 0.0), 1.0)
    return where(away, above / far, beside * (root + where(away, 0.0, b)))


def _cancelling(terms: Terms, base: Term) -> tuple[Term, Term, Term, float] | None:
    """(b, r, root, s) of s (b + root) with root = sqrt(b**2 + r)."""
    if base.kind != SUM or base.key or len(base.parts) != 2:
        return None
    for (root, p), (other, q) in (base.parts, base.parts[::-1]):
        b = terms.scaled(other, q / p)
        squared = terms.multiply([(b, 2)], loose=True)
        inside = _under_root(terms, root)
        if inside is None:
            continue
        r = terms.add([(inside, 1.0), (squared, -1.0)], loose=True)
        before, after = terms.addends(inside), terms.addends(r)
        if len(before[0]) + bool(before[1]) > len(after[0]) + bool(after[1]) > 0:
            return b, r, root, p
    return None


def _under_root(terms: Terms, root: Term) -> Term | None:
    """What a term is the square root of."""
    if called(root, SQRT):
        inner: Term = root.parts[0]
        return inner
    if called(root, ABS):
        return terms.multiply([(root.parts[0], 2)], loose=True)
    if root.kind != CALL or not isinstance(root.key, StableForm):
        return None
    if root.key.fn is forms.lengths:
        return terms.add(
            [(terms.multiply([(t, 2)], loose=True), 1.0) for t in root.parts], loose=True
        )
    if root.key.fn is forms.root_of_difference:
        squares = [terms.multiply([(t, 2)], loose=True) for t in root.parts]
        return terms.add(zip(squares, (1.0, -1.0), strict=True), loose=True)
    if root.key.fn is forms.scaled_root:
        pairs = zip(root.parts[::2], root.parts[1::2], strict=True)
        products = [terms.multiply([(x, 1), (y, 1)], loose=True) for x, y in pairs]
        return terms.add(zip(products, root.key.options[0], strict=True), loose=True)
    return None
