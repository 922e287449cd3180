"""Every example runs, says something, and holds what it claims; none disturbs another."""

import contextvars
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
PROGRAMS = sorted(EXAMPLES.glob("*.py"))
TRAINED = ("healed_hidden_markov", "healed_poisson_autoencoder")
"""Those that take about a second and more."""


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.ci) if p.stem in TRAINED else p for p in PROGRAMS],
    ids=lambda p: p.stem,
)
@pytest.mark.usefixtures("own_names")
def test_example_runs_and_prints(path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(path), "--quick"])  # for those that train for long
    contextvars.copy_context().run(runpy.run_path, str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_there_are_examples():
    assert len(PROGRAMS) >= 20


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_example_reads_well(path):
    text = path.read_text()
    assert text.startswith('"""'), "says its idea first"
    assert "assert" in text, "claims nothing"
    assert len(text.splitlines()) <= 80
