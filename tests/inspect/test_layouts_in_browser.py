"""Layouts of the page in a browser: boxes hold what is in them, and do not cross."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

import graphgrad as gg
from graphgrad.inspect.scene.view import view_of
from graphgrad.inspect.write.html import write_html

from .chromium import PROGRAM
from .pages import marked, plain
from .random_nets import guided_cnn, random_net, two_gradients
from .seeing import inner_region, nested

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium on the PATH"),
]

LAYOUT = """(() => {
  const bounds = (e) => {
    const { left, top, right, bottom } = e.getBoundingClientRect();
    return [left, top, right, bottom];
  };
  const boxes = [...document.querySelectorAll("#picture .box")];
  const shapes = [...document.querySelectorAll("#picture .item[id]")];
  return {
    boxes: boxes.map((e) => [e.getAttribute("class"), bounds(e.querySelector("rect"))]),
    items: shapes.map((e) => [e.ariaLabel, bounds(e.querySelector(".shape"))]),
  };
})()"""
MARGIN = 3.0
CONTRASTS = """(() => {
  const ctx = document.createElement("canvas").getContext("2d");
  const channels = (colour) => {
    ctx.fillStyle = "#000";
    ctx.fillStyle = colour;
    ctx.fillRect(0, 0, 1, 1);
    return [...ctx.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => v / 255);
  };
  const light = (colour) => {
    const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = channels(colour).map(linear);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return [...document.querySelectorAll("#picture .item[id] text:not(.sign)")].map((text) => {
    const shape = text.closest(".item").querySelector(".shape");
    const [a, b] = [getComputedStyle(text).fill, getComputedStyle(shape).fill].map(light);
    return [text.closest(".item").ariaLabel, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
  });
})()"""


PAIRS = {
    "layers": two_gradients,
    "cnn": guided_cnn,
    **{f"net{seed}": lambda seed=seed: random_net(seed) for seed in (7, 9, 24)},
}


def shared(a, b):
    """How far two rectangles reach into each other, in both directions."""
    return min(min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1]))


def within(a, b):
    left, top, right, bottom = (y - x for x, y in zip(a, b, strict=True))
    return left <= MARGIN and top <= MARGIN and right >= -MARGIN and bottom >= -MARGIN


def crossing(layout):
    """Items and boxes that are partly in a box, and items that lie on each other."""
    boxes, items = layout["boxes"], layout["items"]
    found = [
        (a, b)
        for (a, x), (b, y) in combinations(boxes, 2)
        if shared(x, y) > MARGIN and not within(x, y) and not within(y, x)
    ]
    found += [
        (a, b) for a, x in items for b, y in boxes if shared(x, y) > MARGIN and not within(x, y)
    ]
    return found + [(a, b) for (a, x), (b, y) in combinations(items, 2) if shared(x, y) > MARGIN]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize(
    "way", ["added", *(pytest.param(w, marks=pytest.mark.slow) for w in ("removed", "alone"))]
)
def test_everything_stands_in_its_box_and_no_boxes_cross(browser, tmp_path, name, way):
    shown, other = PAIRS[name]()
    options = {} if way == "alone" else {"diff": other}
    if way == "removed":
        shown, options = other, {"diff": shown}
    write_html(tmp_path / "page.html", shown, **options)
    browser.open(tmp_path / "page.html")
    layout = browser.do(LAYOUT)
    assert len(layout["items"]) > 8
    assert crossing(layout) == []
    (forward,) = (r for kind, r in layout["boxes"] if "column column0" in kind)
    (backward,) = (r for kind, r in layout["boxes"] if "column column1" in kind)
    assert forward[2] < backward[0]


def test_each_item_stands_in_the_box_that_it_belongs_to(browser, tmp_path):
    shown, other = two_gradients()
    write_html(tmp_path / "page.html", shown, diff=other)
    browser.open(tmp_path / "page.html")
    layout = browser.do(LAYOUT)
    (rule, *_) = (r for kind, r in layout["boxes"] if kind.startswith("box rule"))
    call = view_of(shown).calls[0]
    built = [n.name for n in view_of(shown).nodes if n.origin is call and n.inputs]
    assert built
    at = dict(layout["items"])
    for name in built:
        (found,) = (r for label, r in at.items() if label.startswith(f"{name},"))
        assert within(found, rule), json.dumps([name, found, rule])


def classes(browser, selector):
    """The classes of each of these in the drawing."""
    chosen = json.dumps(f"#picture :is({selector})")
    found = browser.do(f"[...document.querySelectorAll({chosen})].map((e) => [...e.classList])")
    return [set(names) for names in found]


def shown(browser, path, *args, dark=False, **options):
    write_html(path / "page.html", *args, **options)
    browser.open(path / "page.html", dark=dark)


def test_in_a_comparison_only_what_changed_has_a_colour(browser, tmp_path):
    graph = marked()
    own = {f"own{i}" for i in range(6)} | {"stamped"}
    shown(browser, tmp_path, graph)
    assert all(names & own for names in classes(browser, ".box.region, .box.rule"))
    shown(browser, tmp_path, graph, diff=plain(graph))
    every = classes(browser, ".box, .item[id], .link")
    assert [names for names in every if names & own] == []
    assert all("ownless" in names for names in classes(browser, ".box.region, .box.rule"))
    assert all(
        names & {"same", "added", "removed", "changed"} for names in classes(browser, ".item[id]")
    )


def test_what_enters_and_leaves_a_marked_op_is_coloured(browser, tmp_path):
    shown(browser, tmp_path, marked())
    titles = browser.do(
        "[...document.querySelectorAll('#picture .link.data.stamped > title')]"
        ".map((e) => e.textContent)"
    )
    assert len(titles) == 1  # what enters it leaves a region, and is coloured for that
    assert titles[0].startswith("head/Exp")


def test_a_saved_value_that_enters_a_region_of_a_rule_is_coloured(browser, tmp_path):
    y, dx = inner_region()
    shown(browser, tmp_path, [y, dx])
    (names,) = classes(browser, ".link.saved")
    assert "crossing" in names
    stroke = "getComputedStyle(document.querySelector('#picture {} .line')).stroke"
    line = browser.do(stroke.format(".link.saved"))
    assert line == browser.do(stroke.format(".link.output"))


FOLDED = """[...document.querySelectorAll("#picture .item.folded")].map((e) => {
  const { e: x, f: y } = e.transform.baseVal[0].matrix;
  const sheets = [...e.querySelectorAll("rect")].map((rect) => rect.getBBox());
  const right = Math.max(...sheets.map((r) => r.x + r.width));
  return [x, y, x + right, y + Math.max(...sheets.map((r) => r.y + r.height))];
})"""
TIPS = """[...document.querySelectorAll("#picture .link .tip")].map((e) =>
  e.getAttribute("d").split(/[MLZ]/)[2].split(" ").map(Number))"""


def test_arrows_end_where_a_collapsed_box_ends(browser, tmp_path):
    shown(browser, tmp_path, two_gradients()[0])
    for title in ("layer0/", "layer1/"):
        name = json.dumps(f'.heads .fold[aria-label="Collapse {title}"]')
        browser.do(  # of the forward part, and with it of the gradients
            f"document.querySelector({name})"
            ".dispatchEvent(new MouseEvent('click', { bubbles: true }))"
        )
        browser.settled()
    folded, tips = browser.do(FOLDED), browser.do(TIPS)
    assert len(folded) == 4
    assert len(tips) > 5
    for left, top, right, bottom in folded:
        assert not [t for t in tips if left + 1 < t[0] < right - 1 and top + 1 < t[1] < bottom - 1]


@pytest.mark.parametrize("dark", [False, True])
def test_all_words_on_nodes_can_be_read(browser, tmp_path, dark):
    for graph in (marked(), nested(), two_gradients()[0]):
        shown(browser, tmp_path, graph, dark=dark)
        pale = [(name, round(ratio, 2)) for name, ratio in browser.do(CONTRASTS) if ratio < 4.5]
        assert pale == []


def test_zero_is_off_a_logarithmic_scale_and_in_its_legend(browser, tmp_path):
    graph = marked()
    ops = [n for n in graph[0].graph.nodes if n.inputs]
    numbers = {n: 10.0**i for i, n in enumerate(ops)} | {ops[0]: 0.0}
    shown(browser, tmp_path, graph, overlays={"norm": numbers})
    browser.do(
        "(() => { const s = document.getElementById('overlay'); s.selectedIndex ="
        " [...s.options].findIndex((o) => o.textContent === 'norm');"
        " s.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )
    browser.settled()
    assert browser.do("document.querySelector('#scale .zero-note').textContent") == "zero"
    fill = browser.do(
        "[...document.querySelectorAll('#picture .item.valued')]"
        f".find((e) => e.ariaLabel.startsWith('{ops[0].name},')).style.getPropertyValue('--fill')"
    )
    assert fill == gg.Overlay(numbers).colour(0.0)
