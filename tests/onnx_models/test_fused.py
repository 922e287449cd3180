"""Operators of `com.microsoft`, against onnxruntime: alone, and in files that it optimised."""

import itertools

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import FileError

from .making import FLOAT, info, node, onnx
from .test_differentiate import QUIET, near, onnxruntime, run

MS = "com.microsoft"
INT32 = 6


def floats(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype("float32")


def ints(*rows):
    return np.array(rows[0] if len(rows) == 1 else rows, "int32")


X, HALF = floats(2, 3, 8), floats(1, 1, 8)
ROW, ROWS, MATRIX = floats(8), floats(24), floats(8, 24)
Q, K, V = floats(2, 3, 8), floats(2, 4, 8), floats(2, 4, 6)
IMAGE, FILTERS = floats(1, 2, 6, 6), floats(3, 2, 3, 3)
MASKS = [ints(2, 3), ints([[1, 0, 1], [1, 1, 0]]), ints(floats(2, 3, 3) > 0)]
MASKS += [ints([[0, 0, 0], [1, 1, 0]]), ints(2, 3, 1, 0)]
HEADS = {"num_heads": 2}
PAST = floats(2, 2, 2, 2, 4)
WORDS = ints([1, 2, 3], [4, 5, 0])


def fused(operator, inputs, outputs=("y",), **attributes):
    """A model of one operator, its inputs by name; None is one left out."""
    given = {f"i{k}": a for k, a in enumerate(inputs) if a is not None}
    names = [f"i{k}" if a is not None else "" for k, a in enumerate(inputs)]
    made = node(operator, names, list(outputs), domain=MS, **attributes)
    types = {np.dtype("float32"): FLOAT, np.dtype("int32"): INT32}
    graph = onnx.helper.make_graph(
        [made],
        "g",
        [info(n, types[a.dtype], a.shape) for n, a in given.items()],
        [info(o, INT32 if o == "count" else FLOAT, None) for o in outputs if o],
    )
    versions = [onnx.helper.make_opsetid(d, v) for d, v in (("", 17), (MS, 1))]
    return onnx.helper.make_model(graph, opset_imports=versions, ir_version=8), given


def check(operator, inputs, outputs=("y",), **attributes):
    """It is what onnxruntime computes."""
    model, given = fused(operator, inputs, outputs, **attributes)
    session = onnxruntime.InferenceSession(model.SerializeToString(), QUIET)
    found = gg.onnx.load(model)(*given.values())
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, session.run(None, given), strict=True):
        assert a.dtype == b.dtype
        near(a, b)


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes"),
    [
        ("Gelu", [X], {}),
        ("QuickGelu", [X], {}),
        ("QuickGelu", [X], {"alpha": 1.0}),
        ("BiasGelu", [X, ROW], {}),
        ("FastGelu", [X], {}),
        ("FastGelu", [X, ROW], {}),
        ("SkipLayerNormalization", [X, X[:1], ROW], {}),
        ("SkipLayerNormalization", [X, X[0], ROW, None, ROW], {"epsilon": 1e-3}),
        ("TransposeMatMul", [X[0], MATRIX.T.copy()], {"transB": 1}),
        ("FusedMatMul", [ROW, MATRIX], {"transA": 1}),
        ("FusedConv", [IMAGE, FILTERS, ROW[:3], floats(1, 3, 4, 4)], {"activation": "Relu"}),
        ("FusedConv", [IMAGE, FILTERS, None, floats(1, 3, 4, 4)], {"activation": "Relu"}),
    ],
)
def test_an_operator_is_that_of_onnxruntime(operator, inputs, attributes):
    check(operator, inputs, **attributes)


def test_sums_before_a_normalisation_are_an_output():
    outputs = ("y", "", "", "sum")
    check("SkipLayerNormalization", [X, HALF + X, ROW, ROW, ROW], outputs)
    check("SkipSimplifiedLayerNormalization", [X, HALF + X, ROW, ROW], outputs, epsilon=1e-3)


