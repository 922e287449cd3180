"""`python -m graphgrad open`: modules and functions of PyTorch, looked at."""

from pathlib import Path

import pytest

from graphgrad.__main__ import main

pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
MODELS = f"{Path(__file__).parent / 'models.py'}:"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["report", "torch_network"], 0, "weights:\n  0.weight: float32[2, 2]"),
        (["report", "torch_network"], 0, "writes: 1.running_mean, "),
        (["report", "torch_function"], 0, "relu"),
        (["report", "torch_counting"], 1, "nonzero: 1 time"),
        (["dot", "torch_network"], 0, 'label="input'),
        (["explain", "torch_network"], 0, "0.weight:0: float32[2, 2]"),
        (["lint", "torch_function"], 0, "nothing found"),
        (["attribute", "torch_function", "--method", "gradient", "--of", "1"], 0, "x: sum 2\n"),
    ],
)
def test_it_is_looked_at_as_any_graph(arguments, code, said, capsys):
    look, name, *options = arguments
    assert main(["open", look, MODELS + name, *options]) == code
    assert said in capsys.readouterr().out


def test_a_module_is_described_by_its_inputs(tmp_path, monkeypatch, capsys):
    text = "import torch\nnet = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.ReLU())\n"
    (tmp_path / "nets.py").write_text(text, encoding="utf-8")
    assert main(["open", "report", f"{tmp_path / 'nets.py'}:net", "--input", "Nx3"]) == 0
    assert "relu" in capsys.readouterr().out
