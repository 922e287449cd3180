"""Which rule answers: overrides of the call, the outermost region, what is inside a region."""

# ruff: noqa: SIM117  (blocks inside blocks are what is tested)

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.logic import greater, where
from graphgrad.ops.elementwise.magnitudes import sign
from graphgrad.ops.elementwise.rounding import floor
from graphgrad.ops.elementwise.trigonometry import cos, sin, tanh
from graphgrad.ops.python_function import py_function
from graphgrad.ops.sources import identity, placeholder, stop_gradient, undefined_gradient

from .helpers import Spy, default, impure, scaled, value, values

# --- S5: overrides of the call -------------------------------------------------------------------


def seven(site, *dys):
    return [7.0 * dys[0]] * len(site.inputs)


def test_S05_an_op_type_a_node_or_a_region_may_be_chosen():
    x = placeholder(())
    with gg.override_gradient(default) as region:
        y = exp(x)
    for key in ("Exp", y.node, region):
        assert value(gg.gradients(sin(y), y, overrides={"Sin": seven}), {x: 0.3}) == 7
        if key is region:
            assert value(gg.gradients(y, x, overrides={key: seven}), {x: 0.3}) == 7


def test_S05_for_this_call_only():
    x = placeholder(())
    y = sin(x)
    plain = gg.gradients(y, x)
    overridden = gg.gradients(y, x, overrides={"Sin": seven})
    again = gg.gradients(y, x)
    assert values([plain, overridden, again], {x: 0.0}) == [1, 7, 1]


def test_S05_one_forward_graph_yields_plain_and_overridden_gradients_side_by_side():
    x = placeholder(())
    spy = Spy(lambda site, dy: 7.0 * dy * site.outputs[0])
    with gg.override_gradient(spy) as region:
        y = exp(x)
    found = [
        gg.gradients(y, x),
        gg.gradients(y, x, overrides={region: None}),
        gg.gradients(y, x, overrides={region: lambda site, dy: 11.0 * dy}),
        gg.gradients(y, x, overrides="none"),
    ]
    assert values(found, {x: 0.0}) == [7, 1, 11, 1]
    assert spy.calls == 1


def test_S05_not_in_later_calls_second_order_ones_included():
    x = placeholder(())
    y = exp(x)
    g1 = gg.gradients(y, x, overrides={"Exp": lambda site, dy: 10.0 * dy * site.outputs[0]})
    g2 = gg.gradients(g1, x)  # d(10 y)/dx, plainly
    assert values([g1, g2], {x: 0.0}) == [10, 10]


def test_S05_an_override_of_a_region_is_gone_at_second_order_and_its_mark_is_back():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 3.0 * dy) as region:
        y = x * x
    g1 = gg.gradients(
        y, x, overrides={region: lambda site, dy: dy * site.outputs[0]}
    )  # reads y, an outer output
    g2 = gg.gradients(g1, x)
    assert values([g1, g2], {x: 3.0}) == [9, 3]


def test_S05_at_every_depth_of_the_call():
    x = placeholder(())
    with gg.override_gradient(default), gg.override_gradient(default):
        y = sin(exp(x))
    dx = gg.gradients(y, x, overrides={"Exp": seven})
    e = np.exp(0.3)
    assert value(dx, {x: 0.3}) == pytest.approx(7 * np.cos(e))


def test_S05_at_every_depth_of_the_call_calls_of_gradients_by_rules_included():
    x = placeholder(())

    def by_gradients(site, dy):
        return gg.gradients(site.outputs, site.inputs, grad_ys=[dy])

    with gg.override_gradient(by_gradients):
        y = exp(x)
    z = exp(y)
    assert value(gg.gradients(z, x, overrides={"Exp": seven}), {x: 0.3}) == 49


def test_S05_an_inner_region_may_be_chosen_or_switched_off():
    x = placeholder(())
    with gg.override_gradient(scaled(2.0)) as outer, gg.override_gradient(scaled(3.0)) as inner:
        y = x * x
    found = [
        gg.gradients(y, x, overrides=o)
        for o in (None, {inner: None}, {outer: None}, {outer: None, inner: None}, {inner: seven})
    ]
    assert values(found, {x: 1.0}) == [12, 4, 6, 2, 14]


def test_S05_an_override_of_the_call_wins_over_marks():
    x = placeholder(())
    with gg.gradient_override_map({"Sin": lambda site, dy: 2.0 * dy}):
        y = sin(x)
    assert value(gg.gradients(y, x, overrides={"Sin": seven}), {x: 0.3}) == 7
    assert value(gg.gradients(y, x, overrides={y.node: seven}), {x: 0.3}) == 7
    assert value(gg.gradients(y, x, overrides={y.node: None}), {x: 0.0}) == 1
    assert value(gg.gradients(y, x, overrides={"Sin": None}), {x: 0.0}) == 1


