"""Models of ONNX as graphs: names, weights, what is known, functions, control flow."""

import numpy as np
import pytest

import graphgrad as gg

from .making import BOOL, FLOAT, INT64, graph_of, mlp, model_of, node, onnx


def test_names_scopes_and_order_are_those_of_the_file(rng):
    model, weights = mlp(rng)
    found = gg.onnx.load(model)
    named = [n.name for n in found.graph.nodes if n._name]
    assert [n for n in named if "/" in n] == ["body/fc1/Gemm", "body/act/Relu", "head/MatMul__0"]
    assert {"x", *weights} < set(named)
    assert list(found.inputs) == ["x"]
    assert found.outputs["y"] is found["y"]
    assert found["a"].name == "body/act/Relu:0"
    x = rng.normal(size=(5, 3)).astype("float32")
    h = np.maximum(x @ weights["fc1.weight"] + weights["fc1.bias"], 0)
    np.testing.assert_allclose(found(x), h @ weights["fc2.weight"], rtol=1e-5)


def test_a_loaded_model_takes_rules(rng):
    """The guided ReLU changes the gradient, and is what it is in a graph built by hand."""
    model, weights = mlp(rng)
    x = rng.normal(size=(5, 3)).astype("float32")
    found = gg.onnx.load(model)
    (plain,) = gg.gradients(gg.sum(found["y"]), [found.inputs["x"]])
    found.graph.mark(gg.select.op("Relu"), gg.rules.guided())
    (guided,) = gg.gradients(gg.sum(found["y"]), [found.inputs["x"]])
    h = x @ weights["fc1.weight"] + weights["fc1.bias"]
    back = np.ones((5, 2), "float32") @ weights["fc2.weight"].T
    wanted = (back * (h > 0) * (back > 0)) @ weights["fc1.weight"].T
    a, b = gg.evaluate([plain, guided], {found.inputs["x"]: x})
    np.testing.assert_allclose(b, wanted, rtol=1e-5, atol=1e-6)
    assert np.abs(a - b).max() > 0.1


def test_weights_are_variables_where_asked_for(rng):
    model, _ = mlp(rng)
    found = gg.onnx.load(model, trainable=["fc1.*"])
    variables = {v.node.name for v in found.graph.variables.trainable}
    assert variables == {"fc1.weight", "fc1.bias"}
    assert len(gg.onnx.load(model, trainable=True).graph.variables.trainable) == 3
    assert len(gg.onnx.load(model).graph.variables.trainable) == 0
    with pytest.raises(gg.FileError, match="no weight is called 'fc3"):
        gg.onnx.load(model, trainable=["fc3*"])


