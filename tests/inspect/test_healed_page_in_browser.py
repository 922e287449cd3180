"""The page about what heal rewrote. Run with `pytest -m browser`; needs Chromium."""

from __future__ import annotations

import pytest

import graphgrad as gg

from .chromium import PROGRAM

pytest.importorskip("mpmath")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium on the PATH"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("healed") / "healed.html"
    with gg.Graph():
        x, y = gg.placeholder(("N",), name="x"), gg.placeholder(("N",), name="y")
        v = gg.placeholder((3,), name="v")
        naive = [gg.log(1 + gg.exp(3 * x)), gg.sqrt(gg.sum(v * v)), gg.log(gg.exp(x) - gg.exp(y))]
        gg.heal(naive).write_html(path)
    return path


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_fits_and_asks_for_nothing(browser, page, width, dark):
    browser.open(page, width, 900, dark)
    assert browser.complaints() == []
    assert browser.requests() == []
    assert browser.do("document.documentElement.scrollWidth") <= width
    assert browser.do("document.querySelectorAll('article').length") == 3
    charts = browser.do(
        "[...document.querySelectorAll('.chart')].map(c => c.getBoundingClientRect().width)"
    )
    assert len(charts) == 2 * (1 + 1 + 2)
    assert min(charts) > 300
    paper = browser.do("getComputedStyle(document.querySelector('article')).backgroundColor")
    assert paper == ("rgb(23, 27, 34)" if dark else "rgb(255, 255, 255)")


def test_a_row_of_the_contents_leads_to_its_formula(browser, page):
    browser.open(page, 1280, 900)
    browser.click("nav tr:nth-child(2) a")
    assert browser.do("location.hash") == "#site1"
    assert abs(browser.do("document.querySelector('#site1').getBoundingClientRect().top")) < 60


def test_labels_of_an_axis_do_not_touch(browser, page):
    browser.open(page, 390, 900)
    gaps = browser.do(
        "[...document.querySelectorAll('.chart')].flatMap(c => {"
        " const boxes = [...c.querySelectorAll('.number')].map(t => t.getBoundingClientRect())"
        ".sort((a, b) => a.left - b.left);"
        " return boxes.slice(1).map((b, i) => b.left - boxes[i].right); })"
    )
    assert min(gaps) > 0
