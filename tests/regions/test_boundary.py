"""The boundary of a region: inputs, outputs, what is hidden, and regions that are not one step."""

from __future__ import annotations

import contextvars

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.elementwise.arithmetic import multiply
from graphgrad.ops.elementwise.exponential import exp, log
from graphgrad.ops.elementwise.trigonometry import cos, sin, tanh
from graphgrad.ops.reduce.reductions import sum as reduce_sum
from graphgrad.ops.shape.joining import split
from graphgrad.ops.sources import identity, placeholder, stop_gradient, variable
from graphgrad.regions.boundary import boundary_of

from ..differentiate.helpers import (
    Spy,
    default,
    hidden,
    scaled,
    value,
    values,
)
from ..interrupting import interrupted, places

# --- S9: the inferred boundary -------------------------------------------------------------------


def test_S09_inputs_are_what_is_read_from_outside_in_order_of_first_use():
    x, y, z = (placeholder(()) for _ in range(3))
    spy = Spy()
    with gg.override_gradient(spy):
        out = z * x + y * z
    gg.gradients(out, [x, y, z])
    assert spy.sites[0].inputs == (z, x, y)


def test_S09_captures_are_inputs_too():
    captured = exp(placeholder(()))

    def f(x):
        return x * captured

    x = placeholder(())
    spy = Spy()
    with gg.override_gradient(spy):
        out = f(x)
    gg.gradients(out, x)
    assert spy.sites[0].inputs == (x, captured)


def test_S09_placeholders_and_variables_built_in_the_block_are_inputs():
    spy = Spy()
    with gg.override_gradient(spy):
        x = placeholder(())
        w = variable(2.0)
        out = x * w
    dx, dw = gg.gradients(out, [x, w])
    assert x.node.region is w.node.region is None
    assert spy.sites[0].inputs == (x, w)
    assert values([dx, dw], {x: 3.0}) == [2.0, 3.0]


def test_S09_constants_built_in_the_block_are_members():
    x = placeholder(())
    spy = Spy()
    with gg.override_gradient(spy):
        c = gg.constant(2.0)
        out = c * x + 3.0 + np.float64(4.0)
    assert value(gg.gradients(out, x), {x: 1.0}) == 2
    assert spy.sites[0].inputs == (x,)
    assert c.node in spy.sites[0].nodes


def test_S09_outputs_are_what_something_outside_reads_or_nothing_reads_in_order_of_building():
    x = placeholder(())
    spy = Spy()
    with gg.override_gradient(spy):
        a = exp(x)  # read inside and outside
        b = sin(a)  # read inside only
        c = cos(b)  # read by nothing
        d = tanh(b)  # read outside
    e = d + a
    gg.gradients(e, x)
    assert spy.sites[0].outputs == (a, c, d)


def test_S09_an_unread_sibling_of_a_read_output_does_not_count():
    x = placeholder((4,))
    spy = Spy()
    with gg.override_gradient(spy):
        first, _second = split(x, 2)
    reduce_sum(first)
    gg.gradients(first, x)
    assert spy.sites[0].outputs == (first,)


def test_S09_outputs_of_a_node_that_nothing_reads_are_outputs():
    x = placeholder((4,))
    spy = Spy()
    with gg.override_gradient(spy):
        first, second = split(x, 2)
    gg.gradients(first, x)
    assert spy.sites[0].outputs == (first, second)


def test_S09_a_monitor_built_later_does_not_change_the_arity():
    x = placeholder(())
    spy = Spy()
    with gg.override_gradient(spy):
        h = exp(x)
        y = sin(h)
    gg.gradients(y, x)
    monitor = h + 1.0  # later
    dx = gg.gradients(y, x)
    assert [site.outputs for site in spy.sites] == [(y,), (y,)]
    assert values([dx, monitor], {x: 0.0})[1] == 2


def test_S09_three_gradients_calls_in_a_row_see_one_boundary():
    x = placeholder(())
    spy = Spy()
    with gg.override_gradient(spy):
        h = exp(x)
        y = sin(h) * h
    g1 = gg.gradients(y, x)
    g2 = gg.gradients(g1, x)
    g3 = gg.gradients(g2 + y, x)
    assert len({(site.inputs, site.outputs) for site in spy.sites}) == 1
    assert spy.sites[0].outputs == (y,)
    assert np.isfinite(value(g3, {x: 0.3}))  # its value: see test_random_programs


def test_S09_the_argument_count_does_not_depend_on_what_is_asked():
    x = placeholder(())
    spy = Spy()
    with gg.override_gradient(spy):
        a = exp(x)
        b = sin(x)
    gg.gradients(a, x)
    gg.gradients(b, x)
    gg.gradients([a, b], x)
    assert [len(dys) for dys in spy.dys] == [2, 2, 2]


