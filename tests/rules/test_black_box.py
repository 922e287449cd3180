"""Functions of which only values are known."""

import numpy as np
import pytest

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


def doubled(made):
    """The gradient of a black box that doubles, by an adjoint that returns made(dy)."""
    x = gg.placeholder((3,), name="x")

    def adjoint(x, dy):
        return made(2 * dy)

    y = rules.black_box(lambda x: 2 * x, [x], [((3,), "float64")], adjoint)
    return value(gg.gradients(gg.sum(y), x), {x: XS})


@pytest.mark.parametrize("made", [np.array, list, tuple, lambda dx: (dx,), lambda dx: [dx]])
def test_an_adjoint_of_one_input_returns_its_gradient_or_a_list_of_it(made):
    np.testing.assert_array_equal(doubled(made), [2.0, 2.0, 2.0])


@pytest.mark.parametrize("made", [lambda dx: (dx, dx), lambda dx: [dx, dx, dx]])
def test_a_wrong_number_of_gradients_names_the_adjoint_and_the_input(made):
    with pytest.raises(gg.ExecutionError, match=r"adjoint 'adjoint' \(.*test_black_box.*for 1 .*x"):
        doubled(made)


@pytest.mark.parametrize("made", [lambda dx: dx, lambda dx: (dx,), lambda dx: (dx, dx, dx)])
def test_a_wrong_number_of_gradients_for_two_inputs(made):
    x, w = gg.placeholder((3,), name="x"), gg.placeholder((3,), name="w")
    y = rules.black_box(
        lambda x, w: x * w, [x, w], [((3,), "float64")], adjoint=lambda x, w, dy: made(dy)
    )
    with pytest.raises(gg.ExecutionError, match=r"adjoint .* 2 floating inputs: x:0, w:0"):
        value(gg.gradients(gg.sum(y), x), {x: XS, w: XS})


def test_an_adjoint_of_a_scalar_may_return_a_tuple_of_one():
    x = gg.placeholder((), name="x")
    y = rules.black_box(np.sin, [x], [((), "float64")], adjoint=lambda x, dy: (dy * np.cos(x),))
    np.testing.assert_allclose(value(gg.gradients(y, x), {x: 0.3}), np.cos(0.3))
