"""The gallery of rules shows each rule of the library, doing what it is for."""

import json
import re
from pathlib import Path
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest

import graphgrad as gg
from tests.each import judge

DOCS = Path(__file__).resolve().parents[2] / "docs"

SAME = {"black_box", "fixed_point", "root", "linear_solve", "checkpoint", "checkpoint_chain"}
"""What builds tensors of which nothing else is a gradient."""


@pytest.fixture(autouse=True)
def _of_docs(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)


def test_every_rule_is_shown():
    from building.shown import SHOWN

    shown = {name for name, e in gg.rules.library().items() if not hasattr(e, "row")}
    assert shown <= set(SHOWN) <= set(gg.rules.library())


@pytest.mark.ci
def test_what_is_shown_differs_with_the_rule():
    from building.gallery import built, values
    from building.shown import SHOWN

    def differs(name):
        with gg.Graph():
            _, dx, default = values(built(name, SHOWN[name]), SHOWN[name])
        dx, default = dx.ravel()[: default.size], default.ravel()
        assert np.isfinite(dx).all()
        assert np.allclose(dx, default) == (name in SAME)

    judge([(name, (name,)) for name in SHOWN], differs)


@pytest.mark.ci
def test_what_has_not_changed_is_not_drawn_again(tmp_path):
    from building.gallery import keep

    drawn = []
    for made_of in ("a", "a", "b"):
        keep(tmp_path / "a.svg", made_of, lambda: drawn.append(1) or "<svg/>\n")
    assert len(drawn) == 2


def test_formulas_are_written_as_mathml():
    from building.mathml import formula

    made = formula("where(abs(x) < w, 0.5 / (a - b), square(a + x) * c)")
    assert "<mfrac><mrow><mn>0.5</mn></mrow><mrow>" in made
    assert "<mtext>if </mtext>" in made
    assert made.count("<mo>(</mo>") == 1
    assert formula("x[0]") is None
    slopes = [e.formula for e in gg.rules.library().values() if e.formula.startswith("dx = dy * s")]
    written = [formula(f.partition("slope = ")[2]) for f in slopes]
    assert sum(w is not None for w in written) >= len(written) - 6


def test_mathml_is_xml():
    from building.mathml import formula

    for entry in gg.rules.library().values():
        made = formula(entry.formula.removeprefix("dx = dy * slope, slope = "))
        assert made is None or fromstring(re.sub(r"&(?!lt;|gt;)\w+;", "x", made)).tag == "math"


def slid(name):
    """What a page holds for its sliders."""
    from building.gallery import both_curves
    from building.shown import SHOWN
    from building.sliders import written

    lines = written(name, SHOWN[name], both_curves)
    return json.loads(lines[2].partition('json">')[2].partition("</script>")[0]) if lines else None


def test_sliders_hold_the_curves_of_other_values():
    told = slid("triangle")
    assert list(told["parameters"]) == ["width", "height"]
    width = told["parameters"]["width"]
    assert width["values"][4] == width["at"] == "1"
    at = np.linspace(*told["x"], len(width["dx"][0]))
    low, high = told["y"]
    for i, value in enumerate(map(float, width["values"])):
        drawn = low + np.array(width["dx"][i]) * (high - low) / 999
        np.testing.assert_allclose(drawn, np.maximum(1 - abs(at) / value, 0.0), atol=0.03)
    assert len(width["y"]) == 1
    assert len(slid("binary_quant")["parameters"]["scale"]["y"]) == 9


def test_sliders_are_of_numbers_that_a_row_takes():
    alphas = [float(v) for v in slid("q_pseudo_spike")["parameters"]["alpha"]["values"]]
    assert min(alphas) > 1.0  # alpha + shift > 0
    assert slid("dorefa_weights")["parameters"]["bits"]["values"] == ["1", "2", "3", "4", "5"]
    assert slid("clip_norm") is None  # bars
    assert slid("surrogate") is None  # a function