def test_S09_reads_by_nodes_the_rule_built_do_not_count():
    x = placeholder(())
    spy = Spy(lambda site, dy: dy * hidden(site, "Exp"))
    with gg.override_gradient(spy):
        y = sin(exp(x))
    g1 = gg.gradients(y, x)
    g2 = gg.gradients(g1, x)
    gg.gradients(g2, x)
    gg.gradients(y, x)
    assert {site.outputs for site in spy.sites} == {(y,)}


def test_S09_reads_by_derivatives_of_nodes_inside_do_not_count():
    x = placeholder(())
    spy = Spy(lambda site, dy: dy)
    with gg.override_gradient(spy):
        h = exp(x)
        inside = gg.gradients(h, x)  # reads h
        y = sin(h) + inside
    assert inside.node.region is h.node.region
    gg.gradients(y, x)
    assert spy.sites[0].outputs == (y,)


def test_S09_site_outputs_read_by_the_rule_are_the_outer_outputs():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: dy * site.outputs[0]):
        y = x * x
    g1 = gg.gradients(y, x)
    g2 = gg.gradients(g1, x)
    assert values([g1, g2], {x: 3.0}) == [9, 9]


def test_S09_the_arity_error_lists_the_outputs_with_their_lines():
    def one(site, dy):
        return dy

    x = placeholder(())
    with gg.override_gradient(one):
        a = exp(x)
        b = sin(x)
    with pytest.raises(gg.GradientError) as error:
        gg.gradients(a, x)
    message = str(error.value)
    first = test_S09_the_arity_error_lists_the_outputs_with_their_lines.__code__.co_firstlineno
    for t, line in ((a, first + 6), (b, first + 7)):
        assert t.name in message
        assert f"test_boundary.py:{line}" in message
    assert "'one'" in message


def test_S09_an_early_output_is_in_the_boundary_also_when_read_by_a_second_region():
    x = placeholder(())
    first, second = Spy(), Spy()
    with gg.override_gradient(first):
        a = exp(x)
        b = sin(a)
    with gg.override_gradient(second):
        c = a * b
    gg.gradients(c, x)
    assert first.sites[0].outputs == (a, b)
    assert second.sites[0].inputs == (a, b)


def test_S09_what_an_inner_region_declares_as_its_input_is_read_inside_used_or_not():
    @gg.custom_gradient
    def constant_of(unused):
        return gg.constant(3.0), lambda dy: 7.0 * dy

    x, z = placeholder(()), placeholder(())
    spy = Spy()
    with gg.override_gradient(spy):
        a = constant_of(x)
        with gg.override_gradient(lambda site, dy: {z: 11.0 * dy, a: dy}, inputs=[z]):
            b = a * 1.0
        y = b * 5.0
    assert values(gg.gradients(y, [x, z])) == [35, 55]
    assert spy.sites[0].inputs == (x, z)


def test_S09_what_an_inner_region_declares_as_its_input_leads_where_its_members_do():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, *dys: [2.0, 3.0]):  # whatever the dys
        a = exp(x)
        with gg.override_gradient(default), gg.override_gradient(default, inputs=[a, z]):
            b = sin(a)
        c = b * 5.0
        d = exp(a)
    assert values(gg.gradients(c, [x, z])) == [2, 3]
    assert gg.gradients(d, z, unconnected="none") is None


def test_a_region_without_members_has_no_last_one():
    with gg.override_gradient(default, allow_empty=True) as region:
        pass
    assert boundary_of(region).last is None
    assert boundary_of(region).position < 0


def test_S09_an_argument_that_a_function_does_not_use_leaves_its_region():
    @gg.custom_gradient
    def constant_of(unused):
        return gg.constant(3.0), lambda dy: 7.0 * dy

    x = placeholder(())
    spy = Spy(lambda site, da, db: 2.0 * da)
    with gg.override_gradient(spy):
        h = exp(x)
        b = sin(h)
    y = constant_of(h)
    assert value(gg.gradients(y, x)) == 14
    assert spy.sites[0].outputs == (h, b)


def test_S09_the_boundary_of_an_inner_region_counts_reads_of_the_outer_one():
    x = placeholder(())
    inner = Spy()
    with gg.override_gradient(default):
        with gg.override_gradient(inner):
            a = exp(x)
            b = sin(a)
        c = a + b
    gg.gradients(c, x)
    assert inner.sites[0].outputs == (a, b)


# --- S10: declared boundaries, and what crosses them undeclared ----------------------------------


