"""Identities that a pattern cannot say: sums of any length, reductions over any axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..ops.elementwise.exponential import (
    EXP,
    EXPM1,
    LOG,
    LOGADDEXP,
    SQRT,
    TANH,
    Sigmoid,
    expm1,
    log1p,
)
from ..ops.elementwise.logic import where
from ..ops.elementwise.magnitudes import ABS
from ..ops.elementwise.trigonometry import (
    Asin,
    Atan,
    Cosh,
    Sin,
    Sinh,
    Tan,
    arctan,
    cos,
    sin,
    sinh,
    tan,
    tanh,
)
from ..ops.nn.activations import Softplus
from ..ops.nn.softmaxes import LogSoftmax, Softmax
from ..ops.reduce.reductions import ReduceLogSumExp, ReduceMean, ReduceSum
from ..ops.shape.joining import Split, Unstack
from ..ops.shape.reshaping import ExpandDims, Reshape, Squeeze, Transpose
from ..ops.shape.slicing import Slice
from ..ops.special.error import Erf, Erfc
from . import forms
from .forms import StableForm
from .reading import Fit, OutputOf
from .terms import CALL, PRODUCT, SUM, Term, Terms, near

if TYPE_CHECKING:
    from .identity import Rewriter

SIGMOID, SOFTPLUS, ERF, ERFC = Sigmoid(), Softplus(), Erf(), Erfc()
SIN, SINH, TAN, ATAN, ASIN = Sin(), Sinh(), Tan(), Atan(), Asin()
MOVES = (Slice, Reshape, ExpandDims, Squeeze, Transpose, Split, Unstack, Fit)
"""What only moves elements, so that a function of each may be taken before."""


def called(term: Term, key: Any) -> bool:
    """Whether a term is a call of an op, or of an op of a class."""
    return term.kind == CALL and (term.key is key or type(term.key) is key)


# --- sums of exponentials -----------------------------------------------------------------------


def exponentials(terms: Terms, term: Term) -> list[tuple[Term, Term]] | None:
    """(exponent, weight) of each term of a sum that has an exponential in each, or a constant."""
    if term.kind != SUM:
        return None
    found = [] if term.key == 0 else [(terms.number(0.0), terms.number(term.key))]
    for part, c in term.parts:
        exponent, weight = split_exp(terms, part)
        if exponent is None:
            return None
        found.append((exponent, terms.scaled(weight, c)))
    return found if len(term.parts) + bool(term.key) > 1 else None


def split_exp(terms: Terms, term: Term) -> tuple[Term | None, Term]:
    """The exponent of the one exponential among the factors of a term, and the others."""
    if term.kind == SUM and len(term.parts) > 1 and not term.key:
        pairs = [(*split_exp(terms, t), c) for t, c in term.parts]
        exponent = pairs[0][0]
        if exponent is None or any(e is not exponent for e, _, _ in pairs):
            return None, term
        return exponent, terms.add([(w, c) for _, w, c in pairs], loose=True)
    factors = terms.factors(term)
    for i, (base, e) in enumerate(factors):
        if called(base, EXP) and e == 1:
            return base.parts[0], terms.multiply(factors[:i] + factors[i + 1 :])
    return None, term


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
        pairs = exponentials(terms, inner) if c == 1 else None
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
    known: list[tuple[Term, float]] = []
    rest: list[tuple[Term, int]] = []
    for base, e in terms.factors(inner):
        own = _own_log(rw, base)
        if own is None:
            rest.append((base, e))
        else:
            known.append((own, float(e)))
    if not known or (c < 0 and not rest):
        return None
    if rest:
        left = terms.call(LOG, terms.multiply(rest, c))
        known.append((log_of_power(rw, left) or left, 1.0))
        return terms.add(known, loose=True)
    return terms.add(known, math.log(c), loose=True)


def _own_log(rw: Rewriter, base: Term) -> Term | None:
    terms = rw.terms
    if base.kind == SUM:
        pairs = exponentials(terms, base)
        return log_total(terms, pairs) if pairs is not None and positive(pairs) else None
    if base.kind != CALL:
        return None
    key: Any = base.key
    if key is EXP:
        inner: Term = base.parts[0]
        return inner
    if key is SIGMOID:
        return terms.scaled(terms.call(SOFTPLUS, terms.scaled(base.parts[0], -1.0)), -1.0)
    if type(key) is Softmax:
        return terms.call(LogSoftmax(key.axis), *base.parts, shape=base.shape)
    if key is ERFC:
        return terms.call(StableForm.of(forms.log_erfc), *base.parts)
    if type(key) is Cosh:
        return terms.call(StableForm.of(forms.log_cosh), *base.parts)
    if type(key) in (ReduceSum, ReduceMean):
        return _log_of_reduced(terms, base)
    if type(key) in MOVES or (type(key) is OutputOf and type(key.op) in MOVES):
        moved = log_of(rw, base.parts[0])
        if moved is not None:
            return terms.call(key, _in_shape(terms, moved, base.parts[0]), shape=base.shape)
    return None


def _in_shape(terms: Terms, term: Term, like: Term) -> Term:
    return (
        term if term.shape == like.shape else terms.call(Fit.to(like.shape), term, shape=like.shape)
    )


def _log_of_reduced(terms: Terms, base: Term) -> Term | None:
    """log(sum(exp(x))) or log(sum(w exp(x))) along axes, or of the mean."""
    op: Any = base.key
    if type(op) is ReduceMean:
        n = _count(base)
        total = terms.call(ReduceSum(op.axes, op.keepdims), *base.parts, shape=base.shape)
        log = _log_of_reduced(terms, total) if n else None
        return (
            None if log is None or n is None else terms.add([(log, 1.0)], -math.log(n), loose=True)
        )
    exponent, weight = split_exp(terms, base.parts[0])
    if exponent is None:
        return None
    whole = base.parts[0]
    if weight.is_number and weight.key == 1:
        x = _in_shape(terms, exponent, whole)
        return terms.call(ReduceLogSumExp(op.axes, op.keepdims), x, shape=base.shape)
    x = _in_shape(terms, exponent, whole)
    return terms.call(
        StableForm.of(forms.weighted_log, op.axes, op.keepdims), x, weight, shape=base.shape
    )


def _count(base: Term) -> int | None:
    """How many elements a reduction takes together; None where that is not known."""
    lengths = [base.parts[0].shape[a] for a in base.key.axes]
    return (
        math.prod(n for n in lengths if isinstance(n, int))
        if all(isinstance(n, int) for n in lengths)
        else None
    )


def log_of_power(rw: Rewriter, term: Term) -> Term | None:
    """log(x**n) -> n log(x), of |x| for an even n; log(x**2 + y**2) -> 2 log(hypot(x, y))"""
    terms = rw.terms
    x = term.parts[0]
    inner, c = terms.monomial(x)
    rw.by = "log_of_power"
    if inner.kind == PRODUCT and len(inner.parts) == 1 and c > 0:
        ((base, n),) = inner.parts
        inside = base if n % 2 else terms.call(ABS, base)
        return terms.add([(terms.call(LOG, inside), float(n))], math.log(c))
    parts, const = terms.addends(x)
    if const == 1 and len(parts) == 1 and parts[0][1] > 0:
        half = _length(terms, parts[0][0])
        if half is not None:
            rw.by = "log1p_square"
            half = terms.scaled(half, math.sqrt(parts[0][1]))
            return terms.call(StableForm.of(forms.log1p_square), half)
    if const < 0 or x.is_number or (len(parts) == 1 and x.kind != CALL):
        return None
    length = root_of_squares(rw, terms.call(SQRT, x), False)
    rw.by = "log_of_length"
    return None if length is None else terms.scaled(terms.call(LOG, length), 2.0)


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
    "shifted_log": "log_of_weighted_sum",
    "weighted_log": "log_of_weighted_sum",
    "weighted_share": "weighted_share",
    "weighted_mean": "mean_by_softmax",
    "log_erfc": "log_erfc",
    "log_half_erfc": "log_erfc",
    "log_cosh": "log_cosh",
}
"""What a rule made -> the row of the table that speaks of it."""


def _name_in(made: Term) -> str | None:
    """The row that speaks of the outermost call in a term."""
    stack = [made]
    while stack:
        term = stack.pop(0)
        if term.kind != CALL:
            stack += [part for part, _ in term.parts] if term.kind in (SUM, PRODUCT) else []
            continue
        key: Any = term.key
        name = NAMES.get(key) or NAMES.get(type(key)) or NAMES.get(getattr(key, "name", None))
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
    if len(pairs) == 2:
        first = next((p for p in pairs if p[0].is_number), pairs[0])
        first = next((p for p in pairs if any(p[0] is t for t in above)), first)
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
                x = _in_shape(terms, below, whole)
                share = terms.call(Softmax(axes[0]), x, shape=x.shape)
            elif other.parts[0] is below:
                form = StableForm.of(forms.weighted_share, axes)
                share = terms.call(form, _in_shape(terms, below, whole), weight, shape=whole.shape)
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
                x = _in_shape(terms, below, whole)
                share = terms.call(Softmax(axes[0]), x, shape=x.shape)
                body = _in_shape(terms, terms.multiply([(over, 1), (share, 1)]), other.parts[0])
                mean = terms.call(op, body, shape=other.shape)
            else:
                form = StableForm.of(forms.weighted_mean, axes, op.keepdims)
                mean = terms.call(
                    form, _in_shape(terms, below, whole), over, weight, shape=other.shape
                )
            return terms.multiply([(mean, k), *rest], loose=True)
    return None


# --- quotients that are 0 / 0 -------------------------------------------------------------------

DEFICITS: tuple[tuple[Any, int, Any], ...] = (
    (forms.sin_deficit, 3, lambda x: x - sin(x)),
    (forms.sinh_excess, 3, lambda x: sinh(x) - x),
    (forms.tan_excess, 3, lambda x: tan(x) - x),
    (forms.arctan_deficit, 3, lambda x: x - arctan(x)),
    (forms.tanh_deficit, 3, lambda x: x - tanh(x)),
    (forms.spherical_excess, 3, lambda x: sin(x) - x * cos(x)),
    (forms.expm1_excess, 2, lambda x: expm1(x) - x),
    (forms.log1p_deficit, 2, lambda x: x - log1p(x)),
)
"""What is left of a difference that vanishes at 0, how often it does, and the difference."""

VANISHES = {
    f.__name__: StableForm.of(forms.vanishing, StableForm.of(f), n, naive)
    for f, n, naive in DEFICITS
}
VANISHING: dict[Any, tuple[int, StableForm]] = {
    SIN: (1, StableForm.of(forms.sinc)),
    SINH: (1, StableForm.of(forms.sinhc)),
    TAN: (1, StableForm.of(forms.tanc)),
    TANH: (1, StableForm.of(forms.tanhc)),
    ATAN: (1, StableForm.of(forms.arctanc)),
    ASIN: (1, StableForm.of(forms.arcsinc)),
    EXPM1: (1, StableForm.of(forms.expm1c)),
    StableForm.of(log1p): (1, StableForm.of(forms.log1pc)),
    **{VANISHES[f.__name__]: (n, StableForm.of(f)) for f, n, _ in DEFICITS},
}
"""What is called -> how often it vanishes at 0, and what is left over that power."""


INVERSE = {
    StableForm.of(forms.expm1c): StableForm.of(forms.bernoulli),
    StableForm.of(forms.sinhc): StableForm.of(forms.x_over_sinh),
}
"""What 1 / f is called where f overflows."""


def vanishing_quotient(rw: Rewriter, term: Term) -> Term | None:
    """f(u)**m / u**k with f(u) = u**n g(u) -> u**(n m - k) g(u)**m"""
    terms = rw.terms
    for base, m in term.parts:
        if base.kind != CALL or base.key not in VANISHING:
            continue
        n, form = VANISHING[base.key]
        u, turn = base.parts[0], 1 if m > 0 else -1
        found = _power_of(terms, term, base, u, -turn, n * abs(m))
        if found is None:
            continue
        k, scale, rest = found
        rw.by = form.name if n == 1 else "vanishing_quotient"
        left = [(u, turn * (n * abs(m) - k))] if n * abs(m) > k else []
        made = (
            (terms.call(INVERSE[form], u), -m)
            if m < 0 and form in INVERSE
            else (terms.call(form, u), m)
        )
        return terms.multiply([made, *left, *rest], scale, loose=True)
    return None


def _power_of(
    terms: Terms, term: Term, base: Term, u: Term, turn: int, most: int
) -> tuple[int, float, list[tuple[Term, int]]] | None:
    """k with u**(turn k) among the others, up to a number, and what else is there."""
    have = {b: e for b, e in term.parts if b is not base}
    inner, c = terms.monomial(u)
    if inner.kind == SUM:
        for b, e in have.items():
            ratio = _ratio(terms, b, u)
            if ratio is not None and 0 < e * turn <= most:
                return abs(e), ratio**e, [(s, n) for s, n in have.items() if s is not b]
        return None
    needed = terms.factors(inner)
    ks = {turn * have.get(b, 0) / e for b, e in needed}
    k = ks.pop()
    if ks or not 0 < k <= most or k != int(k):
        return None
    rest = [(s, n) for s, n in have.items() if all(s is not b for b, _ in needed)]
    return int(k), c ** (-turn * int(k)), rest


def _ratio(terms: Terms, a: Term, b: Term) -> float | None:
    """c with a = c b, for sums."""
    xs, const = terms.addends(a)
    ys, other = terms.addends(b)
    if len(xs) != len(ys) or not ys:
        return None
    c = xs[0][1] / ys[0][1]
    same = all(s is t and near(p, c * q) for (s, p), (t, q) in zip(xs, ys, strict=True))
    return c if same and near(const, c * other) else None


def geometric_sum(rw: Rewriter, term: Term) -> Term | None:
    """(1 - x**n) / (1 - x) -> 1 + x + ... + x**(n-1)"""
    terms = rw.terms
    for below, e in term.parts:
        if below.kind != SUM or e != -1 or len(below.parts) != 1 or not below.key:
            continue
        ((x, c),) = below.parts
        if not near(c, -below.key):
            continue
        for above, k in term.parts:
            if above.kind != SUM or k != 1 or len(above.parts) != 1 or not above.key:
                continue
            ((power, a),) = above.parts
            n = _exponent_over(terms, power, x)
            if n is not None and n > 1 and near(a, -above.key):
                rest = [(b, m) for b, m in term.parts if b is not below and b is not above]
                total = terms.call(StableForm.of(forms.geometric, n), x)
                return terms.multiply([(total, 1), *rest], a / c, loose=True)
    return None


def _exponent_over(terms: Terms, power: Term, x: Term) -> int | None:
    """n with power = x**n."""
    above, below = dict(terms.factors(power)), terms.factors(x)
    ns = {above.get(b, 0) / e for b, e in below}
    if len(above) != len(below) or len(ns) != 1:
        return None
    n = ns.pop()
    return int(n) if n == int(n) else None


# --- differences --------------------------------------------------------------------------------


def _two(term: Term) -> list[tuple[Term, float]] | None:
    """The two terms of a sum of which one is minus the other's kind; a constant counts as one."""
    if term.kind != SUM or len(term.parts) + bool(term.key) != 2:
        return None
    return list(term.parts)


