"""Stable forms by themselves, value and slopes beside many digits."""

import math

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.healing import forms
from graphgrad.healing.forms import StableForm

from ..each import every

mp = pytest.importorskip("mpmath")
INF = math.inf
ONE = {
    "log1p_inverse": (lambda x: mp.log(1 + 1 / x), [1e-300, 1e-8, 0.9, 1.1, 1e20]),
    "x_log1p_inverse": (lambda x: x * mp.log(1 + 1 / x), [1e-300, 1e-8, 0.9, 1.1, 1e20]),
    "log_sinhc": (lambda x: mp.log(mp.sinh(x) / x), [-1e-20, 0.9, -1.1, 30.0, 800.0]),
    "log_softplus": (lambda x: mp.log(mp.log(1 + mp.exp(x))), [-700.0, -0.1, 0.1, 40.0]),
    "log_sigmoid_slope": (lambda x: -mp.log(2 + 2 * mp.cosh(x)), [-1e-20, 0.3, 40.0]),
    "logit": (
        lambda x: mp.log(x / (1 - x)),
        [1e-300, 0.24, 0.26, 0.5000001, 0.50003, 0.74, 1 - 1e-9],
    ),
    "log_less_tangent": (lambda x: x - mp.log(x) - 1, [1e-9, 0.49, 0.51, 1 + 1e-9, 1.6, 1e9]),
    "log_square_less_tangent": (
        lambda x: x * x - 2 * mp.log(x) - 1,
        [1e-9, 0.8, 1 + 1e-9, 1.3, 1e9],
    ),
    "log_erfc": (lambda x: mp.log(mp.erfc(x)), [-3.0, -1e-20, 1e-9, 0.5, 5.0]),
    "inverse_expm1": (lambda x: 1 / mp.expm1(x), [-30.0, -1e-9, 1e-9, 0.5, 30.0, 700.0]),
    "sech": (lambda x: 1 / mp.cosh(x), [-700.0, -1e-9, 0.5, 30.0]),
    "csch": (lambda x: 1 / mp.sinh(x), [-700.0, -1e-9, 0.5, 41.0]),
    "softsign": (lambda x: x / (1 + abs(x)), [-1e20, 0.5, 1e20]),
    "langevin": (lambda x: 1 / mp.tanh(x) - 1 / x, [-1e-20, 0.9, 1.1, 40.0]),
    "bose": (lambda x: 1 / mp.expm1(x) - 1 / x, [-1e-20, 1.9, 2.1, 800.0]),
}
TWO = {
    "compound": (lambda x, y: (1 + x) ** y, [1e-20, 1e-9, 0.013, 0.75, 3.5], [1e-20, 2.5, 577.2]),
    "compound_less_one": (
        lambda x, y: (1 + x) ** y - 1,
        [1e-20, 1e-9, 0.01, 0.75, 3.5],
        [1e-20, 1.0, 2.5, 577.2],
    ),
    "divergence": (
        lambda x, y: x * mp.log(x / y) - x + y,
        [1e-20, 0.3, 0.4, 1.6],
        [0.3000001, 1.0],
    ),
    "divergence_of_two": (
        lambda x, y: x * mp.log(x / y) + (1 - x) * mp.log((1 - x) / (1 - y)),
        [1e-20, 0.3],
        [0.3000001, 0.9],
    ),
    "log_ratio_less_tangent": (
        lambda x, y: y / x + mp.log(x / y) - 1,
        [1e-9, 0.3, 5.0],
        [0.3000001, 1e9],
    ),
    "log_share_of_exp": (
        lambda x, y: mp.log(y / (y + mp.exp(x))),
        [-40.0, 0.5, 30.0, 800.0],
        [1e-9, 0.5, 1e5],
    ),
    "log_exp_share": (
        lambda x, y: mp.log(mp.exp(x) / (y + mp.exp(x))),
        [-800.0, -40.0, 0.5, 30.0],
        [1e-9, 0.5, 1e5],
    ),
    "log_sigmoid_difference": (
        lambda x, y: mp.log(1 / (1 + mp.exp(-x)) - 1 / (1 + mp.exp(-y))),
        [1.0, 30.0],
        [0.5, -30.0],
    ),
    "difference_of_squares": (lambda x, y: x * x - y * y, [1.0, 1e8], [1e8 + 1, 3.0]),
}
ALL = {name: (f, [(x,) for x in xs]) for name, (f, xs) in ONE.items()}
ALL.update({name: (f, [(x, y) for x in xs for y in ys]) for name, (f, xs, ys) in TWO.items()})


def of(form, *args):
    """The value of a form, and its slopes."""
    with gg.Graph():
        xs = [gg.placeholder(()) for _ in args]
        y = form(*xs)
        run = gg.compile(xs, [y, *gg.gradients(y, xs, unconnected="zero")], optimize=False)
    with np.errstate(all="ignore"):
        return [float(v) for v in run(*[np.float64(a) for a in args])]


