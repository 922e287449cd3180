"""A variational autoencoder of counts in float32: naive it is NaN, healed it trains.

Counts are Poisson with the rate log(1 + exp(h)) [Kingma, Welling 2014, "Auto-encoding variational
Bayes"], which is h itself where counts are large. From h = 88.7 exp(h) is more than float32 holds;
healed the rate is a softplus.
"""

import numpy as np

import graphgrad as gg

rng = np.random.default_rng(0)
place = rng.uniform(-1, 1, size=(300, 1))
rates = 150 * np.exp(-((place - np.linspace(-1, 1, 12)) ** 2) / 0.02)  # neurons along a line
counts = np.float32(rng.poisson(rates))


def dense(n, m, seed, std, bias=0.0):
    w = np.random.default_rng(seed).normal(size=(n, m)) * std
    return gg.variable(np.float32(w)), gg.variable(np.full(m, bias, np.float32))


def negative_bound(x, noise, layers):
    """The evidence lower bound of the logarithm of the likelihood, with the other sign."""
    (w, b), (to_code, code_bias), (v, c), (out, out_bias) = layers
    mean, spread = gg.split(gg.tanh(x @ w + b) @ to_code + code_bias, 2, axis=1)
    code = mean + gg.exp(spread / 2) * noise
    h = gg.tanh(code @ v + c) @ out + out_bias
    rate = gg.log(1 + gg.exp(h))
    divergence = -0.5 * gg.sum(1 + gg.log(gg.exp(spread)) - mean * mean - gg.exp(spread), 1)
    return gg.mean(gg.sum(rate - x * gg.log(rate), 1) + divergence)


def train(heal):
    """The losses of 300 steps."""
    with gg.Graph():
        x = gg.placeholder(("N", 12), "float32", name="x")
        noise = gg.placeholder(("N", 2), "float32", name="noise")
        layers = [dense(12, 32, 1, 0.2), dense(32, 4, 2, 0.2), dense(2, 32, 3, 0.7)]
        layers.append(dense(32, 12, 4, 5.0, bias=60.0))
        loss = negative_bound(x, noise, layers)
        if heal:
            healed = gg.heal(loss)
            print(healed)
            loss = healed.ys
        params = [p for layer in layers for p in layer]
        updates = gg.optimizers.Adam(0.02).updates(params, gg.gradients(loss, params))
        step = gg.compile([x, noise], loss, updates=updates)
    draws = np.random.default_rng(5).normal(size=(300, 300, 2)).astype("float32")
    with np.errstate(all="ignore"):
        return [float(step(counts, draw)) for draw in draws]


naive, healed = train(heal=False), train(heal=True)
print(f"naive {naive[0]:.2f} -> {naive[-1]:.2f}, healed {healed[0]:.2f} -> {healed[-1]:.2f}")
assert np.isnan(naive[-1])
assert np.isfinite(healed).all()
assert healed[-1] < healed[0] - 300
