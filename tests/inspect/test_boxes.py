"""The tree of boxes: scopes and regions in each other."""

from __future__ import annotations

import graphgrad as gg
from graphgrad.inspect.scene.view import view_of

from .pages import chain


def path(view, node):
    """Kinds and titles around a node, outermost first."""
    found, box = [], view.box[node]
    while box is not None:
        found.append((box.kind, box.title))
        box = box.parent
    return found[::-1]


def test_scopes_stand_around_the_regions_opened_in_them_and_inside_those_around():
    with gg.Graph():
        x = gg.placeholder((), name="x")
        with gg.name_scope("a"), gg.override_gradient("Tanh"):
            with gg.name_scope("b"):
                y = gg.tanh(x)
            z = gg.sin(y)
        w = gg.cos(z)
    view = view_of(w)
    assert path(view, x.node) == [("column", "forward")]
    kinds = [("column", "forward"), ("scope", "a"), ("region", path(view, z.node)[-1][1])]
    assert path(view, z.node) == kinds
    assert path(view, y.node) == [*kinds, ("scope", "b")]


def test_derived_nodes_stand_in_the_scopes_of_what_they_were_derived_from():
    with gg.Graph():
        x = gg.placeholder((), name="x")
        with gg.name_scope("a"):
            y = gg.tanh(x)
            with gg.override_gradient(lambda site, dy: dy * 2.0):
                z = gg.sin(y)
        with gg.name_scope("elsewhere"):
            (dx,) = gg.gradients([z], [x])
    view = view_of([z, dx])
    assert path(view, dx.node) == [("column", "backward"), ("scope", "a")]
    (built,) = [n for n in view.nodes if n.type == "Multiply" and view.path[n]]
    assert [kind for kind, _ in path(view, built)] == ["column", "scope", "rule"]


def test_boxes_know_their_depth_and_what_is_inside_at_any_depth():
    view = view_of(chain(3000))
    boxes = [b for column in view.columns for b in column.within()]
    assert [b.id for b in boxes] == [f"b{i}" for i in range(len(boxes))]
    assert sum(c.size for c in view.columns) == len(view.nodes)
    for box in boxes:
        assert box.size == len(box.members())
        assert box.depth == (0 if box.parent is None else box.parent.depth + 1)
