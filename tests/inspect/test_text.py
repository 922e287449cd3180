"""Listings for terminals: each node once, as a tree or in order of building."""

from __future__ import annotations

import io
import re

import pytest

import graphgrad as gg
from graphgrad.inspect.scene.view import view_of

from .seeing import HOSTILE, chain, hostile, log1pexp, marked, network


def rows_of(text):
    """The rows of nodes of a tree: margin, id, the rest."""
    found = []
    for row in text.splitlines():
        match = re.match(r"([FB]\d? ?\S*) +(?:\| )*(n\d+) (.*)", row)
        if match:
            found.append(match.groups())
    return found


def test_a_tree_has_every_node_once():
    _, loss, grads = marked()
    text = gg.graph_text([loss, *grads])
    assert text.startswith("graph: ")
    ids = [name for _, name, _ in rows_of(text)]
    assert len(ids) == len(set(ids))
    view = view_of([loss, *grads])
    assert len(ids) == len([n for n in view.nodes if n.type != "Constant"])
    assert ids[0] == view.id[loss.node]


def test_a_node_read_twice_is_named_by_its_id():
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        y = gg.exp(x)
        z = gg.tanh(y) * y
    text = gg.graph_text(z)
    assert text.count(" = Exp(x)") == 1
    assert "= Multiply(n2, n1)" in text
    assert "= Tanh(n1)" in text


def test_margins_say_where_a_node_stands():
    loss, *grads = network()
    text = gg.graph_text([loss, *grads])
    margins = {margin.strip() for margin, _, _ in rows_of(text)}
    assert {"F", "F #0", "B", "B *#0"} == margins
    assert '  #0: override "ste" #0 (seeing.py:' in text
    assert '  *#0: spliced "ste" for #0 (seeing.py:' in text
    assert "(layer0/MatMul_2) -> (layer0/Sign_3)" in text
    assert "  B: backward" in text
    assert text.splitlines()[-1].startswith("results: ")


def test_a_chain_is_no_staircase():
    y, dx = chain(200)
    text = gg.graph_text([y, dx])
    assert len(max(text.splitlines(), key=len)) < 160
    assert "| | |" not in gg.graph_text(y)


def test_what_depends_on_the_inside_is_said():
    assert "~n1" in gg.graph_text(log1pexp(1))
    assert "~Exp_1" in gg.graph_text(log1pexp(1), style="list")


def test_listing_in_order_of_building():
    _, loss, grads = marked()
    text = gg.graph_text([loss, *grads], style="list")
    rows = text.splitlines()
    assert rows[1] == "forward"
    assert "backward" in rows
    assert '  override "ste" #0 (seeing.py:' in text
    assert ": (x, w) -> (Sign_" in text
    names = [row.strip(" |").partition(":")[0] for row in rows if " = " in row]
    assert len(names) == len(set(names)) == len(view_of([loss, *grads]).nodes)
    assert "grad of Multiply_" in text
    assert rows[-1].startswith("results: ReduceSum_")


def test_overlays_failures_comparisons_and_defaults_are_told():
    g, loss, grads = marked()
    text = gg.graph_text([loss, *grads], overlay={loss: 2.5}, failed=g.nodes[3])
    assert "[2.5]" in text
    assert text.count("<-- FAILED") == 1
    with g:
        plain = gg.gradients(loss, [g.tensor("x:0")], overrides="none")
    compared = gg.graph_text(gg.graph_diff([loss, *plain], [loss, *grads]))
    assert re.search(r"^B.* \+ n\d+ Where", compared, re.MULTILINE)
    assert re.search(r"^B.* - n\d+ ", compared, re.MULTILINE)
    assert "(not used)" in gg.graph_text([loss, *grads], bypassed=True)
    assert "/#0: default gradient of *#0" in gg.graph_text([loss, *grads], bypassed=True).replace(
        "of #0", "of *#0"
    )


def test_print_graph(capsys):
    g = marked()[0]
    gg.print_graph(g)
    assert capsys.readouterr().out == gg.graph_text(g)
    out = io.StringIO()
    gg.print_graph(g, file=out, style="list")
    assert out.getvalue() == gg.graph_text(g, style="list")
    with pytest.raises(ValueError, match="tree"):
        gg.print_graph(g, style="leaf")


@pytest.mark.parametrize("style", ["tree", "list"])
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_words_stay_on_their_row(name, style):
    shown = gg.graph_text(hostile(name), style=style)
    assert all(c.isprintable() for c in shown.replace("\n", ""))
    assert len(shown.splitlines()) == shown.count("\n")
    if len(name) < 40:
        assert gg.base.words.visible(name) in shown


@pytest.mark.parametrize("style", ["tree", "list"])
def test_long_names_make_no_long_rows(style):
    rows = gg.graph_text(hostile("n" * 1000), style=style).splitlines()
    assert max(map(len, rows)) < 240


@pytest.mark.parametrize("style", ["tree", "list"])
def test_rows_are_as_wide_as_they_may_be(style):
    whole = gg.graph_text(network(3), style=style)
    assert max(map(len, whole.splitlines())) > 90
    for width in (40, 80, 120):
        text = gg.graph_text(network(3), style=style, width=width)
        assert max(map(len, text.splitlines())) <= width
        assert text.split() != []
        assert {*whole.split()} - {*text.split()} == set(), "nothing is lost"
    with pytest.raises(ValueError, match="at least 40 columns, got width=30"):
        gg.graph_text(network(), width=30)


def test_what_is_printed_fits_the_terminal_and_a_file_has_whole_rows(monkeypatch):
    out = io.StringIO()
    monkeypatch.delenv("COLUMNS", raising=False)
    gg.print_graph(network(3), out)
    assert out.getvalue() == gg.graph_text(network(3))
    monkeypatch.setenv("COLUMNS", "80")
    narrow = io.StringIO()
    gg.print_graph(network(3), narrow)
    assert narrow.getvalue() == gg.graph_text(network(3), width=80)


def test_slices_and_picks_are_written_as_the_user_writes_them():
    with gg.Graph():
        x, at = gg.placeholder((5, 6, 7), name="x"), gg.placeholder((2,), "int32", name="at")
        ys = [x[1:4:2, None, :, -1], x[:, 0], x[..., ::-1], x[at, 1:]]
    text = gg.graph_text(ys)
    for key in ("[1:4:2, None, :, 6]", "[:, 0]", "[:, :, 6::-1]", "[at, 1:6]"):
        assert f", {key})" in text
