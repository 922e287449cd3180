"""Details of the page in a browser: first views, default gradients, the panel, labels, phones."""

from __future__ import annotations

import io

import numpy as np
import pytest
from rich.console import Console

import graphgrad as gg
from graphgrad.demo import command, report
from graphgrad.demo.training import Settings
from graphgrad.inspect.scene.view import view_of

from .chromium import PROGRAM
from .pages import chain, hostile, marked, plain
from .seeing import nested, ste

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium on the PATH"),
]

SHORT = Settings(hidden=8, epochs=1, starts=2)
PHONE = {"width": 390, "height": 844}


def texts(browser, selector):
    return browser.do(
        f"[...document.querySelectorAll({selector!r})].map((e) => e.textContent)",
    )


def rects(browser, selector):
    """[left, top, right, bottom] of each."""
    return browser.do(
        f"[...document.querySelectorAll({selector!r})].filter((e) => getComputedStyle(e).opacity"
        " !== '0').map((e) => { const r = e.getBoundingClientRect();"
        " return [r.left, r.top, r.right, r.bottom]; })"
    )


def scale(browser):
    return browser.do("document.getElementById('world').transform.baseVal[1].matrix.a")


def layers():
    """A network of signs in scopes, and the gradients of its weights."""
    with gg.Graph("layers"):
        h = gg.placeholder(("batch", 4), name="x")
        weights = []
        for i in range(3):
            with gg.name_scope(f"layer{i}"):
                weights.append(gg.variable(np.ones((4, 4)), name="w"))
                h = h @ weights[-1]
                with gg.override_gradient(ste):
                    h = gg.sign(h)
        loss = gg.mean(h**2)
        return [loss, *gg.gradients(loss, weights)]


# --- the first view ---------------------------------------------------------------------------


def test_what_does_not_fit_opens_at_its_top_and_can_be_read(opened):
    page = opened(layers())
    assert 0.8 <= scale(page) <= 1
    stage, top = rects(page, "#stage, .boxes > :first-child")
    assert stage[1] < top[1] < stage[1] + 220
    assert rects(page, "#map")
    whole, seen = rects(page, "#map, #map .seen")
    assert seen[3] - seen[1] < 0.8 * (whole[3] - whole[1])


def test_a_phone_opens_with_the_forward_part(opened):
    page = opened(nested(), **PHONE)
    assert scale(page) >= 0.8
    (forward,) = rects(page, ".boxes .column0")[:1]
    assert forward[0] >= 0
    assert forward[2] <= 390
    assert forward[1] > 0
    page.click("#zoom-fit")
    assert scale(page) < 0.8
    assert not rects(page, "#map")[0][2]


def test_the_small_map_leads_to_what_it_shows(opened):
    page = opened(layers())
    ((left, top, right, bottom),) = rects(page, "#map")
    before = rects(page, ".item[id]")
    for kind in ("mousePressed", "mouseReleased"):
        page.mouse(kind, (left + right) / 2, bottom - 4, button="left", clickCount=1)
    after = rects(page, ".item[id]")
    assert all(b[1] < a[1] - 200 for a, b in zip(before, after, strict=True))
    assert bottom > top


def test_everything_to_point_at_has_24_pixels(opened):
    for size in ({}, PHONE):
        page = opened(layers(), **size)
        page.click("#options-button")
        for selector in ("button", "select", "#query", "#options label", "#steps input", ".reach"):
            for left, top, right, bottom in rects(page, selector):
                if right > left:
                    assert min(right - left, bottom - top) >= 23.9, selector


def test_the_menu_lies_over_all_else_on_a_phone(opened):
    page = opened(layers(), **PHONE)
    page.click("#options-button")
    for label in ("saved", "bypassed", "derived", "types"):
        x, y = page.middle(f"#{label}")
        assert page.do(f"document.elementFromPoint({x}, {y}).id") == label
    assert all(left >= 0 and right <= 390 for left, _, right, _ in rects(page, "#options"))


def test_on_a_phone_the_chosen_node_stays_in_sight(opened):
    page = opened(layers(), **PHONE)
    item = '#picture .item[aria-label^="layer0/Sign"]'
    page.click(item)
    page.until("document.getElementById('panel').getBoundingClientRect().height > 200")
    (chosen,), (panel,) = rects(page, item), rects(page, "#panel")
    assert chosen[3] < panel[1]