def test_S05_none_switches_all_marks_off():
    x = placeholder(())
    with gg.gradient_override_map({"Sin": seven}), gg.override_gradient(seven):
        with gg.override_gradient(seven):
            y = sin(x)
    with gg.gradient_override_map({"Exp": seven}):
        z = exp(y)
    assert value(gg.gradients(z, x, overrides="none"), {x: 0.0}) == 1
    assert value(gg.gradients(z, x), {x: 0.0}) == 49


def test_S05_two_entries_for_one_site_are_an_error():
    x = placeholder(())
    y = sin(x)
    with pytest.raises(gg.RegionError, match="two entries"):
        gg.gradients(y, x, overrides={"Sin": seven, y.node: None})


@pytest.mark.parametrize("rules", [(seven, seven), (seven, None), (None, seven), (None, None)])
def test_S05_two_entries_for_one_node_are_an_error_whatever_they_say(rules):
    x = placeholder(())
    y = sin(x)
    ways = gg.select.op("Sin").each() & gg.select.nodes(y).each(), y.node
    with pytest.raises(gg.RegionError, match="two entries"):
        gg.gradients(y, x, overrides=dict(zip(ways, rules, strict=True)))


def test_S05_op_types_match_forward_nodes():
    x = placeholder(())
    y = sin(x)
    g1 = gg.gradients(y, x)  # builds a Cos
    spy = Spy()
    with pytest.raises(gg.RegionError, match="Cos"):
        gg.gradients(g1, x, overrides={"Cos": spy})


def test_S05_an_op_type_is_for_what_the_user_built_and_not_for_derivatives_of_it():
    x = placeholder(())
    dx = gg.gradients(x * x, x)  # built of Multiply too
    assert value(gg.gradients(dx, x, overrides={"Multiply": scaled(10.0)}), {x: 3.0}) == 2
    dx = gg.gradients(x * x * x, x)  # reads x * x, which the user built
    assert value(gg.gradients(dx, x, overrides={"Multiply": scaled(10.0)}), {x: 3.0}) == 72


def test_S05_unknown_rules_and_foreign_sites_are_errors():
    x = placeholder(())
    y = sin(x)
    with pytest.raises(gg.UnknownGradientError, match="test/nobody"):
        gg.gradients(y, x, overrides={"Sin": "test/nobody"})
    with gg.Graph():
        other = sin(placeholder(()))
    with pytest.raises(gg.GraphError):
        gg.gradients(y, x, overrides={other.node: seven})
    with pytest.raises(gg.GradientError, match="overrides"):
        gg.gradients(y, x, overrides="nonsense")
    with pytest.raises(gg.GradientError, match="overrides"):
        gg.gradients(y, x, overrides={3: seven})


def test_S05_a_rule_name_or_op_type_may_be_chosen():
    x = placeholder(())
    y = sign(x)
    assert value(gg.gradients(y, x, overrides={"Sign": "Identity"}), {x: 0.3}) == 1
    with gg.temporary_gradient("test/seven", seven):
        assert value(gg.gradients(y, x, overrides={"Sign": "test/seven"}), {x: 0.3}) == 7


# --- S7: a region is one step --------------------------------------------------------------------


def test_S07_outermost_region_wins():
    x = placeholder(())
    inner, innermost = Spy(), Spy()
    with gg.override_gradient(lambda site, dy: 7.0 * dy), gg.override_gradient(inner):
        a = exp(x)
        with gg.override_gradient(innermost), gg.gradient_override_map({"Sin": innermost}):
            y = sin(a)
    assert value(gg.gradients(y, x), {x: 0.3}) == 7
    assert inner.calls == innermost.calls == 0


def test_S07_inner_regions_and_stamps_count_again_when_the_rule_asks_for_its_default():
    x = placeholder(())
    with gg.override_gradient(scaled(2.0)):
        with gg.override_gradient(scaled(3.0)):
            a = x * 1.0
        with gg.gradient_override_map({"Sin": lambda site, dy: 5.0 * dy}):
            b = sin(a)
        y = b * 1.0
    assert value(gg.gradients(y, x), {x: 0.3}) == 30


def test_S07_the_default_of_a_middle_region_honours_the_innermost():
    x = placeholder(())
    with gg.override_gradient(scaled(2.0)), gg.override_gradient(scaled(3.0)):
        with gg.override_gradient(scaled(5.0)):
            y = x * 1.0
    assert value(gg.gradients(y, x), {x: 0.3}) == 30


def test_S07_a_region_wins_over_an_enclosing_map():
    x = placeholder(())
    spy = Spy()
    with gg.gradient_override_map({"Sin": spy}):
        with gg.override_gradient(lambda site, dy: 7.0 * dy):
            y = sin(x)
        z = sin(y)
    assert value(gg.gradients(y, x), {x: 0.3}) == 7
    assert spy.calls == 0
    gg.gradients(z, x)
    assert spy.calls == 1


def test_S07_a_stamp_from_an_enclosing_map_counts_when_the_default_is_asked():
    x = placeholder(())
    with gg.gradient_override_map({"Sin": lambda site, dy: 5.0 * dy}):
        with gg.override_gradient(scaled(2.0)):
            y = sin(x)
    assert value(gg.gradients(y, x), {x: 0.3}) == 10


