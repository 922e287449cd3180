"""Sums of exponentials: their logarithms, and quotients by them."""

from __future__ import annotations

import math
from typing import Any

from ...ops.elementwise.exponential import (
    EXP,
    EXPM1,
    LOG,
    LOGADDEXP,
    TANH,
    SigmoidSlope,
    TanhSlope,
)
from ...ops.elementwise.trigonometry import Cosh
from ...ops.nn.softmaxes import LogSoftmax, Softmax
from ...ops.reduce.reductions import ReduceLogSumExp, ReduceMean, ReduceSum
from .. import forms
from ..forms import StableForm
from ..identity import Rewriter
from ..reading import OutputOf
from ..terms import CALL, PRODUCT, SUM, Term, Terms
from .shared import ERF, ERFC, MOVES, SIGMOID, SINH, SOFTPLUS, called, in_shape


def exponentials(
    terms: Terms, term: Term, small: bool = False, beside: bool = False
) -> list[tuple[Term, Term]] | None:
    """(exponent, weight) of each term of a sum that has an exponential in each, or a constant.

    small: with what underflows as an exponential does. beside: other terms may stand there, too.
    """
    if term.kind != SUM:
        return None
    found = [] if term.key == 0 else [(terms.number(0.0), terms.number(term.key))]
    missing = 0
    for part, c in term.parts:
        exponent, weight = split_exp(terms, part, small)
        missing += exponent is None
        found.append((exponent or terms.number(0.0), terms.scaled(weight, c)))
    if missing and not (beside and missing < len(term.parts)):
        return None
    return found if len(found) > 1 else None


def split_exp(terms: Terms, term: Term, small: bool = False) -> tuple[Term | None, Term]:
    """The exponent of the one exponential among the factors of a term, and the others.

    small: of all that underflow as one does.
    """
    if term.kind == SUM and len(term.parts) > 1 and not term.key:
        pairs = [(*split_exp(terms, t), c) for t, c in term.parts]
        exponent = pairs[0][0]
        if exponent is None or any(e is not exponent for e, _, _ in pairs):
            return None, term
        return exponent, terms.add([(w, c) for _, w, c in pairs], loose=True)
    factors = terms.factors(term)
    known = [(b, e, _exponent(terms, b, small)) for b, e in factors]
    exponents = [(t, float(e)) for _, e, t in known if t is not None and (e == 1 or small)]
    if not exponents:
        return None, term
    rest = [(b, e) for b, e, t in known if t is None or not (e == 1 or small)]
    return terms.add(exponents, loose=True), terms.multiply(rest)


def _exponent(terms: Terms, base: Term, small: bool) -> Term | None:
    """What a factor is the exponential of."""
    if called(base, EXP):
        inner: Term = base.parts[0]
        return inner
    if small and called(base, ReduceSum):
        return _log_of_reduced(terms, base)
    if small and called(base, SIGMOID):
        return _log_sigmoid(terms, base.parts[0])
    if small and called(base, StableForm.of(forms.exp_less_exp)):
        x, u = base.parts
        return terms.add([(u, 1.0), (terms.call(EXP, x), -1.0)], loose=True)
    return None


def _log_sigmoid(terms: Terms, x: Term) -> Term:
    return terms.scaled(terms.call(SOFTPLUS, terms.scaled(x, -1.0)), -1.0)


def positive(pairs: list[tuple[Term, Term]]) -> bool:
    """Whether all weights are numbers above 0."""
    return all(w.is_number and w.key > 0 for _, w in pairs)


def log_total(terms: Terms, pairs: list[tuple[Term, Term]]) -> Term:
    """log(sum of w exp(t)) of (t, w) with numbers for the weights."""
    shifted = [terms.add([(t, 1.0)], math.log(w.key), loose=True) for t, w in pairs]
    total = shifted[-1]
    for t in reversed(shifted[:-1]):
        if t.is_number:
            gap = terms.add([(total, 1.0)], -t.key, loose=True)
            total = terms.add([(terms.call(SOFTPLUS, gap), 1.0)], t.key, loose=True)
        else:
            total = terms.call(LOGADDEXP, t, total)
    return total