@pytest.mark.parametrize(("a", "b", "c", "d"), list(itertools.product((0, 1), repeat=4)))
def test_factors_are_turned(a, b, c, d):
    x, y = floats(2, 3, 4), floats(2, 4, 5)
    x, y = x.swapaxes(1, 2) if a else x, y.swapaxes(1, 2) if b else y
    x, y = np.moveaxis(x, -2, 0) if c else x, np.moveaxis(y, -2, 0) if d else y
    turns = {"transA": a, "transB": b, "transBatchA": c, "transBatchB": d}
    check("FusedMatMul", [np.ascontiguousarray(x), np.ascontiguousarray(y)], alpha=0.5, **turns)


@pytest.mark.parametrize(
    ("activation", "numbers"),
    [
        ("Relu", {}),
        ("Tanh", {}),
        ("Sigmoid", {}),
        ("LeakyRelu", {"alpha": 0.2}),
        ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}),
        ("Elu", {"alpha": 0.5}),
        ("Selu", {"alpha": 1.1, "gamma": 1.2}),
        ("Softplus", {}),
        ("Softsign", {}),
        ("ThresholdedRelu", {"alpha": 0.3}),
        ("Clip", {"min": -0.5, "max": 0.5}),
        ("HardSwish", {}),
    ],
)
def test_activations_behind_products_and_convolutions(activation, numbers):
    if activation not in ("Clip", "HardSwish"):
        said = {f"activation_{n}": v for n, v in numbers.items()}
        product = {"alpha": 0.5, "beta": 2.0, "transB": 1}
        check(
            "FusedGemm",
            [X[0], MATRIX.T[:5].copy(), ROW[:5]],
            activation=activation,
            **product,
            **said,
        )
    if activation in ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish"):
        said = {"activation_params": list(numbers.values())} if numbers else {}
        windows = {"pads": [1, 1, 1, 1], "strides": [2, 2], "group": 1}
        check("FusedConv", [IMAGE, FILTERS, ROW[:3]], activation=activation, **windows, **said)


@pytest.mark.parametrize("mask", [None, *MASKS])
@pytest.mark.parametrize(
    "options", [{}, {"unidirectional": 1}, {"scale": 0.3}, {"mask_filter_value": -5.0}]
)
def test_attention_is_that_of_onnxruntime(mask, options):
    check("Attention", [X, MATRIX, ROWS, mask], **HEADS, **options)
    if mask is None or mask.shape != (4,):
        check("MultiHeadAttention", [Q, X, X, ROWS, mask], **HEADS, **options)


def test_attention_with_what_is_optional():
    check("Attention", [X, MATRIX], **HEADS)
    check("Attention", [X, MATRIX[:, :22], ROWS[:22]], **HEADS, qkv_hidden_sizes=[8, 8, 6])
    check("Attention", [X, MATRIX, ROWS], ("y", "present"), **HEADS)
    mask = ints([1, 0, 1, 1, 1], [1, 1, 0, 1, 1])
    for masked in (None, mask):
        inputs = [X, MATRIX, ROWS, masked, PAST]
        check("Attention", inputs, ("y", "present"), **HEADS, unidirectional=1)
    for bias in (floats(2, 2, 3, 3), floats(1, 2, 3, 3), floats(1, 1, 3, 3)):
        check("Attention", [X, MATRIX, ROWS, None, None, bias], **HEADS)
    outputs = ("y", "keys", "values")
    check("MultiHeadAttention", [Q, K, V, ROWS[:22]], **HEADS)
    check("MultiHeadAttention", [Q, X, X, ROWS], outputs, **HEADS)
    check("MultiHeadAttention", [Q, floats(2, 2, 4, 4), floats(2, 2, 4, 4), ROWS], **HEADS)
    inputs = [Q, X, X, ROWS, None, floats(1, 2, 3, 5), *PAST]
    check("MultiHeadAttention", inputs, outputs, **HEADS)
    inputs = [Q, X, X, ROWS, mask, floats(2, 1, 3, 5), *PAST]
    check("MultiHeadAttention", inputs, outputs, **HEADS, unidirectional=1)


