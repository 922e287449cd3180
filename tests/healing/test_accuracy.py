"""Where a formula is right, along one input: digits, intervals, and the page that shows them."""

import math
import re

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.healing.accuracy import Axis, Interval, correct_digits, shown
from graphgrad.healing.algebra import algebra_math
from graphgrad.healing.many_digits import run
from graphgrad.healing.measuring import curves_of, forms_of_identity
from graphgrad.healing.page import formula_html
from graphgrad.healing.table import IDENTITIES

BY_NAME = {i.name: i for i in IDENTITIES}


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_an_axis_is_monotone_and_goes_both_ways(dtype):
    axis = Axis(dtype)
    xs = axis.points()
    places = axis.position(xs)
    assert (np.diff(places) >= 0).all()
    assert (places[0], places[-1]) == (-1.0, 1.0)
    np.testing.assert_allclose(axis.number(places), xs, rtol=1e-9, atol=axis.tiny)


def test_digits_are_counted_against_the_truth():
    axis = Axis("float64")
    truth = np.array([1.0, 1.0, 1.0, 1.0, math.inf, 1e-323, math.nan, 1.0])
    got = np.array([1.0, 1 + 1e-8, 3.0, math.nan, math.inf, 0.0, 1.0, math.inf])
    found = correct_digits(truth, got, axis)
    want = [axis.digits, 8.0, 0.0, 0.0, axis.digits, axis.digits, math.nan, 0.0]
    np.testing.assert_allclose(found, want, atol=1e-6)


def test_intervals_in_words():
    assert str(Interval(-math.inf, 2.0, "the value is NaN")) == "below 2: the value is NaN"
    assert str(Interval(1.0, 1.0, "x")) == "at 1: x"
    assert Interval(-math.inf, math.inf, "x").span == "everywhere"
    assert [shown(v) for v in (709.78271, 1 + 2e-9, 1e-20)] == ["709.8", "1 + 2e-9", "1e-20"]


@pytest.mark.parametrize(
    ("name", "dtype", "wanted"),
    [
        ("log1pexp", "float64", "from 709.8: the value is infinite, the gradient is NaN"),
        ("log1pexp", "float32", "from 88.72: the value is infinite, the gradient is NaN"),
        ("abs", "float64", "e154: the value is infinite, the gradient loses all digits"),
        ("sinc", "float64", "at 0: the value is NaN"),
        ("logsumexp", "float64", "the value is infinite, the gradient is NaN"),
    ],
)
def test_intervals_are_found_by_running_both_forms(name, dtype, wanted):
    pytest.importorskip("mpmath")
    (along, *_) = curves_of(forms_of_identity(BY_NAME[name], dtype))
    assert along.exact
    assert any(wanted in str(interval) for interval in along.curve.intervals)
    known = ~np.isnan(along.curve.after)
    assert (along.curve.after[known] > Axis(dtype).digits - 2).all()


@pytest.mark.parametrize("identity", IDENTITIES, ids=lambda i: i.name)
def test_the_algebra_of_the_table_is_read_as_formulas(identity):
    for text in (identity.written, identity.now):
        element, words = algebra_math(text)
        assert element is not None, text
        assert words == "" or words[0] in " ;,"


def test_what_is_no_formula_stays_text():
    assert formula_html("left <alone>") == "<code>left &lt;alone&gt;</code>"
    assert algebra_math("f(x) +")[0] is None


def test_a_page_for_each_site(tmp_path):
    pytest.importorskip("mpmath")
    x, y = gg.placeholder(("N",), name="x"), gg.placeholder(("N",), name="y")
    with gg.gradient_override_map({"Log": "Identity"}):
        marked = gg.log(1 + gg.exp(y))
    naive = [gg.log(1 + gg.exp(3 * x)), gg.where(x > 0, gg.sqrt(x), 0.0), x * marked]
    healed = gg.heal(naive, at={x: np.array([300.0, 1.0]), y: np.zeros(2)})
    healed.write_html(tmp_path / "healed.html")
    text = (tmp_path / "healed.html").read_text()
    for words in (
        "from 236.6: the value is infinite, the gradient is NaN",
        "gg.log(1 + gg.exp(3 * x))",
        "test_accuracy.py",
        "digits are lost at the feeds",
        "log1pexp",
        "Maechler",
        "within two digits of the formula in 800 digits",
        'class="feed"',
    ):
        assert words in text
    assert not re.search(r"https?:|src=|<script", text)
    assert text.count("<figure>") == len([s for s in healed.sites if "alone" not in s.now])


@pytest.mark.ci
def test_a_site_of_long_arrays_is_shown_by_the_formula_of_the_table(tmp_path):
    pytest.importorskip("mpmath")
    x = gg.placeholder((100, 100), name="x")
    gg.heal(gg.log(gg.sum(gg.exp(x)))).write_html(tmp_path / "healed.html")
    assert "Drawn is the formula of the table" in (tmp_path / "healed.html").read_text()