def simpler(terms: Terms, a: Term, b: Term, p: float = 1.0, q: float = 1.0) -> Term | None:
    """p a - q b, if parts of it vanish and it does not change sign by rounding alone."""
    xs, c = terms.addends(a)
    ys, d = terms.addends(b)
    gap = terms.add([(a, p), (b, -q)], loose=True)
    parts, const = terms.addends(gap)
    before = len(xs) + len(ys) + bool(c) + bool(d)
    after = len(parts) + bool(const)
    return gap if 0 < after <= before - 2 else None


def difference_of_roots(rw: Rewriter, term: Term) -> Term | None:
    """sqrt(a) - sqrt(b) -> (a - b) / (sqrt(a) + sqrt(b)), where a - b is shorter"""
    terms = rw.terms
    parts = _two(term)
    if parts is None:
        return None
    roots = [(t, c) for t, c in parts if called(t, SQRT)]
    if len(roots) != len(parts):
        return None
    if len(roots) == 2:
        (s, p), (t, q) = roots
        if p * q > 0:
            return None
        gap = simpler(terms, s.parts[0], t.parts[0], p * p, q * q)
        total = terms.add([(s, p), (t, -q)])
    else:
        ((s, p),) = roots
        if p * term.key > 0:
            return None
        gap = simpler(terms, s.parts[0], terms.number(term.key**2), p * p, 1.0)
        total = terms.add([(s, p)], -term.key)
    return None if gap is None else terms.multiply([(gap, 1), (total, -1)], loose=True)