def test_S10_declared_inputs_and_outputs_pin_members_and_order():
    x, y, z = (placeholder(()) for _ in range(3))
    spy = Spy(lambda site, db, da: [1.0, 2.0, 3.0])
    with gg.override_gradient(spy, inputs=[z, y, x]) as region:
        a = exp(x)
        b = sin(y)
        region.declare(outputs=[b, a])
    found = gg.gradients([a, b], [x, y, z])
    assert spy.sites[0].inputs == (z, y, x)
    assert spy.sites[0].outputs == (b, a)
    assert values(found) == [3, 2, 1]  # z too, although nothing in the block reads it


def test_S10_one_tensor_may_be_declared_without_a_list():
    x = placeholder(())
    spy = Spy()
    with gg.override_gradient(spy, inputs=x) as region:
        h = exp(x)
        y = sin(h)
        region.declare(outputs=y)
    gg.gradients(y, x)
    assert (spy.sites[0].inputs, spy.sites[0].outputs) == ((x,), (y,))


def test_S10_an_undeclared_input_is_harmless_off_the_path():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy, inputs=[x]):
        y = x * z
    assert value(gg.gradients(y, x), {x: 1.0}) == 7


def test_S10_an_undeclared_input_on_a_path_from_xs_is_an_error_that_names_it_and_its_readers():
    x, z = placeholder(()), placeholder(())
    h = exp(z)
    with gg.override_gradient(lambda site, dy: 7.0 * dy, inputs=[x]):
        read = x * h
        y = sin(read)
    for xs in (h, z, [x, z]):
        with pytest.raises(gg.GradientError) as error:
            gg.gradients(y, xs)
        assert h.name in str(error.value)
        assert read.node.name in str(error.value)
        assert "test_boundary.py" in str(error.value)
    assert value(gg.gradients(y, z, stop_gradients=[h]) or gg.constant(0.0)) == 0
    assert value(gg.gradients(y, x)) == 7  # another question is no error


def test_S10_an_undeclared_input_behind_a_stop_gradient_is_harmless():
    x, z = placeholder(()), placeholder(())
    h = stop_gradient(exp(z))
    with gg.override_gradient(lambda site, dy: 7.0 * dy, inputs=[x]):
        y = x * h
    assert gg.gradients(y, z) is None
    assert values(gg.gradients(y, [x, z], unconnected="zero"), {x: 1.0, z: 1.0}) == [7, 0]


def test_S10_what_a_block_reads_after_its_boundary_was_settled_is_an_undeclared_input():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy) as region:
        y = exp(x)
        assert boundary_of(region).inputs == (x,)
        later = y * z
    boundary = boundary_of(region)
    assert (boundary.inputs, boundary.outputs, boundary.undeclared) == ((x,), (y,), (z,))
    assert boundary.last is later.node
    assert value(gg.gradients(y, x)) == 7


def test_S10_an_undeclared_output_is_harmless_off_the_path():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy) as region:
        h = exp(x)
        y = sin(h)
        region.declare(outputs=[y])
    monitor = h + 1.0
    assert values([gg.gradients(y, x), monitor], {x: 0.0}) == [7, 2]


def test_S10_an_undeclared_output_is_harmless_beside_the_path():
    x, w = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy) as region:
        h = exp(x)
        y = sin(h)
        region.declare(outputs=[y])
    z = h * w  # reads both what is asked for and what is hidden
    assert value(gg.gradients(z, w), {x: 0.0, w: 3.0}) == 1
    assert values(gg.gradients(z + y, [w]), {x: 0.0, w: 3.0}) == [1]


def test_S10_an_undeclared_output_on_a_path_to_ys_is_an_error_that_names_it_and_its_readers():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy) as region:
        h = exp(x)
        y = sin(h)
        region.declare(outputs=[y])
    reader = h * 3.0
    loss = reader + y
    with pytest.raises(gg.GradientError) as error:
        gg.gradients(loss, x)
    message = str(error.value)
    assert h.name in message
    assert reader.node.name in message
    assert y.name in message  # what its outputs are
    assert "test_boundary.py" in message
    assert "declare" in message


def test_S10_a_tensor_that_something_outside_reads_only_later_is_an_undeclared_output():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        h = exp(x)
        y = sin(h)
    gg.gradients(y, x)  # settles the boundary
    later = h * 3.0
    with pytest.raises(gg.GradientError, match="hidden"):
        gg.gradients(later, x)
    assert value(gg.gradients(y + stop_gradient(later), x)) == 7


