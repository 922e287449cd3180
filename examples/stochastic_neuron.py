"""Binary neurons that fire by chance in training and by threshold afterwards.

Both are straight through, in the branches of a `cond`: a map of op types reaches into them.
"""

import numpy as np

import graphgrad as gg


def binary_neuron(logits, training, seed):
    p = gg.nn.sigmoid(logits)

    def by_chance():
        return gg.ceil(p - gg.random.uniform(p.shape, seed=seed))

    def by_threshold():
        return gg.round(p)

    with gg.gradient_override_map({"Ceil": "Identity", "Round": "Identity"}):
        return gg.cond(training, by_chance, by_threshold)


with gg.Graph():
    logits = gg.placeholder((2000,), name="logits")
    training, seed = gg.placeholder((), "bool", name="training"), gg.placeholder((), "int64")
    fired = binary_neuron(logits, training, seed)
    f = gg.compile([logits, training, seed], [fired, gg.gradients(fired, logits)])

x = np.full(2000, -0.5)
p = 1 / (1 + np.exp(0.5))
for mode, expected in [(True, p), (False, 0.0)]:
    fired, dx = f(x, mode, 1)
    print(f"training {mode!s:5}: fire {fired.mean():.3f} of p = {p:.3f}, gradient {dx[0]:.3f}")
    assert set(fired) <= {0.0, 1.0}
    assert abs(fired.mean() - expected) < 0.05
    np.testing.assert_allclose(dx, p * (1 - p))
