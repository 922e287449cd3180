"""
Quantisation-aware training
===========================

This tutorial trains a network with one-bit weights on handwritten digits. The forward pass uses the
signs of the weights; the backward pass uses the straight-through estimator. Then it saves and loads
the trained network, and writes it as a NumPy file.

.. meta::
   :keywords: quantization, quantisation, aware, training, qat, lsq
"""

import runpy
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import graphgrad as gg

pixels, labels = load_digits(return_X_y=True)
train_x, test_x, train_y, test_y = train_test_split(
    pixels / 16 - 0.3, labels, test_size=0.25, stratify=labels, random_state=0
)

# %%
# The network
# -----------
#
# ``gg.rules.ste(window=1.0)`` is the straight-through estimator: ``dx = dy`` where \|x\| <= 1, else
# 0. Apart from the regions, this is an ordinary network.

STE = gg.rules.ste(window=1.0)


def signs(t):
    """-1, 0 or 1, with the straight-through gradient."""
    with gg.override_gradient(STE):
        return gg.sign(t)


def built(overrides):
    """A training step and a function that scores, of a graph of their own."""
    rng = np.random.default_rng(0)
    with gg.Graph():
        x = gg.placeholder(("N", 64), name="x")
        y = gg.placeholder(("N",), dtype="int64", name="y")
        w = gg.variable(rng.normal(size=(64, 64)) / 8, name="w")
        v = gg.variable(rng.normal(size=(64, 10)) / 8, name="v")
        hidden = signs(x @ signs(w) / 8.0)
        logits = hidden @ signs(v) / 8.0
        loss = gg.mean(gg.nn.cross_entropy(logits, y))
        grads = gg.gradients(loss, [w, v], overrides=overrides)
        updates = gg.optimizers.Adam(0.01).updates([w, v], grads)
        step = gg.compile([x, y], loss, updates=updates)
        score = gg.compile([x, y], gg.mean(gg.equal(gg.argmax(logits, axis=1), y)))
    return step, score, w.graph


def trained(overrides):
    """The loss of each step, the share of new digits that are read, and what was built."""
    step, score, graph = built(overrides)
    rng = np.random.default_rng(1)
    losses = []
    for _ in range(150):
        batch = rng.integers(len(train_x), size=128)
        losses.append(float(step(train_x[batch], train_y[batch])))
    return losses, float(score(test_x, test_y)), step, score, graph


# %%
# With the rule, and without
# --------------------------
#
# The forward graph is the same. ``overrides="none"`` gives the true gradient, which is zero.

losses, accuracy, step, score, graph = trained(None)
plain_losses, plain_accuracy, *_ = trained("none")

plt.figure(figsize=(6, 2.8))
plt.plot(losses, label=f"straight through: {accuracy:.0%} of new digits")
plt.plot(plain_losses, label=f"true gradient: {plain_accuracy:.0%}")
plt.xlabel("step")
plt.ylabel("loss")
plt.legend()
plt.tight_layout()

assert accuracy > 0.85 > 0.5 > plain_accuracy

# %%
# Saved and loaded
# ----------------
#
# The file contains the graph, the values and the rule. Loading it does not need the code above, and
# training continues bit for bit.

folder = Path(tempfile.mkdtemp())
gg.save(folder / "digits.gg", graph, functions={"step": step, "score": score})
file = gg.load(folder / "digits.gg")

here = [float(step(train_x, train_y)) for _ in range(3)]
there = [float(file.functions["step"](train_x, train_y)) for _ in range(3)]
print("goes on:", here == there, " reads:", float(file.functions["score"](test_x, test_y)))
assert here == there

# %%
# Exported
# --------
#
# ``gg.export_numpy`` writes a file that needs only NumPy. ``gg.onnx.export`` writes one for other
# runtimes, and ``f.export_stablehlo`` one for JAX.

gg.export_numpy(score, folder / "score.py")
text = (folder / "score.py").read_text(encoding="utf-8")
alone = runpy.run_path(str(folder / "score.py"))["score"](test_x, test_y)
print(f"{len(text.splitlines())} lines of NumPy read", float(alone))
assert float(alone) == float(score(test_x, test_y))
assert "import graphgrad" not in text

# %%
# More bits
# ---------
#
# ``gg.rules.fake_quantise`` quantises to a grid with learned bounds, and ``gg.rules.lsq`` learns
# the step size. Both build the forward op and mark it.

with gg.Graph():
    x = gg.placeholder(("N",), name="x")
    grid = gg.rules.fake_quantise(x, -1.0, 1.0, bits=3)
    learned = gg.rules.lsq(x, 0.4, bits=3)
    f = gg.compile(x, [grid, learned])

points = np.linspace(-2, 2, 400)
plt.figure(figsize=(6, 2.4))
for values, name in zip(f(points), ["fake_quantise, 3 bits", "lsq, step 0.4"], strict=True):
    plt.plot(points, values, label=name)
plt.legend()
plt.tight_layout()
