"""Residuals: which reads of a region's inside are one, and the node that stands for them."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.context import CONTEXT, Context
from graphgrad.ir.node import Members, Region, RuleCall
from graphgrad.ir.op import OP_TYPES
from graphgrad.ir.residual import (
    Residual,
    derived_from,
    read_from,
    residual_of,
    residual_op,
    settle,
    vantage,
    viewpoint,
)
from graphgrad.ir.verify import verify_graph

from .racing import race


def region_in(graph, parent=None, origin=None):
    region = Region(graph, "rule", parent=parent, origin=origin, position=None)
    graph.regions.append(region)
    return region


@pytest.fixture
def made():
    """A graph, regions outer { inner }, and tensors x outside, a in outer, b in inner."""
    with gg.Graph() as g:
        x = gg.placeholder((2,), name="x")
        a = gg.tanh(x)
        b = gg.exp(a)
    outer = region_in(g)
    inner = region_in(g, outer)
    a.node.region, b.node.region = outer, inner
    return g, outer, inner, x, a, b


def seen(g, origin=None, region=None):
    """The record of a node that is derived from something and is born in a region."""
    context = Context(g)
    context.origin, context.region = origin, region
    return context


def test_there_is_one_op_for_a_region(made):
    _, outer, inner, *_ = made
    assert residual_op(outer) is residual_op(outer)
    assert residual_op(outer) is not residual_op(inner)
    assert residual_op(inner).region is inner


def test_what_is_read_by_nobody_derived_is_read_as_it_is(made):
    g, outer, _, x, a, b = made
    for t in (x, a, b):
        assert residual_of(t, seen(g)) is t
        assert vantage(t, seen(g)) is None
    assert vantage(a, seen(g, region=outer)) is outer
    assert len(g) == 3


def test_a_rule_reads_the_inside_as_residual_and_its_outputs_as_they_are(made):
    g, outer, _, x, a, b = made
    call = RuleCall(outer, "rule", frozenset({b}))
    context = seen(g, origin=call)
    assert residual_of(x, context) is x
    assert residual_of(b, context) is b
    residual = residual_of(a, context)
    assert (residual.node.op, residual.node.inputs) == (residual_op(outer), (a,))
    assert (residual.type, residual.node.region) == (a.type, None)
    assert residual_of(a, context) is residual  # once for all readers
    hidden = residual_of(b, seen(g, origin=RuleCall(outer, "rule", frozenset())))
    assert (hidden.node.op, hidden.node.inputs) == (residual_op(outer), (b,))
    verify_graph(g)


def test_what_is_derived_of_the_inside_reads_it_as_residual(made):
    g, outer, inner, _, a, b = made
    context = seen(g, origin=b.node)  # the derivative of a node inside of both
    assert vantage(a, context) is outer
    assert vantage(b, context) is inner
    assert derived_from(outer, b.node, a)
    assert derived_from(inner, b.node, b)
    assert not derived_from(inner, a.node, b)  # a is outside of inner
    assert vantage(b, seen(g, origin=a.node)) is outer
    assert not derived_from(outer, None, a)


def test_a_read_from_inside_of_the_region_is_as_it_is(made):
    g, outer, inner, _, a, b = made
    for region, origin in [(outer, a.node), (inner, b.node), (outer, b.node)]:
        context = seen(g, origin, region)
        assert residual_of(a, context) is a
        assert vantage(a, context) is region
    assert residual_of(b, seen(g, b.node, inner)) is b
    across = residual_of(b, seen(g, b.node, outer))
    assert (across.node.op.region, across.node.region) == (inner, outer)


def test_it_belongs_to_the_innermost_region_around_both_ends(made):
    g, outer, inner, _, _, b = made
    for at, reader, around in [
        (inner, None, None),
        (inner, outer, outer),
        (outer, None, None),
        (inner, region_in(g, outer), outer),
        (inner, region_in(g), None),
    ]:
        t = read_from(at, b, seen(g, b.node, reader))
        assert (t.node.op.region, t.node.region) == (at, around)
        assert read_from(at, b, seen(g, b.node, reader)) is t
    assert len(g) == 3 + 3  # what is around is what tells them apart, not who reads
    verify_graph(g)


def test_origins_of_origins_count_and_do_not_recurse(made):
    g, outer, _, x, a, _ = made
    node = a.node
    with g:
        for _ in range(50_000):
            derived = gg.tanh(x).node
            derived.origin = node
            node = derived
    assert derived_from(outer, node, a)
    assert vantage(a, seen(g, node)) is outer
    call = RuleCall(node, "rule", frozenset({a}))  # outer values of another site are none of ours
    assert derived_from(outer, call, a)


def test_a_region_that_a_rule_opened_is_derived_from_its_site(made):
    g, outer, _, _, a, _ = made
    opened = region_in(g, origin=RuleCall(outer, "rule", frozenset()))
    assert derived_from(outer, RuleCall(opened, "other", frozenset()), a)


def test_what_stands_for_one_group_in_two_calls_is_one_site(made):
    g, outer, _, _, a, b = made
    members = Members("group", (a,))
    first, second, other = [
        Region(g, None, parent=None, origin=None, position=None, group=group)
        for group in (members, members, Members("group", (a,)))
    ]
    assert derived_from(second, RuleCall(first, "rule", frozenset({b})), a)
    assert not derived_from(second, RuleCall(first, "rule", frozenset({a})), a)
    for site, region in ((other, first), (outer, first), (first, outer)):
        assert not derived_from(region, RuleCall(site, "rule", frozenset()), a)


def test_reads_are_made_from_the_region_of_the_reader_or_the_one_a_residual_names(made):
    g, outer, inner, x, a, b = made
    residual = read_from(inner, b, seen(g, b.node))
    assert [viewpoint(t.node) for t in (x, a, b, residual)] == [None, outer, inner, inner]


def test_inputs_are_settled_together(made):
    g, outer, _, x, a, b = made
    plain = (x, x)
    assert settle(seen(g, a.node), plain) is plain
    inputs = settle(seen(g, RuleCall(outer, "rule", frozenset({b}))), (x, a, b, a))
    assert inputs[0] is x
    assert inputs[2] is b
    assert inputs[1] is inputs[3] is not a


def test_a_residual_is_its_value_and_passes_its_gradient(made):
    _, outer, _, _, a, _ = made
    op = residual_op(outer)
    array = np.ones(2)
    assert op.kernel(np, array) is array
    assert op.infer(a.type) == (a.type,)
    assert op.vjp(a.node, a) == (a,)
    assert OP_TYPES["Residual"] is Residual
    assert Residual.memory.view


def test_a_read_that_another_thread_overtakes_knows_its_place(made):
    g, outer, _, _, a, _ = made

    class Overtaken(list):
        def append(self, node):
            super().extend([a.node, node])

    g.nodes = Overtaken(g.nodes)
    residual = read_from(outer, a, seen(g, a.node)).node
    assert g.nodes[residual.index] is residual
    assert residual.index == len(g.nodes) - 1 == 4


def test_threads_that_read_at_once_leave_the_graph_whole(made):
    g, outer, _, x, *_ = made
    call = RuleCall(outer, "rule", frozenset())
    with g:
        inside = [gg.exp(x) for _ in range(100)]
    for t in inside:
        t.node.region = outer

    def work():
        CONTEXT.set(seen(g, call))
        return [gg.tanh(t) for t in inside]

    race(work)
    verify_graph(g)
    reads = [n.inputs[0].node for n in g.nodes if n.type == "Tanh" and n.origin is call]
    assert (len(reads), {type(n.op) for n in reads}) == (800, {Residual})