@pytest.mark.parametrize("causal", [0, 1])
def test_open_lengths_and_keys_of_before(causal, tmp_path):
    made = node(
        "MultiHeadAttention",
        ["q", "k", "v", "", "", "", "old_k", "old_v"],
        ["y", "keys", "values"],  # onnxruntime keeps those of before where both are asked for
        domain=MS,
        num_heads=2,
        unidirectional=causal,
    )
    shapes = {n: ["N", "T", 8] for n in "qkv"} | {n: ["N", 2, "P", 4] for n in ("old_k", "old_v")}
    graph = onnx.helper.make_graph(
        [made],
        "g",
        [info(n, FLOAT, shape) for n, shape in shapes.items()],
        [info(n, FLOAT, None) for n in ("y", "keys", "values")],
    )
    versions = [onnx.helper.make_opsetid(d, v) for d, v in (("", 17), (MS, 1))]
    model = onnx.helper.make_model(graph, opset_imports=versions, ir_version=8)
    gg.onnx.differentiate(model, "y", "k", kind="jvp", path=tmp_path / "d.onnx")
    session = onnxruntime.InferenceSession(model.SerializeToString(), QUIET)
    for sizes in ({"N": 2, "T": 3, "P": 2}, {"N": 1, "T": 4, "P": 1}):
        feeds = {
            n: floats(*[sizes.get(d, d) for d in s], seed=ord(n[-1])) for n, s in shapes.items()
        }
        direction = floats(*feeds["k"].shape, seed=9)
        found = run(tmp_path / "d.onnx", {**feeds, "direction/k": direction})
        for output, value in zip(("y", "keys", "values"), session.run(None, feeds), strict=True):
            near(found[output], value)
        moved = [
            session.run(["y"], {**feeds, "k": feeds["k"] + h * direction})[0] for h in (1e-2, -1e-2)
        ]
        np.testing.assert_allclose((moved[0] - moved[1]) / 2e-2, found["jvp/y"], atol=1e-3)


def test_packed_heads_are_those_apart():
    parts = [floats(2, 3, 2, 4, seed=i) for i in range(3)]
    apart = [part.reshape(2, 3, 8) for part in parts]
    expected = gg.onnx.load(fused("MultiHeadAttention", apart, **HEADS)[0])(*apart)
    for packed in ([np.stack(parts, 3)], [apart[0], np.stack(parts[1:], 3)]):
        found = gg.onnx.load(fused("MultiHeadAttention", packed, **HEADS)[0])(*packed)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kinds", [None, ints([0, 1, 0], [1, 1, 0])])
@pytest.mark.parametrize("places", [None, ints([2, 1, 0], [0, 1, 2])])
@pytest.mark.parametrize("mask", [None, ints([1, 1, 0], [1, 1, 1])])
def test_embeddings(kinds, places, mask):
    tables = [floats(9, 8), floats(5, 8), None if kinds is None else floats(2, 8)]
    inputs = [WORDS, kinds, *tables, ROW, ROW, mask, places]
    check("EmbedLayerNormalization", inputs, ("y", "count", "sum"), epsilon=1e-3)


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes", "said"),
    [
        ("Attention", [X, MATRIX, ROWS], {"do_rotary": 1}, "do_rotary is not supported"),
        ("Attention", [X, MATRIX, ROWS, ints([1] * 8)], {}, r"mask is int32\[8\], for 2 rows"),
        ("MultiHeadAttention", [Q, K, V], {"unidirectional": 1}, "3 queries behind 0 for 4 keys"),
        ("MultiHeadAttention", [Q, K, V, *[None] * 5, ints(1)], {}, "past_sequence_length"),
        ("MatMulNBits", [X, ROW], {}, "differentiate the model before it is optimised"),
        ("FusedGemm", [X[0], MATRIX], {"activation": "Cos"}, "activation 'Cos' is unknown"),
        (
            "FusedConv",
            [IMAGE, FILTERS],
            {"activation": "LeakyRelu", "activation_params": [0.1, 2.0]},
            r"activation LeakyRelu has 2 numbers",
        ),
    ],
)
def test_what_is_not_covered_is_refused_by_name(operator, inputs, attributes, said):
    heads = HEADS if "Attention" in operator else {}
    with pytest.raises(FileError, match=said):
        gg.onnx.load(fused(operator, inputs, **heads, **attributes)[0])


@pytest.mark.parametrize("outputs", [("y", "mean"), ("y", "", "deviation")])
def test_statistics_of_training_are_refused(outputs):
    model = fused("SkipLayerNormalization", [X, X, ROW, ROW], outputs)[0]
    with pytest.raises(FileError, match="mean and deviation, which are for training"):
        gg.onnx.load(model)


