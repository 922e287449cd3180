"""Groups that calls name: what is kept of them on the graph, and what marks do about them."""

from __future__ import annotations

import pytest

import graphgrad as gg
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.trigonometry import cos, sin, tanh
from graphgrad.ops.sources import placeholder
from graphgrad.regions.boundary import boundary_of
from graphgrad.regions.select import select

from ..differentiate.helpers import Spy, default, scaled, value, values

POINT = 0.3


def seven(site, *dys):
    return [7.0 * dys[0]] * len(site.inputs)


def groups_of(graph):
    return [r for r in graph.regions if r.group is not None]


@pytest.fixture
def chain():
    """x, a, b, c, d: each made of the one before."""
    x = placeholder(())
    a = sin(x)
    b = exp(a)
    c = tanh(b)
    return x, a, b, c, cos(c)


def test_S09_the_boundary_of_a_group_is_settled_by_the_first_call_and_stays(chain):
    x, a, b, _, d = chain
    group = {select.nodes(a, b): seven}
    first = gg.gradients(d, x, overrides=group)
    monitor = a * 2.0
    assert gg.gradients(d, x, overrides=group) is not None
    with pytest.raises(gg.GradientError, match="hidden") as error:
        gg.gradients(monitor, x, overrides=group)
    assert "graph.mark()" in str(error.value)
    assert value(gg.gradients(monitor, x), {x: 0.0}) == 2
    assert value(first, {x: 0.0}) == value(gg.gradients(d, x, overrides=group), {x: 0.0})


def test_S09_reads_by_derivatives_that_are_there_are_no_outputs_of_a_group(graph, chain):
    x, a, b, _, d = chain
    gg.gradients(d, x)
    gg.gradients(d, x, overrides={select.nodes(a, b): seven})
    (region,) = groups_of(graph)
    assert boundary_of(region).outputs == (b,)
    assert boundary_of(region).inputs == (x,)


def test_S09_numbers_that_a_group_reads_are_inside_it(graph):
    x = placeholder(())
    y = (x * 2.0 + 3.0) * 4.0
    spy = Spy(seven)
    gg.gradients(y, x, overrides={select.between(x, y): spy})
    assert spy.sites[0].inputs == (x,)
    assert [n.type for n in spy.sites[0].nodes].count("Constant") == 3


def test_S10_a_group_of_several_outputs_gets_the_gradient_of_each():
    x = placeholder(())
    a = sin(x)
    b = exp(a)
    z = a * b
    spy = Spy(lambda site, da, db: 10.0 * da + db)
    dx = gg.gradients(z, x, overrides={select.nodes(a, b): spy})
    assert spy.sites[0].outputs == (a, b)
    assert value(dx, {x: 0.0}) == 10


def test_S05_what_stands_for_a_group_depends_on_what_is_around_it_in_the_call(graph, chain):
    x, a, b, c, d = chain
    inner, outer = select.nodes(a, b), select.nodes(a, b, c)
    alone = {inner: scaled(2.0)}
    both = {outer: scaled(3.0), inner: scaled(2.0)}
    found = [gg.gradients(d, x, overrides=o) for o in (alone, both, alone, both, None)]
    assert len(groups_of(graph)) == 3  # the inner one alone, and in the outer one
    assert len({r.group for r in groups_of(graph)}) == 2
    *rest, p = values(found, {x: POINT})
    assert rest == pytest.approx([2 * p, 6 * p, 2 * p, 6 * p])


def test_S05_marks_put_around_and_inside_a_group_that_was_named(graph, chain):
    x, a, b, c, d = chain
    group = {select.nodes(a, b): scaled(2.0)}

    def named():
        return gg.gradients(d, x, overrides=group)

    found = [gg.gradients(d, x), named()]
    (around,) = graph.mark(select.nodes(a, b, c), scaled(3.0))
    found.append(named())
    graph.mark(select.nodes(a), scaled(5.0), inputs=[x], allow_inside=True)
    found.append(named())
    graph.unmark(around)
    found.append(named())
    kept = len(graph.regions)
    named()
    assert len(graph.regions) == kept
    p, *rest = values(found, {x: POINT})
    assert rest == pytest.approx([2 * p, 6 * p, 30 * p, 10 * p])


