"""SVG, PNG and PDF by Graphviz in a child process."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import pytest

import graphgrad as gg
from graphgrad.inspect.write import svg
from graphgrad.inspect.write.svg import RenderError

from .random_nets import guided_cnn
from .seeing import HOSTILE, hostile, marked, network

needs_graphviz = pytest.mark.skipif(not svg.can_render(), reason="Graphviz is not installed")


@needs_graphviz
def test_the_three_formats(tmp_path):
    g = marked()[0]
    assert gg.to_svg(g).lstrip().startswith("<?xml")
    assert gg.to_png(g).startswith(b"\x89PNG")
    assert gg.to_pdf(g).startswith(b"%PDF")
    for suffix, start in (("svg", b"<?xml"), ("png", b"\x89PNG"), ("PDF", b"%PDF")):
        gg.write_picture(tmp_path / f"g.{suffix}", g)
        assert (tmp_path / f"g.{suffix}").read_bytes().startswith(start)
    with pytest.raises(ValueError, match="suffix"):
        gg.write_picture(tmp_path / "g.gif", g)


@needs_graphviz
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text(name):
    found = gg.to_svg(hostile(name), bypassed=True)
    assert "<script" not in found
    assert "</g>" in found


def test_without_graphviz(monkeypatch):
    monkeypatch.setattr(svg, "find_spec", lambda name: None)
    monkeypatch.setattr(svg.shutil, "which", lambda name: None)
    with pytest.raises(RenderError, match=r"graphgrad\[viz\]"):
        gg.to_svg(marked()[0])
    assert not svg.can_render()


def test_that_takes_too_long_or_fails(monkeypatch):
    wait = [sys.executable, "-c", "import time; time.sleep(60)"]
    monkeypatch.setattr(svg, "_command", lambda format: wait)
    with pytest.raises(RenderError, match=r"within 0\.2 s"):
        gg.to_svg(marked()[0], timeout=0.2)
    broken = [sys.executable, "-c", "import nothing_here"]
    monkeypatch.setattr(svg, "_command", lambda format: broken)
    with pytest.raises(RenderError, match="nothing_here"):
        gg.to_svg(marked()[0])
    monkeypatch.setattr(svg, "_command", lambda format: ["/nonexistent/dot"])
    with pytest.raises(RenderError, match="nonexistent"):
        gg.to_svg(marked()[0])


def slow(monkeypatch, endless, said=""):
    """In place of Graphviz: gives back the DOT text, and of some never comes to an end."""

    def run(command, *, input, timeout, **options):
        if endless(input.decode()):
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, 0, input, said.encode())

    monkeypatch.setattr(svg, "_command", lambda format: ["dot"])
    monkeypatch.setattr(svg.subprocess, "run", run)


def test_what_takes_too_long_is_shown_collapsed(monkeypatch):
    slow(monkeypatch, lambda text: "shape=box3d" not in text)
    found = gg.to_svg(network(), timeout=2.0)
    assert "(collapsed: the whole took longer than 2 s)" in found
    assert "shape=box3d" in found


def echo(monkeypatch, trouble, where):
    """In place of Graphviz: gives back the DOT text, and complains of some of them."""
    program = (
        "import sys; text = sys.stdin.read()\n"
        f"if {where}: sys.stderr.write({trouble!r})\n"
        "sys.stdout.write(text)\n"
    )
    monkeypatch.setattr(svg, "_command", lambda format: [sys.executable, "-c", program])


def test_an_edge_that_cannot_be_routed_is_drawn_straight(monkeypatch):
    echo(monkeypatch, "Error: lost n1 n2 edge", "'splines=line' not in text")
    assert "splines=line" in gg.to_svg(marked()[0])


def test_ordering_edges_that_graphviz_cannot_meet_are_left_out(monkeypatch):
    shown = network()
    whole = gg.to_dot(shown)
    echo(monkeypatch, "Error: trouble in init_rank", f"len(text) == {len(whole)}")
    found = gg.to_svg(shown)
    assert "splines=line" not in found
    assert found.count("style=invis") < whole.count("style=invis")


def test_an_imperfect_picture_is_better_than_none(monkeypatch):
    shown = network()
    whole = gg.to_dot(shown)
    slow(monkeypatch, lambda text: len(text) != len(whole), "Error: lost n1 n2 edge")
    assert gg.to_svg(shown, timeout=2.0) == whole


def test_the_first_error_that_graphviz_names_is_the_reason(monkeypatch):
    said = "Fontconfig warning: odd\\nError: trouble in init_rank\\n" + "%0 1 " * 300
    program = f"import sys; sys.stderr.write('{said}'); sys.exit(1)"
    monkeypatch.setattr(svg, "_command", lambda format: [sys.executable, "-c", program])
    with pytest.raises(RenderError, match=r"failed: Error: trouble in init_rank$"):
        gg.to_svg(marked()[0])


@needs_graphviz
def test_a_rule_that_vanishes_from_a_network_can_be_drawn():
    guided, plain = guided_cnn()
    assert "</svg>" in gg.to_svg(gg.graph_diff(guided, plain))


@needs_graphviz
def test_what_is_written_on_boxes_and_edges_stands_above_the_lines():
    drawn = ElementTree.fromstring(gg.to_svg(network()))
    (whole,) = drawn
    *parts, last = whole
    assert last.get("class") == "words"
    words = [text.text for text in last]
    assert words[0] == "forward"
    assert any(text.startswith('override "ste" #0') for text in words)
    assert any(text.startswith("in 0") for text in words)
    below = [part for part in parts if part.get("class") in ("cluster", "edge")]
    assert len(below) > 10
    assert not [text for part in below for text in part.iter() if text.tag.endswith("text")]
