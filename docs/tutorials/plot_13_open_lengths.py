"""
Sequences of any length
=======================

*My sequences and batches have different lengths. Do I have to build a graph for each length?* No: a
length in a shape can be a name. You compile one program, and it runs for every length. Lengths that
contradict each other raise an error at run time.

.. meta::
   :keywords: dynamic, shape, sequence, variable, length, padding, mask, batch, recurrent
"""

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg

# %%
# Names and arithmetic
# --------------------
#
# A string in a shape names a length, and axes with the same name have the same length. The shapes
# of other tensors are expressions of these names.

with gg.Graph():
    x = gg.placeholder(("time", "batch", 3), name="x")
    print(x[1:].shape, gg.concat([x, x]).shape, x[::2].shape)

# %%
# A recurrent network
# -------------------
#
# After every step, the network predicts the sum of all numbers so far. ``gg.scan`` runs its body
# once for each row of ``x``; its gradient is a reversed loop. The rule in the body clips the
# gradient at each step, for each example separately.

rng = np.random.default_rng(0)
with gg.Graph():
    x = gg.placeholder(("time", "batch"), name="x")
    y = gg.placeholder(("time", "batch"), name="y")
    mask = gg.placeholder(("time", "batch"), name="mask")
    u = gg.variable(rng.normal(size=(1, 16)) / 4, name="u")
    w = gg.variable(np.eye(16) * 0.9, name="w")
    v = gg.variable(rng.normal(size=(16,)) / 4, name="v")

    def cell(h, row):
        with gg.override_gradient(gg.rules.clip_norm(1.0, axis=1)):
            h = gg.identity(h)
        h = gg.tanh(row[:, None] @ u + h @ w)
        return h, h @ v

    start = gg.zeros((x.shape[1], 16))
    _, said = gg.scan(cell, start, x)
    loss = gg.sum(mask * (said - y) ** 2) / gg.sum(mask)
    updates = gg.optimizers.Adam(0.01).updates([u, w, v], gg.gradients(loss, [u, w, v]))
    step = gg.compile([x, y, mask], loss, updates=updates)
    predict = gg.compile(x, said)

print("said:", said.shape)

# %%
# Batches of different lengths
# ----------------------------
#
# Within a batch, shorter sequences are padded and masked; between batches the number of steps and
# the number of examples change. The program is planned once for each set of shapes, which takes a
# fraction of a second. To limit the number of plans, the longest sequence of a batch here has 10,
# 15 or 20 steps.


def batch(rng, longest):
    """Sequences, their running sums, and where they are not padding."""
    lengths = rng.integers(5, longest + 1, size=rng.choice([16, 24]))
    x = rng.normal(size=(longest, len(lengths))) / 3
    mask = (np.arange(longest)[:, None] < lengths).astype(float)
    return x * mask, np.cumsum(x * mask, axis=0), mask


losses = []
for i in range(300):
    rng = np.random.default_rng(i)
    losses.append(float(step(*batch(rng, rng.choice([10, 15, 20])))))
print(f"loss: {losses[0]:.3f}, then {np.mean(losses[-20:]):.3f}")
assert np.mean(losses[-20:]) < losses[0] / 4

# %%
# Sequences longer than in training
# ---------------------------------
#
# The same compiled function takes sequences of 60 steps. Nothing is built or compiled again.

x_long = np.random.default_rng(1000).normal(size=(60, 200)) / 3
y_long = np.cumsum(x_long, axis=0)
wrong = np.sqrt(np.mean((predict(x_long) - y_long) ** 2, axis=1))

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
left.plot(y_long[:, 0], color="0.7", linewidth=3, label="running sum")
left.plot(predict(x_long)[:, 0], label="the network's")
left.set_xlabel("step")
left.legend()
right.plot(wrong)
right.axvspan(5, 20, color="0.92", label="lengths seen in training")
right.set_xlabel("step")
right.set_ylabel("error")
right.legend()

# %%
# Lengths that do not fit
# -----------------------

try:
    step(np.zeros((7, 4)), np.zeros((7, 5)), np.ones((7, 4)))
except gg.ShapeError as error:
    print(error)
else:
    raise AssertionError("two lengths of one name")

# %%
# :doc:`Open lengths </lengths>` describes the arithmetic and comparisons of lengths, and how they
# are exported to ONNX, JAX and PyTorch.
