"""`python -m graphgrad open`: functions of JAX, looked at."""

from pathlib import Path

import pytest

from graphgrad.__main__ import main

pytest.importorskip("jax")
MODELS = f"{Path(__file__).parent / 'models.py'}:"


def opened(look, name, *options):
    return main(["open", look, MODELS + name, *options])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", "jax_network", "--input", "Nx3:float64"], "jax.nn.relu  Relu"),
        (["report", "jax_program"], "weights:\n  w: float32[2, 2]"),
        (["dot", "jax_network", "--input", "2x3"], 'label="x'),
        (["explain", "jax_program"], "w:0: float32[2, 2]"),
        (["lint", "jax_program", "--parameters", "constants"], "nothing found"),
        (["attribute", "jax_program", "--method", "gradient", "--of", "1"], "x: sum 2\n"),
        (["attribute", "jax_network", "--input", "2x3", "--random", "0", "--of", "0"], "x: sum "),
    ],
)
def test_it_is_looked_at_as_any_graph(arguments, said, capsys):
    assert opened(*arguments) == 0
    assert said in capsys.readouterr().out


def test_a_page_is_written(tmp_path):
    assert opened("html", "jax_program", "-o", str(tmp_path / "page.html")) == 0
    assert "Relu" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_what_cannot_be_opened_is_exit_code_1(capsys):
    assert opened("report", "jax_eigenvalues", "--input", "3x3") == 1
    assert "eig: 1 time, first at models.py:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["dot", "jax_network"], 2, "takes arguments: describe each"),
        (["dot", "jax_network", "--input", "2 by 3"], 2, "--input takes a shape and a dtype"),
        (["dot", "jax_network", "--input", "2x3:flaot"], 2, "flaot"),
        (["dot", "number"], 2, "not (fn, args)"),
        (["dot", "jax_eigenvalues", "--input", "3x3"], 2, "has no form for 1 of the operations"),
        (["report", "jax_failing", "--input", "3"], 3, "of the user"),
        (["attribute", "jax_network", "--input", "2x3"], 2, "have no feed"),
    ],
)
def test_what_is_wrong_is_said(arguments, code, said, capsys):
    assert opened(*arguments) == code
    assert said in capsys.readouterr().err
