"""Files of integers as graphs: what they compute, and trained on by the rules of their grids."""

import numpy as np
import pytest

import graphgrad as gg

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("sklearn")

from . import quantised  # noqa: E402
from .test_quantised import exported, grouped, layers, run  # noqa: E402


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def of_a_net(scheme, path):
    """A file, and what it is to give for images."""
    net, state = quantised.trained(scheme)
    images = quantised.data()[2][:40]
    f = gg.compile(net.x, net.logits, state=state)
    exported(f, path)
    return images, f(images)


@pytest.mark.parametrize(
    ("scheme", "rule"),
    [
        ("u8 s8 by channel", "lsq_plus"),
        ("u8 u8", gg.rules.fake_quantise),
        ("s8 s8", "lsq"),
        ("u4 s8 by channel", gg.rules.lsq_plus),
        ("u8 s8", None),
    ],
)
def test_a_deployed_net_is_trained_on_and_deployed_again(scheme, rule, path):
    images, expected = of_a_net(scheme, path)
    options = {} if rule is None else {"regions": {"QuantizeLinear": rule}}
    model = gg.onnx.load(path, trainable=True, **options)
    np.testing.assert_allclose(model(images), expected, atol=2e-5)
    if rule is None:
        assert not model.graph.regions
        return
    name = rule if isinstance(rule, str) else rule.__name__
    assert {region.name.partition("(")[0] for region in model.graph.regions} == {name}
    variables = list(model.graph.variables)
    assert len(model.trainable) == len(variables) >= 4 + 4 + 4 + 5  # weights, biases, two of grids
    with model.graph:
        labels = gg.placeholder(("N",), "int64", name="labels")
        (logits,) = model.outputs.values()
        loss = gg.mean(gg.nn.cross_entropy(logits * np.float32(4), labels))
        grads = gg.gradients(loss, variables)
    updates = gg.optimizers.Adam(1e-3).updates(variables, grads)
    state = gg.State()
    (x,) = model.inputs.values()
    step = gg.compile([x, labels], loss, updates=updates, state=state)
    train = quantised.data()
    losses = [float(step(train[0][:200], train[1][:200])) for _ in range(12)]
    assert losses[-1] < losses[0]
    f = gg.compile(x, logits, state=state)
    exported(f, path.with_name("again.onnx"))
    found = layers(path.with_name("again.onnx"))
    assert found == layers(path)
    ours, theirs = f(images), run(path.with_name("again.onnx"), images)[0]
    assert np.abs(ours - expected).max() > 0.01
    off = np.abs(ours - theirs)  # biases are learned as floats, and rounded when written
    assert (off > 1e-3).mean() < 0.2
    assert off.max() < 0.1
    np.testing.assert_array_equal(ours.argmax(1), theirs.argmax(1))


@pytest.mark.parametrize(("bits", "signed"), [(4, True), (4, False), (8, True)])
def test_blocks_are_groups_of_lsq_plus(bits, signed, path, rng):
    with gg.Graph():
        f = grouped(rng, bits, signed)
    exported(f, path)
    at = rng.normal(size=(9, 64)).astype("float32")
    np.testing.assert_allclose(gg.onnx.load(path)(at), f(at), rtol=1e-5, atol=1e-5)
    rule = {"QuantizeLinear": "lsq_plus"}
    model = gg.onnx.load(path, trainable=True, regions=rule)
    np.testing.assert_allclose(model(at), f(at), rtol=1e-5, atol=1e-5)
    (region,) = model.graph.regions
    assert region.name == f"lsq_plus(bits={bits}, signed={signed}, axis=0, group=16)"
    shapes = {v.name: v.shape for v in model.graph.variables}
    assert (shapes["w:0"], shapes["w_scale:0"]) == ((64, 24), (4, 24))
    with pytest.raises(gg.FileError, match="lsq has no groups of neighbours: lsq_plus has"):
        gg.onnx.load(path, regions={"QuantizeLinear": "lsq"})


