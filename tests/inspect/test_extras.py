"""What a page knows besides its frames: default gradients, passes, numbers by name."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.inspect.page import extras
from graphgrad.inspect.scene.view import view_of
from graphgrad.inspect.write.html import to_html

from .pages import marked, model_in, plain
from .seeing import nested


def named(model, rows):
    """Op types of rows."""
    return [model["strings"][model["nodes"][3][row]] for row in rows]


def test_default_gradients_are_a_frame_of_their_own():
    shown = nested()
    model = model_in(to_html(shown))
    bypass, view = model["bypass"], view_of(shown, bypassed=True)
    assert bypass["of"] == 0
    assert len(bypass["nodes"]) == len(view.bypassed)
    assert sorted(named(model, bypass["nodes"])) == sorted(n.type for n in view.bypassed)
    assert set(bypass["nodes"]).isdisjoint(model["frames"][0]["nodes"])
    assert len(model["frames"]) == 1
    boxes = bypass["frame"]["boxes"]
    titles = [what for _, kind, what, *_ in boxes if kind == "bypass"]
    assert titles
    assert all(title.startswith("default gradient of") for title in titles)


def test_they_say_what_they_are_derived_from_in_the_graph_that_is_shown():
    model = model_in(to_html(nested()))
    origins = model["nodes"][10]
    nodes = {origins[row] // 2 for row in model["bypass"]["nodes"] if origins[row] % 2 == 0}
    assert nodes <= set(model["frames"][0]["nodes"])


def test_they_match_no_node_of_another_frame():
    shown = marked()
    passes = gg.PassRecord()
    gg.compile([shown[0].graph.tensor("x")], shown, watch=passes)
    model = model_in(to_html(shown, passes=passes.programs))
    frame = model["bypass"]["frame"]
    apart = {key for key, row in zip(frame["key"], frame["nodes"], strict=True) if key < 0}
    assert len(apart) == len(model["bypass"]["nodes"])
    assert len(model["frames"]) == 1 + len(passes.programs)


def test_of_a_comparison_the_later_side_has_them():
    shown = marked()
    assert model_in(to_html(shown, diff=plain(shown)))["bypass"]["of"] == 1
    assert model_in(to_html(plain(shown), diff=shown))["bypass"] is None


def test_many_calls_are_left_out(monkeypatch):
    monkeypatch.setattr(extras, "CALL_LIMIT", 0)
    model = model_in(to_html(marked()))
    assert model["bypass"] is None
    assert "so large a graph" in model["why_no_bypass"]


def test_a_rule_that_raises_when_it_is_called_again_fails_no_page():
    called = []

    def once(site, dy):
        called.append(site)
        if len(called) > 1:
            raise RuntimeError("only <once>")
        return [3.0 * dx for dx in site.default(dy)]

    with gg.Graph("once"):
        x = gg.placeholder((3,), name="x")
        with (
            gg.override_gradient(lambda site, dy: [2.0 * dx for dx in site.default(dy)]),
            gg.override_gradient(once),
        ):
            y = gg.exp(x)
        shown = [y, *gg.gradients(gg.sum(y), x)]
    model = model_in(to_html(shown))
    assert len(called) == 2
    boxes = model["bypass"]["frame"]["boxes"]
    titles = [what for _, kind, what, *_ in boxes if kind == "bypass"]
    assert any(title.endswith("RuntimeError: only <once>") for title in titles)


def test_a_graph_that_cannot_be_copied_has_a_page_that_says_so(monkeypatch):
    def copy(graph):
        raise gg.GraphError("no\x1b copy\nof this")

    shown = marked()
    monkeypatch.setattr(gg.Graph, "copy", copy)
    model = model_in(to_html(shown))
    assert model["bypass"] is None
    assert model["why_no_bypass"].endswith("could not be built: GraphError: no\\x1b copy")


def test_a_look_adds_no_node():
    shown = marked()
    count = len(shown[0].graph.nodes)
    to_html(shown)
    assert len(shown[0].graph.nodes) == count


def test_a_pass_made_what_has_another_op_than_in_the_graph():
    with gg.Graph("powers"):
        x = gg.placeholder(("N",), name="x")
        y = gg.sum(gg.exp(x**2))
    passes = gg.PassRecord()
    f = gg.compile(x, y, watch=passes)
    model = model_in(to_html(y, passes=passes.programs))
    made = {name: set(named(model, rows)) for name, rows in model["made"].items()}
    assert made == {"simplify": {"Square"}}
    alone = model_in(to_html(f, made_by=passes.made_by))
    assert "Square" in named(alone, alone["made"]["simplify"])
    unknown = model_in(to_html(f))
    assert "Square" in named(unknown, unknown["made"][""])


def test_the_rewrite_rule_that_made_a_node_is_known_with_its_line():
    with gg.Graph("powers"):
        x = gg.placeholder(("N",), name="x")
        y = gg.sum(gg.exp(x**2))
    passes = gg.PassRecord()
    f = gg.compile(x, y, watch=passes)
    model = model_in(to_html(f, made_by=passes.made_by, rules=passes.rules))
    ((words, rows),) = model["rewrote"].items()
    assert named(model, rows) == ["Square"]
    assert words.startswith("power_as_square (stable.py:")
    assert "): x ** 2 -> x^2" in words
    assert model_in(to_html(f))["rewrote"] == {}


def test_what_was_there_before_a_rule_fired_is_not_its_doing():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        e = gg.exp(x + 1.0)
        y = gg.negative(gg.negative(e)) ** 2
    passes = gg.PassRecord()
    program = gg.compile(x, y, watch=passes).program
    types = {n.type: passes.rules.get(n) for n in program.nodes}
    assert types["Exp"] is None
    assert types["Square"] is not None


def test_overlays_take_names():
    shown = marked()
    loss, w = shown[0], shown[0].graph.tensor("w")
    by_tensor = model_in(to_html(shown, overlays={"a": {loss: 1.0, w.node: 2.0}}))
    numbers = {loss.name: 1.0, "w": 2.0, "nowhere": 3.0}
    assert model_in(to_html(shown, overlays={"a": numbers}))["overlays"] == by_tensor["overlays"]


def test_overlays_are_made_of_values():
    shown = marked()
    found = gg.debug.values(shown, {"x": np.ones((2, 4), np.float32)})
    (overlay,) = model_in(to_html(shown, overlays={"length": gg.Overlay.of_values(found)}))[
        "overlays"
    ]
    assert len(overlay["rows"][2]) > 10
    assert max(overlay["rows"][2]) == pytest.approx(
        max(np.linalg.norm(a) for a in found.values() if a.dtype.kind == "f")
    )
