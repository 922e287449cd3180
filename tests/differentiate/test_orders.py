"""Higher orders: which reads are outer, which are residuals, and second-order rules."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.elementwise.exponential import exp, log
from graphgrad.ops.elementwise.trigonometry import cos, sin
from graphgrad.ops.sources import identity, placeholder, variable

from .helpers import Spy, default, hidden, value, values


def orders(y, x, n):
    """The first n derivatives."""
    found = []
    for _ in range(n):
        y = gg.gradients(y, x)
        found.append(y)
    return found


# --- S23 -----------------------------------------------------------------------------------------


def test_S23_a_rule_that_reads_its_outputs_is_applied_again():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: dy * site.outputs[0]):
        y = x * x
    assert values(orders(y, x, 3), {x: 3.0}) == [9, 9, 9]


def test_S23_residuals_are_differentiated_by_the_insides_own_derivative():
    @gg.custom_gradient
    def f(x):
        y = x * x
        return y, lambda dy: dy * y

    x = placeholder(())
    assert values(orders(f(x), x, 3), {x: 3.0}) == [9, 6, 2]


def test_S23_custom_gradient_site_outputs_would_be_nine_closure_is_six():
    x = placeholder(())

    @gg.custom_gradient
    def f(x):
        y = x * x
        return y, lambda dy: dy * y

    y = f(x)
    closure = orders(y, x, 2)[1]
    site_outputs = gg.gradients(
        gg.gradients(
            y, x, overrides={gg.default_graph().regions[-1]: lambda s, dy: dy * s.outputs[0]}
        ),
        x,
    )
    assert values([closure, site_outputs], {x: 3.0}) == [6, 9]


def test_S23_d2_does_not_depend_on_whether_a_vjp_was_written_with_x_or_with_y():
    @gg.custom_gradient
    def with_x(x):
        return exp(x), lambda dy: dy * exp(x)

    @gg.custom_gradient
    def with_y(x):
        y = exp(x)
        return y, lambda dy: dy * y

    x = placeholder(())
    a, b = orders(with_x(x), x, 4), orders(with_y(x), x, 4)
    assert values(a, {x: 0.0}) == values(b, {x: 0.0}) == [1, 1, 1, 1]


def test_S23_a_rule_that_reads_hidden_values_reads_residuals():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: dy * hidden(site, "Multiply")):
        h = x * x
        y = sin(h)
    assert values(orders(y, x, 3), {x: 3.0}) == [9, 6, 2]


def test_S23_a_hidden_value_or_an_output_that_a_rule_returns_as_it_is():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: hidden(site, "Multiply")):
        y = sin(x * x)
    assert values(orders(y, x, 3), {x: 3.0}) == [9, 6, 2]
    with gg.override_gradient(lambda site, dy: site.outputs[0]):
        y = x * x
    assert values(orders(y, x, 3), {x: 3.0}) == [9, 9, 9]

    @gg.custom_gradient
    def f(x):
        y = x * x
        return y, lambda dy: y

    assert values(orders(f(x), x, 3), {x: 3.0}) == [9, 6, 2]


def test_S23_inner_rules_are_honoured_by_residuals():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: dy * hidden(site, "Multiply")):
        with gg.override_gradient(lambda site, dh: 11.0 * dh):
            h = x * x
        y = sin(h)
    assert values(orders(y, x, 2), {x: 3.0}) == [9, 11]


def test_S23_inner_stamps_are_honoured_by_residuals():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: dy * hidden(site, "Multiply")):
        with gg.gradient_override_map({"Multiply": lambda site, dh: [11.0 * dh, 0.0]}):
            h = x * x
        y = sin(h)
    assert values(orders(y, x, 2), {x: 3.0}) == [9, 11]


def test_S23_the_default_of_a_region_honours_inner_rules_at_second_order():
    x = placeholder(())
    with gg.override_gradient(default):
        with gg.override_gradient(lambda site, dh: dh * site.outputs[0]):
            h = x * x
        y = h * 5.0
    with gg.override_gradient(lambda site, dh: dh * site.outputs[0]):
        h = x * x
    assert values(orders(y, x, 3), {x: 3.0}) == values(orders(h * 5.0, x, 3), {x: 3.0})


def test_S23_both_contributions_add_and_none_counts_twice():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: dy * site.outputs[0] * hidden(site, "Sin")):
        y = exp(sin(x))
    g1, g2 = orders(y, x, 2)
    s, c = np.sin(0.3), np.cos(0.3)
    e = np.exp(s)
    assert value(g1, {x: 0.3}) == pytest.approx(e * s)
    assert value(g2, {x: 0.3}) == pytest.approx((e * s) * s + e * c)  # rule again, and inside


def test_S23_a_value_read_in_both_ways():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: dy * site.outputs[0] + site.default(dy)[0]):
        y = exp(x)
    # g = y + e^x: of the outer y comes g again, of the residual e^x
    assert values(orders(y, x, 3), {x: 0.0}) == [2, 3, 4]


def test_S23_which_reads_are_outer_is_settled_when_the_rule_is_called():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: dy * site.outputs[0]):
        y = x * x
    outer = gg.gradients(y, x)
    through = gg.Rule(lambda site, dy: site.default(dy)[0] * 3.0)
    with gg.override_gradient(through):
        z = x * x
    residual = gg.gradients(z, x)
    later = y * z  # outer readers, built later
    found = [gg.gradients(t, x) for t in (outer, residual)]
    assert values([*found, later], {x: 3.0}) == [9, 6, 81]


def test_S23_three_orders_with_readers_outside_in_between():
    x = placeholder(())
    with gg.override_gradient(default):
        h = exp(x)
        y = h * sin(x)
    reference = exp(x) * sin(x)
    g, r = y, reference
    for _ in range(4):
        g, r = gg.gradients(g * g, x), gg.gradients(r * r, x)
        assert value(g, {x: 0.2}) == pytest.approx(value(r, {x: 0.2}), rel=1e-12)


def test_S23_order_through_reads_outputs_as_residuals_too():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: dy * site.outputs[0], order="through"):
        y = x * x
    assert values(orders(y, x, 3), {x: 3.0}) == [9, 6, 2]


def test_S23_order_again_is_the_default():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: dy * site.outputs[0], order="again"):
        y = x * x
    assert values(orders(y, x, 2), {x: 3.0}) == [9, 9]


def test_S23_order_error_refuses_to_differentiate_what_the_rule_built():
    def rule(site, dy):
        return dy * site.outputs[0]

    x = placeholder(())
    with gg.override_gradient(rule, order="error") as region:
        y = exp(x)
    g1 = gg.gradients(y, x)
    assert value(g1, {x: 0.0}) == 1
    with pytest.raises(gg.GradientError, match="order='error'") as error:
        gg.gradients(g1, x)
    assert "'rule'" in str(error.value)
    assert region.where in str(error.value)


def test_S23_order_error_with_respect_to_dys_included():
    x, dy = placeholder(()), placeholder(())
    for rule in (lambda site, dy: 2.0 * dy, lambda site, dy: dy, default):
        with gg.override_gradient(rule, order="error"):
            y = exp(x)
        g1 = gg.gradients(y, x, grad_ys=dy)
        with pytest.raises(gg.GradientError, match="order='error'"):
            gg.gradients(g1, dy)


def test_S23_order_error_counts_for_what_the_rule_let_out_by_another_way():
    x, kept = placeholder(()), []

    def rule(site, dy):
        kept.append(dy * site.inputs[0])
        return kept[0]

    with gg.override_gradient(rule, order="error") as region:
        y = exp(x)
    gg.gradients(y, x)
    with pytest.raises(gg.GradientError, match="order='error'") as error:
        gg.gradients(kept[0], x)
    assert region.where in str(error.value)


def half_of_dy_times_x(site, dy):
    return 0.5 * dy * site.inputs[0]


def gradient_of_the_sine(site, dy):
    (x,) = site.inputs
    return gg.gradients(sin(x), x, dy)


@pytest.mark.parametrize("rule", [half_of_dy_times_x, default, gradient_of_the_sine])
@pytest.mark.parametrize("loss", [lambda y: y, lambda y: y * y])
def test_S23_order_error_refuses_second_order_in_every_way(rule, loss):
    x = placeholder(())
    with gg.override_gradient(rule, order="error") as region:
        y = exp(x)
    z = loss(y)
    tangent, g1 = gg.jvp(z, x), gg.gradients(z, x)
    assert value(tangent, {x: 0.5}) == value(g1, {x: 0.5})
    again = [
        lambda: gg.gradients(g1, x),
        lambda: gg.gradients(tangent, x),
        lambda: gg.jvp(g1, x),
        lambda: gg.jvp(tangent, x),
        lambda: gg.hvp(z, x, 1.0),
        lambda: gg.hessian(z, x),
        lambda: gg.jacobian(tangent * x, x),
    ]
    for ask in again:
        with pytest.raises(gg.GradientError, match="order='error'") as error:
            ask()
        assert region.where in str(error.value)


def test_S23_order_error_holds_for_the_direction_of_a_jvp_too():
    x, t = placeholder(()), placeholder(())
    for rule in (lambda site, dy: 2.0 * dy, lambda site, dy: dy, default):
        with gg.override_gradient(rule, order="error"):
            y = exp(x)
        tangent = gg.jvp(y, x, t)
        with pytest.raises(gg.GradientError, match="order='error'"):
            gg.gradients(tangent, t)


def test_S23_order_error_off_the_path_of_a_jvp_is_harmless():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, dy: 2.0 * dy, order="error"):
        y = exp(x)
    tangent = gg.jvp(z * z * y, x)
    assert value(gg.gradients(tangent, z), {x: 0.0, z: 3.0}) == 12


@pytest.mark.parametrize("go", [lambda g: g, lambda g: g.copy(), lambda g: g.copy().copy()])
def test_S23_order_error_of_a_region_in_a_default_that_travelled(go):
    with gg.Graph() as g:
        x, k = placeholder(()), gg.constant(2.0)
        with gg.override_gradient(lambda site, dy: [k * dx for dx in site.default(dy)]):
            with gg.override_gradient(lambda site, dy: dy * site.inputs[0], order="error"):
                y = exp(x)
            y = gg.identity(y)
        z = y * y
    new = go(g)
    x, z = (new.nodes[t.node.index].outputs[0] for t in (x, z))
    with new:
        tangent, g1 = gg.jvp(z, x), gg.gradients(z, x)
        assert value(g1, {x: 0.5}) == value(tangent, {x: 0.5}) == pytest.approx(2 * np.exp(0.5))
        for first in (tangent, g1):
            with pytest.raises(gg.GradientError, match="order='error'"):
                gg.gradients(first, x)
            with pytest.raises(gg.GradientError, match="order='error'"):
                gg.jvp(first, x)


def test_S23_order_error_off_the_path_is_harmless():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, dy: 2.0 * dy, order="error"):
        y = exp(x)
    g1 = gg.gradients(y * z * z, x)
    assert value(gg.gradients(g1 * 0.0 + z * z, z, stop_gradients=[g1]), {z: 3.0}) == 6
    with pytest.raises(gg.GradientError):
        gg.gradients(g1, z)  # dy depends on z


def test_S23_order_error_allows_other_first_order_questions():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 2.0 * dy, order="error"):
        y = exp(x)
    z = sin(y)
    assert value(gg.gradients(z, x), {x: 0.0}) == pytest.approx(2 * np.cos(1.0))
    assert value(gg.gradients(z, x), {x: 0.0}) == pytest.approx(2 * np.cos(1.0))


def test_S23_a_rule_that_calls_gradients_of_the_inside_is_exact_at_every_order():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: gg.gradients(site.outputs, site.inputs, [dy])):
        y = exp(sin(x))
    with gg.override_gradient(default):
        z = exp(sin(x))
    plain = orders(exp(sin(x)), x, 4)
    for t in (y, z):
        assert values(orders(t, x, 4), {x: 0.2}) == pytest.approx(values(plain, {x: 0.2}))


# --- S24 -----------------------------------------------------------------------------------------


def test_S24_grad_fn_may_return_a_second_order_rule():
    @gg.custom_gradient
    def f(x):
        def grad(dy):
            def grad2(ddx):
                return 100.0 * ddx

            return 10.0 * dy, grad2

        return x * x, grad

    x = placeholder(())
    assert values(orders(f(x), x, 2), {x: 3.0}) == [10, 100]


def test_S24_recursively():
    @gg.custom_gradient
    def f(x):
        def grad(dy):
            def grad2(ddx):
                def grad3(dddx):
                    return 1000.0 * dddx

                return 100.0 * ddx, grad3

            return 10.0 * dy, grad2

        return x * x, grad

    x = placeholder(())
    assert values(orders(f(x), x, 3), {x: 3.0}) == [10, 100, 1000]


def test_S24_exact_rules_of_all_orders_agree_with_none():
    @gg.custom_gradient
    def f(x):
        def grad(dy):
            def grad2(ddx):
                return ddx * dy * (-sin(x))

            return dy * cos(x), grad2

        return sin(x), grad

    x = placeholder(())
    found = orders(f(x) * f(x), x, 4)
    plain = orders(sin(x) * sin(x), x, 4)
    assert values(found, {x: 0.3}) == pytest.approx(values(plain, {x: 0.3}), rel=1e-12)


def test_S24_with_respect_to_dys_the_nodes_that_grad_fn_built_are_differentiated():
    @gg.custom_gradient
    def f(x):
        return x * x, lambda dy: (dy * dy * 5.0, lambda ddx: 100.0 * ddx)

    x, dy = placeholder(()), placeholder(())
    g = gg.gradients(f(x), x, grad_ys=dy)
    found = gg.gradients(g, [dy, x])
    assert values([g, *found], {x: 3.0, dy: 2.0}) == [20, 20, 100]


def test_S24_dy_may_be_returned_as_it_is():
    @gg.custom_gradient
    def f(x):
        return x * x, lambda dy: (dy, lambda ddx: 100.0 * ddx)

    x, dy = placeholder(()), placeholder(())
    g = gg.gradients(f(x), x, grad_ys=dy)
    assert values(gg.gradients(g, [dy, x]), {x: 3.0, dy: 2.0}) == [1, 100]


def test_S24_several_arguments_and_results():
    @gg.custom_gradient
    def f(x, z):
        def grad(da, db):
            def grad2(ddx, ddz):
                return 3.0 * ddx + 5.0 * ddz, 7.0 * ddx + 11.0 * ddz

            return (da * z + db, da * x), grad2

        return (x * z, x + 0.0 * z), grad

    x, z = placeholder(()), placeholder(())
    a, b = f(x, z)
    gx, gz = gg.gradients([a, b], [x, z])
    feeds = {x: 2.0, z: 3.0}
    assert values([gx, gz], feeds) == [4, 2]
    assert values(gg.gradients(gx, [x, z]), feeds) == [3, 7]
    assert values(gg.gradients(gz, [x, z]), feeds) == [5, 11]
    assert values(gg.gradients([gx, gz], [x, z]), feeds) == [8, 18]


def test_S24_NO_GRAD_and_numbers_among_dxs():
    @gg.custom_gradient
    def f(x, z):
        return x * z, lambda dy: ((dy * z, gg.NO_GRAD), lambda ddx: (ddx, 5.0 * ddx))

    x, z = placeholder(()), placeholder(())
    gx, gz = gg.gradients(f(x, z), [x, z])
    assert gz is None
    assert values(gg.gradients(gx, [x, z]), {x: 2.0, z: 3.0}) == [1, 5]


def test_S24_a_grad_fn_that_is_a_custom_gradient_is_differentiated_with_respect_to_dy():
    @gg.custom_gradient
    def f(x):
        @gg.custom_gradient
        def grad(dy):
            return dy * cos(x), lambda ddx: 13.0 * ddx

        return sin(x), grad

    x, dy = placeholder(()), placeholder(())
    g = gg.gradients(f(x), x, grad_ys=dy)
    assert value(g, {x: 0.0, dy: 2.0}) == 2
    assert value(gg.gradients(g, dy), {x: 0.0, dy: 2.0}) == 13


def test_S24_such_a_grad_fn_does_not_speak_for_what_it_captures_outside():
    @gg.custom_gradient
    def f(x):
        @gg.custom_gradient
        def grad(dy):
            return dy * cos(x), lambda ddx: 13.0 * ddx

        return sin(x), grad

    x = placeholder(())
    g = gg.gradients(f(x), x)
    with pytest.raises(gg.GradientError, match="not among its inputs"):
        gg.gradients(g, x)


def test_S24_the_documented_second_order_idiom():
    @gg.custom_gradient
    def op_with_fused_backprop(x):
        y, x_grad = exp(x) * x, exp(x) * (x + 1.0)

        def first_order_gradient(dy):
            @gg.custom_gradient
            def first_order_custom(unused_x):
                def second_order_and_transpose(ddy):
                    return 100.0 * ddy

                return x_grad, second_order_and_transpose

            return dy * first_order_custom(x)

        return y, first_order_gradient

    x = placeholder(())
    y = op_with_fused_backprop(x)
    g1, g2 = orders(y, x, 2)
    assert values([g1, g2], {x: 0.0}) == [1, 100]


def test_S24_the_idiom_with_the_exact_second_order():
    @gg.custom_gradient
    def fused(x):
        y = sin(x)
        x_grad = cos(x)

        def grad(dy):
            @gg.custom_gradient
            def inner(unused_x):
                return x_grad, lambda ddy: -ddy * y

            return dy * inner(x)

        return y, grad

    x = placeholder(())
    found = orders(log(fused(x)), x, 3)
    plain = orders(log(sin(x)), x, 3)
    assert values(found, {x: 0.7}) == pytest.approx(values(plain, {x: 0.7}), rel=1e-12)


def test_S24_a_second_order_rule_reads_residuals_of_the_inside():
    @gg.custom_gradient
    def f(x):
        y = exp(x)
        return y, lambda dy: (dy * y, lambda ddx: ddx * dy * y)

    x = placeholder(())
    assert values(orders(f(x), x, 4), {x: 0.0}) == [1, 1, 1, 1]


def test_S24_only_a_callable_second_element_makes_a_pair():
    @gg.custom_gradient
    def f(x, z):
        return x * z, lambda dy: (dy * z, dy * x)

    x, z = placeholder(()), placeholder(())
    assert values(gg.gradients(f(x, z), [x, z]), {x: 2.0, z: 3.0}) == [3, 2]


def test_S24_a_variable_beside_a_second_order_rule():
    w = variable(2.0)

    @gg.custom_gradient
    def f(x):
        def grad(dy, variables):
            return dy * w, [5.0 * dy]

        return x * w, grad

    x = placeholder(())
    assert values(gg.gradients(f(x), [x, w]), {x: 3.0}) == [2, 5]


def test_S24_a_chain_of_functions_with_second_order_rules():
    @gg.custom_gradient
    def f(x):
        return x * x, lambda dy: (dy * (2.0 * x), lambda ddx: 2.0 * ddx * dy)

    x = placeholder(())
    found = orders(f(f(identity(x))), x, 3)
    plain = orders((x * x) * (x * x), x, 3)
    assert values(found, {x: 1.5}) == pytest.approx(values(plain, {x: 1.5}), rel=1e-12)


def test_S24_each_rule_is_called_once_per_question():
    first, second = [], []

    @gg.custom_gradient
    def f(x):
        def grad(dy):
            first.append(dy)
            return 10.0 * dy, lambda ddx: second.append(ddx) or 100.0 * ddx

        return x * x, grad

    x = placeholder(())
    g1 = gg.gradients(f(x), x)
    assert (len(first), len(second)) == (1, 0)
    gg.gradients(g1, x)
    assert (len(first), len(second)) == (1, 1)


def test_S24_a_region_around_a_call_reads_what_a_second_order_rule_declares():
    @gg.custom_gradient
    def f(x):
        return sin(x), lambda dy: (2.0 * dy, lambda ddx: 7.0 * ddx)

    x = placeholder(())
    y = f(x)
    spy = Spy(lambda site, dy: 3.0 * dy)
    with gg.override_gradient(spy):
        dx = gg.gradients(y, x)  # reads x by the word of the second rule alone
    assert value(gg.gradients(dx * 1.0, x), {x: 0.3}) == 3
    assert spy.sites[0].inputs == (x,)
