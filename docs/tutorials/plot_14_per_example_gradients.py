"""
Per-example gradients
=====================

*How does each of my examples change the weights? And how do I limit the influence of a single one?*
You need the gradient of each example instead of their sum. Write the loss of one example, build its
gradient, and map it over the batch with ``gg.vmap``.

.. meta::
   :keywords: per-example, per-sample, gradients, vmap, clipping, dp-sgd, privacy, outlier
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import graphgrad as gg

# %%
# Digits, some of them mislabelled
# --------------------------------
#
# One label in twenty is wrong. Can the gradients tell which?

rng = np.random.default_rng(0)
pixels, truth = load_digits(return_X_y=True)
pixels, truth = pixels[:1000] / 16, truth[:1000]
wrong = rng.random(1000) < 0.05
labels = np.where(wrong, (truth + rng.integers(1, 10, size=1000)) % 10, truth)

# %%
# One example, then all of them
# -----------------------------
#
# ``gg.vmap`` maps over the first axis of its arguments. The function reads the weights from
# outside, so all examples share them; their gradients have one row per example.

with gg.Graph():
    x = gg.placeholder(("N", 64), name="x")
    y = gg.placeholder(("N",), "int64", name="y")
    w = gg.variable(np.zeros((64, 10)), name="w")

    def one(x, y):
        loss = gg.nn.cross_entropy(x @ w, y)
        return loss, gg.gradients(loss, w)

    losses, dws = gg.vmap(one)(x, y)
    norms = gg.sqrt(gg.sum(dws**2, axis=(1, 2)))
    print("dw of each example:", dws.shape)

# %%
# Clip each gradient
# ------------------
#
# A gradient with a norm larger than 1 is clipped to norm 1 before the mean is taken, so that no
# single example dominates. With noise added to the mean, this would be a step of DP-SGD.

with w.graph:
    limited = dws * gg.minimum(1.0, 1.0 / gg.maximum(norms, 1e-12))[:, None, None]
    updates = {w: w - 1.0 * gg.mean(limited, axis=0)}
    step = gg.compile([x, y], gg.mean(losses), updates=updates)
    look = gg.compile([x, y], [losses, norms, gg.mean(dws, axis=0)])

for _ in range(60):
    step(pixels, labels)

# %%
# The mean of all rows is the gradient of the mean loss, as expected.

with w.graph:
    loss = gg.mean(gg.nn.cross_entropy(x @ w, y))
    batch_gradient = gg.compile([x, y], gg.gradients(loss, w))
_, norms_at, mean_at = look(pixels, labels)
np.testing.assert_allclose(mean_at, batch_gradient(pixels, labels), atol=1e-12)

# %%
# Which examples have the largest gradients?
# ------------------------------------------
#
# Most of the examples with the largest gradients have a wrong label.

hardest = np.argsort(norms_at)[::-1][: wrong.sum()]
print(f"of the {wrong.sum()} longest gradients, {wrong[hardest].sum()} have a wrong label")
assert wrong[hardest].mean() > 0.6

fig = plt.figure(figsize=(8, 2.8), layout="constrained")
left, *places = fig.subplot_mosaic([["h", "h", 0, 1, 2], ["h", "h", 3, 4, 5]]).items()
bins = np.linspace(0, norms_at.max(), 40)
left[1].hist([norms_at[~wrong], norms_at[wrong]], bins, stacked=True, label=["right", "wrong"])
left[1].set_yscale("log")
left[1].set_xlabel("norm of the gradient of an example")
left[1].legend(title="label")
for i, axis in places:
    axis.imshow(pixels[hardest[i]].reshape(8, 8), cmap="gray_r")
    axis.set_title(f"{labels[hardest[i]]}?", fontsize=9)
    axis.set(xticks=[], yticks=[])
