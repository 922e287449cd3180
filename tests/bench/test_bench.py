"""The quick look at speed: what it prints, and its exit codes. No test asserts a time."""

import sys

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.__main__ import main
from graphgrad.bench import command, measure, workloads
from graphgrad.bench.measure import Disagreement, Row, Table
from graphgrad.bench.workloads import TINY

ROWS = ["x + 1", "element-wise chain", "training step", "deep network", "deep network, overridden"]


def test_it_prints_a_line_for_every_measurement(capsys):
    assert main(["bench", "--tiny", "--backend", "numpy"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert lines[0].startswith(f"graphgrad {gg.__version__}, Python ")
    assert [line for line in lines if line.startswith("CPU microseconds to")]
    for what in ("a node", "a region of one node", *ROWS):
        (line,) = [row for row in lines if row.startswith(f"{what}  ")]
        assert all(float(cell) > 0 for cell in line.removeprefix(what).split())


def test_without_a_choice_it_runs_on_every_backend_that_is_installed():
    table, wrong = measure.called(TINY, command._installed())
    assert table.columns[0] == "numpy"
    assert wrong == []
    assert [row.what for row in table.rows] == ROWS
    assert {len(row.numbers) for row in table.rows} == {len(table.columns)}


@pytest.mark.parametrize("name", ["nump", "cuda"])
def test_an_unknown_backend_is_an_error_of_one_line(name, capsys):
    assert main(["bench", "--tiny", "--backend", name]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"no backend is called {name!r}" in printed.err


def test_backends_that_disagree_are_named(monkeypatch, capsys):
    wrong = [Disagreement("x + 1", "jax", "numpy")]
    monkeypatch.setattr(command, "called", lambda *_: (Table("", [], []), wrong))
    assert main(["bench", "--tiny", "--backend", "numpy"]) == 1
    assert capsys.readouterr().err == "graphgrad bench: x + 1: jax differs from numpy\n"


def test_results_are_compared():
    near, far = [np.ones(3), np.zeros(2)], [np.ones(3), np.ones(2)]
    found = measure._disagreements("a", {"one": near, "two": near, "three": far})
    assert found == [Disagreement("a", "three", "one")]


def test_the_overridden_network_has_the_same_values_and_gradients():
    plain, marked = (
        measure._call(lambda sizes, m=m: workloads.deep_network(sizes, m), TINY, "numpy")()
        for m in (False, True)
    )
    for a, b in zip(plain, marked, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_the_training_step_trains():
    step = measure._call(workloads.training_step, TINY, "numpy")
    losses = [float(step()[0]) for _ in range(20)]
    assert losses[-1] < losses[0]


def test_a_plain_table_is_aligned():
    table = Table("ms", ["numpy", "a"], [Row("one", [1.0, 22.5]), Row("a longer one", [1e-3, 3])])
    assert command.plain(table).splitlines() == [
        "ms            numpy     a",
        "one               1  22.5",
        "a longer one  0.001     3",
    ]


def test_a_terminal_gets_a_ruled_table(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    command.show(Table("a title", ["numpy"], [Row("a row", [1.5])]))
    printed = capsys.readouterr().out
    assert "a title" in printed
    assert "─" in printed


def test_the_help_names_it(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "bench" in capsys.readouterr().out
