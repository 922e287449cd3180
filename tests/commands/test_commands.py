"""`python -m graphgrad`: every command, its exit code and what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from graphgrad.__main__ import COMMANDS, EXIT_CODES, main
from graphgrad.inspect.write.svg import can_render

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
        ],
    )
    def test_what_leads_to_no_graph_is_exit_code_2(self, target, message, capsys):
        assert main(["dot", target]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.startswith("graphgrad dot: ")


class TestWhatUsersCodeRaises:
    """Exit code 3 and the traceback from the user's own line on."""

    @pytest.mark.parametrize(
        ("target", "said"),
        [("broken", "ShapeError: shapes [2]"), ("leaves", "SystemExit: 0")],
    )
    def test_the_function(self, target, said, capsys):
        assert main(["dot", MODELS + target]) == 3
        error = capsys.readouterr().err
        assert said in error
        assert f"in {target}" in error
        assert "target.py" not in error
        assert f"{target} raised" in error.splitlines()[0]

    def test_the_module(self, tmp_path, capsys):
        (tmp_path / "bad.py").write_text("import no_such_package\n")
        assert main(["dot", f"{tmp_path / 'bad.py'}:f"]) == 3
        assert "No module named 'no_such_package'" in capsys.readouterr().err

    def test_a_module_by_name_that_imports_what_is_missing(self, tmp_path, capsys, monkeypatch):
        (tmp_path / "bad_by_name.py").write_text("import no_such_package\n")
        monkeypatch.syspath_prepend(tmp_path)
        assert main(["dot", "bad_by_name:f"]) == 3
        said = capsys.readouterr().err
        assert "No module named 'no_such_package'" in said
        assert "importlib/__init__.py" not in said

    def test_what_runs(self, capsys):
        assert main(["run", MODELS + "failing", "--random", "0"]) == 3
        error = capsys.readouterr().err
        assert "in fails" in error
        assert r"oh \x1b[31mno" in error

    def test_a_rule(self, capsys):
        assert main(["explain", MODELS + "clumsy"]) == 3
        assert "no_such_thing" in capsys.readouterr().err

    def test_exit_codes_are_told(self, capsys):
        for arguments in (["--help"], ["diff", "--help"]):
            with pytest.raises(SystemExit):
                main(arguments)
            said = _said(capsys)
            for line in EXIT_CODES.splitlines():
                assert line in said


def _ended(arguments):
    """What a command does whose reader has gone away."""
    command = [sys.executable, "-m", "graphgrad", *arguments]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing) as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, timeout=300)
    return done.returncode, done.stderr.decode()


@pytest.mark.ci
@pytest.mark.skipif(os.name == "nt", reason="there are no such pipes")
def test_a_reader_that_has_seen_enough_is_no_error():
    for arguments in (["ops"], ["dot", MODELS + "graph"]):
        assert _ended(arguments) == (141, "")


@pytest.mark.parametrize("command", ["explain", "check", "lint", "run"])
def test_names_are_shown_and_never_run(command, capsys):
    main([command, MODELS + "hostile", *(["--random", "0"] if command == "run" else [])])
    said = "".join(capsys.readouterr())
    assert not any(c in said for c in "\x1b\x07\u202e")


