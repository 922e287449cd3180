"""Marks put on a graph that exists, and taken off it: they do what a block would have done."""

# ruff: noqa: SIM117  (blocks inside blocks are what is tested)

from __future__ import annotations

import copy
from contextlib import nullcontext

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.verify import verify_graph
from graphgrad.ops.elementwise.exponential import exp, log
from graphgrad.ops.elementwise.trigonometry import cos, sin, tanh
from graphgrad.ops.sources import placeholder, stop_gradient, variable
from graphgrad.regions.boundary import Boundaries, boundary_of, scan
from graphgrad.regions.select import select

from ..differentiate.helpers import Spy, calls_of, default, scaled, value, values
from ..each import every


def seven(site, *dys):
    return [7.0 * dys[0]] * len(site.inputs)


def state(graph):
    """All that a mark changes."""
    return (
        [(n.region, n.stamp) for n in graph.nodes],
        [(r, r.rule, r.parent, r.index, r.pinned_inputs, r.settled) for r in graph.regions],
    )


@pytest.fixture
def unchanged(graph):
    """Runs a test in which every mark fails, and sees to it that nothing changed."""
    before = []
    yield lambda: before.append((len(graph), state(graph)))
    assert (len(graph), state(graph)) == before[-1]


# --- a mark does what the block would have done --------------------------------------------------


def chain(x, w):
    return sin(exp(x * 2.0) + w)


def diamond(x, w):
    h = exp(x)
    return h * sin(h) + w * h


def two_outputs(x, w):
    h = tanh(x * w)
    return [h, h * h + 1.0]


def captured(x, w):
    h = w * w
    return gg.sum(gg.stack([x, h, x * h])) ** 2.0


def nested(x, w):
    with gg.override_gradient(scaled(3.0)):
        h = exp(x) * 0.5
    with gg.gradient_override_map({"Sin": scaled(2.0)}):
        return sin(h) + w


def with_custom_gradient(x, w):
    @gg.custom_gradient
    def cube(t, k):
        return t * t * t * k, lambda dy: (5.0 * dy * t, gg.NO_GRAD)

    return cube(x * w, 2.0) + w


def unread(x, w):
    cos(x)
    return exp(x) * w


def times_output(site, *dys):
    dy = gg.add(dys[0], 0.0)
    return [dy * site.outputs[0] * (i + 1.0) for i in range(len(site.inputs))]


def with_residual(site, *dys):
    """2 * default, times the first value of the inside."""
    own = site.nodes[-1].region
    inside = next(n for n in site.nodes if n.inputs and n.region is own).outputs[0]
    return [2.0 * dx * inside for dx in site.default(*dys)]


def nonlinear(site, *dys):
    return [dx * dx for dx in site.default(*dys)]


def question(body, rule, marked):
    """Values of the gradients, orders 1 to 3, of a loss in which a body is marked."""
    spy = Spy(rule)
    with gg.Graph() as graph:
        x, w = placeholder((), name="x"), variable(0.7, name="w")
        p = sin(x)
        start = len(graph)
        if marked is None:
            with gg.override_gradient(spy):
                out = body(p, w)
        else:
            out = body(p, w)
        built = graph.nodes[start:]
        outs = out if isinstance(out, list) else [out]
        loss = gg.sum(gg.stack([o * o for o in outs]))
        if marked is not None:
            (region,) = graph.mark(marked(built, p, w, outs), spy)
            assert region.open is False
        found, g = [], loss
        for _ in range(3):
            gx, gw = gg.gradients(g, [x, w], unconnected="zero")
            found += [gx, gw]
            g = gx + gw
        verify_graph(graph)
        site = spy.sites[0]
        shape = (
            [t.node.index for t in site.inputs],
            [t.node.index for t in site.outputs],
            [n.type for n in site.nodes],
            len(spy.dys[0]),
        )
        return values(found, {x: 0.3}), shape


SELECTIONS = {
    "between": lambda built, p, w, outs: select.between([p, w], outs),
    "nodes": lambda built, p, w, outs: select.nodes(*(n for n in built if not n.op.source)),
    "where": lambda built, p, w, outs: select.where(lambda n: n in built).together(),
}
RULES = [default, scaled(3.0), times_output, with_residual, nonlinear]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    "body", [chain, diamond, two_outputs, captured, nested, with_custom_gradient]
)
def test_S04_a_mark_gives_what_the_block_would_have_given(body, rule):
    block, shape = question(body, rule, None)
    for how, selection in SELECTIONS.items():
        marked, shape_marked = question(body, rule, selection)
        assert shape_marked == shape, how
        np.testing.assert_allclose(marked, block, rtol=1e-12, err_msg=how)


def test_S04_what_is_on_no_path_is_not_between(graph):
    block, _ = question(unread, seven, SELECTIONS["nodes"])
    assert question(unread, seven, None)[0] == block
    x, w = placeholder(()), variable(2.0)
    y = unread(x, w)
    (region,) = graph.mark(select.between([x, w], y), seven)
    assert [n.type for n in graph.nodes if n.region is region] == ["Exp", "Multiply"]


def test_S04_a_mark_on_a_scope(graph):
    x = placeholder(())
    with gg.name_scope("enc"):
        y = exp(x) * 2.0
    (region,) = graph.mark(select.scope("enc"), seven)
    assert value(gg.gradients(sin(y), x), {x: 0.0}) == pytest.approx(7 * np.cos(2.0))
    assert {n.type for n in graph.nodes if n.region is region} == {"Exp", "Constant", "Multiply"}