# --- default gradients ------------------------------------------------------------------------


@pytest.mark.parametrize("make", [marked, layers, nested])
def test_b_shows_the_real_default_gradients(opened, make):
    shown = make()
    view = view_of(shown, bypassed=True)
    titles = {box.title for column in view.columns for box in column.within()}
    page = opened(shown)
    count = texts(page, "#count")
    items = len(texts(page, "#picture .item[id]"))
    page.key("b")
    page.until("document.querySelectorAll('#picture .item.ghost').length > 0")
    page.settled()
    wanted = {title for title in titles if title.startswith("default gradient of")}
    assert set(texts(page, "#picture .heads .bypass > .title")) == wanted
    found = texts(page, "#picture .item.ghost text:first-of-type")
    ops = {n.type for n in view.bypassed if n.inputs}
    assert {text.split("_")[0] for text in found if "_" in text} >= ops
    assert ("dy" in found) == any(n.type == "Placeholder" for n in view.bypassed)
    assert texts(page, "#count") == count
    page.key("b")
    page.until("document.querySelectorAll('#picture .item.ghost').length === 0")
    page.settled()
    assert len(texts(page, "#picture .item[id]")) == items


def test_a_default_gradient_reads_the_forward_part_and_says_what_it_is(opened):
    page = opened(layers())
    page.key("b")
    page.until("document.querySelectorAll('#picture .item.ghost').length > 0")
    page.settled()
    page.do(
        "document.querySelector('#picture .item.ghost[aria-label*=ZerosLike]')"
        ".dispatchEvent(new MouseEvent('click', { bubbles: true }))"
    )
    (panel,) = texts(page, "#panel")
    assert "default gradient, not used" in panel
    assert "derivative of layer2/MatMul" in panel
    assert "layer2/MatMul" in texts(page, "#panel ul button")[0]


def test_where_there_are_none_the_switch_says_why(opened):
    page = opened(plain(marked()))
    assert page.do("document.getElementById('bypassed').disabled")
    page.key("b")
    assert texts(page, "#note") == ["No rule was used: nothing is bypassed."]


def test_a_comparison_does_not_count_default_gradients(opened):
    shown = layers()
    page = opened(shown, diff=[shown[0]])
    before = texts(page, "#changes")
    page.key("b")
    page.until("document.querySelectorAll('#picture .item.ghost').length > 0")
    page.settled()
    assert texts(page, "#changes") == before
    assert page.do("document.querySelectorAll('#picture .item.ghost.added').length") == 0
    page.click("#step-back")
    page.settled()
    assert page.do("document.getElementById('bypassed').disabled")


# --- the panel --------------------------------------------------------------------------------


def test_a_node_in_a_region_leads_to_what_its_rule_built(opened):
    shown = layers()
    page = opened(shown)
    page.click('#picture .item[aria-label^="layer0/Sign"]')
    assert 'Gradient by "ste"' in texts(page, "#panel h3")
    page.do("[...document.querySelectorAll('#panel ul:last-child button')].at(-1).click()")
    page.until("document.querySelector('#panel h2').textContent.startsWith('gradients/Where')")


def test_the_panel_names_the_pass_that_made_a_node(opened):
    with gg.Graph("powers"):
        x = gg.placeholder((3,), name="x")
        y = gg.sum(x**2)
    passes = gg.PassRecord()
    gg.compile(x, y, watch=passes)
    page = opened(y, passes=passes.programs)
    page.do("document.getElementById('step').value = '99'")
    page.do("document.getElementById('step').dispatchEvent(new Event('input'))")
    page.settled()
    item = '#picture .item[aria-label^="Square"]'
    assert "by simplify" in texts(page, f"{item} text")
    page.click(item)
    (panel,) = texts(page, "#panel")
    assert 'the pass "simplify"' in panel
    assert "built by the user" not in panel


def test_what_failed_to_build_says_where(opened):
    shown = marked()
    x = shown[0].graph.tensor("x")
    with pytest.raises(gg.ShapeError) as caught, shown[0].graph:
        gg.add(x, np.ones((3, 5), np.float32))  # this line
    page = opened(shown[0].graph, failed=caught.value)
    (panel,) = texts(page, "#panel")
    assert "gg.add(x, np.ones((3, 5), np.float32))  # this line" in panel


