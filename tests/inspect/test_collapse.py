"""Collapsed boxes: what is asked for, and what it takes to stay readable."""

from __future__ import annotations

import pytest

import graphgrad as gg
from graphgrad.inspect.layout.picture import Picture
from graphgrad.inspect.scene.collapse import READABLE
from graphgrad.inspect.scene.view import view_of

from .seeing import chain, edges, labels, marked, nested, network, parsed


def shown(*args, **options):
    return Picture(view_of(*args, **options))


def test_a_scope_is_one_node_with_counts_and_merged_edges():
    text = gg.to_dot(network(), collapse=["layer0"])
    graph = parsed(text)
    found = [row.split("\n") for row in labels(graph).values() if row.startswith("layer0\n")]
    assert sorted(rows[1] for rows in found) == ["3 nodes", "7 nodes"]
    assert all("MatMul" in rows[2] for rows in found)
    assert 'override "ste"' not in text
    assert any("f32[batch,4]" in (e.get("label") or "") for e in edges(graph))


def test_regions_rules_and_patterns_can_be_named():
    tensors = network(3)
    region = tensors[0].graph.regions[0]
    for what in (["#0"], ["ste"], [region]):
        items = shown(tensors, collapse=what).items
        assert sorted(i.box.kind for i in items if i.box) == ["region", "rule"]
    titles = [i.box.title for i in shown(tensors, collapse=["layer*"]).items if i.box]
    assert sorted(titles) == sorted(["layer0", "layer1", "layer2"] * 2)
    with pytest.raises(gg.GraphError, match="Did you mean 'layer"):
        gg.to_dot(tensors, collapse=["layer9"])
    with pytest.raises(ValueError, match="auto"):
        gg.to_dot(tensors, collapse="some")


def test_all_collapses_the_outermost_boxes():
    picture = shown(network(), collapse="all")
    assert {i.box.title for i in picture.items if i.box} == {"layer0", "layer1", "loss"}
    assert shown(marked()[0], collapse="none").view.collapsed == set()


def test_an_inner_box_disappears_in_an_outer_one():
    loss, *_ = nested()
    picture = shown(loss, collapse=["block", "#1"])
    assert [i.box.title for i in picture.items if i.box] == ["block"]
    assert len(picture.items) == 3


def test_collapsed_boxes_stand_beside_each_other():
    text = gg.to_dot(network(), collapse="all")
    assert text.count("{rank=same;") >= 3


def test_links_know_their_tensors():
    picture = shown(network(), collapse="all", saved_edges=True)
    many = [link for link in picture.links if len(link.edges) > 1]
    assert many
    assert all(link.source is not link.target for link in picture.links)
    for link in many:
        assert len(link.tensors()) <= len(link.edges)
        assert link.words()


def test_large_pictures_collapse_by_themselves():
    tensors = chain(3000, scopes=100)
    view = view_of(tensors)
    assert len(view.nodes) > 6000
    picture = Picture(view)
    assert len(picture.items) <= READABLE
    titles = {i.box.title for i in picture.items if i.box}
    assert titles == {"part1 ... part99, x 99"}
    assert len(shown(tensors, collapse="none").items) == len(view.nodes)


def test_a_large_picture_without_boxes_is_divided_into_parts():
    picture = shown(chain(3000))
    boxes = [i.box for i in picture.items if i.box]
    assert 20 < len(boxes) <= READABLE
    assert {b.kind for b in boxes} == {"part"}
    seen = [n for i in picture.items for n in (i.box.members() if i.box else [i.node])]
    assert set(seen) == set(picture.view.nodes)
    assert len(picture.pairs()) >= 20
    folded = [(left.box, right.box) for left, right in picture.pairs() if left.box]
    assert len(folded) >= 20
    assert all(left.owner is right.owner for left, right in folded)


def test_boxes_open_as_far_as_there_is_room():
    with gg.Graph():
        y = gg.placeholder((3,), name="x")
        for outer in "abcdefgh":
            with gg.name_scope(outer):
                for inner in "rstuv":
                    with gg.name_scope(inner):
                        for _ in range(10):
                            y = gg.exp(y)
    picture = shown(y)
    depths = [i.box.owner.path.count("/") for i in picture.items if i.box]
    assert set(depths) == {1}
    assert READABLE - 15 < len(picture.items) <= READABLE
    assert sum(i.node is not None for i in picture.items) > 30


def test_saved_edges_of_a_collapsed_picture():
    for saved in (True, False):
        dotted = gg.to_dot(network(), collapse="all", saved_edges=saved).count("style=dotted")
        assert (dotted > 0) == saved
