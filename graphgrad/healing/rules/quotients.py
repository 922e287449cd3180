"""Quotients that are 0 / 0 where they have a limit."""

from __future__ import annotations

from typing import Any

from ...ops.elementwise.exponential import EXP, EXPM1, LOG, SQRT, TANH, expm1, log1p
from ...ops.elementwise.trigonometry import arctan, cos, sin, sinh, tan, tanh
from .. import forms
from ..forms import StableForm
from ..identity import Rewriter
from ..terms import CALL, PRODUCT, SUM, Term, Terms, near
from .shared import ASIN, ATAN, SIN, SINH, TAN

DEFICITS: tuple[tuple[Any, int, float, Any], ...] = (
    (forms.sin_deficit, 3, 1.0, lambda x: x - sin(x)),
    (forms.sinh_excess, 3, 1.0, lambda x: sinh(x) - x),
    (forms.tan_excess, 3, 0.5, lambda x: tan(x) - x),
    (forms.arctan_deficit, 3, 0.3, lambda x: x - arctan(x)),
    (forms.tanh_deficit, 3, 0.5, lambda x: x - tanh(x)),
    (forms.spherical_excess, 3, 1.0, lambda x: sin(x) - x * cos(x)),
    (forms.expm1_excess, 2, 1.0, lambda x: expm1(x) - x),
    (forms.log1p_deficit, 2, 0.1, lambda x: x - log1p(x)),
)
"""What is left of a difference that vanishes at 0, how often it does, and below which argument it
is better than the difference, which comes last."""

VANISHES = {
    f.__name__: StableForm.of(forms.vanishing, StableForm.of(f), n, radius, naive)
    for f, n, radius, naive in DEFICITS
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
    StableForm.of(forms.log1m_square): (2, StableForm.of(forms.log_one_less_square_over)),
    StableForm.of(forms.log1p_square): (2, StableForm.of(forms.log_one_and_square_over)),
    StableForm.of(forms.log_cosh): (2, StableForm.of(forms.log_cosh_over)),
    StableForm.of(forms.log_cos): (2, StableForm.of(forms.log_cos_over)),
    **{VANISHES[f.__name__]: (n, StableForm.of(f)) for f, n, *_ in DEFICITS},
}
"""What is called -> how often it vanishes at 0, and what is left over that power."""


INVERSE = {
    StableForm.of(forms.expm1c): StableForm.of(forms.bernoulli),
    StableForm.of(forms.sinhc): StableForm.of(forms.x_over_sinh),
    **{
        VANISHING[key][1]: StableForm.of(forms.over, VANISHING[key][1], key)
        for key in (TANH, ATAN, StableForm.of(log1p))
    },
}
"""What 1 / f is called."""


def vanishing_quotient(rw: Rewriter, term: Term) -> Term | None:
    """f(u)**m / u**k with f(u) = u**n g(u) -> u**(n m - k) g(u)**m"""
    terms = rw.terms
    for base, m in term.parts:
        if base.kind != CALL or base.key not in VANISHING:
            continue
        n, form = VANISHING[base.key]
        u, turn = base.parts[0], 1 if m > 0 else -1
        if _is_reciprocal(terms, u):
            continue
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


def _is_reciprocal(terms: Terms, u: Term) -> bool:
    """Whether u is 1 over something: it is 0 nowhere, and its slopes overflow near 0."""
    inner, _ = terms.monomial(u)
    return inner.kind == PRODUCT and all(power < 0 for _, power in inner.parts)


def ratio_of_vanishing(rw: Rewriter, term: Term) -> Term | None:
    """f(u) / g(u), where both vanish at 0 -> u**(n - m) times what is left of them near 0"""
    terms = rw.terms
    known = [(b, e) for b, e in term.parts if b.kind == CALL and b.key in VANISHING]
    for above, k in known:
        for below, m in known:
            if k == 1 and m == -1 and above.parts[0] is below.parts[0]:
                rest = [(b, e) for b, e in term.parts if b is not above and b is not below]
                (n, f), (p, g) = VANISHING[above.key], VANISHING[below.key]
                form = StableForm.of(forms.vanishing_ratio, n - p, f, g, above.key, below.key)
                return terms.multiply([(terms.call(form, *above.parts), 1), *rest], loose=True)
    return None


def _reciprocal(key: Any) -> StableForm:
    form = {SINH: forms.csch, EXPM1: forms.inverse_expm1}.get(key)
    return StableForm.of(forms.reciprocal_of, key) if form is None else StableForm.of(form)


def _without_pole(key: Any, sign: float, left: Any) -> StableForm:
    """What 1 over a call is without its pole, which is noted where that vanishes at 0."""
    power = next(n for f, n, *_ in DEFICITS if f is left) - 2
    parts = (sign, power, StableForm.of(left), VANISHING[key][1], _reciprocal(key))
    made = LANGEVIN if key is TANH else StableForm.of(forms.without_pole, *parts, 0)
    if power:
        VANISHING[made] = 1, StableForm.of(forms.without_pole, *parts, 1)
    return made


LANGEVIN = StableForm.of(forms.langevin)


