"""LSQ for each channel of a CNN of torch that somebody else wrote and trained: then it is integers.

Opened, it is cut behind the relu and imported anew on grids whose steps learn, of weights one for
each channel. It leaves as a file of integers [Esser et al. 2020, "Learned step size quantization"].
"""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import graphgrad as gg

THERE = all(map(find_spec, ("torch", "onnxruntime", "onnx", "sklearn")))
torch = import_module("torch") if THERE else None


def trained(pixels, labels):
    """Somebody's network."""
    nn, _ = torch.nn, torch.manual_seed(0)
    layers = nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
    net = nn.Sequential(*layers, nn.Linear(128, 10))
    optimiser = torch.optim.Adam(net.parameters(), 0.01)
    for _ in range(60):
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(torch.tensor(pixels)), torch.tensor(labels)).backward()
        optimiser.step()
    return net.eval()


def on_grids(part, x, bits, largest):
    """A part of the network for x, which is at most `largest`, and its weights, in so many bits."""
    start = gg.select.inputs().find(part)[0]
    step = gg.variable(np.float32(largest / (2**bits - 1)))
    given = {start.outputs[0]: gg.rules.lsq(x, step, bits=bits, signed=False)}
    for w in part.variables:
        if w.ndim > 1:
            value = part.state[w.node.name]
            extreme = np.abs(value).reshape(len(value), -1).max(1)
            steps = gg.variable(extreme / np.float32(2 ** (bits - 1) - 1))
            given[w] = gg.rules.lsq_plus(gg.variable(value), steps, bits=bits, axis=0)
    return gg.import_graph(part, given)[part.nodes[-1].outputs[0]]


def quantised(net, bits):
    """x and the logits of the same network on grids, in the current graph."""
    with gg.Graph() as graph:
        image = gg.placeholder(("N", 1, 8, 8), "float32")
        logits = gg.interop.open_torch(net, image)
    h = gg.select.op("Relu").find(graph)[0].outputs[0]
    x = gg.placeholder(("N", 1, 8, 8), "float32", name="x")
    active = on_grids(graph.subgraph(image, h), x, bits, 1.0)
    return x, on_grids(graph.subgraph(h, logits), active, bits, 2.0)


if torch is None:
    print("this needs: pip install torch onnx onnxruntime scikit-learn")
else:
    data, labels = import_module("sklearn.datasets").load_digits(return_X_y=True)
    pixels = (data / 16).astype("float32").reshape(-1, 1, 8, 8)
    x, logits = quantised(trained(pixels[:1400], labels[:1400]), bits=4)
    y = gg.placeholder(("N",), "int64")
    loss, variables = gg.mean(gg.nn.cross_entropy(logits, y)), logits.graph.variables
    updates = gg.optimizers.Adam(1e-3).updates(variables, gg.gradients(loss, list(variables)))
    step, digits = gg.compile([x, y], loss, updates=updates), gg.compile(x, logits)
    read = [np.mean(digits(pixels[1400:]).argmax(1) == labels[1400:])]
    for rows in np.random.default_rng(0).integers(1400, size=(60, 64)):
        step(pixels[rows], labels[rows])
    ours = digits(pixels[1400:])
    read.append(np.mean(ours.argmax(1) == labels[1400:]))
    print(f"read right in 4 bits: {read[0]:.3f}, after their steps have learned {read[1]:.3f}")
    with TemporaryDirectory() as folder:
        gg.onnx.export(digits, path := Path(folder) / "digits.onnx", quantised="qdq")
        session = import_module("onnxruntime").InferenceSession(path)
        held = {t.data_type for t in import_module("onnx").load(path).graph.initializer}
    found = session.run(None, {"x": pixels[1400:]})[0]
    assert np.mean(np.abs(found - ours) > 1e-3) < 0.01, "the same numbers"
    assert 22 in held, "weights are INT4"
