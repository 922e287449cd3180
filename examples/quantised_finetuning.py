"""A quantised model of ONNX, fine-tuned: nothing in it has a gradient until a rule says so.

The file has its weights quantised to 8 bits and back, as tools for deployment write them. Between
the two stand integers, through which no gradient flows. Straight-through rules on these pairs let
the loaded model learn, and it stays what it was: a quantised one.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

onnx = import_module("onnx") if find_spec("onnx") else None


def stored(rng):
    """relu(x @ q(w1)) @ q(w2), q to multiples of 0.1 that are int8, and back."""
    helper, node = onnx.helper, onnx.helper.make_node
    weights = {
        "w1": 0.3 * rng.normal(size=(4, 16)).astype("float32"),
        "w2": 0.3 * rng.normal(size=(16, 1)).astype("float32"),
        "step": np.float32(0.1),
        "zero": np.int8(0),
    }
    nodes = []
    for w in ("w1", "w2"):
        whole, back = f"{w}_int", f"{w}_q"
        nodes.append(node("QuantizeLinear", [w, "step", "zero"], [whole]))
        nodes.append(node("DequantizeLinear", [whole, "step", "zero"], [back]))
    nodes += [node("MatMul", ["x", "w1_q"], ["h"]), node("Relu", ["h"], ["a"])]
    nodes.append(node("MatMul", ["a", "w2_q"], ["y"]))
    info = helper.make_tensor_value_info
    x, y = info("x", 1, ["N", 4]), info("y", 1, ["N", 1])
    initial = [onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in weights.items()]
    return helper.make_model(helper.make_graph(nodes, "quantised", [x], [y], initial))


def losses(model, rule, rng):
    """The mean squared errors of 200 steps, with a rule on each pair or without."""
    weights = [model.tensors["w1"], model.tensors["w2"]]
    if rule is not None:
        for w in weights:
            quantised = model.tensors[f"{w.node.name}_q"]
            model.graph.mark(gg.select.between(w, quantised), rule, inputs=[w], outputs=[quantised])
    with model.graph:
        wanted = gg.placeholder(("N", 1), "float32", name="wanted")
        loss = gg.mean((model.outputs["y"] - wanted) ** 2)
        slopes = gg.gradients(loss, weights, unconnected="zero")
        updates = {w: w - 0.05 * slope for w, slope in zip(weights, slopes, strict=True)}
        step = gg.compile([model.inputs["x"], wanted], loss, updates=updates)
    found = []
    for _ in range(200):
        x = rng.normal(size=(64, 4)).astype("float32")
        found.append(float(step(x, np.abs(x[:, :1]) - x[:, 1:2])))
    return found


def main():
    file = stored(np.random.default_rng(0))
    for name, rule in (("without a rule", None), ("straight-through", gg.rules.ste())):
        model = gg.onnx.load(file, trainable=["w1", "w2"])
        found = losses(model, rule, np.random.default_rng(1))
        first, last = np.mean(found[:20]), np.mean(found[-20:])
        print(f"{name:16} loss {first:.3f} -> {last:.3f}")
        assert bool(last < 0.4 * first) == (rule is not None)
    grid = gg.evaluate(model.tensors["w1_q"]) / 0.1
    assert np.abs(grid - np.round(grid)).max() < 1e-4  # it is a quantised model still


if onnx is None:
    print("onnx is not installed: pip install 'graphgrad[onnx]'")
else:
    main()
