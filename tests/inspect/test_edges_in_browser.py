"""Lines one can trust: none runs under a node, and what crosses a boundary says what it carries."""

from __future__ import annotations

import re

import pytest

from .chromium import PROGRAM
from .pages import chain
from .random_nets import guided_cnn, random_net, two_gradients
from .seeing import choice, log1pexp, nested
from .zoo import LARGE, ZOO, lstm

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium on the PATH"),
]

UNDER = """(() => {
  const rects = [...document.querySelectorAll("#picture .item[id]")].map((e) => {
    const { e: x, f: y } = e.transform.baseVal[0].matrix;
    const b = e.querySelector(".shape").getBBox();
    const [left, top] = [x + b.x + 1, y + b.y + 1];
    const [right, bottom] = [left + b.width - 2, top + b.height - 2];
    return { id: e.id, label: e.ariaLabel, left, top, right, bottom };
  });
  const found = [];
  const at = (p, t) => [0, 1].map((i) => (1 - t) ** 3 * p[0][i] + 3 * (1 - t) ** 2 * t * p[1][i]
    + 3 * (1 - t) * t * t * p[2][i] + t ** 3 * p[3][i]);
  const along = function* (d) {  // points of a path of cubic curves
    const numbers = d.match(/-?[\\d.]+(e-?\\d+)?/g).map(Number);
    const points = [];
    for (let i = 0; i < numbers.length; i += 2) points.push([numbers[i], numbers[i + 1]]);
    for (let k = 0; k + 3 < points.length; k += 3) {
      const piece = points.slice(k, k + 4);
      const far = Math.hypot(piece[3][0] - piece[0][0], piece[3][1] - piece[0][1]);
      const steps = Math.max(6, Math.ceil(far / 3));
      for (let i = 0; i <= steps; i++) yield at(piece, i / steps);
    }
  };
  for (const link of document.querySelectorAll("#picture .link")) {
    const ends = link.dataset.ends.split(" ");
    const line = link.querySelector(".line");
    const hit = new Set();
    for (const [x, y] of along(line.getAttribute("d"))) {
      for (const r of rects) {
        const inside = x > r.left && x < r.right && y > r.top && y < r.bottom;
        if (inside && !ends.includes(r.id)) hit.add(r.label);
      }
    }
    for (const label of hit) found.push([link.querySelector("title").textContent, label]);
  }
  return found;
})()"""
"""Lines that run under nodes which are not their ends."""
UNTYPED = """[...document.querySelectorAll("#picture .link.crossing")].filter((e) => {
  const text = document.querySelector(`.word[data-link="${e.dataset.link}"] text`);
  return !text || !text.textContent || getComputedStyle(text).opacity === "0";
}).map((e) => e.querySelector("title").textContent)"""
CUT = """[...document.querySelectorAll("#picture .item[id]")].filter((e) => {
  const shape = e.querySelector(".shape").getBBox();
  const words = [...e.querySelectorAll("text:not(.sign)")].map((text) => text.getBBox());
  return words.some((w) => w.x < shape.x - 0.5 || w.x + w.width > shape.x + shape.width + 0.5);
}).map((e) => e.ariaLabel)"""
STRAY = """[...document.querySelectorAll("#picture .link:is(.under0, .under1)")].filter((e) => {
  const line = e.querySelector(".line").getBBox();
  const column = e.classList.contains("under0") ? "column0" : "column1";
  const frames = [...document.querySelectorAll(`#picture .box.column.${column} rect`)];
  const around = frames.map((frame) => frame.getBBox()).some((f) => line.x >= f.x - 1
    && line.x + line.width <= f.x + f.width + 1 && line.y >= f.y - 1
    && line.y + line.height <= f.y + f.height + 1);
  return frames.length && !around;
}).map((e) => e.querySelector("title").textContent)"""
"""Lines that leave the column in which both their ends stand."""
STRUCK = """(() => {
  const points = [...document.querySelectorAll("#picture .link")].map((link) => {
    const line = link.querySelector(".line");
    const count = Math.ceil(line.getTotalLength() / 3);
    return [...Array(count + 1).keys()].map((i) => line.getPointAtLength(3 * i));
  });
  return [...document.querySelectorAll("#picture .word text")].map((text) => {
    const b = text.getBBox();
    const inside = (p) => p.x > b.x + 1 && p.x < b.x + b.width - 1
      && p.y > b.y + 2 && p.y < b.y + b.height - 2;
    const own = Number(text.parentNode.dataset.link);
    return points.filter((line, i) => i !== own && line.some(inside)).length;
  });
})()"""
"""How many lines of others run through each type."""
BEYOND = """(() => {
  const { width, height } = document.getElementById("map").viewBox.baseVal;
  return [...document.querySelectorAll("#picture .word text")].filter((text) => {
    const b = text.getBBox();
    return b.x < -1 || b.y < -1 || b.x + b.width > width + 1 || b.y + b.height > height + 1;
  }).map((text) => text.textContent);
})()"""
"""Types that a picture of the whole would cut off."""
LED = "Number(document.documentElement.dataset.led)"

PICTURES = {
    **ZOO,
    "log1pexp": lambda: log1pexp(2),
    "nested": nested,
    "cnn": lambda: guided_cnn()[0],
    "layers": lambda: two_gradients()[0],
    "choice": choice,
}
MORE = {
    **LARGE,
    "chain": lambda: chain(60),
    **{f"net{seed}": lambda seed=seed: random_net(seed)[0] for seed in range(12)},
}


def trusted(page):
    assert page.do(UNDER) == []
    assert page.do(UNTYPED) == []
    assert page.do(CUT) == []
    assert page.do(BEYOND) == []
    return page.do(LED)


def test_no_line_runs_under_a_node_and_boundaries_have_types(opened):
    led, struck = {}, []
    for name, make in PICTURES.items():
        page = opened(make())
        led[name] = trusted(page)
        assert page.do(STRAY) == []
        struck += page.do(STRUCK)
    assert sum(count > 0 for count in led.values()) >= 5, led  # these would have
    assert sum(map(bool, struck)) < 0.07 * len(struck)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=pytest.mark.slow) if re.fullmatch(r"net\d+", n) and n > "net2" else n
        for n in MORE
    ],
)
def test_so_in_large_and_random_graphs(opened, name):
    trusted(opened(MORE[name]()))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["training", "lstm20", "transformer2"])
def test_so_when_all_is_open(opened, name):
    page = opened(ZOO[name]())
    page.do("document.getElementById('open-all').click()")
    page.until("document.querySelectorAll('#picture .item[id]').length > 150")
    page.settled()
    trusted(page)


@pytest.mark.ci
def test_so_where_what_forty_steps_give_is_added_up(opened):
    page = opened(lstm(41))
    page.do(
        "[...document.querySelectorAll('#picture .item.folded')]"
        ".find((e) => e.ariaLabel.startsWith('step1 ... step40'))"
        ".dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))"
    )
    page.until("document.querySelectorAll('#picture .item[id]').length > 100")
    page.settled()
    assert trusted(page) > 20


@pytest.mark.ci
@pytest.mark.parametrize("name", ["layers", "cnn"])
def test_so_in_comparisons(opened, name):
    pair = {"layers": two_gradients, "cnn": guided_cnn}[name]()
    for after, before in (pair, pair[::-1]):
        trusted(opened(after, diff=before))