def test_S04_op_name_and_where_stamp_nodes(graph):
    x = placeholder(())
    y = exp(sin(exp(x)))
    for selection in ("Exp", select.op("Exp"), select.where(lambda n: n.type == "Exp")):
        sites = graph.mark(selection, seven)
        assert [n.type for n in sites] == ["Exp", "Exp"]
        assert graph.regions == []
        assert value(gg.gradients(y, x), {x: 0.3}) == pytest.approx(49 * np.cos(np.exp(0.3)))
        graph.unmark(selection)
    assert [n.stamp for n in graph.nodes] == [None] * len(graph)


def test_S04_a_stamp_gives_what_the_map_would_have_given(graph):
    def build(x):
        return exp(sin(x)) * sin(x * x)

    x = placeholder(())
    with gg.gradient_override_map({"Sin": nonlinear}):
        mapped = build(x)
    plain = build(x)
    graph.mark(select.op("Sin") & select.between(x, plain), nonlinear)
    for _ in range(3):
        mapped, plain = gg.gradients(mapped, x), gg.gradients(plain, x)
        assert value(mapped, {x: 0.3}) == pytest.approx(value(plain, {x: 0.3}), rel=1e-12)


def test_S04_each_stamps_and_together_makes_a_region(graph):
    x = placeholder(())
    with gg.name_scope("enc"):
        y = sin(sin(x))
    graph.mark(select.scope("enc").each(), seven)
    assert value(gg.gradients(y, x), {x: 0.3}) == 49
    graph.unmark(select.scope("enc").each())
    graph.mark(select.op("Sin").together(), seven)
    assert value(gg.gradients(y, x), {x: 0.3}) == 7


def test_S04_a_pattern_makes_one_region_of_each_match(graph):
    x = placeholder(())

    def softplus(t):
        return log(1.0 + exp(t))

    y = softplus(softplus(x) * 3.0)
    regions = graph.mark(select.pattern(("Log", ("Add", "Constant", "Exp"))), seven)
    assert [len(boundary_of(r).members) for r in regions] == [4, 4]
    assert [len(boundary_of(r).inputs) for r in regions] == [1, 1]
    assert value(gg.gradients(y, x), {x: 0.3}) == 7 * 3 * 7


def test_S04_a_node_site_with_a_boundary_or_attributes_becomes_a_region(graph):
    x, z = placeholder(()), placeholder(())
    y = sin(x) * z
    spy = Spy()
    (region,) = graph.mark("Sin", spy, factor=3.0)
    gg.gradients(y, x)
    assert spy.sites[0].attrs == {"factor": 3.0}
    assert spy.sites[0].nodes == (y.node.inputs[0].node,)
    (other,) = graph.mark("Multiply", lambda site, dy: {z: dy}, inputs=[z])
    assert (region.where, other.pinned_inputs) == (region.where, (z,))
    assert "test_marks.py" in region.where


def test_S04_a_mark_counts_for_later_gradients_calls_only(graph):
    x = placeholder(())
    h = exp(x)
    y = sin(h)
    before = gg.gradients(y, x)
    graph.mark(select.between(x, y), seven)
    after = gg.gradients(y, x)
    assert values([before, after], {x: 0.0}) == pytest.approx([np.cos(1.0), 7])
    assert boundary_of(graph.regions[0]).outputs == (y,)  # what the first one reads is no output
    assert value(gg.gradients(before, x, overrides="none"), {x: 0.0}) == pytest.approx(
        np.cos(1.0) - np.sin(1.0)
    )


def test_S04_what_was_differentiated_before_needs_escape_default_to_be_differentiated_again(graph):
    x = placeholder(())
    y = sin(exp(x))
    before = gg.gradients(y, x)
    graph.mark(select.between(x, y), seven)
    with pytest.raises(gg.GradientError, match="hidden"):
        gg.gradients(before, x)
    graph.unmark(graph.regions[0])
    graph.mark(select.between(x, y), seven, escape="default")
    found = [gg.gradients(before, x), gg.gradients(y, x)]
    assert values(found, {x: 0.0}) == pytest.approx([np.cos(1.0) - np.sin(1.0), 7])


def test_S04_declared_inputs_and_outputs(graph):
    x, z, w = (placeholder(()) for _ in range(3))
    a = exp(x)
    b = sin(z)
    spy = Spy(lambda site, db, da: [1.0, 2.0, 3.0])
    (region,) = graph.mark(select.nodes(a, b), spy, inputs=[w, z, x], outputs=[b, a])
    assert values(gg.gradients([a, b], [x, z, w])) == [3, 2, 1]
    assert (spy.sites[0].inputs, spy.sites[0].outputs) == ((w, z, x), (b, a))
    assert region.pinned_inputs == (w, z, x)


def test_S10_an_undeclared_output_of_a_mark(graph):
    x = placeholder(())
    h = x * x
    y = h * 5.0
    loss = h * 3.0 + y
    graph.mark(select.between(x, y), seven, outputs=y)
    with pytest.raises(gg.GradientError, match="hidden"):
        gg.gradients(loss, x)
    assert value(gg.gradients(y + stop_gradient(h), x)) == 7
    graph.unmark(graph.regions[0])
    graph.mark(select.between(x, y), seven, outputs=y, escape="default")
    assert value(gg.gradients(loss, x), {x: 2.0}) == 3 * 4 + 7


