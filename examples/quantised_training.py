"""Low-bit weights and low-bit gradients: rounding in both directions, straight through.

Weights are quantised in the forward pass. Gradients are quantised on their way back, by the rule
of an identity: scaled to one by their largest element, shaken by noise, rounded, scaled back.
"""

import numpy as np

import graphgrad as gg


def quantise(x, bits):
    """x in [0, 1], rounded to so many bits; its gradient is that of the identity."""
    levels = float(2**bits - 1)
    with gg.gradient_override_map({"Round": "Identity"}):
        return gg.round(x * levels) / levels


def quantised_weight(w, bits):
    squashed = gg.tanh(w)
    largest = gg.stop_gradient(gg.max(gg.abs(squashed)))
    return 2 * quantise(squashed / (2 * largest) + 0.5, bits) - 1


def quantised_gradient(bits, seed):
    def rule(site, dy):
        largest = gg.max(gg.abs(dy), axis=1, keepdims=True)  # for each example
        noise = gg.random.uniform(dy.shape, -0.5, 0.5, seed=seed) / (2**bits - 1)
        shaken = gg.clip(dy / (2 * largest) + 0.5 + noise, 0.0, 1.0)
        return (quantise(shaken, bits) - 0.5) * 2 * largest  # with a map of its own, inside

    return gg.override_gradient(rule)


rng = np.random.default_rng(0)
with gg.Graph():
    x = gg.placeholder((4, 3), name="x")
    w = gg.variable(rng.normal(size=(3, 5)), name="w")
    low = quantised_weight(w, bits=2)
    h = x @ low
    with quantised_gradient(bits=3, seed=1):
        out = gg.identity(h)
    loss = gg.sum(gg.square(out - 1.0))
    dh, dw = gg.gradients(loss, [h, w])
    f = gg.compile(x, [low, gg.gradients(loss, out), dh, dw])

low, exact, dh, dw = f(rng.normal(size=(4, 3)))
steps = (dh / np.abs(exact).max(axis=1, keepdims=True) + 1) / 2 * 7
print("weights take the values", np.unique(np.round(low, 3)))
print("one exact gradient     ", np.round(exact[0], 2))
print("the same in three bits ", np.round(dh[0], 2))
assert len(np.unique(np.round(low, 9))) <= 4
np.testing.assert_allclose(steps, np.round(steps), atol=1e-9)
assert np.isfinite(dw).all()
assert dw.any()
