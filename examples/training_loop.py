"""A regression trained with an optimiser: variables, updates, and a rule in the middle of it.

The rule limits what an outlier may do: the gradient with respect to each residual is clipped,
which is what a Huber loss would give, although the loss is the square.
"""

import numpy as np

import graphgrad as gg


@gg.register_gradient("limit_outliers")
def limit_outliers(site, dy):
    return gg.clip(dy, -0.02, 0.02)


rng = np.random.default_rng(0)
inputs = rng.uniform(-1, 1, size=(100, 2))
targets = inputs @ [2.0, -3.0] + 0.5
targets[:5] += 50.0  # measurements that went wrong


def train(overrides):
    """The weights after training."""
    with gg.Graph() as graph:
        x, y = gg.placeholder(("N", 2), name="x"), gg.placeholder(("N",), name="y")
        w, b = gg.variable([0.0, 0.0], name="w"), gg.variable(0.0, name="b")
        residual = x @ w + b - y
        with gg.override_gradient("limit_outliers"):  # this one step, not what is before it
            residual = gg.identity(residual)
        loss = gg.mean(residual**2)
        grads = gg.gradients(loss, [w, b], overrides=overrides)
        updates = gg.optimizers.Adam(0.1).updates([w, b], grads)
        step = gg.compile([x, y], loss, updates=updates)
    losses = [float(step(inputs, targets)) for _ in range(400)]
    print(f"loss {losses[0]:.1f} -> {losses[-1]:.1f},", end=" ")
    return np.array([*graph.state[w], graph.state[b]])


robust = train(overrides=None)
print("with the rule:", np.round(robust, 2))
plain = train(overrides="none")
print("without:      ", np.round(plain, 2))
truth = [2.0, -3.0, 0.5]
assert np.abs(robust - truth).max() < 0.2
assert np.abs(plain - truth).max() > 1
