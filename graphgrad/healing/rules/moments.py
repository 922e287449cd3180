"""Moments, products by logarithms, tails of the error function, steps of gamma functions."""

from __future__ import annotations

import math
from typing import Any

from ...ops.elementwise.exponential import EXP, LOG
from ...ops.reduce.reductions import ReduceMean, ReduceSum
from ...ops.special.error import erfcx
from ...ops.special.gammas import Digamma, GammaLn
from .. import forms
from ..forms import StableForm
from ..identity import Rewriter
from ..terms import CALL, Term, Terms, near
from .shared import ERFC, called, in_shape, two


def moment(terms: Terms, t: Term, c: float) -> tuple[Any, Term, float] | None:
    """(reduction, what it is taken of, the factor of the mean) of a sum or mean times a number."""
    if t.kind != CALL or type(t.key) not in (ReduceSum, ReduceMean):
        return None
    if type(t.key) is ReduceMean:
        return t.key, t.parts[0], c
    lengths = [t.parts[0].shape[a] for a in t.key.axes]
    if not all(isinstance(n, int) for n in lengths):
        return None
    return t.key, t.parts[0], c * math.prod(lengths)


def central_moment(rw: Rewriter, term: Term) -> Term | None:
    """mean(x y) - mean(x) mean(y) -> mean((x - mean(x)) (y - mean(y)))"""
    terms = rw.terms
    if term.key or len(term.parts) != 2:
        return None
    for (joint, c), (product, d) in (term.parts, term.parts[::-1]):
        first = moment(terms, joint, c)
        factors = [b for b, e in terms.factors(product) for _ in range(max(e, 0))]
        if first is None or len(factors) != 2:
            continue
        second = [moment(terms, b, 1.0) for b in factors]
        if second[0] is None or second[1] is None:
            continue
        (op, xy, p), (op1, x, q1), (op2, y, q2) = first, second[0], second[1]
        body = terms.multiply([(x, 1), (y, 1)], loose=True)
        same = all(o.axes == op.axes and o.keepdims == op.keepdims for o in (op1, op2))
        if body is not xy or not same or not near(p, -d * q1 * q2):
            continue
        rw.by = "variance" if x is y else "covariance"
        if x is y:
            return terms.scaled(
                terms.call(
                    StableForm.of(forms.variance, op.axes, op.keepdims), x, shape=joint.shape
                ),
                p,
            )
        form = StableForm.of(forms.covariance, op.axes, op.keepdims)
        x, y = in_shape(terms, x, xy), in_shape(terms, y, xy)
        return terms.scaled(terms.call(form, x, y, shape=joint.shape), p)
    return None


def product_by_logs(rw: Rewriter, term: Term) -> Term | None:
    """exp(sum(log(x))) -> prod(x)"""
    terms = rw.terms
    total = term.parts[0]
    if not called(total, ReduceSum) or not called(total.parts[0], LOG):
        return None
    x = in_shape(terms, total.parts[0].parts[0], total.parts[0])
    form = StableForm.of(forms.product_of_logs, total.key.axes, total.key.keepdims)
    return terms.call(form, x, shape=total.shape)


def tail(rw: Rewriter, term: Term) -> Term | None:
    """exp(-x**2) / erfc(x) -> 1 / erfcx(x); exp(x**2) erfc(x) -> erfcx(x)"""
    terms = rw.terms
    for i, (base, e) in enumerate(term.parts):
        if not called(base, ERFC) or abs(e) != 1:
            continue
        x = base.parts[0]
        square, c = terms.monomial(terms.multiply([(x, 2)], loose=True))
        for j, (other, k) in enumerate(term.parts):
            if not called(other, EXP) or k != 1:
                continue
            exponent, d = terms.monomial(other.parts[0])
            if exponent is not square or abs(d * e - c) > 16 * rw.reader.unit * c:
                continue
            rest = [p for n, p in enumerate(term.parts) if n not in (i, j)]
            rw.by = "scaled_tail" if e == 1 else "tail_ratio"
            form = StableForm.of(erfcx if e == 1 else forms.tail_ratio)
            return terms.multiply([(terms.call(form, x), 1), *rest], loose=True)
    return None


def step_of(key: Any, form: Any) -> Any:
    """The rule for f(x + n) - f(x) of the gamma functions."""

    def rule(rw: Rewriter, term: Term) -> Term | None:
        """gammaln(x + n) - gammaln(x) -> log|x| + ... + log|x + n - 1|"""
        terms = rw.terms
        parts = two(term)
        if parts is None or len(parts) != 2:
            return None
        (s, p), (t, q) = parts
        if not (called(s, key) and called(t, key) and near(p, -q)):
            return None
        n = terms.add([(s.parts[0], 1.0), (t.parts[0], -1.0)], loose=True)
        if not n.is_number or n.key != round(n.key) or not 0 < abs(n.key) <= 8:
            return None
        low, c = (t.parts[0], p) if n.key > 0 else (s.parts[0], q)
        return terms.scaled(terms.call(StableForm.of(form, abs(round(n.key))), low), c)

    return rule


step_of_gammaln = step_of(GammaLn, forms.gammaln_step)
step_of_digamma = step_of(Digamma, forms.digamma_step)
