"""Every identity of the table is shown by sampling in many digits, and in float64."""

import math

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.healing.many_digits import floats, run
from graphgrad.healing.table import IDENTITIES

FEW = {"gammaln_step": 200, "betaln": 200}
"""Digits where mpmath's functions are slow."""
MATRICES = ("log_det", "solve", "solve_matrix")
LIMITS = ("x_log_x", "x_log_y", "log1p_times")
"""What is right but at 0, where it is 0 times infinity."""
TAILS = ("tail_ratio", "scaled_tail", "log_erfc")
"""Whose terms cancel in the gradient as x**2 grows, as they do in what is written."""
UNREAD = ("digamma_step",)
"""Whose derivatives mpmath is not asked for here."""
ROUNDED = 1.1e-16
POINTS = [s * 10.0**e for e in (-160, -20, -8, -2) for s in (1, -1)]
POINTS += [
    s * p for p in (0.3, 1.5, 6.0, 6.5, 30.0, 400.0, 800.0, 1e5, 1e12, 1e160) for s in (1, -1)
]
POINTS += [1 + 1e-9, 1 - 1e-9]


def built(identity, shape=None, dtype="float64"):
    """Inputs, what is written and what it becomes, each with its gradients, and what fired."""
    shapes = identity.shapes if shape is None else (shape,) * identity.arity
    with gg.Graph():
        xs = [gg.placeholder(s, dtype=dtype) for s in shapes]
        y = identity.naive(*xs)
        made = gg.heal(y)
        both = [gg.sum(y), gg.sum(made.ys)]
        naive, stable = ([t, *gg.gradients(t, xs, unconnected="zero")] for t in both)
    return xs, naive, stable, [site.name for site in made.sites]


def samples(identity, shapes, count):
    """Arguments of all exponents between which both are defined."""
    rng = np.random.default_rng(0)
    known = [np.array([p for p in POINTS if a < p < b]) for a, b in identity.ranges]
    for k in range(count):
        if identity.name in MATRICES:
            yield [rng.normal(size=s) + (2 * np.eye(s[0]) if s[0] == s[-1] else 0) for s in shapes]
        elif len(known) == 1 and shapes == ((),):
            if k < len(known[0]):
                yield [known[0][k]]
        else:
            args = [rng.choice(p, size=s) for p, s in zip(known, shapes, strict=True)]
            near = args[0] * (1 + 1e-7)
            low, high = identity.ranges[-1]
            if len(args) == 2 and k % 4 == 0 and np.all((low < near) & (near < high)):
                args[1] = near
            yield args


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda i: i.name)
def test_the_identity_fires_on_what_it_says_it_rewrites(identity):
    *_, fired = built(identity)
    assert fired


@pytest.mark.parametrize(
    "identity",
    [
        pytest.param(each, marks=pytest.mark.ci if i % 3 else (), id=each.name)
        for i, each in enumerate(IDENTITIES)
    ],
)
def test_it_is_nearer_to_the_truth_somewhere_and_worse_nowhere(identity):
    """Values and gradients against the naive form in many digits. Worse is more than 4 last bits,
    and as many as an argument of exp is large: its own rounding costs these."""
    if identity.name in UNREAD:
        pytest.skip("its second derivatives are of polygamma")
    pytest.importorskip("scipy")
    xs, naive, stable, _ = built(identity)
    digits = FEW.get(identity.name, 800)
    before, after = gg.compile(xs, naive, optimize=False), gg.compile(xs, stable)
    better, worse = identity.name in LIMITS, []
    for args in samples(identity, identity.shapes, 26):
        truth = [floats(v) for v in run(xs, naive, args, digits)]
        if math.isnan(truth[0]):
            continue
        most = max(min(float(np.max(np.abs(a))), 800.0) for a in args)
        slack = 4 + most + (16 + most**2 if identity.name in TAILS else 0)
        slack *= 100 if identity.name in MATRICES else 1
        floor = 1.0 if identity.name in (*MATRICES, "softmax") else 1e-290
        if identity.name == "mean_by_softmax":
            floor = float(np.max(np.abs(args[1])))
        if identity.name == "weighted_share":  # its slopes are differences of shares, or tiny
            floor = max(1e-145, float(np.abs(truth[0])))
        with np.errstate(all="ignore"):
            old, new = before(*args), after(*args)
        for want, was, now in zip(truth, old, new, strict=True):
            size = np.max(np.abs(np.where(np.isfinite(want), want, 0.0)), initial=floor)
            with np.errstate(all="ignore"):
                lost, loses = (np.abs(v - want) / size / ROUNDED for v in (was, now))
            lost = np.where(was == want, 0.0, np.where(np.isnan(lost), np.inf, lost))
            loses = np.where(now == want, 0.0, np.where(np.isnan(loses), np.inf, loses))
            known = ~np.isnan(want)
            better = better or bool(np.any((loses < lost)[known]))
            if np.any((loses > lost + slack)[known]):
                worse.append((args, want, was, now))
    assert worse == []
    assert better


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda i: i.name)
def test_values_are_equal_in_many_digits_away_from_series(identity):
    """A series of float64 coefficients ends where float64 does: there 14 digits are asked for."""
    if identity.name in (*UNREAD, *MATRICES, "gammaln_step", "betaln", "product_by_logs"):
        pytest.skip("shown in float64 above")
    xs, naive, stable, _ = built(identity)
    for args in samples(identity, identity.shapes, 3):
        (want,), (got,) = (run(xs, t[:1], args, 800) for t in (naive, stable))
        if math.isnan(float(want.item())) or not math.isfinite(float(want.item())):
            continue
        gap = abs(float((got.item() - want.item()) / (abs(want.item()) + 1e-300)))
        assert gap < 1e-14, (args, want, got)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda i: i.name)
def test_it_fires_in_other_shapes(identity, shape):
    if any(identity.shapes):
        pytest.skip("of its own shapes")
    *_, fired = built(identity, shape)
    assert fired


def test_there_are_sixty_and_their_names_are_unique():
    names = [i.name for i in IDENTITIES]
    assert len(names) >= 60
    assert len(set(names)) == len(names)
    assert {i.kind for i in IDENTITIES} == {"peephole", "regimes", "scaling", "closed form"}
    assert all(i.written and i.now and i.wrong and i.source for i in IDENTITIES)
