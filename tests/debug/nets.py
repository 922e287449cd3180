"""Networks as people train them, in float32: outputs with gradients, and arrays to feed."""

import numpy as np

import graphgrad as gg


def normal(*shape, seed=0, scale=1.0):
    made = np.random.default_rng(seed).normal(size=shape) * scale
    return made.astype(np.float32)


def clipped(site, dy):
    (x,) = site.inputs
    return gg.where(gg.abs(x) <= 1.0, dy, 0.0)


def mlp(overrides=None, scale=1.0):
    """Two layers of signs, whose gradient is overridden; overrides: as of gradients()."""
    with gg.Graph("mlp"):
        x = gg.placeholder(("batch", 64), "float32", name="x")
        h, weights = x, []
        for i, (a, b) in enumerate([(64, 128), (128, 128), (128, 10)]):
            with gg.name_scope(f"layer{i}"):
                w = gg.variable(normal(a, b, seed=i), name="w")
                weights.append(w)
                h = h @ w
                if i < 2:
                    with gg.override_gradient(clipped):
                        h = gg.sign(h)
        loss = gg.mean(h**2)
        grads = gg.gradients(loss, weights, overrides=overrides)
    return [loss, *grads], {x: normal(32, 64, scale=scale)}


def cnn(scale=1.0):
    with gg.Graph("cnn"):
        x = gg.placeholder(("N", 12, 12, 1), "float32", name="x")
        first = gg.variable(normal(3, 3, 1, 8), name="first")
        second = gg.variable(normal(288, 10, seed=1), name="second")
        h = gg.nn.max_pool(gg.nn.relu(gg.nn.conv(x, first)), 2)
        score = gg.sum(gg.nn.softmax(gg.reshape(h, (-1, 288)) @ second, axis=-1)[:, 0])
        grads = gg.gradients(score, [first, second, x])
    return [score, *grads], {x: normal(4, 12, 12, 1, scale=scale)}


def transformer(scale=1.0):
    """One block: attention, layer norm, GELU."""

    def weight(*shape):
        return gg.variable(normal(*shape, scale=0.1, seed=len(weights)), name="w")

    def normed(h):
        h = h - gg.mean(h, axis=-1, keepdims=True)
        return h / gg.sqrt(gg.mean(h**2, axis=-1, keepdims=True) + 1e-5)

    weights = []
    with gg.Graph("transformer"):
        x = gg.placeholder(("B", 8, 16), "float32", name="x")
        for shape in [(16, 16)] * 4 + [(16, 64), (64, 16)]:
            weights.append(weight(*shape))
        q, k, v = (normed(x) @ w for w in weights[:3])
        a = gg.nn.softmax(q @ gg.transpose(k, (0, 2, 1)) / 4.0, axis=-1) @ v
        h = x + a @ weights[3]
        y = h + gg.nn.gelu(normed(h) @ weights[4]) @ weights[5]
        loss = gg.mean(y * y)
        grads = gg.gradients(loss, weights)
    return [loss, *grads], {x: normal(3, 8, 16, scale=scale)}


def sums(length, kind):
    """Long sums of like numbers, and of numbers that cancel."""
    with gg.Graph("sums"):
        x = gg.placeholder(("N",), "float32", name="x")
        rows = gg.placeholder(("N", 3), "float32", name="rows")
        total = gg.sum(x * x)
        asked = [gg.sum(x), gg.mean(x - gg.mean(x)), gg.sum(rows, axis=0), total]
        asked += gg.gradients(gg.log(total), [x])
    draw = {"normal": np.random.default_rng(0).normal, "uniform": np.random.default_rng(0).random}
    made = [draw[kind](size=shape).astype(np.float32) for shape in (length, (length, 3))]
    return asked, dict(zip([x, rows], made, strict=True))


ALL = {
    "mlp": mlp,
    "mlp, large": lambda: mlp(scale=100.0),
    "mlp, own gradients": lambda: mlp("none"),
    "cnn": cnn,
    "transformer": transformer,
    "transformer, large": lambda: transformer(100.0),
    "sums": lambda: sums(100_000, "normal"),
    "sums of like numbers": lambda: sums(100_000, "uniform"),
}
