"""LSQ: a network reads the digits with weights and activations of 2 bits, whose steps are learned
together with the weights [Esser et al. 2020, "Learned step size quantization"].

Measured: 97.1 % on new digits; from steps four times too small 98.5 % if they learn, 84.7 % if they
stay (two seeds); asserted: at least 96.5 %, and at least 5 points between the other two.
"""

from itertools import pairwise

import numpy as np
from sklearn.datasets import load_digits

import graphgrad as gg
from graphgrad import rules

pixels, labels = load_digits(return_X_y=True)
pixels = pixels / 16.0
STEPS, BATCH, BITS, SIZES = 1000, 64, 2, [64, 128, 128, 10]


def quantised(x, size, signed):
    """x at 2 bits; size is its mean magnitude, from which the step starts as in the paper."""
    p = 2 ** (BITS - 1) - 1 if signed else 2**BITS - 1
    step = gg.variable(np.asarray(2 * size / np.sqrt(p)))
    return rules.lsq(x, step, bits=BITS, signed=signed), step


def trained(seed, learned, off=1.0):
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(pixels))
    train, test = order[:1437], order[1437:]
    with gg.Graph():
        x, t = gg.placeholder(("N", 64), name="x"), gg.placeholder(("N",), "int64", name="t")
        h, params, steps = x, [], []
        for i, shape in enumerate(pairwise(SIZES)):
            start = gg.initializers.he_normal(shape, seed=10 * seed + i)
            w, b = gg.variable(start), gg.variable(np.zeros(shape[1]))
            params += [w, b]
            if i > 0:
                h, s = quantised(gg.nn.relu(h), 0.8 * off, signed=False)
                steps.append(s)
            q, s = quantised(w, np.abs(start).mean() * off, signed=True)
            steps.append(s)
            h = h @ q + b
        loss = gg.mean(gg.nn.cross_entropy(h, t))
        rate = gg.optimizers.cosine_decay(2e-3, STEPS)
        wanted = params + steps if learned else params
        updates = gg.optimizers.Adam(rate).updates(wanted, gg.gradients(loss, wanted))
        step = gg.compile([x, t], loss, updates=updates)
        predict = gg.compile(x, gg.argmax(h, axis=1))
    for _ in range(STEPS):
        batch = rng.choice(train, BATCH)
        step(pixels[batch], labels[batch])
    return 100 * np.mean(predict(pixels[test]) == labels[test])


found = [trained(seed, True) for seed in range(2)]
moved = [trained(seed, True, off=0.25) for seed in range(2)]
stuck = [trained(seed, False, off=0.25) for seed in range(2)]
print(f"2 bits, learned steps: {np.mean(found):.2f} % {np.round(found, 1)}")
print(f"from steps four times too small, learned: {np.mean(moved):.2f} % {np.round(moved, 1)}")
print(f"from steps four times too small, fixed:   {np.mean(stuck):.2f} % {np.round(stuck, 1)}")
assert np.mean(found) >= 96.5
assert np.mean(moved) > np.mean(stuck) + 5
