"""Boxes in which very many things stand."""

from __future__ import annotations

import re

import pytest

import graphgrad as gg
from graphgrad.inspect.scene.boxes import Part
from graphgrad.inspect.scene.parts import CROWDED, CROWDED_BOXES
from graphgrad.inspect.scene.view import view_of

from .pages import chain


def shown(length, scopes):
    """A chain in one scope, or with a scope for each node, and its gradient."""
    with gg.Graph():
        x = h = gg.placeholder((4,), name="x")
        for i in range(length):
            with gg.name_scope(f"layer{i}" if scopes else "all"):
                h = gg.tanh(h)
        return [h, *gg.gradients([h], [x])]


def boxes(view):
    return [box for column in view.columns for box in column.within()]


def test_small_pictures_have_no_parts():
    assert {box.kind for box in boxes(view_of(chain(20)))} == {"column", "scope"}
    whole = view_of(shown(3000, scopes=False), collapse="none")
    assert {box.kind for box in boxes(whole)} == {"column", "scope"}


@pytest.mark.ci
def test_no_box_is_crowded_whether_nodes_or_boxes_stand_in_it():
    for scopes in (False, True):
        view = view_of(shown(3000, scopes))
        assert any(box.kind == "part" for box in boxes(view))
        assert max(len(box.nodes) + len(box.boxes) for box in boxes(view)) <= CROWDED
        assert max(len(box.boxes) for box in boxes(view)) <= CROWDED_BOXES
        assert sum(column.size for column in view.columns) == len(view.nodes)


def around(box):
    while box is not None:
        yield box
        box = box.parent


def test_parts_of_the_two_columns_mirror_each_other():
    for scopes in (False, True):
        view = view_of(shown(3000, scopes))
        for forward, beside in view.pairs.items():
            there = next(b for b in around(view.box[beside[0]]) if b in view.mirror)
            assert there.kind in ("part", "scope")
            assert view.mirror[there] in around(view.box[forward])


def test_parts_are_named_by_the_first_and_the_last_thing_in_them():
    for scopes, name in ((True, "layer"), (False, "Tanh_")):
        view = view_of(shown(3000, scopes))
        for box in boxes(view):
            if isinstance(box.owner, Part) and box.column == 0 and not box.owner.repeats:
                said = [int(found) for found in re.findall(rf"{name}(\d+)", box.title)]
                inside = box.members()
                names = [n.scope if scopes else n.name for n in inside if n.inputs]
                numbers = [int(re.findall(rf"{name}(\d+)", found)[0]) for found in names]
                assert (said[0], said[-1]) == (min(numbers), max(numbers))


def test_things_of_one_place_stay_together():
    with gg.Graph():
        x = gg.placeholder((), name="x")
        y = gg.sum(gg.stack([gg.tanh(x) for _ in range(3000)]))
        dx = gg.gradients(y, x)
    view = view_of([y, dx])
    assert sum(column.size for column in view.columns) == len(view.nodes)
    assert all(box.nodes or box.boxes for box in boxes(view))
