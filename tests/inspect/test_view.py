"""The model behind the pictures: columns, boxes, kinds of edges, what stands beside what."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.inspect.scene.view import view_of
from graphgrad.ir.verify import verify_graph

from .seeing import log1pexp, marked, nested, network, ste, twice


def test_kinds_of_edges():
    view = view_of(marked()[0])
    kinds = {(e.kind, e.tag) for e in view.edges}
    assert {("input", "in 0"), ("capture", "in 1 (capture)"), ("output", "out 0")} <= kinds
    assert {("dy", "dy"), ("dy", "dx, dy"), ("saved", "saved")} <= kinds
    assert ("residual", "residual") in {(e.kind, e.tag) for e in view_of(log1pexp(1)).edges}
    assert all(n.type != "Residual" for n in view_of(log1pexp(1)).nodes)


def test_tensors_show_their_ancestors_only():
    g, loss, grads = marked()
    assert len(view_of(loss).nodes) < len(view_of([loss, *grads, None]).nodes) <= len(g.nodes)
    assert {n.column for n in view_of(loss).columns} == {0}
    assert "backward" not in gg.to_dot(loss)
    assert "result 1" in gg.to_dot([loss, *grads])


def test_second_order_stands_in_a_column_of_its_own():
    y, dx, ddx = log1pexp(2)
    view = view_of([y, dx, ddx])
    assert [b.title for b in view.columns] == ["forward", "backward", "backward, order 2"]
    assert [view.column[t.node] for t in (y, dx, ddx)] == [0, 1, 3]


def test_nodes_built_from_gradients_stand_in_a_column_of_their_own():
    with gg.Graph():
        x, w = gg.placeholder((3,), name="x"), gg.variable(np.ones(3), name="w")
        (dx,) = gg.gradients([gg.sum(gg.exp(x * w))], [x])
        penalty = gg.sum(dx * dx)
        (dww,) = gg.gradients([penalty], [w])
    view = view_of([penalty, dww])
    assert view.column[penalty.node] == 2
    assert view.column[dww.node] == 3


def test_regions_and_scopes_are_nested_boxes():
    loss, *_ = nested()
    view = view_of(loss)
    outer, inner = loss.graph.regions
    (forward,) = view.columns
    (scope,) = forward.boxes
    (region,) = scope.boxes
    assert (scope.kind, scope.title) == ("scope", "block")
    assert (region.kind, region.owner) == ("region", outer)
    assert [b.owner for b in region.boxes] == [inner]
    assert region.size == 3
    assert forward.size == len(view.nodes)


def test_a_region_over_many_scopes_stands_around_them():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.name_scope("a"), gg.override_gradient(twice):
            with gg.name_scope("b"):
                y = gg.exp(x)
            with gg.name_scope("c"):
                y = gg.tanh(y)
        dx = gg.gradients(gg.sum(y), x)
    (forward, backward) = view_of([y, dx]).columns
    (a,) = forward.boxes
    (region,) = a.boxes
    assert [b.owner.path for b in region.boxes] == ["a/b", "a/c"]
    (mirror,) = [b for b in backward.boxes if b.kind == "scope"]
    assert view_of([y, dx]).columns[1].boxes[0].title == mirror.title == "a"


def test_boxes_of_the_backward_part_mirror_those_of_the_forward_part():
    view = view_of(network())
    pairs = {(b.title.split(" (")[0], t.title.split(" (")[0]) for b, t in view.mirror.items()}
    assert {("layer0", "layer0"), ("loss", "loss"), ("backward", "forward")} <= pairs
    assert ('spliced "ste" for #0', 'override "ste" #0') in pairs


def test_ids_are_unique_and_plain():
    for shown in (marked()[0], nested(), gg.compile([], [gg.constant(1.0) + 1.0])):
        ids = view_of(shown).id.values()
        assert len(set(ids)) == len(ids)
        assert all(name[0] == "n" and name[1:].isdigit() for name in ids)


def test_a_look_leaves_the_graph_as_it_is():
    g, loss, grads = marked()
    before = [n.name for n in g.nodes], len(g.regions)
    for options in ({}, {"bypassed": True}, {"collapse": "all"}):
        gg.to_dot([loss, *grads], **options)
    gg.graph_text(g)
    gg.summary(g)
    assert ([n.name for n in g.nodes], len(g.regions)) == before
    verify_graph(g)


def test_an_open_region_is_not_settled_by_a_look():
    with gg.Graph() as g:
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(ste) as region:
            y = gg.exp(x)
            gg.graph_text(g)
            gg.to_dot(g)
            z = gg.sign(y)
        gg.gradients([z], [x])
    assert region.boundary.outputs == (z,)


def test_a_region_and_a_node_are_shown_with_what_is_around_them():
    g, loss, _ = marked()
    region = view_of(g.regions[0])
    types = [n.type for n in region.nodes]
    assert {"Placeholder", "Variable", "Multiply", "Sign", "Exp", "Where"} <= set(types)
    assert loss.node not in region.nodes
    assert region.title.startswith('override "ste" #0')
    node = view_of(loss.node)
    assert {n.type for n in node.nodes} >= {"ReduceSum", "Multiply", "BroadcastLike"}
    assert len(node.nodes) < len(g.nodes)


def test_what_a_node_was_derived_from_and_what_is_derived_from_it():
    g, loss, grads = marked()
    view = view_of([loss, *grads])
    derived = view.derived()
    rule = [n for n in view.nodes if view.path[n] and view.path[n].item in view.calls]
    assert set(derived[g.regions[0]]) < set(rule)
    for site, found in derived.items():
        assert all(view.site(n) is site for n in found)
    assert view.site(loss.node) is None


def test_inputs_stand_just_above_their_first_reader():
    loss, *_ = network()
    view = view_of(loss)
    late = loss.graph.node("layer1/w")
    reader = next(n for n in view.nodes if any(t.node is late for t in n.inputs))
    assert view.height[late] == view.height[reader] - 1


@pytest.mark.parametrize("options", [{"scopes": False}, {}])
def test_every_node_is_in_one_box(options):
    view = view_of(network(), **options)
    inside = [n for column in view.columns for n in column.members()]
    assert len(inside) == len(set(inside)) == len(view.nodes)
    assert sum(column.size for column in view.columns) == len(view.nodes)
