"""What leaves the page: pictures, DOT, prints, and links to nodes."""

from __future__ import annotations

import base64
import json
import struct
from xml.etree import ElementTree

import pytest

import graphgrad as gg

from .chromium import PROGRAM
from .pages import hostile, marked
from .seeing import boxes, labels, nested, parsed
from .zoo import lstm, training_step

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(PROGRAM is None, reason="no chromium on the PATH"),
]

SVG = "{http://www.w3.org/2000/svg}"
CATCH = """(() => {
  window.blobs = [];
  window.names = [];
  const made = URL.createObjectURL;
  URL.createObjectURL = (blob) => { blobs.push(blob); return made.call(URL, blob); };
  HTMLAnchorElement.prototype.click = function () { names.push(this.download); };
})()"""


def saved(page, kind, seen=False):
    """The name and the bytes of what a button saves."""
    page.do(CATCH)
    page.do(f"document.getElementById('save-seen').checked = {json.dumps(seen)}")
    page.do(f"document.getElementById('save-{kind}').click()")
    page.until("names.length === 1")
    data = page.do(
        "blobs.at(-1).arrayBuffer().then((b) => {"
        " let s = ''; for (const c of new Uint8Array(b)) s += String.fromCharCode(c);"
        " return btoa(s); })"
    )
    return page.do("names[0]"), base64.b64decode(data)


def words(picture):
    return {"".join(e.itertext()) for e in picture.iter(f"{SVG}text")}


def test_the_picture_is_saved_as_svg_with_its_colours(opened):
    page = opened(nested())
    name, text = saved(page, "svg")
    picture = ElementTree.fromstring(text)
    assert name == "graph.svg"
    drawn = page.do(
        "[...document.querySelectorAll('#picture .item text, #picture .title')]"
        ".map((e) => e.textContent)"
    )
    assert set(drawn) <= words(picture)
    assert b"var(" not in text
    assert b"class=" not in text
    fills = {e.get("fill") for e in picture.iter(f"{SVG}rect")}
    assert len(fills) > 4
    width, height = (float(picture.get(k)) for k in ("width", "height"))
    x, y, w, h = map(float, picture.get("viewBox").split())
    assert (w, h) == (width, height)
    assert (x, y) == (-12, -12)
    assert width > 900


def test_only_what_is_seen_is_saved_where_that_is_wanted(opened):
    page = opened(nested())
    _, whole = saved(page, "svg")
    _, part = saved(page, "svg", seen=True)
    stage = page.do(
        "(() => { const r = document.getElementById('picture').getBoundingClientRect();"
        " const k = document.getElementById('world').transform.baseVal[1].matrix.a;"
        " return [r.width / k, r.height / k]; })()"
    )
    found = ElementTree.fromstring(part)
    assert [float(found.get(k)) for k in ("width", "height")] == pytest.approx(stage, abs=0.1)
    assert found.get("viewBox") != ElementTree.fromstring(whole).get("viewBox")


def test_a_png_is_twice_as_fine_and_not_empty(opened):
    page = opened(marked())
    _, text = saved(page, "svg")
    name, png = saved(page, "png")
    assert name == "marked.png"
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    size = struct.unpack(">II", png[16:24])
    picture = ElementTree.fromstring(text)
    assert size == tuple(round(2 * float(picture.get(k))) for k in ("width", "height"))
    assert len(png) > 30_000


def test_dot_says_what_is_drawn(opened):
    page = opened(lstm(20))
    name, text = saved(page, "dot")
    assert name == "lstm.gv"
    graph = parsed(text.decode())
    drawn = page.do("document.querySelectorAll('#picture .item[id]').length")
    assert len(labels(graph)) == drawn
    assert {"forward", "backward", "step0/"} <= {*boxes(graph)}
    lines = page.do("document.querySelectorAll('#picture .link').length")
    assert len(graph.get_edges()) == lines


def test_hostile_names_are_saved_as_text(opened):
    page = opened(hostile())
    _, text = saved(page, "svg")
    assert not [e for e in ElementTree.fromstring(text).iter() if e.tag.endswith("script")]
    name, text = saved(page, "dot")
    assert parsed(text.decode()) is not None
    assert "/" not in name
    assert "<" not in name


def test_a_print_is_one_page_with_all_of_the_graph(opened):
    page = opened(training_step())
    page.do("document.getElementById('picture').focus()")
    found = page.call("Page.printToPDF", printBackground=True)
    pdf = base64.b64decode(found["data"])
    assert (
        pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type /Page/") == 1
    )
    page.call("Emulation.setEmulatedMedia", media="print")
    page.do("dispatchEvent(new Event('beforeprint'))")
    shown = page.do(
        "['#bar button', '#panel', '#zoom', '#map', '#finder', '.fold'].filter((s) =>"
        " [...document.querySelectorAll(s)].some((e) => e.getBoundingClientRect().width))"
    )
    assert shown == []
    assert page.do(
        "(() => { const room = document.getElementById('picture').getBoundingClientRect();"
        " return [...document.querySelectorAll('#picture .item')].every((e) => {"
        "  const r = e.getBoundingClientRect();"
        "  return r.left >= room.left - 1 && r.right <= room.right + 1"
        "   && r.top >= room.top - 1 && r.bottom <= room.bottom + 1; }); })()"
    )
    page.do("dispatchEvent(new Event('afterprint'))")
    page.call("Emulation.setEmulatedMedia", media="")
    assert page.do("document.getElementById('picture').getAttribute('viewBox')") is None


def test_the_address_names_the_chosen_node(opened, tmp_path):
    page = opened(lstm(20))
    page.do(
        "document.querySelector('#picture .item[aria-label^=\"W,\"]')"
        ".dispatchEvent(new MouseEvent('click', { bubbles: true }))"
    )
    assert page.do("location.hash") == "#W"
    page.call("Page.navigate", url="about:blank")
    page.call("Page.navigate", url=f"{(tmp_path / 'page.html').as_uri()}#step7%2FMultiply_139")
    page.until("document.documentElement?.dataset.state === 'ready'")
    label = "document.querySelector('#picture .item.selected')?.ariaLabel"
    assert page.do(label).startswith("step7/Multiply_139")
    page.do("location.hash = '#step9/Multiply_173'")
    page.until(f"{label}?.startsWith('step9/')")
    page.key("Escape")
    assert page.do("location.hash") == ""


def test_an_address_without_such_a_node_opens_as_ever(opened, tmp_path):
    with gg.Graph():
        y = gg.exp(gg.placeholder((), name="x"))
    page = opened(y)
    page.call("Page.navigate", url=f"{(tmp_path / 'page.html').as_uri()}#nowhere%20%25")
    page.until("document.documentElement?.dataset.state === 'ready'")
    assert page.do("document.querySelectorAll('#picture .item.selected').length") == 0