def test_S10_escape_default_gives_undeclared_outputs_the_insides_own_derivative():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy, escape="default") as region:
        h = x * x
        y = h * 5.0
        region.declare(outputs=[y])
    loss = h * 3.0 + y
    assert value(gg.gradients(h, x), {x: 2.0}) == 4
    assert value(gg.gradients(y, x), {x: 2.0}) == 7
    assert value(gg.gradients(loss, x), {x: 2.0}) == 3 * 4 + 7
    assert value(gg.gradients(y, h, unconnected="zero"), {x: 2.0}) == 0


def test_S10_escape_default_honours_inner_regions():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy, escape="default") as region:
        with gg.override_gradient(lambda site, dy: 11.0 * dy):
            h = x * x
        region.declare(outputs=[h * 5.0])
    loss = h * 3.0
    assert value(gg.gradients(loss, x), {x: 2.0}) == 33


def test_S10_escape_default_is_no_leaving_of_the_region():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy, dz: 7.0 * dy, escape="default") as region:
        h = x * x
        y = h * 5.0
        z = y + 1.0
        region.declare(outputs=[y, z])
    loss = h * 3.0 + y + z
    assert value(gg.gradients(loss, x), {x: 2.0}) == 12 + 7


def test_S10_a_rule_may_return_a_mapping():
    x, y, z = (placeholder(()) for _ in range(3))
    with gg.override_gradient(lambda site, dy: {y: 5.0 * dy, x: gg.DEFAULT, z: gg.NO_GRAD}):
        out = x * y * z
    dx, dy, dz = gg.gradients(out, [x, y, z])
    assert values([dx, dy], {x: 2.0, y: 3.0, z: 4.0}) == [12, 5]
    assert dz is None


def test_S10_a_mapping_may_speak_for_an_undeclared_input():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, dy: {x: 7.0 * dy, z: 5.0 * dy}, inputs=[x]):
        y = x * z
    assert values(gg.gradients(y, [x, z])) == [7, 5]


def test_S10_a_mapping_with_what_the_site_does_not_read_is_an_error():
    x, z = placeholder(()), placeholder(())
    for key in (z, "x", 0):
        with gg.override_gradient(lambda site, dy, key=key: {key: dy}):
            y = exp(x)
        with pytest.raises(gg.GradientError, match="does not read"):
            gg.gradients(y, x)


# --- S11: regions that are not one step ----------------------------------------------------------


def test_S11_a_value_that_leaves_a_region_and_comes_back_is_an_error_that_shows_the_path():
    x = placeholder(())
    outside = contextvars.copy_context()
    with gg.override_gradient(default):
        a = exp(x)
        b = outside.run(sin, a)
        c = outside.run(tanh, b)
        y = cos(c)
    assert b.node.region is None
    with pytest.raises(gg.RegionError) as error:
        gg.gradients(y, x)
    message = str(error.value)
    first = (
        test_S11_a_value_that_leaves_a_region_and_comes_back_is_an_error_that_shows_the_path
    ).__code__.co_firstlineno
    assert message.index(f"{b.node.name}, built at test_boundary.py:{first + 5}") < message.index(
        f"{c.node.name}, built at test_boundary.py:{first + 6}"
    )
    assert f"test_boundary.py:{first + 3}" in message
    assert "inside the region" in message  # what to do


def test_S11_the_error_is_raised_only_by_a_question_in_which_the_region_takes_part():
    x = placeholder(())
    outside = contextvars.copy_context()
    with gg.override_gradient(default):
        y = cos(outside.run(sin, exp(x)))
    z = sin(x)
    assert value(gg.gradients(z, x), {x: 0.0}) == 1
    for _ in range(2):
        with pytest.raises(gg.RegionError):
            gg.gradients(y, x)
    assert value(gg.gradients(y, x, overrides="none"), {x: 0.3}) is not None


def circle(x):
    """Region one needs two and two needs one."""
    other = contextvars.copy_context()
    one, two = gg.override_gradient(scaled(2.0)), gg.override_gradient(scaled(3.0))
    with one:
        a = exp(x)
        other.run(two.__enter__)
        b = other.run(sin, a)
        c = cos(b)
        d = other.run(tanh, c)
        other.run(two.__exit__, None, None, None)
    return one.region, two.region, c, d


def test_S11_what_lies_behind_a_stopped_tensor_takes_no_part():
    x = placeholder(())
    outside = contextvars.copy_context()
    with gg.override_gradient(default):
        y = cos(outside.run(sin, exp(x)))
    with gg.override_gradient(scaled(5)):
        z = y * x
    dx = gg.gradients(z, x, stop_gradients=y)
    assert value(dx, {x: 0.0}) == pytest.approx(5 * np.cos(np.sin(1)))


