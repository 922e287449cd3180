"""Lengths and angles, and what is divided by them."""

from __future__ import annotations

import math
from typing import Any

from ...ops.elementwise.exponential import SQRT
from ...ops.elementwise.magnitudes import ABS
from ...ops.reduce.reductions import ReduceMean, ReduceSum
from .. import forms
from ..forms import StableForm
from ..identity import Rewriter
from ..reading import OutputOf
from ..terms import CALL, PRODUCT, SUM, Term, Terms
from .quotients import VANISHING
from .shared import MOVES, called, in_shape


def root_of_squares(rw: Rewriter, term: Term, mixed: bool = True) -> Term | None:
    """sqrt(a**2 + b**2 + ...), sqrt(sum(x**2)) -> a length that neither over- nor underflows"""
    terms = rw.terms
    parts, const = terms.addends(term.parts[0])
    if not parts or len(parts) > 8:
        return None
    lengths: list[Term] = []
    apart = _root_of_difference(terms, parts, const) if mixed else None
    if apart is not None:
        rw.by = "root_of_difference"
        return apart
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


def _root_of_difference(
    terms: Terms, parts: tuple[tuple[Term, float], ...], const: float
) -> Term | None:
    """sqrt(a**2 - b**2) by its factors; one of them may be a number."""
    found = [(None if called(t, ReduceSum) else square_root(terms, t), c) for t, c in parts]
    if const:
        found.append((terms.number(1.0), const))
    if len(found) != 2 or found[0][1] * found[1][1] > 0:
        return None
    (x, p), (y, q) = sorted(found, key=lambda part: -part[1])
    if x is None or y is None:
        return None
    a, b = terms.scaled(x, math.sqrt(p)), terms.scaled(y, math.sqrt(-q))
    return terms.call(StableForm.of(forms.root_of_difference), a, b)


WHOLE, DIRECTION = StableForm.of(forms.whole_norm), StableForm.of(forms.direction)
LENGTHS, INVERSE = StableForm.of(forms.lengths), StableForm.of(forms.inverse_length)


def over_length(rw: Rewriter, term: Term) -> Term | None:
    """x / norm(x) -> 0 at 0; x / hypot(x, y), x / (x**2 + y**2), whose slopes do not cancel"""
    terms = rw.terms
    for i, (base, e) in enumerate(term.parts):
        rest = list(term.parts[:i] + term.parts[i + 1 :])
        root = root_of_squares(rw, base, False) if called(base, SQRT) else None
        if root is not None:
            return terms.multiply([(root, e), *rest], loose=True)
        if any(b.kind == CALL and b.key in VANISHING and b.parts[0] is base for b, _ in rest):
            continue
        length = _divides(terms, base, rest) if e < 0 else None
        if length is None:
            continue
        if length.key.fn is forms.lengths:
            e = e if length is base else 2 * e
            rw.by, made = (
                "direction" if e == -1 else "over_squares",
                _by_length(terms, length, e, rest),
            )
        else:
            rw.by, made = "unit_vector", _by_norm(terms, length, e, rest)
        if made is not None:
            return made
    return None


def inverse_of_length(rw: Rewriter, term: Term) -> Term | None:
    """1 / hypot(x, y), 1 / norm(x), whose slopes by what is 0 are 0"""
    terms = rw.terms
    for i, (base, e) in enumerate(term.parts):
        rest = term.parts[:i] + term.parts[i + 1 :]
        if e > 0 or not called(base, StableForm):
            continue
        if base.key is LENGTHS:
            made = terms.call(INVERSE, *base.parts)
        elif base.key.fn is forms.norm and not any(called(b, ReduceSum) for b, _ in rest):
            form = StableForm.of(forms.inverse_norm, *base.key.options)
            made = terms.call(form, *base.parts, shape=base.shape)
        else:
            continue
        return terms.multiply([(made, -e), *rest], loose=True)
    return None


def _divides(terms: Terms, base: Term, rest: list[tuple[Term, int]]) -> Term | None:
    """The length that a base is, or whose square it is with a part of it among the others."""
    if called(base, StableForm) and base.key.fn in (forms.norm, forms.lengths):
        return base
    parts, const = terms.addends(base) if base.kind == SUM else ((), 0.0)
    if const < 0 or len(parts) + bool(const) < 2 or any(c < 0 for _, c in parts):
        return None
    halves = [(square_root(terms, t), c) for t, c in parts]
    if any(half is None or any(_length_of(b) for b, _ in _flat(half)) for half, _ in halves):
        return None
    xs = [terms.scaled(half, math.sqrt(c)) for half, c in halves if half is not None]
    length = terms.call(LENGTHS, *xs, *[terms.number(math.sqrt(const))][: bool(const)])
    return length if not const or _along(terms, length, rest) is not None else None


def _along(terms: Terms, length: Term, rest: list[tuple[Term, int]]) -> tuple[int, float] | None:
    """Which part of a length is among the factors beside it, and times what."""
    have = {base: k for base, k in rest if k > 0}
    for i, x in enumerate(length.parts):
        inner, c = terms.monomial(x)
        if not inner.is_number and inner.kind != SUM:
            if all(have.get(base, 0) >= k for base, k in terms.factors(inner)):
                return i, c
        elif inner in have:
            return i, c
    return None


def _by_length(terms: Terms, length: Term, e: int, rest: list[tuple[Term, int]]) -> Term | None:
    found = _along(terms, length, rest)
    if found is None:
        return None
    i, c = found
    x, others = length.parts[i], length.parts[:i] + length.parts[i + 1 :]
    inner, _ = terms.monomial(x)
    have, parts = dict(rest), terms.factors(inner)
    square = e < -1 and all(have.get(base, 0) >= 2 * k for base, k in parts)
    times = 2 if square else 1
    form = DIRECTION if square or e == -1 else StableForm.of(forms.over_squares)
    along = (terms.call(form, x, *others), times)
    away = [(base, -k * times) for base, k in parts]
    beside = terms.multiply([*rest, *away], c**-times, loose=True)
    left = [(length, e + 2)] if e < -2 else []
    return terms.multiply([along, *left, (beside, 1)], loose=True)


def _by_norm(terms: Terms, length: Term, e: int, rest: list[tuple[Term, int]]) -> Term | None:
    if not any(_made_of(base, length.parts) for base, k in rest if k > 0):
        return None
    left = [(length, e + 1)] if e < -1 else []
    return terms.multiply([(terms.call(WHOLE, length), -1), *left, *rest], loose=True)


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
        inner = half_of(terms, t.parts[0])
        if inner is None:
            return None
        x = in_shape(terms, inner, t.parts[0])
        return terms.call(StableForm.of(forms.norm, t.key.axes, t.key.keepdims), x, shape=t.shape)
    if called(t, ReduceMean) and all(isinstance(t.parts[0].shape[a], int) for a in t.key.axes):
        inner = half_of(terms, t.parts[0])
        if inner is None:
            return None
        x = in_shape(terms, inner, t.parts[0])
        n = math.prod(int(t.parts[0].shape[a]) for a in t.key.axes)
        length = terms.call(StableForm.of(forms.norm, t.key.axes, t.key.keepdims), x, shape=t.shape)
        return terms.scaled(length, n**-0.5) if n else None
    return half_of(terms, t)


def half_of(terms: Terms, t: Term) -> Term | None:
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