def test_S10_numbers_are_inside_shared_ones_too(graph):
    x = placeholder(())
    two = gg.constant(2.0)
    y = exp(x * two) + 3.0
    z = y * two
    spy = Spy()
    (region,) = graph.mark(select.between(x, y), spy)
    assert value(gg.gradients(z, x), {x: 0.0}) == 4
    assert spy.sites[0].inputs == (x,)
    assert two.node.region is None
    assert sum(n.region is region and not n.inputs for n in graph.nodes) == 1
    again = copy.copy(graph)
    assert [t.name for t in boundary_of(again.regions[0]).inputs] == [x.name]


def test_S10_a_number_may_be_declared_as_an_input(graph):
    x = placeholder(())
    y = x * 2.0
    two = y.node.inputs[1]
    graph.mark("Multiply", seven, inputs=[x, two])
    assert values(gg.gradients(y, [x, two])) == [7, 7]


def test_S09_a_mark_sees_what_is_built_after_it_until_it_is_asked(graph):
    x = placeholder(())
    h = exp(x)
    y = sin(h)
    spy = Spy()
    graph.mark(select.between(x, y), spy)
    later = cos(h)
    gg.gradients(y + later, x)
    assert spy.sites[0].outputs == (h, y)


def test_S09_a_mark_that_declares_a_number_sees_what_is_built_after_it_too(graph):
    x = placeholder(())
    h = x * 2.0
    y = sin(h)
    spy = Spy(lambda site, *dys: [7.0, 11.0])
    graph.mark(select.nodes(h, y), spy, inputs=h.node.inputs)
    later = cos(h)
    assert values(gg.gradients(y + later, list(h.node.inputs))) == [7, 11]
    assert spy.sites[0].outputs == (h, y)


def test_S11_a_marked_group_that_is_no_step_is_an_error_when_it_takes_part(graph):
    x = placeholder(())
    a = exp(x)
    b = sin(a)
    c = cos(b)
    graph.mark(select.nodes(a, c), seven)
    with pytest.raises(gg.RegionError, match="leaves it and comes back") as error:
        gg.gradients(c, x)
    assert b.node.name in str(error.value)


def test_S04_imported_and_copied_graphs_take_marks(graph):
    x = placeholder((), name="x")
    y = sin(exp(x) * 2.0)
    again = copy.copy(graph)
    again.mark(select.op("Exp", "Sin").together(), seven)
    again.unmark(again.regions[0])
    (region,) = again.mark(select.between(again.tensor("x"), again.tensor(y.name)), seven)
    third = copy.copy(again)
    for g in (again, third):
        t, u = g.tensor(y.name), g.tensor("x")
        assert value(gg.gradients(t, u), {u: 0.3}) == 7
    assert value(gg.gradients(y, x), {x: 0.0}) == pytest.approx(2 * np.cos(2.0))
    assert third.regions[0].where == region.where


# --- marks around and inside marks ---------------------------------------------------------------


def test_S04_a_region_inside_the_selection_is_then_inside_the_new_one(graph):
    x = placeholder(())
    with gg.override_gradient(scaled(3.0)) as inner:
        with gg.override_gradient(scaled(5.0)) as innermost:
            h = exp(x)
    y = h * 2.0
    settled = boundary_of(inner).inputs, boundary_of(inner).outputs
    (outer,) = graph.mark(select.between(x, y), scaled(7.0))
    assert (inner.parent, innermost.parent) == (outer, inner)
    assert (inner.settled, inner.boundary.members) == (settled, [h.node])
    assert value(gg.gradients(y, x), {x: 0.0}) == 7 * 3 * 5 * 2
    (around,) = graph.mark(select.between(x, cos(y)), seven)
    assert (outer.parent, around.parent) == (around, None)


def test_S04_a_new_region_lies_in_the_innermost_that_holds_all_of_it(graph):
    x = placeholder(())
    with gg.override_gradient(scaled(2.0)) as outer:
        a = exp(x)
        with gg.override_gradient(scaled(3.0)) as inner:
            b = sin(a)
            c = sin(b)
    (one,) = graph.mark(select.nodes(b), scaled(5.0), allow_inside=True)
    (two,) = graph.mark(select.nodes(a, b, c), scaled(7.0), allow_inside=True)
    assert (one.parent, inner.parent, two.parent) == (inner, two, outer)
    expected = np.cos(1.0) * np.cos(np.sin(1.0)) * 2 * 7 * 3 * 5
    assert value(gg.gradients(c, x), {x: 0.0}) == pytest.approx(expected)


@pytest.mark.parametrize("first", [True, False])
def test_S04_marks_inside_a_region_that_was_asked_already(graph, first):
    """Its settled boundary stays, and its derivative goes through the new region."""
    x = placeholder(())
    with gg.override_gradient(scaled(2.0)) as outer:
        a = exp(x)
        b = sin(a)
        y = b * a
    if first:
        gg.gradients(gg.gradients(y, x), x)
    graph.mark(select.nodes(b), scaled(3.0), allow_inside=True)
    assert (boundary_of(outer).inputs, boundary_of(outer).outputs) == ((x,), (y,))
    expected = 2 * (3 * np.cos(1.0) + np.sin(1.0))
    dx = gg.gradients(y, x)
    assert value(dx, {x: 0.0}) == pytest.approx(expected)
    assert value(gg.gradients(dx, x), {x: 0.0}) == pytest.approx(second_order_reference())


def second_order_reference():
    with gg.Graph():
        x = placeholder(())
        with gg.override_gradient(scaled(2.0)):
            a = exp(x)
            with gg.override_gradient(scaled(3.0)):
                b = sin(a)
            y = b * a
        return value(gg.gradients(gg.gradients(y, x), x), {x: 0.0})


