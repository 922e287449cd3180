"""
Debugging a NaN
===============

A loss becomes NaN after some steps: which line causes it, and what should the value have been? This
tutorial finds the step that fails in a textbook model, rewrites it with an identity, and shows
where both forms are accurate.

.. meta::
   :keywords: nan, inf, overflow, stable, log-sum-exp, softplus, heal, blame
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import graphgrad as gg

rng = np.random.default_rng(0)

# %%
# It trains, and then it does not
# -------------------------------
#
# The data are points in three clouds, and the model is a mixture of three Gaussians. The likelihood
# is a weighted sum of Gaussian densities, and the loss is its negative logarithm.

centres = np.array([[-30.0, 0.0], [30.0, 10.0], [0.0, -40.0]])
points = np.concatenate([c + rng.normal(size=(60, 2)) for c in centres])


def mixture(x, means, scores):
    weights = gg.exp(scores) / gg.sum(gg.exp(scores))
    squares = gg.sum((x[:, None, :] - means[None, :, :]) ** 2, -1)
    bells = gg.exp(-squares / 2)
    return -gg.mean(gg.log(gg.sum(weights * bells, -1)))


with gg.Graph() as graph:
    x = gg.placeholder(("N", 2), name="x")
    means = gg.variable(rng.normal(size=(3, 2)), name="means")
    scores = gg.variable(np.zeros(3), name="scores")
    loss = mixture(x, means, scores)
    grads = gg.gradients(loss, [means, scores])

with np.errstate(all="ignore"):
    print(gg.compile(x, [loss, grads])(points))

# %%
# Which step is to blame
# ----------------------
#
# ``gg.debug.blame`` runs the backward pass step by step. It names the step that turns finite
# numbers into NaN or infinity, with our line, and says whether an identity heals it.

with np.errstate(all="ignore"):
    found = gg.debug.blame(grads, {x: points})
print(found)
assert "healable" in str(found)

# %%
# The sum is 0 for 56 points because the exponentials underflow, so its logarithm is infinite.
# ``gg.lint`` finds other formulas like that. It needs no numbers, and says for which arguments each
# formula is wrong in its dtype.

for finding in gg.lint(graph):
    print(finding, "\n")

# %%
# Healed
# ------
#
# ``gg.heal`` takes the forward graph, before ``gg.gradients``, and rewrites such formulas with
# identities. The table lists the line, the formula, and the reason.

with graph:
    healed = gg.heal(loss)
    better = gg.gradients(healed.ys, [means, scores])
print(healed)

step = gg.compile(x, [healed.ys, better])
value, (d_means, d_scores) = step(points)
print(float(value), d_means.round(1).tolist())
assert np.isfinite(value)
assert np.isfinite(d_means).all()

# %%
# Now the training converges.

with graph:
    updates = gg.optimizers.Adam(1.0).updates([means, scores], better)
    train = gg.compile(x, healed.ys, updates=updates)
losses = [float(train(points)) for _ in range(300)]

plt.figure(figsize=(6, 2.6))
plt.semilogy(losses)
plt.xlabel("step")
plt.ylabel("loss of the healed mixture")
plt.tight_layout()
assert losses[-1] < losses[0] / 20

# %%
# Where it was wrong
# ------------------
#
# Here one point moves away from all three means. The original loss is no longer finite where the
# last density underflows, 39 standard deviations away, and its slope shortly before. The healed
# loss is finite everywhere.

away = np.linspace(0.0, 80.0, 400)
with graph:
    d_loss, d_better = (gg.gradients(y, x) for y in (loss, healed.ys))
    along = gg.compile(x, [loss, d_loss, healed.ys, d_better])
graph.state[means] = np.zeros((3, 2))
with np.errstate(all="ignore"):
    runs = [along(np.array([[t, 0.0]])) for t in away]
written, slope, value, better_slope = (
    np.array([np.ravel(r[i])[0] for r in runs]) for i in range(4)
)

figure, axes = plt.subplots(1, 2, figsize=(7, 2.8))
for axis, old, new, title in zip(
    axes, [written, slope], [value, better_slope], ["loss", "gradient"], strict=True
):
    axis.plot(away, new, color="tab:blue", label="healed")
    axis.plot(away, old, "--", color="tab:red", linewidth=3, label="as written")
    axis.set_title(title)
    axis.set_xlabel("distance of the point")
axes[0].legend()
figure.tight_layout()
assert not np.isfinite(written[-1])
np.testing.assert_allclose(value, away**2 / 2, rtol=1e-12, atol=1e-12)
np.testing.assert_allclose(better_slope, away, rtol=1e-12, atol=1e-12)

# %%
# ``healed.write_html("healed.html")`` writes a report with such a plot for every formula: the
# number of correct digits before and after, for arguments of all magnitudes, compared with a
# computation in 800 digits (this needs mpmath). It also gives the interval in which the formula was
# wrong. With ``panes=True`` it shows the original graph and the healed one side by side.

healed.write_html(os.devnull, panes=True)

# %%
# What heal cannot do
# -------------------
#
# If the function itself has no derivative, there is nothing to heal; ``blame`` then says what to
# change in the model.

with gg.Graph():
    r = gg.placeholder((3,), name="r")
    dr = gg.gradients(gg.sum(gg.sqrt(gg.abs(r))), r)
with np.errstate(all="ignore"):
    stuck = gg.debug.blame(dr, {r: np.array([0.0, 1.0, 4.0])})
print(stuck)
assert "change: the slope of a root is infinite at 0" in str(stuck)
