"""The page in a browser, end to end. Run with `pytest -m browser`; needs Chromium."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.inspect.scene.view import view_of

from .chromium import PROGRAM
from .pages import HOSTILE, chain, hostile, marked, plain, ste
from .seeing import choice
from .zoo import lstm

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium on the PATH"),
]


def count(browser, selector):
    """How many of these are in the drawing."""
    return browser.do(f"document.querySelectorAll({json.dumps('#picture ' + selector)}).length")


def texts(browser, selector):
    return browser.do(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)"
    )


def labelled(text):
    """A selector of the item whose description begins so."""
    return f'#picture .item[aria-label^="{text}"]'


def search(browser, words):
    browser.do("document.activeElement.blur(); document.getElementById('query').value = ''")
    browser.key("/")
    assert browser.do("document.activeElement.id") == "query"
    browser.type(words)


def test_the_graph_is_drawn_with_regions_and_rules(opened):
    shown = marked()
    page = opened(shown)
    assert texts(page, ".heads .region .title")[0].startswith('override "ste" #0 (pages.py:')
    assert len(texts(page, ".heads .rule .title")) == 2
    assert texts(page, ".heads .column .title") == ["forward", "backward"]
    assert count(page, ".item.input") == 1
    assert count(page, ".item.variable") == 1
    assert any("f32[N,4]" in label for label in texts(page, ".word text"))
    forward, backward = (
        page.do(f"document.querySelector('.box.column{i} rect').getBoundingClientRect().left")
        for i in (0, 1)
    )
    assert forward < backward


def test_a_node_and_its_gradient_stand_side_by_side(opened):
    shown = marked()
    page = opened(shown)
    pairs = view_of(shown).pairs
    assert pairs
    for forward, beside in pairs.items():
        (x, y), (gx, gy) = (page.middle(labelled(f"{n.name},")) for n in (forward, beside[0]))
        assert abs(y - gy) < 2
        assert x < gx


def test_search_by_name_op_region_and_rule(opened):
    page = opened(marked())
    for words, found in (
        ("Sign", "1 match"),
        ("op:sign", "1 match"),
        ("region:ste", "2 matches"),
        ("name:nowhere", "0 matches"),
    ):
        search(page, words)
        assert texts(page, "#found") == [found], words
    search(page, "rule:ste")
    assert count(page, ".item.hit") > 2
    search(page, "region:ste")
    for place in ("1 of 2", "2 of 2", "1 of 2"):
        page.key("Enter", "\r")
        assert texts(page, "#found") == [place]
    assert "body/" in texts(page, "#panel h2")[0]
    assert count(page, ".item.selected") == 1
    page.key("n")
    assert texts(page, "#found") == ["2 of 2"], "after Enter the keys are those of the picture"
    page.key("/")
    page.key("Escape")
    assert texts(page, "#found") == [""]
    assert page.do("document.getElementById('query').value") == ""


def test_hovering_lights_up_node_gradients_and_rule(opened):
    page = opened(marked())
    page.mouse("mouseMoved", *page.middle(labelled("body/Sign")))
    lit = page.do("[...document.querySelectorAll('#picture .item.lit')].map((e) => e.ariaLabel)")
    assert any(label.startswith("body/Sign") for label in lit)
    assert sum(label.startswith("gradients/") for label in lit) >= 3
    assert len(lit) < count(page, ".item[id]")
    page.mouse("mouseMoved", 4, 450)
    assert count(page, ".item.lit") == 0


def test_the_panel_says_everything_and_links_lead_on(opened):
    page = opened(marked())
    page.click(labelled("body/Sign"))
    (panel,) = texts(page, "#panel")
    for words in (
        "f32[N,4]",
        "s = gg.sign(x * w)",
        "body/",
        'override "ste" #0',
        "def ste(",
        "Reads",
    ):
        assert words in panel
    page.do("document.querySelector('#panel ul button').click()")
    page.until("document.querySelector('#panel h2').textContent.startsWith('body/Multiply')")
    page.key("Escape")
    assert texts(page, "#panel h2") == ["Overview"]


def test_boxes_collapse_and_expand(opened):
    page = opened(marked())
    before = count(page, ".item[id]")
    page.click(".heads .region .fold")
    page.until("document.querySelectorAll('#picture .item.folded.region').length === 1")
    page.settled()
    assert count(page, ".item[id]") < before
    page.click(".item.folded.region", count=2)
    page.until("document.querySelectorAll('#picture .item.folded').length === 0")
    page.settled()
    assert count(page, ".item[id]") == before


def test_switches(opened):
    shown = marked()
    page = opened(shown)
    bypassed = len(view_of(shown, bypassed=True).bypassed)
    saved = count(page, ".link.saved")
    assert saved > 0
    page.do("document.activeElement.blur()")
    for key, selector, now in (
        ("s", ".link.saved", 0),
        ("d", ".item.column1", 0),
        ("d", ".box.rule", 2),
        ("s", ".link.saved", saved),
        ("b", ".item.ghost .strike", bypassed),
    ):
        page.key(key)
        page.until(f"document.querySelectorAll('#picture {selector}').length === {now}")
        page.settled()


def test_the_keyboard_leads_from_node_to_node(opened):
    page = opened(marked())
    page.do("document.getElementById('picture').focus()")
    page.key("Enter", "\r")
    first = page.do("document.querySelector('#picture .item.selected').ariaLabel")
    page.key("ArrowDown")
    second = page.do("document.querySelector('#picture .item.selected').ariaLabel")
    assert first != second
    selected = page.do("document.querySelector('#picture .item.selected').id")
    assert (
        page.do("document.getElementById('picture').getAttribute('aria-activedescendant')")
        == selected
    )
    assert texts(page, "#said") == [second]


def test_zoom_and_pan(opened):
    page = opened(marked())
    world = "document.getElementById('world').getAttribute('transform')"
    seen = {page.do(world)}
    page.click("#zoom-in")
    seen.add(page.do(world))
    page.mouse("mouseWheel", 400, 400, deltaX=0, deltaY=120)
    page.until(f"!{json.dumps(sorted(seen))}.includes({world})")
    seen.add(page.do(world))
    page.mouse("mousePressed", 30, 500, button="left", clickCount=1)
    page.mouse("mouseMoved", 90, 540, button="left", buttons=1)
    page.mouse("mouseReleased", 90, 540, button="left", clickCount=1)
    seen.add(page.do(world))
    assert len(seen) == 4


def test_a_diff_marks_by_colour_sign_and_dash(opened):
    shown = marked()
    page = opened(shown, diff=plain(shown))
    assert texts(page, "#step-name") == ["2 of 2: after"]
    added, removed = (count(page, f".item.{status}") for status in ("added", "removed"))
    assert added > 0
    assert texts(page, "#picture .item.added .sign") == ["+"] * added
    assert removed == len(texts(page, "#picture .item.removed .sign"))
    assert texts(page, "#changes .added")[0].startswith("+ ")
    page.do("document.getElementById('compare').click()")
    page.settled()
    assert count(page, ".item.added") == 0


def test_passes_are_steps_of_a_slider(opened):
    shown = marked()
    steps = []
    gg.compile([shown[0].graph.tensor("x")], shown, watch=lambda *step: steps.append(step))
    page = opened(shown, passes=steps)
    first = texts(page, "#count")
    for _ in steps:
        page.click("#step-on")
        page.settled()
    assert texts(page, "#step-name") == [f"{len(steps) + 1} of {len(steps) + 1}: {steps[-1][0]}"]
    assert texts(page, "#count") != first
    assert page.do("document.getElementById('step-on').disabled")


def test_an_overlay_colours_with_a_scale(opened):
    shown = marked()
    nodes = shown[0].graph.nodes
    numbers = {n: float(i) for i, n in enumerate(nodes)} | {shown[0].node: np.nan}
    page = opened(shown, overlays={"seconds": numbers})
    page.do(
        "(() => { const o = document.getElementById('overlay'); o.value = '0';"
        " o.dispatchEvent(new Event('change')); })()"
    )
    page.until("document.querySelectorAll('#picture .item.valued').length > 10")
    page.settled()
    assert "seconds" in texts(page, "#scale b")[0]
    assert count(page, ".item.odd") == 1
    assert texts(page, ".odd-note") == ["1 node with NaN or infinity"]
    fills = page.do(
        "new Set([...document.querySelectorAll('.valued .shape')]"
        ".map((e) => getComputedStyle(e).fill)).size"
    )
    assert fills > 5


def test_hostile_words_run_nothing_and_stay_visible(opened):
    page = opened(hostile())
    assert page.do("document.title") == HOSTILE[1]
    assert page.do("document.querySelectorAll('svg script, aside script, img').length") == 0
    for words in HOSTILE[:4]:
        search(page, words.splitlines()[0])
        assert texts(page, "#found") != ["0 matches"], words
        page.key("Enter", "\r")
        page.settled()
    search(page, "n" * 1000)
    page.key("Enter", "\r")
    page.settled()
    assert page.do("document.body.scrollWidth <= innerWidth")
    assert page.do("document.title") == HOSTILE[1]


def test_dark_by_the_system_and_by_the_switch(opened):
    ground = "getComputedStyle(document.body).backgroundColor"
    page = opened(marked())
    light = page.do(ground)
    page.do(
        "(() => { const t = document.getElementById('theme'); t.value = 'dark';"
        " t.dispatchEvent(new Event('change')); })()"
    )
    dark = page.do(ground)
    assert dark != light
    page = opened(marked(), dark=True)
    assert page.do(ground) == dark


def test_a_phone_has_room_for_the_graph_and_a_sheet_for_details(opened):
    page = opened(marked(), width=390, height=844)
    assert page.do("document.documentElement.scrollWidth") == 390
    assert page.do("document.getElementById('picture').getBoundingClientRect().height") > 500
    page.click(labelled("body/Sign"))
    page.until("document.getElementById('panel').getBoundingClientRect().height > 200")


def test_large_graphs_open_collapsed_and_search_opens_boxes(opened):
    page = opened(chain(2500))
    assert 2 <= count(page, ".item.folded") < 20
    assert count(page, ".item[id]") < 100
    search(page, "part30/Tanh_1501")
    page.key("Enter", "\r")
    page.until("document.querySelector('#picture .item.selected')?.ariaLabel.includes('Tanh_1501')")


def test_what_failed_is_ringed_chosen_and_said(opened):
    shown = marked()
    x = shown[0].graph.tensor("x")
    with pytest.raises(gg.ShapeError) as caught, shown[0].graph:
        gg.add(x, np.ones((3, 5), np.float32))
    page = opened(shown[0].graph, failed=caught.value)
    assert count(page, ".item.failed .ring") == 1
    assert "FAILED" in texts(page, "#picture .item.failed text")
    assert texts(page, "#failure")[0].startswith("Failed: ShapeError: ")
    assert count(page, ".item.failed.selected") == 1
    page = opened(shown, failed=shown[0].graph.nodes[4])
    page.click("#options-button")
    page.click("#shut-all")
    page.settled()
    assert texts(page, "#picture .item.failed text").count("FAILED inside") == 1


def test_a_collapsed_box_says_what_changed_in_it_and_the_largest_number(opened):
    shown = marked()
    nodes = shown[0].graph.nodes
    page = opened(shown, diff=plain(shown), overlays={"place": {n: n.index for n in nodes}})
    page.do(
        "document.getElementById('overlay').value = '0';"
        "document.getElementById('overlay').dispatchEvent(new Event('change'))"
    )
    page.settled()
    page.click(".heads .rule .fold")
    page.until("document.querySelectorAll('#picture .item.folded').length === 1")
    page.settled()
    assert count(page, ".item.folded.added .badge") == 1
    assert count(page, ".item.folded.valued") == 1
    label = page.do("document.querySelector('#picture .item.folded').ariaLabel")
    assert label.endswith(", added")


def layers(count):
    """Layers in scopes, each with a weight, and the gradients of all weights."""
    with gg.Graph("layers"):
        h = gg.placeholder(("N", 4), name="x")
        weights = []
        for i in range(count):
            with gg.name_scope(f"layer{i}"):
                weights.append(gg.variable(np.ones((4, 4)), name="w"))
                h = gg.tanh(h @ weights[-1])
        loss = gg.sum(h)
        return [loss, *gg.gradients(loss, weights)]


def test_boxes_stand_below_each_other_beside_their_mirror_images(opened):
    page = opened(layers(5))
    boxes = page.do(
        "[...document.querySelectorAll('#picture .boxes .scope')].map((e) => {"
        " const r = e.firstChild.getBoundingClientRect();"
        " return [e.classList.contains('column1'), r.left, r.right, r.top, r.bottom]; })"
    )
    forward = [box[1:] for box in boxes if not box[0]]
    backward = [box[1:] for box in boxes if box[0]]
    assert len(forward) == len(backward) == 5
    for side in (forward, backward):
        ordered = sorted(side, key=lambda box: box[2])
        for above, below in pairwise(ordered):
            assert above[3] <= below[2]
            assert max(above[0], below[0]) < min(above[1], below[1])
    assert max(box[1] for box in forward) < min(box[0] for box in backward)


def test_a_graph_of_very_many_scopes_opens(opened):
    page = opened(layers(3000))
    assert 3 < count(page, ".item[id]") < 300
    assert count(page, ".item.folded.part") == 2
    search(page, "layer2345/Tanh")
    page.key("Enter", "\r")
    page.until("document.querySelector('#picture .item.selected')?.ariaLabel.includes('layer2345')")


def test_bodies_of_control_flow_are_boxes(opened):
    page = opened(choice())
    titles = texts(page, ".heads .body .title")
    assert {"then of Cond_4", "else of Cond_4", "then of Cond_9"} <= set(titles)
    assert texts(page, "#picture .item.input text").count("x") > 1


def test_a_comparison_keeps_the_columns_and_boxes_in_place(opened):
    with gg.Graph("signs"):
        h = gg.placeholder(("N", 4), name="x")
        weights = []
        for i in range(3):
            weights.append(gg.variable(np.ones((4, 4)), name=f"w{i}"))
            with gg.override_gradient(ste):
                binary = gg.sign(weights[-1])
            h = gg.tanh(h @ binary)
        loss = gg.sum(h)
        override = gg.gradients(loss, weights)
        true = gg.gradients(loss, weights, overrides="none")
    for before, after in ((true, override), (override, true)):
        page = opened([loss, *after], diff=[loss, *before])
        forward, backward = (
            page.do(f"document.querySelector('.box.column{i} rect').getBoundingClientRect().{end}")
            for i, end in ((0, "right"), (1, "left"))
        )
        assert forward < backward
        assert count(page, ".box.rule") == 3


def test_two_calls_of_one_rule_are_two_boxes(opened):
    def no_slope(site, dy):
        return [2.0 * gg.ones_like(dy)]

    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(no_slope):
            y = gg.exp(x)
        twice = [gg.gradients(gg.sum(y * k), x) for k in (y, x)]
        again = gg.gradients(gg.sum(twice[0] * y), x)
    shown = [*twice, again]
    page = opened(shown)
    titles = texts(page, ".heads .rule .title")
    assert len(titles) == 3
    assert len(set(titles)) == 1
    assert texts(page, ".heads .column .title")[-1] == "backward, order 2"
    assert "3 spliced" in texts(page, "#count")[0]


def test_a_comparison_counts_what_there_is(opened):
    shown = marked()
    counts = texts(opened(shown), "#count")
    page = opened(shown, diff=plain(shown))
    assert texts(page, "#count") == [f"after: {counts[0]}"]
    assert count(page, ".item.removed") > 0


def test_operands_are_numbered_where_their_order_matters(opened):
    with gg.Graph():
        x = gg.placeholder((), name="x")
        y = (1.0 - x * x) / x
    page = opened(y)
    assert sorted(texts(page, ".word text.type")) == [
        "arg 0 f64[]",
        "arg 1 f64[]",
        "arg 1 f64[]",
        "x2 f64[]",
    ]
    assert "arg 0 = 1.0" in texts(page, "#picture .item text")


def test_boundaries_have_types_in_large_graphs_others_when_zoomed_in(opened):
    with gg.Graph():
        x = y = gg.placeholder((3,), name="x")
        for i in range(120):
            with gg.override_gradient(ste) if i % 40 == 0 else gg.name_scope("plain"):
                y = gg.tanh(y)
        shown = [y, gg.gradients(y, x)]
    page = opened(shown)
    page.click("#options-button")
    page.click("#open-all")
    page.until("document.querySelectorAll('#picture .item[id]').length > 300")
    page.settled()
    page.key("Escape")
    seen = "[...document.querySelectorAll('#picture {}')].filter((e) =>"
    seen += " getComputedStyle(e).opacity !== '0' && getComputedStyle(e).display !== 'none').length"
    crossing = count(page, ".link.crossing")
    assert crossing > 9
    assert page.do(seen.format(".word.crossing text.type")) == crossing
    page.do("[1, 2, 3, 4, 5].forEach(() => document.getElementById('zoom-in').click())")
    assert page.do(seen.format(".word.fine text.type")) > 300
    page.do("document.getElementById('zoom-fit').click()")
    assert page.do(seen.format(".word.fine text.type")) == 0


FOLDED = "[...document.querySelectorAll('#picture .item.folded')].map((e) => e.ariaLabel)"


def expand(page, title):
    """Open the first collapsed box of a title."""
    page.do(
        "[...document.querySelectorAll('#picture .item.folded')]"
        f".find((e) => e.ariaLabel.startsWith({json.dumps(title)}))"
        ".dispatchEvent(new MouseEvent('dblclick', { bubbles: true }))"
    )
    page.settled()


def test_a_box_opens_with_its_gradient_and_of_repeats_one_at_a_time(opened):
    page = opened(lstm(20))
    assert [label.split(",")[0] for label in page.do(FOLDED)] == ["step1 ... step19"] * 2
    expand(page, "step1 ...")
    assert sum(label.startswith("step") for label in page.do(FOLDED)) == 2 * 19
    for opened_one in ("step7/", "step3/"):
        expand(page, opened_one)
        left = [label.split(",")[0] for label in page.do(FOLDED)]
        assert opened_one not in left
        assert left.count("step5/") == 2
        assert len(left) == 2 * 18
    page.click(".heads .column1 .fold")
    page.settled()
    assert texts(page, ".heads .column0.column .title") == ["forward"]


def test_expanding_all_of_a_great_graph_says_what_stays_shut(opened):
    page = opened(layers(600))
    page.do("document.getElementById('open-all').click()")
    page.until("document.getElementById('note').textContent.includes('stay collapsed')")


def test_lines_between_boxes_count_tensors_not_readers(opened):
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.name_scope("a"):
            y = gg.exp(x)
        with gg.name_scope("b"):
            z = gg.sin(y) + gg.cos(y)
    page = opened(z)
    for _ in "ab":
        page.click(".heads .scope .fold")
        page.settled()
    assert texts(page, ".word text.type") == ["f64[3]", "f64[3]"]


def test_the_time_line_leads_to_each_pass(opened):
    shown = marked()
    steps = []
    gg.compile([shown[0].graph.tensor("x")], shown, watch=lambda *step: steps.append(step))
    page = opened(shown, passes=steps)
    labels = page.do("[...document.querySelectorAll('#line button')].map((e) => e.ariaLabel)")
    assert [label.split(":")[0] for label in labels] == ["as built", *(name for name, _ in steps)]
    at = next(i for i, label in enumerate(labels) if "\u2212" in label)
    page.do(f"document.querySelectorAll('#line button')[{at}].click()")
    page.settled()
    assert texts(page, "#step-name")[0].endswith(steps[at - 1][0])
    current = page.do("document.querySelector('#line [aria-current=step]').ariaLabel")
    assert current == labels[at]


def test_the_panel_says_the_line_the_words_and_the_code_of_a_rule(opened):
    page = opened(marked())
    page.click('#picture .item[aria-label^="gradients/Where"]')
    (panel,) = texts(page, "#panel")
    assert "line of the rulepages.py:" in panel
    assert "gg.where(gg.abs(x) <= 1.0, dy, 0.0)" in panel
    assert "z = x where the condition holds, else y" in panel  # what the op computes
    page.do(
        "document.querySelector('.heads .region .title').dispatchEvent("
        "new MouseEvent('click', { bubbles: true }))"
    )
    (code,) = texts(page, "#panel details.code code")
    assert code.startswith("def ste(site, dy):\n    return tuple(")
    assert "\\n" not in code
    (formula,) = texts(page, "#panel details.built code")
    assert " = where(abs(x) <= 1.0, dy, 0.0)\n" in formula
    page.do("document.querySelector('#panel details.built').open = true")
    (condition, *_) = page.do(
        "[...document.querySelectorAll('#panel math')].map((math) => [math.ariaLabel,"
        " math.querySelector('mtd + mtd').getBoundingClientRect().width])"
    )
    assert condition[0] == formula.splitlines()[0]
    assert condition[1] > 30  # drawn as mathematics
