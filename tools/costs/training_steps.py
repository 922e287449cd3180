"""Training steps that are measured, as graphs: float32, inputs and a loss."""

import numpy as np

import graphgrad as gg

RNG = np.random.default_rng(0)


def floats(*shape):
    """Random numbers."""
    return RNG.normal(size=shape).astype("float32")


def weights(*shape):
    """A variable of small random numbers."""
    return gg.variable(floats(*shape) / np.float32(np.sqrt(np.prod(shape[:-1]))))


def dense(x, outputs):
    """A layer without an activation."""
    return x @ weights(x.shape[-1], outputs) + weights(outputs)


def mlp():
    """784-1024-1024-10, batch 256."""
    x, t = gg.placeholder((256, 784), "float32"), gg.placeholder((256, 10), "float32")
    h = gg.nn.relu(dense(gg.nn.relu(dense(x, 1024)), 1024))
    return [x, t], gg.nn.cross_entropy(dense(h, 10), t, reduction="mean")


def logistic():
    """Logistic regression: 784 to 10, batch 1024."""
    x, t = gg.placeholder((1024, 784), "float32"), gg.placeholder((1024, 10), "float32")
    return [x, t], gg.nn.cross_entropy(dense(x, 10), t, reduction="mean")


def vae():
    """A variational autoencoder, 784-400-20-400-784, batch 128."""
    x, e = gg.placeholder((128, 784), "float32"), gg.placeholder((128, 20), "float32")
    h = gg.nn.relu(dense(x, 400))
    mean, log_variance = dense(h, 20), dense(h, 20)
    z = mean + gg.exp(0.5 * log_variance) * e
    logits = dense(gg.nn.relu(dense(z, 400)), 784)
    kept = gg.sum(gg.nn.softplus(logits) - x * logits)
    apart = gg.sum(1 + log_variance - mean * mean - gg.exp(log_variance))
    return [x, e], (kept - 0.5 * apart) / 128


def transformer(n=8, length=128, width=256, heads=4):
    """A block: width 256, 4 heads, length 128, batch 8."""
    x = gg.placeholder((n, length, width), "float32")

    def norm(y):
        return gg.nn.layer_norm(y, weights(width), weights(width))

    a = gg.reshape(norm(x), (n * length, width))

    def by_head():
        y = gg.reshape(a @ weights(width, width), (n, length, heads, -1))
        return gg.transpose(y, (0, 2, 1, 3))

    q, k, v = by_head(), by_head(), by_head()
    s = gg.nn.softmax(q @ gg.transpose(k, (0, 1, 3, 2)) * (heads / width) ** 0.5)
    o = gg.reshape(gg.transpose(s @ v, (0, 2, 1, 3)), (n * length, width))
    x2 = x + gg.reshape(o @ weights(width, width), x.shape)
    h = gg.nn.gelu(dense(gg.reshape(norm(x2), (n * length, width)), 4 * width), approximate=True)
    y = x2 + gg.reshape(dense(h, width), x.shape)
    return [x], gg.mean(y * y)


def cnn():
    """Two convolutions of 3 x 3 and a layer: 32 images of 32 x 32."""
    x, t = gg.placeholder((32, 32, 32, 3), "float32"), gg.placeholder((32, 10), "float32")
    h = gg.nn.relu(gg.nn.conv(x, weights(3, 3, 3, 32)) + weights(32))
    h = gg.nn.relu(gg.nn.conv(h, weights(3, 3, 32, 64)) + weights(64))
    h = gg.reshape(gg.nn.max_pool(h, 2), (32, 16 * 16 * 64))
    return [x, t], gg.nn.cross_entropy(dense(h, 10), t, reduction="mean")


PROGRAMS = {
    "MLP (W4)": mlp,
    "transformer (W7)": transformer,
    "logistic regression": logistic,
    "VAE": vae,
    "CNN (W6)": cnn,
}


def step(make, threads):
    """Gradient descent on a loss, compiled with LLVM, and arrays for its inputs."""
    with gg.Graph() as graph:
        inputs, loss = make()
        variables = [n.outputs[0] for n in graph.nodes if n.type == "Variable"]
        slopes = gg.gradients(loss, variables)
        updates = {w: w - 0.01 * g for w, g in zip(variables, slopes, strict=True)}
        call = gg.compile(inputs, loss, updates=updates, backend="llvm", num_threads=threads)
    return call, [floats(*t.shape) for t in inputs]
