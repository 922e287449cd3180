"""`gg.attribute` on models that were loaded: batches, several outputs, recurrent layers."""

import numpy as np
import pytest

import graphgrad as gg

from .making import model_of, node, onnx


@pytest.fixture
def recurrent(tmp_path, rng):
    """The path of an LSTM over five steps, with outputs of two kinds."""
    weights = {"w": (1, 16, 3), "r": (1, 16, 4), "b": (1, 32), "v": (4, 2)}
    drawn = {n: rng.normal(size=s).astype("float32") for n, s in weights.items()}
    drawn["first"] = np.array([0])
    nodes = [
        node("Transpose", ["x"], ["rows"], perm=[1, 0, 2]),
        node("LSTM", ["rows", "w", "r", "b"], ["", "last"], hidden_size=4),
        node("Squeeze", ["last", "first"], ["h"]),
        node("MatMul", ["h", "v"], ["logits"]),
        node("ArgMax", ["logits"], ["class"], axis=1),
        node("Softmax", ["logits"], ["chance"], axis=1),
    ]
    outputs = {"logits": ["N", 2], "chance": ["N", 2]}
    model = model_of(nodes, {"x": ["N", 5, 3]}, outputs, drawn)
    model.graph.output.insert(0, onnx.helper.make_tensor_value_info("class", 7, ["N", 1]))
    onnx.save(model, tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("method", ["lrp", "deeplift"])
def test_recurrent_layers_are_step_by_step_without_being_asked(method, count, recurrent, rng):
    x = rng.normal(size=(count, 5, 3)).astype("float32")
    found = gg.attribute(gg.onnx.load(recurrent), x, method, output="logits", target=1)
    asked = gg.onnx.load(recurrent, unroll=True)
    expected = gg.attribute(asked, x, method, output="logits", target=1)
    np.testing.assert_array_equal(found.value, expected.value)
    assert abs(found.balance["rest"]) < 1e-5
    assert asked.unrolled() is asked


def test_what_the_file_does_not_say_stays(recurrent, rng):
    x = rng.normal(size=(2, 5, 3)).astype("float32")
    marked = gg.onnx.load(recurrent)
    marked.graph.mark(gg.select.op("MatMul"), gg.rules.scale(2.0))
    for model in (
        marked,
        gg.onnx.load(recurrent, trainable=True),
        gg.onnx.load(onnx.load(recurrent)),
    ):
        assert model.unrolled() is model
        with pytest.raises(gg.GradientError, match="Scan"):
            gg.attribute(model, x, "lrp", output="logits", target=1)


def test_of_several_outputs_the_first_floating_one(recurrent, rng):
    x = rng.normal(size=(2, 5, 3)).astype("float32")
    model = gg.onnx.load(recurrent)
    found = gg.attribute(model, x, "gradient", target=1)
    named = gg.attribute(model, x, "gradient", target=1, output="logits")
    np.testing.assert_array_equal(found.value, named.value)
    assert found.note == "of output 'logits'; output= names another: 'chance'"
    assert found.note in repr(found)
    assert not named.note
    with pytest.raises(gg.GradientError, match="floating output"):
        gg.attribute(model, x, "gradient", output="class")
