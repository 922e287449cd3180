"""Feedback alignment: with errors sent back through fixed random weights a network learns the
digits as well as with backpropagation, as its own weights come to align with the fixed ones
[Lillicrap et al. 2016, "Random synaptic feedback weights support error backpropagation for deep
learning"].

Measured: 97.9 % on new digits, with backpropagation 98.2 % (three seeds), at 56 degrees to the true
gradient; asserted: within one point of backpropagation, below 90 degrees.
"""

from itertools import pairwise

import numpy as np
from sklearn.datasets import load_digits

import graphgrad as gg
from graphgrad import rules

pixels, labels = load_digits(return_X_y=True)
pixels = pixels / 16.0
STEPS, BATCH = 1500, 64


def angle(a, b):
    cosine = np.vdot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b))
    return np.degrees(np.arccos(np.clip(cosine, -1, 1)))


def trained(seed, overrides):
    """Accuracy on new digits, and the angle of the first layer's gradient to the true one."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(pixels))
    train, test = order[:1437], order[1437:]
    with gg.Graph():
        x, t = gg.placeholder(("N", 64), name="x"), gg.placeholder(("N",), "int64", name="t")
        sizes = [64, 128, 64, 10]
        ws = [
            gg.variable(gg.initializers.glorot_normal(s, seed=10 * seed + i))
            for i, s in enumerate(pairwise(sizes))
        ]
        h = x
        for i, w in enumerate(ws):
            with gg.override_gradient(rules.feedback(seed=100 + i)):
                z = h @ w
            h = gg.tanh(z)
        loss = gg.mean(gg.nn.cross_entropy(z, t))
        grads = gg.gradients(loss, ws, overrides=overrides)
        true = gg.gradients(loss, ws, overrides="none")
        step = gg.compile([x, t], loss, updates=gg.optimizers.Adam(1e-3).updates(ws, grads))
        compare = gg.compile([x, t], [grads[0], true[0]])
        predict = gg.compile(x, gg.argmax(z, axis=1))
    for _ in range(STEPS):
        batch = rng.choice(train, BATCH)
        step(pixels[batch], labels[batch])
    right = predict(pixels[test]) == labels[test]
    return 100 * np.mean(right), angle(*compare(pixels[train], labels[train]))


aligned = np.array([trained(seed, None) for seed in range(3)])
backprop = np.array([trained(seed, "none") for seed in range(3)])
print(
    f"accuracy with fixed feedback {aligned[:, 0].mean():.2f} %, "
    f"with backpropagation {backprop[:, 0].mean():.2f} %"
)
print(f"angle to the true gradient after training {aligned[:, 1].mean():.0f} degrees")
assert aligned[:, 0].mean() > backprop[:, 0].mean() - 1.0
assert aligned[:, 1].mean() < 90
