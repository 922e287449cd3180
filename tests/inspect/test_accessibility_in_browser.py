"""The page, judged by axe-core. `npm pack axe-core`, and say where its axe.min.js is: AXE_CORE=."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from .chromium import PROGRAM
from .pages import marked, plain
from .seeing import nested
from .zoo import training_step

AXE = Path(os.environ.get("AXE_CORE", ""))

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium on the PATH"),
    pytest.mark.skipif(not AXE.is_file(), reason="AXE_CORE names no axe.min.js of axe-core"),
]

JUDGE = """axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, nodes: all }) => [id, all.map((n) => n.html + n.failureSummary)]))"""


def findings(page):
    page.do(AXE.read_text(encoding="utf-8") + "; 1")
    return page.do(JUDGE)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("size", [{}, {"width": 390, "height": 844}], ids=["desktop", "phone"])
def test_nothing_is_in_the_way_of_anybody(opened, size, dark):
    shown = marked()
    pages = {
        "overview": lambda: opened(training_step(), dark=dark, **size),
        "nested": lambda: opened(nested(), dark=dark, **size),
        "panes": lambda: opened(
            {"plain": plain(shown), "override": shown}, panes=True, dark=dark, **size
        ),
        "diff": lambda: opened(shown, diff=plain(shown), dark=dark, **size),
    }
    for make in pages.values():
        assert findings(make()) == []


def test_the_panel_and_the_menu_are_open_to_all(opened):
    page = opened(marked())
    page.click('#picture .item[aria-label^="body/Sign"]')
    page.click("#options-button")
    assert findings(page) == []
    page.do("document.querySelector('#panel button.link[class=link]').click()")
    page.do("document.querySelectorAll('#panel details').forEach((d) => { d.open = true; })")
    assert findings(page) == []