def test_S10_an_input_that_a_mark_inside_declares_is_read_by_the_region_around(graph):
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(default) as outer:
        y = sin(exp(x))
    gg.gradients(y, x)
    spoken = lambda site, dy: {z: 11.0 * dy}  # noqa: E731
    graph.mark("Exp", spoken, inputs=[z], allow_inside=True)
    assert boundary_of(outer).inputs == (x,)
    with pytest.raises(gg.GradientError, match="not among its inputs"):
        gg.gradients(y, z)  # settled: never a dropped path


def test_S04_marks_inside_an_open_block(graph):
    x = placeholder(())
    with gg.override_gradient(scaled(2.0)) as outer:
        y = exp(x)
        (inner,) = graph.mark("Exp", scaled(3.0), note=1, allow_inside=True)
        z = y * 2.0
    assert inner.parent is outer
    assert value(gg.gradients(z, x), {x: 0.0}) == 12


def test_S04_backward_nodes_can_be_marked(graph):
    x = placeholder(())
    y = exp(sin(x))
    dx = gg.gradients(y, x)
    graph.mark(select.op("Cos").backward(), lambda site, dy: 100.0 * dy)
    e, c = np.exp(np.sin(0.3)), np.cos(0.3)
    assert value(gg.gradients(dx, x), {x: 0.3}) == pytest.approx(e * c * c + 100 * e)
    graph.unmark(select.op("Cos").backward())
    graph.mark(select.backward().together() & select.between(x, dx).backward(), seven)
    assert value(gg.gradients(dx, x, unconnected="zero"), {x: 0.3}) is not None


# --- bodies of control flow ----------------------------------------------------------------------


def branches(x):
    return gg.cond(x > 0.0, lambda: sin(exp(x)) * x, lambda: exp(x))


def test_S04_matches_in_bodies_of_control_flow_are_marked_there(graph):
    x = placeholder(())
    with gg.gradient_override_map({"Exp": seven}):
        mapped = branches(x)
    y = branches(x)
    sites = graph.mark(select.op("Exp") & ~select.where(lambda n: n.stamp is seven), seven)
    assert [s.graph is graph for s in sites] == [False, False]
    for at in (0.3, -0.3):
        a, b = mapped, y
        for _ in range(2):
            a, b = gg.gradients(a, x), gg.gradients(b, x)
            assert value(a, {x: at}) == pytest.approx(value(b, {x: at}), rel=1e-12)
    assert value(gg.gradients(y, x), {x: -0.3}) == 7
    graph.unmark("Exp")
    assert value(gg.gradients(y, x), {x: -0.3}) == pytest.approx(np.exp(-0.3))


def test_S04_a_pattern_in_a_body_becomes_a_region_there(graph):
    x = placeholder(())
    y = branches(x)
    (region,) = graph.mark(select.pattern(("Sin", "Exp")), seven)
    assert (graph.regions, region.graph.regions) == ([], [region])
    expected = np.sin(np.exp(0.3)) + 7 * 0.3
    assert value(gg.gradients(y, x), {x: 0.3}) == pytest.approx(expected)
    assert value(gg.gradients(y, x, overrides={select.rule("seven"): None}), {x: 0.3}) != expected
    graph.unmark(select.rule("seven"))
    assert all(n.region is None for n in region.graph.nodes)


def test_S04_a_group_that_has_the_choice_does_not_count_its_bodies_again(graph):
    x = placeholder(())
    with gg.name_scope("enc"):
        y = branches(x) * 2.0
    (region,) = graph.mark(select.scope("enc"), lambda site, dy: 7.0 * dy)
    assert all(n.graph is graph for n in boundary_of(region).members)
    assert value(gg.gradients(y, x, unconnected="zero"), {x: 0.3}) == 7
    with pytest.raises(gg.RegionError, match="allow_inside"):
        graph.mark("Exp", seven)


def test_S04_a_group_of_several_graphs_is_an_error(graph):
    x = placeholder(())
    y = sin(branches(x))
    with pytest.raises(gg.RegionError, match="several graphs") as error:
        graph.mark(select.op("Sin").together(), seven)
    assert y.node.name in str(error.value)
    with pytest.raises(gg.RegionError, match="several graphs"):
        graph.mark(select.op("Exp").together(), seven)


def test_S05_selections_in_overrides_reach_bodies(graph):
    x = placeholder(())
    y = sin(branches(x))
    dx = gg.gradients(y, x, overrides={"Exp": seven, select.nodes(y).each(): scaled(3.0)})
    assert value(dx, {x: -0.3}) == pytest.approx(21 * np.cos(np.exp(-0.3)))
    both = gg.gradients(y, x, overrides={select.op("Exp") | y.node: seven})
    assert value(both, {x: -0.3}) == 49


# --- random programs -----------------------------------------------------------------------------


def random_program(rng, x, blocks):
    """Two dozen nodes over x; blocks: (start, end, rule) of the parts to mark, outer ones first."""
    pool, scopes = [x, x * 0.5], []
    for i in range(24):
        while scopes and scopes[-1][0] == i:
            scopes.pop()[1].__exit__(None, None, None)
        for _, end, rule in (b for b in blocks if b[0] == i):
            scopes.append((end, gg.override_gradient(rule)))
            scopes[-1][1].__enter__()
        f = (sin, cos, tanh, gg.add, gg.multiply)[rng.integers(5)]
        picks = [pool[k] for k in rng.integers(max(0, len(pool) - 5), len(pool), size=2)]
        pool.append(f(*picks) if f in (gg.add, gg.multiply) else f(picks[0]))
    while scopes:
        scopes.pop()[1].__exit__(None, None, None)
    return pool


