"""Sites of tensors in pictures: a dashed group of nodes, and the words on them."""

import re

import graphgrad as gg

from .pages import model_in


def handed_on(site, *dys):
    return list(dys)


def marked():
    w, b = gg.variable(2.0, name="w"), gg.variable(3.0, name="b")
    y = gg.sin(w * b)
    (site,) = y.graph.mark(gg.select.variables(), handed_on, together=True)
    return site, [y, *gg.gradients(y, [w, b])]


def test_S46_dot_draws_them_dashed_in_one_colour():
    site, shown = marked()
    text = gg.to_dot(shown)
    rows = [line for line in text.splitlines() if 'tensors \\"handed_on\\" #0' in line]
    assert len(rows) == 2
    assert all('style="rounded,filled,dashed"' in row for row in rows)
    assert len({re.findall(r' color="(#\w+)"', row)[-1] for row in rows}) == 1
    assert "dashed node: in a site of tensors" in text
    plain = gg.sin(gg.variable(1.0))
    assert "dashed node" not in gg.to_dot(plain)
    assert 'tensors \\"handed_on\\" #0' in gg.to_dot(site)


def test_S46_text_and_pages_say_it():
    _, shown = marked()
    assert gg.graph_text(shown).count('tensors "handed_on" #0') == 2
    model = model_in(gg.to_html(shown))
    said = [model["strings"][place] for place in model["nodes"][12] if place >= 0]
    assert said == ['"handed_on" #0'] * 2


def test_S46_a_comparison_sees_that_they_are_marked():
    _, shown = marked()
    copy = shown[0].graph.copy()
    copy.unmark(gg.select.rule("handed_on"))
    assert "tensors 'handed_on'" in str(gg.graph_diff(shown[0].graph, copy))