def test_S11_two_regions_in_a_circle():
    x = placeholder(())
    one, two, _c, d = circle(x)
    with pytest.raises(gg.RegionError, match="in a cycle") as error:
        gg.gradients(d, x)
    assert one.where in str(error.value)
    assert two.where in str(error.value)
    for off in (one, two):  # the other one is left and entered again
        with pytest.raises(gg.RegionError, match="leaves it and comes back"):
            gg.gradients(d, x, overrides={off: None})
    e = np.exp(0.3)
    plain = e * np.cos(e) * -np.sin(np.sin(e)) * (1 - np.tanh(np.cos(np.sin(e))) ** 2)
    for off in ("none", {one: None, two: None}):
        dx = gg.gradients(d, x, overrides=off)
        assert value(dx, {x: 0.3}) == pytest.approx(plain)


def test_S11_interleaved_regions_that_do_not_need_each_other_are_fine():
    x = placeholder(())
    other = contextvars.copy_context()
    one, two = gg.override_gradient(scaled(2.0)), gg.override_gradient(scaled(3.0))
    with one:
        a = exp(x)
        other.run(two.__enter__)
        b = other.run(sin, x)
        c = cos(a)
        d = other.run(tanh, b)
        other.run(two.__exit__, None, None, None)
        e = sin(c)
    y = e * d
    plain = gg.gradients(y, [e, d])
    by_one, by_two = gg.gradients(e, x), gg.gradients(d, x)
    dx = gg.gradients(y, x)
    feeds = {x: 0.3}
    (de, dd), g1, g2, g = values([plain, by_one, by_two, dx], feeds)
    assert g == pytest.approx(de * g1 + dd * g2)
    assert g1 == pytest.approx(2 * np.cos(np.cos(np.exp(0.3))) * -np.sin(np.exp(0.3)) * np.exp(0.3))


def test_S11_the_order_of_building_is_not_the_test():
    x = placeholder(())
    other = contextvars.copy_context()
    with gg.override_gradient(scaled(2.0)):
        a = exp(x)
        b = other.run(sin, a)  # outside, reads the region, stands before its last node
        c = cos(x)  # the last node of the region stands after its reader
    y = b * c
    e = np.exp(0.3)
    expected = 2 * (np.cos(e) * e * np.cos(0.3) - np.sin(e) * np.sin(0.3))
    assert value(gg.gradients(y, x), {x: 0.3}) == pytest.approx(expected)


def test_S11_second_order_over_interleaved_regions():
    x = placeholder(())
    other = contextvars.copy_context()
    with gg.override_gradient(default):
        a = exp(x)
        b = other.run(sin, a)
        c = cos(x)
    y = b * c
    plain = gg.gradients(sin(exp(x)) * cos(x), x)
    found = gg.gradients(y, x)
    for _ in range(3):
        assert value(found, {x: 0.3}) == pytest.approx(value(plain, {x: 0.3}), rel=1e-12)
        found, plain = gg.gradients(found, x), gg.gradients(plain, x)


# --- S12: what is hidden -------------------------------------------------------------------------


@pytest.fixture
def secret():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        h = exp(x)
        y = sin(h)
    return x, h, y


def check_hidden(error, h):
    message = str(error.value)
    assert h.name in message
    assert "hidden" in message
    assert "declare" in message
    assert "test_boundary.py" in message


def test_S12_a_gradient_of_a_hidden_tensor_is_an_error(secret):
    x, h, y = secret
    with pytest.raises(gg.GradientError) as error:
        gg.gradients(h, x)
    check_hidden(error, h)
    with pytest.raises(gg.GradientError):
        gg.gradients([y, h], x)


def test_S12_a_gradient_with_respect_to_a_hidden_tensor_is_an_error(secret):
    x, h, y = secret
    with pytest.raises(gg.GradientError) as error:
        gg.gradients(y, h)
    check_hidden(error, h)
    with pytest.raises(gg.GradientError):
        gg.gradients(y, [x, h])


def test_S12_a_stop_at_a_hidden_tensor_is_an_error(secret):
    x, h, y = secret
    with pytest.raises(gg.GradientError) as error:
        gg.gradients(y, x, stop_gradients=[h])
    check_hidden(error, h)


def test_S12_asking_does_not_make_it_visible(secret):
    x, h, y = secret
    for _ in range(2):
        with pytest.raises(gg.GradientError):
            gg.gradients(h, x)
    spy = Spy(lambda site, dy: 7.0 * dy)
    gg.gradients(y, x, overrides={y.node.region: spy})
    assert spy.sites[0].outputs == (y,)