def truth(f, args):
    """The value, and the derivatives by central differences."""
    with mp.workdps(1200):
        q = [mp.mpf(a) for a in args]
        made = [f(*q)]
        for i, a in enumerate(q):
            h = abs(a) * mp.mpf(10) ** -350
            ends = ([t + s * h * (j == i) for j, t in enumerate(q)] for s in (1, -1))
            up, down = (f(*end) for end in ends)
            made.append((up - down) / (2 * h))
        return [float(v) if abs(v) < mp.mpf(10) ** 308 else math.copysign(INF, v) for v in made]


@pytest.mark.parametrize("name", every(2, ALL))
def test_a_form_and_its_slopes_are_right_to_the_last_bits(name):
    pytest.importorskip("scipy")
    f, points = ALL[name]
    for args in points:
        got = of(getattr(forms, name), *args)
        np.testing.assert_allclose(got, truth(f, args), 3e-14, 1e-307, err_msg=f"{name}{args}")


def test_compound_interest_has_the_digits_of_a_power():
    assert of(forms.compound, 0.01, 1.0)[0] == 1.01
    np.testing.assert_allclose(of(forms.compound_less_one, 0.01, 1.0)[0], 0.01, rtol=3e-16)
    np.testing.assert_allclose(of(forms.compound, 1e-9 / 3, 1e9)[0], math.exp(1 / 3), rtol=4e-10)
    assert of(forms.compound, 0.5, INF)[0] == INF
    assert of(forms.compound_less_one, -3.0, 3.0)[0] == -9.0


def test_a_gap_that_is_infinite_is_the_difference_itself():
    assert of(forms.gap_by_roots, INF, 1e200, 1.0) == [1e200, 0.0, 1.0, -1.0]
    assert of(forms.gap_by_roots, 5.0, 3.0, 2.0)[0] == 1.0
    assert of(forms.gap_by_reciprocals, INF, 2.0, INF) == [0.5, 0.0, -0.25, 0.0]
    assert of(forms.gap_by_reciprocals, 2.0, 2.0, 4.0)[0] == 0.25


@pytest.mark.parametrize(
    ("args", "want"),
    [
        ((1.0, -1.0, -2.0), [math.nan]),
        ((-1e5, 1e-5, 1e5 + 1e-5), [math.log(1e-5 / (1e5 + 1e-5)), 0.0, 1e5, -1 / (1e5 + 1e-5)]),
        ((1.0, 3.0, 2.0), [math.log(1.5), 1 / 3, 0.0, -1 / 6]),
        ((INF, INF, 1.0), [INF]),
    ],
)
def test_a_difference_of_logarithms_is_taken_by_the_ratio_only_near_1(args, want):
    np.testing.assert_allclose(of(forms.log_ratio_difference, *args)[: len(want)], want, 1e-15)


@pytest.mark.parametrize("form", [forms.log_share_of_exp, forms.log_exp_share])
def test_shares_with_a_negative_weight_are_what_was_written(form):
    first = form is forms.log_share_of_exp
    want = math.log(-8 / (-8 + math.e)) if first else math.nan
    np.testing.assert_allclose(of(form, 1.0, -8.0)[0], want, rtol=1e-15)


def test_poles_cancel_as_far_as_the_slowest_of_them_is_near():
    csch, left = StableForm.of(forms.csch), StableForm.of(forms.langevin)
    coth = StableForm.of(forms.reciprocal_of, gg.tanh(gg.constant(0.0)).node.op)
    poles = ((left, coth, 8.0, 1.0), (left, coth, 1.0, -0.125))
    for x in (1e-20, 0.3, 0.9, 1.1, 30.0):
        want = truth(lambda x: 1 / mp.tanh(8 * x) - 0.125 / mp.tanh(x), (x,))
        made = of(lambda t: forms.cancelled_poles(poles, t), x)
        np.testing.assert_allclose(made, want, rtol=1e-13)
    assert of(csch, 1.0)[0] == 1 / math.sinh(1.0)


def test_norms_and_moments():
    x = gg.placeholder((3,))
    y = forms.norm((0,), False, x)
    run = gg.compile(x, [y, gg.gradients(1e-200 * y, x), gg.gradients(gg.gradients(y, x)[0], x)])
    value, slope, second = run(np.array([3e-200, 0.0, 4e-200]))
    assert value == pytest.approx(5e-200, rel=1e-15)
    np.testing.assert_allclose(slope, [6e-201, 0.0, 8e-201], rtol=1e-15)
    np.testing.assert_allclose(second, [1.28e199, 0.0, -0.96e199], rtol=1e-14)
    assert run(np.zeros(3))[1].tolist() == [0.0, 0.0, 0.0]
    at = np.array([1.0, 2.0, 4.0]) + 1e13 / 3
    with mp.workdps(60):
        exact = [mp.mpf(a) - mp.fsum(at.tolist()) / 3 for a in at.tolist()]
        spread = float(mp.fsum(e * e for e in exact) / 3)
    assert gg.compile(x, forms.variance((0,), False, x))(at) == pytest.approx(spread, rel=1e-14)


def test_near_a_mean_of_exponentials():
    x = gg.placeholder((2,))
    run = gg.compile(x, forms.log_mean((0,), True, x))
    want = math.log1p((math.expm1(1e-3) + math.expm1(2e-3)) / 2)
    np.testing.assert_allclose(run(np.array([1e-3, 2e-3])), [want], rtol=1e-15)