def difference_of_reciprocals(rw: Rewriter, term: Term) -> Term | None:
    """1 / a - 1 / b -> (b - a) / a / b, where b - a is shorter"""
    terms = rw.terms
    parts = _two(term)
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
    parts = _two(term)
    if parts is None or len(parts) != 2:
        return None
    (s, p), (t, q) = parts
    a, b = _argument_of_log(terms, s), _argument_of_log(terms, t)
    gap = None if a is None or b is None or not near(p, -q) else simpler(terms, a, b)
    if gap is None or b is None:
        return None
    return terms.scaled(terms.call(StableForm.of(forms.log_ratio_difference), b, gap), p)


def _difference(key: Any, form: StableForm) -> Any:
    def rule(rw: Rewriter, term: Term) -> Term | None:
        parts = _two(term)
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
    if root.kind != CALL or not isinstance(root.key, StableForm):
        return None
    if root.key.fn is forms.lengths:
        return terms.add(
            [(terms.multiply([(t, 2)], loose=True), 1.0) for t in root.parts], loose=True
        )
    if root.key.fn is forms.scaled_root:
        pairs = zip(root.parts[::2], root.parts[1::2], strict=True)
        products = [terms.multiply([(x, 1), (y, 1)], loose=True) for x, y in pairs]
        return terms.add(zip(products, root.key.options[0], strict=True), loose=True)
    return None