POLES: dict[Any, StableForm] = {
    TANH: _without_pole(TANH, -1.0, forms.tanh_deficit),
    EXPM1: StableForm.of(forms.bose),
    SIN: _without_pole(SIN, -1.0, forms.sin_deficit),
    SINH: _without_pole(SINH, 1.0, forms.sinh_excess),
    TAN: _without_pole(TAN, 1.0, forms.tan_excess),
    ATAN: _without_pole(ATAN, -1.0, forms.arctan_deficit),
    StableForm.of(log1p): _without_pole(StableForm.of(log1p), -1.0, forms.log1p_deficit),
}
"""What is called and is x + ... near 0 -> what 1 over it is without 1 / x."""


def poles_that_cancel(rw: Rewriter, term: Term) -> Term | None:
    """a / sin(b u) - c / u, where that is finite at 0 -> what both are without their poles"""
    terms = rw.terms
    found = next((pole for t, _ in term.parts for pole in [_pole(terms, t)] if pole), None)
    if found is None:
        return None
    _, v, rest = found
    u, _ = terms.monomial(v)
    rw.by = "poles_that_cancel"
    poles: list[tuple[Any, StableForm | None, float, float]] = []
    others: list[tuple[Term, float]] = []
    for t, c in term.parts:
        key, v, left = _pole(terms, t) or (None, u, terms.multiply([(t, 1), (u, 1)], loose=True))
        inner, a = terms.monomial(v)
        if inner is u and left is rest:
            poles.append((key, None if key is None else POLES[key], a, c))
        else:
            others.append((t, c))
    residues = [c / a for *_, a, c in poles]
    if len(poles) < 2 or abs(sum(residues)) > 1e-15 * max(map(abs, residues)):
        return None
    if len(poles) == 2 and any(key is None for key, *_ in poles):
        ((key, form, a, c),) = [pole for pole in poles if pole[0] is not None]
        made = terms.scaled(terms.call(form, terms.scaled(u, a)), c)
        rw.by = {TANH: "langevin", EXPM1: "bose"}.get(key, rw.by)
    else:
        parts = tuple([(left, key and _reciprocal(key), a, c) for key, left, a, c in poles])
        made = terms.call(StableForm.of(forms.cancelled_poles, parts), u)
    return terms.add(
        [(terms.multiply([(made, 1), (rest, 1)], loose=True), 1.0), *others], term.key, loose=True
    )


def _pole(terms: Terms, t: Term) -> tuple[Any, Term, Term] | None:
    """What is called, of what, and the other factors of a term with a pole."""
    for base, e in terms.factors(t):
        if e == -1 and base.kind == CALL and base.key in POLES:
            return base.key, base.parts[0], terms.multiply([(t, 1), (base, 1)], loose=True)
    return None


DIVIDED: dict[Any, StableForm] = {
    EXP: StableForm.of(forms.divided_exp),
    LOG: StableForm.of(forms.divided_log),
    SQRT: StableForm.of(forms.divided_root),
    StableForm.of(forms.exp_difference): StableForm.of(forms.divided_exp),
    StableForm.of(forms.sin_difference): StableForm.of(forms.divided_sin),
    StableForm.of(forms.cos_difference): StableForm.of(forms.divided_cos),
}
"""What a function, or the difference of it, is called over the difference of arguments."""


def divided_difference(rw: Rewriter, term: Term) -> Term | None:
    """(exp(x) - exp(y)) / (x - y) -> exp((x + y) / 2) sinh((x - y) / 2) / ((x - y) / 2)"""
    terms = rw.terms
    for below, e in term.parts:
        if below.kind != SUM or e != -1:
            continue
        for above, k in term.parts:
            pair = _difference_in(above) if k == 1 else None
            if pair is None:
                continue
            form, x, y, c = pair
            ratio = _ratio(terms, below, terms.add([(x, 1.0), (y, -1.0)], loose=True))
            if ratio is not None:
                rest = [(b, n) for b, n in term.parts if b is not below and b is not above]
                return terms.multiply([(terms.call(form, x, y), 1), *rest], c / ratio, loose=True)
    return None


def _difference_in(above: Term) -> tuple[StableForm, Term, Term, float] | None:
    """(form, x, y, c) of c (f(x) - f(y))."""
    if above.kind == CALL and above.key in DIVIDED and len(above.parts) == 2:
        return DIVIDED[above.key], *above.parts, 1.0
    if above.kind != SUM or above.key or len(above.parts) != 2:
        return None
    (s, p), (t, q) = above.parts
    if not near(p, -q) or s.kind != CALL or t.kind != CALL or s.key is not t.key:
        return None
    form = DIVIDED.get(s.key) if len(s.parts) == 1 else None
    return None if form is None else (form, s.parts[0], t.parts[0], p)


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
    k = min(min(int(turn * have.get(b, 0) / e) for b, e in needed), most)
    if k <= 0:
        return None
    left = {**have, **{b: have[b] - turn * k * e for b, e in needed}}
    return k, c ** (-turn * k), [(s, n) for s, n in left.items() if n]


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


OF_PRODUCTS = (vanishing_quotient, ratio_of_vanishing, divided_difference, geometric_sum)


def _exponent_over(terms: Terms, power: Term, x: Term) -> int | None:
    """n with power = x**n."""
    above, below = dict(terms.factors(power)), terms.factors(x)
    ns = {above.get(b, 0) / e for b, e in below}
    if len(above) != len(below) or len(ns) != 1:
        return None
    n = ns.pop()
    return int(n) if n == int(n) else None
