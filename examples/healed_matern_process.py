"""A Gaussian process whose length scales are learned: naive it is NaN, healed it trains.

The distance of a point from itself is 0, where a root has no slope; the determinant of 100 small
numbers is 0, and its logarithm -infinity. Both are in the marginal likelihood as books write it
[Rasmussen, Williams 2006, "Gaussian processes for machine learning", 5.8 and 4.17].
"""

import numpy as np

import graphgrad as gg

rng = np.random.default_rng(0)
points = rng.uniform(-2, 2, size=(100, 2))
values = 0.05 * (np.sin(3 * points[:, 0]) + 0.1 * rng.normal(size=100))  # the second says nothing


def negative_log_likelihood(scales, size, noise):
    """Half of y' K**-1 y + log det K, of a Matern 3/2 kernel with a length for each axis."""
    x = points / gg.exp(scales)
    distance = gg.sqrt(gg.sum((x[:, None] - x[None]) ** 2, -1))
    kernel = (1 + 3**0.5 * distance) * gg.exp(-(3**0.5) * distance)
    kernel = gg.exp(2 * size) * kernel + gg.exp(2 * noise) * np.eye(100)
    fit = gg.sum(values * (gg.linalg.inv(kernel) @ values))
    return (fit + gg.log(gg.linalg.det(kernel))) / 2


def train(heal):
    """The losses of 40 steps, and the length scales at the end."""
    with gg.Graph() as graph:
        params = [gg.variable(np.zeros(2)), gg.variable(-4.0), gg.variable(-6.0)]
        loss = negative_log_likelihood(*params)
        if heal:
            healed = gg.heal(loss)
            print(healed)
            loss = healed.ys
        updates = gg.optimizers.Adam(0.1).updates(params, gg.gradients(loss, params))
        step = gg.compile([], loss, updates=updates)
    with np.errstate(all="ignore"):
        losses = [float(step()) for _ in range(40)]
    return losses, np.exp(graph.state[params[0]])


(naive, lost), (healed, scales) = train(heal=False), train(heal=True)
print(f"naive {naive[0]:.1f} -> {naive[-1]:.1f}, healed {healed[0]:.1f} -> {healed[-1]:.1f}")
print(f"length scales: {np.round(scales, 2)}")
assert np.isinf(naive[0])
assert np.isnan(lost).all()
assert np.isfinite(healed).all()
assert healed[-1] < healed[0] - 10
assert scales[1] > 2 * scales[0]  # what says nothing has the longer one
