"""Every identity of the table is shown by sampling in many digits, and in float64."""

import math

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.healing.many_digits import floats, run
from graphgrad.healing.table import IDENTITIES

from ..each import every

FEW = {"gammaln_step": 200, "betaln": 200}
"""Digits where mpmath's functions are slow."""
MATRICES = ("log_det", "solve", "solve_matrix")
ROUNDED = ("log_cosh_of_softplus",)
"""What has a number in it that is rounded."""
LIMITS = ("x_log_x", "x_log_y", "log1p_times")
"""What is right but at 0, where it is 0 times infinity."""
TAILS = ("tail_ratio", "scaled_tail", "log_erfc")
"""Whose terms cancel in the gradient as x**2 grows, as they do in what is written."""
UNREAD = ("digamma_step",)
"""Whose derivatives mpmath is not asked for here."""
ANGLES = ("angle",)
"""Whose directions are rounded: nothing is known of an angle below the last bit of 1."""
SHARES = ("softmax", "weighted_share")
"""Whose slopes are differences of shares."""
EXPONENTS = {"compound_less_one": lambda x, y: y * np.log1p(x)}
"""Arguments of exp that are larger than what is given."""
SELDOM = (
    "root_square_less_one",
    "root_one_less_square",
    "difference_of_exponentials",
    "difference_of_sines",
    "log_square_less_one",
    "arctanh_of_log1p",
    "one_and_cos",
    "variance",
    "covariance",
    "x_log_ratio",
    "logit",
    "log_square_less_tangent",
    "square_of_distance",
    "difference_of_squares",
    "log_cosh_of_softplus",
)
"""What gains at points that are not among those, in fewer bits."""
POINTS = [s * 10.0**e for e in (-160, -20, -8, -2) for s in (1, -1)]
POINTS += [
    s * p for p in (0.3, 1.5, 6.0, 6.5, 30.0, 400.0, 800.0, 1e5, 1e12, 1e160) for s in (1, -1)
]
POINTS += [1 + 1e-9, 1 - 1e-9, 1 + 1e-3, 1 - 1e-3, 0.501]


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


SOME = pytest.mark.parametrize(
    "identity",
    [
        pytest.param(each, marks=pytest.mark.ci if i % 8 else (), id=each.name)
        for i, each in enumerate(IDENTITIES)
    ],
)


def compared(identity, dtype, count):
    """Whether what it becomes is nearer to the truth somewhere, and where it is worse.

    Values and gradients against the naive form in many digits. Worse is more than 4 last bits, and
    as many as an argument of exp is large: its own rounding costs these.
    """
    xs, naive, stable, _ = built(identity, dtype=dtype)
    exact_xs, exact, *_ = built(identity)
    before, after = gg.compile(xs, naive, optimize=False), gg.compile(xs, stable)
    kind, limits = xs[0].dtype, gg.finfo(dtype)
    unit, largest = float(limits.eps) / 2, float(limits.max)
    better, worse = identity.name in LIMITS, []
    for given in samples(identity, identity.shapes, count):
        with np.errstate(all="ignore"):
            cast = [np.asarray(a).astype(kind) for a in given]
        args = [a.astype(float) for a in cast]
        between = zip(args, identity.ranges, strict=False)
        if not all(np.all((low < a) & (a < high)) for a, (low, high) in between):
            continue
        if any(np.any(np.abs(a) < 1e3 * float(limits.smallest_normal)) for a in args):
            continue
        if identity.name == "divided_difference" and np.any(args[0] == args[1]):
            continue  # near each other, and equal in fewer bits: 0 / 0
        truth = [floats(v) for v in run(exact_xs, exact, args, FEW.get(identity.name, 800))]
        if math.isnan(truth[0]):
            continue
        most = max(min(float(np.max(np.abs(a))), 800.0) for a in args)
        if identity.name in EXPONENTS:
            most = max(most, float(np.max(np.abs(EXPONENTS[identity.name](*args)))))
        slack = 4 + most + (16 + most**2 if identity.name in TAILS else 0)
        slack *= 100 if identity.name in MATRICES else 1
        floor = (
            1.0
            if identity.name in (*MATRICES, *SHARES, *ANGLES, *ROUNDED)
            else 8 * float(limits.smallest_normal)
        )
        if identity.name == "mean_by_softmax":
            floor = float(np.max(np.abs(args[1])))
        with np.errstate(all="ignore"):
            old, new = before(*cast), after(*cast)
        for want, was, now in zip(truth, old, new, strict=True):
            want = np.where(np.abs(want) > largest, np.copysign(np.inf, want), want)
            size = np.max(np.abs(np.where(np.isfinite(want), want, 0.0)), initial=floor)
            lost, loses = (_last_bits(np.asarray(v, float), want, size * unit) for v in (was, now))
            known = ~np.isnan(want)
            better = better or bool(np.any((loses < lost)[known]))
            if np.any((loses > lost + slack)[known]):
                worse.append((args, want, was, now))
    return better, worse


def _last_bits(value, want, bit):
    with np.errstate(all="ignore"):
        lost = np.abs(value - want) / bit
    return np.where(value == want, 0.0, np.where(np.isnan(lost), np.inf, lost))


@SOME
def test_it_is_nearer_to_the_truth_somewhere_and_worse_nowhere(identity):
    if identity.name in UNREAD:
        pytest.skip("its second derivatives are of polygamma")
    pytest.importorskip("scipy")
    better, worse = compared(identity, "float64", 26)
    assert worse == []
    assert better


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@SOME
def test_so_it_is_in_fewer_bits(identity, dtype):
    if identity.name in UNREAD or (dtype == "bfloat16" and identity.name in MATRICES):
        pytest.skip("no kernel")
    pytest.importorskip("scipy")
    better, worse = compared(identity, dtype, 20)
    assert worse == []
    assert better or identity.name in SELDOM


@pytest.mark.parametrize("identity", every(2, IDENTITIES), ids=lambda i: i.name)
def test_values_are_equal_in_many_digits_away_from_series(identity):
    """A series of float64 coefficients ends where float64 does: there 14 digits are asked for."""
    if identity.name in (*UNREAD, *MATRICES, *ROUNDED, "gammaln_step", "betaln", "product_by_logs"):
        pytest.skip("shown in float64 above")
    xs, naive, stable, _ = built(identity)
    for args in samples(identity, identity.shapes, 3):
        (want,), (got,) = (run(xs, t[:1], args, 800) for t in (naive, stable))
        if math.isnan(float(want.item())) or not math.isfinite(float(want.item())):
            continue
        gap = abs(float((got.item() - want.item()) / (abs(want.item()) + 1e-300)))
        assert gap < 1e-14, (args, want, got)


@pytest.mark.parametrize("shape", every(2, [(2, 3), (3,)]))
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
