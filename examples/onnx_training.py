"""A model whose activations have no gradient of their own trains in onnxruntime, which has none.

The straight-through rule is spliced into the training step before it is written, so the file is
plain arithmetic: each run gives the loss, and the next weights. Then the trained model is served.
"""

import tempfile
from importlib import import_module
from importlib.util import find_spec

import numpy as np

import graphgrad as gg

THERE = find_spec("onnx") and find_spec("onnxruntime")
onnxruntime = import_module("onnxruntime") if THERE else None


def network():
    """Two classes; the hidden layer says only on which side of its lines a point lies."""
    rng = np.random.default_rng(0)
    x = gg.placeholder(("N", 2), "float32", name="x")
    labels = gg.placeholder(("N",), "int64", name="labels")
    w = gg.variable(rng.normal(size=(3, 32)).astype("float32"), name="w")
    v = gg.variable(np.zeros((32, 2), "float32"), name="v")
    z = gg.concat([x, gg.ones_like(x[:, :1])], axis=1) @ w
    with gg.override_gradient(gg.rules.ste(window=1.0)):
        h = gg.sign(z)
    return x, labels, [w, v], h @ v


def main():
    with gg.Graph() as g:
        x, labels, params, scores = network()
        loss = gg.nn.cross_entropy(scores, labels, reduction="mean")
        updates = gg.optimizers.Adam(0.05).updates(params, gg.gradients(loss, params))
        train = gg.compile([x, labels], {"loss": loss}, updates=updates)
        serve = gg.compile(x, {"class": gg.argmax(scores, axis=1)})

    points = np.random.default_rng(1).uniform(-1, 1, size=(512, 2)).astype("float32")
    inside = ((points**2).sum(axis=1) < 0.5).astype("int64")

    with tempfile.TemporaryDirectory() as folder:
        gg.onnx.export(train, f"{folder}/train.onnx")
        state, losses = trained(f"{folder}/train.onnx", {"x": points, "labels": inside})
        g.state.load(state)
        gg.onnx.export(serve, f"{folder}/serve.onnx")
        session = onnxruntime.InferenceSession(f"{folder}/serve.onnx")
        (found,) = session.run(["class"], {"x": points})
    right = np.mean(found == inside)
    print(f"loss in onnxruntime {losses[0]:.3f} -> {losses[-1]:.3f}, {right:.0%} right when served")
    assert losses[-1] < 0.6 * losses[0]
    assert right > 0.85


def trained(path, batch):
    """The state after 100 runs of a step, and the losses."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # variables are inputs with a default, which it warns of
    session = onnxruntime.InferenceSession(path, options)
    names = [o.name for o in session.get_outputs()]
    state, losses = {}, []
    for _ in range(100):
        found = dict(zip(names, session.run(names, {**batch, **state}), strict=True))
        losses.append(float(found.pop("loss")))
        state = {name.removesuffix("/next"): value for name, value in found.items()}
    return state, losses


if THERE:
    main()
else:
    print("onnxruntime is not installed: pip install 'graphgrad[onnx]' onnxruntime")