@pytest.mark.parametrize("seed", every(3, range(30)))
def test_S04_marks_afterwards_agree_with_blocks_on_random_programs(seed):
    blocks = [
        (4, 14, scaled(2.0)),
        (6, 10, times_first),
        (7, 9, scaled(5.0)),
        (15, 20, times_first),
    ]
    order = np.random.default_rng(seed).permutation(len(blocks))
    found = []
    for blocked in (True, False):
        with gg.Graph() as graph:
            x = placeholder(())
            pool = random_program(np.random.default_rng(seed), x, blocks if blocked else [])
            y = pool[-1] + pool[-2] * pool[-3]
            if not blocked:
                gg.gradients(y, x, unconnected="zero")  # what is there already is in no way
                for k in order:
                    start, end, rule = blocks[k]
                    members = select.nodes(*pool[2 + start : 2 + end])
                    graph.mark(members, rule, allow_inside=True)
            g1 = gg.gradients(y, x, unconnected="zero")
            g2 = gg.gradients(g1, x, unconnected="zero")
            verify_graph(graph)
            found.append(values([y, g1, g2], {x: 0.3}))
            if not blocked:
                for k in order[::-1]:
                    start, end, _ = blocks[k]
                    graph.unmark(select.nodes(*pool[2 + start : 2 + end]))
                plain = gg.gradients(y, x, unconnected="zero")
                own = gg.gradients(y, x, unconnected="zero", overrides="none")
                assert value(plain, {x: 0.3}) == value(own, {x: 0.3})
    np.testing.assert_allclose(*found, rtol=1e-10)


def times_first(site, *dys):
    """The default, times an output of the site."""
    return [dx * site.outputs[0] for dx in site.default(*dys)]


# --- taking marks off ----------------------------------------------------------------------------


def test_S04_unmark_restores(graph):
    x = placeholder(())
    with gg.override_gradient(default):
        p = sin(x)
    with gg.gradient_override_map({"Cos": default}):
        q = cos(p)
    y = exp(q * 2.0) + p
    before = state(graph)
    plain = gg.gradients(y, x)
    settled = state(graph)
    steps = [
        (select.between(p, y), {}),
        (select.between(x, y), {"inputs": [x]}),
        ("Exp", {}),
        (select.op("Exp", "Add").each(), {"color": "red"}),
        (select.pattern(("Exp", ("Multiply", "Cos", "Constant"))), {}),
    ]
    for selection, options in steps:
        graph.mark(selection, seven, **options)
        assert state(graph) != settled
        graph.unmark(selection)
        assert state(graph) == settled
    assert [s[0] for s in state(graph)[0][: len(before[0])]] == [s[0] for s in before[0]]
    again = gg.gradients(y, x)
    assert value(plain, {x: 0.3}) == value(again, {x: 0.3})
    assert [boundary_of(r).members for r in graph.regions] == [[p.node]]


def test_S04_unmark_takes_scopes_and_maps_off_too(graph):
    x = placeholder(())
    with gg.override_gradient(seven), gg.gradient_override_map({"Sin": seven}):
        y = sin(exp(x))
    assert value(gg.gradients(y, x), {x: 0.0}) == 7
    sites = graph.unmark(select.rule("seven"))
    assert sites == [*(s for s in sites if isinstance(s, gg.Region)), y.node]
    assert all(n.stamp is None for n in graph.nodes)
    assert value(gg.gradients(y, x), {x: 0.0}) == pytest.approx(np.cos(1.0))


def test_S04_unmark_of_an_inner_region_gives_its_members_to_the_outer_one(graph):
    x = placeholder(())
    with gg.override_gradient(scaled(2.0)) as outer:
        with gg.override_gradient(scaled(3.0)) as inner:
            with gg.override_gradient(scaled(5.0)) as innermost:
                a = exp(x)
            b = sin(a)
    graph.unmark(inner)
    assert (a.node.region, b.node.region, innermost.parent) == (innermost, outer, outer)
    assert graph.regions == [outer, innermost]
    assert innermost.index == 1
    assert value(gg.gradients(b, x), {x: 0.0}) == pytest.approx(np.cos(1.0) * 10)
    graph.unmark(outer)
    assert value(gg.gradients(b, x), {x: 0.0}) == pytest.approx(np.cos(1.0) * 5)


def test_S09_what_only_a_derivative_in_a_block_read_is_used_nowhere_after_unmark(graph):
    x = placeholder(())
    with gg.override_gradient(default) as outer, gg.override_gradient(default) as inner:
        y = exp(x)
        gg.gradients(y, x)  # it reads y
    graph.unmark(inner)
    graph.unmark(outer)
    (region,) = graph.mark(select.nodes(y).together(), seven)
    assert boundary_of(region).outputs == (y,)
    assert value(gg.gradients(y, x)) == 7


def test_S04_after_unmark_earlier_derivatives_stay_and_later_ones_are_plain(graph):
    x = placeholder(())
    with gg.override_gradient(with_residual) as region:
        y = sin(exp(x))
    overridden = gg.gradients(y, x)
    second = gg.gradients(overridden, x)
    graph.unmark(region)
    plain = gg.gradients(y, x)
    e = np.exp(0.3)
    first = e * np.cos(e)
    assert values([overridden, plain], {x: 0.3}) == pytest.approx([2 * first * e, first])
    again = gg.gradients(overridden, x)
    assert value(again, {x: 0.3}) == pytest.approx(value(second, {x: 0.3}))
    copied = copy.copy(graph)
    t, u = copied.tensor(overridden.name), copied.tensor(x.name)
    assert value(gg.gradients(t, u), {u: 0.3}) == pytest.approx(value(second, {x: 0.3}))
    graph.mark(select.between(x, y), seven)
    assert value(gg.gradients(y, x), {x: 0.3}) == 7