def test_S12_a_hidden_tensor_of_an_inner_region_is_hidden_too():
    x = placeholder(())
    with gg.override_gradient(default):
        with gg.override_gradient(default):
            h = exp(x)
            i = sin(h)
        y = cos(i)
    for t in (h, i):
        with pytest.raises(gg.GradientError, match="hidden"):
            gg.gradients(t, x)
        with pytest.raises(gg.GradientError, match="hidden"):
            gg.gradients(y, t)


def test_S12_where_the_rule_is_exact_the_inside_is_differentiated_instead():
    x = placeholder(())
    rule = gg.Rule(lambda site, dy: 7.0 * dy, "test/exact", contract="exact")
    with gg.override_gradient(rule):
        h = x * x
        y = h * h
    dx = gg.gradients(h, x)
    dh = gg.gradients(y, h)
    cut = gg.gradients(y + x, x, stop_gradients=[h])
    assert values([dx, dh, cut], {x: 3.0}) == [6, 18, 1]
    assert value(gg.gradients(y, x), {x: 3.0}) == 7  # visible: the rule answers


def test_S12_escape_default_and_overrides_none_show_what_is_hidden(secret):
    x, h, y = secret
    dx, dh = gg.gradients(h, x, overrides="none"), gg.gradients(y, h, overrides="none")
    assert values([dx, dh], {x: 0.0}) == pytest.approx([1, np.cos(1.0)])
    region = h.node.region
    assert value(gg.gradients(h, x, overrides={region: None}), {x: 0.0}) == 1


def test_S12_a_reader_outside_built_before_the_question_makes_an_output():
    x = placeholder(())
    with gg.override_gradient(lambda site, da, db: 7.0 * da + 5.0 * db):
        a = exp(x)
        b = sin(a)
    reader = identity(a)
    assert value(gg.gradients(reader, x), {x: 0.0}) == 7
    assert value(gg.gradients(b, x), {x: 0.0}) == 5
    assert value(gg.gradients(multiply(log(a), b), x), {x: 0.0}) == pytest.approx(7 * np.sin(1.0))


@pytest.mark.parametrize("outer_afterwards", [False, True])
@pytest.mark.parametrize("as_function", [False, True])
def test_S09_declared_inputs_of_an_inner_region_are_read_in_their_order_at_its_start(
    outer_afterwards, as_function
):
    """Whichever node inside reads them first, and whether the outer region is marked later."""

    def rule(site, *dys):
        return [dys[0] * 0.0 for _ in site.inputs]

    def inside(a, b, c):
        return gg.sin(c) * b + a

    def inner(a, b, c):
        if as_function:
            return gg.custom_gradient(lambda *xs: (inside(*xs), lambda dy: [dy] * 3))(a, b, c)
        with gg.override_gradient(rule, inputs=[a, b, c]):
            return inside(a, b, c)

    with gg.Graph() as g:
        a, b, c, d = (gg.placeholder(()) for _ in range(4))
        start = len(g)
        if outer_afterwards:
            y = gg.exp(d) + inner(a, b, c)
            (region,) = g.mark(gg.select.nodes(g.nodes[start:]), rule, allow_inside=True)
        else:
            with gg.override_gradient(rule) as region:
                y = gg.exp(d) + inner(a, b, c)
    assert boundary_of(region).inputs == (d, a, b, c)
    assert boundary_of(region).outputs == (y,)


@pytest.mark.parametrize("afterwards", [False, True])
def test_S09_of_two_regions_that_start_together_the_outer_one_reads_first(graph, afterwards):
    def rule(site, *dys):
        return [0.0 for _ in site.inputs]

    def inside():
        with gg.override_gradient(rule, inputs=[a, b]):
            y = multiply(a, b)
        return multiply(y, c)

    a, b, c = (placeholder(()) for _ in range(3))
    if afterwards:
        nodes = [inside().node, exp(b).node]
        nodes += [t.node for t in nodes[0].inputs if t is not c]
        (region,) = graph.mark(gg.select.nodes(nodes), rule)
        graph.mark(gg.select.nodes(nodes[::2]), rule, inputs=[c, b, a], allow_inside=True)
    else:
        with gg.override_gradient(rule) as region:
            with gg.override_gradient(rule, inputs=[c, b, a]):
                inside()
            exp(b)
    assert boundary_of(region).inputs == (c, b, a)


# --- what was interrupted is done again ----------------------------------------------------------


POINT = (0.3, 0.5)


def marked_in_many_ways():
    """A graph with nested regions, one with declared inputs, and a group to be named."""
    graph = gg.Graph()
    with graph:
        x, w = placeholder((), name="x"), placeholder((), name="w")
        with gg.override_gradient(scaled(3)):
            a = sin(x) * w
            with gg.override_gradient(scaled(5), inputs=[a, w]):
                b = exp(a)
        y = tanh(b) * cos(b)
    return graph, [x, w], y


