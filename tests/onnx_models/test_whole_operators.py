"""Operators of ONNX that are several ops here stay whole in what is written, judged by torch."""

import numpy as np
import pytest

import graphgrad as gg

from .making import model_of, node, onnx
from .test_differentiate import near, run

inliner = pytest.importorskip("onnx.inliner")
torch = pytest.importorskip("torch")
F = torch.nn.functional

IMAGE, ROWS = ["N", 4, "H", "W"], ["N", "T", 6]
SHAPES = {"N": 2, "H": 6, "W": 7, "T": 5}
SCALE = {"scale": np.linspace(0.5, 1.5, 6, dtype="float32")}
MOVED = {**SCALE, "offset": np.linspace(-1, 1, 6, dtype="float32")}
CHANNELS = {"scale": np.arange(1, 5, dtype="float32"), "offset": np.ones(4, "float32")}


def of_rows(weights):
    rows = [torch.tensor(w).double() for w in weights.values()]
    return lambda x: F.layer_norm(x, (6,), *rows, eps=1e-3)


CASES = {
    "Gelu": (ROWS, {}, {}, F.gelu),
    "HardSwish": (ROWS, {}, {}, F.hardswish),
    "Clip": (ROWS, {"low": np.float32(0), "high": np.float32(0.7)}, {}, lambda x: x.clamp(0, 0.7)),
    "Softmax": (ROWS, {}, {"axis": -1}, lambda x: torch.softmax(x, -1)),
    "LayerNormalization": (ROWS, MOVED, {"epsilon": 1e-3}, None),
    "InstanceNormalization": (
        IMAGE,
        CHANNELS,
        {},
        lambda x: F.instance_norm(
            x, weight=torch.arange(1.0, 5).double(), bias=torch.ones(4).double()
        ),
    ),
    "GroupNormalization": (
        ["N", 4, 6, 7],
        CHANNELS,
        {"num_groups": 2},
        lambda x: F.group_norm(x, 2, torch.arange(1.0, 5).double(), torch.ones(4).double()),
    ),
}
"""{operator: (shape of x, other inputs, attributes, what torch computes)}"""


def saved(name, folder, more=()):
    """A file of one operator, behind a product so that x is not an input of the model."""
    shape, weights, attributes, _ = CASES[name]
    made = node(name, ["h", *weights], ["y"], name="whole", **attributes)
    nodes = [node("Mul", ["x", "half"], ["h"]), made, *more]
    weights = {**weights, "half": np.float32(0.5)}
    onnx.save(model_of(nodes, {"x": shape}, {"y": shape}, weights), folder / "m.onnx")
    return folder / "m.onnx"


def drawn(name, rng, scale=4.0):
    shape = [SHAPES.get(d, d) for d in CASES[name][0]]
    return (scale * rng.normal(size=shape)).astype("float32")


def operators_in(path):
    """How often each operator is called, local functions opened."""
    opened = inliner.inline_local_functions(onnx.load(path))
    found = [n.op_type for n in opened.graph.node]
    return {name: found.count(name) for name in found}


def of_torch(name, x):
    """y and the gradient of the sum of its squares."""
    weights = CASES[name][1]
    f = CASES[name][3] or of_rows(weights)
    leaf = torch.tensor(x).double().requires_grad_()
    y = f(leaf * 0.5)
    return y.detach().numpy(), torch.autograd.grad((y * y).sum(), leaf)[0].numpy()


@pytest.mark.parametrize("name", CASES)
def test_the_forward_part_has_the_operator(name, tmp_path, rng):
    model = gg.onnx.load(saved(name, tmp_path))
    gg.onnx.export(model.compile(backend="numpy"), tmp_path / "f.onnx")
    found = operators_in(tmp_path / "f.onnx")
    written = {"HardSwish": "HardSigmoid", "GroupNormalization": "InstanceNormalization"}
    whole = written.get(name, name)
    assert found.get(whole) == 1 or found.get("LayerNormalization") == 1, found
    assert not {"Sqrt", "ReduceMean", "Erf", "Exp", "Min", "Max"} & set(found), found
    x = drawn(name, rng)
    (y,) = run(tmp_path / "f.onnx", {"x": x}).values()
    near(y, of_torch(name, x)[0])


