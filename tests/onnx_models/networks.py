"""Five networks with overridden gradients: what is exported, trained and compared."""

from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import graphgrad as gg
from graphgrad.demo.model import binary_net, ste

__all__ = ["MODELS", "Model"]


@dataclass
class Model:
    """What a network computes, its variables, and arrays to run it with.

    updates: {variable: new value} of a training step.
    """

    inputs: list[Any]
    outputs: dict[str, Any]
    arrays: list[Any]
    updates: dict[Any, Any] = field(default_factory=dict)


def drawn(rng, dtype, *shape, scale=0.3):
    """Weights or data: numbers of float32, in any dtype."""
    return (scale * rng.normal(size=shape)).astype("float32").astype(dtype)


def scope(rule, on):
    """The override, or none."""
    return gg.override_gradient(rule) if on else nullcontext()


def classifier(on=True, dtype="float32"):
    """Binary activations, which train by the straight-through rule; Adam."""
    rng = np.random.default_rng(1)
    x = gg.placeholder(("N", 8), dtype, name="x")
    labels = gg.placeholder(("N",), "int64", name="labels")
    w, v = (
        gg.variable(drawn(rng, dtype, 8, 16), name="w"),
        gg.variable(drawn(rng, dtype, 16, 4), name="v"),
    )
    h = x @ w
    with scope(gg.rules.ste(), on):
        h = gg.sign(h)
    loss = gg.nn.cross_entropy(h @ v, labels, reduction="mean")
    grads = gg.gradients(loss, [w, v])
    updates = gg.optimizers.Adam(0.02).updates([w, v], grads)
    arrays = [drawn(rng, dtype, 12, 8, scale=1), rng.integers(0, 4, 12)]
    return Model([x, labels], {"loss": loss, "dw": grads[0]}, arrays, updates)


def images(on=True, dtype="float32"):
    """Two convolutions with guided ReLUs, and a max pool."""
    rng = np.random.default_rng(2)
    x = gg.placeholder(("N", 8, 8, 3), dtype, name="x")
    k1 = gg.variable(drawn(rng, dtype, 3, 3, 3, 4), name="k1")
    k2 = gg.variable(drawn(rng, dtype, 3, 3, 4, 5), name="k2")
    h = gg.nn.conv(x, k1, padding="SAME")
    with scope(gg.rules.guided(), on):
        h = gg.nn.relu(h)
    h = gg.nn.conv(gg.nn.max_pool(h, 2, strides=2), k2, padding="VALID")
    with scope(gg.rules.guided(), on):
        h = gg.nn.relu(h)
    score = gg.sum(gg.mean(h, axis=(1, 2)) * np.array([1, -2, 3, -4, 5], dtype))
    grads = gg.gradients(score, [x, k1, k2])
    arrays = [drawn(rng, dtype, 2, 8, 8, 3, scale=1)]
    return Model([x], {"score": score, "dx": grads[0], "k1": grads[1], "k2": grads[2]}, arrays)


def attention(on=True, dtype="float32"):
    """A block of a transformer, whose attention passes on gradients of one size."""
    rng = np.random.default_rng(3)
    x = gg.placeholder((2, 5, 8), dtype, name="x")
    ws = [gg.variable(drawn(rng, dtype, 8, 8), name=f"w{i}") for i in range(4)]
    gain, bias = gg.variable(np.ones(8, dtype)), gg.variable(np.zeros(8, dtype))
    q, k, v = (x @ w for w in ws[:3])
    with scope(gg.rules.clip_norm(0.001), on):
        h = gg.nn.softmax(q @ gg.matrix_transpose(k) / 8**0.5) @ v
    h = gg.nn.layer_norm(x + h @ ws[3], gain, bias)
    loss = gg.mean(gg.nn.gelu(h) ** 2)
    return Model(
        [x], {"loss": loss, "grads": gg.gradients(loss, ws)}, [drawn(rng, dtype, 2, 5, 8, scale=1)]
    )


def recurrent(on=True, dtype="float32"):
    """An LSTM of 16 steps, whose gradients are clipped in each."""
    rng = np.random.default_rng(4)
    x = gg.placeholder((16, 3, 4), dtype, name="x")
    w, u = (
        gg.variable(drawn(rng, dtype, 4, 20), name="w"),
        gg.variable(drawn(rng, dtype, 5, 20), name="u"),
    )

    def step(carry, row):
        h, c = carry
        with scope(gg.rules.clip_norm(0.02), on):
            i, f, g, o = gg.split(row @ w + h @ u, 4, axis=1)
            c = gg.special.expit(f) * c + gg.special.expit(i) * gg.tanh(g)
            h = gg.special.expit(o) * gg.tanh(c)
        return (h, c), h

    zeros = gg.zeros((3, 5), dtype)
    _, rows = gg.scan(step, (zeros, zeros), x)
    loss = gg.sum(rows * rows)
    return Model(
        [x],
        {"loss": loss, "grads": gg.gradients(loss, [w, u])},
        [drawn(rng, dtype, 16, 3, 4, scale=2)],
    )


def curvature(on=True, dtype="float32"):
    """A product with the Hessian, through a rule that is applied at both orders."""
    rng = np.random.default_rng(5)
    x = gg.placeholder((4,), dtype, name="x")
    w = gg.variable(drawn(rng, dtype, 4, 4), name="w")
    h = gg.tanh(x @ w) * 3
    with scope(gg.rules.ste(), on):
        q = gg.round(h)
    loss = gg.sum(q * q * h)
    (dw,) = gg.gradients(loss, [w])
    hvp = gg.gradients(gg.sum(dw * drawn(rng, dtype, 4, 4)), w)
    return Model([x], {"loss": loss, "dw": dw, "hvp": hvp}, [drawn(rng, dtype, 4, scale=1)])


def digits(on=True, dtype="float64"):
    """The demo's network: weights and activations are signs; of float64."""
    rng = np.random.default_rng(6)
    with gg.temporary_gradient("ste", ste if on else lambda site, dy: gg.zeros_like(dy)):
        net = binary_net(8)
        params = list(net.params.values())
        for v in params:
            v.graph.state[v] = rng.normal(size=v.shape)
        grads = gg.gradients(net.loss, params)
        updates = gg.optimizers.SGD(0.1).updates(params, grads)
    arrays = [rng.normal(size=(6, 64)), rng.integers(0, 10, 6)]
    return Model([net.pixels, net.labels], {"loss": net.loss, "grads": grads}, arrays, updates)


MODELS = {f.__name__: f for f in (classifier, images, attention, recurrent, curvature, digits)}