def test_S07_the_region_is_one_step_for_gradients_with_respect_to_what_it_reads():
    x = placeholder(())
    a = x * 2.0
    with gg.override_gradient(lambda site, da, dx: [7.0, 11.0]) as region:
        b = a * x
        c = b + x
        region.declare(inputs=[a, x], outputs=[c, b])
    assert values(gg.gradients(c, [a, x])) == [7, 11 + 14]


# --- S8: what lies inside does not matter --------------------------------------------------------


def test_S08_integer_tensors_inside_do_not_cut_the_path():
    x = placeholder((3,))
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        y = gg.cast(gg.cast(x, "int64"), "float64")
    assert value(gg.gradients(y, x), {x: [1, 2, 3]}).tolist() == [7, 7, 7]
    z = gg.cast(gg.cast(x, "int64"), "float64")
    assert gg.gradients(z, x) is None


def test_S08_stop_gradient_inside_does_not_cut_the_path():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        y = exp(stop_gradient(x))
    assert value(gg.gradients(y, x), {x: 0.3}) == 7


def test_S08_a_bool_condition_inside_does_not_cut_the_path():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        y = where(greater(x, 0.0), 1.0, -1.0)
    assert value(gg.gradients(y, x), {x: 0.3}) == 7


def test_S08_an_op_without_a_rule_inside_does_not_cut_the_path():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        y = impure(x, np.exp)
    assert value(gg.gradients(y, x), {x: 0.3}) == 7
    with pytest.raises(gg.GradientError):
        gg.gradients(impure(x, np.exp), x)


def test_S08_an_undefined_gradient_inside_is_not_asked():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        y = floor(undefined_gradient(x))
    assert value(gg.gradients(y, x), {x: 0.3}) == 7


def test_S08_a_path_through_a_hidden_integer_output_of_an_inner_region():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        with gg.override_gradient(default, allow_empty=True):
            n = gg.cast(x, "int64")
        y = gg.cast(n, "float64") * 2.0
    assert value(gg.gradients(y, x), {x: 0.3}) == 7


def test_S08_the_default_of_such_a_region_is_a_structural_zero():
    x = placeholder(())
    seen = []

    def rule(site, dy):
        seen.extend(site.default(dy))
        return dy

    with gg.override_gradient(rule):
        y = exp(stop_gradient(x))
    assert value(gg.gradients(y, x), {x: 0.3}) == 1
    assert gg.is_zero(seen[0])


# --- S26 -----------------------------------------------------------------------------------------


def test_S26_the_forward_value_never_depends_on_whether_a_gradient_is_taken():
    x = placeholder((4,))
    with gg.override_gradient(scaled(2.0)):
        h = exp(x) * sin(x)
        y = tanh(h)
    z = identity(y) * cos(x)
    before = gg.Program([x], [z]).nodes
    g1 = gg.gradients(z, x)
    g2 = gg.gradients(g1, x)
    assert gg.Program([x], [z]).nodes == before
    forward = {n for n in gg.Program([x], [z, g2]).nodes if n.origin is None}
    assert forward == set(before)  # and nothing of them is computed again
    feeds = {x: [0.1, 0.2, 0.3, 0.4]}
    assert (values([z, g1, g2], feeds)[0] == value(z, feeds)).all()


def test_S26_a_step_with_effects_runs_once_whatever_is_asked():
    runs = []

    def effect(a):
        runs.append(a)
        return np.exp(a)

    def rule(node, dy):
        return dy * node.outputs[0]

    x = placeholder(())
    with gg.override_gradient(scaled(2.0)):
        (h,) = [py_function(effect, [x], [((), "float64")], vjp=rule)]
        y = sin(h)
    g1 = gg.gradients(y, x)
    g2 = gg.gradients(g1, x)
    found = values([y, g1, g2], {x: 0.3})
    assert len(runs) == 1
    e = np.exp(0.3)
    assert found == pytest.approx(
        [np.sin(e), 2 * np.cos(e) * e, 2 * (np.cos(e) * e - np.sin(e) * e * e)]
    )


def test_S05_what_a_call_chooses_for_one_op_type_leaves_no_trace_on_others():
    x = placeholder(())
    dx = gg.gradients(exp(x) * x, x, overrides={"Multiply": default})  # exp(x) + exp(x) * x
    d2 = gg.gradients(dx, x, overrides={"Exp": seven})
    assert value(d2, {x: 3.0}) == pytest.approx(7 + 7 * 3 + np.exp(3.0))


def test_what_reads_only_integers_of_a_region_is_not_on_the_way():
    called = []

    def rule(site, *dys):
        called.append(site.name)
        return site.default(*dys)

    with gg.Graph():
        x = gg.placeholder((3,))
        with gg.override_gradient(rule):
            y, i = gg.exp(x), gg.argmax(x)
        with gg.override_gradient(rule, allow_empty=True):
            z = gg.sin(gg.cast(i, "float64"))
        gg.gradients([y, z], x)
    assert len(called) == 1