@pytest.mark.parametrize("name", CASES)
def test_its_gradient_is_that_of_torch(name, tmp_path, rng):
    def squares(outputs):
        return gg.sum(outputs["y"] * outputs["y"])

    path = saved(name, tmp_path)
    gg.onnx.differentiate(path, squares, "x", path=tmp_path / "g.onnx")
    x = drawn(name, rng)
    found = run(tmp_path / "g.onnx", {"x": x})
    y, dx = of_torch(name, x)
    near(found["y"], y)
    near(found["gradient/x"], dx)


PARTS = {
    "Gelu": ("Erfc", lambda site, dy: dy * 3.0),
    "HardSwish": ("Clip", lambda site, dy: (dy, gg.NO_GRAD, gg.NO_GRAD)),
    "Softmax": ("Softmax", lambda site, dy: dy * site.inputs[0]),
    "LayerNormalization": ("Sqrt", lambda site, dy: gg.NO_GRAD),
    "GroupNormalization": ("Divide", lambda site, *dys: (dys[0] * 2.0, gg.NO_GRAD)),
}


@pytest.mark.parametrize("name", PARTS)
def test_S4_a_rule_on_a_part_counts(name, tmp_path, rng):
    of, rule = PARTS[name]
    derived = gg.onnx.differentiate(
        saved(name, tmp_path), wrt="x", overrides={of: rule}, path=tmp_path / "g.onnx"
    )
    plain = gg.onnx.differentiate(saved(name, tmp_path), wrt="x")
    x = drawn(name, rng)
    y, dx = derived(x)
    found = run(tmp_path / "g.onnx", {"x": x})
    near(found["y"], y)
    near(found["gradient/x"], dx)
    assert not np.allclose(dx, plain(x)[1])


def test_what_others_read_of_the_parts_is_there(tmp_path, rng):
    model = gg.onnx.load(saved("LayerNormalization", tmp_path))
    nodes = {n.type: n.outputs[0] for n in model.graph.nodes}
    (x,), y = model.inputs.values(), model.outputs["y"]
    parts = [nodes["Sqrt"], nodes["Divide"], nodes["Subtract"], y]
    f = gg.compile(x, parts, backend="numpy")
    gg.onnx.export(f, tmp_path / "p.onnx")
    value = drawn("LayerNormalization", rng)
    for found, expected in zip(run(tmp_path / "p.onnx", {"x": value}).values(), f(value)):
        near(found, expected)
    early = gg.compile(x, [nodes["ReduceMean"], y], backend="numpy")
    gg.onnx.export(early, tmp_path / "e.onnx")
    assert "LayerNormalization" not in operators_in(tmp_path / "e.onnx")
    for found, expected in zip(run(tmp_path / "e.onnx", {"x": value}).values(), early(value)):
        near(found, expected)


def test_versions_that_do_not_know_it(tmp_path, rng):
    path = saved("Gelu", tmp_path)
    gg.onnx.differentiate(path, wrt="x", path=tmp_path / "g.onnx", opset=17)
    assert "Gelu" not in operators_in(tmp_path / "g.onnx")
    x = drawn("Gelu", rng)
    near(run(tmp_path / "g.onnx", {"x": x})["y"], of_torch("Gelu", x)[0])


@pytest.mark.parametrize("shape", [["N", 2, 6, 8], ["N", 2, "H", "W"]])
@pytest.mark.parametrize(("size", "stride"), [(2, 2), (3, 2)])
def test_a_max_pool_runs_once(shape, size, stride, tmp_path, rng):
    pool = node("MaxPool", ["h"], ["p"], kernel_shape=[size] * 2, strides=[stride] * 2)
    nodes = [node("Tanh", ["x"], ["h"]), pool, node("Tanh", ["p"], ["y"])]
    onnx.save(model_of(nodes, {"x": shape}, {"y": None}), tmp_path / "m.onnx")
    gg.onnx.differentiate(tmp_path / "m.onnx", path=tmp_path / "g.onnx")
    assert operators_in(tmp_path / "g.onnx")["MaxPool"] == 1
    x = rng.normal(size=(2, 2, 6, 8)).astype("float32")
    x[0, 0] = 0.5  # ties, of which the first has it
    x[1, 1, :2, :2] = -np.inf
    leaf = torch.tensor(x, requires_grad=True)
    F.max_pool2d(leaf.tanh(), size, stride).tanh().sum().backward()
    near(run(tmp_path / "g.onnx", {"x": x})["gradient/x"], leaf.grad.numpy())


