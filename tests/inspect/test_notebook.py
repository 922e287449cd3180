"""How things show themselves in notebooks: never an error, nothing run, nothing too large."""

from __future__ import annotations

import re

import pytest

import graphgrad as gg
from graphgrad.inspect import notebook
from graphgrad.inspect.write import svg
from graphgrad.inspect.write.svg import RenderError

from .seeing import ONE_HOSTILE_NAME, chain, hostile, marked, network


def everything():
    loss, *grads = network()
    g = loss.graph
    f = gg.compile([g.tensor("x:0")], [loss, *grads])
    return [g, loss, loss.node, g.regions[0], f, f.program, gg.graph_diff(loss, [loss, *grads])]


@pytest.mark.parametrize("place", range(7))
def test_each_has_a_picture_a_listing_and_a_short_text(place):
    shown = everything()[place]
    bundle = shown._repr_mimebundle_()
    assert set(bundle) >= {"text/plain", "text/html"}
    assert len(bundle["text/plain"]) <= 400
    assert bundle["text/plain"] == repr(shown)
    assert "<summary>listing</summary>" in bundle["text/html"]
    assert "<summary>summary</summary>" in shown._repr_html_()
    if svg.can_render():
        assert "data:image/svg+xml;base64," in bundle["text/html"]
        assert "</svg>" in shown._repr_svg_()
        assert bundle["image/svg+xml"] == shown._repr_svg_()


def test_what_is_text_is_shown_as_text():
    loss, *_ = network()
    for shown in (gg.summary(loss), gg.explain(loss, loss.graph.tensor("x:0"))):
        bundle = shown._repr_mimebundle_()
        assert bundle["text/plain"] == str(shown)
        assert bundle["text/html"].startswith("<pre")
        assert shown._repr_html_() == bundle["text/html"]


def test_only_what_is_wanted():
    g = marked()[0]
    assert set(g._repr_mimebundle_(include={"text/html"})) == {"text/html"}
    assert "text/html" not in g._repr_mimebundle_(exclude={"text/html"})


def test_without_graphviz_the_listing_is_open(monkeypatch):
    monkeypatch.setattr(notebook, "can_render", lambda: False)
    g = marked()[0]
    assert g._repr_svg_() is None
    assert "<details open><summary>listing" in g._repr_html_()
    assert set(g._repr_mimebundle_()) == {"text/plain", "text/html"}


@pytest.mark.parametrize("error", [RenderError("no"), ValueError("x"), RecursionError()])
def test_never_an_error(monkeypatch, error):
    def fails(*args, **kwargs):
        raise error

    for name in ("render", "graph_text", "summary", "subject_of"):
        monkeypatch.setattr(notebook, name, fails)
    monkeypatch.setattr(notebook, "can_render", lambda: True)
    g = marked()[0]
    assert g._repr_svg_() is None
    assert "cannot be shown" in g._repr_html_()
    assert g._repr_mimebundle_()["text/plain"] == repr(g)


def test_what_is_large_is_cut(monkeypatch):
    monkeypatch.setattr(notebook, "NODE_LIMIT", 100)
    y, _ = chain(200)
    assert y._repr_svg_() is None
    assert "402 nodes are too many to show here" in y.graph._repr_html_()
    monkeypatch.setattr(notebook, "NODE_LIMIT", 1000)
    assert len(y.graph._repr_html_()) < notebook.SIZE_LIMIT * 1.4 + 3 * notebook.TEXT_LIMIT * 8
    monkeypatch.setattr(notebook, "SIZE_LIMIT", 10)
    assert y._repr_svg_() is None


@pytest.mark.parametrize("name", ONE_HOSTILE_NAME)
def test_hostile_names_are_text(name):
    g = hostile(name)
    for shown in (g, g.nodes[0], g.nodes[0].outputs[0], g.regions[0], gg.summary(g)):
        found = shown._repr_html_()
        tags = set(re.findall(r"<\s*/?\s*([a-zA-Z!]+)", found))
        assert tags <= {"div", "img", "details", "summary", "pre"}
        assert found.isascii()
        assert all(c.isprintable() for c in found.replace("\n", ""))
        plain = shown._repr_mimebundle_()["text/plain"]
        assert all(c.isprintable() for c in plain.replace("\n", ""))


@pytest.mark.parametrize("name", ONE_HOSTILE_NAME)
def test_plain_reprs_are_short_and_on_one_line(name):
    g = hostile(name)
    for shown in (g, *g.nodes, *g.regions, *(n.outputs[0] for n in g.nodes)):
        assert len(repr(shown)) < 2500
        assert repr(shown).isprintable()
    with g:
        many = gg.stack([g.nodes[1].outputs[0]] * 500)
    assert len(repr(many.node)) < 4000
