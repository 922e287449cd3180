"""Feedback alignment: errors go back through fixed random weights, and yet the network learns."""

import numpy as np

import graphgrad as gg


def layer(h, w, feedback):
    def rule(site, dy):
        return {h: dy @ feedback, w: h.T @ dy}  # by input: the order does not matter

    with gg.override_gradient(rule):
        return h @ w


rng = np.random.default_rng(0)
data = rng.normal(size=(64, 5))
target = np.sin(data @ rng.normal(size=(5, 1)))

with gg.Graph() as graph:
    x, t = gg.placeholder((64, 5), name="x"), gg.placeholder((64, 1), name="t")
    w1 = gg.variable(gg.initializers.glorot_normal((5, 32), seed=1), name="w1")
    w2 = gg.variable(gg.initializers.glorot_normal((32, 1), seed=2), name="w2")
    y = layer(gg.tanh(x @ w1), w2, feedback=gg.constant(rng.normal(size=(1, 32))))
    loss = gg.mean(gg.square(y - t))
    grads = gg.gradients(loss, [w1, w2])
    true = gg.gradients(loss, [w1, w2], overrides="none")
    step = gg.compile([x, t], loss, updates=gg.optimizers.Adam(0.01).updates([w1, w2], grads))
    compare = gg.compile([x, t], [grads, true])

(g1, g2), (true1, true2) = compare(data, target)
losses = [float(step(data, target)) for _ in range(300)]
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
assert np.abs(g1 - true1).max() > 1e-3  # not the gradient
np.testing.assert_allclose(g2, true2)  # the last layer's own is
assert losses[-1] < 0.05 * losses[0]
