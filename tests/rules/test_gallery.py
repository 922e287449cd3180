"""The gallery of rules shows each rule of the library, doing what it is for."""

from pathlib import Path

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