def test_what_is_trainable_is_named(path):
    of_a_net("u8 s8 by channel", path)
    rule = {"QuantizeLinear": "lsq_plus"}
    model = gg.onnx.load(path, trainable=["*_scale"], regions=rule)
    assert len(model.graph.variables) == 4 + 5
    model = gg.onnx.load(path, regions=rule)
    assert len(model.graph.variables) == len(model.trainable) == 0
    assert len(model.graph.regions) == 4 + 5 + 4  # weights, activations, behind what moves numbers


@pytest.mark.parametrize("rule", ["lsqplus", gg.rules.pact, lambda site, dy: dy])
def test_other_rules_are_refused(rule, path):
    of_a_net("u8 s8 by channel", path)
    with pytest.raises(gg.FileError, match="is not a rule of grids"):
        gg.onnx.load(path, regions={"QuantizeLinear": rule})


def test_lsq_has_no_zero(path):
    of_a_net("u8 u8", path)
    with pytest.raises(gg.FileError, match="lsq has no zero but 0, which this grid has"):
        gg.onnx.load(path, regions={"QuantizeLinear": "lsq"})


def test_integers_that_others_read_too_have_no_region():
    make = onnx.helper.make_node
    inner = onnx.helper.make_graph(
        [make("Cast", ["q"], ["r"], to=1)], "body", [], [onnx.ValueInfoProto(name="r")]
    )
    nodes = [
        make("QuantizeLinear", ["x", "s", "z"], ["q"]),
        make("DequantizeLinear", ["q", "s", "z"], ["h"]),
        make("If", ["yes"], ["y"], then_branch=inner, else_branch=inner),
        make("Add", ["h", "y"], ["out"]),
    ]
    values = [("s", np.float32(0.5)), ("z", np.uint8(3))]
    given = [onnx.helper.make_tensor_value_info(*each) for each in [("x", 1, [4]), ("yes", 9, [])]]
    graph = onnx.helper.make_graph(
        nodes,
        "g",
        given,
        [onnx.helper.make_tensor_value_info("out", 1, [4])],
        [onnx.numpy_helper.from_array(np.array(v), n) for n, v in values],
    )
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])
    model = gg.onnx.load(proto, regions={"QuantizeLinear": "lsq_plus"})
    assert not model.graph.regions
    found = model(np.float32([0.0, 1.0, -9.0, 0.6]), np.array(True))
    np.testing.assert_array_equal(found, [3.0, 6.0, -1.5, 4.5])


# --- elements that no tensor has ----------------------------------------------------------------


def dequantized(kind, numbers, raw=True, **attributes):
    """A model of DequantizeLinear of these numbers, with steps of 1/2."""
    values = onnx.numpy_helper.from_array(numbers.astype(kind), "numbers")
    if not raw:
        values = onnx.helper.make_tensor(
            "numbers", values.data_type, numbers.shape, numbers.reshape(-1).tolist()
        )
    scale = onnx.numpy_helper.from_array(np.float32(0.5), "scale")
    nodes = [
        onnx.helper.make_node("DequantizeLinear", ["numbers", "scale"], ["w"], **attributes),
        onnx.helper.make_node("Add", ["x", "w"], ["y"]),
    ]
    x, y = (onnx.helper.make_tensor_value_info(n, 1, numbers.shape) for n in "xy")
    graph = onnx.helper.make_graph(nodes, "g", [x], [y], [values, scale])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 21)])


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        ("int4", np.arange(-8, 7).reshape(3, 5)),  # an odd number of them
        ("uint4", np.arange(16).reshape(4, 4)),
        ("float8_e4m3fn", np.array([-448.0, 0.0078125, 1.125, 240.0])),
        ("float8_e5m2", np.array([-57344.0, 1.25, 3.0])),
    ],
)
def test_elements_of_four_bits_and_floats_of_eight_are_read(kind, numbers, raw):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    proto = dequantized(getattr(ml_dtypes, kind), numbers, raw)
    found = gg.onnx.load(proto)(np.zeros(numbers.shape, "float32"))
    np.testing.assert_array_equal(found, np.float32(0.5) * numbers)


def test_a_file_with_too_few_bytes_is_refused():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    proto = dequantized(ml_dtypes.int4, np.arange(5))
    proto.graph.initializer[0].raw_data = b"ab"
    with pytest.raises(gg.FileError, match="of 5 elements of int4 has 2 bytes, not 3"):
        gg.onnx.load(proto)
