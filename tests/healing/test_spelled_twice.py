"""Formulas in which an argument is computed more than once: measured as functions of it."""

import numpy as np
import pytest

import graphgrad as gg

TWICE = {
    "x * x and x**2": lambda x: gg.sin(x * x) / x**2,
    "a column": lambda x: gg.sin(x[:, 1]) / x[:, 1],
    "a product": lambda x: gg.sin(gg.tanh(x) * 2) / (gg.tanh(x) + gg.tanh(x)),
    "of both signs": lambda x: gg.sin(x - x[0]) / (x[0] - x),
    "a choice": lambda x: gg.where(x[:, 1] > 0.5, gg.sqrt(x[:, 1]), 1.0),
}


@pytest.mark.parametrize("name", TWICE)
def test_what_is_spelled_twice_is_one_input(name, tmp_path):
    f = TWICE[name]
    with gg.Graph():
        x = gg.placeholder((3, 2), name="x")
        (site,) = gg.heal(f(x), at={x: np.zeros((3, 2))}).sites
        assert len([t for t in site.inputs if t.shape]) == 1
        made = gg.heal(f(x))
        made.write_html(tmp_path / "healed.html")
    page = (tmp_path / "healed.html").read_text()
    assert "Equal here" in page
    assert "too long" not in page


@pytest.mark.ci
def test_arrays_of_open_lengths_have_a_page(tmp_path):
    with gg.Graph():
        x, y = gg.placeholder(("A", 2)), gg.placeholder(("A", 1))
        shares = gg.sum(gg.exp(x) * y, 1) / gg.sum(gg.exp(x), 1)
        gg.heal(shares).write_html(tmp_path / "healed.html")
    assert "800 digits" in (tmp_path / "healed.html").read_text()


def test_lengths_that_depend_on_values_are_healed():
    with gg.Graph():
        x, y = gg.placeholder(("A", "B")), gg.placeholder(("A", 1))
        some = x[x > 0]
        forms = [
            gg.log(1 + gg.exp(some)),
            gg.log(gg.sum(gg.exp(some))),
            some / gg.sqrt(gg.sum(some**2)),
        ]
        made = gg.heal(forms)
        f = gg.compile([x, y], made.ys)
    soft, total, unit = f(np.array([[800.0, -1.0], [3.0, 4.0]]), np.ones((2, 1)))
    np.testing.assert_allclose(soft, [800.0, np.log1p(np.exp(3.0)), np.log1p(np.exp(4.0))])
    np.testing.assert_allclose(total, 800.0)
    np.testing.assert_allclose(unit, np.array([800.0, 3.0, 4.0]) / np.hypot(800.0, 5.0))