# --- lengths ------------------------------------------------------------------------------------


def root_of_squares(rw: Rewriter, term: Term, mixed: bool = True) -> Term | None:
    """sqrt(a**2 + b**2 + ...), sqrt(sum(x**2)) -> a length that neither over- nor underflows"""
    terms = rw.terms
    parts, const = terms.addends(term.parts[0])
    if not parts or len(parts) > 8:
        return None
    lengths: list[Term] = []
    for t, c in parts:
        one = _length(terms, t)
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


def _length(terms: Terms, t: Term) -> Term | None:
    """The root of a term that is a square, or a sum of squares along axes."""
    if called(t, ReduceSum):
        inner = _half(terms, t.parts[0])
        if inner is None:
            return None
        x = _in_shape(terms, inner, t.parts[0])
        return terms.call(StableForm.of(forms.norm, t.key.axes, t.key.keepdims), x, shape=t.shape)
    if called(t, ReduceMean) and all(isinstance(t.parts[0].shape[a], int) for a in t.key.axes):
        inner = _half(terms, t.parts[0])
        if inner is None:
            return None
        x = _in_shape(terms, inner, t.parts[0])
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
        one = _length(terms, base) if base is not t and called(base, ReduceSum) else None
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
    x, y = _in_shape(terms, x, whole), _in_shape(terms, y, whole)
    return terms.call(StableForm.of(forms.angle, *options), x, y, shape=dot.shape)


