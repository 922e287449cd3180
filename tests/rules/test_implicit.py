"""Implicit layers have the gradient of what they stand for, at two orders, and keep nothing."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import rules

from ..differentiate.helpers import value, values

RNG = np.random.default_rng(0)
W, X, Z = 0.2 * RNG.normal(size=(4, 4)), RNG.normal(size=(3, 4)), np.zeros((3, 4))
A, B = 3 * np.eye(4) + 0.3 * RNG.normal(size=(4, 4)), RNG.normal(size=4)


def first_and_second(y, xs):
    first = gg.gradients(gg.sum(y**3), xs)
    second = gg.gradients(sum(gg.sum(dx**2) for dx in first), xs)
    return [*first, *second]


def assert_equal(found, expected, tolerance=1e-10):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


def test_a_fixed_point_has_the_gradients_of_its_unrolled_iteration():
    x, w = gg.placeholder((3, 4), name="x"), gg.placeholder((4, 4), name="w")
    z = rules.fixed_point(lambda z: gg.tanh(z @ w + x), Z)
    unrolled = gg.constant(Z)
    for _ in range(80):
        unrolled = gg.tanh(unrolled @ w + x)
    feeds = {x: X, w: W}
    found = values([z, *first_and_second(z, [x, w])], feeds)
    assert_equal(found, values([unrolled, *first_and_second(unrolled, [x, w])], feeds))


def test_a_root_has_the_gradients_of_its_newton_steps():
    a, b = gg.placeholder((), name="a"), gg.placeholder((3,), name="b")
    z = rules.root(lambda z: z**3 + a * z - b, np.ones(3))
    newton = gg.constant(np.ones(3))
    for _ in range(12):
        newton = newton - (newton**3 + a * newton - b) / (3 * newton**2 + a)
    feeds = {a: 1.5, b: np.array([0.5, 1.0, 4.0])}
    found = values([z, *first_and_second(z, [a, b])], feeds)
    assert_equal(found, values([newton, *first_and_second(newton, [a, b])], feeds))


def test_a_root_of_coupled_equations():
    a, b = gg.placeholder((4, 4), name="a"), gg.placeholder((4,), name="b")
    z = rules.root(lambda z: gg.sin(z) + a @ z - b, np.zeros(4))
    dz = gg.gradients(gg.sum(z), b)
    z, dz = values([z, dz], {a: A, b: B})
    np.testing.assert_allclose(np.sin(z) + A @ z, B, atol=1e-12)
    np.testing.assert_allclose(dz, np.linalg.solve((np.diag(np.cos(z)) + A).T, np.ones(4)))


def test_a_linear_solve_has_the_gradients_of_the_inverse():
    a, b = gg.placeholder((2, 2), name="a"), gg.placeholder((2,), name="b")
    x = rules.linear_solve(lambda v: a @ v, b)
    det = a[0, 0] * a[1, 1] - a[0, 1] * a[1, 0]
    explicit = gg.stack([a[1, 1] * b[0] - a[0, 1] * b[1], a[0, 0] * b[1] - a[1, 0] * b[0]]) / det
    feeds = {a: A[:2, :2], b: B[:2]}
    found = values([x, *first_and_second(x, [a, b])], feeds)
    assert_equal(found, values([explicit, *first_and_second(explicit, [a, b])], feeds))


def test_tensors_that_depend_on_each_other_are_not_counted_twice():
    p = gg.placeholder((), name="p")
    q = 0.5 * p
    z = rules.fixed_point(lambda z: 0.3 * gg.cos(z) + q + 0.1 * p, 0.0)
    dz = gg.gradients(z, p)
    z, dz = values([z, dz], {p: 1.0})
    np.testing.assert_allclose(dz, 0.6 / (1 + 0.3 * np.sin(z)))


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
def test_what_runs_off_to_infinity_does_not_converge():
    x = gg.placeholder((), name="x")
    for z in (rules.fixed_point(lambda z: x * z + 1.0, 0.0), rules.root(lambda z: x / z, 1.0)):
        with pytest.raises(gg.ExecutionError, match="converge"):
            value(z, {x: 2.0})


def test_an_override_inside_the_equation_counts():
    p = gg.placeholder((), name="p")

    def f(z):
        with gg.override_gradient(rules.scale(2.0)):
            shift = gg.square(p)
        return 0.5 * z + shift

    dz = gg.gradients(rules.fixed_point(f, 0.0), p)
    np.testing.assert_allclose(value(dz, {p: 3.0}), 2 * 2 * 2 * 3.0)


def test_nothing_is_kept_of_the_iterations():
    peaks = []
    for size in (0.1, 0.9):  # some ten, some two hundred iterations
        x = gg.placeholder((100, 100), name="x")
        z = rules.fixed_point(lambda z, size=size, x=x: size * gg.sin(z) + x, np.zeros((100, 100)))
        f = gg.compile(x, gg.gradients(gg.sum(z * z), x))
        peaks.append(f.peak_bytes)
    assert peaks[0] == peaks[1]


def test_without_marks_the_gradient_is_the_same():
    x = gg.placeholder((3, 4), name="x")
    z = rules.fixed_point(lambda z: 0.5 * gg.sin(z) + x, Z)
    marked, plain = gg.gradients(z, x), gg.gradients(z, x, overrides="none")
    marked, plain = values([marked, plain], {x: X})
    np.testing.assert_allclose(marked, plain)


def test_what_does_not_converge_says_so():
    x = gg.placeholder((), name="x")
    grows = rules.fixed_point(lambda z: 2.0 * z + x, 1.0, limit=50)
    circles = rules.root(lambda z: gg.square(z) + x, 0.7, limit=5)
    for t in (grows, circles):
        with pytest.raises(gg.ExecutionError, match="does not converge") as error:
            value(t, {x: 1.0})
        assert "test_implicit.py" in str(error.value)


def test_a_function_of_another_shape_is_refused_at_once():
    with pytest.raises(gg.ShapeError, match="must have the shape"):
        rules.fixed_point(lambda z: gg.sum(z), np.zeros(3))


def test_unknown_lengths():
    x = gg.placeholder(("N",), name="x")
    z = rules.fixed_point(lambda z: 0.5 * gg.cos(z) + x, gg.zeros_like(x))
    z, dz = values([z, gg.gradients(z, x)], {x: np.arange(3.0)})
    np.testing.assert_allclose(dz, 1 / (1 + 0.5 * np.sin(z)))
