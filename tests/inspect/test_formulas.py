"""What the calls of rules built, as formulas in the panel."""

from __future__ import annotations

import numpy as np

import graphgrad as gg
from graphgrad.inspect.page.formula_math import equation_math
from graphgrad.inspect.page.formula_text import formula_text
from graphgrad.inspect.page.formulas import LIMIT, formulas_of
from graphgrad.inspect.scene.view import view_of
from graphgrad.inspect.write.html import to_html

from .pages import marked, model_in
from .seeing import log1pexp, nested, network


def built(shown):
    """The formulas as text, in order of the calls' first nodes."""
    return list(map(formula_text, formulas_of(view_of(shown)).values()))


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


def tangled(site, dy):
    """A rule in which it matters how tightly signs bind."""
    (x,), (y,) = site.inputs, site.outputs
    a = dy - (x - y) / (3.0 * x)
    b = (-x) ** 2.0 - (-(x**2.0)) * (2.0 ** (x**2.0))
    negative = -a
    c = (x**2.0) ** x - (dy * x) / (y / x) * -y
    return a * b - c - (a - (b - c)) + gg.where(gg.equal(x < y, x > y), x, -negative)


def formed(site, dy):
    """A rule of ops for which mathematics has forms of its own."""
    (x,), (y,) = site.inputs, site.outputs
    d = gg.exp(-(x * 1e-05)) - gg.square(x + y) * -2.5 / gg.sqrt(gg.abs(x - y))
    return dy * d - gg.sum(x * x + y) * -(x + y) + gg.where(x <= 1.0, x, y) * 2.0


FEEDS = np.array([0.5, 1.5, 2.5])


def computed(lines):
    """What lines of Python leave in `dx`."""
    names = {"x": FEEDS, "y": np.tanh(FEEDS), "dy": np.ones(3), "e": np.e, "np": np}
    names |= {name: getattr(np, name) for name in ("where", "exp", "square", "sqrt", "abs")}
    names["sum"] = lambda x, axes: np.sum(x, axis=axes)
    exec("\n".join(lines), names)
    return names["dx"]


def python(element):
    """MathML read as mathematics is: as Python."""
    tag, *parts = element
    if isinstance(parts[0], str):
        signs = {"\u22c5": "*", "\u2212": "-", "\u2061": "", "\u2264": "<=", "=": "=="}
        return signs.get(parts[0], parts[0])
    if tag == "mrow" and parts[0] == ["mo", "{"]:
        (then, when), (otherwise, _) = ([cell[1] for cell in row[1:]] for row in parts[1][1:])
        return f"where({python(when[2])}, {python(then)}, {python(otherwise)})"
    if tag == "mrow" and parts[0] == parts[-1] == ["mo", "|"]:
        return f"abs({' '.join(map(python, parts[1:-1]))})"
    if tag == "mrow" and parts[0][0] == "munder":
        return f"np.sum({' '.join(map(python, parts[1:]))})"
    words = list(map(python, parts))
    if tag == "mrow":
        return " ".join(words)
    forms = {"mfrac": "(({})/({}))", "msup": "({})**({})", "msqrt": "sqrt({})", "msub": "{}_{}"}
    return forms[tag].format(*words)


def test_a_formula_computes_what_the_graph_does():
    """Read as Python: signs bind as they are written, what is used twice is named."""
    for rule in (tangled, formed):
        shown = under(rule)
        (formula,) = formulas_of(view_of(shown)).values()
        expected = gg.evaluate(shown[1], {"x": FEEDS})
        text = [line for line in formula_text(formula).splitlines() if "=" in line]
        drawn = map(equation_math, formula.lines)
        math = [f"{python(name)} = {python(value)}" for _, name, _, value in drawn]
        for lines in (text, math):
            assert len(lines) > (rule is tangled)
            np.testing.assert_allclose(computed(lines), expected, rtol=1e-12)


def test_mathematics_has_its_own_forms():
    (formula,) = formulas_of(view_of(network())).values()
    (_, name, sign, (_, brace, table)) = equation_math(formula.lines[0])
    assert (name, sign, brace) == (["mi", "dx"], ["mo", "="], ["mo", "{"])
    modulus = ["mrow", ["mo", "|"], ["mi", "x"], ["mo", "|"]]
    condition = ["mrow", modulus, ["mo", "\u2264"], ["mn", "1"]]
    assert table == [
        "mtable",
        ["mtr", ["mtd", ["mi", "dy"]], ["mtd", ["mrow", ["mtext", "if\u00a0"], condition]]],
        ["mtr", ["mtd", ["mn", "0"]], ["mtd", ["mtext", "otherwise"]]],
    ]


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
    ((said, line),) = model["math"][str(call["formula"])]
    assert said == "dx = where(abs(x) <= 1.0, dy, 0.0)"
    assert line[:3] == ["mrow", ["mi", "dx"], ["mo", "="]]
