"""The commands on files that were saved."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.__main__ import main
from graphgrad.commands import reading


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    with gg.Graph("model") as graph:
        x = gg.placeholder((2,), name="x")
        w = gg.variable([1.0, 2.0], name="w")
        with gg.override_gradient(lambda site, dy: 3.0 * dy):
            y = gg.exp(x)
        loss = gg.sum(w * y)
        functions = {"loss": ([x], loss), "slope": ([x], gg.gradients(loss, x))}
    gg.save(folder / "a.gg", graph, functions=functions, metadata={"who": "me"})
    gg.Checkpoints(folder).save(7, graph, metadata=[1])
    return folder


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["dot", "{}"], "digraph"),
        (["dot", "{}:loss"], "digraph"),
        (["run", "{}:slope", "--feed", "x=[0.0, 0.0]"], "[3. 6.]"),
        (["run", "{}", "--random", "1", "--backend", "numpy"], "float64[2]"),
        (["explain", "{}:loss"], "<lambda>"),
        (["check", "{}"], "1 rules checked"),
        (["lint", "{}"], ""),
        (["diff", "{}", "{}"], ""),
        (["info", "{}"], "function slope(x:0: float64[2]) -> "),
        (["info", "{}", "--verify"], "metadata: {'who': 'me'}"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_a_command_on_a_saved_graph(command, says, saved, capsys):
    assert main([part.format(saved / "a.gg") for part in command]) in (0, 1)
    out, error = capsys.readouterr()
    assert says in out
    assert error == ""


def test_html_of_a_saved_graph(saved, tmp_path, capsys):
    assert main(["html", str(saved / "a.gg"), "-o", str(tmp_path / "a.html")]) == 0
    assert (tmp_path / "a.html").stat().st_size > 10_000
    capsys.readouterr()


def test_info_of_a_checkpoint(saved, capsys):
    (path,) = saved.glob("step-*.gg")
    assert main(["info", str(path)]) == 0
    assert "variable w: float64[2]\nmetadata: [1]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "says"),
    [("nowhere.gg", "there is no file"), ("{}:slop", "Did you mean 'slope'?")],
)
def test_what_is_not_there_is_exit_code_2(target, says, saved, capsys):
    assert main(["dot", target.format(saved / "a.gg")]) == 2
    assert says in capsys.readouterr().err


def test_a_broken_file_is_exit_code_2(tmp_path, capsys):
    path = tmp_path / "a.gg"
    path.write_bytes(np.arange(100.0).tobytes())
    for command in ("info", "dot"):
        assert main([command, str(path)]) == 2
        assert f"graphgrad {command}: {path}: it does not end like" in capsys.readouterr().err


@pytest.mark.parametrize("live", [False, True])
def test_reading_a_large_file_shows_how_far_it_is(live, tmp_path, capsys, monkeypatch):
    path = tmp_path / "large.gg"
    with gg.Graph() as graph:
        gg.variable(np.random.default_rng(0).normal(size=500_000), name="w")
    gg.save(path, graph)
    assert main(["info", str(path), "--verify"]) == 0
    assert capsys.readouterr().err == "", "4 MB are read at once"
    monkeypatch.setattr(reading, "LARGE", 1_000_000)
    monkeypatch.setattr("sys.stderr.isatty", lambda: live)
    assert main(["info", str(path), "--verify"]) == 0
    said = capsys.readouterr().err
    assert said.startswith("\r" if live else "large.gg:  25 % checked, 1 of 4 MB\n")
    assert said.count("large.gg: ") == 4
    assert said.endswith(" of 4 MB\n")
