"""The sliders of the gallery, by keyboard."""

from pathlib import Path

import pytest

from .chromium import PROGRAM

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium on the PATH"),
]
DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = """<!doctype html><html lang="en" data-state="ready"><title>A rule</title>
{container}<script src="{script}" defer></script></html>"""


def test_keys_move_a_slider_and_the_curve_follows(browser, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    from building.gallery import both_curves
    from building.shown import SHOWN
    from building.sliders import written

    container = written("triangle", SHOWN["triangle"], both_curves)[2]
    script = (DOCS / "_static" / "sliders.js").as_uri()
    path = tmp_path / "page.html"
    path.write_text(PAGE.format(container=container, script=script))
    browser.open(path)
    browser.until("document.querySelectorAll('.sliders input').length === 2")
    said = "[...document.querySelectorAll('.sliders output')].map((o) => o.textContent)"
    drawn = "document.querySelector('.sliders .slope').getAttribute('d')"
    assert browser.do(said) == ["1", "1"]
    seen = [browser.do(drawn)]
    for i, wanted in enumerate((["1.41", "1"], ["1", "1.41"])):
        browser.do(f"document.querySelectorAll('.sliders input')[{i}].focus()")
        browser.key("ArrowRight")
        assert browser.do(said) == wanted
        seen.append(browser.do(drawn))
        slider = f"document.querySelectorAll('.sliders input')[{i}]"
        assert browser.do(f"{slider}.getAttribute('aria-valuetext')") == "1.41"
        assert browser.do(f"{slider}.labels[0].textContent").startswith(("width", "height")[i])
    assert len(set(seen)) == 3
    assert "height 1.41" in browser.do("document.querySelector('.sliders svg').ariaLabel")
    assert browser.complaints() == []
