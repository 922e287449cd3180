"""What a file says beside its nodes is kept, shown, saved, and written again."""

import pickle

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.properties import read_properties, stored_properties
from graphgrad.onnx.loading.notes import FEW, _plain, _sentence

from .making import graph_of, model_of, node, onnx

STORY = {"task": "classify", "names": "{0: 'cat'}", "graphgrad.made_up": "by whom"}


def told(rng):
    """A convolution and a clip, of a file that says who made it, what it is and what for."""
    weights = {
        "conv.w_0": rng.normal(size=(2, 1, 3, 3)).astype("float32"),
        "conv.bias": rng.normal(size=2).astype("float32"),
        "gain": rng.normal(size=(2, 1, 1)).astype("float32"),
    }
    nodes = [
        node("Conv", ["x", "conv.w_0", "conv.bias"], ["c"], name="/conv/Conv", pads=[1, 1, 1, 1]),
        node("LeakyRelu", ["c"], ["a"], name="/act/LeakyRelu", alpha=0.1),
        node("Mul", ["gain", "a"], ["y"], name="/Mul_0"),
    ]
    proto = model_of(nodes, {"x": ["N", 1, 4, 4]}, ["y"], weights)
    proto.producer_name, proto.producer_version = "acme", "2.1"
    proto.domain, proto.model_version, proto.doc_string = "com.acme", 7, "finds cats"
    for key, text in STORY.items():
        proto.metadata_props.add(key=key, value=text)
    return proto


def test_what_the_file_says_is_kept(rng):
    model = gg.onnx.load(told(rng))
    said = model.properties
    assert said is model.graph.properties
    assert (said.format, said.format_version, said.opset) == ("ONNX", 10, {"": 21})
    assert (said.producer, said.producer_version, said.made_by) == ("acme", "2.1", "acme 2.1")
    assert (said.domain, said.model_version, said.doc) == ("com.acme", 7, "finds cats")
    assert said.metadata == STORY == model.metadata
    assert said.rows() == [
        ("format", "ONNX, IR version 10"),
        ("opsets", "ai.onnx 21"),
        ("producer", "acme 2.1"),
        ("domain", "com.acme"),
        ("model version", "7"),
        ("description", "finds cats"),
    ]
    assert said.short() == "ONNX by acme 2.1, ai.onnx 21"


def test_operators_have_the_names_and_attributes_of_the_file(rng):
    said = gg.onnx.load(told(rng)).properties
    assert {name: op.type for name, op in said.operators.items()} == {
        "conv/Conv": "Conv",
        "act/LeakyRelu": "LeakyRelu",
        "Mul_0": "Mul",
    }
    assert said.operators["conv/Conv"].attributes == {"pads": (1, 1, 1, 1)}
    assert said.operators["act/LeakyRelu"].attributes == {"alpha": 0.1}
    schema = onnx.defs.get_schema("Conv", 21, "").doc
    assert said.says["Conv"] in " ".join(schema.split())
    assert said.weights == {"conv.w_0": "W", "conv.bias": "B", "gain": "A"}


def test_functions_graphs_and_arrays_among_attributes():
    double = onnx.helper.make_function(
        "com.acme", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [], ["k"]
    )
    double.opset_import.extend([onnx.helper.make_opsetid("", 21)])
    branches = {
        f"{name}_branch": graph_of([node(op, ["t"], [name])], {}, [name])
        for name, op in (("then", "Relu"), ("else", "Neg"))
    }
    nodes = [
        node("Twice", ["x"], ["t"], name="twice", domain="com.acme", k=3),
        node("If", ["c"], ["z"], name="choice", **branches),
        node("ConstantOfShape", ["s"], ["f"], value=onnx.numpy_helper.from_array(np.ones(1))),
    ]
    inputs = [({"x": [2]},), ({"c": []}, 9), ({"s": [1]}, 7)]
    proto = model_of(nodes, inputs, ["z"], domains=[("com.acme", 1)], functions=[double])
    said = gg.onnx.load(proto, known={"s": [3]}).properties
    assert said.operators["twice"] == ("com.acme.Twice", {"k": 3})
    assert said.operators["choice"].attributes == dict.fromkeys(branches, "a graph of 1 node")
    assert said.operator_sets == "ai.onnx 21, com.acme 1"
    assert "com.acme.Twice" not in said.says
    assert not [op for op in said.operators.values() if op.type in ("Relu", "Neg")]


