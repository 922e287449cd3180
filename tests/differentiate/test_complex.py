"""Complex numbers have no gradient: one that would flow through them is an error."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphgrad as gg

from .helpers import value

THROUGH = "no gradients of complex numbers"
TURN = 1j * np.ones(3)


def wave(x):
    return gg.exp(1j * x) * x


@pytest.mark.parametrize("part", [gg.real, gg.imag, gg.abs])
@pytest.mark.parametrize("unconnected", ["none", "zero"])
def test_S33_a_gradient_through_complex_numbers_is_an_error_that_says_where(part, unconnected):
    x = gg.placeholder((3,), name="x")
    y = gg.sum(gg.sin(part(wave(x)))) + gg.sum(x)
    with pytest.raises(gg.GradientError, match=THROUGH) as error:
        gg.gradients(y, x, unconnected=unconnected)
    assert "test_complex.py" in str(error.value)
    assert "complex128[3]" in str(error.value)


def test_S33_no_derivative_is_lost_in_complex_numbers():
    x = gg.placeholder((3,), name="x")
    y = gg.sum(abs(wave(x)) ** 2) + gg.sum(x)
    for ask in (
        lambda: gg.jvp(y, x),
        lambda: gg.vjp(y, x, 1.0),
        lambda: gg.jacobian(y, x),
        lambda: gg.hessian(y, x),
        lambda: gg.hvp(y, x, gg.ones_like(x)),
        lambda: gg.value_and_grad(y, x),
    ):
        with pytest.raises(gg.GradientError, match=THROUGH):
            ask()


def test_S33_complex_ys_xs_and_gradients_are_of_the_wrong_dtype():
    x = gg.placeholder((3,))
    z = gg.placeholder((3,), "complex128")
    y = gg.sin(x)
    for ask in (
        lambda: gg.gradients(z, x),
        lambda: gg.gradients(y, z),
        lambda: gg.gradients(y, x, TURN),
        lambda: gg.gradients(y, x, gg.constant(TURN)),
        lambda: gg.jvp(y, x, TURN),
        lambda: gg.jvp(gg.sum(x), [x[0], x], [1j, None]),
        lambda: gg.hvp(gg.sum(y), x, TURN),
    ):
        with pytest.raises(gg.DTypeError, match="complex"):
            ask()


def test_S33_complex_numbers_that_do_not_depend_on_x_are_in_nobodys_way():
    x, z = gg.placeholder((3,)), gg.placeholder((3,), "complex128")
    y = gg.sum(x * abs(z * 2j)) + gg.sum(abs(gg.exp(1j * gg.placeholder(()))))
    feeds = {x: np.ones(3), z: np.array([1j, 3.0, 4j])}
    dx = gg.gradients(y, x)
    np.testing.assert_array_equal(value(dx, feeds), [2, 6, 8])


def test_S33_what_is_stopped_before_or_behind_complex_numbers_is_no_error():
    x = gg.placeholder((3,))
    z = wave(x)
    for lost in (
        gg.real(gg.stop_gradient(z)),
        gg.stop_gradient(gg.real(z)),
        gg.real(wave(gg.stop_gradient(x))),
        gg.zero_gradient(gg.real(z)),
        gg.cast(z == 1j, "float64"),
    ):
        dx = gg.gradients(gg.sum(lost * x), x)
        feeds = {x: np.array([0.5, 1.0, 2.0])}
        np.testing.assert_array_equal(value(dx, feeds), value(lost, feeds))
    dx = gg.gradients(gg.sum(gg.real(z) + x), x, stop_gradients=z)
    np.testing.assert_array_equal(value(dx, {x: np.ones(3)}), np.ones(3))


def test_S33_rules_are_not_asked_about_complex_outputs():
    x = gg.placeholder((3,))
    with gg.override_gradient(lambda site, dy: dy):
        z = gg.exp(1j * x)
    with pytest.raises(gg.GradientError, match=THROUGH):
        gg.gradients(gg.sum(gg.real(z)), x)


@pytest.mark.parametrize("rule", [lambda site, dy: gg.NO_GRAD, lambda site, dy: site.default(dy)])
def test_S33_a_region_that_reads_complex_numbers_on_the_path_is_an_error(rule):
    x = gg.placeholder((3,))
    z = wave(x)
    with gg.override_gradient(rule):
        y = abs(z)
    with pytest.raises(gg.GradientError, match=THROUGH):
        gg.gradients(gg.sum(y), x)


def test_S33_a_region_beside_complex_numbers_has_its_rule():
    x, z = gg.placeholder((3,)), gg.placeholder((3,), "complex128")
    with gg.override_gradient(lambda site, dy: (gg.NO_GRAD, 2 * site.default(dy)[1])):
        y = gg.real(z) * x
    feeds = {x: np.ones(3), z: np.array([1.0, 2.0, 3.0]) + 0j}
    np.testing.assert_array_equal(value(gg.gradients(gg.sum(y), x), feeds), [2, 4, 6])


def test_S33_a_rule_may_speak_for_complex_numbers_inside_its_region():
    x = gg.placeholder((3,))
    with gg.override_gradient(lambda site, dy: 5 * dy):
        y = abs(wave(x))
    with gg.override_gradient(lambda site, dy: site.default(dy)):
        by_default = abs(wave(x))
    assert value(gg.gradients(gg.sum(y), x), {x: np.ones(3)}).tolist() == [5, 5, 5]
    with pytest.raises(gg.GradientError, match=THROUGH):
        gg.gradients(gg.sum(by_default), x)


def test_S33_a_custom_gradient_may_speak_for_complex_numbers_inside():
    @gg.custom_gradient
    def modulus(x):
        return abs(wave(x)), lambda dy: 7 * dy

    x = gg.placeholder((3,))
    assert value(gg.gradients(gg.sum(modulus(x)), x), {x: np.ones(3)}).tolist() == [7, 7, 7]


def test_S33_complex_numbers_that_a_branch_reads_are_not_passed_by():
    x, flag = gg.placeholder((3,)), gg.placeholder((), "bool")
    z = wave(x)
    y = gg.cond(flag, lambda: gg.sum(abs(z)), lambda: gg.sum(x))
    inside = gg.cond(flag, lambda: gg.sum(abs(wave(x))), lambda: gg.sum(x))
    for loss in (y, inside):
        with pytest.raises(gg.GradientError, match=THROUGH):
            gg.gradients(loss, x)
    stopped = gg.stop_gradient(z)
    y = gg.cond(flag, lambda: gg.sum(abs(stopped) * x), lambda: gg.sum(x))
    dx = gg.gradients(y, x)
    assert value(dx, {x: np.ones(3), flag: False}).tolist() == [1, 1, 1]


def test_S33_a_gradient_asked_in_a_branch_flows_out_of_it_or_is_an_error():
    x, w, flag = gg.placeholder((3,)), gg.placeholder((3,), "complex128"), gg.constant(True)
    z = wave(x)

    def asked(captured):
        return lambda: gg.gradients(gg.sum(abs(captured * 2.0) * x), x)

    with pytest.raises(gg.GradientError, match=THROUGH):
        gg.cond(flag, asked(z), lambda: gg.zeros_like(x))
    with pytest.raises(gg.GradientError, match=THROUGH):
        gg.cond(flag, lambda: gg.gradients(gg.sum(abs(z)), x), lambda: gg.zeros_like(x))
    y = gg.cond(flag, asked(w), lambda: gg.zeros_like(x))
    assert value(y, {x: np.ones(3), w: np.array([1j, 2, 3])}).tolist() == [2, 4, 6]


def test_S33_a_batch_of_examples_loses_nothing_in_complex_numbers():
    x = gg.placeholder((4, 3))

    def loss(row):
        return gg.sum(abs(wave(row)))

    with pytest.raises(gg.GradientError, match=THROUGH):
        gg.vmap(lambda row: gg.gradients(loss(row), row))(x)
    with pytest.raises(gg.GradientError, match=THROUGH):
        gg.gradients(gg.sum(gg.vmap(loss)(x)), x)


def test_S33_copies_lose_nothing_in_complex_numbers():
    with gg.Graph() as graph:
        x = gg.placeholder((3,), name="x")
        gg.identity(gg.sum(abs(wave(x))), name="loss")
    copy = pickle.loads(pickle.dumps(graph))
    with pytest.raises(gg.GradientError, match=THROUGH):
        gg.gradients(copy.nodes[-1].outputs[0], copy.nodes[0].outputs[0])


def test_S33_a_region_reads_complex_numbers_for_the_outputs_that_have_a_gradient_alone():
    x = gg.placeholder((), name="x")
    c = gg.cast(x, "complex128")
    with gg.override_gradient(lambda site, *dys: [3.0 * site.default(*dys)[0], gg.NO_GRAD]):
        u, v = gg.sin(x), gg.real(c)
    assert gg.evaluate(gg.gradients(u, x), {x: 0.5}) == 3.0 * np.cos(0.5)
    with pytest.raises(gg.GradientError, match="no gradients of complex"):
        gg.gradients(v, x)