def test_S04_unmark_of_declared_inputs_takes_back_what_they_read(graph):
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(default) as outer:
        y = sin(exp(x))
    graph.mark("Exp", seven, inputs=[z], allow_inside=True)
    graph.unmark("Exp")
    assert boundary_of(outer).inputs == (x,)
    assert graph.regions == [outer]
    assert value(gg.gradients(y, x), {x: 0.0}) == pytest.approx(np.cos(1.0))


def test_S04_what_only_an_unmarked_region_declared_is_no_undeclared_input(graph):
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(default, inputs=[x]) as outer:
        sin(exp(x))
    graph.mark("Exp", seven, inputs=[x, z], allow_inside=True)
    assert boundary_of(outer).undeclared == (z,)
    graph.unmark("Exp")
    assert boundary_of(outer).undeclared == ()


@pytest.mark.parametrize("afterwards", [False, True])
def test_S09_what_a_region_declares_leaves_one_around_its_producer_marked_later_too(
    graph, afterwards
):
    x, spy = placeholder(()), Spy(lambda site, *dys: [7.0 * dys[-1]])
    with gg.override_gradient(default) as outer:
        with gg.override_gradient(spy) if not afterwards else nullcontext():
            a = exp(x)
            b = sin(a)
        cos(b)
    with gg.override_gradient(lambda site, dy: [dy, dy], inputs=[b, a]):
        y = exp(b)
    scan(graph)
    if afterwards:
        graph.mark(select.nodes(a, b), spy, allow_inside=True)
    gg.gradients(y, x)
    assert spy.sites[0].outputs == (a, b)
    assert boundary_of(outer).left == [a, b]


def test_S04_what_only_an_unmarked_region_declared_leaves_no_other_region(graph):
    x = placeholder(())
    with gg.override_gradient(seven) as inner:
        t = exp(x)
        y = cos(t)
    with gg.override_gradient(default, inputs=[y, t]) as declares:
        exp(y)
    scan(graph)
    graph.unmark(declares)
    boundary = boundary_of(inner)
    assert (boundary.inputs, boundary.outputs) == ((x,), (y,))
    assert value(gg.gradients(y, x), {x: 0.5}) == 7.0


def test_S04_an_interrupted_unmark_of_declared_inputs_goes_on_to_its_end(graph, monkeypatch):
    x, z = placeholder(()), placeholder(())
    with gg.override_gradient(default) as outer:
        y = sin(exp(x))
    graph.mark("Exp", seven, inputs=[x, z], allow_inside=True)
    interrupts, drop_reads = [KeyboardInterrupt], Boundaries.drop_reads

    def interrupted(*args):
        if interrupts:
            raise interrupts.pop()
        drop_reads(*args)

    monkeypatch.setattr(Boundaries, "drop_reads", interrupted)
    with pytest.raises(KeyboardInterrupt):
        graph.unmark("Exp")
    assert boundary_of(outer).inputs == (x,)
    assert graph.regions == [outer]
    assert value(gg.gradients(y, x), {x: 0.0}) == pytest.approx(np.cos(1.0))


def test_S04_unmark_errors(graph, unchanged):
    x = placeholder(())
    with gg.name_scope("enc"):
        y = sin(exp(x))
    with gg.override_gradient(default) as region:
        z = cos(tanh(y))
    unchanged()
    with pytest.raises(gg.RegionError, match="selects nothing that is marked"):
        graph.unmark("Exp")
    with pytest.raises(gg.RegionError, match="member of <region 'default'") as error:
        graph.unmark("Cos")
    assert region.where in str(error.value)
    with pytest.raises(gg.RegionError, match="not a marked region"):
        graph.unmark(select.scope("enc"))
    with pytest.raises(gg.RegionError, match="not a marked region"):
        graph.unmark(select.nodes(z))
    with pytest.raises(gg.RegionError, match="selects nothing in"):
        graph.unmark("Log")


def test_S04_unmark_of_an_open_block_is_an_error(graph):
    x = placeholder(())
    with gg.override_gradient(default) as region:
        y = exp(x)
        with pytest.raises(gg.RegionError, match="still open"):
            graph.unmark(region)
    assert y.node.region is region


# --- what cannot be marked -----------------------------------------------------------------------


def test_S04_partial_overlap_with_a_region_is_an_error_that_names_both(graph, unchanged):
    x = placeholder(())
    a = exp(x)
    with gg.override_gradient(default) as region:
        b = sin(a)
        c = cos(b)
    d = tanh(c)
    unchanged()
    for selection in (
        select.between(x, b),
        select.nodes(d, c),
        select.op("Cos", "Tanh").together(),
    ):
        with pytest.raises(gg.RegionError, match="neither is inside the other") as error:
            graph.mark(selection, seven)
        assert region.where in str(error.value)
        assert repr(selection) in str(error.value)
        with pytest.raises(gg.RegionError, match="neither is inside the other"):
            gg.gradients(d, x, overrides={selection: seven})


