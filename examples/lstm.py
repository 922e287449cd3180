"""An LSTM as a loop: one node for any number of steps, trained to remember the first input.

The gate that forgets is kept open backward by an override that counts in every run of the loop.
"""

import numpy as np

import graphgrad as gg

HIDDEN, BATCH = 16, 32


def lstm(xs, w, b):
    """xs: (steps, batch, inputs), the number of steps unknown."""

    def cell(carry, x):
        h, c = carry
        gates = gg.concat([x, h], axis=1) @ w + b
        take, forget, put, new = gg.split(gates, 4, axis=1)
        with gg.override_gradient(lambda site, dy: dy):  # straight through: no gate shuts it
            forget = gg.nn.sigmoid(forget)
        c = forget * c + gg.nn.sigmoid(take) * gg.tanh(new)
        h = gg.nn.sigmoid(put) * gg.tanh(c)
        return (h, c), h

    start = np.zeros((BATCH, HIDDEN))
    return gg.scan(cell, (start, start), xs)


rng = np.random.default_rng(0)
with gg.Graph() as graph:
    xs, y = gg.placeholder((None, BATCH, 1), name="xs"), gg.placeholder((BATCH,), name="y")
    w = gg.variable(0.3 * rng.normal(size=(1 + HIDDEN, 4 * HIDDEN)), name="w")
    b = gg.variable(np.repeat([0.0, 2.0, 0.0, 0.0], HIDDEN), name="b")
    out = gg.variable(0.3 * rng.normal(size=HIDDEN), name="out")
    (h, _), _ = lstm(xs, w, b)
    loss = gg.mean((h @ out - y) ** 2)
    params = [w, b, out]
    steps = [gg.assign(p, p - 0.1 * dp) for p, dp in zip(params, gg.gradients(loss, params))]
    train = gg.compile([xs, y], [loss, *steps])
    size = len(graph.nodes)

losses = []
for _ in range(200):
    batch = rng.normal(size=(rng.integers(4, 8), BATCH, 1))  # as long as it comes
    losses.append(float(train(batch, batch[0, :, 0])[0]))
print(f"{size} nodes for every length; the loss falls from {np.mean(losses[:10]):.2f}", end=" ")
print(f"to {np.mean(losses[-10:]):.2f}")
assert np.mean(losses[-10:]) < 0.5 * np.mean(losses[:10])