def test_long_names_are_cut_until_they_are_asked_for(opened):
    page = opened(hostile())
    page.do("document.getElementById('query').focus()")
    page.type("n" * 100)
    page.key("Enter", "\r")
    page.until("document.querySelector('#panel h2').textContent.startsWith('nnn')")
    assert len(texts(page, "#panel h2")[0]) < 100
    assert texts(page, "#panel summary")[0] == "all 1,001 characters"
    ((_, top, _, bottom),) = rects(page, "#panel h2")
    assert bottom - top < 110


# --- labels, search ---------------------------------------------------------------------------


def test_types_of_saved_values_are_written_and_do_not_touch(opened):
    page = opened(layers())
    labels = rects(page, "#picture .word text")
    saved = [text for text in texts(page, "#picture .word.saved text") if "saved f64" in text]
    assert len(saved) >= 5
    items = rects(page, "#picture .item[id] .shape")
    for i, (left, top, right, bottom) in enumerate(labels):
        for other in [*labels[:i], *items]:
            across = min(right, other[2]) - max(left, other[0])
            down = min(bottom, other[3]) - max(top, other[1])
            assert min(across, down) < 4


def test_search_finds_the_gradients_drawn_in_the_box_of_a_scope(opened):
    page = opened(layers())
    page.do("document.getElementById('query').focus()")
    page.type("layer1")
    hits = page.do("[...document.querySelectorAll('#picture .item.hit')].map((e) => e.ariaLabel)")
    assert any(hit.startswith("layer1/") for hit in hits)
    assert sum(hit.startswith("gradients/") for hit in hits) >= 3
    inside = rects(page, "#picture .boxes .scope")
    for left, top, right, bottom in rects(page, "#picture .item.hit"):
        assert any(
            a - 5 <= left and b - 5 <= top and right <= c + 5 and bottom <= d + 5
            for a, b, c, d in inside
        )


def test_the_search_is_cleared_by_a_button_apart_from_the_count(opened):
    page = opened(layers())
    page.do("document.getElementById('query').focus()")
    page.type("layer1")
    (count,), (clear,) = rects(page, "#found"), rects(page, "#clear")
    assert count[2] <= clear[0]
    page.click("#clear")
    assert page.do("document.getElementById('query').value") == ""
    assert page.do("document.querySelectorAll('#picture .item.hit').length") == 0
    assert not rects(page, "#clear")[0][2]


def test_long_numbers_are_cut_in_the_picture_alone(opened):
    with gg.Graph("third"):
        x = gg.placeholder((3,), name="x")
        y = x * (1 / 3)
    page = opened(y)
    assert "with 0.3333\u2026" in texts(page, "#picture .item.op text")
    page.do("document.getElementById('query').focus()")
    page.type("constant")
    page.key("Enter", "\r")
    page.until("document.querySelector('#picture .item.selected')?.ariaLabel.startsWith('Mul')")
    assert "0.33333333" in texts(page, "#panel")[0]


def test_times_of_a_collapsed_box_add_up(opened):
    shown = layers()
    ops = [n for n in shown[0].graph.nodes if n.inputs]
    page = opened(shown, overlays={"us": gg.Overlay(dict.fromkeys(ops, 2.0), combine="sum")})
    page.do("document.getElementById('overlay').value = '0'")
    page.do("document.getElementById('overlay').dispatchEvent(new Event('change'))")
    page.settled()
    page.do(
        "document.querySelector('#picture .heads .rule .fold')"
        ".dispatchEvent(new MouseEvent('click', { bubbles: true }))"
    )
    page.until("document.querySelectorAll('#picture .item.folded').length === 2")
    page.settled()
    assert texts(page, "#picture .item.folded.rule text")[-1] == "6"


def test_two_thousand_nodes_open_at_once(opened):
    page = opened(chain(660))
    page.do("document.getElementById('open-all').click()")
    page.until("document.querySelectorAll('#picture .item[id]').length > 1900")
    page.settled()
    assert page.do("document.querySelectorAll('#map path').length") == 2