def test_S04_two_targets_that_share_a_node_are_an_error_that_names_both(graph, unchanged):
    x = placeholder(())
    with gg.name_scope("enc"):
        y = exp(exp(exp(x)))
    unchanged()
    for selection in (
        select.pattern(("Exp", "Exp")),
        select.scope("enc") | "Exp",
        select.scope("enc") | select.nodes(y),
        select.nodes(y) | y.node,
    ):
        with pytest.raises(gg.RegionError, match="two sites of one mark share") as error:
            graph.mark(selection, seven)
        assert "Exp_" in str(error.value)
    graph.mark(select.pattern(("Exp", "Exp")).together(), seven)
    assert value(gg.gradients(y, x)) == 7
    graph.unmark(graph.regions[0])
    unchanged()


def test_S04_a_second_mark_on_a_site_needs_replace(graph):
    x = placeholder(())
    y = sin(exp(x))
    graph.mark("Sin", seven)
    (region,) = graph.mark(select.nodes(y.node.inputs[0]), default, escape="default", k=1)
    for selection in ("Sin", region, select.rule("default"), y.node):
        with pytest.raises(gg.RegionError, match=r"marked.*already"):
            graph.mark(selection, scaled(2.0))
    with pytest.raises(gg.RegionError, match="already"):
        graph.mark(select.op("Sin") | region, scaled(2.0))
    graph.mark("Sin", scaled(2.0), replace=True)
    graph.mark(region, scaled(3.0), replace=True)
    assert (region.attrs, region.escape) == ({}, "error")
    assert value(gg.gradients(y, x), {x: 0.0}) == pytest.approx(6 * np.cos(1.0))


def test_S04_a_match_only_inside_a_region_is_an_error_that_names_it(graph, unchanged):
    x = placeholder(())
    with gg.override_gradient(default) as region:
        y = sin(exp(x))
    unchanged()
    for selection in ("Exp", select.nodes(y), select.between(x, y), select.op("Exp").together()):
        with pytest.raises(gg.RegionError, match="allow_inside=True") as error:
            graph.mark(selection, seven)
        assert region.where in str(error.value)
        assert "test_marks.py" in str(error.value)


def test_S04_a_match_inside_a_region_beside_one_outside_is_none(graph):
    x = placeholder(())
    with gg.override_gradient(default):
        y = exp(x)
    z = exp(y)
    graph.mark("Exp", seven)
    assert value(gg.gradients(z, x)) == 49
    with pytest.raises(gg.RegionError, match="already"):
        graph.mark(y.node, seven)


def test_S13_marks_on_sources_and_on_ops_without_inputs(graph, unchanged):
    x, w = placeholder((), name="x"), variable(2.0)
    y = x * w * 3.0
    constant = y.node.inputs[1]
    unchanged()
    for wrong in (x.node, w.node, constant.node, select.nodes(constant)):
        with pytest.raises(gg.RegionError, match=r"no inputs|from outside"):
            graph.mark(wrong, seven)
    for wrong in (select.nodes(x, y), select.nodes(*graph.nodes)):
        with pytest.raises(gg.RegionError, match="never members"):
            graph.mark(wrong, seven)
    with pytest.raises(gg.RegionError, match="no inputs"):
        gg.gradients(y, x, overrides={x.node: seven})


def test_S04_residuals_cannot_be_marked(graph, unchanged):
    x = placeholder(())
    with gg.override_gradient(with_residual):
        y = sin(exp(x))
    gg.gradients(y, x)
    (door, *_) = [n for n in graph.nodes if n.type == "Residual"]
    unchanged()
    for wrong in (door, select.nodes(door)):
        with pytest.raises(gg.RegionError, match="door"):
            graph.mark(wrong, seven)
    with pytest.raises(gg.RegionError, match="nothing"):
        graph.mark(select.name(door.name).backward(), seven)


def test_S13_a_group_that_reads_nothing_from_outside(graph, unchanged):
    y = exp(gg.constant(2.0))
    unchanged()
    with pytest.raises(gg.RegionError, match="reads nothing from outside"):
        graph.mark(select.nodes(y), seven)


def test_S13_declared_tensors_must_be_what_they_are_declared_as(graph, unchanged):
    x = placeholder(())
    h = exp(x)
    y = sin(h)
    with gg.Graph():
        other = placeholder(())
    unchanged()
    for options, message in [
        ({"inputs": [h]}, "but is made inside it"),
        ({"outputs": [x]}, "not made inside it"),
        ({"inputs": [3]}, "are tensors"),
        ({"outputs": "y"}, "are tensors"),
    ]:
        with pytest.raises(gg.RegionError, match=message):
            graph.mark(select.between(x, y), seven, **options)
    with pytest.raises(gg.GraphError, match="is among the inputs"):
        graph.mark(select.between(x, y), seven, inputs=[x, other])


def test_S04_one_boundary_is_for_one_region(graph, unchanged):
    x = placeholder(())
    exp(exp(x))
    with gg.override_gradient(default) as region:
        sin(x)
    unchanged()
    with pytest.raises(gg.RegionError, match="2 sites"):
        graph.mark("Exp", seven, inputs=[x])
    with pytest.raises(gg.RegionError, match="a region"):
        graph.mark(region, seven, inputs=[x], replace=True)


def test_S30_a_mark_checks_its_rule_and_options_before_anything_changes(graph, unchanged):
    x = placeholder(())
    exp(sin(x))
    unchanged()
    with gg.temporary_gradient("test/soft_clip", default):
        with pytest.raises(gg.UnknownGradientError, match="Did you mean 'test/soft_clip'") as error:
            graph.mark("Exp", "test/soft_clpi")
    assert "test_marks.py" in str(error.value)
    for rule in (None, 3):
        with pytest.raises(gg.GradientError, match="a gradient rule is"):
            graph.mark("Exp", rule)
    for options in ({"escape": "no"}, {"order": "no"}):
        with pytest.raises(ValueError, match="'no'"):
            graph.mark("Exp", default, **options)
    with pytest.raises(gg.RegionError, match="never members"):  # the second of two targets
        graph.mark(select.op("Exp") | select.nodes(x), default)


