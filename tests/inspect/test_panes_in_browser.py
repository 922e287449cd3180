"""Two pictures side by side, kept in step. Run with `pytest -m browser`; needs Chromium."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

import graphgrad as gg

from .chromium import PROGRAM
from .pages import marked, plain
from .seeing import parsed
from .test_saving_in_browser import saved, words

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium on the PATH"),
]

LEFT, RIGHT = "#other-picture", "#picture"
TOP = "document.getElementById('picture').getBoundingClientRect()"


def orders():
    """log(1 + exp(x)) in a scope: what its first and its second derivative are of."""
    with gg.Graph("orders"):
        x = gg.placeholder((3,), name="x")
        with gg.name_scope("body"):
            y = gg.sum(gg.log(1.0 + gg.exp(x)))
        (dx,) = gg.gradients(y, [x])
        (ddx,) = gg.gradients(gg.sum(dx), [x])
    return {"order 1": [y, dx], "order 2": [y, dx, ddx]}


def overrides():
    shown = marked()
    return {"default": plain(shown), "override": shown}


def item(pane, name):
    return f'{pane} .item[aria-label^="{name},"]'


def texts(page, selector):
    return page.do(
        f"[...document.querySelectorAll({json.dumps(selector)})].map((e) => e.textContent)"
    )


def count(page, selector):
    return len(texts(page, selector))


def zoom(page, pane):
    return page.do(f"document.querySelector('{pane} > g').transform.baseVal[1].matrix.a")


def places(page, name):
    """Where a node stands in both panes, from their upper left corners."""
    found = []
    for pane in (LEFT, RIGHT):
        left, top = page.do(
            f"(({{ left, top }}) => [left, top])"
            f"(document.querySelector('{pane}').getBoundingClientRect())"
        )
        x, y = page.middle(item(pane, name))
        found.append((x - left, y - top))
    return found


def drag(page, start, by):
    (x, y), (dx, dy) = start, by
    page.mouse("mousePressed", x, y, button="left", clickCount=1)
    for part in (0.5, 1.0):
        page.mouse("mouseMoved", x + part * dx, y + part * dy, button="left")
    page.mouse("mouseReleased", x + dx, y + dy, button="left", clickCount=1)


def test_what_only_one_has_is_told_apart(opened):
    page = opened(overrides(), panes=True)
    assert texts(page, ".caption b") == ["default", "override"]
    assert texts(page, ".caption .change") == ["+ 2 only here", "+ 14 only here"]
    for pane, nodes in ((LEFT, 2), (RIGHT, 14)):
        labels = page.do(
            f"[...document.querySelectorAll('{pane} .only:has(.sign)')].map((e) => e.ariaLabel)"
        )
        assert len({label.partition(",")[0] for label in labels}) == nodes
        assert all("only here" in label for label in labels)
    assert count(page, "#changes *") == 0
    assert count(page, f"{RIGHT} .own0") == 0
    page.do("document.getElementById('compare').click()")
    page.settled()
    assert count(page, ".picture .item.only") == 0
    assert count(page, f"{RIGHT} .own0") > 0  # regions have their colours again
    page.key("p")
    page.settled()
    assert page.do("document.getElementById('other').hidden")
    assert page.do("document.getElementById('step-name').textContent") == "2 of 2: override"


def test_both_move_and_zoom_in_step(opened):
    page = opened(orders(), panes=True)
    assert zoom(page, LEFT) == zoom(page, RIGHT)
    left, right = places(page, "body/Add_3")
    assert abs(left[0] - right[0]) < 60  # the same things begin in the same places
    for name in ("gradients/Full_6", "gradients/Divide_9"):
        middle = page.middle(LEFT)
        start = page.middle(item(LEFT, name))
        drag(page, start, (middle[0] - start[0], middle[1] - start[1]))
        for place in places(page, name):
            assert place[0] == pytest.approx(middle[0], abs=30)
            assert place[1] == pytest.approx(middle[1] - page.do(f"{TOP}.top"), abs=30)
    scale = zoom(page, LEFT)
    page.mouse("mouseWheel", *page.middle(item(RIGHT, "body/Add_3")), deltaX=0, deltaY=-240)
    page.until(f"document.querySelector('{RIGHT} > g').transform.baseVal[1].matrix.a > {scale}")
    assert zoom(page, LEFT) == pytest.approx(zoom(page, RIGHT))
    page.key("0")
    assert zoom(page, LEFT) == pytest.approx(zoom(page, RIGHT))


def test_both_fold_and_choose_in_step(opened):
    page = opened(orders(), panes=True)
    page.click(item(LEFT, "body/Exp_1"))
    assert [count(page, f"{pane} .item.selected") for pane in (LEFT, RIGHT)] == [1, 1]
    assert texts(page, ".pane.active .caption b") == ["order 1"]
    page.do(
        "document.querySelector('#other [data-fold][aria-label=\"Collapse body/\"]')"
        ".dispatchEvent(new MouseEvent('click', { bubbles: true }))"
    )
    page.settled()
    for pane in (LEFT, RIGHT):
        assert count(page, item(pane, "body/")) == 2  # beside its gradient
    page.key("Enter", "\r")
    page.settled()
    assert all(count(page, item(pane, "body/Exp_1")) for pane in (LEFT, RIGHT))
    page.do("document.getElementById('query').focus()")
    page.type("op:multiply")
    assert texts(page, "#found") == ["5 matches"]  # what both have is found once
    page.click(item(RIGHT, "gradients/ExpandDims_13"))
    assert "only here" in texts(page, "#panel .kind")[0]
    assert count(page, f"{LEFT} .item.selected") == 0
    page.key("o")
    assert page.do("document.activeElement.id") == "other-picture"
    assert texts(page, "#panel h2") == ["Overview: order 1"]
    page.key("ArrowDown")  # nothing is chosen here: it moves
    page.click(item(RIGHT, "gradients/Divide_9"))
    page.key("g")
    assert texts(page, "#panel h2") == ["body/Log_4"]
    assert [count(page, f"{pane} .item.selected") for pane in (LEFT, RIGHT)] == [1, 1]


def test_passes_stand_beside_each_other(opened):
    with gg.Graph("passes"):
        x = gg.placeholder((3,), name="x")
        y = gg.exp(x * 1.0) + gg.exp(x * 1.0)
    steps = []
    gg.compile(x, y, watch=lambda *step: steps.append(step))
    page = opened(y, passes=steps, panes=True)
    titles = ["as built", *(name for name, _ in steps)]
    assert texts(page, ".caption b") == titles[:2]
    assert page.do("document.getElementById('step-back').disabled")
    page.key("]")
    page.settled()
    assert texts(page, ".caption b") == titles[1:3]
    for _ in range(2):
        page.key("p")
        page.settled()
    assert texts(page, ".caption b") == titles[1:3]


def test_a_phone_has_them_above_each_other_and_a_file_beside(opened):
    page = opened(orders(), panes=True, width=390, height=844, dark=True)
    tops = [
        page.do(f"document.querySelector('{pane}').getBoundingClientRect().top")
        for pane in (LEFT, RIGHT)
    ]
    assert tops[0] + 200 < tops[1]
    assert page.do("document.documentElement.scrollWidth") == 390
    picture = ElementTree.fromstring(saved(page, "svg")[1])
    assert {"order 1", "order 2", "Exp_1", "ExpandDims_13"} <= words(picture)
    assert len(picture.findall("{http://www.w3.org/2000/svg}svg")) == 2
    text = saved(page, "dot")[1].decode()
    first, second = (f"digraph{part}" for part in text.split("digraph")[1:])
    assert "ExpandDims_13" not in first
    assert parsed(first)
    assert parsed(second)
