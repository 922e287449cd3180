"""Functions of which only values are known."""

import numpy as np

import graphgrad as gg
from graphgrad import rules

from ..differentiate.helpers import value, values

XS = np.array([0.3, -0.7, 1.1])


def test_spsa_is_right_on_average():
    x, seed = gg.placeholder((3,), name="x"), gg.placeholder((), "int64", name="seed")
    with gg.override_gradient(rules.spsa(gg.sin, samples=4, seed=seed)):
        y = gg.sin(x)
    f = gg.compile([x, seed], gg.gradients(y, x, np.array([1.0, 2.0, -1.0])))
    draws = np.array([f(XS, k) for k in range(500)])
    assert draws.std(axis=0).min() > 0.1
    np.testing.assert_allclose(draws.mean(axis=0), [1, 2, -1] * np.cos(XS), atol=0.15)
    np.testing.assert_array_equal(f(XS, 7), f(XS, 7))


def test_spsa_in_one_dimension_is_a_central_difference():
    x = gg.placeholder((), name="x")
    y = rules.black_box(np.sin, [x], [((), "float64")], step=1e-4)
    np.testing.assert_allclose(value(gg.gradients(y, x), {x: 0.3}), np.cos(0.3), rtol=1e-7)


def test_a_black_box_with_the_users_adjoint():
    x, k = gg.placeholder((3,), name="x"), gg.placeholder((), "int64", name="k")

    def f(x, k):
        return x**k, x.sum()

    def adjoint(x, k, dy, ds):
        return dy * k * x ** (k - 1) + ds

    y, s = rules.black_box(f, [x, k], [((3,), "float64"), ((), "float64")], adjoint)
    dx, dk = gg.gradients([gg.sum(y), s], [x, gg.cast(k, "float64")])
    assert dk is None
    y, s, dx = values([y, s, dx], {x: XS, k: 3})
    np.testing.assert_allclose(y, XS**3)
    np.testing.assert_allclose(dx, 3 * XS**2 + 1)


def test_training_through_a_black_box():
    """SPSA finds the minimum of a function that graphgrad cannot look into."""
    x, seed = gg.variable(XS), gg.placeholder((), "int64", name="seed")
    y = rules.black_box(lambda x: ((x - 2) ** 2).sum(), [x], [((), "float64")], seed=seed)
    step = gg.compile(seed, y, updates={x: x - 0.05 * gg.gradients(y, x)})
    losses = [step(k) for k in range(200)]
    assert losses[-1] < 1e-3 * losses[0]