def _length_of(term: Term) -> Term | None:
    """The norm that a term is, or that it is where it is not 0."""
    if called(term, StableForm.of(forms.whole_norm)):
        term = term.parts[0]
    return term if called(term, StableForm) and term.key.fn is forms.norm else None


# --- moments, products, tails -------------------------------------------------------------------


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
        x, y = _in_shape(terms, x, xy), _in_shape(terms, y, xy)
        return terms.scaled(terms.call(form, x, y, shape=joint.shape), p)
    return None


def product_by_logs(rw: Rewriter, term: Term) -> Term | None:
    """exp(sum(log(x))) -> prod(x)"""
    terms = rw.terms
    total = term.parts[0]
    if not called(total, ReduceSum) or not called(total.parts[0], LOG):
        return None
    x = _in_shape(terms, total.parts[0].parts[0], total.parts[0])
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
            form = StableForm.of(forms.scaled_tail if e == 1 else forms.tail_ratio)
            return terms.multiply([(terms.call(form, x), 1), *rest], loose=True)
    return None


def step_of(key: Any) -> Any:
    """The rule for f(x + n) - f(x) of the gamma functions."""

    def rule(rw: Rewriter, term: Term) -> Term | None:
        """gammaln(x + n) - gammaln(x) -> log|x| + ... + log|x + n - 1|"""
        terms = rw.terms
        parts = _two(term)
        if parts is None or len(parts) != 2:
            return None
        (s, p), (t, q) = parts
        if not (called(s, key) and called(t, key) and near(p, -q)):
            return None
        n = terms.add([(s.parts[0], 1.0), (t.parts[0], -1.0)], loose=True)
        if not n.is_number or n.key != round(n.key) or not 0 < abs(n.key) <= 8:
            return None
        low, c = (t.parts[0], p) if n.key > 0 else (s.parts[0], q)
        places = [terms.add([(low, 1.0)], float(k), loose=True) for k in range(abs(round(n.key)))]
        return terms.scaled(_stepped(terms, key, places), c)

    return rule


def _stepped(terms: Terms, key: Any, places: list[Term]) -> Term:
    if key.__name__ == "Digamma":
        return terms.add([(terms.multiply([(x, -1)]), 1.0) for x in places], loose=True)
    return terms.add([(terms.call(LOG, terms.call(ABS, x)), 1.0) for x in places], loose=True)


def log_near_one(rw: Rewriter, term: Term) -> Term | None:
    """log(1 + x) -> log1p(x)"""
    x = term.parts[0]
    if x.kind != SUM or x.key != 1 or not x.parts:
        return None
    return rw.terms.call(StableForm.of(log1p), rw.terms.add([(x, 1.0)], -1.0, loose=True))