def asked_of_it(graph, xs, y):
    with graph:
        overrides = {gg.select.nodes(y.node.inputs[0], y): scaled(7)}
        return values(gg.gradients(y, xs, overrides=overrides), dict(zip(xs, POINT, strict=True)))


def alone(fn, *args):
    """Call it in a context of its own, which is gone afterwards whatever is left open in it."""
    return contextvars.copy_context().run(fn, *args)


@pytest.mark.ci
def test_an_interrupted_question_leaves_boundaries_that_answer_the_next_one():
    want = asked_of_it(*marked_in_many_ways())
    case = marked_in_many_ways()
    found = [p for p in places(lambda: asked_of_it(*case)) if "/regions/" in p.code[0]]
    assert len(found) > 200
    for place in found[::3]:
        case = marked_in_many_ways()
        interrupted(lambda case=case: alone(asked_of_it, *case), place)
        assert asked_of_it(*case) == want, place
        for region in case[0].regions:
            members = boundary_of(region).members
            assert len(members) == len(set(members)), place


def test_what_derivatives_alone_read_is_an_output_as_what_nothing_reads():
    x, spy = placeholder(()), Spy(scaled(3.0))
    with gg.override_gradient(spy):
        y, z = exp(x), sin(x)
    loss = z * 1.0
    plain = gg.gradients(y, x, overrides="none")  # it reads y, the derivative of exp
    dx = gg.gradients(loss, x)
    assert spy.sites[0].outputs == (y, z)
    assert values([plain, dx], {x: 0.0}) == [1, 3]


def test_S09_what_a_rule_makes_of_a_gradient_by_any_nodes_depends_on_it():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, da, db: (da, tanh(exp(da)))):
        a, _ = exp(x), sin(z)
    assert value(gg.gradients(a, z)) == np.tanh(np.e)


def test_S10_a_constant_that_only_a_default_asks_about_has_no_gradient_there():
    """A custom_gradient may close over one, inside a region whose rule asks for its default."""
    for wanted in (False, True):
        with gg.Graph():
            x, w = gg.placeholder(()), gg.constant(3.0)
            scaled = gg.custom_gradient(lambda x, w=w: (x * w, lambda dy: 5 * dy))
            seen = []

            def rule(site, dy, seen=seen):
                seen.append(dict(zip(site.inputs, site.default(dy), strict=True)))
                return [d if d is gg.extend.NO_GRAD else 2 * d for d in seen[-1].values()]

            with gg.override_gradient(rule):
                y = scaled(x) + w
            if wanted:
                with pytest.raises(gg.GradientError, match="is not among its inputs"):
                    gg.gradients(y, [x, w])
                continue
            np.testing.assert_array_equal(gg.evaluate(gg.gradients(y, x), {x: 1.0}), 10.0)
            assert seen[0][w] is gg.extend.NO_GRAD


def straight(f, x):
    return f(x)


def in_a_scan(f, x):
    return gg.scan(lambda c, _: (f(c), None), x, None, length=1)[0]


def in_a_map(f, x):
    return gg.map(f, gg.reshape(x, (1, 3)))[0]


def in_a_fori_loop(f, x):
    return gg.fori_loop(0, 1, lambda i, c: f(c), x)


def in_a_counted_loop(f, x):
    return gg.fori_loop(gg.constant(0), 1, lambda i, c: f(c), x)


def in_a_while_loop(f, x):
    return gg.while_loop(lambda c: gg.sum(c) < 3.0, lambda c: f(c) + 1.0, x)


def in_a_cond(f, x):
    return gg.cond(gg.sum(x) < 3.0, lambda: f(x), lambda: x * 2.0)


def in_a_switch(f, x):
    return gg.switch(gg.cast(gg.sum(x) > 3.0, "int64"), [lambda: f(x), lambda: x * 2.0])


def in_two_loops(f, x):
    return in_a_scan(lambda c: in_a_scan(f, c), x)


ROUTES = [
    *(straight, in_a_scan, in_a_map, in_a_fori_loop, in_a_counted_loop, in_a_while_loop),
    *(in_a_cond, in_a_switch, in_two_loops),
]