def simplified(outputs, scale, **attributes):
    """A model of SimplifiedLayerNormalization, which onnxruntime has in ONNX's own domain."""
    model, given = fused("SimplifiedLayerNormalization", [X, scale], outputs, **attributes)
    model.graph.node[0].domain = ""
    return model, given


def test_several_axes_are_normalised_together():
    model, given = simplified(["y"], X[0], axis=1, epsilon=1e-3)
    session = onnxruntime.InferenceSession(model.SerializeToString(), QUIET)
    near(gg.onnx.load(model)(*given.values()), session.run(None, given)[0])
    with pytest.raises(FileError, match="the deviation, which is for training"):
        gg.onnx.load(simplified(["y", "deviation"], ROW)[0])


def optimised(path, level="ORT_ENABLE_EXTENDED"):
    """What onnxruntime makes of a file, beside it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(path.with_suffix(".fast.onnx"))
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(path), options)
    return path.with_suffix(".fast.onnx")


def operators_of(path):
    return {n.op_type for n in onnx.load(path).graph.node if n.domain == MS}


@pytest.fixture
def saved(tmp_path):
    """A small model of PyTorch as a file, with what it is fed."""
    torch = pytest.importorskip("torch")
    from .optimised import FUSED, feeds_of

    def save(name):
        torch.manual_seed(0)
        make, axes = FUSED[name]
        feeds = feeds_of(name)
        args = tuple(torch.tensor(a) for a in feeds.values())
        options = {"input_names": list(feeds), "output_names": ["y"], "opset_version": 17}
        torch.onnx.export(
            make().eval(),
            args,
            str(tmp_path / "m.onnx"),
            dynamic_axes=axes,
            dynamo=False,
            **options,
        )
        return tmp_path / "m.onnx", feeds

    return save


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("bert", {"BiasGelu", "FusedMatMul"}),
        ("bert_fixed", {"SkipLayerNormalization", "Gelu"}),
        ("vit", {"BiasGelu", "FusedMatMul"}),
        ("cnn", {"FusedConv", "FusedGemm"}),
    ],
)
def test_an_optimised_file_has_value_and_gradient_of_the_original(saved, name, there, tmp_path):
    path, feeds = saved(name)
    fast = optimised(path)
    assert operators_of(fast) >= there
    before, after = (gg.onnx.load(p, trainable=True).graph.variables for p in (path, fast))
    assert sum(v.size for v in before) == sum(v.size for v in after)
    stored = [{t.name for t in onnx.load(p).graph.initializer} for p in (path, fast)]
    wrt = "x" if "x" in feeds else sorted(n for n in stored[0] & stored[1] if "bias" in n)
    for given in (path, fast):
        gg.onnx.differentiate(given, "y", wrt, path=given.with_suffix(".d.onnx"))
    expected, found = (run(p.with_suffix(".d.onnx"), feeds) for p in (path, fast))
    assert any(n.startswith("gradient/") for n in found)
    for output, value in expected.items():
        near(found[output], value)


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore")
def test_the_optimisers_attention_and_embeddings(saved, tmp_path):
    optimizer = pytest.importorskip("onnxruntime.transformers.optimizer")
    path, feeds = saved("bert")
    model = optimizer.optimize_model(str(path), "bert", num_heads=2, hidden_size=16, opt_level=0)
    model.save_model_to_file(str(tmp_path / "fast.onnx"))
    assert operators_of(tmp_path / "fast.onnx") >= {"Attention", "EmbedLayerNormalization"}
    expected = run(path, feeds)["y"]
    loaded = gg.onnx.load(tmp_path / "fast.onnx")
    near(loaded(*[feeds[name] for name in loaded.inputs]), expected)
    for given in (path, tmp_path / "fast.onnx"):
        gg.onnx.differentiate(given, "y", "e.weight", path=given.with_suffix(".d.onnx"))
    before = run(path.with_suffix(".d.onnx"), feeds)
    near(run(tmp_path / "fast.d.onnx", feeds)["gradient/e.weight"], before["gradient/e.weight"])


@pytest.mark.filterwarnings("ignore")
def test_blocked_layouts_are_refused(saved):
    path, _ = saved("cnn")
    with pytest.raises(FileError, match=r"com.microsoft.nchwc.*before it is optimised"):
        gg.onnx.load(optimised(path, "ORT_ENABLE_ALL"))
