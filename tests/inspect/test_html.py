"""The page as text: one safe file without network, the same bytes every time, and what is in it."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.inspect.scene.view import view_of
from graphgrad.inspect.write.html import to_html, write_html

from .pages import HOSTILE, chain, hash_of, hostile, marked, model_in, plain, policy_of

VIZ = "c9e0b310f9883910e01c66054b48b7ff4be3d8695141116635e72b0af152692e"


class Page(HTMLParser):
    """Tags with attributes, in order; text of scripts and styles; tags left open."""

    VOID = {"meta", "input", "hr", "link", "img", "br"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.inside, self.stack = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack and self.stack[-1] in ("script", "style", "title"):
            self.inside.append((self.stack[-1], self.tags[-1][1], data))


@pytest.fixture(scope="module")
def page():
    return to_html(marked())


def test_one_well_formed_file_without_anything_from_elsewhere(page):
    found = Page(page)
    assert found.stack == []
    assert page.startswith("<!DOCTYPE html>")
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for tag, attrs in found.tags:
        assert not {"src", "href", "style"} & set(attrs), (tag, attrs)
        assert not [name for name in attrs if name.startswith("on")]
    sinks = (
        r"\b(fetch|import|XMLHttpRequest|innerHTML|outerHTML|insertAdjacentHTML|eval|Function)\b"
    )
    assert re.findall(sinks, "".join(scripts_of(page))) == []


def scripts_of(page):
    return [text for tag, attrs, text in Page(page).inside if tag == "script" and not attrs]


def test_the_policy_allows_these_scripts_and_this_style_alone(page):
    policy = policy_of(page)
    texts = {attrs.get("id", tag): text for tag, attrs, text in Page(page).inside}
    layout, script = scripts_of(page)
    assert policy["default-src"] == "'none'"
    assert policy["script-src"].split() == [
        hash_of(layout),
        hash_of(script),
        hash_of(texts["viz"]),
        "'wasm-unsafe-eval'",
    ]
    assert policy["style-src"] == hash_of(texts["style"])
    assert policy["worker-src"] == "blob:"
    assert {"base-uri", "form-action"} <= set(policy)
    assert page.index("Content-Security-Policy") < page.index("<style>") < page.index("<script")


def test_every_label_and_control_has_a_name(page):
    labelled = re.findall(r"<label[^>]*>.*?</label>", page, re.S)
    inside = {i for text in labelled for i in re.findall(r'id="([^"]*)"', text)}
    for tag, attrs in Page(page).tags:
        if tag in ("input", "select"):
            assert "aria-label" in attrs or attrs["id"] in inside
        if tag == "svg":
            assert attrs["aria-label"]


def test_graphviz_is_the_file_of_the_npm_package():
    text = (files("graphgrad.inspect") / "page" / "viz-global.js").read_bytes()
    assert hashlib.sha256(text).hexdigest() == VIZ
    readme = (files("graphgrad.inspect") / "page" / "README.md").read_text("utf-8")
    assert VIZ in readme
    assert b"\r" not in text
    assert b"\0" not in text
    assert b"</script" not in text.lower()
    assert b"<!--" not in text
    licence = (files("graphgrad.inspect") / "page" / "LICENSE-viz.txt").read_text("utf-8")
    assert "Michael Daines" in licence
    assert "Eclipse" in licence


def test_bytes_depend_on_the_graph_alone(page):
    assert to_html(marked()) == page
    code = (
        "import hashlib; from tests.inspect.pages import marked\n"
        "from graphgrad.inspect.write.html import to_html\n"
        "print(hashlib.sha256(to_html(marked()).encode()).hexdigest())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": "."},
    )
    assert done.stdout.strip() == hashlib.sha256(page.encode()).hexdigest()


def test_write_html(tmp_path, page):
    write_html(tmp_path / "page.html", marked())
    assert (tmp_path / "page.html").read_bytes() == page.encode()


def test_hostile_words_stay_data():
    page = to_html(hostile())
    found = Page(page)
    assert found.stack == []
    plain_tags = [tag for tag, _ in Page(to_html(marked())).tags]
    assert [tag for tag, _ in found.tags] == plain_tags
    (data,) = [text for _, attrs, text in found.inside if attrs.get("id") == "data"]
    assert not re.search("[<>&\u2028\u2029\u202e\u2066\x00\x1b]", data)
    (title,) = [text for tag, _, text in found.inside if tag == "title"]
    assert title.startswith("</script>")
    model = model_in(page)
    assert any("größe 形" in s for s in model["strings"])
    assert any("\\u202e" in s for s in model["strings"])
    assert any("</script>" in r["title"] for r in model["regions"])
    assert {r["name"] for r in model["regions"]} >= {"__proto__", "n" * 1000}
    assert len(model["regions"]) == len(HOSTILE)


def test_the_data_says_what_was_built():
    shown = marked()
    view = view_of(shown)
    model = model_in(to_html(shown, title="a title"))
    assert model["title"] == "a title"
    (frame,) = model["frames"]
    assert len(frame["nodes"]) == len(view.nodes)
    assert len(frame["edges"][0]) == len(view.edges)
    assert [r["name"] for r in model["regions"]] == ["ste"]
    assert {c["name"] for c in model["calls"]} == {"ste", "<lambda>"}
    strings = model["strings"]
    sign = next(i for i, op in enumerate(model["nodes"][3]) if strings[op] == "Sign")
    kind, *_, type_, line, scope, region, origin, _, _ = (c[sign] for c in model["nodes"])
    assert kind == 0
    assert model["types"][type_] == ["f32[N,4]", -1]
    assert model["lines"][line][1] == "s = gg.sign(x * w)"
    assert strings[scope] == "body/"
    assert region == 0
    assert origin == -1
    region = model["regions"][0]
    assert model["lines"][region["rule"]][1] == "def ste(site, dy):"
    assert len(region["inputs"]) == 2


def test_a_title_is_found_or_given():
    shown = marked()
    assert "<title>marked</title>" in to_html(shown)
    assert "<title>x &lt; y</title>" in to_html(shown, title="x < y")
    with gg.Graph():
        assert "<title>graphgrad</title>" in to_html(gg.placeholder((), name="x"))


def test_an_empty_graph_has_a_page():
    with gg.Graph() as g:
        model = model_in(to_html(g))
    assert model["frames"][0]["nodes"] == []


def test_diff_has_both_pictures():
    shown = marked()
    model = model_in(to_html(shown, diff=plain(shown)))
    assert [f["title"] for f in model["frames"]] == ["before", "after"]
    assert model["compare"] is True
    before, after = (dict(zip(f["nodes"], keys(f), strict=True)) for f in model["frames"])
    forward = {n for n in before if model["nodes"][10][n] == -1}
    assert all(before[n] == after[n] for n in forward)
    assert set(before.values()) != set(after.values())


def keys(frame):
    return frame["key"] or frame["nodes"]


def test_passes_are_steps():
    shown = marked()
    x = shown[0].graph.tensor("x")
    steps = []
    gg.compile([x], shown, watch=lambda *step: steps.append(step))
    model = model_in(to_html(shown, passes=steps))
    assert [f["title"] for f in model["frames"]] == ["as built", *(name for name, _ in steps)]
    assert model["compare"] is False
    first, last = model["frames"][0], model["frames"][-1]
    assert len(last["nodes"]) < len(first["nodes"])
    assert set(keys(last)) & set(keys(first))


def test_panes_are_pictures_by_their_titles():
    shown = marked()
    model = model_in(to_html({"plain": plain(shown), "both <b>": shown}, panes=True))
    assert [f["title"] for f in model["frames"]] == ["plain", "both <b>"]
    assert (model["title"], model["panes"], model["compare"]) == ("marked", True, True)
    assert model["bypass"]["of"] == 1
    compared = model_in(to_html(shown, diff=plain(shown)))
    assert compared["panes"] is False
    for frame, other in zip(model["frames"], compared["frames"], strict=True):
        assert (frame["nodes"], keys(frame)) == (other["nodes"], keys(other))


def test_panes_take_two_pictures():
    shown = marked()
    with pytest.raises(TypeError, match=r"panes=True shows \{title: what to show\}.*got \[<"):
        to_html(shown, panes=True)
    for few in ({"one": shown}, {}):
        with pytest.raises(ValueError, match=f"two pictures or more, got {len(few)}"):
            to_html(few, panes=True)
    with pytest.raises(ValueError, match="two pictures or more, got 1"):
        to_html(shown, passes=[], panes=True)
    assert model_in(to_html(shown, diff=plain(shown), panes=True))["panes"] is True


def test_overlays_take_tensors_and_nodes_and_what_json_has_no_number_for():
    shown = marked()
    loss = shown[0]
    numbers = {loss: 2.5, loss.node.inputs[0].node: np.float32(3), shown[1]: np.inf}
    model = model_in(to_html(shown, overlays={"norm": numbers, "n <b>": {loss: np.nan}}))
    norm, other = model["overlays"]
    assert norm["rows"][1:] == [[0, -1, 0], [2.5, 3.0, "inf"]]
    assert other == {"name": "n <b>", "rows": [[model_keys(model, loss)], [0], ["nan"]]}


def model_keys(model, tensor):
    frame = model["frames"][0]
    place = [n.index for n in view_of(tensor).nodes].index(tensor.node.index)
    return keys(frame)[place]


def test_what_cannot_be_shown_is_refused():
    shown = marked()
    loss = shown[0]
    with pytest.raises(ValueError, match="pass one of them"):
        to_html(shown, diff=shown, passes=[])
    with pytest.raises(TypeError, match="pairs of a name and a program"):
        to_html(shown, passes=[("cse", shown)])
    with pytest.raises(TypeError, match="dict of tensor or node"):
        to_html(shown, overlays={"a": [1]})
    with pytest.raises(TypeError, match=r"got the key 3"):
        to_html(shown, overlays={"a": {3: 1}})
    with pytest.raises(
        ValueError, match=r"none of which is a tensor or node that is shown.*'nowhere'"
    ):
        to_html(shown, overlays={"a": {"nowhere": 1}})
    with pytest.raises(TypeError, match=r"one real number per node, got 'x' for ReduceSum"):
        to_html(shown, overlays={"a": {loss: "x"}})
    with pytest.raises(TypeError, match="one real number"):
        to_html(shown, overlays={"a": {loss: [1.0, 2.0]}})
    with gg.Graph():
        far = gg.placeholder((), name="elsewhere")
    with pytest.raises(ValueError, match="none is of a node that is shown"):
        to_html(shown, overlays={"a": {far: 1}})
    with pytest.raises(TypeError, match="can be shown"):
        to_html(3)


def test_size():
    small, large = (len(to_html(chain(n)).encode()) for n in (25, 2500))
    assert small < 1_520_000
    assert (large - small) / 10_000 < 110, "bytes a node"
