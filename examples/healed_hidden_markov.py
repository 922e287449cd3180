"""A hidden Markov model by a loop over time: naive it is NaN, healed it trains.

The forward algorithm [Rabiner 1989, "A tutorial on hidden Markov models"] in logarithms, as one
writes it down: log(sum(exp(...))). After some hundred observations every exp is 0. Inside of a
body `gg.heal` heals the body's tensors.
"""

import numpy as np

import graphgrad as gg

rng = np.random.default_rng(0)
STATES, LENGTH = 3, 600
hidden = np.zeros(LENGTH, int)
for t in range(1, LENGTH):  # a state lasts for 20 steps in the mean
    hidden[t] = hidden[t - 1] if rng.random() < 0.95 else rng.integers(STATES)
observed = np.array([-4.0, 0.0, 4.0])[hidden] + rng.normal(size=LENGTH)


def log_normalised(scores):
    return scores - gg.log(gg.sum(gg.exp(scores), -1, keepdims=True))


def log_likelihood(scores, means, heal):
    """log p(observed): alpha_j = log sum_i exp(alpha_i + log A_ij) + log p(x | j)."""
    transitions = log_normalised(scores)
    said = -((observed[:, None] - means) ** 2) / 2 - np.log(2 * np.pi) / 2

    def forward(alpha, log_p):
        summed = gg.log(gg.sum(gg.exp(alpha[:, None] + transitions), 0))
        return (gg.heal(summed).ys if heal else summed) + log_p, None

    alpha, _ = gg.scan(forward, said[0] - np.log(STATES), said[1:])
    end = gg.log(gg.sum(gg.exp(alpha)))
    return gg.heal(end).ys if heal else end


def train(heal):
    """The losses of 150 steps, and the means at the end."""
    with gg.Graph() as graph:
        scores, means = gg.variable(np.eye(STATES)), gg.variable([-1.0, 0.1, 1.0])
        loss = -log_likelihood(scores, means, heal) / LENGTH
        grads = gg.gradients(loss, [scores, means])
        updates = gg.optimizers.Adam(0.1).updates([scores, means], grads)
        step = gg.compile([], loss, updates=updates)
    with np.errstate(all="ignore"):
        losses = [float(step()) for _ in range(150)]
    return losses, graph.state[means]


(naive, lost), (healed, means) = train(heal=False), train(heal=True)
print(f"naive {naive[0]:.2f} -> {naive[-1]:.2f}, healed {healed[0]:.2f} -> {healed[-1]:.2f}")
print(f"means: {np.round(means, 2)}")
assert np.isinf(naive[0])
assert np.isnan(lost).all()
assert np.isfinite(healed).all()
np.testing.assert_allclose(means, [-4.0, 0.0, 4.0], atol=0.3)
