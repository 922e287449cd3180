"""Nets on grids as integers: what onnxruntime computes is what the net computes in training."""

from collections import Counter

import numpy as np
import pytest

import graphgrad as gg

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")
pytest.importorskip("sklearn")

from . import quantised  # noqa: E402

LAYERS = ("Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "FusedMatMul", "QLinearConv", "QGemm")
LAYERS += ("QLinearMatMul", "MatMulIntegerToFloat", "MatMulNBits")


@pytest.fixture(autouse=True)
def graph():
    with gg.Graph() as g:
        yield g


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def exported(f, path, **options):
    """The model, checked."""
    gg.onnx.export(f, path, quantised="qdq", **options)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    return model


def session(path, **entries):
    """It, with what the runtime makes of the model beside it."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = f"{path}.optimised"
    for key, value in entries.items():
        options.add_session_config_entry(f"session.{key}", value)
    return ort.InferenceSession(path, options, ["CPUExecutionProvider"])


def kernels(path):
    """How often each operator is in what the runtime made of a model."""
    session(path)
    return Counter(node.op_type for node in onnx.load(f"{path}.optimised").graph.node)


def layers(path):
    """Those of them that are layers."""
    return {name: count for name, count in kernels(path).items() if name in LAYERS}


def run(path, x, **entries):
    found = session(path, **entries)
    return found.run(None, {found.get_inputs()[0].name: x})


# --- nets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", quantised.SCHEMES)
def test_a_trained_net_is_the_same_in_integers(scheme, path):
    net, state = quantised.trained(scheme)
    _, _, images, labels = quantised.data()
    f = gg.compile(net.x, net.hidden, state=state)
    exported(f, path)
    numbers, grids = quantised.twin(net, state, images)
    ours, theirs = f(images), run(path, images)
    for i, grid in enumerate(grids):
        for found in (ours, theirs):
            off = np.abs(np.rint(found[i] / np.float32(grid.step)) + grid.zero - numbers[i])
            assert off.max() <= 1, i
            assert (off != 0).mean() < 5e-3, i  # exact halves
    chosen = [np.argmax(v[-1], axis=1) for v in (ours, theirs)]
    np.testing.assert_array_equal(*chosen)
    assert (chosen[0] == labels).mean() > 0.9


@pytest.mark.parametrize("scheme", quantised.SCHEMES)
def test_a_runtime_makes_operators_of_integers_of_it(scheme, path):
    net, state = quantised.trained(scheme)
    exported(gg.compile(net.x, net.logits, state=state), path)
    behind_relu = {"FusedConv": 2, "FusedGemm": 1, "QGemm": 1}  # half of the grid is below zero
    expected = behind_relu if scheme == "s8 s8" else {"QLinearConv": 2, "QGemm": 2}
    assert layers(path) == expected
    found = kernels(path)
    if scheme not in ("s8 s8", "u4 s8 by channel"):
        assert (found["QuantizeLinear"], found["DequantizeLinear"], found["Transpose"]) == (2, 1, 0)


def variable(rng, *shape, name=None):
    size = 1 / np.sqrt(np.prod(shape[:-1]))
    return gg.variable((size * rng.normal(size=shape)).astype("float32"), name=name)


def by_channel(w, bits=8):
    high = 2 ** (bits - 1) - 1
    value = np.abs(gg.evaluate(w)).reshape(-1, w.shape[-1]).max(0) / high
    return gg.rules.lsq_plus(w, gg.variable(value.astype("float32")), bits=bits, axis=-1)


def on_grid(x, low=0.0):
    return gg.rules.fake_quantise(x, low, 4.0)


def arrays_of(model):
    return {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}


def test_weights_and_biases_are_integers_in_the_layout_that_is_read(path, rng):
    x = gg.placeholder(("N", 6, 6, 2), "float32", name="x")
    w, b = variable(rng, 3, 3, 2, 4, name="w"), variable(rng, 4, name="b")
    f = gg.compile(x, on_grid(gg.nn.relu(gg.nn.conv(on_grid(x, -4.0), by_channel(w)) + b)))
    model = exported(f, path)
    arrays = arrays_of(model)
    assert not {"w", "b"} & set(arrays)
    exact = np.transpose(gg.evaluate(w), (3, 2, 0, 1))
    step = np.abs(exact).max((1, 2, 3)) / np.float32(127)
    numbers = np.rint(exact / step[:, None, None, None])
    np.testing.assert_array_equal(arrays["w_quantized"], numbers)
    assert arrays["w_quantized"].dtype == np.int8
    (conv,) = [n for n in model.graph.node if n.op_type == "Conv"]
    makers = {n.output[0]: n for n in model.graph.node}
    weights, bias = makers[conv.input[1]], makers[conv.input[2]]
    assert [a.i for n in (weights, bias) for a in n.attribute] == [0, 0]
    steps = (np.float32(8 / 255) * step).astype("float32")
    np.testing.assert_allclose(arrays[bias.input[1]], steps, rtol=1e-6)
    found = arrays[bias.input[0]]
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.rint(gg.evaluate(b) / arrays[bias.input[1]]))
    assert layers(path) == {"QLinearConv": 1}
    at = rng.normal(size=(5, 6, 6, 2)).astype("float32")
    off = np.abs(run(path, at)[0] - f(at)) / np.float32(4 / 255)
    assert off.max() < 1.001
    assert (off > 0.5).mean() < 0.02


def residual(rng):
    """A block with a shortcut, a depthwise convolution, pools and a concatenation."""
    x = gg.placeholder(("N", 8, 8, 4), "float32", name="x")
    first = on_grid(x, -4.0)
    h = gg.nn.conv(first, by_channel(variable(rng, 3, 3, 4, 4))) + variable(rng, 4)
    h = on_grid(gg.nn.relu(h))
    w = variable(rng, 3, 3, 1, 4)
    h = on_grid(gg.nn.conv(h, by_channel(w), groups=4) + variable(rng, 4), -4.0)
    h = on_grid(gg.nn.relu(h + first))
    h = gg.concat([gg.nn.max_pool(h, 2), gg.nn.max_pool(h, 2)], axis=-1)
    h = on_grid(gg.mean(h, axis=(1, 2)))
    return x, [h @ by_channel(variable(rng, 8, 5)) + variable(rng, 5)]


def sequences(rng):
    """Dense layers of rows of rows, with a transpose and a product of activations."""
    x = gg.placeholder(("N", 6, 8), "float32", name="x")
    h = on_grid(x, -4.0)
    q, k = [on_grid(h @ by_channel(variable(rng, 8, 8)) + variable(rng, 8), -4.0) for _ in range(2)]
    return x, [on_grid(q @ gg.transpose(k, (0, 2, 1)), -16.0) + 0.5]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (residual, {"QLinearConv": 2, "QGemm": 1}),
        (sequences, {"MatMulIntegerToFloat": 2, "QLinearMatMul": 1}),
    ],
)
def test_other_nets(build, expected, path, rng):
    x, outputs = build(rng)
    f = gg.compile(x, outputs)
    exported(f, path)
    assert layers(path) == expected
    at = rng.normal(size=(20, *x.shape[1:])).astype("float32")
    ours, theirs = f(at)[0], run(path, at)[0]
    off = np.abs(ours - theirs) / np.abs(ours).max()
    assert off.max() < 0.05
    assert np.mean(off) < 2e-3


def grouped(rng, bits, signed=True):
    """A dense layer whose weights have a step and a zero for each 16 of its 64 inputs."""
    x = gg.placeholder(("N", 64), "float32", name="x")
    w, b = variable(rng, 64, 24, name="w"), variable(rng, 24)
    zero = 0.0 if signed else gg.variable(rng.integers(6, 10, (4, 24)).astype("float32"))
    step = gg.variable((np.abs(rng.normal(size=(4, 24))) * 0.02 + 0.02).astype("float32"))
    held = gg.rules.lsq_plus(w, step, zero, bits=bits, signed=signed, axis=0, group=16)
    return gg.compile(x, x @ held + b)


@pytest.mark.parametrize(("bits", "signed"), [(4, True), (4, False), (3, True), (8, True)])
def test_groups_are_blocks(bits, signed, path, rng):
    f = grouped(rng, bits, signed)
    model = exported(f, path)
    (stored,) = [t for t in model.graph.initializer if t.name == "w_quantized"]
    names = {(4, True): "INT4", (4, False): "UINT4", (3, True): "INT4", (8, True): "INT8"}
    assert onnx.TensorProto.DataType.Name(stored.data_type) == names[bits, signed]
    assert len(stored.raw_data) == 64 * 24 // (1 if bits == 8 else 2)
    at = rng.normal(size=(20, 64)).astype("float32")
    (theirs,) = run(path, at, qdq_matmulnbits_accuracy_level="1")
    np.testing.assert_allclose(theirs, f(at), rtol=1e-5, atol=1e-5)
    assert layers(path) == {"MatMulNBits": 1}
    (rough,) = run(path, at)
    off = np.abs(rough - f(at)).max() / np.abs(f(at)).max()
    assert off < 0.02  # whose inputs the runtime quantises, too


def test_integers_of_4_bits_lie_beside_the_model_two_in_a_byte(path, rng):
    x = gg.placeholder(("N", 128), "float32", name="x")
    w = variable(rng, 128, 48, name="w")
    f = gg.compile(x, x @ by_channel(w, bits=4))
    exported(f, path, external=True)
    assert path.with_name("model.onnx.data").stat().st_size == 128 * 48 // 2
    at = rng.normal(size=(7, 128)).astype("float32")
    (theirs,) = run(path, at, qdq_matmulnbits_accuracy_level="1")
    np.testing.assert_allclose(theirs, f(at), rtol=1e-4, atol=1e-5)


def test_filters_of_4_bits_are_small_and_computed_as_floats(path, rng):
    x = gg.placeholder(("N", 6, 6, 2), "float32", name="x")
    w = variable(rng, 3, 3, 2, 4, name="w")
    f = gg.compile(x, on_grid(gg.nn.conv(on_grid(x, -4.0), by_channel(w, bits=4))))
    model = exported(f, path)
    (stored,) = [t for t in model.graph.initializer if t.name == "w_quantized"]
    assert stored.data_type == onnx.TensorProto.INT4
    assert layers(path) == {"Conv": 1}
    at = rng.normal(size=(5, 6, 6, 2)).astype("float32")
    np.testing.assert_allclose(run(path, at)[0], f(at), atol=1.01 * 4 / 255)


def test_a_grid_of_the_range_of_each_run(path, rng):
    """Its scale is computed when the model runs."""
    x = gg.placeholder(("N", 8), "float32", name="x")
    low, high = gg.minimum(gg.min(x), 0.0), gg.maximum(gg.max(x), 0.0)
    f = gg.compile(x, gg.rules.fake_quantise(x, low, high))
    exported(f, path)
    at = rng.normal(size=(20, 8)).astype("float32")
    np.testing.assert_allclose(run(path, at)[0], f(at), rtol=1e-6)
    assert len(np.unique(f(at))) > 50


@pytest.mark.parametrize("bits", [1, 3, 8, 12, 16])
@pytest.mark.parametrize("low", [-1.0, 0.0, -3.0])
def test_activations_of_any_bits_hold_their_ends(bits, low, path, rng):
    x = gg.placeholder((None, 3), "float32", name="x")
    y = gg.rules.fake_quantise(x, low, 1.0, bits=bits)
    f = gg.compile(x, [y, gg.rules.fake_quantise(x, [low, low, -7.0], [1.0, 2.0, 3.0], bits=bits)])
    exported(f, path)
    at = (4 * rng.normal(size=(500, 3))).astype("float32")
    for ours, theirs in zip(f(at), run(path, at), strict=True):
        np.testing.assert_allclose(theirs, ours, atol=1e-6)


def test_a_graph_of_float64_is_written_in_float32(path, rng):
    x = gg.placeholder(("N", 8), name="x")
    w = gg.variable(rng.normal(size=(8, 4)), name="w")
    f = gg.compile(x, on_grid(x, -4.0) @ gg.rules.lsq(w, 0.02) + rng.normal(size=4))
    with pytest.raises(gg.ExportError, match='this is float64: export with dtype="float32"'):
        gg.onnx.export(f, path, quantised="qdq")
    assert not path.exists()
    exported(f, path, dtype="float32")
    assert layers(path) == {"QGemm": 1}
    at = rng.normal(size=(9, 8))
    np.testing.assert_allclose(run(path, at.astype("float32"))[0], f(at), atol=0.1)


@pytest.mark.parametrize("format", ["e4m3fn", "e5m2"])
def test_floats_of_eight_bits(format, path, rng):
    x = gg.placeholder(("N", 16), "float32", name="x")
    w = variable(rng, 16, 8, name="w")
    step = gg.variable((2.0 ** rng.integers(-3, 3, 8)).astype("float32"))
    held = gg.rules.fake_float8(w, step, format)
    f = gg.compile(x, [gg.rules.fake_float8(x, 0.25, format), x @ held])
    model = exported(f, path)
    assert arrays_of(model)["w_quantized"].dtype.name == f"float8_{format}"
    at = (300 * rng.normal(size=(500, 16))).astype("float32")
    ours, theirs = f(at), run(path, at)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(gg.onnx.load(path)(at)[0], theirs[0])


@pytest.mark.parametrize("shape", [(8, 4), (3, 3, 2, 4)])
def test_channels_may_have_zeros_of_their_own(shape, path, rng):
    x = gg.placeholder(("N", 6, 6, 2) if len(shape) == 4 else ("N", 8), "float32", name="x")
    w, zero = variable(rng, *shape), np.float32([0.0, 30.0, -50.0, 2.0])
    held = gg.rules.lsq_plus(w, np.full(4, 0.01, "float32"), zero, axis=-1)
    h = on_grid(x, -4.0)
    h = (gg.nn.conv(h, held) if len(shape) == 4 else h @ held) + variable(rng, 4)
    f = gg.compile(x, on_grid(h, -4.0))
    exported(f, path)
    assert layers(path) == {"QLinearConv" if len(shape) == 4 else "QGemm": 1}
    at = rng.normal(size=(20, *x.shape[1:])).astype("float32")
    off = np.abs(run(path, at)[0] - f(at)) / np.float32(8 / 255)
    assert off.max() < 1.001
    assert (off > 0.5).mean() < 0.02


def test_activations_with_several_steps_are_floats(path, rng):
    x = gg.placeholder(("N", 6, 6, 2), "float32", name="x")
    h = gg.nn.conv(on_grid(x, -4.0), by_channel(variable(rng, 3, 3, 2, 4))) + variable(rng, 4)
    f = gg.compile(x, gg.rules.lsq_plus(h, np.float32([0.1, 0.2, 0.3, 0.4]), axis=-1))
    exported(f, path)
    at = rng.normal(size=(5, 6, 6, 2)).astype("float32")
    np.testing.assert_allclose(run(path, at)[0], f(at), atol=0.41)
    assert layers(path) == {"Conv": 1}


def test_a_grid_right_behind_another_stays_one_of_its_own(path, rng):
    x = gg.placeholder(("N", 8), "float32", name="x")
    h = gg.rules.lsq(gg.nn.relu(x), np.float32(4 / 127.5), signed=True)
    h = gg.rules.lsq(gg.nn.relu(h), np.float32(0.05), signed=False)
    h = h @ by_channel(variable(rng, 8, 5)) + variable(rng, 5)
    f = gg.compile(x, gg.rules.lsq(h, np.float32(0.05)))
    exported(f, path)
    at = rng.normal(size=(50, 8)).astype("float32")
    assert np.abs(run(path, at)[0] - f(at)).max() < 0.051


# --- refusals -------------------------------------------------------------------------------------


def of_gradient(x, w):
    y = on_grid(x, -4.0)
    return gg.compile(x, [y, gg.gradients(gg.sum(y * y), x)])


def with_update(x, w):
    return gg.compile(x, on_grid(x), updates={w: w * np.float32(0.5)})


def in_a_loop(x, w):
    return gg.compile(x, gg.map(lambda row: on_grid(row), x))


def of_a_negative_step(x, w):
    state = gg.State()
    step = gg.variable(np.float32(0.1))
    state[step] = np.float32(-0.1)
    return gg.compile(x, gg.rules.lsq(x, step), state=state)


def of_a_great_bias(x, w):
    y = on_grid(x, -4.0) @ gg.rules.lsq(w, np.float32(1e-9))
    return gg.compile(x, y + np.full(3, 1e3, "float32"))


REFUSED = {
    of_gradient: "writes no gradients, and the outputs need",
    with_update: "writes values: without updates",
    in_a_loop: "a grid is in a loop or a choice, built at test_quantised.py",
    of_a_negative_step: "step is a finite number, more than 0",
    of_a_great_bias: "is not an integer of 32 bits in steps of",
    lambda x, w: gg.compile(x, x @ w): "there are none here: put weights and activations on grids",
    lambda x, w: gg.compile(x, gg.rules.lsq(x, np.float32(0.1), bits=17)): "has up to 16",
    lambda x, w: gg.compile(x, x @ gg.rules.lsq(w, np.full((3, 3), 0.1, "float32"))): (
        "differs along several axes"
    ),
    lambda x, w: gg.compile(x, gg.rules.lsq(x, gg.mean(x), bits=4)): "only for 8 or 16 bits",
    lambda x, w: gg.compile(x, gg.rules.lsq(x, gg.mean(x, axis=0))): "only for one step",
    lambda x, w: gg.compile(x, gg.rules.lsq(x.astype("float16"), 0.1)): "float16: cast it",
}


@pytest.mark.parametrize("build", REFUSED)
def test_what_is_refused_leaves_no_file(build, path):
    x = gg.placeholder((3, 3), "float32", name="x")
    w = gg.variable(np.ones((3, 3), "float32"))
    f = build(x, w)
    with pytest.raises(gg.ExportError, match=REFUSED[build]):
        gg.onnx.export(f, path, quantised="qdq")
    assert not path.exists()


@pytest.mark.parametrize("options", [{"quantised": "qoperator"}, {"quantised": "qdq", "marks": 1}])
def test_other_options_are_refused(options, path):
    x = gg.placeholder((3,), "float32")
    f = gg.compile(x, on_grid(x))
    with pytest.raises((gg.ExportError, TypeError), match=r"quantised is|marks"):
        gg.onnx.export(f, path, **options)
