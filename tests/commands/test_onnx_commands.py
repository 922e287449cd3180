"""Commands on models of ONNX."""

import numpy as np
import pytest

from graphgrad.__main__ import main

onnx = pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two models: one that loads, and one with operators that nothing reads."""
    made = tmp_path_factory.mktemp("models")
    node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    weight = onnx.numpy_helper.from_array(np.ones((2, 2), "float32"), "w")
    models = {
        "good": [node("MatMul", ["x", "w"], ["h"]), node("Relu", ["h"], ["y"])],
        "bad": [node("StringConcat", ["x", "x"], ["h"]), node("Strange", ["h"], ["y"])],
    }
    for name, nodes in models.items():
        x, y = (info(v, 1, ["N", 2]) for v in "xy")
        graph = onnx.helper.make_graph(nodes, name, [x], [y], [weight])
        (made / f"{name}.onnx").write_bytes(onnx.helper.make_model(graph).SerializeToString())
    return made


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["onnx", "{}"], "operator MatMul: 1 time\n"),
        (["onnx", "{}"], "input x: float[N, 2]\noutput y: float[N, 2]\n1 weight of 4 numbers\n"),
        (["dot", "{}"], "digraph"),
        (["run", "{}", "--feed", "x=[[1.0, 2.0]]"], "[[3. 3.]]"),
        (["explain", "{}"], "has a gradient"),
        (["lint", "{}"], "nothing found"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_a_command_on_a_model(command, says, folder, capsys):
    assert main([part.format(folder / "good.onnx") for part in command]) == 0
    out, error = capsys.readouterr()
    assert says in out
    assert error == ""


def test_html_of_a_model(folder, tmp_path, capsys):
    assert main(["html", str(folder / "good.onnx"), "-o", str(tmp_path / "a.html")]) == 0
    assert (tmp_path / "a.html").stat().st_size > 10_000
    capsys.readouterr()


def test_what_cannot_be_loaded_is_said(folder, tmp_path, capsys):
    assert main(["onnx", str(folder / "bad.onnx")]) == 1
    out = capsys.readouterr().out
    assert "cannot be loaded: StringConcat, 1 time: it works on strings" in out
    assert "cannot be loaded: Strange, 1 time: unknown" in out
    assert main(["run", str(folder / "bad.onnx")]) == 2
    assert "Strange, 1 time" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "none.onnx")]) == 2
    assert "there is no file" in capsys.readouterr().err
    (tmp_path / "no.onnx").write_bytes(b"no model")
    assert main(["onnx", str(tmp_path / "no.onnx")]) == 2
    assert "is no ONNX model" in capsys.readouterr().err