@pytest.mark.parametrize("pads", [0, 1, 2])
@pytest.mark.parametrize("stride", [1, 2])
def test_gradients_of_filters_for_single_channels(pads, stride, tmp_path, rng):
    w = rng.normal(size=(4, 1, 3, 3)).astype("float32")
    conv = node("Conv", ["x", "w"], ["y"], group=4, pads=[pads] * 4, strides=[stride] * 2)
    onnx.save(model_of([conv], {"x": IMAGE}, {"y": None}, {"w": w}), tmp_path / "m.onnx")
    gg.onnx.differentiate(tmp_path / "m.onnx", kind="vjp", path=tmp_path / "g.onnx")
    assert ("ConvTranspose" in operators_in(tmp_path / "g.onnx")) == (stride > 1)
    x = rng.normal(size=(2, 4, 6, 7)).astype("float32")
    leaf = torch.tensor(x, requires_grad=True)
    y = F.conv2d(leaf, torch.tensor(w), None, stride, pads, groups=4)
    dy = rng.normal(size=tuple(y.shape)).astype("float32")
    y.backward(torch.tensor(dy))
    feeds = {"x": x, "cotangent/y": dy}
    near(run(tmp_path / "g.onnx", feeds)["gradient/x"], leaf.grad.numpy())


def test_fast_masks_are_factors_of_gradients_alone(tmp_path, rng):
    nodes = [
        node("Greater", ["x", "zero"], ["m"]),
        node("Where", ["m", "x", "zero"], ["w"]),
        node("Relu", ["w"], ["r"]),
        node("Clip", ["r", "zero", "six"], ["c"]),
        node("Tanh", ["c"], ["y"]),
    ]
    weights = {"zero": np.float32(0), "six": np.float32(0.6)}
    onnx.save(model_of(nodes, {"x": ["N"]}, {"y": ["N"]}, weights), tmp_path / "m.onnx")
    x = rng.normal(size=9).astype("float32")
    expected = np.where((x > 0) & (x <= 0.6), 1 - np.tanh(x) ** 2, 0)
    for fast, chosen in ((False, 4), (True, 1)):
        gg.onnx.differentiate(tmp_path / "m.onnx", path=tmp_path / "g.onnx", fast_masks=fast)
        assert operators_in(tmp_path / "g.onnx")["Where"] == chosen
        near(run(tmp_path / "g.onnx", {"x": x})["gradient/x"], expected)


def test_rules_keep_what_they_promise_beside_fast_masks(tmp_path):
    nodes = [node("Relu", ["x"], ["r"]), node("Sqrt", ["r"], ["y"])]
    onnx.save(model_of(nodes, {"x": ["N"]}, {"y": ["N"]}), tmp_path / "m.onnx")
    x = np.array([-1, 4], "float32")  # behind the mask the slope of the root is infinite
    rule = {"Relu": lambda site, dy: gg.where(site.inputs[0] > 0, dy, 0.0)}
    for options, first in (({}, 0), ({"overrides": rule, "fast_masks": True}, 0)):
        gg.onnx.differentiate(tmp_path / "m.onnx", path=tmp_path / "g.onnx", **options)
        np.testing.assert_allclose(run(tmp_path / "g.onnx", {"x": x})["gradient/x"], [first, 0.25])
    gg.onnx.differentiate(tmp_path / "m.onnx", path=tmp_path / "g.onnx", fast_masks=True)
    assert np.isnan(run(tmp_path / "g.onnx", {"x": x})["gradient/x"][0])
