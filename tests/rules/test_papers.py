"""Published behaviour is reproduced: every program in examples/papers holds its margin."""

import contextvars
import runpy
from pathlib import Path

import pytest

PAPERS = Path(__file__).resolve().parents[2] / "examples" / "papers"
SLOW = {"learned_step_size", "feedback_alignment", "gradient_reversal"}


def programs():
    for path in sorted(PAPERS.glob("*.py")):
        marks = [pytest.mark.slow] if path.stem in SLOW else []
        yield pytest.param(path, id=path.stem, marks=marks)


@pytest.mark.parametrize("path", list(programs()))
def test_published_behaviour(path, capsys):
    contextvars.copy_context().run(runpy.run_path, str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()
