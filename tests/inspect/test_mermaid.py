"""Mermaid flow charts."""

from __future__ import annotations

import html
import re

import pytest

import graphgrad as gg
from graphgrad.inspect.layout.picture import Picture
from graphgrad.inspect.scene.view import view_of

from .seeing import HOSTILE, chain, hostile, marked, network


def shown_labels(text):
    """What Mermaid shows on each node, by its id."""
    found = {}
    rows = re.findall(r'^ *(\w+)(?:\(\[|\[\(|>|\(|\[\[)"(.*)"(?:.*):::\w+$', text, re.MULTILINE)
    for name, label in rows:
        plain = re.sub(r"<br/>", "\n", label).replace("#8203;", "")
        found[name] = html.unescape(re.sub(r"#(\d+);", r"&#\1;", plain))
    return found


def test_every_item_and_link_is_there():
    g = marked()[0]
    text = gg.to_mermaid(g)
    picture = Picture(view_of(g))
    assert text.startswith("flowchart TB\n")
    assert set(shown_labels(text)) == {i.id for i in picture.items}
    assert len(re.findall(r'^\w+ \S+\|".*"\| \w+$', text, re.MULTILINE)) == len(picture.links)
    assert text.count("subgraph ") == text.count("\nend") + text.count("  end")


def test_what_is_marked_is_drawn_so():
    text = gg.to_mermaid(network(), bypassed=True)
    assert text.startswith('---\ntitle: "network"\n---\nflowchart')
    assert "override #34;ste#34; #35;0" in text
    assert "==>" in text
    assert "-.->" in text
    assert "<s>" in text
    assert "stroke-dasharray" in text
    assert "linkStyle" in text


def test_options_are_those_of_dot():
    g, loss, _ = marked()
    assert ":::failed" in gg.to_mermaid(g, failed=loss)
    assert ":::box" in gg.to_mermaid(network(), collapse="all")
    assert ":::added" in gg.to_mermaid(gg.graph_diff(loss, g))
    assert gg.to_mermaid(chain(3000)).count("\n") < 1000


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_read_back(name):
    text = gg.to_mermaid(hostile(name), title=name)
    assert text.isascii()
    assert all(c.isprintable() for c in text.replace("\n", ""))
    assert "</script" not in text
    assert "%%" not in text
    assert "`" not in text.partition("flowchart")[2]
    first = shown_labels(text)["n0"].split("\n")[0]
    if len(name) < 40:
        assert first == gg.base.words.visible(name.strip("/").replace("/", "|"))
