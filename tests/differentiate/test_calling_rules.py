"""How a rule is called, and what it may return."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.elementwise.arithmetic import multiply, negative, subtract
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.logic import where
from graphgrad.ops.elementwise.trigonometry import cos, sin, tanh
from graphgrad.ops.random import bernoulli, normal
from graphgrad.ops.reduce.reductions import sum as reduce_sum
from graphgrad.ops.shape.reshaping import broadcast_to
from graphgrad.ops.sources import identity, placeholder, stop_gradient

from .helpers import (
    Spy,
    default,
    impure,
    message_of,
    scaled,
    value,
    values,
)

# --- what is built comes from the call -----------------------------------------------------------


def test_a_dy_that_is_given_back_as_it_came_is_a_node_of_the_call():
    """So that graphs, pictures and profiles show that the rule was there."""
    x, z = placeholder((3,)), placeholder((3,))
    with gg.override_gradient(lambda site, dy: (dy, dy)) as region:
        y = multiply(x, z)
    dy = placeholder((3,))
    dx, dz = gg.gradients(y, [x, z], grad_ys=[dy])
    for found in (dx, dz):
        assert found.node.type == "Identity"
        assert found.node.origin.site is region
        assert found.node.inputs == (dy,)
    again, _ = gg.gradients([reduce_sum(dx * dx * x)], [dy, x])
    np.testing.assert_array_equal(value(again, {x: np.ones(3), dy: np.full(3, 2.0)}), np.full(3, 4))
    assert not gg.compile([dy], dx).program.nodes


# --- S14: the site -------------------------------------------------------------------------------


def test_S14_a_region_shows_its_tensors_name_type_attrs_and_nodes():
    x = placeholder(())
    spy = Spy()
    with gg.temporary_gradient("test/spy", spy):
        with gg.override_gradient("test/spy", strength=3.0, mode="soft"):
            h = exp(x)
            y = sin(h)
        gg.gradients(y, x)
    (site,) = spy.sites
    assert site.inputs == (x,)
    assert site.outputs == (y,)
    assert site.name == "test/spy"
    assert site.type == "Region"
    assert site.attrs == {"strength": 3.0, "mode": "soft"}
    assert site.get_attr("strength") == 3.0
    with pytest.raises(KeyError, match="strength"):
        site.get_attr("strenght")
    assert site.nodes == (h.node, y.node)


def test_S14_a_node_shows_its_tensors_name_type_attrs_and_node():
    x = placeholder((2, 3))
    spy = Spy()
    with gg.gradient_override_map({"ReduceSum": spy}):
        y = reduce_sum(x, axis=1)
    gg.gradients(y, x)
    (site,) = spy.sites
    assert site.inputs == (x,)
    assert site.outputs == (y,)
    assert site.name == y.node.name
    assert site.type == "ReduceSum"
    assert site.get_attr("axes") == site.attrs["axes"] == (1,)
    with pytest.raises(KeyError, match="axes"):
        site.get_attr("axis")
    assert site.nodes == (y.node,)
    assert site.op is y.node.op


def test_S14_a_legacy_rule_ports_line_for_line():
    def guided(op, grad):
        return op.outputs[0].op.inputs[0] * grad * float(op.get_attr("axes") == (0,))

    x = placeholder((3,))
    with gg.gradient_override_map({"ReduceSum": guided}):
        y = reduce_sum(x)
    assert value(gg.gradients(y, x), {x: [1, 2, 3]}).tolist() == [1, 2, 3]


def test_S14_the_sites_graph_is_current_while_its_rule_runs(graph):
    seen = []

    def rule(site, dy):
        seen.append((gg.default_graph(), gg.constant(2.0).graph))
        return dy * 2.0

    x = placeholder(())
    with gg.override_gradient(rule):
        y = exp(x)
    with gg.Graph() as other:
        dx = gg.gradients(y, x)
        assert gg.default_graph() is other
        assert len(other) == 0
    assert seen == [(graph, graph)]
    assert dx.graph is graph
    assert value(dx, {x: 0.0}) == 2


def test_S14_no_scope_of_the_caller_is_current_while_a_rule_runs():
    seen = []

    def rule(site, dy):
        seen.append(sin(dy))
        return seen[-1]

    x = placeholder(())
    with gg.override_gradient(rule):
        y = exp(x)
    with gg.gradient_override_map({"Sin": default}, allow_empty=True), gg.name_scope("theirs"):
        gg.gradients(y, x)
    (node,) = (t.node for t in seen)
    assert node.stamp is None
    assert "theirs" not in node.name


def test_S14_a_region_of_another_graph_that_is_open_at_the_call_is_not_current():
    x = placeholder(())
    spy = Spy()
    with gg.override_gradient(spy):
        y = exp(x)
    with gg.Graph(), gg.override_gradient(default):
        sin(placeholder(()))
        dx = gg.gradients(y, x)
    assert dx.node.region is None


def test_S14_mixing_graphs_is_an_error_that_names_both():
    with gg.Graph("the-other"):
        foreign = placeholder(())
    x = placeholder(())
    for rule in (lambda site, dy: foreign, lambda site, dy: dy * foreign):
        with gg.override_gradient(rule):
            y = exp(x)
        with pytest.raises(gg.GraphGradError) as error:
            gg.gradients(y, x)
        assert "'the-other'" in message_of(error.value)
        assert "'graph'" in message_of(error.value)


# --- S15: once, with everything added ------------------------------------------------------------


def test_S15_gradients_along_several_paths_are_added_before_the_rule_is_called():
    x = placeholder(())
    spy = Spy(lambda site, dy: dy * dy)
    with gg.override_gradient(spy):
        y = identity(x)
    z = 3.0 * y + 4.0 * y
    assert value(gg.gradients(z, x)) == 49
    assert spy.calls == 1


def test_S15_for_stamps_too():
    x = placeholder(())
    spy = Spy(lambda site, dy: dy * dy)
    with gg.gradient_override_map({"Identity": spy}):
        y = identity(x)
    assert value(gg.gradients([3.0 * y, 4.0 * y], x)) == 49
    assert spy.calls == 1


def test_S15_once_per_site_and_gradients_call():
    x = placeholder(())
    spy = Spy()
    with gg.override_gradient(spy):
        a, b = exp(x), sin(x)
    gg.gradients([a, b, a * b], [x, x])
    assert spy.calls == 1
    gg.gradients(a, x)
    assert spy.calls == 2


def test_S15_each_default_of_an_enclosing_region_is_a_call_of_its_own_for_the_sites_inside():
    x = placeholder(())
    inner, stamp = Spy(lambda site, dy: dy * dy), Spy()

    def outer(site, dy):
        (once,) = site.default(3.0 * dy)
        (twice,) = site.default(4.0 * dy)
        return once + twice

    with gg.override_gradient(outer):
        with gg.override_gradient(inner):
            h = identity(x)
        with gg.gradient_override_map({"Negative": stamp}):
            y = negative(h)
    assert value(gg.gradients(y, x)) == 25
    assert inner.calls == stamp.calls == 2


def test_S15_a_rule_may_call_gradients_of_its_own_region():
    x = placeholder(())

    def rule(site, dy):
        (dx,) = gg.gradients(site.outputs, site.inputs, grad_ys=[dy])
        return 2.0 * dx

    with gg.override_gradient(rule):
        y = exp(sin(x))
    dx = gg.gradients(y, x)
    assert value(dx, {x: 0.0}) == 2


def test_S15_a_rule_may_call_gradients_of_its_own_node():
    x = placeholder(())

    def rule(site, dy):
        return 2.0 * gg.gradients(site.outputs[0], site.inputs[0], grad_ys=dy)

    with gg.gradient_override_map({"Exp": rule}):
        y = exp(exp(x))
    assert value(gg.gradients(y, x), {x: 0.0}) == pytest.approx(4 * np.e)


def test_S15_such_a_rule_sees_the_rules_of_other_sites():
    x = placeholder(())

    def whole(site, dy):
        return gg.gradients(site.outputs[0], x, grad_ys=dy)

    with gg.override_gradient(lambda site, dy: 5.0 * dy):
        h = exp(x)
    with gg.override_gradient(whole):
        y = 2.0 * h
    assert value(gg.gradients(y, h)) == 10


# --- S16: outputs without a gradient -------------------------------------------------------------


def test_S16_a_floating_output_without_a_gradient_gets_zeros():
    x = placeholder((3,))
    spy = Spy(lambda site, da, db: 2.0 * da + 3.0 * db)
    with gg.override_gradient(spy):
        a, b = exp(x), sin(x)
    dx = gg.gradients(a, x)
    assert value(dx, {x: [1, 2, 3]}).tolist() == [2, 2, 2]
    da, db = spy.dys[0]
    assert db.type is b.type
    assert gg.is_zero(db)
    assert not gg.is_zero(da)


def test_S16_a_complex_output_without_a_gradient_gets_zeros():
    x = placeholder(())
    spy = Spy(lambda site, da, dz: 2.0 * da)
    with gg.override_gradient(spy):
        a, z = exp(x), gg.cast(x, "complex128")
    gg.gradients(a, x)
    assert gg.is_zero(spy.dys[0][1])
    assert spy.dys[0][1].type is z.type


def test_S16_an_integer_or_bool_output_gets_None():
    x = placeholder(())
    spy = Spy(lambda site, da, dn, db: 2.0 * da)
    with gg.override_gradient(spy):
        a = exp(x)
        n = gg.cast(x, "int64")
        b = gg.cast(x, "bool")
    gg.gradients([a, gg.cast(n, "float64"), gg.cast(b, "float64")], x)
    assert spy.dys[0][1:] == (None, None)


def test_S16_if_no_output_has_a_gradient_the_rule_is_not_called():
    x = placeholder(())
    spy = Spy()
    with gg.override_gradient(spy):
        y = exp(x)
    z = stop_gradient(y) + x
    n = gg.cast(gg.cast(y, "int64"), "float64") + x
    assert values(gg.gradients([z, n], x)) == 2
    assert spy.calls == 0


def test_S16_zeros_are_built_only_if_read(graph):
    x = placeholder((3,))
    with gg.override_gradient(lambda site, da, db: 2.0 * da):
        a, _b = exp(x), sin(x)
    before = len(graph)
    gg.gradients(a, x)
    assert {n.type for n in graph.nodes[before:]} <= {"Full", "Multiply", "Constant"}
    assert [n.attrs["value"] for n in graph.nodes[before:] if n.type == "Full"] == [1]


def test_S16_a_zero_stays_known_on_its_way_through_sums_and_ops():
    spy = Spy()
    for way in (
        lambda y: gg.zero_gradient(y) + gg.zero_gradient(y),
        lambda y: gg.zero_gradient(exp(y)),
        lambda y: gg.zero_gradient(y * exp(y)),
        lambda y: gg.zero_gradient(gg.split(y, 2)[0]),
    ):
        x = placeholder((2,))
        with gg.override_gradient(spy):
            y = exp(x)
        gg.gradients(way(y), x)
        assert gg.is_zero(spy.dys[-1][0])


def test_S16_is_zero_is_false_of_other_tensors():
    assert not gg.is_zero(placeholder(()))
    assert not gg.is_zero(gg.constant(0.0))


# --- S15: what a rule is given are its arguments --------------------------------------------------


def by_gradients(site, dy):
    return gg.gradients(dy * site.inputs[0] ** 2, site.inputs[0])


def by_jvp(site, dy):
    return gg.jvp(dy * site.inputs[0] ** 2, site.inputs[0])


def by_default(site, dy):
    (dx,) = site.default(dy)
    return gg.gradients(gg.sum(gg.sin(dx)), site.inputs[0]) + dx


def by_cond(site, dy):
    (x,) = site.inputs
    chosen = gg.cond(gg.sum(dy) > 0, lambda: gg.sum(dy * sin(x)), lambda: gg.sum(dy * x))
    return gg.gradients(chosen, x)


def by_its_own_graph(site, dy):
    with gg.Graph():
        a = gg.constant(3.0)
        (slope,) = gg.evaluate(gg.gradients([a * a], [a]))
    return gg.gradients(float(slope) * dy * site.inputs[0], site.inputs[0])


def at_home(fn, x):
    return gg.gradients(fn(x), x)


def in_a_loop(fn, x):
    total, _ = gg.scan(lambda c, _: (c + fn(x), None), 0.0, length=1)
    return gg.gradients(total, x)


def of_a_batch(fn, x):
    rows = gg.stack([x, 2 * x])
    return gg.gradients(gg.sum(gg.vmap(fn)(rows)), rows)[0]


def in_a_batch(fn, x):
    return gg.vmap(lambda row: gg.gradients(fn(row), row))(gg.stack([x, 2 * x]))[0]


def unpickled(fn, x):
    y = fn(x)
    there = pickle.loads(pickle.dumps(x.graph))
    new, loss = (there.nodes[t.node.index].outputs[t.index] for t in (x, y))
    with there:
        run = gg.compile(new, gg.gradients(loss, new))
    return gg.constant(run(X3))


X3 = np.array([0.1, 0.2, 0.3])
ITS_OWN = [by_gradients, by_jvp, by_default, by_cond, by_its_own_graph]
PLACES = [in_a_loop, of_a_batch, in_a_batch, unpickled]


@pytest.mark.parametrize("rule", ITS_OWN)
@pytest.mark.parametrize("loss", [lambda x, y: y * y, lambda x, y: x * y], ids=["y*y", "x*y"])
def test_S15_what_a_rule_differentiates_ends_at_what_it_is_given(rule, loss, own_names):
    """In x * y the gradient that arrives is x itself, and still no way to x."""
    gg.register_gradient("test/its own")(rule)

    def fn(x):
        with gg.override_gradient("test/its own"):
            y = sin(x)
        return gg.sum(loss(x, y))

    found = {}
    for place in (at_home, *PLACES):
        with gg.Graph():
            x = placeholder((3,))
            found[place] = gg.compile(x, place(fn, x))(X3)
    for place in PLACES:
        np.testing.assert_allclose(found[place], found[at_home], rtol=1e-12)


def test_S15_by_gradients_it_is_the_partial_derivative():
    with gg.override_gradient(by_gradients):
        y = sin(x := placeholder((3,)))
    dx = gg.gradients(gg.sum(y * y), x)
    (d2x,) = gg.gradients([gg.sum(dx)], [x])
    dx, d2x = gg.compile(x, [dx, d2x])(X3)
    np.testing.assert_allclose(dx, 2 * np.sin(X3) * 2 * X3)
    np.testing.assert_allclose(d2x, 4 * np.sin(X3) + 4 * X3 * 2 * X3)  # of y by the rule again


def test_S15_a_rule_may_differentiate_by_what_it_is_given():
    with gg.override_gradient(lambda site, dy: gg.gradients(dy * dy * site.inputs[0], dy)):
        y = sin(x := placeholder((3,)))
    np.testing.assert_allclose(value(gg.gradients(gg.sum(y * y), x), {x: X3}), 4 * np.sin(X3) * X3)


def test_S15_so_ends_the_jvp_of_a_rule_at_its_tangents(own_names):
    @gg.register_gradient("test/own jvp", jvp=by_gradients)
    def rule(site, dy):
        return by_gradients(site, dy)

    def moved(x, dx):
        with gg.override_gradient("test/own jvp"):
            y = sin(x)
        return gg.jvp(y, x, dx)

    x = placeholder((3,))
    found = value(moved(x, x * x), {x: X3})
    np.testing.assert_allclose(found, X3**2 * 2 * X3)


# --- S17: the default ----------------------------------------------------------------------------


def test_S17_under_an_override_of_the_call_the_default_is_the_marked_rule():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 5.0 * dy) as region:
        y = exp(x)
    with gg.gradient_override_map({"Sin": lambda site, dy: 5.0 * dy}):
        z = sin(x)
    assert value(gg.gradients(y, x, overrides={region: scaled(2.0)})) == 10
    assert value(gg.gradients(z, x, overrides={"Sin": scaled(2.0)})) == 10


def test_S17_under_the_marked_rule_the_default_of_that_is_the_inside():
    x = placeholder(())
    with gg.override_gradient(scaled(5.0)) as region:
        y = x * x
    with gg.gradient_override_map({"Negative": scaled(5.0)}):
        z = negative(x)
    assert value(gg.gradients(y, x, overrides={region: scaled(2.0)}), {x: 1.0}) == 20
    assert value(gg.gradients(z, x, overrides={"Negative": scaled(2.0)})) == -10


def test_S17_under_an_override_of_an_unmarked_node_the_default_is_the_ops_own():
    x = placeholder(())
    y = negative(x)
    assert value(gg.gradients(y, x, overrides={"Negative": scaled(2.0)})) == -2


def test_S17_under_a_stamp_the_default_is_the_ops_own():
    x = placeholder(())
    with gg.gradient_override_map({"Exp": scaled(2.0)}):
        y = exp(x)
    assert value(gg.gradients(y, x), {x: 0.0}) == 2


def test_S17_the_default_is_a_tuple_of_partials():
    x = placeholder(())
    a = 2.0 * x
    b = 3.0 * a  # depends on a
    seen = []

    def rule(site, dy):
        seen.append(site.default(dy))
        return seen[-1]

    with gg.override_gradient(rule):
        y = a * b
    dx = gg.gradients(y, x)
    assert isinstance(seen[0], tuple)
    assert values([*seen[0], dx], {x: 1.0}) == [6, 2, 24]


def test_S17_a_structural_zero_where_nothing_flows_and_NO_GRAD_for_integers():
    x, z = placeholder((3,)), placeholder(())
    n, b = placeholder((), "int64"), placeholder((), "bool")
    seen = {}

    def rule(site, dy):
        found = site.default(dy)
        seen.update(zip(site.inputs, found, strict=True))
        return found

    with gg.override_gradient(rule):
        y = x * gg.cast(n, "float64") + stop_gradient(z) * gg.cast(b, "float64")
    gg.gradients(y, [x, z])
    assert seen[n] is seen[b] is gg.NO_GRAD
    assert gg.is_zero(seen[z])
    assert seen[z].type is z.type
    assert not gg.is_zero(seen[x])


def test_S17_fed_values_are_those_of_the_forward_run():
    x = placeholder(())
    with gg.override_gradient(default):
        h = exp(x)
        y = h * h
    dx = gg.gradients(y, x)
    plain = gg.gradients(exp(x) * exp(x), x)
    assert value(dx, {x: 1.0}) == pytest.approx(value(plain, {x: 1.0}))
    assert value(dx, {x: 1.0, h: 10.0}) == 2 * 10 * 10  # dh = 2h, dx = dh * h


def test_S17_fed_outputs_too():
    x = placeholder(())
    with gg.override_gradient(default):
        y = exp(x)
    assert value(gg.gradients(y, x), {x: 1.0, y: 10.0}) == 10


def test_S17_random_values_are_those_of_the_forward_run():
    rng = np.random.default_rng(0)
    x = placeholder((100,))
    with gg.override_gradient(default):
        noise = impure(stop_gradient(x), lambda a: rng.normal(size=a.shape))  # each run anew
        y = x * noise
    dx = gg.gradients(y, x)
    y_found, dx_found = values([y, dx], {x: np.ones(100)})
    assert (y_found == dx_found).all()


def test_S17_dropout_has_one_mask_forward_and_backward():
    x = placeholder((100,))
    seed = placeholder((), "int64")

    def dropped(t):
        return where(bernoulli(t, 0.5, seed=seed), t * 2.0, 0.0)

    with gg.override_gradient(default):
        y = dropped(x) + normal((100,), seed=3) * 0.0
    dx = gg.gradients(y, x)
    for s in range(3):
        y_found, dx_found = values([y, dx], {x: np.ones(100), seed: s})
        assert (y_found == dx_found).all()
        assert 20 < dx_found.sum() / 2 < 80


def test_S17_nothing_is_copied_or_computed_again(graph):
    runs = []
    x = placeholder(())
    with gg.override_gradient(default):
        h = impure(x, lambda a: runs.append(1) or np.exp(a), vjp=lambda n, dy: dy * n.outputs[0])
        y = sin(h)
    dx = gg.gradients(y, x)
    values([y, dx], {x: 0.3})
    assert runs == [1]
    assert [n.type for n in graph.nodes].count("Sin") == 1


def test_S17_what_the_default_builds_reads_the_inside_as_residuals():
    x = placeholder(())
    with gg.override_gradient(scaled(2.0)):
        y = exp(x)
    g1 = gg.gradients(y, x)
    g2 = gg.gradients(g1, x)
    g3 = gg.gradients(g2, x)
    assert values([g1, g2, g3], {x: 0.0}) == [2, 2, 2]  # not 4, not 8


def test_S17_under_a_stamp_too_what_the_default_builds_is_a_residual():
    x = placeholder(())
    with gg.gradient_override_map({"Exp": scaled(2.0)}):
        y = exp(x)
    g1 = gg.gradients(y, x)
    g2 = gg.gradients(g1, x)
    g3 = gg.gradients(g2, x)
    assert values([g1, g2, g3], {x: 0.0}) == [2, 2, 2]


def test_S17_what_is_not_used_costs_nothing():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, dy: [site.default(dy)[0], 7.0]):
        y = sin(x) * exp(z)
    dz = gg.gradients(y, z)
    assert not any(n.type in ("Sin", "Exp") for n in gg.Program([x, z], [dz]).nodes)


def test_S17_an_unused_default_is_not_in_the_program():
    x = placeholder(())

    def rule(site, dy):
        site.default(dy)
        return 7.0 * dy

    with gg.override_gradient(rule):
        y = sin(exp(x))
    program = gg.Program([x], [gg.gradients(y, x)])
    assert {n.type for n in program.nodes} <= {"Full", "Constant", "Multiply"}


def test_S17_the_default_takes_numbers_arrays_tensors_and_nothing():
    x = placeholder((2,))
    seen = []

    def rule(site, da, db):
        seen.append(site.default(2.0, None)[0])
        seen.append(site.default(gg.NO_GRAD, np.array([1.0, 2.0]))[0])
        seen.append(site.default(da, db)[0])
        return seen[-1]

    with gg.override_gradient(rule):
        a, b = 3.0 * x, 5.0 * x
    gg.gradients([a, b], x)
    assert [v.tolist() for v in values(seen, {x: [0, 0]})] == [[6, 6], [5, 10], [8, 8]]


def test_S17_the_default_refuses_what_does_not_fit():
    def wrong_count(site, dy):
        return site.default(dy, dy)

    def wrong_shape(site, dy):
        return site.default(reduce_sum(dy))

    def wrong_dtype(site, dy):
        return site.default(gg.cast(dy, "float32"))

    x = placeholder((2,))
    for rule in (wrong_count, wrong_shape, wrong_dtype):
        with gg.override_gradient(rule):
            y = exp(x)
        with pytest.raises(gg.GradientError, match="default"):
            gg.gradients(y, x)


def test_S17_the_default_is_there_only_while_the_rule_runs():
    x = placeholder(())
    spy = Spy()
    with gg.override_gradient(spy):
        y = exp(x)
    gg.gradients(y, x)
    with pytest.raises(gg.GradientError, match="while its rule runs"):
        spy.sites[0].default(1.0)


def test_S17_a_default_of_all_zeros_is_all_zeros():
    seen = []

    def rule(site, dy):
        seen.extend(site.default(None))
        return dy

    x = placeholder(())
    with gg.override_gradient(rule):
        y = exp(x)
    with gg.gradient_override_map({"Sin": rule}):
        z = sin(x)
    gg.gradients([y, z], x)
    assert all(map(gg.is_zero, seen))
    assert len(seen) == 2


# --- S18: what a rule may return -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (7, [7, 7, 7]),
        (7.0, [7, 7, 7]),
        (np.float32(7.0), [7, 7, 7]),
        (np.array([1.0, 2.0, 3.0]), [1, 2, 3]),
        ([np.array([1, 2, 3])], [1, 2, 3]),
        ([7.0], [7, 7, 7]),
        ((7.0,), [7, 7, 7]),
        (True, [1, 1, 1]),
    ],
)
def test_S18_numbers_and_arrays(returned, expected):
    x = placeholder((3,))
    with gg.override_gradient(lambda site, dy: returned):
        y = exp(x)
    assert value(gg.gradients(y, x), {x: [0, 0, 0]}).tolist() == expected


def test_S18_an_array_becomes_a_constant_and_its_shape_must_match():
    x = placeholder((3,))
    for array in (np.ones(2), np.ones((1, 3)), np.ones(1), [np.ones((3, 1))]):
        with gg.override_gradient(lambda site, dy, array=array: array):
            y = exp(x)
        with pytest.raises(gg.GradientError, match="shape"):
            gg.gradients(y, x)


def test_S18_an_array_for_an_input_of_unknown_shape_is_checked_when_run():
    x = placeholder((None,))
    with gg.override_gradient(lambda site, dy: np.ones(3)):
        y = exp(x)
    dx = gg.gradients(y, x)
    assert value(dx, {x: [0, 0, 0]}).tolist() == [1, 1, 1]
    with pytest.raises(gg.ExecutionError, match=r"\(2,\)"):
        value(dx, {x: [0, 0]})


@pytest.mark.parametrize("nothing", [gg.NO_GRAD, None])
def test_S18_NO_GRAD_or_None_as_an_entry_nothing_flows(nothing):
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, dy: [nothing, dy]):
        y = x * z
    assert gg.gradients(y, x) is None
    assert values(gg.gradients(y, [x, z], unconnected="zero")) == [0, 1]
    assert value(gg.gradients([y, 3.0 * x], x)) == 3  # the other path


def test_S18_NO_GRAD_alone_is_one_entry():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: gg.NO_GRAD):
        y = exp(x)
    assert gg.gradients(y, x) is None


def test_S18_DEFAULT_is_the_default_for_this_input():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, dy: (gg.DEFAULT, 7.0 * dy)):
        y = x * z
    assert values(gg.gradients(y, [x, z]), {x: 2.0, z: 3.0}) == [3, 7]
    with gg.gradient_override_map({"Multiply": lambda site, dy: (7.0 * dy, gg.DEFAULT)}):
        y = multiply(x, z)
    assert values(gg.gradients(y, [x, z]), {x: 2.0, z: 3.0}) == [7, 2]


def test_S18_DEFAULT_alone_is_one_entry():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: gg.DEFAULT):
        y = exp(x)
    assert value(gg.gradients(y, x), {x: 0.0}) == 1


def test_S18_DEFAULT_of_an_integer_input_is_nothing():
    x, n = placeholder(()), placeholder((), "int64")
    with gg.override_gradient(lambda site, dy: [gg.DEFAULT, gg.DEFAULT]):
        y = x * gg.cast(n, "float64")
    assert value(gg.gradients(y, x), {n: 3}) == 3


def test_S18_a_mapping_names_every_floating_input():
    x, z, c, n = (placeholder((), dtype) for dtype in ("f8", "f8", "c16", "i8"))
    with gg.override_gradient(lambda site, dy: {z: gg.DEFAULT}) as region:
        y = x * z * gg.real(c) * gg.cast(n, "float64")
    with pytest.raises(gg.GradientError, match="a mapping without an entry for") as error:
        gg.gradients(y, z)
    message = message_of(error.value)
    for part in (f"{x.name}: float64[], built at test_calling_rules.py:", c.name, "say NO_GRAD"):
        assert part in message
    assert n.name not in message
    region.rule = lambda site, dy: {c: gg.NO_GRAD, x: None, z: 2.0 * dy}
    dx, dz = gg.gradients(y, [x, z])
    assert dx is None
    assert value(dz, {}) == 2


def test_S18_a_mapping_for_a_stamped_node_names_both_operands():
    x, z = placeholder(()), placeholder(())
    with gg.gradient_override_map({"Multiply": lambda site, dy: {site.inputs[0]: dy}}):
        y = x * z
    with pytest.raises(gg.GradientError, match=f"without an entry for\n  {z.name}"):
        gg.gradients(y, x)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("where", ["home", "cond", "nested", "vmap", "vmap of cond", "copy"])
def test_S18_the_keys_of_a_mapping_may_be_the_tensors_outside_of_a_body(where, order):
    """y = x x v with d/dx = 5 dy x and d/dv = 3 dy v, whatever body it stands in."""
    x, v = placeholder((3,), name="x"), placeholder((3,), name="v")

    @gg.override_gradient(lambda site, dy: {x: 5.0 * dy * x, v: 3.0 * dy * v})
    def outside():
        return x * x * v

    @gg.custom_gradient
    def f(a):
        return a * a * v, lambda dy: {a: 5.0 * dy * a, v: 3.0 * dy * v}

    def chosen(fn, other):
        return gg.cond(gg.sum(v) < 99.0, fn, lambda: other)

    y = {
        "home": outside,
        "cond": lambda: chosen(outside, x),
        "nested": lambda: chosen(lambda: chosen(outside, x), x),
        "vmap": lambda: gg.vmap(f)(gg.expand_dims(x, 0)),
        "vmap of cond": lambda: gg.vmap(lambda t: chosen(lambda: f(t), t))(gg.expand_dims(x, 0)),
        "copy": outside,
    }[where]()
    graph = x.graph if where != "copy" else x.graph.copy()
    with graph:
        y, s, t = graph.nodes[y.node.index].outputs[0], graph.tensor("x"), graph.tensor("v")
        dx, dv = gg.gradients(y, [s, t])
        if order == 2:
            dx, dv = gg.gradients(dx, s), gg.gradients(dv, t)
        feeds = {s: [1.0, 2.0, 3.0], t: [4.0, 5.0, 6.0]}
        expected = [[5, 10, 15], [12, 15, 18]] if order == 1 else [[5] * 3, [3] * 3]
        assert [a.tolist() for a in values([dx, dv], feeds)] == expected


def test_S18_an_entry_inside_and_one_outside_for_the_same_input_is_an_error():
    x = placeholder(())
    rule = {"both": lambda site, dy: {x: dy, site.inputs[0]: dy}}
    y = gg.cond(x > 0, lambda: gg.override_gradient(rule["both"])(sin)(x), lambda: x)
    with pytest.raises(gg.GradientError, match="twice: inside and outside"):
        gg.gradients(y, x)
    with gg.Graph():
        elsewhere = placeholder(())
    y = gg.cond(
        x > 0, lambda: gg.override_gradient(lambda s, dy: {elsewhere: dy})(sin)(x), lambda: x
    )
    with pytest.raises(gg.GradientError, match="which it does not read"):
        gg.gradients(y, x)


def test_S18_a_bare_None_is_an_error_that_asks_for_the_return():
    def forgot(site, dy):
        2.0 * dy

    x = placeholder(())
    with gg.override_gradient(forgot):
        y = exp(x)
    with pytest.raises(gg.GradientError, match=r"is a `return` missing\?") as error:
        gg.gradients(y, x)
    assert "'forgot'" in str(error.value)
    assert "test_calling_rules.py" in str(error.value)


def test_S18_a_generator_is_an_error():
    def generates(site, dy):
        yield dy

    x = placeholder(())
    for rule in (generates, lambda site, dy: (d for d in [dy])):
        with gg.override_gradient(rule):
            y = exp(x)
        with pytest.raises(gg.GradientError, match="generator"):
            gg.gradients(y, x)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_S18_the_wrong_count_is_an_error_that_lists_the_inputs(count):
    x, z = placeholder((), name="left"), placeholder((), name="right")
    with gg.override_gradient(lambda site, dy: [dy] * count):
        y = x * z
    with pytest.raises(gg.GradientError, match=f"{count} gradients? for 2 inputs") as error:
        gg.gradients(y, [x, z])
    assert "left" in str(error.value)
    assert "right" in str(error.value)


def test_S18_a_single_value_is_for_one_input():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, dy: dy):
        y = x * z
    with pytest.raises(gg.GradientError, match="1 gradient for 2 inputs"):
        gg.gradients(y, x)


@pytest.mark.parametrize("bad", ["text", object(), 1j, np.array(["a"]), {1, 2}, [[1.0, 2.0], [3]]])
def test_S18_anything_else_is_an_error(bad):
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: [bad]):
        y = exp(x)
    with pytest.raises(gg.GradientError, match="must return"):
        gg.gradients(y, x)


# --- S19: shape and dtype ------------------------------------------------------------------------


def wrong_shape(site, dy):
    return broadcast_to(dy, (3, 3))


def wrong_dtype(site, dy):
    return gg.cast(dy, "float32")


def integer(site, dy):
    return gg.cast(dy, "int64")


@pytest.mark.parametrize(
    ("rule", "got"),
    [
        (wrong_shape, "float64[3, 3]"),
        (wrong_dtype, "float32[3]"),
        (integer, "int64[3]"),
        (lambda site, dy: reduce_sum(dy), "float64[]"),
    ],
)
@pytest.mark.parametrize("kind", ["region", "stamp"])
def test_S19_a_gradient_has_the_shape_and_dtype_of_its_input(rule, got, kind):
    x = placeholder((3,), name="the_input")
    scope = (
        gg.override_gradient(rule) if kind == "region" else gg.gradient_override_map({"Exp": rule})
    )
    with scope:
        y = exp(x)
    with pytest.raises(gg.GradientError) as error:
        gg.gradients(y, x)
    message = str(error.value)
    assert rule.__name__ in message
    line = rule.__code__.co_firstlineno
    assert f"defined at test_calling_rules.py:{line}" in message
    assert message.count("test_calling_rules.py") >= 2  # the rule's line and the site's
    assert "the_input" in message
    assert "float64[3]" in message
    assert got in message


def test_S19_the_error_says_where_the_site_was_opened():
    x = placeholder((3,))
    with gg.override_gradient(wrong_shape) as region:
        y = exp(x)
    with pytest.raises(gg.GradientError) as error:
        gg.gradients(y, x)
    assert region.where in str(error.value)


@pytest.mark.parametrize(
    ("shape", "got", "hint"),
    [
        ((4, 3), (3,), "gg.broadcast_like(dx, x)"),
        ((4, 1), (4, 3), "gg.sum_to(dx, like=x)"),
        ((3,), (4, 3), "gg.sum_to(dx, like=x)"),
    ],
)
def test_S19_the_error_says_how_to_make_it_of_the_right_shape(shape, got, hint):
    x = placeholder(shape)
    with gg.override_gradient(lambda site, dy: gg.zeros(got)):
        y = exp(x)
    with pytest.raises(gg.GradientError) as error:
        gg.gradients(y, x)
    assert hint in str(error.value)
    assert str(error.value).count("gg.") == 1


@pytest.mark.parametrize("stored", [False, True])
def test_S19_the_error_says_that_the_examples_of_a_batch_share_an_input(stored):
    """Its stamp makes the batch, and the rule of the call is put on that."""
    x = placeholder((3,))

    def f(k):
        with gg.gradient_override_map({"Exp": lambda site, dy: dy * k}):
            return exp(x)

    y = gg.vmap(f)(gg.constant([1.0, 2.0]))
    if stored:
        x, y = pickle.loads(pickle.dumps((x, y)))
    with x.graph, pytest.raises(gg.GradientError, match=r"gg.sum\(dx, 0\).*they share"):
        gg.gradients(y, x, overrides={"Exp": lambda site, dy: dy * site.inputs[0]})
    with x.graph:
        dx = gg.gradients(y, x, overrides={"Exp": lambda site, dy: gg.sum(dy * site.inputs[0], 0)})
    assert value(dx, {x: [1.0, 2.0, 3.0]}).tolist() == [2, 4, 6]


def test_S19_an_unknown_length_is_checked_when_run():
    x, other = placeholder((None, 3)), placeholder((None, 3))
    with gg.override_gradient(lambda site, dy: [dy, dy]):
        y = exp(x) + reduce_sum(exp(other))
    _dx, d_other = gg.gradients(y, [x, other])
    assert value(d_other, {x: np.ones((2, 3)), other: np.ones((2, 3))}).shape == (2, 3)
    with pytest.raises(gg.ExecutionError, match="rule") as error:
        value(d_other, {x: np.ones((2, 3)), other: np.ones((5, 3))})
    assert "(5, 3)" in str(error.value)
    assert "(2, 3)" in str(error.value)


def test_S19_the_error_at_run_time_names_rule_site_and_input_too():
    def my_rule(site, dy):
        return [dy, dy]

    x, other = placeholder((None,)), placeholder((None,), name="the_input")
    with gg.override_gradient(my_rule) as region:
        y = exp(x) + reduce_sum(exp(other))
    d_other = gg.gradients(y, other)
    with pytest.raises(gg.ExecutionError) as error:
        value(d_other, {x: np.ones(2), other: np.ones(5)})
    message = str(error.value)
    assert "my_rule" in message
    assert f"test_calling_rules.py:{my_rule.__code__.co_firstlineno}" in message
    assert region.where in message
    assert "the_input" in message


def test_S19_a_known_length_that_differs_is_checked_when_built_also_beside_unknown_ones():
    x = placeholder((None, 3))
    with gg.override_gradient(lambda site, dy: reduce_sum(dy, axis=1, keepdims=True)):
        y = exp(x)
    with pytest.raises(gg.GradientError):
        gg.gradients(y, x)


def test_S19_summing_over_broadcast_axes_is_the_drivers_work_for_builtin_ops():
    x, z = placeholder((2, 3)), placeholder((3,))
    dx, dz = gg.gradients(x * z, [x, z])
    assert dz.shape == (3,)
    feeds = {x: np.arange(6.0).reshape(2, 3), z: [1.0, 2.0, 3.0]}
    assert value(dz, feeds).tolist() == [3, 5, 7]
    assert value(dx, feeds).tolist() == [[1, 2, 3], [1, 2, 3]]


def test_S19_also_when_their_type_is_used_as_a_rules_name():
    x, z = placeholder((2, 3)), placeholder((3,))
    with gg.gradient_override_map({"Subtract": "Add"}):
        y = subtract(x, z)
    dx, dz = gg.gradients(y, [x, z])
    assert value(dz).tolist() == [2, 2, 2]
    assert value(dx).tolist() == [[1, 1, 1], [1, 1, 1]]


def test_S19_a_users_rule_sums_with_sum_to():
    x, z = placeholder((2, 3)), placeholder((3,))
    with gg.override_gradient(lambda site, dy: [dy * z, dy * x]):
        y = x * z
    with pytest.raises(gg.GradientError, match="sum_to"):
        gg.gradients(y, [x, z])
    with gg.override_gradient(lambda site, dy: [dy * z, gg.sum_to(dy * x, like=z)]):
        y = x * z
    feeds = {x: np.arange(6.0).reshape(2, 3), z: [1.0, 2.0, 3.0]}
    assert value(gg.gradients(y, z), feeds).tolist() == [3, 5, 7]


def test_S19_an_entry_for_an_integer_input_is_an_error():
    x, n = placeholder(()), placeholder((), "int64")
    with gg.override_gradient(lambda site, dy: [dy, dy]):
        y = x * gg.cast(n, "float64")
    with pytest.raises(gg.GradientError, match="NO_GRAD"):
        gg.gradients(y, x)


def test_S19_a_wrong_entry_is_an_error_also_where_nobody_asked_for_it():
    x, z = placeholder((3,)), placeholder((3,))
    with gg.override_gradient(lambda site, dy: [dy, reduce_sum(dy)]):
        y = x * z
    with pytest.raises(gg.GradientError):
        gg.gradients(y, x)


# --- S20: exceptions -----------------------------------------------------------------------------


class MyError(Exception):
    pass


@pytest.mark.parametrize("kind", [MyError, ZeroDivisionError, TypeError, KeyError, gg.ShapeError])
def test_S20_an_exception_in_a_rule_keeps_its_type_and_gains_a_note(kind):
    def breaks(site, dy):
        raise kind("broken")

    x = placeholder(())
    with gg.override_gradient(breaks) as region:
        y = exp(x)
    with pytest.raises(kind, match="broken") as error:
        gg.gradients(y, x)
    assert type(error.value) is kind
    (note,) = error.value.__notes__
    assert "'breaks'" in note
    assert f"test_calling_rules.py:{breaks.__code__.co_firstlineno}" in note
    assert region.where in note


def test_S20_notes_of_nested_rules_add_up():
    def breaks(site, dy):
        raise MyError("broken")

    x = placeholder(())
    with gg.override_gradient(default), gg.override_gradient(breaks):
        y = exp(x)
    with pytest.raises(MyError) as error:
        gg.gradients(y, x)
    assert "'breaks'" in error.value.__notes__[0]
    assert "'default'" in error.value.__notes__[1]


def test_S20_for_a_stamp_the_note_names_the_node():
    def breaks(site, dy):
        raise MyError("broken")

    x = placeholder(())
    with gg.gradient_override_map({"Exp": breaks}):
        y = exp(x)
    with pytest.raises(MyError) as error:
        gg.gradients(y, x)
    assert y.node.name in error.value.__notes__[0]
    assert y.where in error.value.__notes__[0]


# --- S21: disconnected inputs --------------------------------------------------------------------


def test_S21_an_input_from_which_no_output_in_use_can_be_reached_is_disconnected():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, da, db: [2.0 * da, 3.0 * db]):
        a, b = exp(x), sin(z)
    assert gg.gradients(a, z) is None
    assert gg.gradients(b, x) is None
    assert values(gg.gradients([a, b], [x, z])) == [2, 3]


def test_S21_swapped_gradients_are_honoured():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, da, db: [2.0 * db, 3.0 * da]):
        a, b = exp(x), sin(z)
    dx, dz = gg.gradients(a, [x, z])
    assert values([dx, dz]) == [0, 3]
    dx, dz = gg.gradients(b, [x, z])
    assert values([dx, dz]) == [2, 0]
    assert value(gg.gradients(a, z)) == 3


def test_S21_feedback_alignment_is_honoured():
    x, w = placeholder((2, 3)), placeholder((2, 3))
    fixed = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with gg.override_gradient(lambda site, dy: [dy * fixed, dy * x]):
        y = x * w
    assert value(gg.gradients(y, x)).tolist() == fixed.tolist()


def test_S21_an_entry_that_depends_on_no_gradient_in_use_is_none():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, da, db: [da, 5.0]):
        a, _b = exp(x), sin(z)
    assert gg.gradients(a, z) is None


def test_S21_a_dependence_through_several_nodes_counts():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, da, db: [da, sin(exp(da)) * 0.0 + 3.0 * da]):
        a, _b = exp(x), sin(z)
    assert value(gg.gradients(a, z)) == 3


def test_S21_a_declared_input_counts_as_reaching_every_output():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, da, db: [da, 5.0], inputs=[x, z]):
        a, _b = exp(x), sin(z)
    assert value(gg.gradients(a, z)) == 5


def test_S21_an_input_that_reaches_an_output_only_through_an_integer_is_connected():
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(lambda site, dy: {x: dy, z: 5.0}):
        y = x * gg.cast(gg.cast(z, "int64"), "float64")
    assert value(gg.gradients(y, z)) == 5


# --- S22: what a rule or gradients builds belongs to whom ----------------------------------------


def test_S22_nodes_of_a_gradients_call_inside_an_open_region_are_members():
    x = placeholder(())
    spy = Spy(lambda site, dy: 7.0 * dy)
    with gg.override_gradient(spy):
        h = exp(x)
        inside = gg.gradients(h, x)  # the inside's own derivative
        y = 3.0 * inside
    assert inside.node.region is y.node.region
    assert value(y, {x: 0.0}) == 3
    assert value(gg.gradients(y, x)) == 7
    assert spy.calls == 1


def test_S22_the_rule_of_another_region_builds_members_of_the_open_one():
    x = placeholder(())
    built = []

    def rule(site, dy):
        built.append(2.0 * dy)
        return built[0]

    with gg.override_gradient(rule):
        y = exp(x)
    with gg.override_gradient(default) as outer:
        dx = gg.gradients(y, x) * x
    assert built[0].node.region is dx.node.region is outer


def test_S22_nodes_of_a_gradients_call_outside_belong_to_no_region():
    x = placeholder(())
    with gg.override_gradient(scaled(2.0)), gg.override_gradient(scaled(3.0)):
        y = exp(x)
    before = len(gg.default_graph())
    gg.gradients(y, x)
    assert {n.region for n in gg.default_graph().nodes[before:]} == {None}


def test_S22_a_region_that_the_rule_opens_is_a_region():
    x = placeholder(())

    def rule(site, dy):
        with gg.override_gradient(lambda site, ddx: {x: 11.0 * ddx, dy: gg.DEFAULT}):
            return dy * exp(x)

    with gg.override_gradient(rule):
        y = exp(x)
    g1 = gg.gradients(y, x)
    assert values([g1, gg.gradients(g1, x)], {x: 0.0}) == [1, 11]


def test_S22_maps_open_at_the_call_do_not_stamp_what_is_built():
    x = placeholder(())
    y = sin(x)
    with gg.gradient_override_map({"Cos": default, "Multiply": default}, allow_empty=True) as scope:
        dx = gg.gradients(y, x)
    assert scope.unmatched == ["Cos", "Multiply"]
    assert all(n.stamp is None for n in gg.Program([x], [dx]).nodes)
    assert value(gg.gradients(dx, x), {x: 0.0}) == 0


def test_S22_maps_that_a_rule_opens_itself_do_stamp():
    x = placeholder(())

    def rule(site, dy):
        with gg.gradient_override_map({"Tanh": lambda s, d: 11.0 * d}):
            return dy * tanh(site.inputs[0])

    with gg.override_gradient(rule):
        y = exp(x)
    g1 = gg.gradients(y, x)
    assert value(gg.gradients(g1, x), {x: 0.0}) == 11


def test_S22_a_hidden_tensor_is_visible_to_a_gradients_call_inside_its_region():
    x = placeholder(())
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        h = exp(x)
        dh = gg.gradients(sin(h), h)
        y = dh * 1.0
    assert value(y, {x: 0.0}) == pytest.approx(np.cos(1.0))
    assert value(gg.gradients(cos(y), y), {x: 0.0}) == pytest.approx(-np.sin(np.cos(1.0)))


@pytest.mark.parametrize(
    ("name", "built", "counts"),
    [
        ("Identity", lambda x: gg.split(x, 2), "1 input and 2 outputs"),
        ("MatMul", lambda x: gg.sin(x), "1 input and 1 output"),
    ],
)
def test_S20_the_gradient_of_an_op_type_that_does_not_fit_a_region(name, built, counts):
    with gg.Graph():
        x = gg.placeholder((4,), name="x")
        with gg.override_gradient(name):
            made = built(x)
        with pytest.raises(
            gg.GradientError, match=f"op type '{name}' does not fit .*{counts}"
        ) as e:
            gg.gradients(made, x)
    assert "built at test_calling_rules.py" in str(e.value)


def test_S21_what_a_region_around_declares_says_nothing_of_a_region_inside():
    def rule(site, db, da):
        return {z: 5.0 * db, x: gg.constant(2.0)}

    x, z = placeholder(()), placeholder(())
    around = gg.override_gradient(scaled(3.0), inputs=[x, z])
    with around as outer, gg.override_gradient(rule):
        with gg.override_gradient(lambda site, dy: 7.0 * dy, inputs=[z]):
            b = cos(z)
        a = sin(x)
    dx, dz = gg.gradients(b, [x, z], overrides={outer: None})
    assert dx is None, "b does not depend on x"
    assert value(dz, {x: 0.1, z: 0.2}) == 5
    assert value(gg.gradients(a, x, overrides={outer: None}), {x: 0.1, z: 0.2}) == 2


# --- what tests near it did not see --------------------------------------------------------------


def test_a_rule_that_yields_is_told_to_return():
    def yielding(site, dy):
        yield dy * 2.0

    x = placeholder(())
    with gg.override_gradient(yielding):
        y = sin(x)
    with pytest.raises(gg.GradientError, match="is a generator; return the gradients instead"):
        gg.gradients(y, x)


def test_an_op_whose_gradient_is_for_another_number_of_inputs_is_named():
    class Halved(gg.extend.Op):
        def infer(self, x, z):
            return (x,)

        def kernel(self, xp, x, z):
            return x / 2 + z

        def vjp(self, node, dy):
            return (dy * 0.5,)

    x, z = placeholder((2,)), placeholder((2,))
    y = gg.extend.apply(Halved(), x, z)
    with pytest.raises(gg.GradientError, match=r"Halved.*has 1 entries for 2 inputs"):
        gg.gradients(y, [x, z])
    with gg.gradient_override_map({"Halved": default}):
        y = gg.extend.apply(Halved(), x, z)
    with pytest.raises(gg.GradientError, match=r"Halved.*has 1 entries for 2 inputs"):
        gg.gradients(y, [x, z])


def test_what_flows_to_a_tensor_is_added_up_once():
    """It is asked for, and passed on: one node of a sum serves both."""
    with gg.Graph() as g:
        x = placeholder(())
        h = sin(x)
        with gg.override_gradient(lambda site, dy: dy * 3.0):
            y = cos(h)
        z = y + h * h + h
        found = gg.gradients(z, [h, x])
    sums = [n for n in g.nodes if n.type == "AddN" or (n.type == "Add" and n.origin is not None)]
    assert len(sums) == 1
    at = np.sin(0.3)
    np.testing.assert_allclose(
        values(found, {x: 0.3}), [3 + 2 * at + 1, (3 + 2 * at + 1) * np.cos(0.3)]
    )


def test_overrides_of_one_call_reach_loops_in_branches_of_loops():
    """A body in a body in a body."""
    x = placeholder((2,))

    def inner(h):
        return gg.fori_loop(0, 1, lambda i, a: sin(a), h)

    def outer(i, h):
        return gg.cond(reduce_sum(h) > -100.0, lambda: inner(h), lambda: h)

    y = gg.fori_loop(0, 2, outer, x)
    dx = gg.gradients(y, x, overrides={"Sin": lambda site, dy: dy * 5.0})
    np.testing.assert_allclose(value(dx, {x: np.array([0.1, 0.2])}), [25.0, 25.0])


def test_S15_a_rule_within_a_rule_ends_at_the_gradients_of_both():
    def inner(site, dz):
        a, b = site.inputs
        return gg.NO_GRAD, gg.gradients(a * b, b)

    def outer(site, dy):
        (x,) = site.inputs
        with gg.override_gradient(inner):
            z = dy * x
        return gg.gradients(z, x)

    x = gg.constant(0.5)
    with gg.override_gradient(outer):
        y = gg.sin(x)
    assert gg.evaluate(gg.gradients(y * y, x)) == 2 * np.sin(0.5)
