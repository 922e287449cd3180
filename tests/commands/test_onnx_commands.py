"""Commands on models of ONNX."""

import importlib

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
    assert "is not an ONNX model" in capsys.readouterr().err


@pytest.fixture
def curved(tmp_path):
    """y:0 = sin(x:0) * w, and places."""
    node, info = onnx.helper.make_node, onnx.helper.make_tensor_value_info
    weight = onnx.numpy_helper.from_array(np.full(2, 3.0, "float32"), "w")
    nodes = [node("Sin", ["x:0"], ["h"]), node("Mul", ["h", "w"], ["y:0"])]
    nodes += [node("ArgMax", ["y:0"], ["place"], axis=1)]
    x, y = (info(f"{n}:0", 1, ["N", 2]) for n in "xy")
    graph = onnx.helper.make_graph(nodes, "g", [x], [y, info("place", 7, None)], [weight])
    (tmp_path / "m.onnx").write_bytes(onnx.helper.make_model(graph).SerializeToString())
    return str(tmp_path / "m.onnx")


DERIVATIVES = [
    (["--gradient"], "output gradient/x:0: float32[N, 2]"),
    (["--gradient", "y:0:x:0,w"], "output gradient/w: float32[2]"),
    (["--gradient", "h:x:0", "--no-forward"], "output gradient/x:0: float32[N, 2]"),
    (["--gradient", "y:0:x:0", "--forward", "y:0,h"], "output h: float32[N, 2]"),
    (["--gradient", ":x:0", "--order", "2"], "input direction/x:0: float32[N, 2]"),
    (["--vjp", "y:0", "--names", "_"], "input cotangent_of_y_0: float32[N, 2]"),
    (["--jvp"], "output jvp/y:0: float32[N, 2]"),
    (["--hvp", "--opset", "18"], "output hvp/x:0: float32[N, 2]"),
    (["--jacobian", "y:0:x:0"], "output jacobian/y:0/x:0: float32[N, 2, N, 2]"),
    (["--jacobian", "--per-example"], "output jacobian/y:0/x:0: float32[N, 2, 2]"),
    (["--hessian", "--shapes", "x:0=4,2"], "output hessian/x:0/x:0: float32[4, 2, 4, 2]"),
    (["--hessian", "--per-example"], "output hessian/x:0/x:0: float32[N, 2, 2]"),
    (["--laplacian"], "output laplacian/x:0: float32[]"),
    (["--laplacian", "--per-example", "--weights", "share"], "output laplacian/x:0: float32[N]"),
]


@pytest.mark.parametrize(("options", "says"), DERIVATIVES, ids=lambda part: str(part[0]))
def test_a_model_with_derivatives_is_written_and_checked(options, says, curved, tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    out = str(tmp_path / "d.onnx")
    assert main(["onnx", curved, *options, "-o", out, "--check"]) == 0
    said, error = capsys.readouterr()
    assert says in said
    assert f"written: {out}, " in said
    compared = "w cannot be moved" if "w" in options[-1].split(",") else "and differences: relative"
    assert compared in said
    assert error == ""


def test_a_rule_answers_for_an_op_type_and_is_not_compared(curved, tmp_path, capsys):
    pytest.importorskip("onnxruntime")
    command = ["onnx", curved, "--gradient", "y:0", "-o", str(tmp_path / "d.onnx"), "--check"]
    assert main([*command, "--rule", "Sin=guided"]) == 0
    assert "not compared: rules answer on the way" in capsys.readouterr().out


def test_a_wrong_derivative_is_found(curved, tmp_path, capsys, monkeypatch):
    pytest.importorskip("onnxruntime")
    derived = importlib.import_module("graphgrad.commands.derived")
    command = ["onnx", curved, "--gradient", "-o", str(tmp_path / "d.onnx"), "--check"]
    monkeypatch.setattr(derived, "STEPS", (1.0,))
    assert main(command) == 1
    assert ", more than 0.01 at 1 of 1 element" in capsys.readouterr().out
    monkeypatch.setattr(derived, "onnxruntime", None)
    assert main(command) == 1
    assert "not checked: that needs onnxruntime" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--gradient"], "--gradient writes a new model: say where with -o FILE"),
        (["-o", "d.onnx"], "-o needs a derivative"),
        (["--per-example"], "--per-example needs a derivative"),
        (["--gradient", "z", "-o", "{}"], "the model has no tensor 'z'"),
        (["--gradient", "place", "-o", "{}"], "of: 'place' is int64"),
        (["--hvp", "-o", "{}", "--rule", "Sin"], "--rule takes NAME=VALUE, got 'Sin'"),
        (["--hvp", "-o", "{}", "--rule", "Sine=ste"], "Did you mean 'Sin'"),
        (["--hvp", "-o", "{}", "--shapes", "z=3"], "shapes: it has no input 'z'"),
    ],
    ids=str,
)
def test_what_cannot_be_derived_is_said_and_nothing_is_written(
    options, says, curved, tmp_path, capsys
):
    out = tmp_path / "d.onnx"
    assert main(["onnx", curved, *[part.format(out) for part in options]]) == 2
    assert says in capsys.readouterr().err
    assert not out.exists()
