"""What the calls of rules built, as formulas in the panel."""

from __future__ import annotations

import numpy as np

import graphgrad as gg
from graphgrad.inspect.formulas import LIMIT, formulas_of
from graphgrad.inspect.html import to_html
from graphgrad.inspect.view import view_of

from .pages import marked, model_in
from .seeing import log1pexp, nested, network


def built(shown):
    """The formulas, in order of the calls' first nodes."""
    return list(formulas_of(view_of(shown)).values())


def under(rule):
    """tanh under a rule, and the gradient."""
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(rule):
            y = gg.tanh(x)
        return [y, gg.gradients(y, x)]


def test_one_input_is_x_and_what_leaves_is_dx():
    (formula,) = built(network())
    assert formula.splitlines()[0] == "dx = where(abs(x) <= 1.0, dy, 0.0)"
    assert "x: layer0/MatMul" in formula.splitlines()[1]


def test_what_there_are_several_of_goes_by_its_name():
    shown = marked()
    first, second = next(f for f in built(shown) if "where" in f).splitlines()[:2]
    names = [line.partition(" = ")[0] for line in (first, second)]
    assert first == f"{names[0]} = where(abs(x) <= 1.0, dy, 0.0)"
    assert second == f"{names[1]} = sum_to_shape(where(abs(w) <= 1.0, dy, 0.0))"
    known = {n.name.rpartition("/")[2] for n in shown[0].graph.nodes}
    assert set(names) <= known


def test_derivatives_of_a_rule_are_no_second_result_of_it():
    assert all(formula.startswith("dx = 2.0 * dy") for formula in built(nested()))
    assert built(log1pexp(2))[0].startswith("dx = dy * (1.0 - 1.0 / (1.0 + ")


def test_a_formula_computes_what_the_graph_does():
    """Read as Python: signs bind as they are written, what is used twice is named."""

    def rule(site, dy):
        (x,), (y,) = site.inputs, site.outputs
        a = dy - (x - y) / (3.0 * x)
        b = (-x) ** 2.0 - (-(x**2.0)) * (2.0 ** (x**2.0))
        negative = -a
        c = (x**2.0) ** x - (dy * x) / (y / x) * -y
        return a * b - c - (a - (b - c)) + gg.where(gg.equal(x < y, x > y), x, -negative)

    shown = under(rule)
    (formula,) = built(shown)
    feeds = np.array([0.5, 1.5, 2.5])
    expected = gg.evaluate(shown[1], {"x": feeds})
    names = {"x": feeds, "y": np.tanh(feeds), "dy": np.ones(3), "where": np.where}
    exec("\n".join(line for line in formula.splitlines() if "=" in line), names)
    np.testing.assert_allclose(names["dx"], expected, rtol=1e-12)
    assert len(formula.splitlines()) > 3


def test_a_rule_that_gives_back_dy_says_so():
    (formula,) = built(under("Identity"))
    assert formula.splitlines()[0] == "dx = dy"


def test_a_letter_is_not_given_to_two_things():
    with gg.Graph():
        v, x = gg.placeholder((3,), name="v"), gg.placeholder((3,), name="x")
        with gg.override_gradient(lambda site, dy: dy * site.inputs[0] * x):
            y = gg.tanh(v)
        shown = [y, gg.gradients(y, v)]
    (formula,) = built(shown)
    assert "* v) * x" in formula or "* v * x" in formula
    assert "dx" not in formula


def test_what_is_long_or_runs_in_a_loop_has_no_formula():
    def long(site, dy):
        for _ in range(LIMIT):
            dy = gg.tanh(dy)
        return dy * 2.0

    assert built(under(long)) == []
    assert built(under(lambda site, dy: gg.scan(lambda c, e: (c + e, c), dy[0], dy)[1])) == []


def test_the_page_has_them():
    model = model_in(to_html(network()))
    (call,) = model["calls"]
    assert model["strings"][call["formula"]].startswith("dx = where(")
