"""Lengths and angles, and what is divided by them."""

from __future__ import annotations

import math
from typing import Any

from ...ops.elementwise.magnitudes import ABS
from ...ops.reduce.reductions import ReduceMean, ReduceSum
from .. import forms
from ..forms import StableForm
from ..identity import Rewriter
from ..reading import OutputOf
from ..terms import CALL, PRODUCT, Term, Terms
from .shared import MOVES, called, in_shape


def root_of_squares(rw: Rewriter, term: Term, mixed: bool = True) -> Term | None:
    """sqrt(a**2 + b**2 + ...), sqrt(sum(x**2)) -> a length that neither over- nor underflows"""
    terms = rw.terms
    parts, const = terms.addends(term.parts[0])
    if not parts or len(parts) > 8:
        return None
    lengths: list[Term] = []
    for t, c in parts:
        one = square_root(terms, t)
        if one is None or c <= 0:
            return _scaled_root(rw, parts, const) if mixed else None
        lengths.append(terms.scaled(one, math.sqrt(c)))
    if const < 0:
        return _scaled_root(rw, parts, const) if mixed else None
    if const:
        lengths.append(terms.number(math.sqrt(const)))
    if len(lengths) == 1:
        inner, c = terms.monomial(lengths[0])
        if called(inner, StableForm) and inner.key.fn is forms.norm:
            rw.by = "norm"
            return lengths[0]
        if inner.kind == PRODUCT and all(_length_of(b) for b, _ in inner.parts):
            rw.by = "norm"
            return lengths[0]
        rw.by = "abs"
        return terms.scaled(terms.call(ABS, inner), abs(c))
    rw.by = "hypot"
    return terms.call(StableForm.of(forms.lengths), *lengths)


def over_own_length(rw: Rewriter, term: Term) -> Term | None:
    """x / norm(x) -> 0 at 0"""
    terms = rw.terms
    for length, e in term.parts:
        if (
            e >= 0
            or not called(length, StableForm)
            or length.key.fn not in (forms.norm, forms.lengths)
        ):
            continue
        if any(_made_of(base, length.parts) for base, k in term.parts if k > 0):
            rest = [(b, k) for b, k in term.parts if b is not length]
            whole = terms.call(StableForm.of(forms.whole_norm), length)
            return terms.multiply([(whole, e), *rest], loose=True)
    return None


def _made_of(term: Term, xs: tuple[Term, ...]) -> bool:
    """Whether a term is one of these, a part of it or a sum of products with it."""
    if any(term is x for x in xs):
        return True
    if called(term, ReduceSum) and term.parts[0].kind in (PRODUCT, CALL):
        return any(base is x for base, _ in _flat(term.parts[0]) for x in xs)
    if term.kind != CALL:
        return False
    key: Any = term.key
    moves = type(key) in MOVES or (type(key) is OutputOf and type(key.op) in MOVES)
    return moves and _made_of(term.parts[0], xs)


def _flat(term: Term) -> tuple[tuple[Term, int], ...]:
    return term.parts if term.kind == PRODUCT else ((term, 1),)


def square_root(terms: Terms, t: Term) -> Term | None:
    """The root of a term that is a square, or a sum of squares along axes."""
    if called(t, ReduceSum):
        inner = _half(terms, t.parts[0])
        if inner is None:
            return None
        x = in_shape(terms, inner, t.parts[0])
        return terms.call(StableForm.of(forms.norm, t.key.axes, t.key.keepdims), x, shape=t.shape)
    if called(t, ReduceMean) and all(isinstance(t.parts[0].shape[a], int) for a in t.key.axes):
        inner = _half(terms, t.parts[0])
        if inner is None:
            return None
        x = in_shape(terms, inner, t.parts[0])
        n = math.prod(int(t.parts[0].shape[a]) for a in t.key.axes)
        length = terms.call(StableForm.of(forms.norm, t.key.axes, t.key.keepdims), x, shape=t.shape)
        return terms.scaled(length, n**-0.5) if n else None
    return _half(terms, t)


def _half(terms: Terms, t: Term) -> Term | None:
    """The root of a product of even powers and of sums of squares, up to its sign."""
    if t.is_number:
        return None
    found: list[tuple[Term, int]] = []
    for base, e in terms.factors(t):
        if e < 0:
            return None
        if e % 2 == 0:
            found.append((base, e // 2))
            continue
        one = square_root(terms, base) if base is not t and called(base, ReduceSum) else None
        if one is None:
            return None
        found.append((one, e))
    return terms.multiply(found, loose=True)


def _scaled_root(rw: Rewriter, parts: tuple[tuple[Term, float], ...], const: float) -> Term | None:
    """sqrt of products of two factors each, of which not all are squares with plus."""
    terms, one = rw.terms, rw.terms.number(1.0)
    pairs: list[Term] = []
    signs = [c for _, c in parts]
    products = 0
    for t, _ in parts:
        if t.is_number or any(e < 0 for _, e in terms.factors(t)):
            return None
        flat = [b for b, e in terms.factors(t) for _ in range(e)]
        products += len(flat) == 2
        if len(flat) > 2:
            return None
        pairs += [*flat, one][:2]
    if const:
        pairs += [one, one]
        signs.append(const)
    if not products or len(signs) < 2:
        return None
    rw.by = "scaled_root"
    return terms.call(StableForm.of(forms.scaled_root, tuple(signs)), *pairs)


def arccos_of_cosine(rw: Rewriter, term: Term) -> Term | None:
    """arccos(sum(x y) / (|x| |y|)) -> 2 arctan2(|u - v|, |u + v|) of the unit vectors"""
    terms = rw.terms
    if term.parts[0].kind != PRODUCT:
        return None
    parts = term.parts[0].parts
    dots = [b for b, e in parts if called(b, ReduceSum) and e == 1]
    norms = [_length_of(b) for b, e in parts for _ in range(-e)]
    if (
        len(dots) != 1
        or len(norms) != 2
        or len(dots) + len({b for b, e in parts if e < 0}) != len(parts)
    ):
        return None
    (dot,) = dots
    options = (dot.key.axes, dot.key.keepdims)
    if any(n is None or n.key.options != options for n in norms):
        return None
    x, y = (n.parts[0] for n in norms if n is not None)
    whole = dot.parts[0]
    if terms.multiply([(x, 1), (y, 1)], loose=True) is not whole:
        return None
    x, y = in_shape(terms, x, whole), in_shape(terms, y, whole)
    return terms.call(StableForm.of(forms.angle, *options), x, y, shape=dot.shape)


def _length_of(term: Term) -> Term | None:
    """The norm that a term is, or that it is where it is not 0."""
    if called(term, StableForm.of(forms.whole_norm)):
        term = term.parts[0]
    return term if called(term, StableForm) and term.key.fn is forms.norm else None