def test_S30_late_names_are_looked_up_at_differentiation(graph):
    x = placeholder(())
    y = sin(exp(x))
    graph.mark("Exp", "test/later", late=True)
    graph.mark("Sin", "test/later", late=True, note=1)
    with pytest.raises(gg.UnknownGradientError, match="test/later"):
        gg.gradients(y, x)
    with gg.temporary_gradient("test/later", seven):
        assert value(gg.gradients(y, x)) == 49


def test_S13_allow_empty(graph):
    assert graph.mark("Exp", seven, allow_empty=True) == []


# --- selections in overrides= --------------------------------------------------------------------


def test_S05_selections_in_overrides(graph):
    x = placeholder(())
    with gg.name_scope("enc"):
        h = exp(x)
    y = sin(exp(h))
    with gg.override_gradient(default) as region:
        z = y * 3.0
    found = [
        gg.gradients(z, x, overrides={select.op("Exp"): seven, region: None}),
        gg.gradients(z, x, overrides={select.op("Exp") & select.scope("enc"): seven}),
        gg.gradients(z, x, overrides={select.rule("default"): seven}),
        gg.gradients(z, x, overrides={select.scope("enc").each(): seven}),
        gg.gradients(z, x),
    ]
    e = np.exp(1.0)
    c = np.cos(e)
    expected = [49 * c * 3, 7 * e * c * 3, e * c * 7, 7 * e * c * 3, e * c * 3]
    assert values(found, {x: 0.0}) == pytest.approx(expected)


def test_S05_a_group_that_is_marked_stands_for_its_region(graph):
    x = placeholder(())
    y = sin(exp(x) * 2.0)
    graph.mark(select.between(x, y), seven)
    assert value(gg.gradients(y, x, overrides={select.between(x, y): scaled(3.0)}), {x: 0.0}) == 21
    plain = gg.gradients(y, x, overrides={select.between(x, y): None})
    assert value(plain, {x: 0.0}) == pytest.approx(2 * np.cos(2.0))


def test_S05_there_is_no_rule_to_switch_off_in_a_group_that_is_not_marked(graph, unchanged):
    x = placeholder(())
    y = sin(exp(x))
    unchanged()
    with pytest.raises(gg.RegionError, match="no rule to switch off") as error:
        gg.gradients(y, x, overrides={select.between(x, y): None})
    assert ".each()" in str(error.value)


# --- cost ----------------------------------------------------------------------------------------


def test_S37_many_marks_cost_what_they_touch():
    def cost(n):
        with gg.Graph() as graph:
            y = placeholder(())
            for _ in range(n):
                y = log(1.0 + exp(y))
            form = select.pattern(("Log", ("Add", "Constant", "Exp")))
            spent = calls_of(lambda: graph.mark(form, seven))
            spent += calls_of(lambda: graph.unmark(select.rule("seven")))
            return spent

    assert cost(160) < 6 * cost(40)


@pytest.mark.ci
def test_S37_a_long_chain_can_be_marked(graph):
    x = y = placeholder(())
    for _ in range(5_000):
        y = sin(y)
    graph.mark(select.between(x, y), seven)
    assert value(gg.gradients(y, x)) == 7
    graph.unmark(select.between(x, y))
    graph.mark(select.op("Sin"), "Identity")
    assert value(gg.gradients(y, x)) == 1


@pytest.mark.parametrize("named", [False, True])
def test_S04_what_a_branch_returns_leaves_a_region_that_is_marked_there(named):
    """Although it is read inside too; as where the region is marked as it is built."""
    rule = Spy(lambda site, dy, dz: 3.0 * dy + 2.0 * dz)
    x, parts = placeholder(()), []

    def branch():
        y = exp(x)
        parts.extend([y.node, sin(y).node])
        return y

    z = gg.cond(x > 0.0, branch, lambda: x)
    group = select.nodes(parts)
    if not named:
        z.graph.mark(group, rule)
    dx = gg.gradients(z, x, overrides={group: rule} if named else None)
    assert value(dx, {x: 1.0}) == 3
    assert rule.calls == 1


def test_S09_a_read_by_what_was_derived_from_elsewhere_makes_an_output_of_a_group(graph):
    x, z = placeholder(()), placeholder(())
    h = sin(x)
    k = exp(h)
    with gg.override_gradient(lambda site, dy: dy * h):
        q = cos(z)
    dz = gg.gradients(q, z)  # reads h, and is derived from q
    spy = Spy(lambda site, dh, dk: 5.0 * dh + 7.0 * dk)
    graph.mark(select.nodes(h, k), spy)
    assert values([gg.gradients(k, x), gg.gradients(dz, x)], {x: 0.1, z: 0.2}) == [7, 5]
    assert spy.sites[0].outputs == (h, k)


def test_S04_a_mark_that_was_taken_off_is_forgotten_and_the_others_are_not(graph):
    x = placeholder(())
    a, b = sin(x), cos(x)
    first, second = (graph.mark(select.nodes(t), seven, outputs=[t])[0] for t in (a, b))
    graph.unmark(first)
    assert graph.scattered == [second]
    assert copy.copy(graph).scattered[0].index == 0