def test_S04_a_group_that_was_named_can_be_marked_and_is_then_that_region(graph, chain):
    x, a, b, _, d = chain
    group = select.nodes(a, b)
    gg.gradients(d, x, overrides={group: seven})
    p = gg.gradients(d, x)
    (region,) = graph.mark(group, scaled(2.0))
    found = [p, gg.gradients(d, x), gg.gradients(d, x, overrides={group: scaled(3.0)})]
    found.append(gg.gradients(d, x, overrides={group: None}))
    p, *rest = values(found, {x: POINT})
    assert rest == pytest.approx([2 * p, 6 * p, p])  # the default is what the mark gives
    assert region.group is None


def test_S04_what_stands_for_a_group_is_no_mark(graph, chain):
    x, a, b, _, d = chain
    gg.gradients(d, x, overrides={select.nodes(a, b): seven})
    (region,) = groups_of(graph)
    with pytest.raises(gg.RegionError, match="nothing that is marked"):
        graph.unmark(region)
    with pytest.raises(gg.RegionError, match="calls that name it only"):
        graph.mark(region, seven, replace=True)
    with pytest.raises(gg.RegionError, match="not a marked region"):
        graph.unmark(select.nodes(a, b))
    assert select.rule(None).find(graph) == []


def test_S05_what_stood_for_a_group_in_another_call_may_be_switched_off(chain):
    """As a region it is a site like any other, marked or not."""
    x, a, b, _, d = chain
    group, spy = select.nodes(a, b), Spy(seven)
    gg.gradients(d, x, overrides={group: spy})
    plain = gg.gradients(d, x)
    off = gg.gradients(d, x, overrides={spy.sites[0].region: None})
    assert values([off, plain], {x: POINT}) == pytest.approx([value(plain, {x: POINT})] * 2)


def test_S05_placeholders_and_residuals_are_in_no_group(graph, chain):
    x, a, b, _, d = chain
    gg.gradients(d, x, overrides={select.nodes(a, b): default})
    residual = next(n for n in graph.nodes if n.type == "Residual")
    for wrong, why in ((x, "never members"), (residual, "cannot be marked")):
        with pytest.raises(gg.RegionError, match=why):
            gg.gradients(d, x, overrides={select.nodes(a, b, wrong): seven})
    with pytest.raises(gg.RegionError, match="reads nothing from outside"):
        gg.gradients(d, x, overrides={select.nodes(gg.constant(1.0) + 1.0): seven})


def test_S05_a_block_that_is_open_is_no_group_yet():
    x = placeholder(())
    with gg.override_gradient(scaled(3.0)):
        a = sin(x)
        b = exp(a)
        inside = gg.gradients(b, x, overrides={select.nodes(a, b): scaled(2.0)})
        y = b * 1.0
    found = values([inside, gg.gradients(y, x), gg.gradients(y, x, overrides="none")], {x: POINT})
    assert found == pytest.approx([2 * found[2], 3 * found[2], found[2]])


def test_nodes_without_a_gradient_do_not_make_another_group(chain):
    x, _, b, _, d = chain
    two = gg.constant(2.0)
    with pytest.raises(gg.RegionError, match="two entries of overrides= are for one group"):
        gg.gradients(d, x, overrides={select.nodes(b): seven, select.nodes(b, two): seven})


def test_what_read_through_the_inner_of_two_groups_does_so_elsewhere(graph, chain):
    """What its rule reads of its inside is differentiated by the inside, up to its inputs."""
    x, a, b, c, d = chain
    groups = {select.nodes(a, b, c): scaled(2.0), select.nodes(b, c): scaled(3.0)}
    gg.gradients(gg.gradients(d, x, overrides=groups), x, overrides=groups)
    with gg.Graph() as other:
        gg.import_graph(graph)
    inside = {
        frozenset(t.node.type for t in n.op.region.group.tensors)
        for g in (graph, other)
        for n in g.nodes
        if n.type == "Residual"
    }
    assert inside == {frozenset({"Exp", "Tanh"})}


def test_the_label_of_a_group_is_cut_where_it_is_long(graph):
    x = placeholder(())
    with gg.name_scope("n" * 100):
        y = tanh(sin(x))
    gg.gradients(y, x, overrides={select.scope("n" * 100).together(): seven})
    (region,) = groups_of(graph)
    assert len(region.group.label) == 80
    assert region.group.label.endswith("nnn...")
