"""`python -m graphgrad`: every command, its exit code and what it says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphgrad.__main__ import COMMANDS, main

MODELS = f"{Path(__file__).parent / 'models.py'}:"


def _said(capsys) -> str:
    return capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name, capsys):
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert COMMANDS[name].summary.split()[0] in _said(capsys)


class TestTarget:
    @pytest.mark.parametrize("name", ["graph", "tensors", "compiled"])
    def test_graphs_tensors_and_compiled_functions(self, name, capsys):
        assert main(["dot", MODELS + name]) == 0
        assert _said(capsys).startswith("digraph")

    def test_a_module_by_its_name(self, capsys):
        assert main(["dot", "tests.commands.models:graph"]) == 0

    @pytest.mark.parametrize(
        ("target", "message"),
        [
            ("nothing", "not module:function"),
            ("no.such.module:f", "no module"),
            ("nowhere.py:f", "no file"),
            (MODELS + "grph", "Did you mean 'graph'"),
            (MODELS + "number", "not a graph"),
            (MODELS + "broken", "shape"),
        ],
    )
    def test_what_leads_to_no_graph_is_exit_code_2(self, target, message, capsys):
        assert main(["dot", target]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.startswith("graphgrad dot: ")


class TestDot:
    def test_to_a_file(self, tmp_path):
        assert main(["dot", MODELS + "graph", "-o", str(tmp_path / "g.dot")]) == 0
        assert (tmp_path / "g.dot").read_text().startswith("digraph")

    def test_a_folder_that_is_not_there(self, tmp_path, capsys):
        assert main(["dot", MODELS + "graph", "-o", str(tmp_path / "no" / "g.dot")]) == 2


class TestHtmlAndDiff:
    def test_a_page(self, tmp_path, capsys):
        page = tmp_path / "g.html"
        assert main(["html", MODELS + "graph", "-o", str(page)]) == 0
        assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html")
        both = ["html", MODELS + "graph", "--before", MODELS + "exact", "-o", str(page)]
        assert main(both) == 0

    def test_differences(self, capsys):
        assert main(["diff", MODELS + "exact", MODELS + "exact"]) == 0
        assert main(["diff", MODELS + "exact", MODELS + "graph"]) == 1
        assert _said(capsys)


class TestRun:
    def test_feeds_from_the_command_line(self, capsys):
        assert main(["run", MODELS + "tensors", "--feed", "x=[0.0, 1.0]"]) == 0
        said = _said(capsys)
        assert "float32[N]" in said
        assert "2.718" in said

    def test_feeds_from_a_file(self, tmp_path, capsys):
        np.save(tmp_path / "x.npy", np.zeros(2))
        assert main(["run", MODELS + "graph", "--feed", f"x:0=@{tmp_path / 'x.npy'}"]) == 0
        assert "0." in _said(capsys)

    def test_random_arrays(self, capsys):
        assert main(["run", MODELS + "tensors", "--random", "0"]) == 0

    def test_missing_and_wrong_feeds(self, capsys):
        assert main(["run", MODELS + "graph"]) == 2
        assert "placeholder" in capsys.readouterr().err
        for feed in ("x", "y=3", "x=f(3)", "x=@nowhere.npy"):
            assert main(["run", MODELS + "graph", "--feed", feed]) == 2

    def test_guard(self, capsys):
        assert main(["run", MODELS + "compiled", "--feed", "x=0.0", "--guard"]) == 1
        assert "Log" in _said(capsys)
        assert main(["run", MODELS + "compiled", "--feed", "x=1.0", "--guard"]) == 0


class TestChecking:
    def test_check(self, capsys):
        assert main(["check", MODELS + "exact"]) == 0
        assert "1 rules checked, 0 with findings" in _said(capsys)
        assert main(["check", MODELS + "graph"]) == 1

    def test_lint(self, capsys):
        assert main(["lint", MODELS + "suspicious"]) == 1
        assert "zero gradient" in _said(capsys)
        assert main(["lint", MODELS + "exact"]) == 0

    def test_explain(self, capsys):
        assert main(["explain", MODELS + "graph"]) == 0
        assert "models.py" in _said(capsys)
        assert main(["explain", MODELS + "graph", "--to", "no:0"]) == 2


class TestListing:
    def test_ops(self, capsys):
        assert main(["ops", "relu"]) == 0
        assert "ReluGrad" in _said(capsys)
        assert main(["ops", "nosuchop"]) == 1

    def test_rules(self, capsys):
        assert main(["rules", "ste"]) == 0
        assert "gg.rules.ste" in _said(capsys)

    def test_doctor(self, capsys):
        assert main(["doctor"]) == 0
        said = _said(capsys)
        for fact in ("python", "numpy", "backend auto", "threads", "BLAS"):
            assert fact in said
