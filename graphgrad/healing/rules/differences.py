"""Differences of what is nearly equal."""

from __future__ import annotations

from typing import Any

from ...ops.elementwise.exponential import EXP, SQRT, TANH
from ...ops.elementwise.logic import where
from ...ops.elementwise.magnitudes import ABS
from .. import forms
from ..forms import StableForm
from ..identity import Rewriter
from ..terms import CALL, PRODUCT, SUM, Term, Terms, near
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
        gap = simpler(terms, a, b, p * p, q * q)
        total = terms.add([(s, p), (t, -q)])
    else:
        ((s, a, p),) = roots
        if p * term.key > 0:
            return None
        gap = simpler(terms, a, terms.number(term.key**2), p * p, 1.0)
        total = terms.add([(s, p)], -term.key)
    return None if gap is None else terms.multiply([(gap, 1), (total, -1)], loose=True)


def difference_of_reciprocals(rw: Rewriter, term: Term) -> Term | None:
    """1 / a - 1 / b -> (b - a) / a / b, where b - a is shorter"""
    terms = rw.terms
    parts = two(term)
    if parts is None or len(parts) != 2:
        return None
    (s, p), (t, q) = parts
    if p * q > 0 or not all(
        f == ((b, -1),) for f, b in ((terms.factors(x), terms.factors(x)[0][0]) for x in (s, t))
    ):
        return None
    a, b = terms.factors(s)[0][0], terms.factors(t)[0][0]
    gap = simpler(terms, b, a, p, -q)
    if gap is None:
        gap = difference_of_roots(rw, terms.add([(b, p), (a, q)]))
    return None if gap is None else terms.multiply([(gap, 1), (a, -1), (b, -1)], loose=True)


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
