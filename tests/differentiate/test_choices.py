"""Overrides of the call: groups of nodes that are named there, other calls, and what it costs."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.differentiate.choices import OTHERS
from graphgrad.ir.residual import Residual
from graphgrad.ir.verify import verify_graph
from graphgrad.ops.control import cond
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.trigonometry import cos, sin, tanh
from graphgrad.ops.sources import identity, placeholder
from graphgrad.regions.select import select

from .helpers import Spy, calls_of, default, message_of, scaled, value, values

POINT = 0.3


def seven(site, *dys):
    return [7.0 * dys[0]] * len(site.inputs)


def times_output(site, dy):
    """Reads the output as an outer value."""
    return dy * site.outputs[0]


def by_gradients(site, *dys):
    return gg.gradients(site.outputs, site.inputs, list(dys))


# --- a group is one step, for this call ----------------------------------------------------------


def test_S05_a_group_that_is_not_marked_is_one_step():
    x = placeholder(())
    h = sin(x)
    y = exp(h) * h
    spy = Spy(lambda site, dy: 5.0 * dy)
    group = select.between(x, y)
    found = [
        gg.gradients(y, x),
        gg.gradients(y, x, overrides={group: spy}),
        gg.gradients(y, x, overrides={group: scaled(3.0)}),
        gg.gradients(y, x),
    ]
    plain = np.cos(POINT) * np.exp(np.sin(POINT)) * (1 + np.sin(POINT))
    assert values(found, {x: POINT}) == pytest.approx([plain, 5, 3 * plain, plain])
    (site,) = spy.sites
    assert (site.inputs, site.outputs, site.type) == ((x,), (y,), "Region")
    assert [n.type for n in site.nodes] == ["Sin", "Exp", "Multiply"]
    assert "select.between" in site.name
    assert "test_choices.py" in site.where


@pytest.mark.parametrize(
    "selection",
    [
        lambda x, h, y: select.nodes(h, y),
        lambda x, h, y: select.between(x, y),
        lambda x, h, y: select.scope("enc"),
        lambda x, h, y: select.op("Sin", "Exp").together(),
        lambda x, h, y: (select.op("Sin") | y.node).together(),
        lambda x, h, y: select.pattern(("Exp", "Sin")),
        lambda x, h, y: select.nodes(h, y, x.node.consumers) & select.scope("enc"),
    ],
)
def test_S05_every_selection_that_makes_a_region_may_be_named(selection):
    x = placeholder(())
    with gg.name_scope("enc"):
        h = sin(x)
        y = exp(h)
    spy = Spy(seven)
    z = y * 2.0
    assert value(gg.gradients(z, x, overrides={selection(x, h, y): spy}), {x: POINT}) == 14
    assert spy.calls == 1


def test_S05_a_pattern_names_a_group_for_each_match():
    x = placeholder(())
    y = exp(sin(exp(sin(x))))
    spy = Spy(seven)
    form = select.pattern(("Exp", "Sin"))
    assert value(gg.gradients(y, x, overrides={form: spy}), {x: POINT}) == 49
    assert spy.calls == 2


def test_S05_groups_in_groups_and_choices_inside_them():
    x = placeholder(())
    a = sin(x)
    b = exp(a)
    c = tanh(b)
    outer, inner = select.nodes(a, b, c), select.nodes(a, b)
    plain = gg.gradients(c, x)
    found = [
        gg.gradients(c, x, overrides={outer: scaled(2.0), inner: scaled(3.0)}),
        gg.gradients(c, x, overrides={inner: scaled(3.0), outer: scaled(2.0), "Sin": scaled(5.0)}),
        gg.gradients(c, x, overrides={outer: by_gradients, inner: by_gradients, "Tanh": seven}),
    ]
    inner_part = np.exp(np.sin(POINT)) * np.cos(POINT)
    p, *rest = values([plain, *found], {x: POINT})
    assert rest == pytest.approx([6 * p, 30 * p, 7 * inner_part])


def test_S05_the_default_under_a_group_is_the_inside_with_its_marks():
    x = placeholder(())
    with gg.override_gradient(scaled(3.0)):
        a = sin(x)
    with gg.gradient_override_map({"Exp": scaled(5.0)}):
        b = exp(a)
    found = [
        gg.gradients(b, x, overrides={select.nodes(a, b): rule})
        for rule in (scaled(2.0), by_gradients, default, seven)
    ]
    own = np.cos(POINT) * np.exp(np.sin(POINT))
    assert values(found, {x: POINT}) == pytest.approx([30 * own, 15 * own, 15 * own, 7])


def test_S05_a_group_inside_a_marked_region_counts_when_its_rule_asks():
    x = placeholder(())
    with gg.override_gradient(scaled(3.0)) as region:
        a = sin(x)
        b = exp(a)
        y = tanh(b)
    inner = select.nodes(a, b)
    p = value(gg.gradients(y, x), {x: POINT})
    assert value(gg.gradients(y, x, overrides={inner: scaled(2.0)}), {x: POINT}) == pytest.approx(
        2 * p
    )
    both = gg.gradients(y, x, overrides={inner: scaled(2.0), region: by_gradients})
    assert value(both, {x: POINT}) == pytest.approx(2 * p / 3)
    with pytest.raises(gg.RegionError, match="has no effect"):
        gg.gradients(y, x, overrides={inner: scaled(2.0), region: seven})


def test_S05_a_call_inside_an_open_block_may_name_what_the_block_built():
    x = placeholder(())
    with gg.override_gradient(scaled(3.0)) as region:
        a = sin(x)
        b = exp(a)
        dx = gg.gradients(b, x, overrides={select.nodes(a, b): seven})
        y = b + dx
    assert value(gg.gradients(y, x), {x: POINT}) == pytest.approx(
        3 * np.cos(POINT) * np.exp(np.sin(POINT))
    )
    assert value(dx, {x: POINT}) == 7
    assert y.node.region is region


# --- orders --------------------------------------------------------------------------------------


def test_S05_a_later_call_without_it_builds_what_it_always_built():
    def built(named):
        with gg.Graph() as graph:
            x = placeholder(())
            h = sin(x)
            y = exp(h) * h
            if named:
                g = gg.gradients(y, x, overrides={select.between(x, y): scaled(2.0)})
                gg.gradients(g, x, overrides={select.between(x, y): scaled(2.0)})
            start = len(graph)
            g = gg.gradients(y, x)
            gg.gradients(g, x)
            return [
                (
                    n.type,
                    n.region,
                    [t.node.index - (t.node.index >= start) * start for t in n.inputs],
                )
                for n in graph.nodes[start:]
            ]

    assert built(True) == built(False)


def test_S05_second_order_with_it_and_without_it():
    x = placeholder(())
    y = x * x
    group = {select.between(x, y): times_output}
    first = gg.gradients(y, x, overrides=group)  # g * y
    found = [first, gg.gradients(first, x, overrides=group), gg.gradients(first, x)]
    assert values(found, {x: 3.0}) == [9, 9, 6]


def test_S05_what_a_group_reads_of_its_inside_has_the_insides_own_derivative():
    x = placeholder(())
    h = sin(x)
    y = h * h
    group = {select.between(x, y): scaled(2.0)}
    plain = gg.gradients(gg.gradients(y, x), x)
    first = gg.gradients(y, x, overrides=group)
    found = [gg.gradients(first, x, overrides=group), gg.gradients(first, x)]
    p, *rest = values([plain, *found], {x: POINT})
    assert rest == pytest.approx([2 * p, 2 * p])


def test_S05_of_nested_groups_one_may_be_named_alone_at_second_order():
    def world(marked):
        with gg.Graph() as graph:
            x = placeholder(())
            a = sin(x) * x
            b = exp(a) * a
            y = tanh(b) * a
            outer, inner = select.between(x, b), select.between(x, a)
            rules = {outer: scaled(2.0), inner: times_output}
            if marked:
                regions = [graph.mark(s, r, allow_inside=True)[0] for s, r in rules.items()]
                calls = [None, {regions[1]: None}, {regions[0]: None, regions[1]: None}]
            else:
                calls = [rules, {outer: rules[outer]}, None]
            for overrides in calls:
                y = gg.gradients(y, x, overrides=overrides)
            return value(y, {x: POINT})

    assert world(marked=False) == pytest.approx(world(marked=True), rel=1e-12)


def test_S05_a_derivative_taken_without_it_reads_the_inside_as_anybody():
    def answer(named_before):
        with gg.Graph():
            x = placeholder(())
            y = sin(exp(x))
            group = {select.between(x, y): seven}
            if named_before:
                gg.gradients(y, x, overrides=group)
            plain = gg.gradients(y, x)
            with pytest.raises(gg.GradientError, match="hidden") as error:
                gg.gradients(plain, x, overrides=group)
            assert "take it with the same overrides" in str(error.value)

    for named_before in (False, True):
        answer(named_before)


def test_S05_all_derivatives_take_groups():
    x = placeholder((3,))
    v = gg.constant(np.array([1.0, 2.0, 3.0]))
    z = exp(tanh(x) * x)
    y = gg.sum(z)
    group = {select.between(x, z): scaled(2.0)}
    plain = [
        gg.gradients(y, x),
        gg.hessian(y, x),
        gg.hvp(y, x, v),
        gg.jvp(y, x, v),
        gg.jacobian(z, x),
        gg.vjp(z, x, v),
        gg.value_and_grad(y, x)[1],
    ]
    named = [
        gg.gradients(y, x, overrides=group),
        gg.hessian(y, x, overrides=group),
        gg.hvp(y, x, v, overrides=group),
        gg.jvp(y, x, v, overrides=group),
        gg.jacobian(z, x, overrides=group),
        gg.vjp(z, x, v, overrides=group),
        gg.value_and_grad(y, x, overrides=group)[1],
    ]
    found = values([*plain, *named], {x: [0.1, 0.2, -0.3]})
    for once, twice in zip(found[: len(plain)], found[len(plain) :], strict=True):
        np.testing.assert_allclose(twice, 2 * once)


def test_S25_forward_mode_judges_the_rule_of_a_group():
    x = placeholder(())
    y = exp(sin(x))
    group = select.between(x, y)
    own = gg.Rule(lambda site, dy: dy * dy, jvp=lambda site, dx: dx * 11.0)
    assert value(gg.jvp(y, x, overrides={group: own}), {x: POINT}) == 11
    with pytest.raises(gg.GradientError, match=r"between.*transpose"):
        gg.jvp(y, x, overrides={group: lambda site, dy: dy * dy})


def test_S12_a_tensor_inside_a_named_group_is_hidden_unless_its_rule_is_exact():
    x = placeholder(())
    h = sin(x)
    y = exp(h)
    group = select.between(x, y)
    with pytest.raises(gg.GradientError, match="hidden inside region"):
        gg.gradients(y, h, overrides={group: seven})
    exact = gg.Rule(default, contract="exact")
    assert value(gg.gradients(y, h, overrides={group: exact}), {x: POINT}) == pytest.approx(
        np.exp(np.sin(POINT))
    )


def test_S05_derived_nodes_may_be_a_group():
    def world(marked):
        with gg.Graph() as graph:
            x = placeholder(())
            y = exp(sin(x) * x)
            g = gg.gradients(y, x)
            derived = select.nodes([n for n in graph.nodes if n.origin is not None and n.inputs])
            overrides = None if marked else {derived: scaled(3.0)}
            if marked:
                graph.mark(derived, scaled(3.0))
            found = [gg.gradients(g, x, overrides=overrides)]
            found.append(gg.gradients(found[0], x, overrides=overrides))
            return values(found, {x: POINT})

    assert world(marked=False) == pytest.approx(world(marked=True))


# --- calls within the call -----------------------------------------------------------------------


def test_S05_calls_of_rules_use_the_groups_of_the_call():
    x = placeholder(())
    with gg.override_gradient(by_gradients):
        a = sin(x)
        b = exp(a)
        y = tanh(b)
    p = value(gg.gradients(y, x), {x: POINT})
    found = gg.gradients(y, x, overrides={select.nodes(a, b): scaled(2.0)})
    assert value(found, {x: POINT}) == pytest.approx(2 * p)


def test_S05_a_call_with_overrides_of_its_own_within_the_call():
    x = placeholder(())
    a = sin(x)
    b = exp(a)
    y = tanh(b)

    def by_others(site, *dys):
        chosen = {select.nodes(b, y): scaled(5.0)}
        return gg.gradients(site.outputs, site.inputs, list(dys), overrides=chosen)

    overrides = {select.nodes(a, b, y): by_others}
    p, p2 = gg.gradients(y, x), gg.gradients(gg.gradients(y, x), x)
    first = gg.gradients(y, x, overrides=overrides)
    found = [p, first, p2, gg.gradients(first, x, overrides=overrides), gg.gradients(first, x)]
    p, first, p2, second, plain = values(found, {x: POINT})
    assert (first, second, plain) == pytest.approx((5 * p, 5 * p2, 5 * p2))


def test_S05_the_inside_is_read_as_such_while_another_call_chooses_something_else():
    x = placeholder(())
    h = sin(x)
    y = h * h

    def by_others(site, dy):
        return gg.gradients(site.outputs, site.inputs, [dy], overrides={"Sin": scaled(1.0)})

    group = {select.between(x, y): by_others}
    p2 = value(gg.gradients(gg.gradients(y, x), x), {x: POINT})
    first = gg.gradients(y, x, overrides=group)
    assert value(gg.gradients(first, x, overrides=group), {x: POINT}) == pytest.approx(p2)


def test_S05_a_call_within_a_rule_cannot_cut_the_group_whose_rule_runs():
    x = placeholder(())
    a = sin(x)
    b = exp(a)
    y = tanh(b)

    def cutting(site, *dys):
        return [gg.gradients(y, a, overrides={select.nodes(b, y): seven})]

    with pytest.raises(gg.RegionError, match="overlap"):
        gg.gradients(y, x, overrides={select.nodes(a, b): cutting})


def test_S05_the_same_tensors_under_many_overrides_in_turn():
    x = placeholder(())
    a = sin(x)
    b = exp(a)
    y = tanh(b)
    p = gg.gradients(y, x)
    some = {select.nodes(a, b): scaled(2.0)}
    other = {select.nodes(b, y): scaled(3.0)}  # overlaps the first, in a call of its own
    found = [
        gg.gradients(y, x, overrides=o)
        for o in (some, other, None, some, "none", {"Sin": scaled(5.0)}, other)
    ]
    p, *rest = values([p, *found], {x: POINT})
    assert rest == pytest.approx([2 * p, 3 * p, p, 2 * p, p, 5 * p, 3 * p])


# --- what it says --------------------------------------------------------------------------------


@pytest.fixture
def chain(graph):
    """x, a, b, c, d, and the sight of the graph that no failing call may change."""
    x = placeholder(())
    a = sin(x)
    b = exp(a)
    c = tanh(b)
    d = cos(c)
    before = len(graph), len(graph.regions)
    yield x, a, b, c, d
    assert (len(graph), len(graph.regions)) == before


def test_S05_groups_of_one_call_that_overlap_are_an_error_that_names_both(chain):
    x, a, b, c, d = chain
    with pytest.raises(gg.RegionError, match="overlap") as error:
        gg.gradients(d, x, overrides={select.nodes(a, b): seven, select.nodes(b, c): seven})
    said = message_of(error.value)
    for part in (a.node.name, b.node.name, c.node.name, "neither is inside", "test_choices.py"):
        assert part in said
    assert f"{b.node.name} ({b.where}) is in both" in said


def test_S05_a_group_is_named_once_in_a_call(chain):
    x, a, b, _, d = chain
    with pytest.raises(gg.RegionError, match="two entries") as error:
        gg.gradients(d, x, overrides={select.nodes(a, b): seven, select.nodes(b, a): seven})
    assert "test_choices.py" in message_of(error.value)


def test_S05_there_is_nothing_to_switch_off_in_a_group_that_is_not_marked(chain):
    x, a, b, _, d = chain
    with pytest.raises(gg.RegionError, match="no rule to switch off") as error:
        gg.gradients(d, x, overrides={select.nodes(a, b): None})
    assert ".each()" in message_of(error.value)


def test_S05_no_rule_is_asked_before_every_entry_is_right(chain):
    x, a, b, _, d = chain
    spy = Spy()
    for wrong in ({"Sin": "test/nobody"}, {"Sinus": seven}, {select.nodes(a, d.node, x): seven}):
        with pytest.raises(gg.GraphGradError):
            gg.gradients(d, x, overrides={select.nodes(a, b): spy, **wrong})
    assert not spy.calls


def test_S05_a_group_that_overlaps_a_region_is_an_error_that_names_both():
    x = placeholder(())
    with gg.override_gradient(seven) as region:
        a = sin(x)
        b = exp(a)
    y = tanh(b)
    with pytest.raises(gg.RegionError, match="overlap") as error:
        gg.gradients(y, x, overrides={select.nodes(b, y): seven})
    assert repr(region) in str(error.value)
    assert len(gg.default_graph().regions) == 1


def test_S11_a_group_that_is_left_and_come_back_to_is_an_error():
    x = placeholder(())
    a = sin(x)
    b = exp(a)
    c = tanh(b)
    with pytest.raises(gg.RegionError, match="leaves it and comes back") as error:
        gg.gradients(c, x, overrides={select.nodes(a, c): seven})
    assert b.node.name in str(error.value)


def test_S05_an_inner_mark_off_the_path_is_no_choice_in_vain():
    x = placeholder(())
    with gg.override_gradient(default):
        y = exp(x)
        z = sin(x)
    w = identity(y) + 0.0 * identity(z)
    assert value(gg.gradients(identity(y), x, overrides={"Sin": seven}), {x: 0.0}) == 1
    assert value(gg.gradients(w, x, overrides={"Sin": seven}), {x: 0.0}) == 1


# --- pictures and checks -------------------------------------------------------------------------


def test_S05_a_group_that_was_named_is_shown_as_no_mark():
    x = placeholder((), name="x")
    y = sin(exp(x))
    graph = gg.default_graph()
    group = {select.between(x, y): seven}
    gg.gradients(y, x, overrides=group)
    assert gg.lint(graph) == []
    assert "region" not in repr(graph)
    assert "own gradients" in str(gg.explain(y, x))
    assert "select.between" in str(gg.explain(y, x, overrides=group))
    assert "rule 'seven'" in str(gg.explain(y, x, overrides=group))
    dot = gg.to_dot(graph)
    assert "override" not in dot
    assert 'spliced \\"seven\\" for select.between' in dot
    assert select.rule("seven").find(graph) == []


# --- control flow, batches -----------------------------------------------------------------------


def test_S05_groups_in_bodies_and_around_them():
    x = placeholder(())
    inside = []

    def then():
        a = exp(x)
        inside.extend((a, sin(a)))
        return inside[1]

    y = cond(x > 0, then, lambda: x * 2.0)
    z = y * 3.0
    body, whole = select.nodes(inside), select.between(x, z)
    both = {whole: scaled(2.0), body: scaled(2.0)}
    first = gg.gradients(z, x, overrides=both)
    found = [
        gg.gradients(z, x),
        gg.gradients(z, x, overrides={body: scaled(2.0)}),
        gg.gradients(z, x, overrides={whole: scaled(2.0)}),
        first,
    ]
    seconds = [gg.gradients(found[0], x), gg.gradients(first, x, overrides=both)]
    p, *rest = values(found, {x: POINT})
    assert rest == pytest.approx([2 * p, 2 * p, 4 * p])
    assert values(found, {x: -POINT}) == [6, 6, 12, 12]
    once, twice = values(seconds, {x: POINT})
    assert twice == pytest.approx(4 * once)


def test_S05_in_a_body_a_choice_may_ask_for_what_is_marked_there():
    x = placeholder(())
    regions = []

    def branch():
        with gg.override_gradient(scaled(3.0)) as region:
            regions.append(region)
            return sin(x)

    y = cond(x > 0, branch, lambda: x)
    dx = gg.gradients(y, x, overrides={regions[0]: scaled(7.0)})
    assert value(dx, {x: POINT}) == pytest.approx(7.0 * 3.0 * np.cos(POINT))


def test_S05_a_scope_around_a_choice_does_not_count_again_inside_it():
    x = placeholder(())
    with gg.name_scope("enc"):
        y = cond(x > 0, lambda: exp(x), lambda: sin(x)) * 2.0
    p = value(gg.gradients(y, x), {x: POINT})
    found = gg.gradients(y, x, overrides={select.scope("enc"): scaled(3.0)})
    assert value(found, {x: POINT}) == pytest.approx(3 * p)


def test_S27_vmap_of_a_function_that_names_a_group():
    xs = placeholder((4, 3))

    def per_example(overrides):
        def f(x):
            y = gg.sum(sin(x) * x)
            return gg.gradients(y, x, overrides=overrides(x, y))

        return f

    plain = gg.vmap(per_example(lambda x, y: None))(xs)
    named = gg.vmap(per_example(lambda x, y: {select.between(x, y): scaled(2.0)}))(xs)
    found = [plain, named, *(gg.gradients(gg.sum(d), xs) for d in (plain, named))]
    plain, named, once, twice = values(found, {xs: np.linspace(0.1, 1.2, 12).reshape(4, 3)})
    np.testing.assert_allclose(named, 2 * plain)
    np.testing.assert_allclose(twice, 2 * once)


def test_S27_a_group_of_batched_nodes():
    xs = placeholder((4, 3))
    ys = gg.vmap(lambda x: sin(x) * x)(xs)
    found = [
        gg.gradients(gg.sum(ys), xs),
        gg.gradients(gg.sum(ys), xs, overrides={select.between(xs, ys): scaled(2.0)}),
    ]
    once, twice = values(found, {xs: np.full((4, 3), POINT)})
    np.testing.assert_allclose(twice, 2 * once)


def test_S27_what_is_computed_again_has_the_groups_of_the_call():
    x = placeholder(())
    inside = []

    def f(t):
        a = exp(t)
        b = sin(a)
        inside.append((a, b))
        return b * a

    y = gg.rules.checkpoint(f)(x) * 2.0
    group = select.nodes(inside[0])
    z = f(x) * 2.0
    for overrides, here in (
        ({group: scaled(2.0)}, {select.nodes(inside[1]): scaled(2.0)}),
        ({group: scaled(2.0), "Exp": scaled(3.0)}, {inside[1][0].node: scaled(3.0)}),
        ({"Exp": scaled(3.0), "Sin": None}, {inside[1][0].node: scaled(3.0)}),
    ):
        if group in overrides and "Exp" in overrides:
            here = {select.nodes(inside[1]): scaled(2.0), **here}
        found = [gg.gradients(y, x, overrides=overrides), gg.gradients(z, x, overrides=here)]
        again, direct = values(found, {x: POINT})
        assert again == pytest.approx(direct)


# --- copies --------------------------------------------------------------------------------------


def carried(graph, tensors, how):
    """A copy of a graph, made in one of several ways, and what stands for some tensors there."""
    if how == "import":
        with gg.Graph() as new:
            found = gg.import_graph(graph)
        return new, [found[t] for t in tensors]
    new = graph.copy() if how == "copy" else pickle.loads(pickle.dumps(graph))
    return new, [new.nodes[t.node.index].outputs[t.index] for t in tensors]


@pytest.mark.parametrize("how", ["copy", "pickle", "import"])
def test_S27_copies_know_the_groups_that_were_named(how):
    def rules(x, a, b):
        return {select.between(x, b): scaled(2.0), select.between(x, a): times_output}

    with gg.Graph() as graph:
        x = placeholder(())
        a = sin(x) * x
        b = exp(a) * a
        first = gg.gradients(tanh(b), x, overrides=rules(x, a, b))
        wanted = [gg.gradients(first, x, overrides=rules(x, a, b)), gg.gradients(first, x)]
        expected = values(wanted, {x: POINT})
    new, (x2, a2, b2, first2) = carried(graph, (x, a, b, first), how)
    with new:
        found = [gg.gradients(first2, x2, overrides=rules(x2, a2, b2)), gg.gradients(first2, x2)]
        assert values(found, {x2: POINT}) == pytest.approx(expected)
    assert len(new.regions) == len(graph.regions)
    verify_graph(new)


def test_S27_a_part_of_a_graph_without_the_whole_group_has_the_same_gradients():
    with gg.Graph() as graph:
        x = placeholder((), name="x")
        h = sin(x)
        y = h * h
        first = gg.gradients(y, x, overrides={select.between(x, y): scaled(2.0)})
        second = value(gg.gradients(first, x), {x: POINT})
    part = graph.subgraph(x, first)
    assert len(part) < len(graph)
    with part:
        x2 = part.tensor("x")
        dx = part.nodes[-1].outputs[0]
        assert value(gg.gradients(dx, x2), {x2: POINT}) == pytest.approx(second)
    assert all(region.group is not None for region in part.regions)


# --- threads -------------------------------------------------------------------------------------


@pytest.mark.ci
def test_S31_threads_with_other_overrides_on_one_graph():
    with gg.Graph() as graph:
        x = y = placeholder(())
        for i in range(12):
            y = (sin, cos, tanh)[i % 3](y + 0.1) + 0.3 * y
            if i == 8:
                with gg.override_gradient(scaled(2.0)):
                    y = sin(y) * y
    nodes = [n for n in graph.nodes if n.inputs]
    free = [n for n in nodes if n.region is None]
    choices = [
        lambda: None,
        lambda: {select.nodes(free[4:14]): scaled(2.0)},
        lambda: {select.nodes(free[8:20]): scaled(3.0), select.nodes(free[10:14]): scaled(5.0)},
        lambda: {select.nodes(free[4:14]): scaled(7.0), "Sin": scaled(11.0)},
        lambda: "none",
    ]

    def differentiated(choice):
        with graph.as_default():
            first = gg.gradients(y, x, overrides=choice())
            second = gg.gradients(first, x, overrides=choice())
            return [first, second, gg.gradients(first, x)]

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(5) as pool:
            found = list(pool.map(differentiated, choices * 3))
    finally:
        sys.setswitchinterval(before)
    alone = [differentiated(choice) for choice in choices]
    with graph:
        got = np.array(values(found, {x: POINT})).reshape(3, len(choices), 3)
        expected = values(alone, {x: POINT})
    for each in got:
        np.testing.assert_allclose(each, expected)
    assert sum(region.group is not None for region in graph.regions) == 3
    verify_graph(graph)


# --- what it costs -------------------------------------------------------------------------------


def flat(cost, few=50, many=200):
    """Whether something costs the same each time, however often it is done."""
    return cost(many) / many < 1.3 * cost(few) / few


def test_S37_an_override_by_op_type_costs_what_is_walked():
    def cost(n):
        with gg.Graph():

            def once():
                x = placeholder(())
                gg.gradients(gg.nn.relu(x) * 2.0, x, overrides={"Relu": "Identity"})

            return calls_of(lambda: [once() for _ in range(n)])

    assert flat(cost)


@pytest.mark.parametrize("overrides", ["none", {"Relu": "Identity"}, "all off", "all chosen"])
@pytest.mark.parametrize("rule", [default, by_gradients])
def test_S37_calls_within_the_call_do_not_work_the_overrides_out_again(rule, overrides):
    def cost(n):
        with gg.Graph():
            x = y = placeholder(())
            for _ in range(n):
                with gg.override_gradient(rule):
                    y = sin(y)
                y = gg.nn.relu(y)
            chosen = overrides
            if overrides in ("all off", "all chosen"):
                marks = select.rule(rule)
                chosen = {marks: None if overrides == "all off" else by_gradients}
            return calls_of(lambda: gg.gradients(y, x, overrides=chosen))

    assert flat(cost)


@pytest.mark.ci
def test_S37_many_groups_in_one_call_and_one_group_in_many_calls():
    def many_groups(n):
        with gg.Graph():
            x = y = placeholder(())
            for _ in range(n):
                y = exp(sin(y))
            form = select.pattern(("Exp", "Sin"))
            return calls_of(lambda: gg.gradients(y, x, overrides={form: by_gradients}))

    def many_calls(n):
        with gg.Graph():
            x = placeholder(())
            y = exp(sin(x))
            group = select.between(x, y)
            once = lambda: gg.gradients(y, x, overrides={group: default})  # noqa: E731
            return calls_of(lambda: [once() for _ in range(n)])

    def new_groups(n):
        with gg.Graph():

            def once():
                x = placeholder(())
                y = exp(sin(x))
                gg.gradients(y, x, overrides={select.between(x, y): default})

            return calls_of(lambda: [once() for _ in range(n)])

    for cost in (many_groups, many_calls, new_groups):
        assert flat(cost), cost.__name__


def test_S05_a_group_is_kept_and_found_again(graph):
    x = placeholder(())
    h = sin(x)
    y = exp(h)
    for group in (select.between(x, y), select.nodes(y, h), select.op("Sin", "Exp").together()):
        for _ in range(3):
            gg.gradients(y, x, overrides={group: default})
    assert len(graph.regions) == 1
    (region,) = graph.regions
    assert value(gg.gradients(y, x, overrides={region: seven}), {x: POINT}) == 7
    assert all(n.region is None for n in graph.nodes)
    residuals = [n for n in graph.nodes if isinstance(n.op, Residual)]
    assert {n.op.region for n in residuals} == {region}


# --- a rule for all others -----------------------------------------------------------------------


def test_a_rule_for_all_others_is_for_what_has_none_derived_nodes_too():
    x = placeholder(())
    with gg.override_gradient(scaled(1.0)):
        h = sin(x)
    slope = gg.gradients(exp(h), h)
    chosen = {OTHERS: Spy(seven), "Exp": scaled(2.0)}
    y = tanh(exp(h)) + slope + gg.stop_gradient(x)
    gg.gradients(y, x, overrides=chosen)
    types = [site.type for site in chosen[OTHERS].sites]
    assert types.count("Add") == 2
    assert types.count("Tanh") == 1
    assert "Exp" not in types
    assert "StopGradient" not in types
    assert "Sin" in types, "the region's rule asked for its default"


def test_a_rule_for_all_others_is_not_for_what_rules_build():
    def by_hand(site, dy):
        x = identity(site.inputs[0])
        return gg.gradients(sin(x) * x, x, dy)

    x = placeholder(())
    with gg.override_gradient(by_hand):
        y = tanh(x)
    spy = Spy(seven)
    dx = gg.gradients(2.0 * y, x, overrides={OTHERS: spy})
    assert [site.type for site in spy.sites] == ["Multiply"]
    assert value(dx, {x: POINT}) == pytest.approx(7.0 * (np.cos(POINT) * POINT + np.sin(POINT)))


def test_a_rule_for_all_others_is_for_what_the_rule_built_that_makes_the_call():
    spy = Spy(scaled(7.0))

    def by_hand(site, dy):
        x = identity(site.inputs[0])
        return gg.gradients(sin(x), x, dy, overrides={OTHERS: spy})

    x = placeholder(())
    with gg.override_gradient(by_hand):
        y = tanh(x)
    assert value(gg.gradients(y, x), {x: POINT}) == pytest.approx(7.0 * np.cos(POINT))
    assert [site.type for site in spy.sites] == ["Sin"]


def test_a_rule_for_all_others_counts_in_branches_and_for_one_call():
    x = placeholder(())
    y = cond(x > 0, lambda: sin(x), lambda: cos(x))
    spy = Spy(lambda site, *dys: site.default(*dys))
    dx = gg.gradients(y, x, overrides={OTHERS: spy})
    assert {site.type for site in spy.sites} == {"Cond", "Sin", "Cos"}
    calls = spy.calls
    assert values([dx, gg.gradients(y, x)], {x: POINT}) == pytest.approx([np.cos(POINT)] * 2)
    assert spy.calls == calls


def test_a_rule_for_all_others_is_for_what_was_derived_before_although_a_rule_differentiates_it():
    x = placeholder(())
    early = []
    with gg.gradient_override_map({"Sin": lambda site, dy: gg.gradients(early[0], x, dy)}):
        y = sin(x)
    early.append(gg.gradients(y, x, overrides="none"))
    spy = Spy(lambda site, *dys: site.default(*dys))
    d2 = gg.gradients(2.0 * y, x, overrides={OTHERS: spy})
    assert value(d2, {x: POINT}) == pytest.approx(-2 * np.sin(POINT))
    assert [site.type for site in spy.sites] == ["Multiply", "Multiply", "Cos"]


def test_S05_a_reader_among_the_members_of_a_named_group_stands_before_what_it_needs():
    z = placeholder(())
    early = sin(z)
    reader = exp(early)
    x = tanh(z)
    late = x * early

    def rule(site, *dys):
        return dict.fromkeys(site.inputs, 5.0 * dys[0])

    dx = gg.gradients(reader, x, overrides={select.nodes(early, late): rule})
    assert value(dx, {z: POINT}) == pytest.approx(5 * np.exp(np.sin(POINT)))


@pytest.mark.parametrize("way", ["copy", "import"])
def test_S27_copies_know_groups_in_groups_that_were_named(graph, way):
    x = placeholder((), name="x")
    a = sin(x)
    b = exp(a)
    c = tanh(b)

    def twice_output(site, dy):
        (dx,) = site.default(dy)
        return 2.0 * dx * site.outputs[0]

    chosen = {select.nodes(a, b, c): by_gradients, select.nodes(a, b): twice_output}
    dx = gg.gradients(c, x, overrides=chosen)
    at_home = value(gg.gradients(dx, x), {x: POINT})
    if way == "copy":
        new = graph.copy()
        x, dx = (new.nodes[t.node.index].outputs[0] for t in (x, dx))
    else:
        with gg.Graph() as new:
            there = placeholder(())
            dx, x = gg.import_graph(graph, {x: there})[dx], there
    with new:
        assert value(gg.gradients(dx, x), {x: POINT}) == pytest.approx(at_home)


def test_S31_what_a_call_chooses_does_not_reach_a_graph_that_a_rule_opens():
    def rule(site, dy):
        with gg.Graph():
            z = gg.placeholder(())
            own = gg.evaluate(gg.gradients(gg.sin(z), z), {z: 0.0})
        return dy * float(own)

    with gg.Graph():
        x = gg.placeholder(())
        with gg.override_gradient(rule):
            y = gg.exp(x)
        y = gg.sin(y - 1.0)
        dx = gg.gradients(y, x, overrides={"Sin": lambda site, dy: 7.0 * dy})
        assert gg.evaluate(dx, {x: 0.0}) == 7.0


@pytest.mark.parametrize("two", [False, True])
@pytest.mark.parametrize("rule", ["plain", "default", "own"])
def test_S05_a_choice_by_type_wins_over_a_stamp_in_a_batch(rule, two):
    chosen = {
        "plain": lambda site, dy: [10.0 * dy],
        "default": lambda site, dy: [10.0 * site.default(dy)[0]],
        "own": None,
    }[rule]

    def f(x):
        with gg.gradient_override_map({"Exp": lambda site, dy: [3.0 * dy]}):
            y = gg.exp(x)
        return y + gg.exp(2.0 * x) if two else y

    found = []
    for batched in (False, True):
        with gg.Graph():
            x = gg.placeholder((2,))
            y = gg.vmap(f)(x) if batched else f(x)
            plain = gg.gradients(y, x)
            dx = gg.gradients(y, x, overrides={"Exp": chosen})
            found.append(gg.evaluate([plain, dx, gg.gradients(y, x)], {x: np.full(2, 0.3)}))
    np.testing.assert_allclose(*found)


def test_S05_what_a_rule_built_in_an_earlier_call_is_one_of_the_others():
    x = gg.placeholder(())
    with gg.override_gradient(lambda site, dy: dy * x * x):
        y = gg.sin(x)
    dx = gg.gradients(y, x)  # (1 * x) * x
    others = scaled(7.0)
    assert value(gg.gradients(dx, x, overrides={OTHERS: others}), {x: 2.0}) == 7 * 2.0 + 49 * 2.0
