"""`python -m graphgrad new`: what it writes runs, and passes its own tests."""

import contextvars
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import graphgrad as gg
from graphgrad.__main__ import main


@pytest.fixture
def project(tmp_path, monkeypatch, capsys):
    """A new project, as the current folder."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "quantised"]) == 0
    assert "train.py" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "quantised")
    monkeypatch.syspath_prepend(str(tmp_path / "quantised"))
    yield tmp_path / "quantised"
    sys.modules.pop("rules", None)


@pytest.mark.usefixtures("own_names")
def test_it_trains_and_its_tests_hold(project, capsys):
    contextvars.copy_context().run(runpy.run_path, "train.py", run_name="__main__")
    said = capsys.readouterr()
    assert "quantised: 96 of 96" in said.err
    assert float(re.search(r"loss (\S+)", said.out)[1]) == 0.0
    assert "[ 0.5  -0.75  0.25]" in said.out
    tests = runpy.run_path("test_rules.py")
    for name in [name for name in tests if name.startswith("test_")]:
        contextvars.copy_context().run(tests[name])
    gg.unregister_gradient("quantised/through_rounding")


@pytest.mark.ci
def test_it_is_found_by_pytest_and_clean(project):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["a-b", "quantised"])
def test_a_name_that_is_none_or_taken_writes_nothing(name, project, monkeypatch, capsys):
    monkeypatch.chdir(project.parent)
    before = sorted(Path().rglob("*"))
    assert main(["new", name]) == 2
    assert "graphgrad new: " in capsys.readouterr().err
    assert sorted(Path().rglob("*")) == before
