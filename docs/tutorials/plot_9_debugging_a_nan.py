"""
Debugging a NaN
===============

A loss that is NaN after some steps: which line makes it, and what would have been the right number?
This takes a model that one would write down from a book, finds the step that breaks, has it
rewritten by an identity, and looks at where both are right.

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
# Points of three clouds, and a mixture of three Gaussians that is to find them. The likelihood is a
# weighted sum of bells, and the loss the logarithm of that.

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
# ``gg.debug.blame`` runs the backward pass step by step, and names what makes NaN or infinity of
# finite numbers, with the line of ours that it belongs to, and whether something heals it.

with np.errstate(all="ignore"):
    found = gg.debug.blame(grads, {x: points})
print(found)
assert "healable" in str(found)

# %%
# The sum is 0 for 56 points, and its logarithm shows it; the exponentials that underflow are why.
# What else is written like that? ``gg.lint`` looks at the formulas alone, without numbers, and
# knows from where each is wrong in the dtype in use.

for finding in gg.lint(graph):
    print(finding, "\n")

# %%
# Healed
# ------
#
# ``gg.heal`` takes the forward graph, before ``gg.gradients``, and rebuilds such formulas by
# identities. The table says line, formula, and reason.

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
# And now it trains.

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
# One point, moved away from all three means: what is written ends where the last bell is 0, 39
# widths away, and its slope shortly before. What it became goes on.

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
# ``healed.write_html("healed.html")`` writes a page with such a picture for every formula: how many
# digits are right before and after, over all exponents, by a run in 800 digits beside (it needs
# mpmath), and from where to where it was wrong. With ``panes=True`` it shows the graph as it was
# written and the healed one side by side.

healed.write_html(os.devnull, panes=True)

# %%
# What heal cannot do
# -------------------
#
# Where a function itself has no slope there is nothing to heal, and ``blame`` says what to change
# in the model instead.

with gg.Graph():
    r = gg.placeholder((3,), name="r")
    dr = gg.gradients(gg.sum(gg.sqrt(gg.abs(r))), r)
with np.errstate(all="ignore"):
    stuck = gg.debug.blame(dr, {r: np.array([0.0, 1.0, 4.0])})
print(stuck)
assert "change: the slope of a root is infinite at 0" in str(stuck)