class TestDot:
    def test_what_leads_to_the_tensors_returned(self, capsys):
        assert main(["dot", MODELS + "aside"]) == 0
        assert "Cos" not in _said(capsys)
        assert main(["dot", MODELS + "aside", "--whole"]) == 0
        assert "Cos" in _said(capsys)

    def test_collapsed_boxes(self, capsys):
        for what in ("inner", "all", "inn*"):
            assert main(["dot", MODELS + "aside", "--collapse", what]) == 0
            assert "shape=box3d" in _said(capsys)
        assert main(["dot", MODELS + "aside", "--collapse", "innr"]) == 2
        assert "Did you mean 'inner'" in capsys.readouterr().err

    def test_bypassed_gradients(self, capsys):
        assert main(["dot", MODELS + "graph", "--bypassed"]) == 0
        assert "struck through" in _said(capsys)

    def test_passes(self, capsys):
        assert main(["dot", MODELS + "graph", "--passes"]) == 0
        shown = _said(capsys)
        assert shown.startswith("digraph")
        assert main(["dot", MODELS + "graph"]) == 0
        assert shown != _said(capsys)

    @pytest.mark.parametrize("kind", ["largest", "nonfinite", "zeros", "time"])
    def test_overlays(self, kind, capsys):
        run = ["dot", MODELS + "aside", "--overlay", kind]
        assert main([*run, "--random", "0"]) == 0
        assert "digraph" in _said(capsys)
        assert main(run) == 2
        assert "--feed NAME=VALUE" in capsys.readouterr().err

    def test_an_overlay_from_a_file(self, tmp_path, capsys):
        file = tmp_path / "norms.json"
        run = ["dot", MODELS + "aside", "--overlay", str(file)]
        assert main(run) == 2
        for text, code in (('{"x": 4.5}', 0), ("[1]", 2), ("{", 2), ('{"x": "y"}', 2)):
            file.write_text(text)
            assert main(run) == code
        file.write_text('{"x": 4.5}')
        capsys.readouterr()
        assert main(run) == 0
        assert "4.5" in _said(capsys)

    def test_an_overlay_of_another_name(self, capsys):
        assert main(["dot", MODELS + "aside", "--overlay", "larges"]) == 2
        assert "Did you mean 'largest'" in capsys.readouterr().err

    @pytest.mark.skipif(not can_render(), reason="Graphviz is not installed")
    @pytest.mark.parametrize(("suffix", "start"), [("svg", b"<"), ("png", b"\x89PNG")])
    def test_drawn_as_the_ending_says(self, tmp_path, suffix, start):
        file = tmp_path / f"g.{suffix}"
        assert main(["dot", MODELS + "graph", "-o", str(file), "--bypassed"]) == 0
        assert file.read_bytes().startswith(start)

    def test_where_graphviz_is_missing(self, tmp_path, capsys, monkeypatch):
        monkeypatch.setattr("graphgrad.inspect.write.svg.find_spec", lambda name: None)
        monkeypatch.setattr("graphgrad.inspect.write.svg.shutil.which", lambda name: None)
        assert main(["dot", MODELS + "graph", "-o", str(tmp_path / "g.svg")]) == 2
        assert "pip install" in capsys.readouterr().err

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
        assert main([*both, "--panes"]) == 0
        assert '"panes":true' in page.read_text(encoding="utf-8")
        assert main(["html", MODELS + "graph", "-o", str(page), "--panes"]) == 2
        assert "--panes shows two pictures" in capsys.readouterr().err

    def test_a_page_with_overlays_and_passes(self, tmp_path, capsys):
        page = tmp_path / "g.html"
        run = ["html", MODELS + "aside", "-o", str(page), "--passes", "--random", "0"]
        assert main([*run, "--overlay", "largest", "--overlay", "time"]) == 0
        text = page.read_text(encoding="utf-8")
        assert '"largest"' in text
        assert '"Cos"' not in text
        assert main([*run, "--whole"]) == 0
        assert '"Cos"' in page.read_text(encoding="utf-8")
        with pytest.raises(SystemExit) as stop:
            main([*run, "--before", MODELS + "exact"])
        assert stop.value.code == 2

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
        assert "--feed NAME=VALUE" in capsys.readouterr().err
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

    def test_heal(self, capsys, tmp_path):
        assert main(["heal", MODELS + "naive"]) == 1
        said = _said(capsys)
        assert "softplus(x)" in said
        assert "models.py" in said
        assert main(["heal", MODELS + "exact"]) == 0
        assert _said(capsys) == "nothing to heal\n"
        assert main(["heal", MODELS + "healed"]) == 0
        assert _said(capsys) == "nothing to heal\n"
        assert main(["heal", MODELS + "marked"]) == 0
        assert "left alone: marked" in _said(capsys)
        assert main(["heal", MODELS + "naive", "--panes"]) == 2
        page = tmp_path / "graph.html"
        assert main(["heal", MODELS + "naive", "--html", str(page), "--panes"]) == 1
        assert "as written" in page.read_text()

    def test_heal_by_feeds_and_its_page(self, capsys, tmp_path):
        pytest.importorskip("mpmath")
        page = tmp_path / "healed.html"
        assert main(["heal", MODELS + "naive", "--feed", "x=[1.0, 2.0]"]) == 0
        named = ["--feed", "x=[1000.0, 2.0]", "--html", str(page)]
        assert main(["heal", MODELS + "naive", *named]) == 1
        assert "16 digits are lost" in _said(capsys)
        assert "from 709.8: the value is infinite" in page.read_text()

    def test_explain(self, capsys):
        assert main(["explain", MODELS + "graph"]) == 0
        assert "models.py" in _said(capsys)
        assert main(["explain", MODELS + "graph", "--to", "no:0"]) == 2


class TestListing:
    def test_ops(self, capsys):
        assert main(["ops", "relu"]) == 0
        assert "ReluGrad" in _said(capsys)
        assert main(["ops", "Rlu"]) == 1
        assert _said(capsys) == "no op type has 'Rlu' in its name. Did you mean 'Relu'?\n"

    def test_rules(self, capsys):
        assert main(["rules", "ste"]) == 0
        assert "gg.rules.ste" in _said(capsys)
        assert main(["rules", "zzz"]) == 1
        assert _said(capsys) == "no rule has 'zzz' in its name.\n"

    def test_doctor(self, capsys):
        assert main(["doctor"]) == 0
        said = _said(capsys)
        for fact in ("python", "numpy", "backend auto", "threads", "BLAS"):
            assert fact in said


def test_the_page_has_a_row_for_each_command():
    page = Path(__file__).parents[2] / "docs" / "command.md"
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", page.read_text().split("## Environment")[0], re.M)
    assert dict(rows) == {name: command.summary for name, command in COMMANDS.items()}
