"""Epsilon-LRP: one rule on every kind of activation turns gradients into relevances.

Where an activation has the output y for the input x, its gradient becomes dy * y / x. The input
times such a gradient says how much of the score comes from where; all of it adds up to the score.
"""

import numpy as np

import graphgrad as gg

ACTIVATIONS = ["Relu", "Tanh", "Softplus"]


@gg.register_gradient("EpsilonLRP")
def epsilon_lrp(op, grad):
    (x,), (y,) = op.inputs, op.outputs
    return grad * y / (x + 1e-9 * gg.where(x >= 0, 1.0, -1.0))


rng = np.random.default_rng(0)
w1, w2, w3, w4 = [rng.normal(size=s) for s in [(6, 8), (8, 8), (8, 8), (8, 1)]]

with gg.Graph():
    x = gg.placeholder((1, 6), name="x")
    with gg.gradient_override_map(dict.fromkeys(ACTIVATIONS, "EpsilonLRP")):
        h = gg.nn.relu(x @ w1)
        h = gg.tanh(h @ w2)
        h = gg.nn.softplus(h @ w3)
    score = gg.sum(h @ w4)
    relevance = x * gg.gradients(score, x)
    plain = x * gg.gradients(score, x, overrides="none")
    f = gg.compile(x, [score, relevance, plain])

score, relevance, plain = f(rng.normal(size=(1, 6)))
print(f"score {score:.4f}")
print(f"relevances     {np.round(relevance[0], 2)}, together {relevance.sum():.4f}")
print(f"plain gradient {np.round(plain[0], 2)}, together {plain.sum():.4f}")
np.testing.assert_allclose(relevance.sum(), score, rtol=1e-6)
assert abs(plain.sum() - score) > 0.1
