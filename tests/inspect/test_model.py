"""The tables that a page is made of."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.inspect.page.model import model_of
from graphgrad.inspect.scene.view import view_of

from .pages import HOSTILE, hostile, marked, plain

COLUMNS = 13


def model(shown, overlays=None, **options):
    return model_of("", [("as built", view_of(shown, **options))], overlays or {}, compare=False)


def test_every_row_that_is_named_is_there():
    found = model(marked())
    (frame,) = found["frames"]
    columns = found["nodes"]
    count = len(columns[0])
    assert len(columns) == COLUMNS
    assert {len(column) for column in columns} == {count}
    assert max(frame["nodes"]) < count
    assert max(frame["box"]) < len(frame["boxes"])
    for column in frame["edges"][0], frame["edges"][2]:
        assert set(column) <= set(frame["nodes"])
    assert max(columns[8]) < len(found["strings"])
    assert max(columns[7]) < len(found["lines"])
    assert max(columns[9]) < len(found["regions"])
    for origin in columns[10]:
        assert origin < 2 * max(count, len(found["calls"]))
    for call in found["calls"]:
        assert (call["region"] >= 0) != (call["node"] >= 0)


def test_boxes_are_those_of_the_view_outer_ones_first():
    view = view_of(marked())
    found = model_of("", [("as built", view)], {}, compare=False)
    (frame,) = found["frames"]
    boxes = [box for column in view.columns for box in column.within()]
    assert [kind for _, kind, *_ in frame["boxes"]] == [box.kind for box in boxes]
    assert all(around < place for place, (around, *_) in enumerate(frame["boxes"]))
    assert [frame["boxes"][i][1] for i in frame["box"]] == [view.box[n].kind for n in view.nodes]


def test_a_node_in_two_frames_is_one_row():
    shown = marked()
    views = [("before", view_of(plain(shown))), ("after", view_of(shown))]
    found = model_of("", views, {}, compare=True)
    before, after = found["frames"]
    forward = [n for n in shown[0].graph.nodes if n.origin is None]
    assert len(set(before["nodes"]) & set(after["nodes"])) >= len(forward) - 1
    assert found["compare"]


def test_hostile_names_are_spelled_out():
    found = model(hostile())
    text = "".join(found["strings"]) + "".join(r["title"] for r in found["regions"])
    assert not set("\r\x00\x1b\u202e\u2066\u2028") & set(text)
    assert any(HOSTILE[1] in s for s in found["strings"])


def test_what_failed_and_why():
    shown = marked()
    node = shown[0].node
    found = model(shown, failed=[node, ValueError("no\nmore")])
    assert found["reason"] == "ValueError: no"
    (frame,) = found["frames"]
    assert len(frame["failed"]) == 1
    assert model(shown)["reason"] == ""


def test_overlays_are_numbers_and_words_for_what_json_has_none_for():
    shown = marked()
    found = model(shown, {"sizes": {shown[0]: np.inf, shown[1].node: 2}})
    (overlay,) = found["overlays"]
    assert overlay["rows"][1:] == [[0, -1], ["inf", 2.0]]
    with pytest.raises(TypeError, match="one real number per node"):
        model(shown, {"sizes": {shown[0]: "large"}})
    with gg.Graph():
        other = gg.placeholder((), name="nowhere")
    with pytest.raises(ValueError, match="none is of a node that is shown"):
        model(shown, {"sizes": {other: 1.0}})