@pytest.mark.parametrize("route", ROUTES)
def test_S09_what_only_a_dead_op_of_a_body_reads_is_an_input_too(route):
    """As where there is no body; and the gradient that the rule gives to it arrives."""

    def rule(site, *dys):
        found.append({t for t in site.inputs if t.type.differentiable})
        dy = sum(d for d in dys if d is not None)
        return {t: 3.0 * dy for t in found[-1] if t.shape == dy.shape}

    def f(v):
        gg.sin(a)
        return gg.identity(v)

    found = []
    x = placeholder((3,))
    a = gg.identity(x)
    with gg.override_gradient(rule):
        y = gg.identity(route(f, x))
    np.testing.assert_array_equal(value(gg.gradients(y, x), {x: np.zeros(3)}), [6.0, 6.0, 6.0])
    assert {x, a} <= found[0]


@pytest.mark.parametrize("route", ROUTES)
def test_S09_a_loop_that_nobody_reads_leaves_a_region_by_what_its_function_returns(route):
    """Not by what it counts, or keeps for its gradient."""
    x = placeholder((3,))
    with gg.override_gradient(lambda site, dy: {x: 2.0 * dy}):
        y = route(gg.sin, x)
    assert value(gg.gradients(y, x), {x: np.ones(3)}).tolist() == [2.0, 2.0, 2.0]


ROWS = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 0.5]])
OF_ARRAYS = {
    "mse_loss": lambda x: gg.nn.mse_loss(x, ROWS),
    "triplet_margin_loss": lambda x: gg.nn.triplet_margin_loss(x, ROWS, ROWS * 2.0),
    "nll_loss": lambda x: gg.nn.nll_loss(x, np.array([0, 1]), weight=np.ones(3)),
    "cross_entropy": lambda x: gg.nn.cross_entropy(x, np.array([0, 1]), weight=np.ones(3)),
    "pairwise_distance": lambda x: gg.nn.pairwise_distance(x, ROWS),
    "layer_norm": lambda x: gg.nn.layer_norm(x, scale=np.ones(3), offset=np.zeros(3)),
    "prelu": lambda x: gg.nn.prelu(x, np.ones(3)),
    "associative_scan": lambda x: gg.associative_scan(gg.add, x, axis=1),
    "gradient": lambda x: gg.gradient(x, np.array([0.0, 1.0, 3.0]), axis=1),
    "einsum": lambda x: gg.einsum("ij,ij->i", x, ROWS),
    "at": lambda x: gg.at(x)[np.array([0, 1])].set(ROWS),
    "where": lambda x: gg.where(ROWS > 1.0, x, ROWS),
    "clip": lambda x: gg.clip(x, ROWS - 1.0, ROWS + 1.0),
    "average": lambda x: gg.average(x, weights=ROWS),
    "logsumexp": lambda x: gg.logsumexp(x, 1),
    "percentile": lambda x: gg.percentile(x, 30.0, axis=1),
    "cov": lambda x: gg.cov(x, fweights=np.array([1, 2, 1]), aweights=np.ones(3)),
    "norm": lambda x: gg.linalg.norm(x, 1, axis=1),
    "norm of order 0": lambda x: gg.linalg.norm(x, 0, axis=1),
    "pinv": lambda x: gg.linalg.pinv(x, rtol=np.array([0.1])),
    "polyfit": lambda x: gg.polyfit(np.arange(2.0), x, 1),
    "reshape_like": lambda x: gg.reshape_like(x, ROWS.T),
    "sum_to": lambda x: gg.sum_to(x, like=ROWS[0]),
    "channel_dropout": lambda x: gg.nn.channel_dropout(x, 0.5, training=False) * 2.0,
    "fake_quantise": lambda x: gg.rules.fake_quantise(x, 0.0, 3.0) * 2.0,
    "fractional_max_pool": lambda x: gg.nn.fractional_max_pool(x[None], 1, 2, data_format="NCHW"),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_S09_a_function_of_arrays_builds_nothing_that_is_not_read(name):
    """It would be an output of the region, and the rule would get a gradient of it."""
    x = placeholder((2, 3))
    outputs = []

    def rule(site, *dys):
        outputs.extend(site.outputs)
        return site.default(*dys)

    with gg.override_gradient(rule):
        y = OF_ARRAYS[name](x)
    gg.gradients(reduce_sum(y), x)
    assert outputs == [y]


@pytest.mark.parametrize("declared", [True, False])
def test_S09_what_declared_outputs_hide_is_no_output_of_a_region_around(declared):
    x, spy = placeholder(()), Spy(scaled(3.0))
    with gg.override_gradient(spy):
        with gg.override_gradient(scaled(5.0)) as inner:
            y, unread = exp(x), tanh(x)
            if declared:
                inner.declare(outputs=[y])
        z = y * 1.0
    gg.gradients(z, x)
    assert spy.sites[0].outputs == ((z,) if declared else (unread, z))