def log_of(rw: Rewriter, term: Term) -> Term | None:
    """The logarithm of a term that is positive, by a form of its own; None where there is none."""
    terms = rw.terms
    inner, c = terms.monomial(term)
    if inner.kind == SUM:
        pairs = None
        if c == 1:
            pairs = exponentials(terms, inner, small=not inner.key)
            pairs = pairs or exponentials(terms, inner, beside=True)
        if pairs is None:
            return None
        if positive(pairs):
            return log_total(terms, pairs)
        if all(not w.is_number or w.key > 0 for _, w in pairs) and len(pairs) < 16:
            return terms.call(
                StableForm.of(forms.shifted_log), *[t for pair in pairs for t in pair]
            )
        return None
    if called(inner, ERFC) and c == 0.5:
        return terms.call(StableForm.of(forms.log_half_erfc), *inner.parts)
    if inner.kind == CALL and c > 0:
        form = SIGNED_LOGS.get(inner.key)
        if form is not None:
            own = terms.call(StableForm.of(form), *inner.parts)
            return terms.add([(own, 1.0)], math.log(c), loose=True)
    known: list[tuple[Term, float]] = []
    rest: list[tuple[Term, int]] = []
    for base, e in terms.factors(inner):
        log = _own_log(rw, base)
        if log is None:
            rest.append((base, e))
        else:
            known.append((log, float(e)))
    if not known or (c < 0 and not rest):
        return None
    if rest:
        left, _ = rw.rewritten(terms.call(LOG, terms.multiply(rest, c)))
        known.append((left, 1.0))
        return terms.add(known, loose=True)
    return terms.add(known, math.log(c), loose=True)


SIGNED_LOGS: dict[Any, Any] = {
    SINH: forms.log_sinh,
    TANH: forms.log_tanh,
    EXPM1: forms.log_expm1,
    ERF: forms.log_erf,
    StableForm.of(forms.exp_difference): forms.log_exp_difference,
    StableForm.of(forms.sigmoid_difference): forms.log_sigmoid_difference,
}
"""What is called -> its logarithm, where it is positive."""
OWN_LOGS: dict[Any, Any] = {
    SOFTPLUS: forms.log_softplus,
    StableForm.of(forms.sinhc): forms.log_sinhc,
    ERFC: forms.log_erfc,
    Cosh: forms.log_cosh,
    TanhSlope: forms.log_tanh_slope,
    SigmoidSlope: forms.log_sigmoid_slope,
}
"""What is called and is positive -> its logarithm."""


def _own_log(rw: Rewriter, base: Term) -> Term | None:
    terms = rw.terms
    if base.kind == SUM:
        pairs = exponentials(terms, base)
        return log_total(terms, pairs) if pairs is not None and positive(pairs) else None
    if base.kind != CALL:
        return None
    key: Any = base.key
    exponent = _exponent(terms, base, True)
    if exponent is not None:
        return exponent
    if type(key) is Softmax:
        return terms.call(LogSoftmax(key.axis), *base.parts, shape=base.shape)
    form = OWN_LOGS.get(key) or OWN_LOGS.get(type(key))
    if form is not None:
        return terms.call(StableForm.of(form), *base.parts)
    if called(base, StableForm) and key.fn is forms.share:
        return terms.call(LogSoftmax(*key.options), *base.parts, shape=base.shape)
    if type(key) in (ReduceSum, ReduceMean):
        return _log_of_reduced(terms, base)
    if type(key) in MOVES or (type(key) is OutputOf and type(key.op) in MOVES):
        moved = log_of(rw, base.parts[0])
        if moved is not None:
            return terms.call(key, in_shape(terms, moved, base.parts[0]), shape=base.shape)
    return None


