"""Logarithms of powers, lengths and ratios, and their differences."""

from __future__ import annotations

import math

from ...ops.elementwise.exponential import LOG, SQRT, log1p
from ...ops.elementwise.magnitudes import ABS
from .. import forms
from ..forms import StableForm
from ..identity import Rewriter
from ..terms import CALL, PRODUCT, SUM, Term, Terms, near
from .lengths import root_of_squares, square_root
from .shared import called, simpler, two


def log_of_power(rw: Rewriter, term: Term) -> Term | None:
    """log(x**n) -> n log(x), of |x| for an even n; log(x**2 + y**2) -> 2 log(hypot(x, y))"""
    terms = rw.terms
    x = term.parts[0]
    inner, c = terms.monomial(x)
    rw.by = "log_of_power"
    if inner.kind == PRODUCT and len(inner.parts) == 1:
        ((base, n),) = inner.parts
        if c < 0:
            if n != -1:
                return None
            return terms.scaled(terms.call(LOG, terms.scaled(base, 1 / c)), -1.0)
        inside = base if n % 2 else terms.call(ABS, base)
        return terms.add([(terms.call(LOG, inside), float(n))], math.log(c))
    parts, const = terms.addends(x)
    if const == 1 and len(parts) == 1 and parts[0][1] > 0:
        half = square_root(terms, parts[0][0])
        if half is not None:
            rw.by = "log1p_square"
            half = terms.scaled(half, math.sqrt(parts[0][1]))
            return terms.call(StableForm.of(forms.log1p_square), half)
    if const < 0 or x.is_number or (len(parts) == 1 and x.kind != CALL):
        return None
    length = root_of_squares(rw, terms.call(SQRT, x), False)
    rw.by = "log_of_length"
    if length is None:
        return None
    if called(length, StableForm.of(forms.lengths)) and len(length.parts) == 2:
        return terms.call(StableForm.of(forms.log_squares), *length.parts)
    return terms.scaled(terms.call(LOG, length), 2.0)


def power_times_log(rw: Rewriter, term: Term) -> Term | None:
    """x**n log(x) -> x**(n-1) (x log(x)), of which no slope is lost near 0"""
    terms = rw.terms
    for i, (log, e) in enumerate(term.parts):
        if e == 1 and called(log, LOG):
            rest = term.parts[:i] + term.parts[i + 1 :]
            (x,) = log.parts
            for base, n in rest:
                if base is x and n > 1:
                    once = terms.call(StableForm.of(forms.x_log_x), x)
                    return terms.multiply([(once, 1), (x, -1), *rest], loose=True)
                if called(x, ABS) and base is x.parts[0] and n > 1 and n % 2 == 0:
                    once = terms.call(StableForm.of(forms.x_log_x), x)
                    left = [part for part in rest if part[0] is not base]
                    return terms.multiply([(once, 1), (x, n - 1), *left], loose=True)
    return None


def log_of_ratio(rw: Rewriter, term: Term) -> Term | None:
    """log(a / b) -> log1p((a - b) / b) near a = b, where a - b is shorter"""
    terms = rw.terms
    if term.parts[0].kind != PRODUCT or len(term.parts[0].parts) != 2:
        return None
    for (a, p), (b, q) in (term.parts[0].parts, term.parts[0].parts[::-1]):
        gap = simpler(terms, a, b) if (p, q) == (1, -1) else None
        if gap is not None:
            return terms.call(StableForm.of(forms.log_ratio), gap, a, b)
    return None


def logit_of_odds(rw: Rewriter, term: Term) -> Term | None:
    """log(x / (1 - x)) -> logit(x), of the one of the two that is no difference"""
    terms = rw.terms
    inner, c = terms.monomial(term.parts[0])
    if inner.kind != PRODUCT or len(inner.parts) != 2 or c != 1:
        return None
    (a, p), (b, q) = sorted(inner.parts, key=lambda part: part[0].kind == SUM)
    total = terms.add([(a, 1.0), (b, 1.0)], loose=True)
    if {p, q} != {1, -1} or not total.is_number or total.key != 1:
        return None
    return terms.scaled(terms.call(StableForm.of(forms.logit), a), float(p))


def log_near_one(rw: Rewriter, term: Term) -> Term | None:
    """log(1 + x) -> log1p(x)"""
    total = term.parts[0]
    if total.kind != SUM or total.key != 1 or not total.parts:
        return None
    healed, fired = rw.rewritten(total)
    if fired:  # a sum that log1p took in
        made, more = rw.rewritten(rw.terms.call(LOG, healed))
        rw.by = (more or fired)[0].name
        return made
    rw.by = "log1p"
    x = rw.terms.add([(total, 1.0)], -1.0, loose=True)
    inner, c = rw.terms.monomial(x)
    if inner.kind == PRODUCT and all(e < 0 for _, e in inner.parts):
        rw.by = "log1p_inverse"
        below = rw.terms.multiply([(inner, -1)], 1 / c)
        return rw.terms.call(StableForm.of(forms.log1p_inverse), below)
    return rw.terms.call(StableForm.of(log1p), x) if rw.terms.is_written(x) else None


def _argument_of_log(terms: Terms, term: Term) -> Term | None:
    if called(term, LOG):
        inner: Term = term.parts[0]
        return inner
    if called(term, StableForm.of(log1p)):
        return terms.add([(term.parts[0], 1.0)], 1.0, loose=True)
    return None


def difference_of_logs(rw: Rewriter, term: Term) -> Term | None:
    """log(a) - log(b) -> log1p((a - b) / b), where a - b is shorter"""
    terms = rw.terms
    parts = two(term)
    if parts is None or len(parts) != 2:
        return None
    (s, p), (t, q) = parts
    a, b = _argument_of_log(terms, s), _argument_of_log(terms, t)
    gap = None if a is None or b is None or not near(p, -q) else simpler(terms, a, b)
    if gap is None or a is None or b is None:
        return None
    return terms.scaled(terms.call(StableForm.of(forms.log_ratio_difference), gap, a, b), p)
