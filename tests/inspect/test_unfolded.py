"""Bodies of control flow in pictures."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.inspect.scene.unfolded import unfold
from graphgrad.inspect.scene.view import view_of
from graphgrad.inspect.write.svg import can_render

from .pages import model_in
from .seeing import boxes, choice, contradiction, labels, parsed


def test_bodies_are_boxes_in_boxes():
    text = gg.to_dot(choice())
    found = boxes(parsed(text))
    for choice_of in ("Cond_2", "Cond_4", "Cond_9"):
        assert {f"then of {choice_of}", f"else of {choice_of}"} <= set(found)
    assert any(words.split("\n")[0] == "x" for words in labels(parsed(text)).values())
    assert contradiction(text) is None


def test_every_node_of_a_body_is_shown_once_and_before_the_choice():
    loss, dx = choice()
    view = view_of([loss, dx])
    assert len(set(view.nodes)) == len(view.nodes)
    assert len(set(view.id.values())) == len(view.nodes)
    place = {n: i for i, n in enumerate(view.nodes)}
    for node, body in view.bodies.items():
        assert place[node] < place[body.site]
        assert view.marks[node].top.site.type == "Cond"
    assert {n.type for n in view.bodies} >= {"Exp", "Sin", "Cond", "Cos"}
    assert {n.column for n in view.columns} == {0, 1}


def test_regions_and_rules_in_bodies_have_their_boxes():
    view = view_of(choice())
    (region,) = view.regions
    (call,) = view.calls
    assert call.site is region
    inside = [n for n in view.nodes if region in view.path[n]]
    assert [n.type for n in inside] == ["Exp"]
    kinds = [mark.__class__.__name__ for mark in view.marks[inside[0]]]
    assert kinds == ["Region", "BodyMark"]


def test_the_bodies_of_a_gradient_stand_beside_those_of_what_it_is_of():
    view = view_of(choice())
    pairs = {(a.title, b.title) for b, a in view.mirror.items() if a.kind == "body"}
    assert {("then of Cond_4", "then of Cond_9"), ("else of Cond_4", "else of Cond_9")} <= pairs


def test_a_placeholder_reads_what_it_stands_for_and_a_choice_what_its_bodies_make():
    loss, _ = choice()
    (chooser,) = loss.node.inputs
    nodes, bodies, reads, *_ = unfold(view_of(loss, bodies=False).nodes)
    assert [t.node.type for t in reads[chooser.node]] == ["Greater", "Multiply", "Cond"]
    for node in bodies:
        if node.type == "Placeholder":
            (outer,) = reads[node]
            assert outer.type == node.outputs[0].type
    assert [n for n in nodes if n not in bodies] == view_of(loss, bodies=False).nodes


def test_bodies_can_be_left_out():
    shown = choice()
    view = view_of(shown, bodies=False)
    assert not view.bodies
    assert all(n.graph is shown[0].graph for n in view.nodes)
    assert "Sin" not in str(gg.summary(shown))


def test_text_and_page_have_them_too():
    shown = choice()
    text = gg.graph_text(shown)
    assert "then n4" in text
    assert "Cond(n3, c3, c11)" in text
    assert "Placeholder(x)" in text
    listing = gg.graph_text(shown, style="list")
    assert "\n  then of Cond_4\n" in listing
    model = model_in(gg.to_html(shown))
    (frame,) = model["frames"]
    assert [box[2] for box in frame["boxes"] if box[1] == "body"][:2] == [
        "then of Cond_4",
        "else of Cond_4",
    ]
    assert "= x" in model["strings"]


def test_the_gradient_alone_shows_what_is_run_again_with_it():
    _, dx = choice()
    view = view_of(dx)
    again = [n for n, body in view.bodies.items() if n.origin is None and body.site.origin]
    assert {n.type for n in again} >= {"Placeholder"}
    assert len(set(view.nodes)) == len(view.nodes)


# --- loops -----------------------------------------------------------------------------------


def rnn():
    """A scan, and its gradient."""
    with gg.Graph("rnn"):
        x, w = gg.placeholder((5, 3), name="x"), gg.placeholder((3, 3), name="w")
        y = gg.sum(gg.scan(lambda s, row: (gg.tanh(s @ w + row), gg.sin(s)), np.zeros(3), x)[1])
        return [y, gg.gradients(y, w)]


def power():
    """A loop with a test, and its gradient."""
    with gg.Graph("power"):
        x = gg.placeholder((), name="x")
        y = gg.while_loop(lambda c: c < 9.0, lambda c: c * x, x, max_trips=40)
        return [y, gg.gradients(y, x)]


def unknown():
    """A scan within a scan, over rows of unknown number."""
    with gg.Graph("unknown"):
        x = gg.placeholder((None, 3), name="x")
        return [gg.map(lambda row: gg.scan(lambda s, v: (s * v, None), 1.0, row)[0], x)]


TITLES = {
    rnn: ["body of Scan_3, x 5", "body of Scan_10, x 5, from the last"],
    power: ["body of While_1, while Less_2, at most 40 x", "body of Scan_6, x 40, from the last"],
    unknown: ["body of Scan_1, x x.0", "body of Scan_2, x 3"],
}


@pytest.mark.parametrize("shown", TITLES)
def test_a_loop_has_one_box_that_says_how_often_it_runs(shown):
    view = view_of(shown())
    titles = [b.title for c in view.columns for b in c.within() if b.kind == "body"]
    assert sorted(titles) == sorted(TITLES[shown])
    once = [n for n in view.bodies if n.type in ("Tanh", "Less") and n.origin is None]
    assert len(once) == (shown is not unknown)


def test_what_a_run_carries_on_leads_back_to_the_carry():
    view = view_of(rnn())
    loops = [e for e in view.edges if e.kind == "loop"]
    assert [e.source.type for e in loops if e.source.origin is None] == ["Tanh"]
    assert len(loops) == 3
    assert {e.target.type for e in loops} == {"Placeholder"}
    stands = [words for words in view.stands_for().values() if "next" in words or "row" in words]
    assert stands[:2] == ["= Constant_2, next Tanh_7", "row of x"]


def test_histories_that_nobody_reads_are_not_told():
    y, dw = rnn()
    assert "Scan_3: f64[3], f64[5,3] = Scan(" in gg.graph_text(y)
    assert "Scan_3: f64[3], f64[5,3], f64[5,3] = Scan(" in gg.graph_text([y, dw])
    assert "Placeholder([0.0, 0.0, 0.0], next Tanh_7)" in gg.graph_text(y)


@pytest.mark.parametrize("draw", [gg.to_dot, gg.to_mermaid, gg.to_html, gg.graph_text])
@pytest.mark.parametrize("shown", TITLES)
def test_every_picture_shows_loops_as_built_and_as_compiled(shown, draw):
    outputs = shown()
    inputs = [n.outputs[0] for n in outputs[0].graph.nodes if n.type == "Placeholder"]
    for each in (outputs, gg.compile(inputs, outputs)):
        assert "from the last" in draw(each) or shown is unknown


@pytest.mark.skipif(not can_render(), reason="no Graphviz")
def test_loops_can_be_laid_out_and_collapsed():
    for shown in TITLES:
        assert "next f64" in gg.to_svg(shown()) or shown is unknown
        assert "next" not in gg.to_dot(shown(), collapse="all", saved_edges=False)