def _log_of_reduced(terms: Terms, base: Term) -> Term | None:
    """log(sum(exp(x))) or log(sum(w exp(x))) along axes, or of the mean."""
    op: Any = base.key
    exponent, weight = split_exp(terms, base.parts[0])
    if exponent is None:
        return None
    whole = base.parts[0]
    x, ones = in_shape(terms, exponent, whole), weight.is_number and weight.key == 1
    if type(op) is ReduceMean:
        form = StableForm.of(forms.log_mean, op.axes, op.keepdims)
        return terms.call(form, x, shape=base.shape) if ones else None
    if ones:
        return terms.call(ReduceLogSumExp(op.axes, op.keepdims), x, shape=base.shape)
    form = StableForm.of(forms.weighted_log, op.axes, op.keepdims)
    return terms.call(form, x, weight, shape=base.shape)


def exp_of_exp(rw: Rewriter, term: Term) -> Term | None:
    """exp(u - exp(x)), whose derivative is exp(u + x - exp(x))"""
    terms = rw.terms
    if term.kind == PRODUCT:
        return _times_exp(terms, term)
    parts, const = terms.addends(term.parts[0])
    inner = [(t, c) for t, c in parts if called(t, EXP) and c < 0]
    if len(inner) != 1:
        return None
    ((e, c),) = inner
    x = terms.add([(e.parts[0], 1.0)], math.log(-c), loose=True)
    u = terms.add([(t, k) for t, k in parts if t is not e], const, loose=True)
    return terms.call(StableForm.of(forms.exp_less_exp), x, u)


def _times_exp(terms: Terms, term: Term) -> Term | None:
    form = StableForm.of(forms.exp_less_exp)
    for slow, e in term.parts:
        for fast, k in term.parts:
            if e == k == 1 and called(slow, EXP) and called(fast, form):
                x, u = fast.parts
                both = terms.call(form, x, terms.add([(u, 1.0), (slow.parts[0], 1.0)], loose=True))
                rest = [(b, n) for b, n in term.parts if b is not slow and b is not fast]
                return terms.multiply([(both, 1), *rest], loose=True)
    return None


NAMES: dict[Any, str] = {
    SOFTPLUS: "log1pexp",
    LOGADDEXP: "logaddexp",
    ReduceLogSumExp: "logsumexp",
    LogSoftmax: "log_softmax",
    Softmax: "softmax",
    SIGMOID: "sigmoid",
    "share": "softmax",
    "log_tanh_slope": "log_cosh",
    "log_sigmoid_slope": "log_sigmoid",
    "shifted_log": "log_of_weighted_sum",
    "weighted_log": "log_of_weighted_sum",
    "weighted_mean": "mean_by_softmax",
    "log_half_erfc": "log_erfc",
    "log_mean": "log_of_mean",
}
"""What a rule made -> the row of the table that speaks of it, if that has another name."""


def _name_in(made: Term) -> str | None:
    """The row that speaks of the outermost call in a term."""
    stack = [made]
    while stack:
        term = stack.pop(0)
        if term.kind != CALL:
            stack += [part for part, _ in term.parts] if term.kind in (SUM, PRODUCT) else []
            continue
        key: Any = term.key
        name = NAMES.get(key) or NAMES.get(type(key))
        if called(term, StableForm):
            name = NAMES.get(key.name, key.name)
        if name is not None:
            return name
        if type(key) in (ReduceSum, ReduceMean) or type(key) in MOVES:
            stack += term.parts
    return None


def log_of_product(rw: Rewriter, term: Term) -> Term | None:
    """log of exponentials, their sums and products -> sums of their exponents"""
    made = log_of(rw, term.parts[0])
    rw.by = None if made is None else _name_in(made)
    return made