def test_lengths_that_are_known_only_when_run(rng):
    """What exporters write to keep a batch: Shape, Gather, Concat, Reshape, Expand, Range."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "axis"], ["n1"]),
        node("Concat", ["n1", "rest"], ["shape"], axis=0),
        node("Reshape", ["x", "shape"], ["flat"]),
        node("Concat", ["n1", "six"], ["wide"], axis=0),
        node("Expand", ["row", "wide"], ["rows"]),
        node("Add", ["flat", "rows"], ["y"]),
    ]
    weights = {
        "zero": np.array(0),
        "axis": np.array([0]),
        "rest": np.array([-1]),
        "six": np.array([6]),
        "row": np.ones((1, 6), "float32"),
    }
    model = gg.onnx.load(model_of(nodes, {"x": ["N", 2, 3]}, ["y"], weights))
    assert model.outputs["y"].shape == ("N", 6)
    x = rng.normal(size=(4, 2, 3)).astype("float32")
    np.testing.assert_allclose(model(x), x.reshape(4, 6) + 1)


def test_a_number_that_has_to_be_known_says_what_it_is_made_of():
    nodes = [node("Add", ["k", "one"], ["s"]), node("Reshape", ["x", "s"], ["y"])]
    inputs = [({"x": ["N"]}, FLOAT), ({"k": [1]}, INT64)]
    model = model_of(nodes, inputs, ["y"], {"one": np.array([1])})
    with pytest.raises(gg.FileError, match=r"'s', must be known .* computed from 'k'"):
        gg.onnx.load(model)
    found = gg.onnx.load(model, known={"k": [5]}, shapes={"x": (6,)})
    assert found.outputs["y"].shape == (6,)
    assert list(found.inputs) == ["x"]


def test_unknown_operators_are_named_all_at_once():
    nodes = [
        node("Frobnicate", ["x"], ["a"]),
        node("NonMaxSuppression", ["a"], ["b"]),
        node("Frobnicate", ["b"], ["c"]),
        node("StringConcat", ["c", "c"], ["y"]),
    ]
    with pytest.raises(gg.FileError) as error:
        gg.onnx.load(model_of(nodes, {"x": [2]}, ["y"]))
    said = str(error.value)
    assert "Frobnicate, 2 times" in said
    assert "NonMaxSuppression, 1 time" in said
    assert "StringConcat, 1 time: it works on strings" in said


def test_an_attribute_that_nothing_reads_is_an_error():
    bad = node("Relu", ["x"], ["y"], strange=1)
    with pytest.raises(gg.FileError, match="strange"):
        gg.onnx.load(model_of([bad], {"x": [2]}, ["y"]))


@pytest.fixture(scope="module")
def leaky():
    """A model that calls a local function twice: y = max(x, slope * x)."""
    inside = [node("Constant", [], ["c"], value_float=0.5), node("Mul", ["x", "c"], ["s"])]
    inside.append(node("Max", ["x", "s"], ["y"]))
    versions = [onnx.helper.make_opsetid("", 21)]
    function = onnx.helper.make_function("own", "Leaky", ["x"], ["y"], inside, versions)
    calls = [node("Leaky", ["x"], ["h"], domain="own", name="first")]
    calls.append(node("Leaky", ["h"], ["y"], domain="own", name="second"))
    return model_of(calls, {"x": [3]}, ["y"], functions=[function], domains=[("own", 1)])


def test_functions_are_scopes_and_may_be_regions(leaky):
    x = np.array([-1.0, 0.5, 2.0], "float32")
    plain = gg.onnx.load(leaky)
    assert {"first/s", "first/y", "second/s", "second/y"} < {n.name for n in plain.graph.nodes}
    marked = gg.onnx.load(leaky, regions={"Leaky": lambda site, dy: 10 * dy})
    for model, slope in ((plain, [0.25, 1, 1]), (marked, [100, 100, 100])):
        np.testing.assert_allclose(model(x), np.maximum(x, 0.25 * x))
        (dx,) = gg.gradients(model["y"], [model.inputs["x"]])
        np.testing.assert_allclose(gg.evaluate(dx, {model.inputs["x"]: x}), slope)
    assert len(marked.graph.regions) == 2
    with pytest.raises(gg.FileError, match="Did you mean 'Leaky'"):
        gg.onnx.load(leaky, regions={"Leeky": "x"})


def test_if_is_a_choice(rng):
    then = graph_of([node("Mul", ["x", "x"], ["t"])], {}, ["t"])
    other = graph_of([node("Neg", ["x"], ["e"])], {}, ["e"])
    nodes = [node("If", ["p"], ["y"], then_branch=then, else_branch=other)]
    model = gg.onnx.load(model_of(nodes, [({"x": [2]}, FLOAT), ({"p": []}, BOOL)], ["y"]))
    (dx,) = gg.gradients(model["y"], [model.inputs["x"]])
    x = np.array([1.0, -3.0], "float32")
    assert model["y"].node.type == "Cond"
    for p, y, slope in ((True, x * x, 2 * x), (False, -x, -np.ones(2))):
        feeds = {model.inputs["x"]: x, model.inputs["p"]: p}
        found = gg.evaluate([model["y"], dx], feeds)
        np.testing.assert_allclose(found, [y, slope])


def test_loops_are_loops():
    """y = x doubled three times, and what was carried; a while loop up to a bound."""
    body = graph_of(
        [
            node("Identity", ["go"], ["on"]),
            node("Add", ["c", "c"], ["c2"]),
            node("Identity", ["c2"], ["row"]),
        ],
        [({"i": []}, INT64), ({"go": []}, BOOL), ({"c": [2]}, FLOAT)],
        ["on", "c2", "row"],
    )
    weights = {"three": np.array(3), "yes": np.array(True)}
    nodes = [node("Loop", ["three", "yes", "x"], ["y", "rows"], body=body)]
    model = gg.onnx.load(model_of(nodes, {"x": [2]}, ["y", "rows"], weights))
    x = np.array([1.0, 2.0], "float32")
    y, rows = model(x)
    np.testing.assert_allclose(y, 8 * x)
    np.testing.assert_allclose(rows, [2 * x, 4 * x, 8 * x])
    (dx,) = gg.gradients(model["y"], [model.inputs["x"]])
    np.testing.assert_allclose(gg.evaluate(dx, {model.inputs["x"]: x}), [8, 8])

    until = graph_of(
        [
            node("Add", ["c", "c"], ["c2"]),
            node("ReduceMax", ["c2"], ["most"], keepdims=0),
            node("Less", ["most", "bound"], ["on"]),
        ],
        [({"i": []}, INT64), ({"go": []}, BOOL), ({"c": [2]}, FLOAT)],
        ["on", "c2"],
    )
    nodes = [node("Loop", ["", "yes", "x"], ["y"], body=until)]
    weights = {"bound": np.array(10, "float32"), "yes": np.array(True)}
    model = gg.onnx.load(model_of(nodes, {"x": [2]}, ["y"], weights))
    np.testing.assert_allclose(model(x), 8 * x)


def test_a_loop_that_collects_rows_is_counted_while_loading():
    """As TensorFlow writes loops: the condition compares a counter that is carried on."""
    body = graph_of(
        [
            node("Add", ["n", "one"], ["n2"]),
            node("Less", ["n2", "four"], ["on"]),
            node("Mul", ["c", "half"], ["c2"]),
            node("Identity", ["c2"], ["row"]),
        ],
        [({"i": []}, INT64), ({"go": []}, BOOL), ({"n": []}, INT64), ({"c": [2]}, FLOAT)],
        ["on", "n2", "c2", "row"],
    )
    weights = {"one": np.array(1), "four": np.array(4), "half": np.array(0.5, "float32")}
    weights |= {"yes": np.array(True), "start": np.array(1)}
    nodes = [node("Loop", ["", "yes", "start", "x"], ["n", "y", "rows"], body=body)]
    model = gg.onnx.load(model_of(nodes, {"x": [2]}, ["y", "rows"], weights))
    x = np.array([8.0, 16.0], "float32")
    y, rows = model(x)
    np.testing.assert_allclose(y, x / 8)
    np.testing.assert_allclose(rows, [x / 2, x / 4, x / 8])
    inputs = [({"x": [2]}, FLOAT), ({"start": []}, INT64)]
    del weights["start"]
    with pytest.raises(gg.FileError, match="it collects rows while a condition holds"):
        gg.onnx.load(model_of(nodes, inputs, ["y", "rows"], weights))


def test_scan_goes_over_rows():
    body = graph_of(
        [node("Add", ["s", "r"], ["t"]), node("Mul", ["t", "r"], ["o"])],
        {"s": [2], "r": [2]},
        ["t", "o"],
    )
    nodes = [node("Scan", ["s0", "x"], ["last", "ys"], body=body, num_scan_inputs=1)]
    weights = {"s0": np.zeros(2, "float32")}
    model = gg.onnx.load(model_of(nodes, {"x": [3, 2]}, ["last", "ys"], weights))
    x = np.arange(6, dtype="float32").reshape(3, 2)
    last, ys = model(x)
    np.testing.assert_allclose(last, x.sum(0))
    np.testing.assert_allclose(ys, x.cumsum(0) * x)


def test_batch_norm_in_training_gives_new_moments(rng):
    x = rng.normal(size=(4, 3, 5)).astype("float32")
    weights = {"g": np.full(3, 2, "float32"), "b": np.ones(3, "float32")}
    weights |= {"m": np.full(3, 0.5, "float32"), "v": np.full(3, 4, "float32")}
    names = ["x", "g", "b", "m", "v"]
    made = node("BatchNormalization", names, ["y", "m2", "v2"], training_mode=1, momentum=0.9)
    model = gg.onnx.load(model_of([made], {"x": [4, 3, 5]}, ["y", "m2", "v2"], weights))
    y, mean, variance = model(x)
    now, spread = x.mean((0, 2)), x.var((0, 2))
    np.testing.assert_allclose(mean, 0.45 + 0.1 * now, rtol=1e-5)
    np.testing.assert_allclose(variance, 3.6 + 0.1 * spread, rtol=1e-5)
    scaled = (x - now[:, None]) / np.sqrt(spread[:, None] + 1e-5)
    np.testing.assert_allclose(y, 2 * scaled + 1, rtol=1e-4, atol=1e-5)


def test_recurrent_layers_may_be_built_step_by_step(rng):
    """The same numbers, as a loop and without one."""
    weights = {
        "w": rng.normal(size=(2, 12, 2)).astype("float32"),
        "r": rng.normal(size=(2, 12, 3)).astype("float32"),
        "b": rng.normal(size=(2, 24)).astype("float32"),
    }
    names = ["x", "w", "r", "b"]
    made = node("LSTM", names, ["y", "h"], hidden_size=3, direction="bidirectional")
    model = model_of([made], {"x": [5, 4, 2]}, ["y", "h"], weights)
    looped, built = gg.onnx.load(model), gg.onnx.load(model, unroll=True)
    types = [{n.type for n in m.graph.nodes} for m in (looped, built)]
    assert ["Scan" in found for found in types] == [True, False]
    x = rng.normal(size=(5, 4, 2)).astype("float32")
    for a, b in zip(looped(x), built(x), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_bounds_statistics_divisors_and_literals_are_no_weights():
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.normal(size=(2, 2, 1, 1)),
        **{name: rng.uniform(1, 2, size=2) for name in ("scale", "b", "mean", "var")},
        "lo": np.array(0.0),
        "hi": np.array(6.0),
        "half": np.array(0.5),
        "by": np.ones((2, 1, 1)),
        "gain": rng.normal(size=(2, 1, 1)),
    }
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("BatchNormalization", ["c", "scale", "b", "mean", "var"], ["n"]),
        node("Clip", ["n", "lo", "hi"], ["r"]),
        node("Mul", ["r", "half"], ["h"]),
        node("Div", ["h", "by"], ["d"]),
        node("Mul", ["gain", "d"], ["y"]),
    ]
    weights = {k: np.asarray(v, "float32") for k, v in weights.items()}
    model = model_of(nodes, {"x": (1, 2, 4, 4)}, {"y": (1, 2, 4, 4)}, weights)
    found = gg.onnx.load(model, trainable=True)
    assert found.trainable == {
        "w": "Conv input 1",
        "scale": "BatchNormalization input 1",
        "b": "BatchNormalization input 2",
        "gain": "Mul, a scale",
    }
    assert {v.node.name for v in found.graph.variables.trainable} == found.trainable.keys()
    assert gg.onnx.load(model, trainable=["var", "h*"]).trainable == {
        "var": "named",
        "hi": "named",
        "half": "named",
    }
    assert gg.onnx.load(model).trainable == {}


def test_what_is_read_as_a_statistic_too_stays_a_constant():
    weights = {"w": np.ones((2, 2, 1, 1), "float32"), "b": np.ones(2, "float32")}
    nodes = [
        node("Conv", ["x", "w"], ["c"]),
        node("BatchNormalization", ["c", "b", "b", "b", "b"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, 2, 4, 4)}, {"y": (1, 2, 4, 4)}, weights)
    assert gg.onnx.load(model, trainable=True).trainable == {"w": "Conv input 1"}


def test_arithmetic_on_lengths_is_settled_while_loading(rng):
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "zero", "one"], ["n"]),
        node("Div", ["n", "two"], ["half"]),
        node("Sub", ["n", "half"], ["rest"]),
        node("Max", ["rest", "one"], ["most"]),
        node("Slice", ["x", "half", "n", "zero"], ["later"]),
        node("Concat", ["most", "three"], ["shape"], axis=0),
        node("ConstantOfShape", ["shape"], ["zeros"]),
        node("Squeeze", ["n", "zero"], ["count"]),
        node("Range", ["start", "count", "by"], ["places"]),
        node("Cast", ["places"], ["numbers"], to=1),
    ]
    weights = {name: np.array([n]) for n, name in enumerate(("zero", "one", "two", "three"))}
    weights |= {"start": np.array(0), "by": np.array(1)}
    names = ["later", "zeros", "numbers"]
    model = gg.onnx.load(model_of(nodes, {"x": ["N", 2]}, names, weights))
    assert model.outputs["zeros"].shape == ("max(N - N//2, 1)", 3)
    assert model.outputs["numbers"].shape == ("N",)
    for n in (0, 1, 5):
        x = rng.normal(size=(n, 2)).astype("float32")
        later, zeros, numbers = model(x)
        np.testing.assert_array_equal(later, x[n // 2 :])
        np.testing.assert_array_equal(zeros, np.zeros((max(n - n // 2, 1), 3)))
        np.testing.assert_array_equal(numbers, np.arange(n))


def test_a_length_that_may_be_below_0_is_no_place_to_cut_at():
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Sub", ["s", "two"], ["end"]),
        node("Slice", ["x", "zero", "end"], ["y"]),
    ]
    model = model_of(nodes, {"x": ["N"]}, ["y"], {"two": np.array([2]), "zero": np.array([0])})
    with pytest.raises(gg.FileError, match=r"slices .* only known at run time: 0, N - 2"):
        gg.onnx.load(model)


def test_lengths_that_nobody_named_are_never_one(rng):
    model = model_of([node("Shape", ["x"], ["s"])], {"x": ["?", "?"]}, ["s"], {})
    x = gg.onnx.load(model).inputs["x"]
    assert x.shape[0] != x.shape[1]