def test_weights_are_called_as_the_first_operator_that_has_a_word_for_them():
    plus = onnx.helper.make_function(
        "com.acme", "Plus", ["a", "k"], ["b"], [node("Add", ["a", "k"], ["b"])], []
    )
    plus.opset_import.extend([onnx.helper.make_opsetid("", 21)])
    weights = {name: np.ones(2, "float32") for name in ("u", "v", "w")}
    nodes = [
        node("Plus", ["x", "u"], ["a"], domain="com.acme"),
        node("Sum", ["v", "a", "w"], ["b"]),
        node("Sub", ["b", "w"], ["c"]),
        node("Div", ["w", "c"], ["y"]),
    ]
    proto = model_of(nodes, {"x": [2]}, ["y"], weights, domains=[("com.acme", 1)], functions=[plus])
    proto.graph.doc_string = "of dogs"
    said = gg.onnx.load(proto).properties
    assert said.weights["w"] == "B"
    assert "v" not in said.weights
    assert said.doc == "of dogs"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.arange(FEW), str([*range(FEW)])),
        (np.arange(FEW + 1), f"int64[{FEW + 1}]"),
        (b"a\xff", "a\ufffd"),
        ([b"a", (np.float32(0.1).item(),)], ("a", (0.1,))),
    ],
)
def test_attributes_are_plain(value, plain):
    assert _plain(value) == plain


@pytest.mark.parametrize(
    ("doc", "sentence"),
    [
        ("Up to 1.5\n times. More.", "Up to 1.5 times."),
        ("As this: x", "As this"),
        ("No end", "No end"),
    ],
)
def test_the_first_sentence_is_taken(doc, sentence):
    assert _sentence(doc) == sentence


def test_copies_pickles_and_files_have_it(rng, tmp_path):
    graph = gg.onnx.load(told(rng)).graph
    gg.save(tmp_path / "a.gg", graph)
    gg.save(tmp_path / "b.gg", gg.load(tmp_path / "a.gg").graph)
    for again in (
        graph.copy(),
        pickle.loads(pickle.dumps(graph)),
        gg.load(tmp_path / "b.gg").graph,
    ):
        assert again.properties == graph.properties
    assert (tmp_path / "a.gg").read_bytes() == (tmp_path / "b.gg").read_bytes()
    assert gg.Graph().copy().properties is None


def test_a_model_that_is_written_again_says_what_it_is_and_who_wrote_it(rng, tmp_path):
    model = gg.onnx.load(told(rng))
    gg.onnx.export(model.compile(), tmp_path / "again.onnx")
    again = gg.onnx.load(tmp_path / "again.onnx").properties
    assert (again.domain, again.model_version, again.doc) == ("com.acme", 7, "finds cats")
    assert again.made_by == f"graphgrad {gg.__version__}"
    assert {k: v for k, v in again.metadata.items() if not k.startswith("graphgrad.")} == {
        k: v for k, v in STORY.items() if not k.startswith("graphgrad.")
    }
    assert "graphgrad.made_up" not in again.metadata


def test_a_derivative_says_what_it_is_the_derivative_of(rng, tmp_path):
    path = tmp_path / "gradient.onnx"
    answer = gg.onnx.differentiate(told(rng), lambda outputs: gg.sum(outputs["y"]), "x", path=path)
    written = gg.onnx.load(path).properties
    assert written.doc == answer.properties.doc == "finds cats"
    assert "graphgrad.derivative" in written.metadata
    assert answer.properties.metadata["task"] == written.metadata["task"] == "classify"
    assert "graphgrad.derivative" not in answer.graph.properties.metadata


def test_printed_it_is_a_table(rng):
    model = gg.onnx.load(told(rng))
    rows = dict(row.split("  ", 1) for row in str(model).splitlines())
    rows = {name: text.strip() for name, text in rows.items()}
    assert rows["producer"] == "acme 2.1"
    assert rows["input x"] == "float32[N, 1, 4, 4]"
    assert rows["output y"] == "float32[N, 2, 4, 4]"
    assert rows["operators"] == "1 Conv, 1 LeakyRelu, 1 Mul"
    assert rows["metadata task"] == "classify"


def test_a_picture_takes_the_model_itself(rng):
    model = gg.onnx.load(told(rng))
    dot = gg.to_dot(model)
    assert dot == gg.to_dot(list(model.outputs.values()))
    assert "ONNX by acme 2.1, ai.onnx 21, 22 parameters" in dot
    assert "W f32[2,1,3,3]" in dot
    assert "bias f32[2]" in dot
    assert gg.summary(model).total.parameters == 22


def test_a_file_with_other_properties_is_refused(rng, tmp_path):
    graph = gg.onnx.load(told(rng)).graph
    for part in ("opset", "metadata", "says", "weights", "doc"):
        wrong = graph.copy()
        wrong.properties = wrong.properties._replace(**{part: {"a": 1.5}})
        gg.save(tmp_path / "a.gg", wrong)
        with pytest.raises(gg.FileError, match="of a model"):
            gg.load(tmp_path / "a.gg")
    right = stored_properties(graph.properties)
    for operators in ({"a": ("Conv",)}, {"a": ("Conv", 1)}, {"a": (1, {})}, {1: ("Conv", {})}):
        wrong = tuple(operators if value is right[9] else value for value in right)
        with pytest.raises(gg.FileError, match="operator"):
            read_properties(wrong)
    assert read_properties(right) == graph.properties
