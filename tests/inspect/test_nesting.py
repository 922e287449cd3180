"""Boxes for large pictures: scopes and regions in each other, and runs of nodes."""

from __future__ import annotations

import graphgrad as gg
from graphgrad.inspect.nesting import RUN_LIMIT, Nested
from graphgrad.inspect.view import view_of

from .pages import chain


def path(nested, node):
    """Kinds and names around a node, outermost first."""
    found = []
    at = nested.box[node]
    while at >= 0:
        box = nested.boxes[at]
        found.append((box.kind, getattr(box.what, "name", box.what)))
        at = box.parent
    return found[::-1]


def test_scopes_stand_around_the_regions_opened_in_them_and_inside_those_around():
    with gg.Graph():
        x = gg.placeholder((), name="x")
        with gg.name_scope("a"), gg.override_gradient("Tanh"):
            with gg.name_scope("b"):
                y = gg.tanh(x)
            z = gg.sin(y)
        w = gg.cos(z)
    nested = Nested(view_of(w))
    assert path(nested, x.node) == [("column", 0)]
    assert path(nested, z.node) == [("column", 0), ("scope", "a"), ("region", "Tanh")]
    assert path(nested, y.node) == [*path(nested, z.node), ("scope", "b")]


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
    nested = Nested(view)
    assert path(nested, dx.node) == [("column", 1), ("scope", "a")]
    (built,) = [n for n in view.nodes if n.type == "Multiply" and view.path[n]]
    assert [kind for kind, _ in path(nested, built)] == ["column", "scope", "call"]


def test_small_pictures_have_no_runs():
    nested = Nested(view_of(chain(20)))
    assert {box.kind for box in nested.boxes} == {"column", "scope"}


def test_runs_bound_what_a_box_holds_and_mirror_each_other():
    with gg.Graph():
        x = h = gg.placeholder((4,), name="x")
        for _ in range(3000):
            h = gg.tanh(h)
        shown = [h, *gg.gradients([h], [x])]
    view = view_of(shown)
    nested = Nested(view)
    held = {}
    for node in view.nodes:
        held.setdefault(nested.box[node], []).append(node)
    assert max(map(len, held.values())) <= RUN_LIMIT
    inner = {}
    for box in nested.boxes:
        inner[box.parent] = inner.get(box.parent, 0) + 1
    assert max(inner.values()) <= 11
    for forward, beside in view.pairs.items():
        here, there = (path(nested, n)[1:] for n in (forward, beside[0]))
        assert here == there


def test_boxes_come_after_those_around_them():
    nested = Nested(view_of(chain(3000)))
    assert all(box.parent < place for place, box in enumerate(nested.boxes))
