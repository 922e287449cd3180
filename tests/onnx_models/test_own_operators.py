"""Operators whose meaning the caller says: a function of tensors, or a derivative of what stays."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import FileError

from .making import FLOAT, info, model_of, node, onnx
from .test_differentiate import near, run

MS, ACME = ("com.microsoft", 1), ("com.acme", 3)
QUICK = "com.microsoft.QuickGelu"


def model(operator, domain, rows="N", said=True, **attributes):
    """tanh of an operator of x @ w."""
    rng = np.random.default_rng(0)
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node(operator, ["h"], ["m"], domain=domain[0], name="/body/own", **attributes),
        node("Tanh", ["m"], ["y"]),
    ]
    weights = {"w": rng.normal(size=(3, 4)).astype("float32")}
    made = model_of(nodes, {"x": [rows, 3]}, ["y"], weights, 17, domains=[domain])
    made.ir_version = 8
    if said:
        made.graph.value_info.append(info("m", FLOAT, [rows, 4]))
    return made


def quick(node, dy, alpha=1.702):
    (x,) = node.inputs
    s = gg.nn.sigmoid(alpha * x)
    return dy * (s + alpha * x * s * (1 - s))


X = np.random.default_rng(1).normal(size=(5, 3)).astype("float32")


@pytest.mark.parametrize("kind", ["gradient", "jvp", "hvp", "jacobian"])
def test_an_opaque_operator_stays_and_has_the_gradient_given(kind, tmp_path):
    given = model("QuickGelu", MS, alpha=1.2)
    made = gg.onnx.differentiate(
        given, "y", "x", kind=kind, opaque={QUICK: quick}, path=tmp_path / "d.onnx"
    )
    proto = onnx.load(tmp_path / "d.onnx")
    onnx.checker.check_model(proto)
    (kept,) = (n for n in proto.graph.node if n.op_type == "QuickGelu")
    assert (kept.domain, kept.attribute[0].f) == ("com.microsoft", np.float32(1.2))
    direction = {} if kind in ("gradient", "jacobian") else {"direction/x": X[::-1].copy()}
    found = run(tmp_path / "d.onnx", {"x": X, **direction})
    gg.onnx.differentiate(given, "y", "x", kind=kind, path=tmp_path / "known.onnx")
    for name, value in run(tmp_path / "known.onnx", {"x": X, **direction}).items():
        near(found[name], value)
    with pytest.raises(gg.ExecutionError, match=r"QuickGelu is opaque: only an ONNX runtime"):
        made(X, *direction.values())


def test_versions_of_domains_stay(tmp_path):
    given = model("Magic", ACME, places=[1, 2], scale=0.5, how="fast")
    rule = lambda node, dy, places, scale, how: dy * scale  # noqa: E731
    gg.onnx.differentiate(
        given, "y", "x", opaque={"com.acme.Magic": rule}, path=tmp_path / "d.onnx"
    )
    proto = onnx.load(tmp_path / "d.onnx")
    assert {o.domain: o.version for o in proto.opset_import}["com.acme"] == 3
    (kept,) = (n for n in proto.graph.node if n.domain == "com.acme")
    said = {a.name: onnx.helper.get_attribute_value(a) for a in kept.attribute}
    assert said == {"places": [1, 2], "scale": 0.5, "how": b"fast"}


def test_a_form_is_built_and_written_as_operators(tmp_path):
    def magic(x, scale):
        return gg.sin(x) * scale

    given, forms = model("Magic", ACME, said=False, scale=0.5), {"com.acme.Magic": magic}
    made = gg.onnx.differentiate(given, "y", "x", forms=forms, path=tmp_path / "d.onnx")
    assert {n.domain for n in onnx.load(tmp_path / "d.onnx").graph.node} <= {"", "graphgrad"}
    w = onnx.numpy_helper.to_array(given.graph.initializer[0])
    h = X @ w
    y = np.tanh(0.5 * np.sin(h))
    found = run(tmp_path / "d.onnx", {"x": X})
    near(found["y"], y)
    near(found["gradient/x"], ((1 - y**2) * 0.5 * np.cos(h)) @ w.T)
    assert made.tensors["m"].name == "body/own:0"
    near(gg.onnx.load(given, forms=forms)(X), y)


def test_forms_take_what_is_left_out_and_go_before_what_is_known():
    def plus(x, bias, shift):
        assert bias is None
        return x + shift, x - shift

    nodes = [
        node("Two", ["x", "", "s"], ["a", "b"], domain="com.acme"),
        node("Round", ["b"], ["y"]),
    ]
    made = model_of(nodes, {"x": [2], "s": [2]}, ["a", "y"], domains=[ACME])
    forms = {"com.acme.Two": plus, "Round": lambda x: x * 2}
    a, y = gg.onnx.load(made, forms=forms)([1.0, 2.0], [0.25, 0.5])
    np.testing.assert_array_equal([a, y], [[1.25, 2.5], [1.5, 3.0]])


def test_a_local_function_may_have_a_form():
    body = onnx.helper.make_function(
        "pkg",
        "Block",
        ["a"],
        ["b"],
        [node("Neg", ["a"], ["b"])],
        [onnx.helper.make_opsetid("", 21)],
    )
    made = model_of(
        [node("Block", ["x"], ["y"], domain="pkg")],
        {"x": [1]},
        ["y"],
        functions=[body],
        domains=[("pkg", 1)],
    )
    assert gg.onnx.load(made)([2.0]) == [-2]
    assert gg.onnx.load(made, forms={"pkg.Block": lambda x: x * x})([2.0]) == [4]


def test_lengths_that_are_given_are_those_of_an_opaque_operator():
    given = model("Magic", ACME)
    rule = lambda node, dy: dy  # noqa: E731
    found = gg.onnx.load(given, opaque={"com.acme.Magic": rule})
    assert found["m"].shape == ("N", 4)
    found = gg.onnx.load(given, opaque={"com.acme.Magic": rule}, shapes={"x": (2, 3)})
    assert found["m"].shape == (2, 4)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        (
            {},
            FileError,
            r"com.acme.Magic, 1 time: the domain 'com.acme' is not supported; define it with",
        ),
        ({"forms": {"com.acme.Magik": abs}}, FileError, r"forms: it has no operator.*Magic"),
        ({"opaque": {"com.acme.Magic": 3}}, FileError, r"opaque: 'com.acme.Magic' has a function"),
        ({"forms": {"com.acme.Magic": lambda x: 3}}, FileError, r"own.*forms= gives returned 3"),
        ({"forms": {"com.acme.Magic": lambda: 3}}, FileError, r"own.*takes 0 positional"),
        (
            {"opaque": {"com.acme.Magic": abs}},
            FileError,
            r"does not declare the type of its output",
        ),
        ({"forms": {"Tanh": abs}, "opaque": {"Tanh": abs}}, FileError, r"'Tanh' is in both"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, error, said):
    with pytest.raises(error, match=said):
        gg.onnx.load(model("Magic", ACME, said=False), **options)


@pytest.mark.parametrize(
    ("rule", "error", "said"),
    [
        (lambda node, dy: (dy, dy), gg.GradientError, "returned 2 gradients for 1 inputs"),
        (lambda node, dy, scale: dy, TypeError, "scale"),
    ],
)
def test_a_wrong_vjp_is_said_with_its_operator(rule, error, said):
    with pytest.raises(error, match=said):
        gg.onnx.differentiate(model("Magic", ACME), "y", "x", opaque={"com.acme.Magic": rule})


def test_an_input_that_is_known_is_none_of_the_new_model(tmp_path):
    nodes = [node("Reshape", ["x", "shape"], ["r"]), node("Tanh", ["r"], ["t"])]
    nodes += [node("ReduceSum", ["t"], ["y"], keepdims=0)]
    given = model_of(nodes, {"x": [6]}, ["y"])
    given.graph.input.append(info("shape", 7, [2]))
    with pytest.raises(FileError, match=r"known=\{name: array\}"):
        gg.onnx.differentiate(given, "y", "x")
    made = gg.onnx.differentiate(given, "y", "x", known={"shape": [2, 3]}, path=tmp_path / "d.onnx")
    assert list(made.inputs) == ["x"]
    x = np.arange(6, dtype="float32") / 6
    near(run(tmp_path / "d.onnx", {"x": x})["gradient/x"], 1 - np.tanh(x) ** 2)
    loaded = gg.onnx.load(given, known={"shape": [2, 3]})
    with pytest.raises(gg.GraphError, match="known= applies to a file; for a loaded model"):
        gg.onnx.differentiate(loaded, "y", "x", known={"shape": [2, 3]})
