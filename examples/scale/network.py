"""What the examples of this folder train: a network whose weights and activations are signs.

The sign's own gradient is 0 everywhere, so it learns by a straight-through rule, which is put on
each sign. The data are the digits of scikit-learn.
"""

from itertools import pairwise

import numpy as np
from sklearn.datasets import load_digits

import graphgrad as gg

STEPS, BATCH, WIDTHS = 5, 320, [64, 64, 64, 10]


@gg.register_gradient("straight_through")
def straight_through(site, dy):
    """As if the sign were the identity, where |x| <= 1."""
    return gg.where(gg.abs(site.inputs[0]) <= 1, dy, 0.0)


def sign(x):
    with gg.override_gradient("straight_through"):
        return gg.sign(x)


def build():
    """Inputs, variables and the loss."""
    rng = np.random.default_rng(0)
    x = gg.placeholder((None, WIDTHS[0]), name="pixels")
    labels = gg.placeholder((None,), "int64", name="labels")
    net, h = {"pixels": x, "labels": labels}, x
    for i, (n, m) in enumerate(pairwise(WIDTHS)):
        w = net[f"w{i}"] = gg.variable(rng.normal(0, 0.3, (n, m)), name=f"w{i}")
        b = net[f"b{i}"] = gg.variable(rng.normal(0, 0.3, m), name=f"b{i}")
        last = i == len(WIDTHS) - 2
        h = h @ w + b if last else sign(h @ sign(w) / n**0.5 + b)
    return net, gg.nn.cross_entropy(h, labels, reduction="mean")


def train(shardings=None, mesh=None, overrides=None, feed=lambda step, *batch: batch):
    """The losses of the first steps, in float64.

    shardings: what is divided among the devices of the mesh, as a function of what `build` returns;
    None: one device. overrides="none" leaves the rule out. feed: what a process makes of a batch.
    """
    digits, classes = load_digits(return_X_y=True)
    digits = (digits - digits.mean()) / digits.std()
    with gg.Graph() as graph:
        net, loss = build()
        params = list(graph.variables.trainable)
        grads = gg.gradients(loss, params, overrides=overrides)
        options = {} if shardings is None else {"mesh": mesh, "shardings": shardings(net)}
        options["updates"] = gg.optimizers.Adam(0.01).updates(params, grads)
        step = gg.compile([net["pixels"], net["labels"]], loss, backend="jax", **options)
    parts = [slice(BATCH * i, BATCH * (i + 1)) for i in range(STEPS)]
    return np.array([float(step(*feed(step, digits[at], classes[at]))) for at in parts])


def compare(name, divided):
    """Print and check how a divided run differs from that of one device."""
    alone, found, off = train(), divided(), divided(overrides="none")
    distance, without = np.abs(found - alone).max(), np.abs(off - alone).max()
    print(
        f"{name}: loss {found[0]:.4f} -> {found[-1]:.4f}; from one device {distance:.1e}, "
        f"without the straight-through rule {without:.1e}"
    )
    assert distance <= 1e-12
    assert without > 1e-3
