"""A contrastive loss of cosines in float32: naive it is NaN, healed it trains.

Two views of a thing are to lie near each other on the sphere, and far from others [Chen et al.
2020, "A simple framework for contrastive learning of visual representations"]. At the temperature
0.01 exp(1 / 0.01) is more than float32 holds, and one embedding is 0, which has no direction.
"""

import numpy as np

import graphgrad as gg

rng = np.random.default_rng(0)
things = rng.normal(size=(64, 16))
views = [things + 0.3 * rng.normal(size=things.shape) for _ in range(2)]
views = [np.float32(view * (np.arange(64) > 0)[:, None]) for view in views]  # the first is blank
TEMPERATURE = 0.01


def contrast(a, b):
    """The mean of -log of the share that the other view of a thing has among all things."""
    a, b = (t / gg.sqrt(gg.sum(t * t, 1, keepdims=True)) for t in (a, b))
    e = gg.exp((a @ b.T) / TEMPERATURE)
    return -gg.mean(gg.log(gg.diag(e / gg.sum(e, 1, keepdims=True))))


def train(heal):
    """The losses of 200 steps."""
    with gg.Graph():
        pair = [gg.placeholder((64, 16), "float32", name=name) for name in ("one", "other")]
        w = gg.variable(np.float32(rng.normal(size=(16, 8)) / 4), name="w")
        loss = contrast(*[x @ w for x in pair])
        if heal:
            healed = gg.heal(loss)
            print(healed)
            loss = healed.ys
        updates = gg.optimizers.Adam(0.01).updates([w], gg.gradients(loss, [w]))
        step = gg.compile(pair, loss, updates=updates)
    with np.errstate(all="ignore"):
        return [float(step(*views)) for _ in range(200)]


naive, healed = train(heal=False), train(heal=True)
print(f"naive {naive[0]:.2f} -> {naive[-1]:.2f}, healed {healed[0]:.2f} -> {healed[-1]:.2f}")
assert np.isnan(naive).all()
assert np.isfinite(healed).all()
assert healed[-1] < healed[0] / 2
