"""A mixture density network whose density underflows: naive it is NaN, healed it trains.

The network says weights, means and widths of three Gaussians for each x [Bishop 1994, "Mixture
density networks"]. Written as in the book, a target many widths away has the density 0, whose
logarithm is -infinity; `gg.heal` finds the log-sum-exp in it.
"""

import numpy as np

import graphgrad as gg

rng = np.random.default_rng(0)
inputs = rng.uniform(-1, 1, size=(200, 1))
branch = rng.choice([-60.0, 0.0, 60.0], size=200)
targets = branch * inputs[:, 0] + rng.normal(size=200)


def negative_log_likelihood(x, y, w, b, v, c):
    """The mean over points of -log sum_k weight_k N(y; mean_k, width_k)."""
    scores, mean, raw = gg.split(gg.tanh(x @ w + b) @ v + c, 3, axis=1)
    weight = gg.exp(scores) / gg.sum(gg.exp(scores), 1, keepdims=True)
    width = gg.exp(raw)
    bell = gg.exp(-(((y[:, None] - mean) / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
    return -gg.mean(gg.log(gg.sum(weight * bell, 1)))


def train(heal):
    """The losses of 300 steps."""
    with gg.Graph():
        x, y = gg.placeholder(("N", 1), name="x"), gg.placeholder(("N",), name="y")
        layer = gg.variable(gg.initializers.normal((1, 24), seed=1), name="w")
        out = gg.variable(gg.initializers.normal((24, 9), seed=2, std=0.2), name="v")
        params = [layer, gg.variable(np.zeros(24)), out, gg.variable(np.zeros(9))]
        loss = negative_log_likelihood(x, y, *params)
        if heal:
            healed = gg.heal(loss)
            print(healed)
            loss = healed.ys
        grads = gg.gradients(loss, params)
        updates = gg.optimizers.Adam(0.02).updates(params, grads)
        step = gg.compile([x, y], loss, updates=updates)
    with np.errstate(all="ignore"):
        return [float(step(inputs, targets)) for _ in range(300)]


naive, healed = train(heal=False), train(heal=True)
print(f"naive {naive[0]:.2f} -> {naive[-1]:.2f}, healed {healed[0]:.2f} -> {healed[-1]:.2f}")
assert np.isinf(naive[0])
assert np.isnan(naive[-1])
assert np.isfinite(healed).all()
assert healed[-1] < 4.5 < healed[0]