def test_a_title_is_words(tmp_path):
    with pytest.raises(TypeError, match="title is a str, got 3"):
        gg.heal(gg.tanh(gg.constant(1.0))).write_html(tmp_path / "healed.html", title=3)


@pytest.mark.ci
def test_a_step_of_a_formula_is_no_site_of_its_own(tmp_path):
    pytest.importorskip("mpmath")
    x = gg.placeholder((), name="x")
    tanh = (gg.exp(x) - gg.exp(-x)) / (gg.exp(x) + gg.exp(-x))
    gg.heal(tanh).write_html(tmp_path / "healed.html", title="Mine & yours")
    text = (tmp_path / "healed.html").read_text()
    assert text.count("<article") == 1
    assert "<h1>Mine &amp; yours</h1>" in text


def test_the_graph_side_by_side(tmp_path):
    x = gg.placeholder((2,), name="x")
    healed = gg.heal(gg.sum(gg.log(1 + gg.exp(x))))
    healed.write_html(tmp_path / "graph.html", panes=True)
    text = (tmp_path / "graph.html").read_text()
    assert "as written" in text
    assert "Softplus" in text


def test_what_is_nowhere_wrong_has_a_page_too(tmp_path):
    gg.heal(gg.tanh(gg.constant(1.0))).write_html(tmp_path / "healed.html")
    assert "Nothing to heal" in (tmp_path / "healed.html").read_text()


@pytest.mark.ci
def test_where_a_matrix_is_singular_there_is_no_truth(tmp_path):
    pytest.importorskip("mpmath")
    a, b = gg.placeholder((2, 2), name="a"), gg.placeholder((2,), name="b")
    gg.heal(gg.linalg.inv(a) @ b).write_html(tmp_path / "healed.html")
    assert "solve" in (tmp_path / "healed.html").read_text()


@pytest.mark.ci
def test_what_is_still_lost_is_said():
    pytest.importorskip("mpmath")
    (along,) = curves_of(forms_of_identity(BY_NAME["variance"]))
    assert any("the value loses" in interval.says for interval in along.curve.left)
    (along,) = curves_of(forms_of_identity(BY_NAME["log1pexp"]))
    assert along.curve.left == ()


@pytest.mark.ci
def test_equal_formulas_are_measured_once(tmp_path, monkeypatch):
    pytest.importorskip("mpmath")
    from graphgrad.healing import page

    measured = []
    monkeypatch.setattr(page, "curves_of", lambda f: measured.append(f) or curves_of(f))
    x = gg.placeholder(("N",), name="x")
    ys = [gg.log(1 + gg.exp(x + c)) for c in (0.5, 1.5)]
    twice = [gg.log(1 + gg.exp(gg.tanh(x) * 1.0)), gg.log(1 + gg.exp(gg.sin(x) * 1.0))]
    gg.heal([*ys, *twice]).write_html(tmp_path / "healed.html")
    assert len(measured) == 3


@pytest.mark.ci
def test_powers_of_powers_are_run_in_many_digits():
    """mpmath alone would take millions of digits for the exponent of an exponent."""
    pytest.importorskip("mpmath")
    x = gg.placeholder((2,), name="x")
    made = gg.heal(gg.log(1 - gg.exp(-gg.exp(x))), at={x: np.array([1e5, 1e300])})
    assert [site.name for site in made.sites]
    (along, *_) = curves_of(forms_of_identity(BY_NAME["exp_of_exp"]))
    assert along.curve.left == ()


def test_exp_of_large_whole_numbers_is_that_of_mpmath():
    mp = pytest.importorskip("mpmath")
    for x in (1e9, 2.0**60, -(2.0**60), 1e15 + 0.5):
        (found,) = run_one(gg.exp, x)
        with mp.workdps(400):
            want = mp.exp(mp.mpf(x))
            assert abs(found.v / want - 1) < mp.mpf(10) ** -380
    for x in (0.5, -3.0, 40.0, 2.0**60):
        (found,) = run_one(gg.expm1, x)
        with mp.workdps(400):
            assert abs(found.v / mp.expm1(mp.mpf(x)) - 1) < mp.mpf(10) ** -380


def run_one(f, x):
    with gg.Graph():
        t = gg.placeholder(())
        (found,) = run([t], [f(t)], [np.asarray(x)], 400)
    return [found.item()]


@pytest.mark.ci
def test_where_many_digits_are_too_few_the_stable_form_is_the_truth():
    pytest.importorskip("mpmath")
    (along,) = curves_of(forms_of_identity(BY_NAME["cloglog"]))
    low = along.curve.xs < -2000
    assert (along.curve.after[0, low] > 13).all()
    assert (along.curve.before[0, low] == 0).all()