def share_of_exponentials(rw: Rewriter, term: Term) -> Term | None:
    """exp(x) / sum(exp(x)), sum(y exp(x)) / sum(exp(x)), 1 / (a exp(x) + b exp(y)), ..."""
    terms = rw.terms
    for i, (base, e) in enumerate(term.parts):
        if e >= 0:
            continue
        others = term.parts[:i] + term.parts[i + 1 :]
        if called(base, ReduceSum):
            made = _over_reduced(terms, base, e, others)
        else:
            pairs = exponentials(terms, base)
            made = None if pairs is None else _over_pairs(terms, pairs, e, others)
        if made is not None:
            rw.by = "mean_by_softmax" if called(made, ReduceSum) else _name_in(made)
            return made
    return None


def _over_pairs(
    terms: Terms, pairs: list[tuple[Term, Term]], e: int, others: tuple[tuple[Term, int], ...]
) -> Term | None:
    if not (positive(pairs) or positive([(t, terms.scaled(w, -1.0)) for t, w in pairs])):
        return None
    turn = -1.0 if pairs[0][1].key < 0 else 1.0
    pairs = [(t, terms.scaled(w, turn)) for t, w in pairs]
    above = [b.parts[0] for b, k in others if called(b, EXP) and k == 1]
    shared = [p for p in pairs if any(p[0] is t for t in above)]
    shared += [p for p in pairs if p[0].is_number]
    if len(pairs) == 2:
        if not shared:  # exp(-t) is infinite beside a share that is 0
            return None
        first = shared[0]
        (t, w), (u, v) = first, next(p for p in pairs if p is not first)
        gap = terms.add([(t, 1.0), (u, -1.0)], math.log(w.key / v.key), loose=True)
        share = terms.call(SIGMOID, gap)
        own = terms.call(EXP, t) if not t.is_number else terms.number(math.exp(t.key))
        return terms.multiply([(share, -e), (own, e), *others], turn * w.key**e, loose=True)
    if e != -1:
        return None
    return terms.multiply(
        [(terms.call(EXP, log_total(terms, pairs)), -1), *others], turn, loose=True
    )


def _over_reduced(
    terms: Terms, base: Term, e: int, others: tuple[tuple[Term, int], ...]
) -> Term | None:
    op: Any = base.key
    below, weight = split_exp(terms, base.parts[0])
    if below is None:
        return None
    whole = base.parts[0]
    axes, ones = op.axes, weight.is_number and weight.key == 1
    for i, (other, k) in enumerate(others):
        rest = others[:i] + others[i + 1 :]
        if called(other, EXP) and k == 1 and e == -1 and op.keepdims:
            if other.parts[0] is below and ones and len(axes) == 1:
                x = in_shape(terms, below, whole)
                share = terms.call(StableForm.of(forms.share, axes[0]), x, shape=x.shape)
            elif other.parts[0] is below:
                form = StableForm.of(forms.weighted_share, axes)
                share = terms.call(form, in_shape(terms, below, whole), weight, shape=whole.shape)
            else:
                total = _log_of_reduced(terms, base)
                assert total is not None
                gap = terms.add([(other.parts[0], 1.0), (total, -1.0)], loose=True)
                share = terms.call(EXP, gap)
            return terms.multiply([(share, 1), *rest], loose=True)
        if called(other, ReduceSum) and k == -e and other.key.axes == axes:
            exponent, over = split_exp(terms, other.parts[0])
            if exponent is not below or other.key.keepdims is not op.keepdims:
                continue
            if ones and len(axes) == 1:
                x = in_shape(terms, below, whole)
                share = terms.call(Softmax(axes[0]), x, shape=x.shape)
                body = in_shape(terms, terms.multiply([(over, 1), (share, 1)]), other.parts[0])
                mean = terms.call(op, body, shape=other.shape)
            else:
                form = StableForm.of(forms.weighted_mean, axes, op.keepdims)
                mean = terms.call(
                    form, in_shape(terms, below, whole), over, weight, shape=other.shape
                )
            return terms.multiply([(mean, k), *rest], loose=True)
    return None