# --- the report of the demo -------------------------------------------------------------------


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """The report of a short demo."""
    folder = tmp_path_factory.mktemp("report")
    console = Console(file=io.StringIO())
    report.write(folder, command.experiments(SHORT, 0, True, console))
    return folder / "index.html"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1440])
def test_the_report_fits_and_follows_the_scheme(browser, reported, width, dark):
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        width=width,
        height=900,
        deviceScaleFactor=1,
        mobile=width < 700,
    )
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.call("Emulation.setEmulatedMedia", features=[scheme])
    browser.events.clear()
    browser.call("Page.navigate", url=reported.as_uri())
    browser.until("document.readyState === 'complete' && document.images.length === 3")
    assert browser.do("document.documentElement.scrollWidth <= innerWidth")
    boxes = "[...document.querySelectorAll('section > table, section > pre, img')]"
    beyond = "e.scrollWidth > e.clientWidth + 1 || right(e) > right(e.closest('section')) - 16"
    assert (
        browser.do(
            "(() => { const right = (e) => e.getBoundingClientRect().right;"
            f" return {boxes}.filter((e) => {beyond}).map((e) => e.outerHTML.slice(0, 80)); }})()"
        )
        == []
    )
    channels = browser.do("getComputedStyle(document.body).backgroundColor.match(/\\d+/g)")
    assert (int(channels[0]) < 60) == dark
    links = rects(browser, "a, summary")
    assert all(bottom - top >= 23.9 for _, top, _, bottom in links)
    assert browser.complaints() == []


def test_the_panel_says_which_rewrite_rule_made_a_node(opened):
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        y = gg.exp(x**2)
    passes = gg.PassRecord()
    f = gg.compile(x, y, watch=passes)
    page = opened(f, made_by=passes.made_by, rules=passes.rules)
    page.click('#picture .item[aria-label*="Square"]')
    (panel,) = texts(page, "#panel")
    assert 'the pass "simplify"' in panel
    assert "power_as_square (stable.py:" in panel


def test_the_overview_lists_few_of_many_and_the_others_on_request(opened):
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        ys = [gg.exp(x) for _ in range(230)]
    page = opened(ys)
    assert len(texts(page, "#panel h3")) == 3
    assert len(texts(page, "#panel ul button.link")) == 6
    assert texts(page, "#panel .rest > summary") == ["224 more"]
    page.click("#panel .rest > summary")
    page.until("document.querySelectorAll('#panel .rest li').length > 0")
    rest = texts(page, "#panel .rest li")
    assert rest[0].startswith("6: ")
    assert rest[-1] == "and 24 more"
    assert len(rest) == 201


def test_on_a_tablet_the_picture_has_all_the_room_until_something_is_chosen(opened):
    page = opened(layers(), width=820, height=1180)
    width = "document.getElementById('stage').getBoundingClientRect().width"
    assert page.do(width) == 820
    page.click("#picture .item.variable")
    assert page.do(width) < 600
    ((left, _, right, _),) = rects(page, "#picture .item.selected .shape")
    assert 0 <= left < right <= page.do(width)


def test_a_wide_picture_opens_where_its_first_node_is(opened):
    with gg.Graph():
        x = gg.placeholder((3,), name="first")
        ends = [gg.identity(x, name=f"one_of_eight_readers_{i}") for i in range(8)]
    page = opened(ends, **PHONE)
    assert page.do("document.getElementById('world').getBoundingClientRect().width") > 390
    ((left, top, right, bottom),) = rects(page, '#picture .item[aria-label^="first"]')
    assert left >= 0
    assert right <= 390
    assert top >= 0
    assert bottom <= 844


def test_a_search_finds_what_is_called_so_before_what_stands_in_it(opened):
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.name_scope("part"):
            inner = gg.identity(x, name="inner")
        y = gg.identity(gg.identity(inner, name="of_part_two"), name="a_part")
    page = opened(y)
    page.do("document.getElementById('query').focus()")
    page.type("part")
    page.key("Enter", "\r")
    page.settled()
    found = texts(page, "#panel h2")
    for _ in range(2):
        page.key("n")
        page.settled()
        found += texts(page, "#panel h2")
    assert found == ["a_part", "part/inner", "of_part_two"]
